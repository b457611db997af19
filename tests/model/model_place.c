/*
 * Random cards, holders and requests against place_request. After each answer:
 * the place is valid and touches nothing that is busy, its steps lead to
 * exactly the place, and taken back in reverse they restore what was. Where
 * the answer is "not now", trying every start of every fitting profile by hand
 * on an otherwise untouched card finds nothing either.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../unit/boards.h"
#include "../unit/dice.h"
#include "base/cleanup.h"
#include "model/address.h"
#include "model/expect.h"
#include "plan/occupancy.h"
#include "plan/place.h"

#define ROUNDS 4000

static struct board random_board(struct dice *d)
{
    switch (dice_below(d, 5)) {
    case 0:
        return board_rtx4090();
    case 1:
        return board_a30();
    default:
        return board_a100_80();
    }
}

/* Random slices that fit, some held, some found. */
static void random_cuts(struct dice *d, struct inventory_card *c)
{
    const struct board *b = &c->card.board;
    struct occupancy o = { 0 };
    card_turn(c, true);
    for (uint64_t n = dice_below(d, 9); n > 0; n--) {
        const struct profile *p = &b->profiles[dice_below(d, b->profile_count)];
        uint32_t start = p->starts[dice_below(d, p->start_count)];
        if (!occupancy_fits(&o, b, p, start))
            continue;
        occupancy_add(&o, b, p, start);
        struct inventory_slice *s = card_cut(c, p->name, start, dice_below(d, 2) * 7);
        s->adopted = s->hold.kind == HOLD_NONE && dice_below(d, 4) == 0;
    }
}

static void random_inventory(struct dice *d, struct inventory *inv)
{
    for (uint64_t n = 1 + dice_below(d, 4); n > 0; n--) {
        struct inventory_card *c = inventory_add(inv, random_board(d));
        c->mode = dice_below(d, 3) ? MODE_AUTO : (enum card_mode)dice_below(d, 3);
        if (c->card.mig_capable && dice_below(d, 3))
            random_cuts(d, c);
        else if (dice_below(d, 3) == 0)
            card_hold(c, 3, 0);
        if (dice_below(d, 3) == 0)
            c->idle_since_boot_us = 0;
        if (dice_below(d, 12) == 0)
            c->card.health = CARD_LOST;
        if (dice_below(d, 12) == 0)
            c->pool = POOL_SLURM;
    }
}

static struct request random_request(struct dice *d, const struct inventory *inv)
{
    struct request r = { .count = 1 + (uint32_t)dice_below(d, 3) };
    const struct board *b = &inv->cards[dice_below(d, inv->card_count)].card.board;
    uint64_t kind = dice_below(d, 5);
    if (kind == 0) {
        r.kind = REQUEST_CARDS;
        r.or_7g = dice_below(d, 3) == 0;
    } else if (kind < 4 && b->profile_count) {
        r.kind = REQUEST_SLICES;
        r.spread = dice_below(d, 4) == 0;
        snprintf(r.profile, sizeof r.profile, "%s",
                 b->profiles[dice_below(d, b->profile_count)].name);
    } else {
        r.kind = REQUEST_NEED;
        r.mem_bytes = (1 + dice_below(d, 60)) * GIB;
    }
    return r;
}

static void copy_inventory(const struct inventory *inv, struct inventory *ret)
{
    *ret = (struct inventory){ .cards = NULL, .card_count = inv->card_count };
    ret->cards = mem_new(inv->card_count * sizeof *ret->cards);
    for (size_t i = 0; i < inv->card_count; i++) {
        ret->cards[i] = inv->cards[i];
        card_copy(&inv->cards[i].card, &ret->cards[i].card);
        ret->cards[i].slices = mem_dup(inv->cards[i].slices, inv->cards[i].card.slice_count *
                                                                 sizeof *inv->cards[i].slices);
    }
}

/* No two slices share a unit, and no sum is beyond the board. */
static void check_card(const struct card *c)
{
    struct occupancy o = { 0 };
    for (size_t i = 0; i < c->slice_count; i++) {
        const struct profile *p = board_profile_by_id(&c->board, c->slices[i].profile_id);
        assert_non_null(p);
        assert_true(occupancy_fits(&o, &c->board, p, c->slices[i].start));
        occupancy_add(&o, &c->board, p, c->slices[i].start);
    }
    assert_true(c->mig_now || c->slice_count == 0);
}

static const struct slice *at_place(const struct card *c, uint32_t profile_id, uint32_t start)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].profile_id == profile_id && c->slices[i].start == start)
            return &c->slices[i];
    return NULL;
}

static void check_untouched(const struct inventory *before, const struct inventory *after)
{
    for (size_t i = 0; i < before->card_count; i++) {
        const struct inventory_card *was = &before->cards[i];
        const struct card *is = &after->cards[i].card;
        if (was->hold.kind != HOLD_NONE)
            assert_int_equal(was->card.mig_now, is->mig_now);
        for (size_t k = 0; k < was->card.slice_count; k++) {
            const struct slice *s = &was->card.slices[k];
            if (was->slices[k].hold.kind == HOLD_NONE && !was->slices[k].adopted)
                continue;
            const struct slice *now = at_place(is, s->profile_id, s->start);
            assert_non_null(now);
            assert_int_equal(now->gi, s->gi);
        }
    }
}

static void check_placed(const struct inventory *before, const struct inventory *after,
                         const struct placed *p)
{
    const struct inventory_card *was = inventory_card(before, p->ordinal);
    const struct card *is = &inventory_card(after, p->ordinal)->card;
    assert_int_equal(was->hold.kind, HOLD_NONE);
    assert_int_equal(was->pool, POOL_QUEUE);
    assert_int_equal(was->card.health, CARD_OK);
    if (p->whole) {
        assert_false(is->mig_now);
        return;
    }
    const struct slice *s = at_place(is, p->profile_id, p->start);
    assert_non_null(s);
    assert_true(s->full);
    const struct slice *old = at_place(&was->card, p->profile_id, p->start);
    if (p->gi != NOT_AN_INSTANCE) {
        assert_non_null(old);
        assert_int_equal(old->gi, p->gi);
        assert_string_equal(old->uuid, p->uuid);
        assert_int_equal(was->slices[old - was->card.slices].hold.kind, HOLD_NONE);
    }
}

static void check_distinct(const struct place *place, const struct request *r)
{
    assert_int_equal(place->count, r->count);
    for (size_t i = 0; i < place->count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct placed *a = &place->items[i];
            const struct placed *b = &place->items[k];
            bool same_card = a->ordinal == b->ordinal;
            assert_false(same_card && (a->whole || b->whole || r->spread));
            assert_false(same_card && a->start < b->start + b->units &&
                         b->start < a->start + a->units);
        }
}

static void walk(struct inventory *inv, const struct step *s, struct step *done)
{
    *done = *s;
    if (s->kind == STEP_GI_CREATE || s->kind == STEP_CI_CREATE)
        done->gi = 20 * s->units + s->start;
    if (s->kind == STEP_CI_CREATE) {
        done->ci = 0;
        snprintf(done->uuid, sizeof done->uuid, "MIG-%u-%u-0", s->ordinal, done->gi);
    }
    card_expect(&inventory_uuid(inv, s->card_uuid)->card, done);
}

static void check_same(const struct inventory *a, const struct inventory *b)
{
    for (size_t i = 0; i < a->card_count; i++) {
        assert_int_equal(a->cards[i].card.mig_now, b->cards[i].card.mig_now);
        assert_int_equal(a->cards[i].card.slice_count, b->cards[i].card.slice_count);
        for (size_t k = 0; k < a->cards[i].card.slice_count; k++) {
            const struct slice *s = &a->cards[i].card.slices[k];
            const struct slice *t = at_place(&b->cards[i].card, s->profile_id, s->start);
            assert_non_null(t);
            assert_int_equal(s->gi, t->gi);
            assert_int_equal(s->ci, t->ci);
        }
    }
}

static void check_now(const struct inventory *before, const struct request *r,
                      const struct place *place, struct plan *plan)
{
    AUTO(inventory) struct inventory after;
    struct step reverse[STEP_REVERSE_MAX], done;
    copy_inventory(before, &after);
    check_distinct(place, r);
    for (size_t i = 0; i < plan->count; i++) {
        walk(&after, &plan->steps[i], &done);
        plan->steps[i] = done;
    }
    for (size_t i = 0; i < after.card_count; i++)
        check_card(&after.cards[i].card);
    check_untouched(before, &after);
    for (size_t i = 0; i < place->count; i++)
        check_placed(before, &after, &place->items[i]);
    for (size_t i = plan->count; i > 0; i--)
        for (size_t k = 0, n = step_reverse(&plan->steps[i - 1], false, reverse); k < n; k++)
            walk(&after, &reverse[k], &done);
    check_same(before, &after);
}

/* One slice of a profile could be had by destroying idle ones on a card that is cut. */
static bool could_be_cut(const struct inventory *inv, const char *profile)
{
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct inventory_card *c = &inv->cards[i];
        const struct board *b = &c->card.board;
        const struct profile *p = board_profile_by_name(b, profile);
        struct occupancy o = { 0 };
        if (!p || c->pool != POOL_QUEUE || c->card.health != CARD_OK || !c->card.mig_now ||
            c->mode == MODE_WHOLE)
            continue;
        for (size_t k = 0; k < c->card.slice_count; k++)
            if (c->slices[k].hold.kind != HOLD_NONE || c->slices[k].adopted)
                occupancy_add(&o, b, board_profile_by_id(b, c->card.slices[k].profile_id),
                              c->card.slices[k].start);
        for (uint32_t k = 0; k < p->start_count; k++)
            if (occupancy_fits(&o, b, p, p->starts[k]))
                return true;
    }
    return false;
}

static void one_round(struct dice *d)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(place) struct place place = { .items = NULL };
    AUTO(plan) struct plan plan = PLAN_INIT;
    struct err e = ERR_INIT;
    struct place_rules rules = { .mode_hold_us = CLOCK_MINUTE };
    struct now now = { .boot_us = CLOCK_HOUR };
    random_inventory(d, &inv);
    struct request r = random_request(d, &inv);
    switch (place_request(&inv, &r, &rules, now, &place, &plan, &e)) {
    case PLACE_NOW:
        check_now(&inv, &r, &place, &plan);
        assert_int_equal(place_possible(&inv, &r, &rules, &e), PLACE_LATER);
        break;
    case PLACE_LATER:
    case PLACE_NEVER:
        assert_true(e.text[0] != '\0');
        if (r.kind == REQUEST_SLICES && r.count == 1)
            assert_false(could_be_cut(&inv, r.profile));
        break;
    }
}

static void test_places_are_sound(void **state)
{
    (void)state;
    struct dice d = dice_new(20261130);
    for (int i = 0; i < ROUNDS; i++)
        one_round(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_places_are_sound) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
