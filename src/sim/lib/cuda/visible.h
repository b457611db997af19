/*
 * visible.h - which devices a CUDA process sees: CUDA_VISIBLE_DEVICES,
 * CUDA_DEVICE_ORDER, and what MIG and the driver's branch add to that.
 *
 * Pure: the caller says what cards and instances there are and which of them
 * this process may open. Rules (MIG User Guide, CUDA Programming Guide):
 *  - unset: every card; empty: none; the list is cut at its first entry that
 *    names nothing, and an entry that comes twice leaves no device at all;
 *  - an entry is an ordinal, "GPU-..." or "MIG-..." or a prefix of one that
 *    fits only one device, or "MIG-GPU-.../gi/ci" as before driver 470;
 *  - a card with MIG on is never a device itself: its ordinal and UUID stand
 *    for its first MIG device;
 *  - before driver 570 one MIG device, the first, is all a process gets, and
 *    no card beside it; from 570 on several, one of each GPU instance.
 */
#ifndef DIVVY_SIM_CUDA_VISIBLE_H
#define DIVVY_SIM_CUDA_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VISIBLE_MAX 64
#define VISIBLE_PARTS_MAX 64     /* MIG devices of one card */
#define VISIBLE_CARD 0xFFFFFFFFU /* gi and ci of a whole card */

struct visible_part {
    uint32_t gi, ci;
    char uuid[48]; /* "MIG-..." */
};

/* A card that this process may open. */
struct visible_card {
    uint32_t ordinal; /* in PCI order */
    char uuid[48];    /* "GPU-..." */
    uint64_t speed;   /* for the order "fastest first" */
    bool mig;         /* MIG is on */
    uint32_t part_count;
    struct visible_part parts[VISIBLE_PARTS_MAX]; /* those that it may open */
};

struct visible_world {
    uint32_t branch; /* of the driver: 550 */
    uint32_t card_count;
    struct visible_card *cards; /* in PCI order; sorted by visible_devices */
};

struct visible_device {
    uint32_t ordinal;
    uint32_t gi, ci; /* VISIBLE_CARD: the whole card */
};

/*
 * Writes the devices in CUDA's order and returns how many there are. `list`
 * and `order` are the values of the two variables, NULL when not set.
 */
size_t visible_devices(struct visible_world *w, const char *list, const char *order,
                       struct visible_device ret[VISIBLE_MAX]);

#endif
