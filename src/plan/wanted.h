/*
 * wanted.h - the pieces of a wish as GPU instances of one board, and whether
 * they can be there at all. Inside plan/layout.
 */
#ifndef DIVVY_PLAN_WANTED_H
#define DIVVY_PLAN_WANTED_H

#include "plan/layout.h"
#include "plan/solve.h"

struct wanted {
    struct solve_gi gis[SOLVE_MAX];
    size_t count;
    uint32_t asked[BOARD_PROFILES_MAX]; /* GPU instances; may be more than `gis` has room for */
    char warning[256];
};

/*
 * Smaller compute instances of one profile are put into as few GPU instances as
 * hold them, unless their place is said. -EINVAL: the board has no such thing;
 * the sentence lists what it has.
 */
int wanted_read(const struct board *b, const struct layout_wish *w, struct wanted *ret,
                struct err *e);

/*
 * Sums that are beyond the board: memory units, compute slices, engines,
 * instances of a profile. -ENOSPC, with the arithmetic. What passes may still
 * have no arrangement.
 */
int wanted_check_sums(const struct board *b, const struct wanted *w, struct err *e);

/* "2×3g.40gb + 1g.10gb": so many of each, in the board's order, largest first. */
void wanted_add_list(struct text *t, const struct board *b, const uint32_t *counts);

#endif
