/*
 * replay.h - a trace on a virtual clock, through the very calls of sched/ and
 * plan/ that divvyd makes.
 *
 * Pure: the same trace, cards and policy give the same schedule. What a real
 * server adds is left out: cutting takes no time, and a job starts the moment
 * it is placed. A job runs as long as it ran in the trace, or to its limit.
 *
 *     AUTO(replay_result) struct replay_result res = REPLAY_RESULT_INIT;
 *     replay_run(&trace, &inv, &policy, &res);
 *     replay_figures(&trace, &res, &figures);
 */
#ifndef DIVVY_REPLAY_REPLAY_H
#define DIVVY_REPLAY_REPLAY_H

#include "replay/trace.h"
#include "sched/sched.h"

struct replay_policy {
    struct sched_policy sched;
    bool pooled;              /* all jobs as if of one account: shares do not matter */
    enum sched_inside inside; /* of accounts that have no branch */
    int64_t default_time_us;  /* limit of jobs that name none; 0: none */
    /* As for sched_set_account, sched_set_qos and sched_set_limits; borrowed. */
    const struct sched_branch *branches;
    size_t branch_count;
    const struct qos *qos;
    size_t qos_count;
    const struct limits *limits, *user_limits; /* NULL: none */
};

/* What became of one job of the trace. */
struct replay_job {
    int64_t start_us;   /* of its first attempt; wall clock of the trace; -1: never */
    int64_t end_us;     /* -1: never (no card of the server can serve it) */
    int64_t held_us;    /* over all attempts */
    uint64_t share_ppm; /* of cards, of its last attempt: the dominant share */
    uint64_t compute_ppm, mem_ppm;
    uint32_t preempted; /* how often */
    bool cut_short;     /* ended by its limit before its work was done */
};

struct replay_result {
    struct replay_job *jobs; /* trace->count of them, in its order */
    uint32_t cards;          /* of the server */
    uint64_t cycles, starts, preemptions, recuts;
    size_t never; /* jobs that no card of the server can serve */
};

#define REPLAY_RESULT_INIT                                                                         \
    {                                                                                              \
        .jobs = NULL                                                                               \
    }

void replay_result_done(struct replay_result *r);

/* `inv` is copied. `ret` is the caller's to end. */
void replay_run(const struct trace *t, const struct inventory *inv, const struct replay_policy *p,
                struct replay_result *ret);

#endif
