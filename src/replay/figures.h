/*
 * figures.h - what a schedule was like, in numbers that can be compared.
 *
 *   wait        from submission to the first start
 *   completion  from submission to the end
 *   slowdown    completion over the time it ran, that at least 600 s, and no
 *               less than 1 (bounded slowdown): a job of a second that waits
 *               a minute is no disaster
 *   allocated   what was held of all compute and memory from the first
 *               submission to the last end
 *   fairness    by account, of the mean slowdowns of its jobs: the worst (of
 *               accounts with 10 jobs or more, while there are any), and
 *               Jain's index (Σx)² / (n Σx²) of what each account got, x being
 *               1 / slowdown: 1 is all alike, 1/n is one has all
 *
 * Jobs that no card of the server can serve are in none of them.
 */
#ifndef DIVVY_REPLAY_FIGURES_H
#define DIVVY_REPLAY_FIGURES_H

#include "replay/replay.h"

#define SLOWDOWN_RUN_US (600 * CLOCK_SECOND)

/* The mean of fewer jobs is luck: such an account is never called the worst. */
#define FIGURES_JOBS_MIN 10

struct replay_account {
    const char *name; /* borrowed from the trace */
    size_t jobs;
    double wait_s, completion_s; /* means */
    double slowdown;             /* mean */
    double card_hours;
};

struct replay_figures {
    size_t jobs, never, cut_short;
    double wait_mean_s, wait_p50_s, wait_p95_s, wait_max_s;
    double completion_mean_s, completion_p50_s, completion_p95_s;
    double slowdown_mean, slowdown_p95;
    double compute, mem;   /* allocated parts, 0 to 1 */
    double worst_slowdown; /* of an account */
    const char *worst;     /* its name, borrowed from the trace; NULL: no jobs */
    double jain;           /* 0 to 1 */
    double span_s;         /* first submission to last end */
    uint64_t recuts, preemptions;
    struct replay_account *accounts; /* in the order of the trace's names */
    size_t account_count;
};

#define REPLAY_FIGURES_INIT                                                                        \
    {                                                                                              \
        .accounts = NULL                                                                           \
    }

void replay_figures_done(struct replay_figures *f);
void replay_figures(const struct trace *t, const struct replay_result *r,
                    struct replay_figures *ret);

/* Bounded slowdown of one job that was done after this long. */
double replay_slowdown(int64_t completion_us, int64_t run_us);

#endif
