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

static void test_limits_are_written_as_they_are_typed(void **state)
{
    (void)state;
    static const char *const limits[] = { "0s", "45s", "1m30s", "2h", "2h30m", "1d4h", "1d1s" };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        AUTO(text) struct text t = TEXT_INIT;
        int64_t us = 0;
        assert_int_equal(text_parse_duration(limits[i], "--time", &us, NULL), 0);
        text_add_limit(&t, us);
        assert_string_equal(t.buf, limits[i]);
    }
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

static void what_is_taken_leaves_a_text_that_grows_again(void **state)
{
    (void)state;
    AUTO(text) struct text t = TEXT_INIT;
    text_addn(&t, NULL, 0);
    assert_string_equal(t.buf, "");
    text_addn(&t, "a\0b", 3);
    text_add(&t, "c");
    assert_int_equal(t.len, 4);
    auto_free char *taken = text_take(&t);
    assert_memory_equal(taken, "a\0bc", 5);
    assert_string_equal(t.buf, "");
    text_add(&t, "again");
    assert_string_equal(t.buf, "again");
    text_clear(&t);
    assert_string_equal(t.buf, "");
    assert_int_equal(t.len, 0);
}

static void new_room_in_an_array_is_zero(void **state)
{
    (void)state;
    auto_free int *items = NULL;
    size_t alloc = 0;
    for (size_t need = 1; need < 500; need++) {
        ARRAY_ROOM(items, alloc, need);
        assert_true(alloc >= need);
        assert_int_equal(items[need - 1], 0);
        items[need - 1] = (int)need;
    }
    for (size_t i = 0; i < 499; i++)
        assert_int_equal(items[i], i + 1);
}

static void null_equals_only_null(void **state)
{
    (void)state;
    assert_true(text_same(NULL, NULL));
    assert_false(text_same(NULL, ""));
    assert_false(text_same("", NULL));
    assert_true(text_same("a", "a"));
    assert_false(text_same("a", "b"));
    assert_null(text_dup(NULL));
    assert_true(text_starts("gpu0", "gpu"));
    assert_true(text_starts("gpu", ""));
    assert_false(text_starts("gp", "gpu"));
}

static void assert_no_number(const char *s, int code, const char *sentence)
{
    struct err e = ERR_INIT;
    uint64_t n = 4711;
    assert_int_equal(text_parse_u64(s, 1, 128, "--gpus", &n, &e), code);
    assert_string_equal(e.text, sentence);
    assert_int_equal(n, 4711);
}

static void a_number_says_what_is_wrong_with_it(void **state)
{
    (void)state;
    uint64_t n = 0;
    assert_int_equal(text_parse_u64("18446744073709551615", 0, UINT64_MAX, "n", &n, NULL), 0);
    assert_true(n == UINT64_MAX);
    assert_int_equal(text_parse_u64("007", 1, 128, "n", &n, NULL), 0);
    assert_int_equal(n, 7);
    assert_no_number("two", -EINVAL, "--gpus: 'two' is not a whole number from 1 to 128");
    assert_no_number("129", -ERANGE, "--gpus: 129 is out of range, 1 to 128 works");
    assert_no_number("99999999999999999999999", -ERANGE,
                     "--gpus: 99999999999999999999999 is out of range, 1 to 128 works");
    assert_no_number("99999999999999999999x", -EINVAL,
                     "--gpus: '99999999999999999999x' is not a whole number from 1 to 128");
}

static void a_size_says_what_is_wrong_with_it(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    uint64_t bytes = 0;
    static const char *const bad[] = { "10Q",  "10Gbit", "10BB",
                                       "10iB", "1.5.5G", "99999999999999999999.5Q" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        AUTO(text) struct text sentence = TEXT_INIT;
        text_addf(&sentence, "--gpu-mem: '%s' is not a size; write it like 512M, 10G or 9.5G",
                  bad[i]);
        assert_int_equal(text_parse_size(bad[i], "--gpu-mem", &bytes, &e), -EINVAL);
        assert_string_equal(e.text, sentence.buf);
    }
    assert_int_equal(text_parse_size("1024T", "--gpu-mem", &bytes, &e), 0);
    assert_true(bytes == UINT64_C(1) << 50);
    assert_int_equal(text_parse_size("1025T", "--gpu-mem", &bytes, &e), -ERANGE);
    assert_string_equal(e.text, "--gpu-mem: 1025T is more than any machine has");
    assert_int_equal(text_parse_size("99999999999999999999.5G", "--gpu-mem", &bytes, &e), -ERANGE);
    assert_true(bytes == UINT64_C(1) << 50);
}

/* The six forms of man sbatch, --time. */
static void every_form_of_slurm_is_a_time(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        { "0", 0 },
        { "5", 5 * CLOCK_MINUTE },
        { "5:6", 5 * CLOCK_MINUTE + 6 * CLOCK_SECOND },
        { "04:05:06", 4 * CLOCK_HOUR + 5 * CLOCK_MINUTE + 6 * CLOCK_SECOND },
        { "3-4", 3 * CLOCK_DAY + 4 * CLOCK_HOUR },
        { "3-4:5", 3 * CLOCK_DAY + 4 * CLOCK_HOUR + 5 * CLOCK_MINUTE },
        { "3-4:5:6", 3 * CLOCK_DAY + 4 * CLOCK_HOUR + 5 * CLOCK_MINUTE + 6 * CLOCK_SECOND },
        { "3653-0", 3653 * CLOCK_DAY }, /* ten years and no second more */
        { "1d30s", CLOCK_DAY + 30 * CLOCK_SECOND },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t us = 1;
        assert_int_equal(text_parse_duration(good[i].text, "--time", &us, NULL), 0);
        assert_int_equal(us, good[i].us);
    }
}

static void a_time_says_what_is_wrong_with_it(void **state)
{
    (void)state;
    static const char *const bad[] = { "soon",  "s",   "-5",   "1.5h",      "1h1h",
                                       "1h30",  "1:",  ":30",  "2-",        "-12",
                                       "1-2-3", "90S", "1-2h", "1-2:3:4:5", "2 hours" };
    static const char *const long_ones[] = { "3653d1s", "3654-0", "99999999999999999999",
                                             "9223372036854775807d", "18446744073709551615:0" };
    struct err e = ERR_INIT;
    int64_t us = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        AUTO(text) struct text sentence = TEXT_INIT;
        text_addf(&sentence, "--time: '%s' is not a time; write it like 90s, 45m, 2h30m or 1:30:00",
                  bad[i]);
        assert_int_equal(text_parse_duration(bad[i], "--time", &us, &e), -EINVAL);
        assert_string_equal(e.text, sentence.buf);
    }
    for (size_t i = 0; i < sizeof long_ones / sizeof *long_ones; i++) {
        AUTO(text) struct text sentence = TEXT_INIT;
        text_addf(&sentence, "--time: %s is longer than ten years", long_ones[i]);
        assert_int_equal(text_parse_duration(long_ones[i], "--time", &us, &e), -ERANGE);
        assert_string_equal(e.text, sentence.buf);
    }
    assert_int_equal(us, 1);
}

/* The edges of each length, and what lies just behind them. */
static void utf8_is_told_from_the_rest(void **state)
{
    (void)state;
    static const struct {
        const char *s;
        size_t character; /* as text_character says; 0 for controls, too */
        bool utf8;
    } table[] = {
        { "\x7e", 1, true },
        { "\xc2\xa0", 2, true },         /* U+00A0, the first behind the C1 controls */
        { "\xdf\xbf", 2, true },         /* U+07FF */
        { "\xe0\xa0\x80", 3, true },     /* U+0800 */
        { "\xed\x9f\xbf", 3, true },     /* U+D7FF, before the surrogates */
        { "\xee\x80\x80", 3, true },     /* U+E000, behind them */
        { "\xf0\x90\x80\x80", 4, true }, /* U+10000 */
        { "\xf4\x8f\xbf\xbf", 4, true }, /* U+10FFFF */
        { "\n", 0, true },
        { "\x1b[2J", 0, true },
        { "\x7f", 0, true },
        { "\xc2\x80", 0, true }, /* C1 */
        { "\xc2\x9b", 0, true }, /* CSI in one character */
        { "\xc2\x9f", 0, true },
        { "\x80", 0, false }, /* a byte that only goes on */
        { "\xff", 0, false },
        { "\xc3", 0, false }, /* cut */
        { "\xe2\x82", 0, false },
        { "\xf0\x9f\x98", 0, false },
        { "\xc3\x28", 0, false }, /* does not go on */
        { "\xc1\xbf", 0, false }, /* overlong */
        { "\xe0\x9f\xbf", 0, false },
        { "\xf0\x8f\xbf\xbf", 0, false },
        { "\xed\xbf\xbf", 0, false },     /* a surrogate */
        { "\xf4\x90\x80\x80", 0, false }, /* U+110000 */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(text_character(table[i].s), table[i].character);
        assert_int_equal(text_is_utf8(table[i].s), table[i].utf8);
        assert_int_equal(text_is_printable(table[i].s), table[i].character > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_are_written_as_they_are_typed),
        cmocka_unit_test(a_string_grows),
        cmocka_unit_test(an_empty_string_can_be_taken),
        cmocka_unit_test(whole_numbers_have_a_range),
        cmocka_unit_test(sizes_are_powers_of_1024),
        cmocka_unit_test(what_is_no_size_is_refused),
        cmocka_unit_test(times_are_written_as_people_and_slurm_do),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(times_and_sizes_are_shown_short),
        cmocka_unit_test(only_clean_utf8_is_printable),
        cmocka_unit_test(what_is_taken_leaves_a_text_that_grows_again),
        cmocka_unit_test(new_room_in_an_array_is_zero),
        cmocka_unit_test(null_equals_only_null),
        cmocka_unit_test(a_number_says_what_is_wrong_with_it),
        cmocka_unit_test(a_size_says_what_is_wrong_with_it),
        cmocka_unit_test(every_form_of_slurm_is_a_time),
        cmocka_unit_test(a_time_says_what_is_wrong_with_it),
        cmocka_unit_test(utf8_is_told_from_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
