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
    s.kind = STEP_RESET;
    assert_words(&s, "reset gpu3");
}

static void test_the_opposite_of_a_create_destroys_what_came_of_it(void **state)
{
    (void)state;
    struct step back, again;
    struct step s = created(STEP_CI_CREATE);
    assert_true(step_reverse(&s, &back));
    assert_int_equal(back.kind, STEP_CI_DESTROY);
    assert_int_equal(back.gi, 5);
    assert_int_equal(back.ci, 0);
    assert_true(step_reverse(&back, &again));
    assert_int_equal(again.kind, STEP_CI_CREATE);
    assert_int_equal(again.ci, NOT_AN_INSTANCE);
    assert_int_equal(again.ci_slices, 2);
    assert_string_equal(again.uuid, "");
}

static void test_modes_are_opposites_and_a_reset_has_none(void **state)
{
    (void)state;
    struct step back;
    struct step s = created(STEP_MIG_ON);
    assert_true(step_reverse(&s, &back));
    assert_int_equal(back.kind, STEP_MIG_OFF);
    s.kind = STEP_RESET;
    assert_false(step_reverse(&s, &back));
    assert_int_equal(back.kind, STEP_MIG_OFF);
}

static void test_each_kind_survives_its_json(void **state)
{
    (void)state;
    for (int k = 0; k < STEP_KINDS; k++) {
        struct step s = created((enum step_kind)k);
        struct step r;
        auto_json json_t *j = step_to_json(&s);
        assert_int_equal(step_from_json(j, &r, NULL), 0);
        assert_int_equal(r.kind, k);
        assert_string_equal(r.card_uuid, s.card_uuid);
        if (k <= STEP_RESET)
            continue;
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
        cmocka_unit_test(test_modes_are_opposites_and_a_reset_has_none),
        cmocka_unit_test(test_each_kind_survives_its_json),
        cmocka_unit_test(test_what_is_no_step_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
