#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "boards.h"
#include "replay/figures.h"

struct replayed {
    struct trace trace;
    struct replay_result result;
};

static void replay(struct replayed *r, const char *text, const struct inventory *inv,
                   const struct replay_policy *policy)
{
    struct err e = ERR_INIT;
    if (trace_parse("t", text, strlen(text), &r->trace, &e) < 0)
        fail_msg("%s", e.text);
    replay_run(&r->trace, inv, policy, &r->result);
}

static void replayed_done(struct replayed *r)
{
    replay_result_done(&r->result);
    trace_done(&r->trace);
}

static double started_s(const struct replayed *r, size_t job)
{
    return (double)r->result.jobs[job].start_us / 1e6;
}

static void strict_order_waits_and_skipping_does_not(void **state)
{
    (void)state;
    static const char text[] = "0 100 3 1\n1 10 2 2\n2 10 1 2\n";
    struct bulk bulk = { .cards = 4, .free = 4 };
    struct inventory inv = { .bulk = &bulk };
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT };
    struct replayed r = { 0 };
    p.sched.order.share = 0;
    p.sched.strict = true;
    replay(&r, text, &inv, &p);
    assert_true(started_s(&r, 1) == 100);
    assert_true(started_s(&r, 2) == 100);
    replayed_done(&r);
    p.sched.strict = false;
    replay(&r, text, &inv, &p);
    assert_true(started_s(&r, 1) == 100);
    assert_true(started_s(&r, 2) == 2);
    assert_int_equal(bulk.free, 4); /* the caller's cards are as they were */
    replayed_done(&r);
}

static void the_machine_counts_where_the_policy_says_so(void **state)
{
    (void)state;
    static const char text[] = "submitted,run,gpus,memory\n0,100,1,60G\n1,10,1,60G\n2,10,1,40G\n"
                               "3,10,1,200G\n";
    struct bulk bulk = { .cards = 4, .free = 4 };
    struct inventory inv = { .bulk = &bulk };
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT };
    struct replayed r = { 0 };
    replay(&r, text, &inv, &p);
    assert_true(started_s(&r, 1) == 1 && started_s(&r, 3) == 3);
    replayed_done(&r);
    p.sched.node.mem_bytes = UINT64_C(100) << 30;
    replay(&r, text, &inv, &p);
    assert_true(started_s(&r, 1) == 100);
    assert_true(started_s(&r, 2) == 2);
    assert_int_equal(r.result.never, 1);
    replayed_done(&r);
}

static void slices_are_cut_on_real_boards(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    (void)inventory_add(&inv, board_a100_80());
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT };
    struct replayed r = { 0 };
    replay(&r, "submitted,run,slice,user\n0,100,3g.40gb,a\n1,100,3g.40gb,b\n2,100,3g.40gb,a\n",
           &inv, &p);
    assert_true(started_s(&r, 0) == 0);
    assert_true(started_s(&r, 1) == 1);
    assert_true(started_s(&r, 2) == 100);
    assert_int_equal(r.result.recuts, 3); /* MIG on, and two slices; the third is used again */
    struct replay_figures f;
    replay_figures(&r.trace, &r.result, &f);
    assert_true(f.span_s == 200);
    assert_true(fabs(f.compute - 300 * 3.0 / 7 / 200) < 1e-6);
    assert_true(fabs(f.mem - 300 * 0.5 / 200) < 1e-6);
    replay_figures_done(&f);
    replayed_done(&r);
}

static void a_limit_ends_a_job(void **state)
{
    (void)state;
    struct bulk bulk = { .cards = 1, .free = 1 };
    struct inventory inv = { .bulk = &bulk };
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT, .default_time_us = CLOCK_MINUTE };
    struct replayed r = { 0 };
    replay(&r, "submitted,run,limit\n0,100,200\n0,100,\n", &inv, &p);
    assert_true(r.result.jobs[0].end_us == 100 * CLOCK_SECOND);
    assert_true(r.result.jobs[1].end_us == 160 * CLOCK_SECOND);
    assert_false(r.result.jobs[0].cut_short);
    assert_true(r.result.jobs[1].cut_short);
    replayed_done(&r);
}

static void what_no_card_can_serve_is_counted(void **state)
{
    (void)state;
    struct bulk bulk = { .cards = 1, .free = 1 };
    struct inventory inv = { .bulk = &bulk };
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT };
    struct replay_figures f;
    struct replayed r = { 0 };
    replay(&r, "0 10 2 1\n0 10 1 1\n", &inv, &p);
    replay_figures(&r.trace, &r.result, &f);
    assert_int_equal(f.never, 1);
    assert_int_equal(f.jobs, 1);
    assert_true(f.wait_mean_s == 0);
    replay_figures_done(&f);
    replayed_done(&r);
}

/* 1 card; a's job runs 1200 s, b's two wait for it and run 600 s and 6 s. */
static void figures_are_what_they_say(void **state)
{
    (void)state;
    struct bulk bulk = { .cards = 1, .free = 1 };
    struct inventory inv = { .bulk = &bulk };
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT };
    struct replay_figures f;
    struct replayed r = { 0 };
    replay(&r, "0 1200 1 1\n0 600 1 2\n0 6 1 2\n", &inv, &p);
    replay_figures(&r.trace, &r.result, &f);
    assert_true(fabs(f.wait_mean_s - (0 + 1200 + 1800) / 3.0) < 1e-6);
    assert_true(fabs(f.completion_mean_s - (1200 + 1800 + 1806) / 3.0) < 1e-6);
    assert_true(fabs(f.wait_max_s - 1800) < 1e-6);
    assert_true(fabs(f.worst_slowdown - (3 + 1806 / 600.0) / 2) < 1e-6);
    assert_string_equal(f.worst, "2");
    double x = 1, y = 1 / f.worst_slowdown;
    assert_true(fabs(f.jain - (x + y) * (x + y) / (2 * (x * x + y * y))) < 1e-9);
    assert_true(fabs(f.compute - 1) < 1e-9);
    replay_figures_done(&f);
    replayed_done(&r);
}

static void setup_bulk(struct replayed *r, uint32_t reservations, const char *text)
{
    struct bulk bulk = { .cards = 4, .free = 4 };
    struct inventory inv = { .bulk = &bulk };
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT,
                               .pooled = true,
                               .inside = SCHED_FIFO };
    p.sched.order.share = 0;
    p.sched.reservations = reservations;
    replay(r, text, &inv, &p);
}

/* 4 cards, 2 held until 10; A takes 3 for 10, B 4 for 5, C 1 for 30: one reservation, or many. */
static void backfill_keeps_one_reservation_or_all(void **state)
{
    (void)state;
    static const char text[] =
        "submitted,run,gpus,limit\n0,10,2,10\n0,10,3,10\n0,5,4,5\n0,30,1,30\n";
    static const struct {
        uint32_t reservations;
        double a, b, c;
    } rows[] = { { 0, 10, 30, 0 }, { 1, 10, 30, 0 }, { 2, 10, 20, 25 }, { 8, 10, 20, 25 } };
    for (size_t i = 0; i < 4; i++) {
        struct replayed r = { 0 };
        setup_bulk(&r, rows[i].reservations, text);
        assert_true(started_s(&r, 1) == rows[i].a);
        assert_true(started_s(&r, 2) == rows[i].b);
        assert_true(started_s(&r, 3) == rows[i].c);
        replayed_done(&r);
    }
}

/* 3 of 4 cards held until 120, ended at 60: what was measured on Slurm, without its delays. */
static void a_long_job_does_not_delay_the_first_and_a_short_one_may(void **state)
{
    (void)state;
    struct replayed r = { 0 };
    setup_bulk(&r, 1, "submitted,run,gpus,limit\n0,60,3,120\n1,10,4,60\n2,60,1,60\n2,70,1,600\n");
    assert_true(started_s(&r, 2) == 2);
    assert_true(started_s(&r, 1) == 62);
    assert_true(started_s(&r, 3) == 72);
    replayed_done(&r);
}

/* However many wide ones wait: the search has no depth that they could use up. */
static void a_small_job_starts_behind_any_number_of_wide_ones(void **state)
{
    (void)state;
    static const size_t many[] = { 400, 600, 10000 };
    for (size_t i = 0; i < 3; i++) {
        AUTO(text) struct text t = TEXT_INIT;
        struct replayed r = { 0 };
        text_add(&t, "submitted,run,gpus,limit\n0,100,3,100\n");
        for (size_t k = 0; k < many[i]; k++)
            text_add(&t, "1,1,4,1\n");
        text_add(&t, "2,50,1,50\n");
        setup_bulk(&r, 8, t.buf);
        assert_true(started_s(&r, many[i] + 1) == 2);
        assert_true(started_s(&r, 1) == 100);
        replayed_done(&r);
    }
}

/* What was measured on this trace by others, within 2 %: the ground on which policies are compared. */
static void philly_comes_out_as_measured(void **state)
{
    (void)state;
    const char *path = getenv("DIVVY_PHILLY");
    auto_free char *text = NULL;
    size_t len;
    struct err e = ERR_INIT;
    if (!path) {
        print_message("no Philly trace: DIVVY_PHILLY names none\n");
        skip();
    }
    if (file_read(AT_FDCWD, path, TRACE_BYTES_MAX, &text, &len, &e) < 0)
        fail_msg("%s", e.text);
    struct bulk bulk = { .cards = 512, .free = 512 };
    struct inventory inv = { .bulk = &bulk };
    static const struct {
        bool strict, las;
        double completion, worst;
    } rows[] = { { true, false, 488906, 666 },
                 { false, false, 131176, 204 },
                 { false, true, 44499, 11.3 } };
    for (size_t i = 0; i < 3; i++) {
        struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT, .pooled = true };
        struct replay_figures f;
        struct replayed r = { 0 };
        p.sched.order.share = 0;
        p.sched.strict = rows[i].strict;
        p.inside = rows[i].las ? SCHED_LAS : SCHED_FIFO;
        p.sched.preempt_las = rows[i].las;
        replay(&r, text, &inv, &p);
        replay_figures(&r.trace, &r.result, &f);
        assert_true(fabs(f.completion_mean_s / rows[i].completion - 1) < 0.02);
        assert_true(fabs(f.worst_slowdown / rows[i].worst - 1) < 0.02);
        replay_figures_done(&f);
        replayed_done(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict_order_waits_and_skipping_does_not),
        cmocka_unit_test(the_machine_counts_where_the_policy_says_so),
        cmocka_unit_test(slices_are_cut_on_real_boards),
        cmocka_unit_test(a_limit_ends_a_job),
        cmocka_unit_test(what_no_card_can_serve_is_counted),
        cmocka_unit_test(figures_are_what_they_say),
        cmocka_unit_test(backfill_keeps_one_reservation_or_all),
        cmocka_unit_test(a_long_job_does_not_delay_the_first_and_a_short_one_may),
        cmocka_unit_test(a_small_job_starts_behind_any_number_of_wide_ones),
        cmocka_unit_test(philly_comes_out_as_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
