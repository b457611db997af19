#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/limits.h"

static void no_limit_is_none(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    assert_false(limits_any(&l));
}

static void a_limit_of_nothing_is_one(void **state)
{
    (void)state;
    struct limits l = LIMITS_NONE;
    l.cards = 0;
    assert_true(limits_any(&l));
    l = (struct limits)LIMITS_NONE;
    l.time_us = CLOCK_HOUR;
    assert_true(limits_any(&l));
    l = (struct limits)LIMITS_NONE;
    l.slice_count = 1;
    assert_true(limits_any(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_is_none),
        cmocka_unit_test(a_limit_of_nothing_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
