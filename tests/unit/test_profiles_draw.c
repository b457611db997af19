/* cli/profiles_draw.h: how many slices could be had now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/profiles_draw.h"

static struct profile *add_profile(struct board *b, const char *name, uint32_t slices,
                                   uint32_t units, uint32_t max)
{
    struct profile *p = &b->profiles[b->profile_count++];
    *p = (struct profile){ .id = b->profile_count, .slices = slices, .units = units, .max = max };
    memcpy(p->name, name, strlen(name) + 1);
    p->mem_bytes = units * (UINT64_C(10) << 30);
    for (uint32_t u = 0; u + units <= 8; u += units == 4 ? 4 : units == 2 ? 2 : 1)
        if (units > 1 || u < 7)
            p->starts[p->start_count++] = (uint8_t)u;
    return p;
}

struct card_of_test {
    struct inventory_card card;
    const struct profile *one, *two, *three, *seven;
};

static int set_up(void **state)
{
    struct card_of_test *t = mem_new(sizeof *t);
    struct board *b = &t->card.card.board;
    b->units = 8;
    b->slices = 7;
    t->one = add_profile(b, "1g.10gb", 1, 1, 7);
    t->two = add_profile(b, "2g.20gb", 2, 2, 3);
    t->three = add_profile(b, "3g.40gb", 3, 4, 2);
    t->seven = add_profile(b, "7g.80gb", 7, 8, 1);
    t->card.owners_known = true;
    t->card.pool = POOL_QUEUE;
    t->card.mode = MODE_SLICES;
    t->card.card.mig_capable = t->card.card.mig_now = t->card.card.mig_pending = true;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct card_of_test *t = *state;
    card_done(&t->card.card);
    free(t->card.slices);
    free(t);
    return 0;
}

/* A slice of two units at 4; held, or idle. */
static void add_slice(struct card_of_test *t, bool held)
{
    struct slice *s = card_add_slice(&t->card.card);
    *s = (struct slice){ .profile_id = t->two->id, .start = 4, .units = 2, .full = true };
    t->card.slices = mem_new(sizeof *t->card.slices);
    t->card.slices[0].hold.kind = held ? HOLD_JOB : HOLD_NONE;
}

static void test_an_empty_card(void **state)
{
    struct card_of_test *t = *state;
    assert_int_equal(profiles_free(&t->card, t->one), 7);
    assert_int_equal(profiles_free(&t->card, t->two), 3); /* seven compute slices, not eight */
    assert_int_equal(profiles_free(&t->card, t->three), 2);
    assert_int_equal(profiles_free(&t->card, t->seven), 1);
}

static void test_what_somebody_has_is_in_the_way(void **state)
{
    struct card_of_test *t = *state;
    add_slice(t, true);
    assert_int_equal(profiles_free(&t->card, t->one), 5);
    assert_int_equal(profiles_free(&t->card, t->two), 2);
    assert_int_equal(profiles_free(&t->card, t->three), 1);
    assert_int_equal(profiles_free(&t->card, t->seven), 0);
}

static void test_idle_slices_are_not(void **state)
{
    struct card_of_test *t = *state;
    add_slice(t, false);
    assert_int_equal(profiles_free(&t->card, t->seven), 1);
}

static void test_cards_that_take_nothing(void **state)
{
    struct card_of_test *t = *state;
    t->card.quarantined = true;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.quarantined = false;
    t->card.card.health = CARD_LOST;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.card.health = CARD_OK;
    t->card.card.mig_now = t->card.card.mig_pending = false;
    t->card.mode = MODE_WHOLE;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.mode = MODE_AUTO;
    assert_int_equal(profiles_free(&t->card, t->one), 7);
    t->card.hold.kind = HOLD_FOREIGN;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
}

static void test_cards_of_other_pools_give_nothing(void **state)
{
    struct card_of_test *t = *state;
    t->card.pool = POOL_OFF;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.pool = POOL_SLURM;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.owners_known = false; /* no daemon: what there is room for */
    assert_int_equal(profiles_free(&t->card, t->one), 7);
}

static void test_what_is_reserved_or_waits_for_a_reset_gives_nothing(void **state)
{
    struct card_of_test *t = *state;
    memcpy(t->card.reserved, "maintenance", sizeof "maintenance");
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.reserved[0] = '\0';
    t->card.card.mig_pending = false;
    assert_int_equal(profiles_free(&t->card, t->one), 0);
}

static void test_of_a_kept_layout_what_is_there_and_idle(void **state)
{
    struct card_of_test *t = *state;
    add_slice(t, false);
    t->card.laid_out = true;
    assert_int_equal(profiles_free(&t->card, t->two), 1);
    assert_int_equal(profiles_free(&t->card, t->one), 0);
    t->card.slices[0].hold.kind = HOLD_JOB;
    assert_int_equal(profiles_free(&t->card, t->two), 0);
}

static void test_an_adopted_slice_is_used_and_never_destroyed(void **state)
{
    struct card_of_test *t = *state;
    add_slice(t, false);
    t->card.slices[0].adopted = true;
    assert_int_equal(profiles_free(&t->card, t->two), 3);
    assert_int_equal(profiles_free(&t->card, t->one), 5);
    assert_int_equal(profiles_free(&t->card, t->seven), 0);
}

/* One decoder for two; 2g takes one, and only two of its kind may be there. */
static void test_engines_and_the_number_of_instances_are_limits(void **state)
{
    struct card_of_test *t = *state;
    struct board *b = &t->card.card.board;
    add_slice(t, true);
    b->profiles[1].max = 2;
    assert_int_equal(profiles_free(&t->card, t->two), 1);
    b->decoders = 1;
    b->profiles[1].decoders = b->profiles[2].decoders = 1;
    assert_int_equal(profiles_free(&t->card, t->two), 0);
    assert_int_equal(profiles_free(&t->card, t->three), 0);
    assert_int_equal(profiles_free(&t->card, t->one), 5);
}

static void test_the_table(void **state)
{
    struct card_of_test *t = *state;
    const struct inventory_card *cards[] = { &t->card, &t->card };
    const struct screen file = { .tty = false };
    AUTO(text) struct text got = TEXT_INIT;
    t->card.card.board.profile_count = 2;
    profiles_draw(&t->card.card.board, cards, 2, &file, &got);
    assert_string_equal(got.buf,
                        "ID  PROFILE  SLICES    MEMORY  UNITS  MAX  FREE  STARTS         ENGINES\n"
                        " 1  1g.10gb       1  10.0 GiB      1    7    14  0,1,2,3,4,5,6  -\n"
                        " 2  2g.20gb       2  20.0 GiB      2    3     6  0,2,4,6        -\n");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_an_empty_card),
        TEST(test_what_somebody_has_is_in_the_way),
        TEST(test_idle_slices_are_not),
        TEST(test_cards_that_take_nothing),
        TEST(test_cards_of_other_pools_give_nothing),
        TEST(test_what_is_reserved_or_waits_for_a_reset_gives_nothing),
        TEST(test_of_a_kept_layout_what_is_there_and_idle),
        TEST(test_an_adopted_slice_is_used_and_never_destroyed),
        TEST(test_engines_and_the_number_of_instances_are_limits),
        TEST(test_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
