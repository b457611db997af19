/*
 * solve.h - where do wanted GPU instances go on one card?
 *
 * Exact: every arrangement on the board's own placements is looked at, and of
 * all that hold the best is taken, by, in this order: fewest wanted ones left
 * out (none, unless leaving out is allowed); fewest busy slices lost; fewest
 * idle ones destroyed; fewest of these made again elsewhere; most room for what
 * may come (occupancy_room); lowest starts. The order in which things are
 * wanted or there never matters.
 *
 * It does not refuse to lose what is busy: it says so, and the caller knows
 * then who is in the way, since the best arrangement loses as few as can be.
 */
#ifndef DIVVY_PLAN_SOLVE_H
#define DIVVY_PLAN_SOLVE_H

#include <stddef.h>

#include "plan/occupancy.h"

#define SOLVE_MAX 32u /* GPU instances on a card, wanted or there */
#define SOLVE_CIS 8u  /* compute instances in one */
#define SOLVE_ANYWHERE UINT32_MAX

struct solve_ci {
    uint32_t id;     /* of its compute instance profile */
    uint32_t slices; /* as many as the GPU instance: the full one, whatever its id */
    uint32_t start;  /* compute slice, or SOLVE_ANYWHERE */
    bool busy;       /* one that is there */
    size_t index;    /* one that is there: the caller's */
};

struct solve_gi {
    const struct profile *profile; /* of the board; NULL: one that is there and not known, stays */
    uint32_t start;                /* SOLVE_ANYWHERE only for wanted ones */
    uint32_t units;
    uint32_t ci_count;
    struct solve_ci cis[SOLVE_CIS];
    size_t index; /* the caller's */
};

/* Pairs of one that is there and one that is wanted. */
struct solve_result {
    bool found;
    uint32_t left_out;          /* wanted ones that have no place */
    uint32_t busy_lost;         /* busy slices that would be destroyed */
    uint32_t destroyed, moved;  /* idle slices destroyed; GPU instances among these made again */
    uint32_t starts[SOLVE_MAX]; /* of each wanted one; SOLVE_ANYWHERE: left out */
    uint32_t kept[SOLVE_MAX];   /* of each one there: the wanted one; or SOLVE_MAX */
    uint32_t ci_starts[SOLVE_MAX][SOLVE_CIS]; /* of each wanted compute instance */
    uint32_t ci_kept[SOLVE_MAX][SOLVE_CIS]; /* of each one there: the wanted one in it, or SOLVE_CIS
                                             */
};

/*
 * `wants` is put into the solver's own order. With `leave_out` what finds no
 * place is left out, and what is busy is lost last of all. `have` has no more
 * than SOLVE_MAX entries, as `wants`.
 */
void solve(const struct board *b, struct solve_gi *wants, size_t want_count,
           const struct solve_gi *have, size_t have_count, bool leave_out,
           struct solve_result *ret);

/* May such a compute instance begin there in an instance of `p`? */
bool solve_ci_starts_at(const struct profile *p, uint32_t slices, uint32_t start);

#endif
