/*
 * mig_parted.h - the configuration files of NVIDIA's mig-parted as layouts.
 *
 *     version: v1
 *     mig-configs:
 *       all-1g.5gb:
 *         - devices: all
 *           mig-enabled: true
 *           mig-devices: {"1g.5gb": 7}
 *
 * Each label becomes a layout in which the last entry for a card wins. Devices
 * are cards by their number, a device-filter compares PCI ids. What the
 * original lets pass without a word and never does (a filter that is no
 * number, a count of 0 beside others, a key twice) is refused with its place.
 */
#ifndef DIVVY_CONFIG_MIG_PARTED_H
#define DIVVY_CONFIG_MIG_PARTED_H

#include "config/field.h"
#include "config/layout.h"

/* Appends a layout a label. -EINVAL with file:line:column; `ret` is then as it was. */
int mig_parted_from_tree(const struct yaml_tree *t, struct layout_list *ret, struct err *e);

/* For a table of fields: the version that each of its files begins with. -EINVAL. */
int mig_parted_read_version(const struct yaml_node *n, const struct field *f, void *place,
                            struct err *e);

#endif
