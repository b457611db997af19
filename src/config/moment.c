#include "config/moment.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

static int wrong(const char *words, const char *what, struct err *e)
{
    return err_set(e, -EINVAL,
                   "%s: '%.64s' is no time; write 16:40, tomorrow, now+2h or 2026-11-30T08:00",
                   what, words);
}

static int from_tm(struct tm *tm, int64_t *ret)
{
    struct tm given = *tm;
    tm->tm_isdst = -1;
    time_t t = mktime(tm);
    /* mktime turns 31 February into a day of March. */
    if (t == (time_t)-1 || tm->tm_mday != given.tm_mday || tm->tm_mon != given.tm_mon)
        return -EINVAL;
    *ret = (int64_t)t * CLOCK_SECOND;
    return 0;
}

static struct tm today(int64_t now_wall_us)
{
    time_t now = (time_t)(now_wall_us / CLOCK_SECOND);
    struct tm tm = { .tm_mday = 1 };
    (void)localtime_r(&now, &tm); /* fails beyond the year 2 billion */
    return tm;
}

/* "3days", "1hour", "90s": a unit in one letter or in words. */
static int read_span(const char *words, const char *what, int64_t *ret_us, struct err *e)
{
    static const struct {
        const char *word;
        int64_t us;
    } units[] = { { "second", CLOCK_SECOND },
                  { "minute", CLOCK_MINUTE },
                  { "hour", CLOCK_HOUR },
                  { "day", CLOCK_DAY },
                  { "week", 7 * CLOCK_DAY } };
    uint64_t n = 0;
    size_t digits = strspn(words, "0123456789");
    if (digits && !words[digits])
        return err_set(e, -EINVAL,
                       "%s: now+%.32s of what? Say the unit, as in now+%.32ss or m, h, d", what,
                       words, words);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i].word);
        if (strncasecmp(words + digits, units[i].word, len) != 0 ||
            (words[digits + len] && strcasecmp(words + digits + len, "s") != 0))
            continue;
        auto_free char *number = text_fmt("%.*s", (int)digits, words);
        int r = text_parse_u64(number, 0, 100000, what, &n, e);
        *ret_us = (int64_t)n * units[i].us;
        return r;
    }
    return text_parse_duration(words, what, ret_us, e);
}

/* "16:40" or "16:40:30", whole. */
static bool read_clock(const char *words, struct tm *tm)
{
    int hour = 0, minute = 0, second = 0, used = 0;
    if (sscanf(words, "%2d:%2d%n", &hour, &minute, &used) != 2)
        return false;
    if (words[used] == ':') {
        int more = 0;
        if (sscanf(words + used, ":%2d%n", &second, &more) != 1)
            return false;
        used += more;
    }
    if (words[used] || !isdigit((unsigned char)words[0]) || hour < 0 || hour > 23 || minute < 0 ||
        minute > 59 || second < 0 || second > 59)
        return false;
    tm->tm_hour = hour;
    tm->tm_min = minute;
    tm->tm_sec = second;
    return true;
}

static int read_date(const char *words, int64_t now_wall_us, int64_t *ret)
{
    struct tm tm = today(now_wall_us);
    int year = 0, month = 0, day = 0, used = 0;
    if (sscanf(words, "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 || year < 1970)
        return -EINVAL;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    tm.tm_mday = day;
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    if (words[used] &&
        ((words[used] != 'T' && words[used] != ' ') || !read_clock(words + used + 1, &tm)))
        return -EINVAL;
    return from_tm(&tm, ret);
}

/* Words for a day or a time of day: 0 and `tm` filled. `*ret_day`: this day, not the next such time. */
static int read_word(const char *words, struct tm *tm, bool *ret_day)
{
    static const struct {
        const char *word;
        int hour, days;
        bool day;
    } known[] = { { "midnight", 0, 0, false },
                  { "noon", 12, 0, false },
                  { "teatime", 16, 0, false },
                  { "today", 0, 0, true },
                  { "tomorrow", 0, 1, true } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i].word);
        const char *rest = words + len;
        if (strncasecmp(words, known[i].word, len) != 0)
            continue;
        tm->tm_hour = known[i].hour;
        tm->tm_min = tm->tm_sec = 0;
        tm->tm_mday += known[i].days;
        *ret_day = known[i].day;
        if (!*rest)
            return 0;
        return known[i].day && (*rest == 'T' || *rest == ' ') && read_clock(rest + 1, tm) ? 0
                                                                                          : -EINVAL;
    }
    return -EINVAL;
}

static int read_day(const char *words, int64_t now_wall_us, int64_t *ret)
{
    struct tm tm = today(now_wall_us);
    bool day = false;
    if (!read_clock(words, &tm) && read_word(words, &tm, &day) < 0)
        return -EINVAL;
    tm.tm_isdst = -1;
    struct tm next = tm;
    int64_t at = (int64_t)mktime(&tm) * CLOCK_SECOND;
    if (at <= now_wall_us && !day) {
        next.tm_mday++;
        at = (int64_t)mktime(&next) * CLOCK_SECOND;
    }
    *ret = at;
    return 0;
}

int moment_parse(const char *words, int64_t now_wall_us, const char *what, int64_t *ret_wall_us,
                 struct err *e)
{
    int64_t span = 0;
    int r;
    if (strcasecmp(words, "now") == 0) {
        *ret_wall_us = now_wall_us;
        return 0;
    }
    if (strncasecmp(words, "now+", 4) == 0) {
        r = read_span(words + 4, what, &span, e);
        if (r == 0)
            *ret_wall_us = now_wall_us + span;
        return r;
    }
    r = read_date(words, now_wall_us, ret_wall_us);
    if (r < 0)
        r = read_day(words, now_wall_us, ret_wall_us);
    return r < 0 ? wrong(words, what, e) : 0;
}
