/*
 * node.h - the driver's device nodes, made where they are missing.
 *
 * The kernel module makes none: the setuid program nvidia-modprobe does, when
 * a library of the driver first needs one. A job without new privileges cannot
 * have that done for it, so who starts jobs sees to it before. Numbers come
 * from DRIVER_ROOT/proc/devices; owner and mode of the cards' nodes from
 * DRIVER_ROOT/proc/driver/nvidia/params (DeviceFileUID, DeviceFileGID,
 * DeviceFileMode; 0666 where it is not there); a capability is 0444, which is
 * what the driver writes into each `access` file of an instance.
 *
 *     r = driver_node_make(driver_root, "/dev/nvidia-caps/nvidia-cap21", e);
 */
#ifndef DIVVY_DRIVER_NODE_H
#define DIVVY_DRIVER_NODE_H

#include "base/err.h"

/*
 * Makes `node`: /dev/nvidiaN, nvidiactl, nvidia-uvm, nvidia-uvm-tools, or
 * nvidia-caps/nvidia-capN, below `driver_root`. 1: it was made; 0: something
 * of that name was there, whatever it is. It appears whole: nobody sees it
 * without its mode. -EINVAL: no such node; -ENODEV: its module is not loaded;
 * -EPERM, -EACCES …: it cannot be made here. Nothing is left on failure.
 */
int driver_node_make(const char *driver_root, const char *node, struct err *e);

#endif
