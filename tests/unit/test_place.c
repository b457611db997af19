#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "boards.h"
#include "plan/place.h"

#define HOLD (10 * CLOCK_MINUTE)

/* What was asked last, and what came of it. */
struct asked {
    struct inventory inv;
    struct place place;
    struct plan plan;
    struct err e;
    struct place_rules rules;
    struct now now;
};

static struct asked begin(void)
{
    struct asked a = { .rules = { .mode_hold_us = HOLD }, .now = { .boot_us = CLOCK_HOUR } };
    return a;
}

static void forget(struct asked *a)
{
    place_done(&a->place);
    plan_done(&a->plan);
    a->place = (struct place){ .items = NULL };
    a->plan = (struct plan)PLAN_INIT;
}

static void asked_done(struct asked *a)
{
    forget(a);
    inventory_done(&a->inv);
}

static enum place_verdict ask(struct asked *a, struct request r)
{
    forget(a);
    a->e = (struct err)ERR_INIT;
    return place_request(&a->inv, &r, &a->rules, a->now, &a->place, &a->plan, &a->e);
}

static struct request slices(const char *profile, uint32_t count)
{
    struct request r = { .kind = REQUEST_SLICES, .count = count };
    snprintf(r.profile, sizeof r.profile, "%s", profile);
    return r;
}

static struct request need(uint64_t mem_bytes)
{
    return (struct request){ .kind = REQUEST_NEED, .count = 1, .mem_bytes = mem_bytes };
}

static struct request cards(uint32_t count)
{
    return (struct request){ .kind = REQUEST_CARDS, .count = count };
}

/* The slices of the place come into being, held by a job. */
static void settle(struct asked *a, uint64_t job)
{
    for (size_t i = 0; i < a->place.count; i++) {
        const struct placed *p = &a->place.items[i];
        (void)card_cut(inventory_card(&a->inv, p->ordinal), p->profile, p->start, job);
    }
}

static size_t steps_of(const struct plan *p, enum step_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += p->steps[i].kind == kind;
    return n;
}

static void assert_place(const struct asked *a, const char *expected)
{
    AUTO(text) struct text t = TEXT_INIT;
    place_add_text(&t, &a->place);
    assert_string_equal(t.buf, expected);
}

/* Profiles one after the other on an empty card that is cut already. */
static void settle_all(struct asked *a, const char *const *profiles, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ask(a, slices(profiles[i], 1)), PLACE_NOW);
        assert_int_equal(steps_of(&a->plan, STEP_GI_DESTROY), 0);
        settle(a, i + 1);
    }
}

static void test_4g_2g_1g_fit_in_every_order(void **state)
{
    (void)state;
    static const char *const orders[6][3] = {
        { "4g.40gb", "2g.20gb", "1g.10gb" }, { "4g.40gb", "1g.10gb", "2g.20gb" },
        { "2g.20gb", "4g.40gb", "1g.10gb" }, { "2g.20gb", "1g.10gb", "4g.40gb" },
        { "1g.10gb", "4g.40gb", "2g.20gb" }, { "1g.10gb", "2g.20gb", "4g.40gb" },
    };
    for (size_t i = 0; i < 6; i++) {
        AUTO(asked) struct asked a = begin();
        card_turn(inventory_add(&a.inv, board_a100_80()), true);
        settle_all(&a, orders[i], 3);
    }
}

static void test_3g_first_leaves_room_for_the_rest(void **state)
{
    (void)state;
    static const char *const orders[3][4] = {
        { "3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb" },
        { "3g.40gb", "1g.10gb", "2g.20gb", "1g.10gb" },
        { "3g.40gb", "1g.10gb", "1g.10gb", "2g.20gb" },
    };
    for (size_t i = 0; i < 3; i++) {
        AUTO(asked) struct asked a = begin();
        card_turn(inventory_add(&a.inv, board_a100_80()), true);
        settle_all(&a, orders[i], 4);
    }
}

static void test_3g_and_4g_fit_in_both_orders(void **state)
{
    (void)state;
    static const char *const orders[2][2] = { { "3g.40gb", "4g.40gb" }, { "4g.40gb", "3g.40gb" } };
    for (size_t i = 0; i < 2; i++) {
        AUTO(asked) struct asked a = begin();
        card_turn(inventory_add(&a.inv, board_a100_80()), true);
        settle_all(&a, orders[i], 2);
    }
}

static void test_idle_slices_give_way_and_no_more_than_needed(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    for (uint32_t i = 0; i < 7; i++)
        (void)card_cut(c, "1g.10gb", i, 0);
    assert_int_equal(ask(&a, slices("2g.20gb", 1)), PLACE_NOW);
    assert_int_equal(steps_of(&a.plan, STEP_GI_DESTROY), 2);
    assert_int_equal(steps_of(&a.plan, STEP_CI_DESTROY), 2);
    assert_int_equal(steps_of(&a.plan, STEP_GI_CREATE), 1);
    assert_int_equal(steps_of(&a.plan, STEP_CI_CREATE), 1);
    assert_int_equal(a.plan.count, 6);
}

static void test_compute_slices_are_a_limit_too(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "4g.40gb", 0, 0);
    (void)card_cut(c, "2g.20gb", 4, 7);
    (void)card_cut(c, "1g.10gb", 6, 0);
    /* Unit 7 is free but no start; 2g of compute are only to be had from the idle 4g. */
    assert_int_equal(ask(&a, slices("2g.20gb", 1)), PLACE_NOW);
    assert_int_equal(steps_of(&a.plan, STEP_GI_DESTROY), 1);
    assert_string_equal(a.plan.steps[0].profile, "4g.40gb");
}

static void test_two_slices_that_share_no_unit_may_both_have_to_go(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "3g.40gb", 4, 7);
    (void)card_cut(c, "1g.10gb", 0, 0);
    (void)card_cut(c, "1g.10gb", 1, 0);
    (void)card_cut(c, "1g.10gb", 2, 0);
    assert_int_equal(ask(&a, slices("4g.40gb", 1)), PLACE_NOW);
    assert_int_equal(steps_of(&a.plan, STEP_GI_DESTROY), 3);
    assert_place(&a, "gpu0/4g.40gb@0");
}

static void test_what_is_busy_is_never_touched(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    for (uint32_t i = 0; i < 7; i++)
        (void)card_cut(c, "1g.10gb", i, i == 3 || i == 5 ? 9 : 0);
    assert_int_equal(ask(&a, slices("2g.20gb", 1)), PLACE_NOW);
    assert_place(&a, "gpu0/2g.20gb@0");
    assert_int_equal(ask(&a, slices("3g.40gb", 1)), PLACE_LATER);
    assert_non_null(strstr(a.e.text, "waits for 3g.40gb: gpu0 is used by #9 (alice)"));
}

static void test_what_was_found_is_used_and_kept(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    card_cut(c, "3g.40gb", 4, 0)->adopted = true;
    assert_int_equal(ask(&a, slices("7g.80gb", 1)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "gpu0 has slices that Divvy found and keeps"));
    assert_int_equal(ask(&a, cards(1)), PLACE_NEVER);
    assert_int_equal(ask(&a, slices("3g.40gb", 2)), PLACE_NOW);
    assert_place(&a, "gpu0/3g.40gb@4, gpu0/3g.40gb@0");
    assert_int_equal(a.plan.count, 2);
}

static void test_a_layout_is_used_and_never_cut(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "3g.40gb", 4, 0);
    c->mode = MODE_SLICES;
    c->laid_out = true;
    assert_int_equal(ask(&a, slices("3g.40gb", 1)), PLACE_NOW);
    assert_place(&a, "gpu0/3g.40gb@4");
    assert_int_equal(a.plan.count, 0);
    assert_int_equal(ask(&a, slices("1g.10gb", 1)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "gpu0 keeps the slices of its layout"));
    assert_int_equal(ask(&a, slices("3g.40gb", 2)), PLACE_NEVER);
}

static void test_what_leaves_takes_nobody(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    card_cut(c, "3g.40gb", 0, 0)->leaving = true;
    (void)card_cut(c, "3g.40gb", 4, 0);
    c->no_cuts = true;
    assert_int_equal(ask(&a, slices("3g.40gb", 1)), PLACE_NOW);
    assert_place(&a, "gpu0/3g.40gb@4");
    assert_int_equal(ask(&a, slices("3g.40gb", 2)), PLACE_LATER);
    assert_int_equal(ask(&a, slices("1g.10gb", 1)), PLACE_LATER);
}

static void test_a_reserved_card_takes_nobody(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "3g.40gb", 4, 0);
    snprintf(c->reserved, sizeof c->reserved, "maintenance by root");
    assert_int_equal(ask(&a, slices("3g.40gb", 1)), PLACE_LATER);
    assert_non_null(strstr(a.e.text, "gpu0 is reserved: maintenance by root"));
}

static void test_reuse_comes_before_create(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    card_turn(inventory_add(&a.inv, board_a100_80()), true);
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "2g.20gb", 4, 0);
    assert_int_equal(ask(&a, slices("2g.20gb", 1)), PLACE_NOW);
    assert_place(&a, "gpu1/2g.20gb@4");
    assert_int_equal(a.plan.count, 0);
    assert_string_equal(a.place.items[0].uuid, c->card.slices[0].uuid);
    assert_int_equal(a.place.items[0].generation, 104);
    assert_int_equal(a.place.items[0].compute_ppm, 285714);
    assert_int_equal(a.place.items[0].mem_ppm, 250000);
}

static void test_an_instance_without_compute_instance_is_completed(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "2g.20gb", 4, 0);
    struct slice *s = &c->card.slices[0];
    s->ci = NOT_AN_INSTANCE;
    s->ci_slices = 0;
    s->full = false;
    s->uuid[0] = '\0';
    assert_int_equal(ask(&a, slices("2g.20gb", 1)), PLACE_NOW);
    assert_int_equal(a.plan.count, 1);
    assert_int_equal(a.plan.steps[0].kind, STEP_CI_CREATE);
    assert_int_equal(a.plan.steps[0].gi, s->gi);
}

static void test_an_auto_card_turns_mig_on_only_after_the_hold(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    c->idle_since_boot_us = a.now.boot_us - HOLD + 1;
    assert_int_equal(ask(&a, slices("1g.10gb", 2)), PLACE_LATER);
    assert_non_null(strstr(a.e.text, "MIG mode stays off"));
    c->idle_since_boot_us--;
    assert_int_equal(ask(&a, slices("1g.10gb", 2)), PLACE_NOW);
    assert_int_equal(a.plan.steps[0].kind, STEP_MIG_ON);
    assert_int_equal(a.plan.count, 5);
    c->mode = MODE_WHOLE;
    assert_int_equal(ask(&a, slices("1g.10gb", 2)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "only whole cards are given there"));
    assert_non_null(strstr(a.e.text, "divvy mode gpu0 auto"));
}

static void test_a_card_that_only_a_reboot_turns_serves_as_it_is(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    c->idle_since_boot_us = 1;
    c->no_turn = true;
    assert_int_equal(ask(&a, slices("1g.10gb", 2)), PLACE_LATER);
    assert_non_null(strstr(a.e.text, "its MIG mode stays off until this machine is rebooted"));
    c->card.mig_pending = true;
    assert_int_equal(ask(&a, slices("1g.10gb", 2)), PLACE_LATER);
    assert_int_equal(ask(&a, cards(1)), PLACE_NOW);
    assert_int_equal(a.plan.count, 0);
    c->no_turn = false; /* a reset that somebody is to give it */
    assert_int_equal(ask(&a, cards(1)), PLACE_LATER);
}

static void test_a_whole_card_is_made_of_an_empty_cut_one(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    (void)card_cut(c, "3g.40gb", 4, 0);
    (void)card_cut(c, "1g.10gb", 0, 0);
    assert_int_equal(ask(&a, cards(1)), PLACE_NOW);
    assert_place(&a, "gpu0");
    assert_int_equal(a.plan.count, 5);
    assert_int_equal(a.plan.steps[4].kind, STEP_MIG_OFF);
    assert_string_equal(a.place.items[0].uuid, c->card.uuid);
    c->slices[0].hold.kind = HOLD_FOREIGN;
    assert_int_equal(ask(&a, cards(1)), PLACE_LATER);
}

static void test_whole_cards_are_given_in_their_own_order(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    (void)card_cut(inventory_add(&a.inv, board_a100_80()), "3g.40gb", 4, 0);
    (void)inventory_add(&a.inv, board_a100_80());
    assert_int_equal(ask(&a, cards(2)), PLACE_NOW);
    assert_place(&a, "gpu0, gpu1"); /* although gpu1 needs no step, and is the better one */
}

static void test_a_need_takes_the_smallest_that_is_enough(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    card_turn(inventory_add(&a.inv, board_a100_80()), true);
    assert_int_equal(ask(&a, need(18 * GIB)), PLACE_NOW);
    assert_string_equal(a.place.items[0].profile, "1g.20gb");
    assert_int_equal(ask(&a, need(10 * GIB)), PLACE_NOW);
    assert_string_equal(a.place.items[0].profile, "1g.10gb");
    struct request exact = need(10 * GIB);
    exact.exact = true;
    assert_int_equal(ask(&a, exact), PLACE_NOW);
    assert_string_equal(a.place.items[0].profile, "1g.20gb");
    struct request compute = need(18 * GIB);
    compute.compute_ppm = 250000;
    assert_int_equal(ask(&a, compute), PLACE_NOW);
    assert_string_equal(a.place.items[0].profile, "2g.20gb");
}

static void test_a_need_waits_for_a_part_rather_than_take_a_whole_card(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    c->idle_since_boot_us = a.now.boot_us - HOLD + 1;
    assert_int_equal(ask(&a, need(18 * GIB)), PLACE_LATER);
    c->idle_since_boot_us--;
    assert_int_equal(ask(&a, need(18 * GIB)), PLACE_NOW);
    assert_string_equal(a.place.items[0].profile, "1g.20gb");
    c->mode = MODE_WHOLE;
    assert_int_equal(ask(&a, need(18 * GIB)), PLACE_NOW);
    assert_place(&a, "gpu0");
}

static void test_all_of_a_card_is_taken_as_it_is(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    (void)inventory_add(&a.inv, board_a100_80());
    assert_int_equal(ask(&a, need(70 * GIB)), PLACE_NOW);
    assert_place(&a, "gpu0");
    assert_int_equal(a.plan.count, 0);
    card_turn(&a.inv.cards[0], true);
    assert_int_equal(ask(&a, need(70 * GIB)), PLACE_NOW);
    assert_place(&a, "gpu0/7g.80gb@0");
}

static void test_spread_puts_tasks_on_different_cards(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    card_turn(inventory_add(&a.inv, board_a100_80()), true);
    card_turn(inventory_add(&a.inv, board_a100_80()), true);
    struct request r = slices("1g.10gb", 2);
    assert_int_equal(ask(&a, r), PLACE_NOW);
    assert_int_equal(a.place.items[0].ordinal, a.place.items[1].ordinal);
    r.spread = true;
    assert_int_equal(ask(&a, r), PLACE_NOW);
    assert_int_not_equal(a.place.items[0].ordinal, a.place.items[1].ordinal);
    assert_int_equal(a.place.items[1].task, 1);
    r.count = 3;
    assert_int_equal(ask(&a, r), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "room for 2 x 1g.10gb"));
}

static void test_a_full_slice_is_as_good_as_a_card_if_asked(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    c->mode = MODE_SLICES;
    card_turn(c, true);
    struct request r = cards(1);
    assert_int_equal(ask(&a, r), PLACE_NEVER);
    r.or_7g = true;
    assert_int_equal(ask(&a, r), PLACE_NOW);
    assert_place(&a, "gpu0/7g.80gb@0");
}

static void test_whole_cards_are_taken_on_one_node(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    for (uint32_t i = 0; i < 4; i++) {
        struct inventory_card *c = inventory_add(&a.inv, board_rtx4090());
        c->card.known |= KNOW_NUMA;
        c->card.numa_node = (int32_t)i / 2;
    }
    card_hold(&a.inv.cards[0], 5, 0);
    assert_int_equal(ask(&a, cards(2)), PLACE_NOW);
    assert_place(&a, "gpu2, gpu3");
    assert_int_equal(ask(&a, cards(3)), PLACE_NOW);
    assert_int_equal(ask(&a, cards(5)), PLACE_NEVER);
    assert_string_equal(a.e.text,
                        "this server gives 4 whole cards to jobs, not 5; slices do not make up for "
                        "cards: nothing joins them");
}

static void test_more_cards_than_there_are_is_told_before_their_mode(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    inventory_add(&a.inv, board_a100_80())->mode = MODE_SLICES;
    assert_int_equal(ask(&a, cards(9)), PLACE_NEVER);
    assert_string_equal(a.e.text, "this server has 1 card for jobs, not 9");
    assert_int_equal(ask(&a, cards(1)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "only slices are given"));
}

static void test_engines_are_a_limit(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a30());
    (void)card_cut(c, "1g.6gb+me", 0, 3);
    assert_int_equal(ask(&a, slices("2g.12gb+me", 1)), PLACE_LATER);
    assert_int_equal(ask(&a, slices("2g.12gb", 1)), PLACE_NOW);
}

static void test_an_unknown_profile_is_answered_with_those_there_are(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    (void)inventory_add(&a.inv, board_a100_80());
    (void)inventory_add(&a.inv, board_a100_80());
    assert_int_equal(ask(&a, slices("1g.5gb", 1)), PLACE_NEVER);
    assert_string_equal(
        a.e.text,
        "no card here has 1g.5gb. A100-SXM4-80GB has 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, "
        "3g.40gb, 4g.40gb, 7g.80gb. Nearest: --slice 1g.10gb (or say what you need: "
        "--gpu-mem 5G).");
    assert_int_equal(ask(&a, slices("2g", 1)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, " Nearest: --slice 2g.20gb."));
    assert_int_equal(ask(&a, slices("big", 1)), PLACE_NEVER);
    assert_null(strstr(a.e.text, "Nearest"));
    assert_int_equal(ask(&a, need(100 * GIB)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "no card here has 100.0 GiB: the largest is gpu0"));
}

static void test_cards_of_other_pools_are_not_given(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    inventory_add(&a.inv, board_a100_80())->pool = POOL_OFF;
    assert_int_equal(ask(&a, cards(1)), PLACE_NEVER);
    assert_non_null(strstr(a.e.text, "divvy pool gpu0 queue"));
    a.rules.slices_of_all = true;
    assert_int_equal(ask(&a, cards(1)), PLACE_NOW);
}

static void test_ill_and_reserved_cards_wait(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    c->card.health = CARD_LOST;
    assert_int_equal(ask(&a, cards(1)), PLACE_LATER);
    assert_string_equal(a.e.text, "waits for 1 whole card: gpu0 is lost");
    c->card.health = CARD_OK;
    enum card_ban ban = BAN_ALL;
    a.rules.bans = &ban;
    assert_int_equal(ask(&a, cards(1)), PLACE_LATER);
    (void)card_cut(c, "2g.20gb", 0, 0);
    ban = BAN_NEW_CUTS;
    assert_int_equal(ask(&a, slices("2g.20gb", 1)), PLACE_NOW);
    assert_int_equal(ask(&a, slices("2g.20gb", 2)), PLACE_LATER);
}

static void test_soonest_waits_for_the_limits_in_the_way(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    a.rules.mode_hold_us = 0;
    int64_t now = a.now.boot_us;
    card_hold(inventory_add(&a.inv, board_rtx4090()), 1, now + 50);
    card_hold(inventory_add(&a.inv, board_rtx4090()), 2, now + 20);
    card_hold(inventory_add(&a.inv, board_rtx4090()), 3, now + 90);
    card_hold(inventory_add(&a.inv, board_rtx4090()), 4, 0);
    size_t which[4];
    int64_t when;
    struct request r = cards(2);
    assert_int_equal(place_soonest(&a.inv, &r, &a.rules, a.now, which, &when), 2);
    assert_true(when == now + 50);
    assert_true(which[0] == 0 && which[1] == 1);
    r.count = 4;
    assert_int_equal(place_soonest(&a.inv, &r, &a.rules, a.now, which, &when), 0);
    assert_true(when == INT64_MAX);
}

static void test_soonest_counts_the_hold_of_a_mode(void **state)
{
    (void)state;
    AUTO(asked) struct asked a = begin();
    struct inventory_card *c = inventory_add(&a.inv, board_a100_80());
    card_cut(c, "3g.40gb", 0, 8)->hold.until_boot_us = a.now.boot_us + 70;
    size_t which[1];
    int64_t when;
    struct request r = cards(1);
    assert_int_equal(place_soonest(&a.inv, &r, &a.rules, a.now, which, &when), 1);
    assert_true(when == a.now.boot_us + 70 + HOLD);
    r = slices("4g.40gb", 1);
    assert_int_equal(place_soonest(&a.inv, &r, &a.rules, a.now, which, &when), 1);
    assert_true(when == a.now.boot_us + 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_4g_2g_1g_fit_in_every_order),
        cmocka_unit_test(test_3g_first_leaves_room_for_the_rest),
        cmocka_unit_test(test_3g_and_4g_fit_in_both_orders),
        cmocka_unit_test(test_idle_slices_give_way_and_no_more_than_needed),
        cmocka_unit_test(test_compute_slices_are_a_limit_too),
        cmocka_unit_test(test_two_slices_that_share_no_unit_may_both_have_to_go),
        cmocka_unit_test(test_what_is_busy_is_never_touched),
        cmocka_unit_test(test_what_was_found_is_used_and_kept),
        cmocka_unit_test(test_a_layout_is_used_and_never_cut),
        cmocka_unit_test(test_what_leaves_takes_nobody),
        cmocka_unit_test(test_a_reserved_card_takes_nobody),
        cmocka_unit_test(test_reuse_comes_before_create),
        cmocka_unit_test(test_an_instance_without_compute_instance_is_completed),
        cmocka_unit_test(test_an_auto_card_turns_mig_on_only_after_the_hold),
        cmocka_unit_test(test_a_card_that_only_a_reboot_turns_serves_as_it_is),
        cmocka_unit_test(test_a_whole_card_is_made_of_an_empty_cut_one),
        cmocka_unit_test(test_whole_cards_are_given_in_their_own_order),
        cmocka_unit_test(test_a_need_takes_the_smallest_that_is_enough),
        cmocka_unit_test(test_a_need_waits_for_a_part_rather_than_take_a_whole_card),
        cmocka_unit_test(test_all_of_a_card_is_taken_as_it_is),
        cmocka_unit_test(test_spread_puts_tasks_on_different_cards),
        cmocka_unit_test(test_a_full_slice_is_as_good_as_a_card_if_asked),
        cmocka_unit_test(test_whole_cards_are_taken_on_one_node),
        cmocka_unit_test(test_more_cards_than_there_are_is_told_before_their_mode),
        cmocka_unit_test(test_engines_are_a_limit),
        cmocka_unit_test(test_an_unknown_profile_is_answered_with_those_there_are),
        cmocka_unit_test(test_cards_of_other_pools_are_not_given),
        cmocka_unit_test(test_ill_and_reserved_cards_wait),
        cmocka_unit_test(test_soonest_waits_for_the_limits_in_the_way),
        cmocka_unit_test(test_soonest_counts_the_hold_of_a_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
