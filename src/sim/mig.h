/*
 * mig.h - what MIG allows: the geometry of GPU and compute instances.
 *
 * Pure rules on a card's state and its board. Memory units may not overlap;
 * compute slices and media engines are sums that may not be exceeded; a
 * profile has a number of instances of its own; a GPU instance's id follows
 * from its placement. Whether processes use an instance is told by the caller.
 *
 *     uint32_t gi, ci;
 *     rc = mig_gi_create(st, boards, 0, 9, MIG_ANYWHERE, &gi);   // 3g.40gb
 *     rc = mig_ci_create(st, boards, 0, gi, 2, MIG_ANYWHERE, &ci);
 *
 * Sources: MIG User Guide (sums, order of creation), NVIDIA's open kernel
 * modules (ids, destroy conditions).
 */
#ifndef DIVVY_SIM_MIG_H
#define DIVVY_SIM_MIG_H

#include "sim/state.h"

#define MIG_ANYWHERE 0xFFFFFFFFU

/* Whole 0; halves 1, 2; quarters 3..6; eighths 7..14. */
uint32_t mig_gi_id(const struct sim_board *b, struct sim_span span);

/*
 * Can one more instance of `p` be made with its first unit at `start`, as the
 * card is now? False too when `start` is no placement of it. `branch` is the
 * driver's: before 510 a 4-slice and a 3-slice instance exclude each other.
 */
bool mig_gi_fits(const struct sim_board *b, const struct sim_card *c, const struct sim_profile *p,
                 uint32_t start, uint32_t branch);

/* How many more instances of `p` the card can take. */
uint32_t mig_gi_remaining(const struct sim_board *b, const struct sim_card *c,
                          const struct sim_profile *p, uint32_t branch);

/*
 * Makes a GPU instance; without a start (MIG_ANYWHERE) at the first of the
 * profile's start order that fits, which may not be the wisest. Adds an event.
 * On failure nothing changes: -EOPNOTSUPP MIG is off, -EINVAL no such profile
 * or placement on this board, -ENOSPC no room (units, slices, engines or the
 * profile's own maximum).
 */
int mig_gi_create(struct sim_state *st, const struct sim_board *boards, uint32_t card,
                  uint32_t profile_id, uint32_t start, uint32_t *ret_gi);

/*
 * Unmakes a GPU instance. -ENOENT: there is none; -EBUSY: it has compute
 * instances, or `busy`. With the fault destroy-lies returns 0 and leaves it.
 */
int mig_gi_destroy(struct sim_state *st, uint32_t card, uint32_t gi, bool busy);

/* Where compute instances of `cp` can lie in an empty instance of `p`; at most SIM_CI_MAX. */
uint32_t mig_ci_placements(const struct sim_profile *p, const struct sim_ci_profile *cp,
                           struct sim_span ret_spans[SIM_CI_MAX]);
uint32_t mig_ci_remaining(const struct sim_profile *p, const struct sim_gi *g,
                          const struct sim_ci_profile *cp);

/* As for GPU instances; ids are the lowest free ones, default starts the lowest that fit. */
int mig_ci_create(struct sim_state *st, const struct sim_board *boards, uint32_t card, uint32_t gi,
                  uint32_t ci_profile_id, uint32_t start, uint32_t *ret_ci);
int mig_ci_destroy(struct sim_state *st, uint32_t card, uint32_t gi, uint32_t ci, bool busy);

/*
 * The card's `index`th MIG device (a compute instance), counted by GPU instance
 * id, then compute instance id. False when there are not so many.
 */
bool mig_device_at(const struct sim_card *c, uint32_t index, uint32_t *ret_gi, uint32_t *ret_ci);
/* The other way: the index of that MIG device, MIG_ANYWHERE when there is none. */
uint32_t mig_device_index(const struct sim_card *c, uint32_t gi, uint32_t ci);

/* "1c.3g.40gb" or "3g.40gb": the name of a MIG device's profile. */
const char *mig_device_profile(const struct sim_board *b, const struct sim_card *c, uint32_t gi,
                               uint32_t ci);

#endif
