/*
 * machine_file.h - the bytes of the `state` file; only for machine.c and
 * machine_make.c.
 *
 * Everything before `active` is written once. `active` counts changes; slot
 * (active & 1) is the state. Slot (active + 1) & 1 belongs to whoever holds
 * the lock.
 */
#ifndef DIVVY_SIM_MACHINE_FILE_H
#define DIVVY_SIM_MACHINE_FILE_H

#include "sim/machine.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half is taken to come first");

#define SIM_FILE_MAGIC 0x314d495359565644ULL /* "DVVYSIM1" */

struct sim_file {
    uint64_t magic;
    uint64_t size; /* sizeof(struct sim_file): another layout has another size */
    int64_t up_us;
    uint32_t board_count;
    uint32_t card_count;
    uint64_t active; /* atomic; its low half is also what machine_wait sleeps on */
    uint64_t gone;   /* atomic; not 0: the machine was taken down */
    struct sim_board boards[SIM_BOARDS_MAX];
    struct sim_state slots[2];
};

#endif
