#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "plan/carry.h"
#include "server.h"

/* Counted cards, or an A100, and a queue in front of them. */
struct world {
    struct bulk bulk;
    struct inventory inv;
    struct sched *queue;
    struct now now;
};

static void world_init(struct world *w, uint32_t cards, enum sched_inside inside,
                       const struct sched_policy *p)
{
    *w = (struct world){ .bulk = { .cards = cards, .free = cards },
                         .now = { .boot_us = CLOCK_DAY } };
    if (cards)
        w->inv.bulk = &w->bulk;
    else
        (void)inventory_add(&w->inv, board_a100_80());
    w->queue = sched_new(p);
    static const char *const names[] = { "a", "b", "c" };
    for (size_t i = 0; i < 3; i++) {
        struct sched_branch b = { .name = names[i], .weight = 1, .inside = inside };
        sched_set_account(w->queue, &b);
    }
}

static void world_done(struct world *w)
{
    sched_free(w->queue);
    w->inv.bulk = NULL;
    bulk_done(&w->bulk);
    inventory_done(&w->inv);
}

static void put(struct world *w, struct sched_job job)
{
    job.submit_us = w->now.boot_us;
    sched_add(w->queue, &job);
}

static void submit(struct world *w, uint64_t id, const char *account, const char *qos,
                   struct request r)
{
    put(w, (struct sched_job){ .id = id, .account = account, .qos = qos, .request = &r });
}

static void submit_mem(struct world *w, uint64_t id, const char *qos, struct request r,
                       uint64_t gib)
{
    put(w, (struct sched_job){
               .id = id, .account = "a", .qos = qos, .request = &r, .mem_bytes = gib * GIB });
}

/* How many start. */
static size_t cycle(struct world *w)
{
    struct sched_decision d;
    size_t n = 0;
    sched_cycle(w->queue, w->now);
    for (; sched_next(w->queue, &w->inv, w->now, &d) > 0; n++) {
        struct hold h = { .kind = HOLD_JOB, .job_id = d.job_id };
        h.since_boot_us = w->now.boot_us;
        (void)carry_job(&w->inv, &d.place, &d.plan, &h);
        sched_start(w->queue, d.job_id, &d.place, charge_dominant_ppm(&d.place), w->now.boot_us);
        sched_decision_done(&d);
    }
    w->now.boot_us += CLOCK_MINUTE;
    return n;
}

static void stop(struct world *w, uint64_t id)
{
    carry_end(&w->inv, id, w->now.boot_us);
    sched_requeue(w->queue, id, w->now.boot_us);
}

static bool preempt(struct world *w, struct sched_preemption *p)
{
    assert_int_equal(cycle(w), 0);
    return sched_preempt(w->queue, &w->inv, w->now, p) > 0;
}

static void set_classes(struct world *w)
{
    struct qos urgent, spare;
    char *pushes[] = { text_dup("spare"), NULL };
    qos_init(&urgent, "urgent");
    qos_init(&spare, "spare");
    urgent.priority = 10;
    urgent.preempts = pushes;
    spare.preempt = PREEMPT_REQUEUE;
    sched_set_qos(w->queue, &spare);
    sched_set_qos(w->queue, &urgent);
    urgent.preempts = NULL;
    free(pushes[0]);
    qos_done(&urgent);
    qos_done(&spare);
}

static void a_class_pushes_out_the_youngest_of_those_it_may(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    world_init(&w, 4, SCHED_FIFO, &p);
    set_classes(&w);
    submit(&w, 1, "a", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 2, "a", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 3, "a", NULL, ask_cards(2));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 4, "b", NULL, ask_cards(1));
    assert_false(preempt(&w, &pre)); /* "normal" may push nobody */
    submit(&w, 5, "b", "urgent", ask_cards(1));
    assert_true(preempt(&w, &pre));
    assert_int_equal(pre.job_id, 5);
    assert_int_equal(pre.count, 1);
    assert_int_equal(pre.victims[0], 2);
    sched_preemption_done(&pre);
    assert_int_equal(sched_preempt(w.queue, &w.inv, w.now, &pre), 0); /* room is being made */
    stop(&w, 2);
    assert_int_equal(cycle(&w), 1);
    assert_int_equal(sched_pending(w.queue), 2);
    submit(&w, 6, "b", "urgent", ask_cards(2));
    assert_false(preempt(&w, &pre)); /* one spare card is not two: nobody is stopped in vain */
    world_done(&w);
}

static void nobody_goes_for_what_is_freed_anyway(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    world_init(&w, 2, SCHED_FIFO, &p);
    set_classes(&w);
    submit(&w, 1, "a", NULL, ask_cards(1));
    submit(&w, 2, "a", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 2);
    submit(&w, 3, "b", "urgent", ask_cards(1));
    sched_leaving(w.queue, 1); /* cancelled by its owner */
    assert_false(preempt(&w, &pre));
    stop(&w, 1);
    sched_remove(w.queue, 1);
    assert_int_equal(cycle(&w), 1);
    world_done(&w);
}

static void one_old_job_goes_rather_than_two_young_ones(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    world_init(&w, 8, SCHED_FIFO, &p);
    set_classes(&w);
    submit(&w, 1, "a", "spare", ask_cards(4));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 2, "a", "spare", ask_cards(3));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 3, "a", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 4, "b", "urgent", ask_cards(4));
    assert_true(preempt(&w, &pre)); /* 3 and 2 are younger, and two */
    assert_int_equal(pre.count, 1);
    assert_int_equal(pre.victims[0], 1);
    sched_preemption_done(&pre);
    world_done(&w);
}

static void on_a_real_board_the_slice_in_the_way_goes(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    world_init(&w, 0, SCHED_FIFO, &p);
    set_classes(&w);
    submit(&w, 1, "a", NULL, ask_slices("4g.40gb", 1));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 2, "a", "spare", ask_slices("1g.10gb", 1));
    submit(&w, 3, "a", "spare", ask_slices("1g.10gb", 1));
    assert_int_equal(cycle(&w), 2);
    submit(&w, 4, "b", "urgent", ask_slices("3g.40gb", 1));
    assert_true(preempt(&w, &pre));
    assert_int_equal(pre.count, 2);
    stop(&w, 2);
    stop(&w, 3);
    sched_preemption_done(&pre);
    assert_int_equal(cycle(&w), 1);
    submit(&w, 5, "b", "urgent", ask_slices("7g.80gb", 1));
    assert_false(preempt(&w, &pre));
    world_done(&w);
}

static struct request ask_nothing(void)
{
    return (struct request){ .kind = REQUEST_NOTHING, .count = 1 };
}

static void expect_one_goes(struct world *w, uint64_t by, uint64_t victim)
{
    struct sched_preemption pre;
    assert_true(preempt(w, &pre));
    assert_int_equal(pre.job_id, by);
    assert_int_equal(pre.count, 1);
    assert_int_equal(pre.victims[0], victim);
    sched_preemption_done(&pre);
    stop(w, victim);
    assert_int_equal(cycle(w), 1);
}

static void those_without_cards_go_for_what_the_machine_lacks(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    p.node.mem_bytes = 100 * GIB;
    p.mode_hold_us = 0;
    p.preempt_shares = true;
    world_init(&w, 0, SCHED_FIFO, &p);
    set_classes(&w);
    submit_mem(&w, 1, "spare", ask_slices("1g.10gb", 1), 10);
    submit_mem(&w, 2, "spare", ask_nothing(), 60);
    assert_int_equal(cycle(&w), 2);
    submit_mem(&w, 3, "urgent", ask_cards(1), 10);
    expect_one_goes(&w, 3, 1); /* 2 is as young and has no card to give */
    submit_mem(&w, 4, "urgent", ask_nothing(), 50);
    expect_one_goes(&w, 4, 2);
    submit_mem(&w, 5, "urgent", ask_nothing(), 90);
    submit(&w, 6, "b", NULL, ask_cards(1));
    assert_false(preempt(&w, &pre)); /* nobody stands below these */
    world_done(&w);
}

static void one_with_a_card_goes_for_memory_alone(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    p.node.mem_bytes = 100 * GIB;
    world_init(&w, 0, SCHED_FIFO, &p);
    set_classes(&w);
    submit_mem(&w, 1, "spare", ask_slices("1g.10gb", 1), 90);
    submit_mem(&w, 2, "spare", ask_nothing(), 5);
    assert_int_equal(cycle(&w), 2);
    submit_mem(&w, 3, "urgent", ask_slices("1g.10gb", 1), 80);
    expect_one_goes(&w, 3, 1); /* 2 alone would not do, and is not needed with it */
    submit_mem(&w, 4, "urgent", ask_nothing(), 100);
    assert_false(preempt(&w, &pre)); /* 2 alone would not do: it is not stopped in vain */
    world_done(&w);
}

/* Two A100s; 1 has had a slice of one, which is still cut and may not turn for ten minutes. */
static void leave_slices(struct world *w, const struct sched_policy *p)
{
    world_init(w, 0, SCHED_FIFO, p);
    (void)inventory_add(&w->inv, board_a100_80());
    set_classes(w);
    submit(w, 1, "a", "spare", ask_slices("7g.80gb", 1));
    assert_int_equal(cycle(w), 1);
}

static void finish(struct world *w, uint64_t id)
{
    carry_end(&w->inv, id, w->now.boot_us);
    sched_end(w->queue, id, w->now.boot_us);
}

static void nobody_goes_where_a_card_need_only_turn(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    leave_slices(&w, &p);
    submit(&w, 2, "a", "spare", ask_slices("1g.10gb", 1));
    assert_int_equal(cycle(&w), 1);
    finish(&w, 1);
    submit(&w, 3, "b", "urgent", ask_cards(1));
    assert_false(preempt(&w, &pre)); /* without 2 it would wait as long */
    w.now.boot_us += p.mode_hold_us;
    assert_int_equal(cycle(&w), 1);
    world_done(&w);
}

static void who_spares_it_the_turn_goes(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct world w;
    leave_slices(&w, &p);
    submit(&w, 2, "a", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 1);
    finish(&w, 1);
    submit(&w, 3, "b", "urgent", ask_cards(1));
    expect_one_goes(&w, 3, 2);
    world_done(&w);
}

static void who_had_more_service_goes_for_who_had_less(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    p.preempt_las = true;
    world_init(&w, 1, SCHED_LAS, &p);
    submit(&w, 1, "a", NULL, ask_cards(1));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 2, "a", NULL, ask_cards(1));
    submit(&w, 3, "b", NULL, ask_cards(1));
    assert_false(preempt(&w, &pre)); /* it has had less than an hour */
    assert_true(sched_wake_us(w.queue, &w.inv, w.now) <= CLOCK_DAY + CLOCK_HOUR + 1);
    w.now.boot_us += CLOCK_HOUR;
    assert_true(preempt(&w, &pre));
    assert_int_equal(pre.job_id, 2); /* of its own account */
    assert_int_equal(pre.victims[0], 1);
    sched_preemption_done(&pre);
    stop(&w, 1);
    assert_int_equal(cycle(&w), 1); /* the claim goes before b, who had nothing */
    assert_int_equal(sched_pending(w.queue), 2);
    world_done(&w);
}

static void a_larger_share_goes_for_a_smaller_and_never_back(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    p.preempt_shares = true;
    world_init(&w, 4, SCHED_FIFO, &p);
    for (uint64_t id = 1; id <= 4; id++)
        submit(&w, id, "a", NULL, ask_cards(1));
    assert_int_equal(cycle(&w), 4);
    for (uint64_t id = 5; id <= 8; id++)
        submit(&w, id, "b", NULL, ask_cards(1));
    for (size_t i = 0; i < 2; i++) {
        assert_true(preempt(&w, &pre));
        assert_int_equal(pre.job_id, 5 + i);
        assert_int_equal(pre.count, 1);
        assert_int_equal(pre.victims[0], 4 - i); /* equal starts: the last in line goes */
        stop(&w, pre.victims[0]);
        sched_preemption_done(&pre);
        assert_int_equal(cycle(&w), 1);
    }
    assert_false(preempt(&w, &pre)); /* two each: a third would turn it round */
    w.now.boot_us += 10 * CLOCK_DAY;
    assert_false(preempt(&w, &pre));
    world_done(&w);
}

/* Of no priority: what "high" takes from "low", the shares would give back. */
static void set_equal_classes(struct world *w)
{
    struct qos high, low;
    char *pushes[] = { text_dup("low"), NULL };
    qos_init(&high, "high");
    qos_init(&low, "low");
    high.preempt = low.preempt = PREEMPT_REQUEUE;
    high.preempts = pushes;
    sched_set_qos(w->queue, &high);
    sched_set_qos(w->queue, &low);
    high.preempts = NULL;
    free(pushes[0]);
    qos_done(&high);
    qos_done(&low);
}

static void shares_take_back_nothing_that_a_class_took(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    p.preempt_shares = true;
    world_init(&w, 2, SCHED_FIFO, &p);
    set_equal_classes(&w);
    submit(&w, 1, "a", "high", ask_cards(1));
    submit(&w, 2, "b", "low", ask_cards(1));
    assert_int_equal(cycle(&w), 2);
    submit(&w, 3, "a", "high", ask_cards(1));
    assert_true(preempt(&w, &pre));
    assert_int_equal(pre.job_id, 3);
    assert_int_equal(pre.victims[0], 2);
    sched_preemption_done(&pre);
    stop(&w, 2);
    assert_int_equal(cycle(&w), 1);
    assert_false(preempt(&w, &pre)); /* 2 would go for 3 by the shares, and 3 for 2 by its class */
    submit(&w, 4, "b", NULL, ask_cards(1));
    assert_false(preempt(&w, &pre)); /* nor in a longer circle, by way of a third class */
    world_done(&w);
}

/* "b" may run two jobs at a time. */
static void limit_b(struct world *w)
{
    struct limits two = LIMITS_NONE;
    struct sched_branch b = { .name = "b", .weight = 1, .inside = SCHED_FIFO, .limits = &two };
    two.running = 2;
    sched_set_account(w->queue, &b);
}

static void a_limit_that_nobody_frees_lets_nobody_be_stopped(void **state)
{
    (void)state;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    struct sched_preemption pre;
    struct world w;
    world_init(&w, 3, SCHED_FIFO, &p);
    limit_b(&w);
    set_classes(&w);
    submit(&w, 1, "b", NULL, ask_cards(1));
    submit(&w, 2, "b", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 2);
    submit(&w, 3, "a", "spare", ask_cards(1));
    assert_int_equal(cycle(&w), 1);
    submit(&w, 4, "b", "urgent", ask_cards(1));
    assert_true(preempt(&w, &pre)); /* 3 is younger, but would leave b at its limit */
    assert_int_equal(pre.count, 1);
    assert_int_equal(pre.victims[0], 2);
    sched_preemption_done(&pre);
    stop(&w, 2);
    assert_int_equal(cycle(&w), 1);
    submit(&w, 5, "b", "urgent", ask_cards(1));
    assert_false(preempt(&w, &pre)); /* both of b's are of classes that stay */
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_pushes_out_the_youngest_of_those_it_may),
        cmocka_unit_test(nobody_goes_for_what_is_freed_anyway),
        cmocka_unit_test(one_old_job_goes_rather_than_two_young_ones),
        cmocka_unit_test(on_a_real_board_the_slice_in_the_way_goes),
        cmocka_unit_test(those_without_cards_go_for_what_the_machine_lacks),
        cmocka_unit_test(one_with_a_card_goes_for_memory_alone),
        cmocka_unit_test(nobody_goes_where_a_card_need_only_turn),
        cmocka_unit_test(who_spares_it_the_turn_goes),
        cmocka_unit_test(who_had_more_service_goes_for_who_had_less),
        cmocka_unit_test(a_larger_share_goes_for_a_smaller_and_never_back),
        cmocka_unit_test(shares_take_back_nothing_that_a_class_took),
        cmocka_unit_test(a_limit_that_nobody_frees_lets_nobody_be_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
