#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layouts.h"
#include "maximal.h"
#include "plan/occupancy.h"

static void becomes(const struct inventory_card *c, const char *wish, const char *expected)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    struct inventory_card after;
    layouts_plan(c, wish, &ch);
    if (ch.verdict > LAYOUT_TO_DO)
        fail_msg("%s: %s", wish, ch.why);
    layouts_after(c, &ch.steps, &after);
    auto_free char *text = layouts_text(&after.card);
    assert_string_equal(text, expected);
    AUTO(layout_change) struct layout_change again = LAYOUT_CHANGE_INIT;
    layouts_plan(&after, wish, &again);
    assert_int_equal(again.verdict, LAYOUT_AS_WANTED);
    assert_int_equal(again.steps.count, 0);
    layouts_after_done(&after);
}

static void refuses(const struct inventory_card *c, const char *wish, enum layout_verdict verdict,
                    const char *why, const char *nearest)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    layouts_plan(c, wish, &ch);
    assert_string_equal(ch.why, why);
    assert_string_equal(ch.nearest, nearest);
    assert_int_equal(ch.verdict, verdict);
    assert_int_equal(ch.steps.count, 0);
}

static void an_unknown_profile_is_invalid_and_the_real_ones_are_listed(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    for (uint32_t at = 0; at < 7; at++)
        (void)card_cut(c, "1g.10gb", at, 0);
    refuses(c, "slices: {1g.5gb: 7}", LAYOUT_INVALID,
            "this card has no 1g.5gb; A100-SXM4-80GB has 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, "
            "3g.40gb, 4g.40gb, 7g.80gb. Nearest: 1g.10gb",
            "");
    refuses(c, "slices: [2g.20gb@1]", LAYOUT_INVALID,
            "2g.20gb cannot begin at 1; it begins at 0, 2 or 4", "");
}

static void what_is_busy_stays(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-40gb");
    (void)card_cut(c, "1g.5gb", 2, 41);
    (void)card_cut(c, "2g.10gb", 0, 0);
    (void)card_cut(c, "3g.20gb", 4, 0);
    uint32_t gi = c->card.slices[1].gi;
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: {1g.5gb: 7}", &ch);
    assert_int_equal(ch.verdict, LAYOUT_TO_DO);
    assert_int_equal(ch.kept, 1);
    assert_int_equal(ch.destroyed, 2);
    assert_int_equal(ch.moved, 0);
    assert_int_equal(ch.created, 6);
    for (size_t i = 0; i < ch.steps.count; i++)
        assert_true(ch.steps.steps[i].start != 2 && ch.steps.steps[i].gi != gi);
    becomes(c, "slices: {1g.5gb: 7}",
            "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 1g.5gb@4 1g.5gb@5 1g.5gb@6");
    refuses(c, "slices: {7g.40gb: 1}", LAYOUT_BUSY,
            "in use: gpu0/1g.5gb@2 (#41 alice); possible when that ends", "");
    refuses(c, "slices: {2g.10gb: 3}", LAYOUT_BUSY,
            "in use: gpu0/1g.5gb@2 (#41 alice); possible when that ends", "");
    refuses(c, "slices: {1g.5gb: 1, 4g.20gb: 1}", LAYOUT_BUSY,
            "in use: gpu0/1g.5gb@2 (#41 alice); possible when that ends", "1g.5gb");
}

static void the_order_of_a_wish_means_nothing(void **state)
{
    (void)state;
    static const char *const orders[] = { "3g.20gb, 2g.10gb, 1g.5gb, 1g.5gb",
                                          "1g.5gb, 1g.5gb, 2g.10gb, 3g.20gb",
                                          "1g.5gb, 2g.10gb, 1g.5gb, 3g.20gb",
                                          "2g.10gb, 3g.20gb, 1g.5gb, 1g.5gb",
                                          "1g.5gb, 3g.20gb, 2g.10gb, 1g.5gb" };
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-40gb");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        auto_free char *wish = text_fmt("slices: [%s]", orders[i]);
        becomes(c, wish, "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4");
    }
    becomes(c, "slices: [3g.20gb, 4g.20gb]", "4g.20gb@0 3g.20gb@4");
    becomes(c, "slices: [4g.20gb, 3g.20gb]", "4g.20gb@0 3g.20gb@4");
}

static void sums_beyond_the_card_are_told(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-40gb");
    refuses(c, "slices: {1g.10gb: 4, 1g.5gb: 3}", LAYOUT_IMPOSSIBLE,
            "4×1g.10gb + 3×1g.5gb: needs 11 of 8 memory units", "3×1g.10gb + 2×1g.5gb");
    refuses(c, "slices: {4g.20gb: 1, 2g.10gb: 1, 1g.5gb: 2}", LAYOUT_IMPOSSIBLE,
            "4g.20gb + 2g.10gb + 2×1g.5gb: needs 8 of 7 compute slices",
            "4g.20gb + 2g.10gb + 1g.5gb");
    refuses(c, "slices: {4g.20gb: 2}", LAYOUT_IMPOSSIBLE, "2×4g.20gb: needs 8 of 7 compute slices",
            "4g.20gb");
    refuses(c, "slices: {1g.5gb+me: 2}", LAYOUT_IMPOSSIBLE,
            "2×1g.5gb+me: needs 2 1g.5gb+me, and a card holds at most 1", "1g.5gb+me");
    refuses(c, "slices: {3g.20gb@0: 1, 1g.5gb@3: 1}", LAYOUT_IMPOSSIBLE,
            "3g.20gb + 1g.5gb: 3g.20gb@0 and 1g.5gb@3 would have the same memory units", "3g.20gb");
    refuses(c, "slices: {1g.5gb@6: 1, 1g.10gb: 4}", LAYOUT_IMPOSSIBLE,
            "4×1g.10gb + 1g.5gb: needs 9 of 8 memory units", "4×1g.10gb");
    refuses(c, "slices: {1g.5gb@0: 1, 1g.5gb@3: 1, 3g.20gb: 1, 2g.10gb: 1}", LAYOUT_IMPOSSIBLE,
            "3g.20gb + 2g.10gb + 2×1g.5gb: the sums fit, and no arrangement of them does, since "
            "each profile begins only at its own places",
            "3g.20gb + 2g.10gb + 1g.5gb");
    becomes(c, "slices: {1g.10gb: 3, 1g.5gb: 2}",
            "1g.10gb@0 1g.10gb@2 1g.5gb@4 1g.5gb@5 1g.10gb@6");
}

static void all_engines_count(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "rtx-pro-6000");
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: [1g.24gb+me.all, 1g.24gb-me, 1g.24gb-me, 1g.24gb-me]", &ch);
    assert_int_equal(ch.verdict, LAYOUT_TO_DO);
    refuses(c, "slices: [1g.24gb+me.all, 1g.24gb]", LAYOUT_IMPOSSIBLE,
            "1g.24gb + 1g.24gb+me.all: needs 5 of 4 decoders", "1g.24gb");
}

static void other_spellings_are_understood_with_a_warning(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: [7g.79gb]", &ch);
    assert_int_equal(ch.verdict, LAYOUT_TO_DO);
    assert_string_equal(ch.warning, "7g.79gb is called 7g.80gb here");
    assert_string_equal(ch.steps.steps[0].profile, "7g.80gb");
    becomes(c, "slices: [MIG 3G.39GB]", "3g.40gb@4");
    c = layouts_card(&inv, "gb200-186gb"); /* called so before it was for sale */
    becomes(c, "slices: [3g.95gb, 4g.95gb]", "4g.93gb@0 3g.93gb@4");
    becomes(c, "slices: [7g.189gb]", "7g.186gb@0");
    c = layouts_card(&inv, "b200-180gb");
    AUTO(layout_change) struct layout_change other = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: [7g.189gb]", &other);
    assert_int_equal(other.verdict, LAYOUT_INVALID);
}

static void parts_share_a_gpu_instance(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    becomes(c, "slices: {1c.3g.40gb: 3}", "1c.3g.40gb@4.0 1c.3g.40gb@4.1 1c.3g.40gb@4.2");
    becomes(c, "slices: {1c.3g.40gb: 2, 2c.3g.40gb: 2}",
            "2c.3g.40gb@0.0 1c.3g.40gb@0.2 2c.3g.40gb@4.0 1c.3g.40gb@4.2");
    becomes(c, "slices: [1c.4g.40gb@0.3, 2c.4g.40gb@0.0]", "2c.4g.40gb@0.0 1c.4g.40gb@0.3");
    refuses(c, "slices: [2c.3g.40gb@0.0, 2c.3g.40gb@0.0]", LAYOUT_INVALID,
            "the compute instances of 3g.40gb@0 do not fit into it together", "");
    refuses(c, "slices: [2c.3g.40gb@0.1]", LAYOUT_INVALID,
            "2c.3g.40gb cannot begin at compute slice 1 of its GPU instance", "");
    refuses(c, "slices: [5c.7g.80gb]", LAYOUT_INVALID,
            "7g.80gb cannot hold a compute instance of 5 slices", "");
}

static void an_instance_without_a_compute_instance_is_completed(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    (void)card_cut(c, "2g.20gb", 2, 0);
    c->card.slices[0].ci = NOT_AN_INSTANCE;
    c->card.slices[0].ci_slices = 0;
    c->card.slices[0].full = false;
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: [2g.20gb]", &ch);
    assert_int_equal(ch.steps.count, 1);
    assert_int_equal(ch.steps.steps[0].kind, STEP_CI_CREATE);
    assert_int_equal(ch.steps.steps[0].gi, c->card.slices[0].gi);
    AUTO(layout_change) struct layout_change none = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: []", &none);
    assert_int_equal(none.steps.count, 1);
    assert_int_equal(none.steps.steps[0].kind, STEP_GI_DESTROY);
}

static void idle_slices_move_only_where_they_must(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    (void)card_cut(c, "1g.10gb", 0, 0);
    (void)card_cut(c, "1g.10gb", 5, 0);
    AUTO(layout_change) struct layout_change stay = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: {1g.10gb: 2, 2g.20gb: 1}", &stay);
    assert_int_equal(stay.destroyed, 0);
    AUTO(layout_change) struct layout_change move = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: {1g.10gb: 2, 4g.40gb: 1}", &move);
    assert_int_equal(move.destroyed, 1);
    assert_int_equal(move.moved, 1);
    assert_int_equal(move.kept, 1);
    becomes(c, "slices: {1g.10gb: 2, 4g.40gb: 1}", "4g.40gb@0 1g.10gb@4 1g.10gb@5");
}

static void profiles_that_are_not_known_are_left_alone(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    (void)card_cut(c, "2g.20gb", 4, 0);
    c->card.slices[0].profile_id = 99;
    becomes(c, "slices: {1g.10gb: 2}", "1g.10gb@0 1g.10gb@1 profile-99@4");
    refuses(c, "slices: {7g.80gb: 1}", LAYOUT_IMPOSSIBLE,
            "7g.80gb: the slice at 4, of a profile that this version does not know, is left "
            "alone, and beside it that does not fit",
            "");
    refuses(c, "mode: whole", LAYOUT_INVALID,
            "it has slices of a profile that this version does not know; they are left alone, so "
            "MIG stays on",
            "");
}

static void modes_are_turned_when_nobody_is_there(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    (void)card_cut(c, "1g.10gb", 0, 0);
    AUTO(layout_change) struct layout_change off = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "mode: whole", &off);
    assert_int_equal(off.turn, 0);
    assert_int_equal(off.steps.count, 3);
    assert_int_equal(off.steps.steps[2].kind, STEP_MIG_OFF);
    c->slices[0].hold = (struct hold){ .kind = HOLD_JOB, .job_id = 5 };
    refuses(c, "mode: whole", LAYOUT_BUSY,
            "in use: gpu0/1g.10gb@0 (#5); MIG can be turned off when that ends", "");
    AUTO(inventory) struct inventory other = { .cards = NULL };
    c = layouts_card(&other, "a100-80gb");
    card_turn(c, false);
    AUTO(layout_change) struct layout_change on = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "slices: [7g.80gb]", &on);
    assert_int_equal(on.turn, 1);
    assert_int_equal(on.steps.steps[0].kind, STEP_MIG_ON);
    assert_int_equal(on.steps.count, 3);
    card_hold(c, 58, 0);
    refuses(c, "slices: [7g.80gb]", LAYOUT_BUSY,
            "in use: gpu0 (#58 carol); MIG can be turned on when that ends", "");
    AUTO(layout_change) struct layout_change same = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "mode: whole", &same);
    assert_int_equal(same.verdict, LAYOUT_AS_WANTED);
}

static void a_card_that_cannot_is_told(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct inventory_card *c = layouts_card(&inv, "rtx4090");
    refuses(c, "slices: [1g.10gb]", LAYOUT_INVALID,
            "GeForce RTX 4090 cannot be cut (no MIG); mode: whole is what it can be", "");
    AUTO(layout_change) struct layout_change same = LAYOUT_CHANGE_INIT;
    layouts_plan(c, "mode: whole", &same);
    assert_int_equal(same.verdict, LAYOUT_AS_WANTED);
    c->card.health = CARD_LOST;
    refuses(c, "mode: whole", LAYOUT_UNREACHABLE, "the card is lost", "");
    c->card.health = CARD_RESET_REQUIRED;
    refuses(c, "mode: whole", LAYOUT_NEEDS_RESET,
            "the driver wants a reset of it before anything else", "");
}

/* ---- every board ---- */

/* The exact layout, and the same profiles as counts, from an empty card. */
static void reach(const struct maximal *m, void *card)
{
    AUTO(text) struct text counts = TEXT_INIT;
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    auto_free char *list = maximal_text(m, ", ");
    auto_free char *exact = text_fmt("slices: [%s]", list);
    auto_free char *expected = maximal_text(m, " ");
    text_add(&counts, "slices: [");
    for (size_t i = 0; i < m->count; i++)
        text_addf(&counts, "%s%s", i ? ", " : "", m->profiles[i]->name);
    text_add(&counts, "]");
    becomes(card, exact, expected);
    layouts_plan(card, counts.buf, &ch);
    assert_int_equal(ch.verdict, LAYOUT_TO_DO);
    assert_int_equal(ch.created, m->count);
}

static void every_maximal_layout_of_every_board_is_reached(void **state)
{
    (void)state;
    AUTO(field_words) struct field_words keys = { .words = NULL };
    assert_int_equal(board_keys(&keys, NULL), 0);
    size_t cut = 0;
    for (size_t i = 0; i < keys.count; i++) {
        AUTO(inventory) struct inventory inv = { .cards = NULL };
        struct inventory_card *c = layouts_card(&inv, keys.words[i]);
        if (!c->card.mig_capable)
            continue;
        size_t found = maximal_each(&c->card.board, reach, c);
        printf("# %s: %zu maximal layouts\n", keys.words[i], found);
        assert_true(found > 0);
        cut++;
    }
    assert_true(cut >= 10);
}

/* ---- all orders on an empty A100 ---- */

static const char *const five[] = { "1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb" };

struct orders {
    struct inventory_card *card;
    size_t order[8], depth, count;
};

static char *placed(const struct inventory_card *c, const size_t *order, size_t n)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    AUTO(text) struct text wish = TEXT_INIT;
    struct inventory_card after;
    text_add(&wish, "slices: [");
    for (size_t i = 0; i < n; i++)
        text_addf(&wish, "%s%s", i ? ", " : "", five[order[i]]);
    text_add(&wish, "]");
    layouts_plan(c, wish.buf, &ch);
    if (ch.verdict != LAYOUT_TO_DO)
        return NULL;
    layouts_after(c, &ch.steps, &after);
    char *text = layouts_text(&after.card);
    layouts_after_done(&after);
    return text;
}

/* Every sequence whose set fits, and that sorted gives the same. */
static void all_orders(struct orders *o)
{
    for (size_t i = 0; i < 5; i++) {
        size_t sorted[8];
        o->order[o->depth++] = i;
        memcpy(sorted, o->order, sizeof sorted);
        for (size_t a = 0; a < o->depth; a++)
            for (size_t b = a + 1; b < o->depth; b++)
                if (sorted[b] < sorted[a]) {
                    size_t swap = sorted[a];
                    sorted[a] = sorted[b];
                    sorted[b] = swap;
                }
        auto_free char *text = placed(o->card, o->order, o->depth);
        auto_free char *same = placed(o->card, sorted, o->depth);
        assert_int_equal(text == NULL, same == NULL);
        if (text) {
            assert_string_equal(text, same);
            o->count++;
            all_orders(o);
        }
        o->depth--;
    }
}

static void every_creation_order_on_an_empty_a100_is_placed(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct orders o = { .card = layouts_card(&inv, "a100-40gb") };
    all_orders(&o);
    assert_int_equal(o.count, 113);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_profile_is_invalid_and_the_real_ones_are_listed),
        cmocka_unit_test(what_is_busy_stays),
        cmocka_unit_test(the_order_of_a_wish_means_nothing),
        cmocka_unit_test(sums_beyond_the_card_are_told),
        cmocka_unit_test(all_engines_count),
        cmocka_unit_test(other_spellings_are_understood_with_a_warning),
        cmocka_unit_test(parts_share_a_gpu_instance),
        cmocka_unit_test(an_instance_without_a_compute_instance_is_completed),
        cmocka_unit_test(idle_slices_move_only_where_they_must),
        cmocka_unit_test(profiles_that_are_not_known_are_left_alone),
        cmocka_unit_test(modes_are_turned_when_nobody_is_there),
        cmocka_unit_test(a_card_that_cannot_is_told),
        cmocka_unit_test(every_maximal_layout_of_every_board_is_reached),
        cmocka_unit_test(every_creation_order_on_an_empty_a100_is_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
