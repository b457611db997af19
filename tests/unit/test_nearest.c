#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/nearest.h"

static const char *const names[] = { "mode_hold", "driver_root", "users", "a100-80gb" };

static const char *near(const char *given)
{
    return nearest_name(given, names, sizeof names / sizeof *names);
}

static void small_slips_are_understood(void **state)
{
    (void)state;
    assert_string_equal(near("mode_hodl"), "mode_hold");
    assert_string_equal(near("Driver-Root"), "driver_root");
    assert_string_equal(near("user"), "users");
    assert_string_equal(near("a100"), "a100-80gb");
}

static void what_is_far_stays_unknown(void **state)
{
    (void)state;
    assert_null(near("retention"));
    static const char *const states[] = { "oom" };
    assert_null(nearest_name("foo", states, 1));
    assert_string_equal(nearest_name("omo", states, 1), "oom");
    assert_null(near(""));
    char longer[65];
    memset(longer, 'u', 64);
    longer[64] = '\0';
    assert_null(near(longer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_slips_are_understood),
        cmocka_unit_test(what_is_far_stays_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
