/*
 * access.h - what the caller may open, as the real library sees it: a card
 * whose device node is closed to him does not enumerate, a MIG device whose
 * capability nodes are closed is absent.
 *
 * Nodes are looked for under $DIVVY_DRIVER_ROOT, else under the machine's own
 * root/ (sim/root.h); a node that is not there closes nothing.
 */
#ifndef DIVVY_SIM_NVML_ACCESS_H
#define DIVVY_SIM_NVML_ACCESS_H

#include "sim/lib/nvml/core.h"

bool access_card(const struct machine *m, uint32_t minor);
bool access_mig(const struct machine *m, uint32_t minor, uint32_t gi, uint32_t ci);
/*
 * The `index`th MIG device of the card that the caller may use: indexes count
 * without the others, so that a job sees its only one as device 0.
 */
bool access_mig_device_at(const struct view *v, uint32_t index, uint32_t *ret_gi, uint32_t *ret_ci);
/* mig/monitor: memory and processes of all instances together. */
bool access_monitor(const struct machine *m);

#endif
