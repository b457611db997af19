#include "replay/trace.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define YEARS_MAX ((double)100 * 366 * 86400) /* seconds, and far from what µs overflow at */

static void names_done(struct trace_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->words[i]);
    free(n->words);
    map_done(&n->by_word);
}

void trace_done(struct trace *t)
{
    names_done(&t->accounts);
    names_done(&t->users);
    names_done(&t->qos);
    free(t->jobs);
    memset(t, 0, sizeof *t);
}

uint32_t trace_name(struct trace_names *n, const char *word)
{
    uintptr_t known = (uintptr_t)map_get_name(&n->by_word, word);
    if (known)
        return (uint32_t)known - 1;
    ARRAY_ROOM(n->words, n->alloc, n->count + 1);
    n->words[n->count] = text_dup(word);
    map_put_name(&n->by_word, n->words[n->count], (void *)(uintptr_t)(n->count + 1));
    return (uint32_t)n->count++;
}

void trace_add(struct trace *t, const struct trace_job *job)
{
    if (job->run_us <= 0 || request_check(&job->request, NULL) < 0) {
        t->left_out++;
        return;
    }
    ARRAY_ROOM(t->jobs, t->alloc, t->count + 1);
    t->jobs[t->count] = *job;
    if (!job->id)
        t->jobs[t->count].id = t->count + t->left_out + 1;
    t->count++;
}

/* ---- words ----------------------------------------------------------------- */

static bool seconds(const char *word, int64_t *ret_us)
{
    char *end;
    if (!isdigit((unsigned char)word[0]) && word[0] != '.')
        return false;
    double s = strtod(word, &end);
    if (*end || !isfinite(s) || s < 0 || s > YEARS_MAX)
        return false;
    *ret_us = llrint(s * 1e6);
    return true;
}

bool trace_time(const char *word, int64_t *ret_us)
{
    struct tm tm = { .tm_isdst = 0 };
    int64_t part_us = 0;
    if (seconds(word, ret_us))
        return true;
    const char *rest = strptime(word, "%Y-%m-%d", &tm);
    if (!rest || (*rest != 'T' && *rest != ' '))
        return false;
    rest = strptime(rest + 1, "%H:%M:%S", &tm);
    if (!rest)
        return false;
    if (*rest == '.')
        for (int64_t unit = 100000; isdigit((unsigned char)*++rest); unit /= 10)
            part_us += (*rest - '0') * unit;
    if (*rest == 'Z')
        rest++;
    *ret_us = (int64_t)timegm(&tm) * CLOCK_SECOND + part_us;
    return *rest == '\0';
}

bool trace_duration(const char *word, int64_t *ret_us)
{
    static const char *const none[] = {
        "", "-", "none", "UNLIMITED", "Partition_Limit", "Unknown"
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(word, none[i]) == 0) {
            *ret_us = 0;
            return true;
        }
    return seconds(word, ret_us) || text_parse_duration(word, "", ret_us, NULL) >= 0;
}

/* ---- forms ----------------------------------------------------------------- */

/* Begins with a number, and with blanks between words: no line of names does. */
static bool is_plain(const char *first)
{
    size_t number = strspn(first, "0123456789.");
    size_t between = strcspn(first, ",|\n");
    return number && (!first[number] || strchr(" \t\r\n", first[number])) &&
           (!first[between] || first[between] == '\n');
}

static int read_form(const char *file, const char *text, size_t len, struct trace *t, struct err *e)
{
    const char *first = text + strspn(text, " \t\r\n");
    if (*first == '{' || *first == '[')
        return trace_read_history(file, text, len, t, e);
    auto_free char *copy = text_dup(text); /* the others cut it into words */
    if (is_plain(first))
        return trace_read_plain(file, copy, t, e);
    const char *end = first + strcspn(first, "\n");
    bool bars = memchr(first, '|', (size_t)(end - first)) != NULL;
    return trace_read_table(file, copy, bars ? '|' : ',', t, e);
}

static int by_submit(const void *a, const void *b)
{
    const struct trace_job *x = a, *y = b;
    if (x->submit_us != y->submit_us)
        return x->submit_us < y->submit_us ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

int trace_parse(const char *file, const char *text, size_t len, struct trace *ret, struct err *e)
{
    AUTO(trace) struct trace t = TRACE_INIT;
    if (memchr(text, '\0', len) || !text_is_utf8(text))
        return err_set(e, -EINVAL, "%s is no text", file);
    int r = read_form(file, text, len, &t, e);
    if (r < 0)
        return r;
    if (!t.count && t.left_out)
        return err_set(e, -EINVAL, "%s: none of its %zu jobs ran on a card; nothing to replay",
                       file, t.left_out);
    if (!t.count)
        return err_set(e, -EINVAL,
                       "%s: no job in it; a trace is JSON, CSV with names in its first "
                       "line, what sacct -P prints, or lines of submit time, duration, cards and "
                       "account",
                       file);
    qsort(t.jobs, t.count, sizeof *t.jobs, by_submit);
    *ret = t;
    t = (struct trace)TRACE_INIT;
    return 0;
}

/* ---- guesses --------------------------------------------------------------- */

static uint64_t roll(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void trace_guess_limits(struct trace *t, double most, uint64_t seed)
{
    for (size_t i = 0; i < t->count; i++) {
        double u = 1 + (most - 1) * ((double)(roll(&seed) >> 11) / 9007199254740992.0);
        t->jobs[i].limit_us = (int64_t)((double)t->jobs[i].run_us * u) + 1;
    }
}
