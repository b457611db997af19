#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "policy/policy.h"

static void read_config(const char *text, struct divvyd_config *ret)
{
    struct err e = ERR_INIT;
    if (divvyd_config_parse("divvy.yaml", text, strlen(text), ret, &e) < 0)
        fail_msg("%s", e.text);
}

static void silence_is_the_default(void **state)
{
    (void)state;
    struct divvyd_config c;
    divvyd_config_init(&c);
    struct sched_policy p = policy_of(&c), plain = SCHED_POLICY_DEFAULT;
    divvyd_config_done(&c);
    assert_int_equal(p.half_life_us, plain.half_life_us);
    assert_int_equal(p.mode_hold_us, plain.mode_hold_us);
    assert_int_equal(p.las_count, plain.las_count);
    assert_true(p.las_us[1] == plain.las_us[1]);
    assert_true(p.order.share == plain.order.share && p.order.age == 0 && p.order.size == 0);
    assert_int_equal(p.reservations, plain.reservations);
}

static void times_weights_and_thresholds_are_taken(void **state)
{
    (void)state;
    struct divvyd_config c;
    read_config("half_life: 1d\nreservations: 3\nlas: [2h]\norder: {share: 3, age: 0.5, size: -1, "
                "age_max: 2d}\n",
                &c);
    struct sched_policy p = policy_of(&c);
    divvyd_config_done(&c);
    assert_int_equal(p.reservations, 3);
    assert_true(p.half_life_us == CLOCK_DAY && p.order.age_max_us == 2 * CLOCK_DAY);
    assert_true(p.order.share == 3 && p.order.age == 0.5 && p.order.size == -1);
    assert_true(p.las_count == 1 && p.las_us[0] == 2 * CLOCK_HOUR);
}

static void jobs_go_for_service_and_shares_only_where_that_is_said(void **state)
{
    (void)state;
    struct divvyd_config c;
    read_config("preempt_las: on\n", &c);
    assert_true(policy_of(&c).preempt_las && !policy_of(&c).preempt_shares);
    divvyd_config_done(&c);
    read_config("preempt_shares: on\n", &c);
    assert_true(policy_of(&c).preempt_shares && !policy_of(&c).preempt_las);
    divvyd_config_done(&c);
}

static void of_the_machine_only_numbers_are_taken(void **state)
{
    (void)state;
    struct divvyd_config c;
    read_config("node: {memory: 2T, cpus: auto}\ntask_limits: {memory: none}\n", &c);
    struct sched_node n = policy_of(&c).node;
    divvyd_config_done(&c);
    assert_true(n.mem_bytes == UINT64_C(2) << 40 && !n.mem_shares);
    assert_true(n.cpu_milli == 0 && n.cpu_shares);
    read_config("node: {memory: off, cpus: 4}\n", &c);
    n = policy_of(&c).node;
    divvyd_config_done(&c);
    assert_true(n.mem_bytes == 0 && n.cpu_milli == 4000);
}

static void accounts_are_a_tree_with_users(void **state)
{
    (void)state;
    struct divvyd_config c;
    struct sched_account got;
    struct now now = { .boot_us = CLOCK_DAY };
    read_config("accounts:\n  lab: {share: 3}\n  nlp: {parent: lab, users: [alice], "
                "user_shares: {alice: 2}, limits: {cards: 1}}\n  sims: {inside: las}\n",
                &c);
    struct policy_branches b;
    policy_branches_init(&b, &c);
    assert_int_equal(b.count, 3);
    assert_string_equal(b.list[1].parent, "lab");
    assert_string_equal(b.list[1].users[0].user, "alice");
    assert_true(b.list[1].users[0].weight == 2 && b.list[1].limits->cards == 1);
    assert_int_equal(b.list[2].inside, SCHED_LAS);
    policy_branches_done(&b);
    struct sched_policy p = policy_of(&c);
    AUTO_PTR(sched_free) struct sched *s = sched_new(&p);
    policy_load(s, &c);
    divvyd_config_done(&c); /* the queue keeps its own */
    assert_true(sched_account(s, "nlp", now, &got) && sched_is_pooled(s, "sims"));
    assert_string_equal(got.parent, "lab");
    assert_true(sched_account(s, "lab", now, &got) && got.weight == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_the_default),
        cmocka_unit_test(times_weights_and_thresholds_are_taken),
        cmocka_unit_test(jobs_go_for_service_and_shares_only_where_that_is_said),
        cmocka_unit_test(of_the_machine_only_numbers_are_taken),
        cmocka_unit_test(accounts_are_a_tree_with_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
