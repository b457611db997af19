/*
 * root.h - what stands in for /dev, /proc and /sys of a simulated machine:
 * the folder root/ in its directory, where DIVVY_DRIVER_ROOT points.
 *
 *     dev/nvidia0 nvidiactl nvidia-modeset nvidia-uvm nvidia-uvm-tools
 *     dev/nvidia-caps/nvidia-capMINOR
 *     proc/devices
 *     proc/driver/nvidia/version params gpus/0000:07:00.0/information
 *     proc/driver/nvidia/capabilities/mig/config mig/monitor
 *     proc/driver/nvidia/capabilities/gpuMINOR/mig/giG/access giG/ciC/access
 *     proc/driver/nvidia-caps/mig-minors
 *     sys/bus/pci/devices/0000:07:00.0/vendor device class numa_node local_cpulist
 *
 * Most of it never changes. The giG and ciC entries and their nodes exist only
 * while the instance does, so they follow the state: whoever commits a change
 * calls sim_root_sync() after it. That is a comparison with the present state
 * under a lock of its own, so a caller that was killed before or in the middle
 * of it is made up for by the next one, in any order.
 *
 * The nodes are real character devices where mknod(2) is allowed and such a
 * node can be opened (nobody drives its number: opening ends in ENXIO, after
 * permissions and device cgroups were asked); else they are empty files with
 * the same modes. Formats and minor numbers: Linux driver 535 to 595.
 */
#ifndef DIVVY_SIM_ROOT_H
#define DIVVY_SIM_ROOT_H

#include "sim/machine.h"

/* Minor numbers below nvidia-caps, as /proc/driver/nvidia-caps/mig-minors lists them. */
#define SIM_CAP_CONFIG 1u
#define SIM_CAP_MONITOR 2u
uint32_t sim_cap_gi_minor(uint32_t card_minor, uint32_t gi);
uint32_t sim_cap_ci_minor(uint32_t card_minor, uint32_t gi, uint32_t ci);

/*
 * Makes root/ anew, whole: built beside and renamed; an older one is removed.
 * For divvy-sim up, by the owner.
 */
int sim_root_make(const struct machine *m, struct err *e);

/* The version that the kernel module tells: that of the driver which is loaded. */
int sim_root_version(const struct machine *m, struct err *e);
/* Makes what follows the state agree with it. Only the machine's owner can; -EACCES. */
int sim_root_sync(const struct machine *m, struct err *e);

/* DIVVY_DRIVER_ROOT, else the machine's root/. Caller frees. */
char *sim_root_path(const struct machine *m);

/*
 * May this process open the node "dev/…" below `root`? 0; -EACCES or -EPERM
 * (file mode or device cgroup); -ENOENT. It is opened for that, as the real
 * libraries do, read-only for capabilities and read-write for others.
 */
int sim_root_may_open(const char *root, const char *node);
/* The same for a card, and for an instance: its GI node and (unless SIM_NO_INSTANCE) CI node. */
int sim_root_may_use_card(const char *root, uint32_t card_minor);
int sim_root_may_use_instance(const char *root, uint32_t card_minor, uint32_t gi, uint32_t ci);

#endif
