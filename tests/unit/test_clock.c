/* base/clock.h: the time, as a value that is handed in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/clock.h"

static void boot_time_does_not_run_backwards(void **state)
{
    (void)state;
    struct now a = clock_now();
    for (int i = 0; i < 1000; i++) {
        struct now b = clock_now();
        assert_true(b.boot_us >= a.boot_us);
        a = b;
    }
}

static void wall_time_is_microseconds_since_1970(void **state)
{
    (void)state;
    int64_t year_2020_us = INT64_C(1577836800) * CLOCK_SECOND;
    int64_t year_2200_us = INT64_C(7258118400) * CLOCK_SECOND;
    assert_in_range(clock_now().wall_us, year_2020_us, year_2200_us);
}

static void a_boot_has_one_id(void **state)
{
    (void)state;
    const char *id = clock_boot_id();
    if (!id[0] && access("/proc/sys/kernel/random/boot_id", R_OK) < 0) {
        print_message("# there is no readable /proc/sys/kernel/random/boot_id\n");
        skip();
    }
    assert_int_equal(strlen(id), BOOT_ID_SIZE - 1);
    assert_int_equal(strspn(id, "0123456789abcdef-"), BOOT_ID_SIZE - 1);
    assert_string_equal(clock_boot_id(), id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boot_time_does_not_run_backwards),
        cmocka_unit_test(wall_time_is_microseconds_since_1970),
        cmocka_unit_test(a_boot_has_one_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
