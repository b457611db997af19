/*
 * queued_server.h - a server of cards (server.h) with a queue in front of it:
 * cycles that carry out what the queue decides, and the list of what they
 * started. One for each program that includes it.
 */
#ifndef DIVVY_TESTS_QUEUED_SERVER_H
#define DIVVY_TESTS_QUEUED_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "server.h"

#define QUEUED_MOST 512u /* starts, and numbers of jobs that are told limits */

static struct inventory inv;
static struct sched *queue;
static struct now now;
static uint64_t started[QUEUED_MOST]; /* in order */
static bool backfilled[QUEUED_MOST];  /* each of these */
static size_t start_count;
static int64_t limits[QUEUED_MOST]; /* each job's; 0: none */

/* Another queue in the place of the last. */
static inline void begin_queue(const struct sched_policy *policy)
{
    sched_free(queue);
    queue = sched_new(policy);
}

/* No card yet, and nobody waits. */
static inline void begin_server(const struct sched_policy *policy)
{
    inv = (struct inventory){ .cards = NULL };
    now = (struct now){ .boot_us = CLOCK_DAY, .wall_us = INT64_C(1790000000) * CLOCK_SECOND };
    start_count = 0;
    begin_queue(policy);
}

static inline int end_server(void **state)
{
    (void)state;
    inventory_done(&inv);
    sched_free(queue);
    queue = NULL;
    return 0;
}

static inline void pass(int64_t us)
{
    now.boot_us += us;
    now.wall_us += us;
}

static inline const char *hold_counted(uint64_t id)
{
    struct bulk_hold hold = { .job_id = id, .cards = 1, .since_boot_us = now.boot_us };
    hold.until_boot_us = limits[id] ? now.boot_us + limits[id] : INT64_MAX;
    return bulk_hold(inv.bulk, &hold) ? NULL : "takes more cards than there are";
}

/* All that can start do; where cards are only counted, each takes one. */
static inline void cycle(void)
{
    struct sched_decision d;
    inv.now = now;
    sched_cycle(queue, now);
    while (sched_next(queue, &inv, now, &d) > 0) {
        assert_true(d.job_id < QUEUED_MOST && start_count < QUEUED_MOST);
        const char *wrong =
            inv.bulk ? hold_counted(d.job_id) : server_apply(&inv, &d, limits[d.job_id], now);
        if (wrong)
            fail_msg("job %d %s", (int)d.job_id, wrong);
        backfilled[start_count] = d.backfill;
        started[start_count++] = d.job_id;
        sched_start(queue, d.job_id, &d.place, charge_dominant_ppm(&d.place), now.boot_us);
        sched_decision_done(&d);
    }
}

static inline void end(uint64_t id)
{
    server_end(&inv, id, now);
    sched_end(queue, id, now.boot_us);
}

static inline struct sched_explanation why(uint64_t id)
{
    struct sched_explanation x;
    sched_explain(queue, &inv, id, now, &x);
    return x;
}

/* These and no others have started since it was asked last, in this order. */
#define assert_starts(...)                                                                         \
    do {                                                                                           \
        static const uint64_t expected[] = { 0, __VA_ARGS__ };                                     \
        assert_int_equal(start_count + 1, sizeof expected / sizeof *expected);                     \
        assert_memory_equal(started, expected + 1, sizeof expected - sizeof *expected);            \
        start_count = 0;                                                                           \
    } while (0)

#endif
