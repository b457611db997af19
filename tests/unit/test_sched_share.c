/* Who goes first by shares, classes and limits. What fits where is test_sched.c's. */
#include "queued_server.h"

#include <errno.h>
#include <math.h>

enum { ALICE = 1001, BOB, CAROL };

static struct sched_policy policy;

static int make_server(void **state)
{
    (void)state;
    policy = (struct sched_policy)SCHED_POLICY_DEFAULT;
    policy.mode_hold_us = 0;
    begin_server(&policy);
    for (int i = 0; i < 4; i++)
        (void)inventory_add(&inv, board_a100_80());
    return 0;
}

static const char *name_of(uid_t uid)
{
    static const char *const names[] = { "alice", "bob", "carol" };
    return names[uid - ALICE];
}

static struct sched_job job(uint64_t id, const char *account, uid_t uid, const struct request *r)
{
    limits[id] = CLOCK_HOUR;
    return (struct sched_job){ .id = id,
                               .uid = uid,
                               .user = name_of(uid),
                               .account = account,
                               .request = r,
                               .limit_us = CLOCK_HOUR,
                               .submit_us = now.boot_us };
}

static void submit(uint64_t id, const char *account, uid_t uid, struct request r)
{
    struct sched_job j = job(id, account, uid, &r);
    sched_add(queue, &j);
}

static void submit_qos(uint64_t id, const char *account, uid_t uid, const char *qos,
                       struct request r)
{
    struct sched_job j = job(id, account, uid, &r);
    j.qos = qos;
    sched_add(queue, &j);
}

/* ---- shares ---------------------------------------------------------------- */

/* Where Slurm runs all of one user's jobs and then all of the other's. */
static void users_of_equal_shares_take_turns_job_by_job(void **state)
{
    (void)state;
    for (uint64_t id = 1; id <= 20; id++)
        submit(id, "lab", ALICE, ask_cards(1));
    for (uint64_t id = 21; id <= 40; id++)
        submit(id, "lab", BOB, ask_cards(1));
    cycle();
    for (size_t done = 0; done < 36; done++) {
        pass(10 * CLOCK_SECOND);
        end(started[done]);
        cycle();
    }
    assert_int_equal(start_count, 40);
    size_t in_a_row = 1;
    for (size_t i = 1; i < 40; i++) {
        bool same = (started[i] <= 20) == (started[i - 1] <= 20);
        in_a_row = same ? in_a_row + 1 : 1;
        assert_true(in_a_row <= 2);
    }
}

static size_t starts_of(uint64_t first, uint64_t last)
{
    size_t n = 0;
    for (size_t i = 0; i < start_count; i++)
        n += started[i] >= first && started[i] <= last;
    return n;
}

static void set_account(const char *name, const char *parent, double weight)
{
    struct sched_branch b = { .name = name, .parent = parent, .weight = weight };
    sched_set_account(queue, &b);
}

/* Runs whole-card jobs of ten minutes until so many have been started. */
static void work(size_t starts)
{
    cycle();
    for (size_t done = 0; start_count < starts; done++) {
        if (done % 4 == 0)
            pass(10 * CLOCK_MINUTE);
        end(started[done]);
        cycle();
    }
}

static void a_tree_shares_at_every_level(void **state)
{
    (void)state;
    set_account("nlp", "lab", 1); /* the parent comes later */
    set_account("lab", NULL, 3);
    set_account("vision", "lab", 2);
    set_account("guests", NULL, 1);
    for (uint64_t i = 0; i < 100; i++) {
        submit(100 + i, "nlp", ALICE, ask_cards(1));
        submit(200 + i, "vision", BOB, ask_cards(1));
        submit(300 + i, "guests", CAROL, ask_cards(1));
    }
    work(120);
    assert_in_range(starts_of(100, 199), 28, 32);
    assert_in_range(starts_of(200, 299), 57, 63);
    assert_in_range(starts_of(300, 399), 28, 32);
    struct sched_account lab, nlp;
    assert_true(sched_account(queue, "lab", now, &lab) && sched_account(queue, "nlp", now, &nlp));
    assert_string_equal(nlp.parent, "lab");
    assert_true(fabs(lab.norm_shares - 0.75) < 1e-9 && fabs(nlp.norm_shares - 1 / 3.0) < 1e-9);
    assert_true(fabs(lab.level - 1) < 0.1 && fabs(nlp.level - 1) < 0.1);
}

static void users_may_have_weights_of_their_own(void **state)
{
    (void)state;
    struct sched_user_share shares[] = { { "alice", 3 } };
    struct sched_branch b = { .name = "lab", .weight = 1, .users = shares, .user_count = 1 };
    sched_set_account(queue, &b);
    for (uint64_t i = 0; i < 100; i++) {
        submit(100 + i, "lab", ALICE, ask_cards(1));
        submit(200 + i, "lab", BOB, ask_cards(1));
    }
    work(80);
    assert_in_range(starts_of(100, 199), 57, 63);
}

static void an_account_that_is_one_leaf_goes_first_come_first_served(void **state)
{
    (void)state;
    struct sched_branch b = { .name = "lab", .weight = 1, .inside = SCHED_FIFO };
    sched_set_account(queue, &b);
    for (uint64_t id = 1; id <= 6; id++)
        submit(id, "lab", id <= 5 ? ALICE : BOB, ask_cards(1));
    cycle();
    assert_starts(1, 2, 3, 4);
    end(1);
    cycle();
    assert_starts(5);
    assert_null(why(6).user);
    assert_true(sched_is_pooled(queue, "lab"));
}

static void an_unused_share_is_lent_and_comes_back_with_the_next_job(void **state)
{
    (void)state;
    set_account("lab", NULL, 1);
    set_account("guests", NULL, 1);
    for (uint64_t i = 0; i < 60; i++)
        submit(100 + i, "guests", CAROL, ask_cards(1));
    work(40);
    assert_int_equal(starts_of(100, 199), 40); /* all of it, while nobody else asks */
    start_count = 0;
    submit(1, "lab", ALICE, ask_cards(1));
    end(136);
    cycle();
    assert_starts(1);
}

static void usage_is_halved_exactly_and_summed_up_the_tree(void **state)
{
    (void)state;
    static const double right[] = { 707.106781, 500, 250 };
    static const int64_t after[] = { 300, 600, 1200 };
    for (int i = 0; i < 3; i++) {
        struct sched_account lab;
        policy.half_life_us = 600 * CLOCK_SECOND;
        sched_set_policy(queue, &policy, now);
        set_account("nlp", "lab", 1);
        sched_set_usage(queue, "nlp", ALICE, "alice", 600, now.boot_us);
        sched_set_usage(queue, "nlp", BOB, "bob", 400, now.boot_us);
        pass(after[i] * CLOCK_SECOND);
        assert_true(sched_account(queue, "lab", now, &lab));
        assert_true(fabs(lab.used_card_us - right[i]) < 1e-6);
        assert_true(fabs(sched_usage(queue, "nlp", BOB, now) - 0.4 * right[i]) < 1e-6);
    }
}

/* ---- order ----------------------------------------------------------------- */

static void set_qos(const char *name, uint32_t priority, double charge)
{
    struct qos q;
    qos_init(&q, name);
    q.priority = priority;
    q.charge = charge;
    sched_set_qos(queue, &q);
    qos_done(&q);
}

static void a_tier_goes_first_whatever_the_shares_are(void **state)
{
    (void)state;
    set_qos("urgent", 10, 1);
    sched_set_usage(queue, "lab", ALICE, "alice", 1000 * CLOCK_DAY, now.boot_us);
    for (uint64_t id = 1; id <= 6; id++)
        submit(id, "guests", CAROL, ask_cards(1));
    submit_qos(7, "lab", ALICE, "urgent", ask_cards(1));
    submit(8, "lab", ALICE, ask_cards(1));
    cycle();
    assert_starts(7, 1, 2, 3);
    assert_int_equal(why(7).tier, 10);
    assert_string_equal(why(7).qos, "urgent");
    assert_string_equal(why(8).qos, "normal");
}

/* It would wait behind a reservation that is not its own otherwise. */
static void a_higher_tier_takes_over_the_reservation(void **state)
{
    (void)state;
    set_qos("urgent", 10, 1);
    submit(1, "lab", ALICE, ask_cards(2));
    cycle();
    submit(2, "lab", BOB, ask_cards(4));
    cycle();
    assert_int_equal(why(2).why, WHY_RESERVED);
    submit_qos(3, "lab", BOB, "urgent", ask_cards(3));
    cycle();
    assert_int_equal(why(3).why, WHY_RESERVED);
    assert_starts(1);
}

static void a_class_may_cost_more_or_less(void **state)
{
    (void)state;
    set_qos("spare", 0, 0.25);
    submit_qos(1, "lab", ALICE, "spare", ask_cards(1));
    submit(2, "guests", CAROL, ask_cards(1));
    cycle();
    pass(CLOCK_HOUR);
    double cheap = sched_usage(queue, "lab", ALICE, now);
    assert_true(fabs(cheap / sched_usage(queue, "guests", CAROL, now) - 0.25) < 1e-9);
    assert_true(fabs(sched_attained(queue, 1, now.boot_us) - CLOCK_HOUR) < 1);
}

static void age_brings_a_job_forward_as_far_as_it_weighs(void **state)
{
    (void)state;
    policy.order.age = 2;
    policy.order.age_max_us = 10 * CLOCK_HOUR;
    sched_set_policy(queue, &policy, now);
    sched_set_usage(queue, "lab", ALICE, "alice", 1000 * CLOCK_DAY, now.boot_us);
    submit(1, "big", BOB, ask_cards(4));
    cycle();
    submit(2, "lab", ALICE, ask_cards(4));
    pass(CLOCK_HOUR);
    submit(3, "guests", CAROL, ask_cards(4)); /* a better share by a third, younger by a fifth */
    sched_set_usage(queue, "guests", CAROL, "carol", 1, now.boot_us);
    struct sched_explanation x = why(2);
    assert_true(fabs(x.age - 0.1) < 1e-6 && fabs(x.size - 1) < 1e-9);
    assert_true(fabs(x.points - (x.factor + 0.2)) < 1e-6);
    assert_true(why(3).points > x.points);
    pass(9 * CLOCK_HOUR); /* 2 stays as old as it can be, 3 comes up to it */
    assert_true(why(3).points > why(2).points);
    submit(4, "guests", CAROL, ask_cards(4));
    assert_true(why(2).points > why(4).points);
}

static void size_may_count_for_or_against(void **state)
{
    (void)state;
    policy.order = (struct sched_order){ .size = -1 };
    sched_set_policy(queue, &policy, now);
    submit(1, "lab", ALICE, ask_cards(3));
    submit(2, "lab", BOB, ask_slices("1g.10gb", 1));
    cycle();
    assert_starts(2, 1);
}

static void least_attained_service_goes_first_by_thresholds(void **state)
{
    (void)state;
    struct sched_branch b = { .name = "lab", .weight = 1, .inside = SCHED_LAS };
    sched_set_account(queue, &b);
    submit(1, "lab", ALICE, ask_cards(4));
    cycle();
    pass(20 * CLOCK_MINUTE); /* four cards: 80 minutes of service, above the first threshold */
    server_end(&inv, 1, now);
    sched_requeue(queue, 1, now.boot_us);
    assert_true(fabs(sched_attained(queue, 1, now.boot_us) - 80 * CLOCK_MINUTE) < 1);
    submit(2, "lab", BOB, ask_cards(4));
    cycle();
    assert_starts(1, 2);
    assert_int_equal(why(1).level, 1);
    pass(10 * CLOCK_MINUTE); /* 40 minutes: not above it */
    server_end(&inv, 2, now);
    sched_requeue(queue, 2, now.boot_us);
    submit(3, "lab", BOB, ask_cards(4));
    cycle();
    assert_starts(2); /* its level is 3's, and it came before */
}

/* ---- limits ---------------------------------------------------------------- */

static void limit_account(const char *name, const char *parent, const struct limits *all,
                          const struct limits *each_user)
{
    struct sched_branch b = {
        .name = name, .parent = parent, .weight = 1, .limits = all, .user_limits = each_user
    };
    sched_set_account(queue, &b);
}

static void a_limit_holds_for_all_below_and_blocks_nobody_else(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    l.cards = 2;
    limit_account("lab", NULL, &l, NULL);
    set_account("nlp", "lab", 1);
    submit(1, "nlp", ALICE, ask_cards(1));
    submit(2, "lab", BOB, ask_cards(1));
    submit(3, "nlp", ALICE, ask_cards(1));
    submit(4, "guests", CAROL, ask_cards(1));
    submit(5, "guests", CAROL, ask_cards(2));
    cycle();
    assert_starts(1, 4, 2);
    struct sched_explanation x = why(3);
    assert_int_equal(x.why, WHY_LIMIT);
    assert_int_equal(x.limit, LIMIT_CARDS);
    assert_int_equal(x.limit_frees_us, now.boot_us + CLOCK_HOUR);
    assert_non_null(strstr(x.text,
                           "waits for a limit: lab may have 2 whole cards at a time, has 2, "
                           "and this asks for 1; room by "));
    assert_int_equal(why(5).why, WHY_RESERVED); /* not 3, which came before it */
    pass(CLOCK_MINUTE);
    end(4);
    cycle();
    assert_starts(5);
    end(2);
    cycle();
    assert_starts(3);
}

/* By the time the first have started, nobody could run beside them. */
static void no_more_are_reserved_than_a_limit_lets_run(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    l.running = 2;
    limit_account("lab", NULL, NULL, &l);
    submit(1, "guests", CAROL, ask_cards(4));
    cycle();
    for (uint64_t id = 2; id <= 4; id++)
        submit(id, "lab", ALICE, ask_cards(4));
    cycle();
    assert_int_equal(why(2).why, WHY_RESERVED);
    assert_int_equal(why(3).why, WHY_RESERVED);
    assert_int_equal(why(4).why, WHY_NO_ROOM);
}

static void who_comes_up_to_a_limit_loses_the_reservation(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    l.running = 1;
    limit_account("lab", NULL, NULL, &l);
    submit(1, "guests", CAROL, ask_cards(4));
    cycle();
    submit(2, "lab", ALICE, ask_cards(4));
    cycle();
    assert_int_equal(why(2).why, WHY_RESERVED);
    submit(3, "lab", ALICE, (struct request){ .kind = REQUEST_NOTHING, .count = 1 });
    cycle(); /* needs no card, so it starts; now alice runs her one job */
    assert_starts(1, 3);
    submit(4, "guests", CAROL, ask_cards(4));
    cycle();
    assert_int_equal(why(2).why, WHY_LIMIT);
    assert_int_equal(why(4).why, WHY_RESERVED);
}

static void every_kind_of_limit_is_waited_for(void **state)
{
    (void)state;
    struct {
        const char *account;
        struct limits l;
        enum limit_kind kind;
        const char *text;
    } kinds[] = {
        { "a", LIMITS_NONE, LIMIT_COMPUTE,
          "a may have the compute of 0.5 cards at a time, has 0.2857, and this asks for 0.2857" },
        { "b", LIMITS_NONE, LIMIT_MEMORY,
          "b may have the memory of 0.4 cards at a time, has 0.25, and this asks for 0.25" },
        { "c", LIMITS_NONE, LIMIT_SLICES,
          "c may have 1 slice 2g.20gb at a time, has 1, and this asks for 1" },
        { "d", LIMITS_NONE, LIMIT_RUNNING, "d may run 1 job at a time and runs 1" },
    };
    kinds[0].l.compute_ppm = PPM / 2;
    kinds[1].l.mem_ppm = 4 * PPM / 10;
    kinds[2].l.slice_count = 1;
    kinds[2].l.slices[0] = (struct limit_slices){ "2g.20gb", 1 };
    kinds[3].l.running = 1;
    for (uint64_t i = 0; i < 4; i++) {
        limit_account(kinds[i].account, NULL, &kinds[i].l, NULL);
        submit(10 * i + 1, kinds[i].account, ALICE, ask_slices("2g.20gb", 1));
        submit(10 * i + 2, kinds[i].account, ALICE, ask_slices("2g.20gb", 1));
    }
    cycle();
    assert_int_equal(start_count, 4);
    for (uint64_t i = 0; i < 4; i++) {
        struct sched_explanation x = why(10 * i + 2);
        assert_int_equal(x.why, WHY_LIMIT);
        assert_int_equal(x.limit, kinds[i].kind);
        assert_non_null(strstr(x.text, kinds[i].text));
        end(10 * i + 1);
    }
    cycle();
    assert_int_equal(start_count, 8);
}

static void users_and_classes_have_limits_of_their_own(void **state)
{
    (void)state;
    struct limits one = LIMITS_NONE;
    struct qos q;
    one.running = 1;
    qos_init(&q, "spare");
    q.limits = one;
    sched_set_qos(queue, &q);
    qos_done(&q);
    struct sched_branch pool = {
        .name = "lab", .weight = 1, .inside = SCHED_FIFO, .user_limits = &one
    };
    sched_set_account(queue, &pool);
    submit(1, "lab", ALICE, ask_cards(1));
    submit(2, "lab", ALICE, ask_cards(1));
    submit(3, "lab", BOB, ask_cards(1));
    submit_qos(4, "guests", CAROL, "spare", ask_cards(1));
    submit_qos(5, "guests", CAROL, "spare", ask_cards(1));
    cycle();
    assert_int_equal(start_count, 3);
    assert_non_null(strstr(why(2).text, "alice in lab may run 1 job at a time and runs 1"));
    assert_non_null(strstr(why(5).text, "class spare may run 1 job at a time and runs 1"));
}

static int admit(const char *account, uid_t uid, struct request r, int64_t limit_us, struct err *e)
{
    struct sched_job j = job(0, account, uid, &r);
    j.limit_us = limit_us;
    return sched_admit(queue, &inv, &j, now, e);
}

static void what_could_never_start_is_refused(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    struct err e = ERR_INIT;
    l.cards = 2;
    l.time_us = 2 * CLOCK_HOUR;
    l.pending = 1;
    limit_account("lab", NULL, &l, NULL);
    assert_int_equal(admit("lab", ALICE, ask_cards(2), CLOCK_HOUR, &e), 0);
    assert_int_equal(admit("lab", ALICE, ask_cards(3), CLOCK_HOUR, &e), -EDQUOT);
    assert_string_equal(e.text, "lab may have 2 whole cards at a time, has 0, and this asks for 3: "
                                "it could never start");
    assert_int_equal(admit("lab", ALICE, ask_cards(1), 3 * CLOCK_HOUR, &e), -EDQUOT);
    assert_string_equal(e.text, "lab may run a job for 2h at most; say how long it needs with "
                                "--time");
    assert_int_equal(admit("lab", ALICE, ask_cards(1), 0, &e), -EDQUOT);
    submit(1, "lab", ALICE, ask_cards(1));
    assert_int_equal(admit("lab", ALICE, ask_cards(1), CLOCK_HOUR, &e), -EDQUOT);
    assert_string_equal(e.text, "lab may have 1 job waiting and has 1; some have to start or be "
                                "cancelled first");
    cycle();
    assert_int_equal(admit("lab", ALICE, ask_cards(1), CLOCK_HOUR, &e), 0);
    assert_int_equal(admit("guests", CAROL, ask_cards(4), 0, &e), 0);
}

static void a_part_is_kept_for_short_and_attached_jobs(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct request r = ask_cards(1);
    sched_free(queue);
    policy.keep_ppm = 300000; /* 4 cards: 2.8 for all others */
    policy.keep_for_us = 30 * CLOCK_MINUTE;
    queue = sched_new(&policy);
    for (uint64_t id = 1; id <= 5; id++)
        submit(id, "lab", ALICE, ask_cards(1));
    cycle();
    assert_starts(1, 2);
    assert_int_equal(why(3).why, WHY_LIMIT);
    assert_non_null(strstr(why(3).text, "everything over 30m (the rest is kept for shorter and "
                                        "attached jobs) may have the compute of 2.8 cards at a "
                                        "time, has 2, and this asks for 1"));
    assert_int_equal(why(3).short_limit_us, 30 * CLOCK_MINUTE);
    struct sched_job quick = job(6, "lab", BOB, &r), run = job(7, "lab", BOB, &r);
    quick.limit_us = 30 * CLOCK_MINUTE;
    run.limit_us = 0;
    run.attached = true;
    sched_add(queue, &quick);
    sched_add(queue, &run);
    cycle();
    assert_starts(6, 7);
    assert_int_equal(why(3).short_limit_us, 0); /* no card is left */
    end(1);
    cycle();
    assert_starts(3);
    assert_int_equal(admit("lab", ALICE, ask_cards(3), CLOCK_HOUR, &e), -EDQUOT);
    assert_non_null(strstr(e.text, "asks for 3: it could never start but as one of those, with "
                                   "--time of at most 30m"));
    assert_int_equal(admit("lab", ALICE, ask_cards(3), 30 * CLOCK_MINUTE, &e), 0);
}

static void jobs_are_handed_in_no_faster_than_allowed(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    struct err e = ERR_INIT;
    l.submits = 3;
    l.submits_per_us = CLOCK_MINUTE;
    sched_set_limits(queue, NULL, &l);
    for (uint64_t id = 1; id <= 3; id++) {
        assert_int_equal(admit("lab", ALICE, ask_cards(1), 0, &e), 0);
        submit(id, "lab", ALICE, ask_cards(1));
    }
    assert_int_equal(admit("lab", ALICE, ask_cards(1), 0, &e), -EDQUOT);
    assert_string_equal(e.text, "alice on this server may hand in 3 jobs in 1m and has handed in "
                                "3; the next one in 21s");
    assert_int_equal(admit("lab", BOB, ask_cards(1), 0, &e), 0);
    pass(20 * CLOCK_SECOND);
    assert_int_equal(admit("lab", ALICE, ask_cards(1), 0, &e), 0);
    submit(4, "lab", ALICE, ask_cards(1));
    assert_int_equal(admit("lab", ALICE, ask_cards(1), 0, &e), -EDQUOT);
}

#define SHARE_TEST(name) cmocka_unit_test_setup_teardown(name, make_server, end_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SHARE_TEST(users_of_equal_shares_take_turns_job_by_job),
        SHARE_TEST(a_tree_shares_at_every_level),
        SHARE_TEST(users_may_have_weights_of_their_own),
        SHARE_TEST(an_account_that_is_one_leaf_goes_first_come_first_served),
        SHARE_TEST(an_unused_share_is_lent_and_comes_back_with_the_next_job),
        SHARE_TEST(usage_is_halved_exactly_and_summed_up_the_tree),
        SHARE_TEST(a_tier_goes_first_whatever_the_shares_are),
        SHARE_TEST(a_higher_tier_takes_over_the_reservation),
        SHARE_TEST(a_class_may_cost_more_or_less),
        SHARE_TEST(age_brings_a_job_forward_as_far_as_it_weighs),
        SHARE_TEST(size_may_count_for_or_against),
        SHARE_TEST(least_attained_service_goes_first_by_thresholds),
        SHARE_TEST(a_limit_holds_for_all_below_and_blocks_nobody_else),
        SHARE_TEST(no_more_are_reserved_than_a_limit_lets_run),
        SHARE_TEST(who_comes_up_to_a_limit_loses_the_reservation),
        SHARE_TEST(every_kind_of_limit_is_waited_for),
        SHARE_TEST(users_and_classes_have_limits_of_their_own),
        SHARE_TEST(what_could_never_start_is_refused),
        SHARE_TEST(a_part_is_kept_for_short_and_attached_jobs),
        SHARE_TEST(jobs_are_handed_in_no_faster_than_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
