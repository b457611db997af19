#include "model/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"

#define HOUR_US 3.6e9
#define LINES_MAX 1000000

void held_add(struct held *to, const struct held *more)
{
    to->parts += more->parts;
    to->asked += more->asked;
    to->held += more->held;
    to->compute += more->compute;
    to->mem += more->mem;
    to->seen += more->seen;
    to->idle += more->idle;
    to->measured += more->measured;
    to->busy += more->busy;
}

static const char *const words[] = { "user", "account", "profile", "card" };

const char *ledger_by_word(enum ledger_by by)
{
    return words[by];
}

int ledger_by_parse(const char *word, enum ledger_by *ret, struct err *e)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum ledger_by)i;
            return 0;
        }
    return err_set(e, -EINVAL, "by: '%.32s' is none of user, account, profile, card", word);
}

/* ---- lines ---- */

void ledger_done(struct ledger *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->lines[i]->key);
        free(l->lines[i]);
    }
    free(l->lines);
    map_done(&l->by_key);
    *l = (struct ledger)LEDGER_INIT;
}

void ledger_book(struct ledger *l, const char *key, const struct held *h)
{
    struct ledger_line *line = map_get_name(&l->by_key, key);
    if (!line) {
        line = mem_new(sizeof *line);
        line->key = text_dup(key);
        ARRAY_ROOM(l->lines, l->alloc, l->count + 1);
        l->lines[l->count++] = line;
        map_put_name(&l->by_key, line->key, line);
    }
    held_add(&line->sum, h);
}

static int most_held(const void *a, const void *b)
{
    const struct ledger_line *x = *(struct ledger_line *const *)a;
    const struct ledger_line *y = *(struct ledger_line *const *)b;
    if (x->sum.held > y->sum.held || x->sum.held < y->sum.held)
        return x->sum.held > y->sum.held ? -1 : 1;
    return strcmp(x->key, y->key);
}

void ledger_sort(struct ledger *l)
{
    if (l->count)
        qsort(l->lines, l->count, sizeof *l->lines, most_held);
}

/* ---- JSON ---- */

static void put_hours(json_t *j, const char *key, double card_us)
{
    json_put(j, key, json_real(round(card_us / HOUR_US * 1e6) / 1e6));
}

/* Nothing known is no number. */
static void put_known_hours(json_t *j, const char *key, double part, double of)
{
    if (of > 0)
        put_hours(j, key, part);
    else
        json_put(j, key, json_null());
}

json_t *held_to_json(const struct held *h)
{
    json_t *j = json_object();
    json_put_u64(j, "parts", h->parts);
    put_hours(j, "asked_card_hours", h->asked);
    put_hours(j, "held_card_hours", h->held);
    put_hours(j, "compute_card_hours", h->compute);
    put_hours(j, "memory_card_hours", h->mem);
    put_hours(j, "seen_card_hours", h->seen);
    put_known_hours(j, "idle_card_hours", h->idle, h->seen);
    put_hours(j, "measured_card_hours", h->measured);
    put_known_hours(j, "busy_card_hours", h->busy, h->measured);
    return j;
}

static json_t *line_to_json(const struct ledger_line *line)
{
    json_t *j = held_to_json(&line->sum);
    json_put_text(j, "key", line->key);
    return j;
}

json_t *ledger_to_json(const struct ledger *l)
{
    char from[11], to[11];
    json_t *j = json_object();
    json_t *lines = json_array();
    day_text(l->from_day, from);
    day_text(l->to_day, to);
    json_put_text(j, "by", ledger_by_word(l->by));
    json_put_text(j, "from", from);
    json_put_text(j, "to", to);
    for (size_t i = 0; i < l->count; i++)
        json_add(lines, line_to_json(l->lines[i]));
    json_put(j, "lines", lines);
    return j;
}

static double hours(json_t *line, const char *key)
{
    double h = json_number_value(json_object_get(line, key)); /* null is 0 */
    return isfinite(h) && h > 0 ? h * HOUR_US : 0;
}

static int line_from_json(struct ledger *l, json_t *line, struct err *e)
{
    struct fields f;
    fields_open(&f, line, "a line of usage", e);
    const char *key = fields_text(&f, "key", FIELD_REQUIRED, 255);
    struct held h = { .parts = fields_u64(&f, "parts", FIELD_REQUIRED, 0, INT64_MAX, 0),
                      .asked = hours(line, "asked_card_hours"),
                      .held = hours(line, "held_card_hours"),
                      .compute = hours(line, "compute_card_hours"),
                      .mem = hours(line, "memory_card_hours"),
                      .seen = hours(line, "seen_card_hours"),
                      .idle = hours(line, "idle_card_hours"),
                      .measured = hours(line, "measured_card_hours"),
                      .busy = hours(line, "busy_card_hours") };
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        ledger_book(l, key, &h);
    return r;
}

int ledger_from_json(json_t *j, struct ledger *ret, struct err *e)
{
    struct fields f;
    struct ledger l = LEDGER_INIT;
    fields_open(&f, j, "usage", e);
    const char *by = fields_text(&f, "by", FIELD_REQUIRED, 16);
    const char *from = fields_text(&f, "from", FIELD_REQUIRED, 16);
    const char *to = fields_text(&f, "to", FIELD_REQUIRED, 16);
    json_t *lines = fields_array(&f, "lines", FIELD_REQUIRED, LINES_MAX);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        r = ledger_by_parse(by, &l.by, e);
    if (r == 0)
        r = day_parse(from, "from", &l.from_day, e);
    if (r == 0)
        r = day_parse(to, "to", &l.to_day, e);
    for (size_t i = 0; r == 0 && i < json_array_size(lines); i++)
        r = line_from_json(&l, json_array_get(lines, i), e);
    if (r < 0)
        ledger_done(&l);
    else
        *ret = l;
    return r;
}

/* ---- days ---- */

static int32_t day_number(const struct tm *t)
{
    return (t->tm_year + 1900) * 10000 + (t->tm_mon + 1) * 100 + t->tm_mday;
}

/* Noon of a day: no change of summer time is near it. Days out of range are carried over. */
static struct tm noon_of(int32_t day)
{
    return (struct tm){ .tm_year = day / 10000 - 1900,
                        .tm_mon = day / 100 % 100 - 1,
                        .tm_mday = day % 100,
                        .tm_hour = 12,
                        .tm_isdst = -1 };
}

int32_t day_of(int64_t wall_us)
{
    struct tm t;
    time_t s = (time_t)(wall_us / CLOCK_SECOND);
    return localtime_r(&s, &t) ? day_number(&t) : 0;
}

int64_t day_begin(int32_t day)
{
    struct tm t = noon_of(day);
    t.tm_hour = 0;
    return (int64_t)mktime(&t) * CLOCK_SECOND;
}

int32_t day_next(int32_t day)
{
    struct tm t = noon_of(day);
    t.tm_mday++;
    (void)mktime(&t); /* carries over into month and year */
    return day_number(&t);
}

static bool digits(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return true;
}

static bool day_exists(int32_t day)
{
    struct tm t = noon_of(day);
    return day >= 19700101 && mktime(&t) != (time_t)-1 && day_number(&t) == day;
}

int day_parse(const char *text, const char *what, int32_t *ret, struct err *e)
{
    bool formed = strlen(text) == 10 && digits(text, 4) && text[4] == '-' && digits(text + 5, 2) &&
                  text[7] == '-' && digits(text + 8, 2);
    int32_t day =
        formed ? atoi(text) * 10000 + atoi(text + 5) * 100 + atoi(text + 8) : 0; /* digits */
    if (!day_exists(day))
        return err_set(e, -EINVAL, "%s: '%.32s' is no day; write it as 2026-11-30", what, text);
    *ret = day;
    return 0;
}

int month_parse(const char *text, int32_t *ret_from, int32_t *ret_to, struct err *e)
{
    bool formed = strlen(text) == 7 && digits(text, 4) && text[4] == '-' && digits(text + 5, 2);
    int32_t from = formed ? atoi(text) * 10000 + atoi(text + 5) * 100 + 1 : 0; /* digits */
    if (!day_exists(from))
        return err_set(e, -EINVAL, "'%.32s' is no month; write it as 2026-11", text);
    *ret_from = from;
    *ret_to = from / 100 % 100 == 12 ? from + 10000 - 1100 : from + 100;
    return 0;
}

void day_text(int32_t day, char ret[11])
{
    unsigned year = (unsigned)day / 10000 % 10000, month = (unsigned)day / 100 % 100;
    (void)snprintf(ret, 11, "%04u-%02u-%02u", year, month, (unsigned)day % 100); /* it fits */
}
