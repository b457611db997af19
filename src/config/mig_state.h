/*
 * mig_state.h - what the cards are, in the formats of NVIDIA's mig-parted.
 *
 * Three of them: the configuration that export gives (what the cards are now,
 * counts without places), the one that generate-config gives (all that these
 * cards could be), and a checkpoint (exact places). All are JSON values;
 * mig_state_add_yaml writes the first two as the YAML that mig_parted.h reads.
 */
#ifndef DIVVY_CONFIG_MIG_STATE_H
#define DIVVY_CONFIG_MIG_STATE_H

#include <jansson.h>

#include "model/inventory.h"
#include "model/layout.h"

/*
 * What the cards are now, under one label: cards alike in one entry. New
 * reference. GPU instances without a compute instance have no words in this
 * format: they are left out, and counted in `ret_unsaid`.
 */
json_t *mig_state_export(const struct inventory *inv, const char *label, size_t *ret_unsaid);

/*
 * all-disabled, all-enabled, all-PROFILE for each profile that the cards have,
 * and all-balanced. New reference.
 */
json_t *mig_state_generate(const struct inventory *inv);

/* Maps, lists, words, numbers and truth as block YAML. */
void mig_state_add_yaml(struct text *t, const json_t *j);

/* New reference. */
json_t *mig_state_checkpoint(const struct inventory *inv);

/*
 * A checkpoint as a layout with exact places, for the cards that are here: it
 * knows profiles by NVML's enumeration, and `inv` has their boards. `file` is
 * for messages. -EINVAL with the field, -ENODEV for a card that is not here,
 * -ENOTSUP for a profile that its card does not have.
 */
int mig_state_from_checkpoint(const char *file, json_t *j, const struct inventory *inv,
                              struct layout *ret, struct err *e);

#endif
