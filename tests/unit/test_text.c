#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

static void a_string_grows(void **state)
{
    (void)state;
    AUTO(text) struct text t = TEXT_INIT;
    assert_string_equal(t.buf, "");
    for (int i = 0; i < 1000; i++)
        text_addf(&t, "%d,", i % 10);
    assert_int_equal(t.len, 2000);
    assert_int_equal(t.buf[t.len], '\0');
    text_clear(&t);
    assert_string_equal(t.buf, "");
    text_add(&t, "gpu0");
    auto_free char *taken = text_take(&t);
    assert_string_equal(taken, "gpu0");
    assert_string_equal(t.buf, "");
}

static void an_empty_string_can_be_taken(void **state)
{
    (void)state;
    struct text t = TEXT_INIT;
    auto_free char *taken = text_take(&t);
    assert_string_equal(taken, "");
}

static void whole_numbers_have_a_range(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    uint64_t n = 7;
    assert_int_equal(text_parse_u64("128", 1, 128, "--gpus", &n, &e), 0);
    assert_int_equal(n, 128);
    assert_int_equal(text_parse_u64("0", 1, 128, "--gpus", &n, &e), -ERANGE);
    assert_string_equal(e.text, "--gpus: 0 is out of range, 1 to 128 works");
    assert_int_equal(text_parse_u64("18446744073709551616", 1, 9, "n", &n, &e), -ERANGE);
    static const char *const bad[] = { "", "-1", "+1", " 1", "1x", "0x10", "1.0" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(text_parse_u64(bad[i], 0, 128, "n", &n, &e), -EINVAL);
    assert_int_equal(n, 128); /* failures leave it alone */
}

static void sizes_are_powers_of_1024(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        { "0", 0 },
        { "123", 123 },
        { "1B", 1 },
        { "512m", UINT64_C(512) << 20 },
        { "10G", UINT64_C(10) << 30 },
        { "10GiB", UINT64_C(10) << 30 },
        { "9.5g", UINT64_C(19) << 29 },
        { "1t", UINT64_C(1) << 40 },
        { "1.0009K", 1024 }, /* digits past the thousandths are dropped */
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        uint64_t bytes = 1;
        assert_int_equal(text_parse_size(good[i].text, "size", &bytes, NULL), 0);
        assert_int_equal(bytes, good[i].bytes);
    }
}

static void what_is_no_size_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "G", "-1G", "1.G", ".5G", "1GG", "1 G", "ten", "1e3" };
    uint64_t bytes = 1;
    struct err e = ERR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(text_parse_size(bad[i], "--gpu-mem", &bytes, &e), -EINVAL);
    assert_non_null(strstr(e.text, "write it like 512M, 10G or 9.5G"));
    assert_int_equal(text_parse_size("99999999T", "size", &bytes, &e), -ERANGE);
    assert_int_equal(text_parse_size("99999999999999999999", "size", &bytes, &e), -ERANGE);
    assert_int_equal(bytes, 1);
}

static void times_are_written_as_people_and_slurm_do(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        { "90s", 90 * CLOCK_SECOND },
        { "45m", 45 * CLOCK_MINUTE },
        { "2h30m", 2 * CLOCK_HOUR + 30 * CLOCK_MINUTE },
        { "1d", CLOCK_DAY },
        { "1d2h3m4s", CLOCK_DAY + 2 * CLOCK_HOUR + 3 * CLOCK_MINUTE + 4 * CLOCK_SECOND },
        { "30", 30 * CLOCK_MINUTE }, /* Slurm: a bare number is minutes */
        { "10:30", 10 * CLOCK_MINUTE + 30 * CLOCK_SECOND },
        { "1:30:00", CLOCK_HOUR + 30 * CLOCK_MINUTE },
        { "3-12", 3 * CLOCK_DAY + 12 * CLOCK_HOUR },
        { "1-0:30", CLOCK_DAY + 30 * CLOCK_MINUTE },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t us = 1;
        assert_int_equal(text_parse_duration(good[i].text, "--time", &us, NULL), 0);
        assert_int_equal(us, good[i].us);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "", "h", "1x", "30m2h", "1:2:3:4", "-5m", "1-", "1h 2m" };
    int64_t us = 1;
    struct err e = ERR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(text_parse_duration(bad[i], "--time", &us, &e), -EINVAL);
    assert_int_equal(text_parse_duration("4000d", "--time", &us, &e), -ERANGE);
    assert_string_equal(e.text, "--time: 4000d is longer than ten years");
    assert_int_equal(us, 1);
}

static void times_and_sizes_are_shown_short(void **state)
{
    (void)state;
    AUTO(text) struct text t = TEXT_INIT;
    static const int64_t times[] = { 0, 59, 60, 8000, 3 * 86400 + 4 * 3600 };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        text_add_duration(&t, times[i] * CLOCK_SECOND);
        text_add(&t, " ");
    }
    assert_string_equal(t.buf, "0s 59s 1m 2h13m 3d04h ");
    text_clear(&t);
    text_add_size(&t, UINT64_C(80) << 30);
    text_add(&t, " ");
    text_add_size(&t, UINT64_C(512) << 20);
    assert_string_equal(t.buf, "80.0 GiB 512 MiB");
}

static void only_clean_utf8_is_printable(void **state)
{
    (void)state;
    assert_true(text_is_printable("Grüße, 世界"));
    assert_true(text_is_printable(""));
    assert_false(text_is_printable("a\nb"));
    assert_false(text_is_printable("a\x7f"));
    assert_false(text_is_printable("\xff"));
    assert_false(text_is_printable("\xc3"));
    assert_false(text_is_printable("\xc0\xaf"));         /* an overlong slash */
    assert_false(text_is_printable("\xed\xa0\x80"));     /* a surrogate */
    assert_false(text_is_printable("\xf5\x80\x80\x80")); /* past U+10FFFF */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_grows),
        cmocka_unit_test(an_empty_string_can_be_taken),
        cmocka_unit_test(whole_numbers_have_a_range),
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(times_are_written_as_people_and_slurm_do),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(times_and_sizes_are_shown_short),
        cmocka_unit_test(only_clean_utf8_is_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
