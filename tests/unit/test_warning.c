#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "model/warning.h"

static void every_spelling_is_the_same_signal(void **state)
{
    (void)state;
    static const char *const spellings[] = { "USR1", "usr1", "SIGUSR1", "sigusr1", "10" };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        int sig = 0;
        assert_int_equal(signal_parse(spellings[i], &sig, NULL), 0);
        assert_int_equal(sig, SIGUSR1);
    }
    assert_string_equal(signal_word(SIGUSR1), "USR1");
}

static void what_cannot_be_caught_or_is_nothing_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "KILL", "9", "STOP", "", "SIG", "0", "32", "USR3", "-1" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err e = ERR_INIT;
        int sig = -1;
        assert_int_equal(signal_parse(wrong[i], &sig, &e), -EINVAL);
        assert_int_equal(sig, -1);
        assert_non_null(strstr(e.text, "USR1"));
    }
}

static void a_warning_is_a_signal_and_a_time(void **state)
{
    (void)state;
    struct job_warning w = { 0 };
    assert_int_equal(job_warning_parse("USR1@90s", &w, NULL), 0);
    assert_int_equal(w.signal, SIGUSR1);
    assert_int_equal(w.before_us, 90 * CLOCK_SECOND);
    assert_int_equal(job_warning_parse("INT", &w, NULL), 0);
    assert_int_equal(w.signal, SIGINT);
    assert_int_equal(w.before_us, CLOCK_MINUTE);
    assert_int_equal(job_warning_parse("INT@", &w, NULL), -EINVAL);
    assert_int_equal(job_warning_parse("@60s", &w, NULL), -EINVAL);
    assert_int_equal(job_warning_parse("INT@soon", &w, NULL), -EINVAL);
}

static void it_has_to_fit_before_a_limit(void **state)
{
    (void)state;
    struct job_warning none = { 0 };
    struct job_warning w = { .signal = SIGUSR1, .before_us = CLOCK_MINUTE };
    assert_int_equal(job_warning_check(&none, 0, NULL), 0);
    assert_int_equal(job_warning_check(&w, 2 * CLOCK_MINUTE, NULL), 0);
    assert_int_equal(job_warning_check(&w, CLOCK_MINUTE, NULL), -EINVAL);
    assert_int_equal(job_warning_check(&w, 0, NULL), -EINVAL);
    w.before_us = 0;
    assert_int_equal(job_warning_check(&w, CLOCK_HOUR, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_the_same_signal),
        cmocka_unit_test(what_cannot_be_caught_or_is_nothing_is_refused),
        cmocka_unit_test(a_warning_is_a_signal_and_a_time),
        cmocka_unit_test(it_has_to_fit_before_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
