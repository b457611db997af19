#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "boards.h"
#include "model/fields.h"
#include "model/step.h"

static struct step created(enum step_kind kind)
{
    struct card c = { .uuid = "GPU-5d5b", .ordinal = 3 };
    struct step s;
    step_init(&s, kind, &c);
    s.profile_id = 14;
    snprintf(s.profile, sizeof s.profile, "2g.20gb");
    s.start = 4;
    s.units = 2;
    s.gi = 5;
    if (kind == STEP_CI_CREATE || kind == STEP_CI_DESTROY) {
        s.ci_profile_id = 1;
        s.ci_slices = 2;
        s.ci = 0;
        snprintf(s.uuid, sizeof s.uuid, "MIG-8c1e");
    }
    return s;
}

static void assert_words(const struct step *s, const char *expected)
{
    AUTO(text) struct text t = TEXT_INIT;
    step_add_text(&t, s);
    assert_string_equal(t.buf, expected);
}

static void test_a_step_is_said_with_its_address(void **state)
{
    (void)state;
    struct step s = created(STEP_GI_CREATE);
    assert_words(&s, "create gpu3/2g.20gb@4");
    s.kind = STEP_CI_DESTROY;
    assert_words(&s, "destroy the compute instance of gpu3/2g.20gb@4");
    s.kind = STEP_MIG_OFF;
    assert_words(&s, "turn MIG off for gpu3");
    s.kind = STEP_MIG_STORE;
    s.was_pending = true;
    assert_words(&s, "store MIG on for gpu3 again");
    s.kind = STEP_RESET;
    assert_words(&s, "reset gpu3");
}

static void test_the_opposite_of_a_create_destroys_what_came_of_it(void **state)
{
    (void)state;
    struct step back[STEP_REVERSE_MAX], again[STEP_REVERSE_MAX];
    struct step s = created(STEP_CI_CREATE);
    assert_int_equal(step_reverse(&s, false, back), 1);
    assert_int_equal(back[0].kind, STEP_CI_DESTROY);
    assert_int_equal(back[0].gi, 5);
    assert_int_equal(back[0].ci, 0);
    assert_int_equal(step_reverse(&back[0], false, again), 1);
    assert_int_equal(again[0].kind, STEP_CI_CREATE);
    assert_int_equal(again[0].ci, NOT_AN_INSTANCE);
    assert_int_equal(again[0].ci_slices, 2);
    assert_string_equal(again[0].uuid, "");
}

static void test_a_mode_goes_back_to_what_was_current_and_stored(void **state)
{
    (void)state;
    static const struct {
        enum step_kind kind;
        bool was_on, was_pending, only_stored;
        size_t count;
        enum step_kind back[STEP_REVERSE_MAX];
    } rows[] = {
        { STEP_MIG_ON, false, false, false, 1, { STEP_MIG_OFF } },
        { STEP_MIG_ON, false, false, true, 1, { STEP_MIG_OFF } },
        { STEP_MIG_OFF, true, true, false, 1, { STEP_MIG_ON } },
        /* It waited for a reset already: that is never given to it by an undo. */
        { STEP_MIG_ON, false, true, true, 1, { STEP_MIG_STORE } },
        { STEP_MIG_ON, false, true, false, 2, { STEP_MIG_OFF, STEP_MIG_STORE } },
        { STEP_MIG_OFF, false, true, false, 1, { STEP_MIG_STORE } },
        { STEP_MIG_ON, true, false, false, 1, { STEP_MIG_STORE } },
        { STEP_MIG_OFF, true, false, false, 2, { STEP_MIG_ON, STEP_MIG_STORE } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct step back[STEP_REVERSE_MAX];
        struct step s = created(rows[i].kind);
        s.was_on = rows[i].was_on;
        s.was_pending = rows[i].was_pending;
        size_t n = step_reverse(&s, rows[i].only_stored, back);
        assert_int_equal(n, rows[i].count);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(back[k].kind, rows[i].back[k]);
            assert_int_equal(back[k].was_pending, rows[i].was_pending);
        }
    }
}

static void test_a_reset_has_no_opposite(void **state)
{
    (void)state;
    struct step back[STEP_REVERSE_MAX];
    struct step s = created(STEP_RESET);
    assert_int_equal(step_reverse(&s, false, back), 0);
}

static void test_a_mode_of_a_journal_that_says_no_more_was_the_other_one(void **state)
{
    (void)state;
    struct step s;
    auto_json json_t *j = json_pack("{ssss}", "do", "mig_off", "card", "GPU-5d5b");
    assert_int_equal(step_from_json(j, &s, NULL), 0);
    assert_true(s.was_on);
    assert_true(s.was_pending);
}

static void test_each_kind_survives_its_json(void **state)
{
    (void)state;
    for (int k = 0; k < STEP_KINDS; k++) {
        struct step s = created((enum step_kind)k);
        struct step r;
        s.was_pending = true;
        auto_json json_t *j = step_to_json(&s);
        assert_int_equal(step_from_json(j, &r, NULL), 0);
        assert_int_equal(r.kind, k);
        assert_string_equal(r.card_uuid, s.card_uuid);
        if (k <= STEP_RESET) {
            assert_false(r.was_on);
            assert_true(r.was_pending);
            continue;
        }
        assert_int_equal(r.gi, 5);
        assert_int_equal(r.start, 4);
        assert_string_equal(r.profile, "2g.20gb");
        assert_string_equal(r.uuid, s.uuid);
    }
}

static void test_what_is_no_step_is_refused(void **state)
{
    (void)state;
    struct step s = { .start = 99 };
    struct err e = ERR_INIT;
    auto_json json_t *j = json_pack("{s:s, s:s}", "do", "explode", "card", "GPU-5d5b");
    assert_int_equal(step_from_json(j, &s, &e), -EINVAL);
    assert_non_null(strstr(e.text, "'explode' is no step"));
    assert_int_equal(s.start, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_is_said_with_its_address),
        cmocka_unit_test(test_the_opposite_of_a_create_destroys_what_came_of_it),
        cmocka_unit_test(test_a_mode_goes_back_to_what_was_current_and_stored),
        cmocka_unit_test(test_a_reset_has_no_opposite),
        cmocka_unit_test(test_a_mode_of_a_journal_that_says_no_more_was_the_other_one),
        cmocka_unit_test(test_each_kind_survives_its_json),
        cmocka_unit_test(test_what_is_no_step_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
