/*
 * carry.h - what an inventory would be after a plan: a decision carried out on
 * cards in memory, as apply/ and a job do it on real ones.
 *
 * For whoever looks ahead: a replay, and the reservations of sched/. The
 * inventory must own its slices. Steps that place/ has just made for this
 * inventory always can be carried out (asserted).
 */
#ifndef DIVVY_PLAN_CARRY_H
#define DIVVY_PLAN_CARRY_H

#include "plan/plan.h"

/* The steps alone. Returns how many of them change a card: instances made and destroyed, modes. */
uint32_t carry_steps(struct inventory *inv, const struct plan *plan);
/* The steps, then the job's holds on what was placed. Returns what carry_steps does. */
uint32_t carry_job(struct inventory *inv, const struct place *place, const struct plan *plan,
                   const struct hold *hold);
/* The job holds nothing any more; what it leaves empty is idle since then. */
void carry_end(struct inventory *inv, uint64_t job_id, int64_t now_us);
/* Deep copy of cards, slices and holds; processes are left out. inventory_done ends it. */
void carry_copy(const struct inventory *inv, struct inventory *ret);

#endif
