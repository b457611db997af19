#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/promise.h"

static void nothing_is_said_of_none(void **state)
{
    (void)state;
    struct promises p = { .late = 0 };
    assert_int_equal(promises_count(&p), 0);
    assert_int_equal(promises_bound_us(&p, 90), 0);
    assert_true(promises_mean_us(&p) == 0);
}

static void early_and_late_both_count_as_off(void **state)
{
    (void)state;
    struct promises p = { .late = 0 };
    promises_add(&p, -20 * CLOCK_SECOND);
    promises_add(&p, 40 * CLOCK_SECOND);
    promises_add(&p, 9 * CLOCK_SECOND);
    assert_int_equal(promises_count(&p), 3);
    assert_int_equal(p.late, 1);
    assert_true(promises_mean_us(&p) == 23.0 * (double)CLOCK_SECOND);
}

static void a_bound_holds_for_as_many_as_are_asked(void **state)
{
    (void)state;
    struct promises p = { .late = 0 };
    for (int i = 0; i < 9; i++)
        promises_add(&p, CLOCK_MINUTE);
    promises_add(&p, 3 * CLOCK_HOUR);
    assert_int_equal(promises_bound_us(&p, 90), CLOCK_MINUTE);
    assert_int_equal(promises_bound_us(&p, 91), 4 * CLOCK_HOUR);
    promises_add(&p, -2 * CLOCK_DAY);
    assert_true(promises_bound_us(&p, 100) == INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_of_none),
        cmocka_unit_test(early_and_late_both_count_as_off),
        cmocka_unit_test(a_bound_holds_for_as_many_as_are_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
