/*
 * policy.h - what divvy.yaml says of the queue, as sched/ takes it. divvyd and
 * `divvy replay` read it through here, so that a replay is of the same queue.
 *
 *     struct sched_policy p = policy_of(&config);
 *     struct sched *s = sched_new(&p);
 *     policy_load(s, &config);
 *
 * Who wants the accounts themselves takes them as branches:
 *
 *     struct policy_branches b;
 *     policy_branches_init(&b, &config);
 */
#ifndef DIVVY_POLICY_POLICY_H
#define DIVVY_POLICY_POLICY_H

#include "config/divvyd.h"
#include "sched/sched.h"

/*
 * Order, times, thresholds, what is kept; where the file is silent, its defaults.
 * Of the machine what the file says in numbers: "auto" is not counted, and is
 * for the caller to fill in who knows a machine.
 */
struct sched_policy policy_of(const struct divvyd_config *c);

/* Limits, accounts and classes into a queue without jobs. Nothing of `c` is kept. */
void policy_load(struct sched *s, const struct divvyd_config *c);

/* The accounts, in the order of the file. Names and limits are borrowed from the configuration. */
struct policy_branches {
    struct sched_branch *list;
    size_t count;
};
void policy_branches_init(struct policy_branches *b, const struct divvyd_config *c);
void policy_branches_done(struct policy_branches *b);

#endif
