#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/shares_draw.h"

static void grow(struct share_view *v)
{
    *share_view_add(v) = (struct share_row){ .account = "lab",
                                             .inside = "users",
                                             .weight = 3,
                                             .share = 0.75,
                                             .used_card_us = 2.5 * CLOCK_HOUR,
                                             .usage = 0.5,
                                             .level = 1.5,
                                             .factor = 1,
                                             .rank = 1,
                                             .running = 2,
                                             .pending = 1 };
    *share_view_add(v) = (struct share_row){ .account = "lab",
                                             .user = "alice",
                                             .inside = "users",
                                             .depth = 1,
                                             .weight = 1,
                                             .share = 1,
                                             .level = INFINITY,
                                             .rank = 1 };
    *share_view_add(v) =
        (struct share_row){ .account = "sims", .inside = "las", .weight = 1, .share = 0.25 };
}

static void the_tree_is_drawn_as_a_table(void **state)
{
    (void)state;
    struct share_view v = { .rows = NULL };
    struct screen plain = { .width = 0 };
    AUTO(text) struct text t = TEXT_INIT;
    grow(&v);
    shares_draw(&v, &plain, &t);
    assert_string_equal(
        t.buf, "ACCOUNT / USER  WEIGHT   SHARE  CARD-H   USED   LEVEL  RANK  RUNNING  WAITING\n"
               "lab                  3   75.0%    2.50  50.0%   1.500     1        2        1\n"
               "  alice              1  100.0%    0.00   0.0%  unused     1        0        0\n"
               "sims (las)           1   25.0%    0.00   0.0%   0.000     -        0        0\n");
    share_view_done(&v);
}

static void json_there_and_back_is_the_same(void **state)
{
    (void)state;
    struct share_view v = { .rows = NULL, .half_life_us = CLOCK_DAY }, back;
    grow(&v);
    auto_json json_t *j = share_view_to_json(&v);
    assert_true(json_is_null(
        json_object_get(json_array_get(json_object_get(j, "shares"), 1), "level_fairness")));
    assert_int_equal(share_view_from_json(j, &back, NULL), 0);
    assert_int_equal(back.count, 3);
    assert_int_equal(back.half_life_us, CLOCK_DAY);
    assert_string_equal(back.rows[1].user, "alice");
    assert_true(isinf(back.rows[1].level) && back.rows[0].level > 1.49);
    assert_null(back.rows[0].user);
    assert_int_equal(back.rows[0].pending, 1);
    assert_int_equal(back.rows[2].rank, 0);
    share_view_done(&back);
    share_view_done(&v);
    auto_json json_t *bad = json_pack("{s:[{s:i}]}", "shares", "account", 1);
    assert_true(share_view_from_json(bad, &back, NULL) < 0);
}

static void an_empty_tree_says_so(void **state)
{
    (void)state;
    struct share_view v = { .rows = NULL };
    struct screen plain = { .width = 0 };
    AUTO(text) struct text t = TEXT_INIT;
    shares_draw(&v, &plain, &t);
    assert_string_equal(t.buf, "Nobody has used anything yet, and divvy.yaml names no accounts.\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_is_drawn_as_a_table),
        cmocka_unit_test(json_there_and_back_is_the_same),
        cmocka_unit_test(an_empty_tree_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
