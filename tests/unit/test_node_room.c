#include "queued_server.h"

/* Two A100s, 100 GiB of memory and 16 CPUs. */
static struct sched_node node;

#define NOTHING                                                                                    \
    (struct request)                                                                               \
    {                                                                                              \
        .kind = REQUEST_NOTHING                                                                    \
    }

static void make_queue(void)
{
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    policy.mode_hold_us = 0;
    policy.node = node;
    begin_queue(&policy);
}

static int make_server(void **state)
{
    (void)state;
    begin_server(&(struct sched_policy)SCHED_POLICY_DEFAULT);
    node = (struct sched_node){
        .mem_bytes = 100 * GIB, .cpu_milli = 16000, .mem_shares = true, .cpu_shares = true
    };
    (void)inventory_add(&inv, board_a100_80());
    (void)inventory_add(&inv, board_a100_80());
    make_queue();
    return 0;
}

static void submit(uint64_t id, struct request r, uint64_t gib, uint32_t cpus, int64_t limit_us)
{
    limits[id] = limit_us;
    struct sched_job job = { .id = id,
                             .uid = 1000,
                             .user = "carol",
                             .account = "nlp",
                             .request = &r,
                             .mem_bytes = gib * GIB,
                             .cpu_milli = cpus * 1000,
                             .limit_us = limit_us };
    sched_add(queue, &job);
}

static int64_t booked_us(uint64_t id)
{
    struct sched_reservation r;
    for (size_t i = 0; sched_reservation(queue, i, &r); i++)
        if (r.job_id == id)
            return r.when_us;
    return 0;
}

#define assert_says(id, words)                                                                     \
    do {                                                                                           \
        struct sched_explanation said = why(id);                                                   \
        assert_string_equal(said.text, words);                                                     \
    } while (0)

static void two_that_exceed_the_memory_run_one_after_the_other(void **state)
{
    (void)state;
    submit(1, ask_slices("1g.10gb", 1), 60, 0, CLOCK_HOUR);
    submit(2, ask_slices("1g.10gb", 1), 60, 0, CLOCK_HOUR);
    cycle();
    assert_starts(1);
    assert_int_equal(booked_us(2), now.boot_us + CLOCK_HOUR);
    pass(10 * CLOCK_MINUTE);
    cycle();
    assert_starts();
    end(1);
    cycle();
    assert_starts(2);
}

static void cpus_count_as_memory_does(void **state)
{
    (void)state;
    submit(1, NOTHING, 0, 9, CLOCK_HOUR);
    submit(2, NOTHING, 0, 8, CLOCK_HOUR);
    submit(3, NOTHING, 0, 7, CLOCK_HOUR);
    cycle();
    assert_starts(1, 3);
    end(1);
    cycle();
    assert_starts(2);
}

static void each_task_needs_what_was_said(void **state)
{
    (void)state;
    submit(1, ask_slices("1g.10gb", 3), 30, 1, CLOCK_HOUR);
    submit(2, NOTHING, 11, 1, CLOCK_HOUR);
    cycle();
    assert_starts(1);
    struct sched_amount a = sched_node_used(queue, &inv);
    assert_int_equal(a.mem_bytes, 90 * GIB);
    assert_int_equal(a.cpu_milli, 3000);
    assert_true(sched_node_needs(queue, &inv, 2, &a));
    assert_int_equal(a.mem_bytes, 11 * GIB);
    assert_false(sched_node_needs(queue, &inv, 3, &a));
}

static void who_says_nothing_has_his_part_by_his_cards(void **state)
{
    (void)state;
    submit(1, ask_cards(1), 0, 0, 0);
    cycle();
    assert_starts(1);
    struct sched_amount a = sched_node_used(queue, &inv);
    assert_int_equal(a.mem_bytes, 50 * GIB);
    assert_int_equal(a.cpu_milli, 8000);
}

static void parts_alone_always_fit(void **state)
{
    (void)state;
    node.cpu_milli = 1000; /* fourteen tasks that are given one each all the same */
    make_queue();
    for (uint64_t id = 1; id <= 14; id++)
        submit(id, ask_slices("1g.10gb", 1), 0, 0, 0);
    cycle();
    assert_int_equal(start_count, 14);
}

static void a_part_waits_where_others_have_said_more_than_theirs(void **state)
{
    (void)state;
    submit(1, ask_slices("1g.10gb", 1), 60, 0, CLOCK_HOUR);
    submit(2, ask_cards(1), 0, 0, CLOCK_HOUR);
    submit(3, ask_slices("1g.10gb", 1), 0, 0, CLOCK_HOUR);
    cycle();
    assert_starts(1, 3);
    assert_says(2, "waits for 50.0 GiB of the machine's memory: 33.8 GiB of 100.0 GiB is free; "
                   "#1 (carol) has 60.0 GiB until 15:13");
}

static void what_is_not_counted_stops_nobody(void **state)
{
    (void)state;
    node = (struct sched_node){ .mem_bytes = 0 };
    make_queue();
    submit(1, NOTHING, 4000, 1000, 0);
    submit(2, NOTHING, 4000, 1000, 0);
    cycle();
    assert_starts(1, 2);
    struct sched_amount a = sched_node_used(queue, &inv);
    assert_int_equal(a.mem_bytes + a.cpu_milli, 0);
}

static void memory_that_is_booked_is_lent_to_those_who_end_in_time(void **state)
{
    (void)state;
    submit(1, NOTHING, 60, 0, CLOCK_HOUR);
    submit(2, NOTHING, 80, 0, CLOCK_HOUR);
    submit(3, NOTHING, 30, 0, 2 * CLOCK_HOUR); /* would leave it 70 */
    submit(4, NOTHING, 40, 0, CLOCK_HOUR);
    cycle();
    assert_starts(1, 4);
    assert_int_equal(booked_us(2), now.boot_us + CLOCK_HOUR);
    pass(CLOCK_HOUR);
    end(1);
    end(4);
    cycle();
    assert_starts(2);
    assert_int_equal(why(3).why, WHY_RESERVED);
}

static void a_small_one_beside_a_booking_is_no_hindrance(void **state)
{
    (void)state;
    submit(1, NOTHING, 60, 0, CLOCK_HOUR);
    submit(2, NOTHING, 80, 0, CLOCK_HOUR);
    submit(3, NOTHING, 20, 0, 0); /* there is room for it in any case */
    cycle();
    assert_starts(1, 3);
    assert_int_equal(booked_us(2), now.boot_us + CLOCK_HOUR);
}

static void a_start_needs_cards_and_memory_at_the_same_time(void **state)
{
    (void)state;
    submit(1, ask_cards(2), 10, 0, CLOCK_HOUR);
    submit(2, NOTHING, 80, 0, 3 * CLOCK_HOUR);
    submit(3, ask_cards(1), 40, 0, CLOCK_HOUR);
    cycle();
    assert_starts(1, 2);
    assert_int_equal(booked_us(3), now.boot_us + 3 * CLOCK_HOUR);
}

static void nobody_starves_behind_those_without_a_limit(void **state)
{
    (void)state;
    uint64_t next = 2;
    for (; next < 7; next++)
        submit(next, NOTHING, 20, 0, 0);
    cycle();
    assert_starts(2, 3, 4, 5, 6);
    submit(1, NOTHING, 90, 0, 0);
    cycle();
    for (uint64_t oldest = 2; oldest < 7; oldest++, next++) { /* a stream of the same */
        submit(next, NOTHING, 20, 0, 0);
        pass(10 * CLOCK_MINUTE);
        end(oldest);
        cycle();
    }
    assert_true(start_count >= 1);
    assert_int_equal(started[0], 1);
}

static void short_ones_use_what_is_kept_for_one_without_a_time(void **state)
{
    (void)state;
    submit(1, NOTHING, 60, 0, 0);
    cycle();
    pass(30 * CLOCK_MINUTE);
    submit(2, NOTHING, 90, 0, 0);
    submit(3, NOTHING, 30, 0, 0);
    submit(4, NOTHING, 31, 0, 20 * CLOCK_MINUTE);
    cycle();
    assert_starts(1, 4);
    assert_int_equal(booked_us(2), INT64_MAX);
    assert_says(2, "waits for 90.0 GiB of the machine's memory: 9.0 GiB of 100.0 GiB is free; "
                   "#1 (carol) has 60.0 GiB without a time limit");
}

static void more_than_the_machine_has_is_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct request two = ask_slices("1g.10gb", 2);
    struct sched_job job = { .account = "nlp", .request = &two, .mem_bytes = 64 * GIB };
    assert_int_equal(sched_admit(queue, &inv, &job, now, &e), -EINVAL);
    assert_string_equal(e.text, "this machine has 100.0 GiB of memory for jobs, and this asks for "
                                "128.0 GiB: 2 tasks with --mem 64.0 GiB");
    job.mem_bytes = 50 * GIB;
    assert_int_equal(sched_admit(queue, &inv, &job, now, &e), 0);
    struct request one = ask_cards(1);
    job.request = &one;
    job.cpu_milli = 16500;
    assert_int_equal(sched_admit(queue, &inv, &job, now, &e), -EINVAL);
    assert_string_equal(e.text, "this machine has 16 CPUs for jobs, and this asks for 16.5 with "
                                "--cpus");
}

static void sums_that_run_over_are_refused_too(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct request many = ask_slices("1g.10gb", 128);
    struct sched_job job = { .account = "nlp", .request = &many, .mem_bytes = INT64_MAX };
    assert_int_equal(sched_node_check(queue, &job, &e), -EINVAL);
}

static void what_ran_before_is_counted_again(void **state)
{
    (void)state;
    submit(1, NOTHING, 60, 2, CLOCK_HOUR);
    sched_start(queue, 1, NULL, 0, now.boot_us - CLOCK_MINUTE);
    submit(2, NOTHING, 60, 2, CLOCK_HOUR);
    cycle();
    assert_starts();
    assert_int_equal(booked_us(2), now.boot_us + 59 * CLOCK_MINUTE);
    sched_requeue(queue, 1, now.boot_us);
    assert_int_equal(sched_node_used(queue, &inv).mem_bytes, 0);
    cycle();
    assert_starts(1);
}

static void submit_in(uint64_t id, const char *qos, uint64_t gib)
{
    struct request r = ask_slices("1g.10gb", 1);
    limits[id] = 0;
    struct sched_job job = {
        .id = id, .account = "nlp", .qos = qos, .request = &r, .mem_bytes = gib * GIB
    };
    sched_add(queue, &job);
}

static void who_has_the_memory_is_who_goes_for_an_urgent_one(void **state)
{
    (void)state;
    struct qos urgent, spare;
    char *pushes[] = { text_dup("spare"), NULL };
    struct sched_preemption p;
    qos_init(&urgent, "urgent");
    qos_init(&spare, "spare");
    urgent.priority = 10;
    urgent.preempts = pushes;
    spare.preempt = PREEMPT_REQUEUE;
    sched_set_qos(queue, &spare);
    sched_set_qos(queue, &urgent);
    submit_in(1, "spare", 60);
    cycle();
    pass(CLOCK_MINUTE);
    submit_in(2, "spare", 20); /* began last: it would go first, and would not be enough */
    cycle();
    submit_in(3, "urgent", 70);
    start_count = 0;
    cycle();
    assert_starts();
    assert_int_equal(sched_preempt(queue, &inv, now, &p), 1);
    assert_int_equal(p.job_id, 3);
    assert_int_equal(p.count, 1);
    assert_int_equal(p.victims[0], 1);
    sched_preemption_done(&p);
    server_end(&inv, 1, now);
    sched_requeue(queue, 1, now.boot_us);
    cycle();
    assert_starts(3);
    free(pushes[0]);
    urgent.preempts = NULL;
    qos_done(&urgent);
    qos_done(&spare);
}

static void on_counted_cards_it_is_the_same(void **state)
{
    (void)state;
    struct bulk bulk = { .cards = 8, .free = 8 };
    inventory_done(&inv);
    inv = (struct inventory){ .bulk = &bulk };
    node.mem_shares = false;
    make_queue();
    submit(1, ask_cards(1), 60, 0, CLOCK_HOUR);
    submit(2, ask_cards(1), 80, 0, CLOCK_HOUR);
    submit(3, ask_cards(1), 30, 0, 2 * CLOCK_HOUR);
    submit(4, ask_cards(1), 40, 0, CLOCK_HOUR);
    cycle();
    assert_starts(1, 4);
    bulk_done(&bulk);
    inv = (struct inventory){ .cards = NULL };
}

#define test(f) cmocka_unit_test_setup_teardown(f, make_server, end_server)

int main(void)
{
    (void)setenv("TZ", "UTC", 1); /* memory is there */
    const struct CMUnitTest tests[] = {
        test(two_that_exceed_the_memory_run_one_after_the_other),
        test(cpus_count_as_memory_does),
        test(each_task_needs_what_was_said),
        test(who_says_nothing_has_his_part_by_his_cards),
        test(parts_alone_always_fit),
        test(a_part_waits_where_others_have_said_more_than_theirs),
        test(what_is_not_counted_stops_nobody),
        test(memory_that_is_booked_is_lent_to_those_who_end_in_time),
        test(a_small_one_beside_a_booking_is_no_hindrance),
        test(a_start_needs_cards_and_memory_at_the_same_time),
        test(nobody_starves_behind_those_without_a_limit),
        test(short_ones_use_what_is_kept_for_one_without_a_time),
        test(more_than_the_machine_has_is_refused),
        test(sums_that_run_over_are_refused_too),
        test(what_ran_before_is_counted_again),
        test(who_has_the_memory_is_who_goes_for_an_urgent_one),
        test(on_counted_cards_it_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
