#include "model/depend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const char *const kind_words[] = { "after", "afterok", "afternotok", "afterany",
                                          "singleton" };
#define KINDS (sizeof kind_words / sizeof *kind_words)

const char *depend_kind_word(enum depend_kind k)
{
    return kind_words[k];
}

void depend_list_done(struct depend_list *l)
{
    free(l->items);
    *l = (struct depend_list){ .items = NULL };
}

static int add_item(struct depend_list *l, const struct depend *d, struct err *e)
{
    if (l->count == DEPEND_MAX)
        return err_set(e, -E2BIG,
                       "--dependency: a job waits for at most %d others; let one job wait for "
                       "some of them, and this one for that",
                       DEPEND_MAX);
    ARRAY_ROOM(l->items, l->alloc, l->count + 1);
    l->items[l->count++] = *d;
    return 0;
}

/* The "10" of "41+10". */
static int read_delay(const char *word, struct depend *d, struct err *e)
{
    uint64_t minutes = 0;
    if (d->kind != DEPEND_AFTER)
        return err_set(e, -EINVAL,
                       "--dependency: minutes behind + count from a start, as in after:41+%.16s; "
                       "%s has none",
                       word, depend_kind_word(d->kind));
    int r = text_parse_u64(word, 0, DEPEND_DELAY_MAX, "--dependency: the minutes behind +",
                           &minutes, e);
    d->delay_minutes = (uint32_t)minutes;
    return r;
}

/* "41" or "42_7", and "+10" behind it. */
static int read_job(char *word, struct depend *d, struct err *e)
{
    uint64_t index = 0;
    char *plus = strchr(word, '+');
    if (plus)
        *plus++ = '\0';
    char *under = strchr(word, '_');
    if (under)
        *under++ = '\0';
    int r = text_parse_u64(word, 1, INT64_MAX, "--dependency: the job", &d->id, e);
    d->index = -1;
    d->delay_minutes = 0;
    if (r == 0 && plus)
        r = read_delay(plus, d, e);
    if (r == 0 && under) {
        r = text_parse_u64(under, 0, UINT32_MAX, "--dependency: the index", &index, e);
        d->index = (int64_t)index;
    }
    return r;
}

static int find_kind(const char *word, enum depend_kind *ret, struct err *e)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(word, kind_words[i]) == 0) {
            *ret = (enum depend_kind)i;
            return 0;
        }
    return err_set(e, -EINVAL,
                   "--dependency: '%.32s' is nothing to wait for; it is after, afterok, "
                   "afternotok or afterany with jobs, as in afterok:41:42, or singleton",
                   word);
}

/* "afterok:41:42". */
static int read_term(char *term, struct depend_list *l, struct err *e)
{
    struct depend d = { .index = -1 };
    char *jobs = strchr(term, ':');
    if (jobs)
        *jobs++ = '\0';
    int r = find_kind(term, &d.kind, e);
    if (r < 0)
        return r;
    if ((d.kind == DEPEND_SINGLETON) == (jobs != NULL))
        return err_set(e, -EINVAL,
                       jobs ? "--dependency: %s stands alone, without jobs"
                            : "--dependency: %s of which job? As in afterok:41",
                       term);
    if (!jobs)
        return add_item(l, &d, e);
    for (char *next; jobs && r == 0; jobs = next) {
        next = strchr(jobs, ':');
        if (next)
            *next++ = '\0';
        r = read_job(jobs, &d, e);
        if (r == 0)
            r = add_item(l, &d, e);
    }
    return r;
}

int depend_parse(const char *words, struct depend_list *ret, struct err *e)
{
    AUTO(depend_list) struct depend_list l = { .any = strchr(words, '?') != NULL };
    if (strlen(words) > DEPEND_WORDS_MAX)
        return err_set(e, -E2BIG, "--dependency: more than %d bytes", DEPEND_WORDS_MAX);
    if (l.any && strchr(words, ','))
        return err_set(e, -EINVAL,
                       "--dependency: , means all of them and ? one of them; a list has one or the "
                       "other");
    auto_free char *copy = text_dup(words);
    for (char *term = copy, *next; term; term = next) {
        next = strpbrk(term, ",?");
        if (next)
            *next++ = '\0';
        int r = read_term(term, &l, e);
        if (r < 0)
            return r;
    }
    *ret = l;
    l = (struct depend_list){ .items = NULL };
    return 0;
}

void depend_add(struct text *t, const struct depend *d)
{
    text_add(t, kind_words[d->kind]);
    if (d->kind != DEPEND_SINGLETON)
        text_addf(t, ":%" PRIu64, d->id);
    if (d->index >= 0)
        text_addf(t, "_%" PRId64, d->index);
    if (d->delay_minutes)
        text_addf(t, "+%" PRIu32, d->delay_minutes);
}

void depend_list_add(struct text *t, const struct depend_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (i)
            text_add(t, l->any ? "?" : ",");
        depend_add(t, &l->items[i]);
    }
}

enum depend_answer depend_judge(enum depend_kind kind, const struct depend_facts *f)
{
    switch (kind) {
    case DEPEND_AFTER:
        return f->unstarted ? DEPEND_WAITS : DEPEND_MET;
    case DEPEND_AFTEROK:
        if (f->not_ok)
            return DEPEND_NEVER;
        return f->live ? DEPEND_WAITS : DEPEND_MET;
    case DEPEND_AFTERNOTOK:
        if (f->live)
            return DEPEND_WAITS;
        return f->not_ok ? DEPEND_MET : DEPEND_NEVER;
    case DEPEND_AFTERANY:
    case DEPEND_SINGLETON:
        break;
    }
    return f->live ? DEPEND_WAITS : DEPEND_MET;
}

enum depend_answer depend_look(struct depend *d, const struct depend_facts *f, int64_t now_wall_us)
{
    enum depend_answer answer = depend_judge(d->kind, f);
    d->due_wall_us = 0;
    if (answer != DEPEND_MET || !d->delay_minutes || !f->begun_wall_us)
        return answer;
    d->due_wall_us = f->begun_wall_us + d->delay_minutes * CLOCK_MINUTE;
    d->dropped = f->dropped == f->count;
    return d->due_wall_us > now_wall_us ? DEPEND_WAITS : DEPEND_MET;
}
