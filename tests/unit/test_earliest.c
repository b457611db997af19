#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "plan/earliest.h"
#include "plan/moments.h"
#include "server.h"

/* One A100 that gives slices: a 4g until 100, a 3g until 200, and now is 10. */
static struct inventory inv;
static const struct now now = { .boot_us = 10 };
static struct place_kept kept;
static int64_t kept_from, kept_until, asked_for;

static void hold(struct inventory_card *c, const char *profile, uint32_t start, int64_t until_us)
{
    card_cut(c, profile, start, 0)->hold =
        (struct hold){ .kind = HOLD_JOB, .job_id = 1, .until_boot_us = until_us };
}

static int make_card(void **state)
{
    (void)state;
    inv = (struct inventory){ .cards = NULL };
    struct inventory_card *c = inventory_add(&inv, board_a100_80());
    c->mode = MODE_SLICES;
    card_turn(c, true);
    hold(c, "4g.40gb", 0, 100);
    hold(c, "3g.40gb", 4, 200);
    kept = (struct place_kept){ .whole = false };
    kept_from = kept_until = INT64_MAX;
    asked_for = 50;
    return 0;
}

static int end_card(void **state)
{
    (void)state;
    inventory_done(&inv);
    return 0;
}

static const struct place_kept *keep(void *arg, int64_t at_boot_us)
{
    (void)arg;
    return at_boot_us < kept_until && at_boot_us + asked_for > kept_from ? &kept : NULL;
}

/* The first moment before that; -1: none. */
static int64_t earliest(const char *profile, int64_t before_us, char *ret_words, size_t size)
{
    struct request r = ask_slices(profile, 1);
    struct place_rules rules = { .bans = NULL };
    struct place_ahead a = { .kept = keep, .also = &kept_until, .before_us = before_us };
    a.also_count = kept_until < INT64_MAX;
    struct place place;
    int64_t when;
    AUTO(text) struct text t = TEXT_INIT;
    if (!place_earliest(&inv, &r, &rules, now, &a, &place, &when))
        return -1;
    place_add_text(&t, &place);
    (void)snprintf(ret_words, size, "%s", t.buf);
    place_done(&place);
    return when;
}

static void it_goes_where_the_first_ends_that_makes_room(void **state)
{
    (void)state;
    char words[64];
    assert_int_equal(earliest("4g.40gb", INT64_MAX, words, sizeof words), 100);
    assert_string_equal(words, "gpu0/4g.40gb@0");
    assert_int_equal(earliest("7g.80gb", INT64_MAX, words, sizeof words), 200);
}

static void what_is_kept_for_others_is_gone_round(void **state)
{
    (void)state;
    char words[64];
    kept_from = 120;
    kept_until = 300;
    kept.more.units = 0x0f;
    assert_int_equal(earliest("3g.40gb", INT64_MAX, words, sizeof words), 200);
    assert_string_equal(words, "gpu0/3g.40gb@4");
    assert_int_equal(earliest("4g.40gb", INT64_MAX, words, sizeof words), 300);
    asked_for = 20; /* is over by then */
    assert_int_equal(earliest("4g.40gb", INT64_MAX, words, sizeof words), 100);
}

static void sums_that_are_kept_count_too(void **state)
{
    (void)state;
    char words[64];
    kept_from = 0;
    kept_until = 500;
    kept.more.slices = 1; /* 3 and 4 and one more are 8 of 7 */
    assert_int_equal(earliest("4g.40gb", INT64_MAX, words, sizeof words), 200);
}

static void what_is_not_sooner_is_not_told(void **state)
{
    (void)state;
    char words[64];
    assert_int_equal(earliest("4g.40gb", 100, words, sizeof words), -1);
    assert_int_equal(earliest("4g.40gb", 101, words, sizeof words), 100);
}

static void who_has_no_limit_is_never_out_of_the_way(void **state)
{
    (void)state;
    char words[64];
    inv.cards[0].slices[1].hold.until_boot_us = 0;
    assert_int_equal(earliest("7g.80gb", INT64_MAX, words, sizeof words), -1);
}

static void who_is_past_his_limit_may_go_any_moment(void **state)
{
    (void)state;
    char words[64];
    inv.cards[0].slices[0].hold.until_boot_us = 5;
    assert_int_equal(earliest("4g.40gb", INT64_MAX, words, sizeof words), now.boot_us);
}

static void moments_are_ends_and_what_a_mode_waits_for(void **state)
{
    (void)state;
    inv.cards[0].idle_since_boot_us = 0;
    AUTO(moments) struct moments m = moments_list(&inv, 30, now);
    static const int64_t expected[] = { 11, 100, 130, 200, 230 };
    assert_int_equal(m.count, 5);
    assert_memory_equal(m.list, expected, sizeof expected);
}

#define EARLIEST(name) cmocka_unit_test_setup_teardown(name, make_card, end_card)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EARLIEST(it_goes_where_the_first_ends_that_makes_room),
        EARLIEST(what_is_kept_for_others_is_gone_round),
        EARLIEST(sums_that_are_kept_count_too),
        EARLIEST(what_is_not_sooner_is_not_told),
        EARLIEST(who_has_no_limit_is_never_out_of_the_way),
        EARLIEST(who_is_past_his_limit_may_go_any_moment),
        EARLIEST(moments_are_ends_and_what_a_mode_waits_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
