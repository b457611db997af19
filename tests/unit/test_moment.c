#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "config/moment.h"

/* Friday 13 February 2009, 23:31:30, in UTC. */
#define NOW (INT64_C(1234567890) * CLOCK_SECOND)
#define MIDNIGHT (INT64_C(1234569600) * CLOCK_SECOND) /* that follows */

static void is(const char *words, int64_t wall_us)
{
    int64_t at = 0;
    struct err e = ERR_INIT;
    if (moment_parse(words, NOW, "--begin", &at, &e) < 0)
        fail_msg("%s", e.text);
    if (at != wall_us)
        fail_msg("'%s' is %lld s off", words, (long long)((at - wall_us) / CLOCK_SECOND));
}

static void refused(const char *words, const char *said)
{
    int64_t at = 77;
    struct err e = ERR_INIT;
    assert_true(moment_parse(words, NOW, "--begin", &at, &e) < 0);
    if (!strstr(e.text, said))
        fail_msg("'%s': %s", words, e.text);
    assert_int_equal(at, 77);
}

static void times_of_day_are_the_next_ones(void **state)
{
    (void)state;
    is("23:45", MIDNIGHT - 15 * CLOCK_MINUTE);
    is("16:40", MIDNIGHT + 16 * CLOCK_HOUR + 40 * CLOCK_MINUTE);
    is("23:31:30", MIDNIGHT + CLOCK_DAY - 28 * CLOCK_MINUTE - 30 * CLOCK_SECOND);
    is("midnight", MIDNIGHT);
    is("noon", MIDNIGHT + 12 * CLOCK_HOUR);
    is("teatime", MIDNIGHT + 16 * CLOCK_HOUR);
}

static void days_are_days(void **state)
{
    (void)state;
    is("tomorrow", MIDNIGHT);
    is("tomorrow 08:30", MIDNIGHT + 8 * CLOCK_HOUR + 30 * CLOCK_MINUTE);
    is("today", MIDNIGHT - CLOCK_DAY);
    is("2009-02-14", MIDNIGHT);
    is("2009-02-14T01:02:03", MIDNIGHT + CLOCK_HOUR + 2 * CLOCK_MINUTE + 3 * CLOCK_SECOND);
    is("2009-03-01", MIDNIGHT + 15 * CLOCK_DAY);
}

static void from_now_on(void **state)
{
    (void)state;
    is("now", NOW);
    is("now+2h", NOW + 2 * CLOCK_HOUR);
    is("now+90s", NOW + 90 * CLOCK_SECOND);
    is("now+1hour", NOW + CLOCK_HOUR);
    is("now+3Days", NOW + 3 * CLOCK_DAY);
    is("now+2weeks", NOW + 14 * CLOCK_DAY);
}

static void what_is_no_time_is_told(void **state)
{
    (void)state;
    refused("", "no time");
    refused("25:00", "no time");
    refused("12:60", "no time");
    refused("2009-02-31", "no time");
    refused("2009-13-01", "no time");
    refused("2009-02-14T9", "no time");
    refused("yesterday", "no time");
    refused("noonish", "no time");
    refused("now+60", "unit");
    refused("now+", "--begin");
    refused("16:40x", "no time");
}

int main(void)
{
    (void)setenv("TZ", "UTC", 1); /* else nothing could be said about days */
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_day_are_the_next_ones),
        cmocka_unit_test(days_are_days),
        cmocka_unit_test(from_now_on),
        cmocka_unit_test(what_is_no_time_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
