/*
 * What a queue promises to those who share a server, on random streams of jobs
 * through replay/: the very calls that divvyd makes, on a clock that costs
 * nothing. Cards are counted, so that a thousand streams take seconds.
 *
 *     DIVVY_TEST_SEED=N model_shares       the same streams again
 *     DIVVY_TEST_STREAMS=N model_shares    so many of each kind
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../unit/dice.h"
#include "replay/figures.h"

#define STREAMS 400
#define JOBS 40
#define ACCOUNTS_MAX 4
#define LONGEST_S 100

struct stream {
    struct trace trace;
    uint32_t cards, accounts;
};

static int streams(void)
{
    const char *set = getenv("DIVVY_TEST_STREAMS");
    return set ? atoi(set) : STREAMS;
}

static const char *const names[ACCOUNTS_MAX] = { "alice", "bob", "carol", "dave" };

static void add(struct trace *t, int64_t submit_s, int64_t run_s, int64_t limit_s, uint32_t cards,
                const char *account)
{
    struct trace_job j = { .submit_us = submit_s * CLOCK_SECOND,
                           .run_us = run_s * CLOCK_SECOND,
                           .limit_us = limit_s * CLOCK_SECOND,
                           .wait_us = -1,
                           .id = t->count + 1,
                           .request = { .kind = REQUEST_CARDS, .count = cards },
                           .account = trace_name(&t->accounts, account),
                           .user = trace_name(&t->users, account),
                           .qos = UINT32_MAX };
    trace_add(t, &j);
}

/* Limits are exact where `exact`; else runs end at up to a third of them. */
static void roll_stream(struct dice *d, bool exact, uint32_t most_cards, struct stream *st)
{
    int64_t at = 0;
    *st = (struct stream){ .trace = TRACE_INIT };
    st->accounts = 2 + (uint32_t)dice_below(d, ACCOUNTS_MAX - 1);
    st->cards = st->accounts * (1 + (uint32_t)dice_below(d, 4));
    for (int i = 0; i < JOBS; i++) {
        int64_t limit = 3 + (int64_t)dice_below(d, LONGEST_S - 2);
        int64_t run = exact ? limit : 1 + (int64_t)dice_below(d, (uint64_t)limit);
        uint32_t most = most_cards ? most_cards : st->cards;
        at += (int64_t)dice_below(d, 30);
        add(&st->trace, at, run, limit, 1 + (uint32_t)dice_below(d, most),
            names[dice_below(d, st->accounts)]);
    }
}

static void replay(const struct trace *t, uint32_t cards, const struct replay_policy *p,
                   struct replay_result *ret)
{
    struct bulk bulk = { .cards = cards, .free = cards };
    struct inventory inv = { .bulk = &bulk };
    replay_run(t, &inv, p, ret);
}

static struct replay_policy one_line(uint32_t reservations)
{
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT,
                               .pooled = true,
                               .inside = SCHED_FIFO };
    p.sched.order.share = 0;
    p.sched.reservations = reservations;
    return p;
}

/* As many cards as jobs, and no two jobs ask for as many. */
static void roll_sizes(struct dice *d, struct stream *st)
{
    roll_stream(d, true, 0, st);
    st->cards = JOBS;
    for (uint32_t i = 0; i < JOBS; i++) {
        struct request *r = &st->trace.jobs[i].request;
        uint32_t k = (uint32_t)dice_below(d, i + 1);
        r->count = i + 1;
        r->count = st->trace.jobs[k].request.count;
        st->trace.jobs[k].request.count = i + 1;
    }
}

/*
 * When limits are what jobs take, nobody with a reservation starts later for
 * what was handed in after him: not by a moment. The first of each request
 * that waits has one, and here all are of their own kind.
 */
static void nobody_is_delayed_by_who_came_later(void **state)
{
    (void)state;
    struct dice d = dice_new(31);
    struct replay_policy p = one_line(JOBS);
    for (int i = 0; i < streams() / 8; i++) {
        struct stream st;
        AUTO(replay_result) struct replay_result all = REPLAY_RESULT_INIT;
        roll_sizes(&d, &st);
        replay(&st.trace, st.cards, &p, &all);
        for (size_t n = 1; n < JOBS; n++) {
            AUTO(replay_result) struct replay_result until = REPLAY_RESULT_INIT;
            struct trace first = st.trace;
            first.count = n;
            replay(&first, st.cards, &p, &until);
            if (all.jobs[n - 1].start_us > until.jobs[n - 1].start_us)
                fail_msg("stream %d: job %zu starts later for those behind it", i, n);
        }
        trace_done(&st.trace);
    }
}

/*
 * In one line with one reservation, nobody waits longer than all before him
 * would take one after another, and the longest limit of those behind.
 */
static void nobody_starves(void **state)
{
    (void)state;
    struct dice d = dice_new(32);
    struct replay_policy p = one_line(1);
    for (int i = 0; i < streams(); i++) {
        struct stream st;
        AUTO(replay_result) struct replay_result res = REPLAY_RESULT_INIT;
        int64_t serial = 0; /* the end of a line of one after another */
        roll_stream(&d, false, 0, &st);
        replay(&st.trace, st.cards, &p, &res);
        for (size_t k = 0; k < st.trace.count; k++) {
            const struct trace_job *j = &st.trace.jobs[k];
            serial = serial > j->submit_us ? serial : j->submit_us;
            assert_true(res.jobs[k].start_us >= j->submit_us);
            if (res.jobs[k].start_us > serial + LONGEST_S * CLOCK_SECOND)
                fail_msg("stream %d: job %zu waits for others than those before it", i, k + 1);
            serial += j->limit_us;
        }
        trace_done(&st.trace);
    }
}

static struct replay_policy fair(bool preempt)
{
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT, .inside = SCHED_FIFO };
    p.sched.preempt_shares = preempt;
    return p;
}

/* Whoever had nothing gets his part of what others were lent: at once, or when one of them ends. */
static void what_is_lent_comes_back(void **state)
{
    (void)state;
    struct dice d = dice_new(33);
    for (int i = 0; i < streams(); i++) {
        AUTO(trace) struct trace t = TRACE_INIT;
        uint32_t part = 1 + (uint32_t)dice_below(&d, 6);
        int64_t at = 1 + (int64_t)dice_below(&d, 500);
        for (uint32_t k = 0; k < part * 30; k++) {
            int64_t run = 1 + (int64_t)dice_below(&d, LONGEST_S);
            add(&t, 0, run, run, 1, "alice");
        }
        for (uint32_t k = 0; k < part; k++)
            add(&t, at, 10, 10, 1, "bob");
        for (int preempt = 0; preempt < 2; preempt++) {
            AUTO(replay_result) struct replay_result res = REPLAY_RESULT_INIT;
            struct replay_policy p = fair(preempt);
            replay(&t, 2 * part, &p, &res);
            assert_true(res.jobs[2 * part - 1].start_us == 0); /* all of it was lent */
            for (size_t k = t.count - part; k < t.count; k++)
                if (res.jobs[k].start_us > (at + (preempt ? 0 : LONGEST_S)) * CLOCK_SECOND)
                    fail_msg("stream %d: %zu s for what was lent", i,
                             (size_t)(res.jobs[k].start_us / CLOCK_SECOND - at));
        }
    }
}

/* The jobs of one account alone; `ret` borrows nothing. */
static void only(const struct trace *t, uint32_t account, struct trace *ret)
{
    *ret = (struct trace)TRACE_INIT;
    for (size_t i = 0; i < t->count; i++)
        if (t->jobs[i].account == account)
            add(ret, t->jobs[i].submit_us / CLOCK_SECOND, t->jobs[i].run_us / CLOCK_SECOND,
                t->jobs[i].limit_us / CLOCK_SECOND, t->jobs[i].request.count,
                t->accounts.words[account]);
}

static double completion_s(const struct trace *t, const struct replay_result *r, uint32_t account)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++)
        if (t->jobs[i].account == account) {
            sum += (double)(r->jobs[i].end_us - t->jobs[i].submit_us) / (double)CLOCK_SECOND;
            n++;
        }
    return n ? sum / (double)n : 0;
}

/*
 * Against a part of his own (cards / accounts), nobody's jobs of one card end
 * later on the average by more than one of the longest takes, with preemption or without.
 */
static void nobody_is_worse_off_than_with_a_part_of_his_own(void **state)
{
    (void)state;
    for (int preempt = 0; preempt < 2; preempt++) {
        struct dice d = dice_new(34);
        struct replay_policy p = fair(preempt);
        double worst = 0;
        for (int i = 0; i < streams(); i++) {
            struct stream st;
            AUTO(replay_result) struct replay_result shared = REPLAY_RESULT_INIT;
            roll_stream(&d, true, 1, &st);
            replay(&st.trace, st.cards, &p, &shared);
            for (uint32_t a = 0; a < st.trace.accounts.count; a++) {
                AUTO(trace) struct trace own;
                AUTO(replay_result) struct replay_result alone = REPLAY_RESULT_INIT;
                only(&st.trace, a, &own);
                replay(&own, st.cards / st.accounts, &p, &alone);
                double later = completion_s(&st.trace, &shared, a) - completion_s(&own, &alone, 0);
                worst = later > worst ? later : worst;
            }
            trace_done(&st.trace);
        }
        printf("# %s preemption: at worst %.1f s later on the average\n",
               preempt ? "with" : "without", worst);
        assert_true(worst <= LONGEST_S);
    }
}

static void the_same_jobs_make_the_same_schedule(void **state)
{
    (void)state;
    struct dice d = dice_new(35);
    for (int i = 0; i < streams() / 4; i++) {
        struct stream st;
        AUTO(replay_result) struct replay_result one = REPLAY_RESULT_INIT, two = REPLAY_RESULT_INIT;
        struct replay_policy p = fair(dice_bool(&d));
        p.inside = dice_bool(&d) ? SCHED_LAS : SCHED_USERS;
        p.sched.preempt_las = dice_bool(&d);
        roll_stream(&d, false, 0, &st);
        replay(&st.trace, st.cards, &p, &one);
        replay(&st.trace, st.cards, &p, &two);
        for (size_t k = 0; k < st.trace.count; k++) {
            assert_true(one.jobs[k].start_us == two.jobs[k].start_us && one.jobs[k].start_us >= 0);
            assert_true(one.jobs[k].end_us == two.jobs[k].end_us);
        }
        trace_done(&st.trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_delayed_by_who_came_later),
        cmocka_unit_test(nobody_starves),
        cmocka_unit_test(what_is_lent_comes_back),
        cmocka_unit_test(nobody_is_worse_off_than_with_a_part_of_his_own),
        cmocka_unit_test(the_same_jobs_make_the_same_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
