#include "model/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void job_array_done(struct job_array *a)
{
    free(a->indices);
    *a = (struct job_array){ .indices = NULL };
}

static int add_range(struct job_array *a, uint64_t first, uint64_t last, uint64_t step,
                     struct err *e)
{
    if (last < first)
        return err_set(e, -EINVAL,
                       "array: %" PRIu64 "-%" PRIu64 " goes backwards; the smaller one is first",
                       first, last);
    if ((last - first) / step + 1 + a->count > JOB_ARRAY_TASKS_MAX)
        return err_set(e, -E2BIG, "array: an array has at most %u tasks here", JOB_ARRAY_TASKS_MAX);
    for (uint64_t i = first; i <= last; i += step) {
        ARRAY_ROOM(a->indices, a->alloc, a->count + 1);
        a->indices[a->count++] = (uint32_t)i;
    }
    return 0;
}

/* "5", "5-9" or "5-9:2". */
static int read_item(char *item, struct job_array *a, struct err *e)
{
    uint64_t first = 0, last = 0, step = 1;
    char *dash = strchr(item, '-');
    char *colon = strchr(item, ':');
    if (colon && !dash)
        return err_set(e, -EINVAL, "array: a step belongs to a range, as in 1-9:2");
    if (colon)
        *colon++ = '\0';
    if (dash)
        *dash++ = '\0';
    int r = text_parse_u64(item, 0, JOB_ARRAY_INDEX_MAX, "array", &first, e);
    last = first;
    if (r == 0 && dash)
        r = text_parse_u64(dash, 0, JOB_ARRAY_INDEX_MAX, "array", &last, e);
    if (r == 0 && colon)
        r = text_parse_u64(colon, 1, JOB_ARRAY_INDEX_MAX, "array: the step", &step, e);
    return r < 0 ? r : add_range(a, first, last, step, e);
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void each_once(struct job_array *a)
{
    size_t kept = 1;
    if (!a->count)
        return;
    qsort(a->indices, a->count, sizeof *a->indices, ascending);
    for (size_t i = 1; i < a->count; i++)
        if (a->indices[i] != a->indices[kept - 1])
            a->indices[kept++] = a->indices[i];
    a->count = kept;
}

static int read_items(char *words, struct job_array *a, struct err *e)
{
    for (char *item = words, *next; item; item = next) {
        next = strchr(item, ',');
        if (next)
            *next++ = '\0';
        int r = read_item(item, a, e);
        if (r < 0)
            return r;
    }
    each_once(a);
    return 0;
}

int job_array_parse(const char *words, struct job_array *ret, struct err *e)
{
    AUTO(job_array) struct job_array a = { .indices = NULL };
    uint64_t most = 0;
    if (strlen(words) > JOB_ARRAY_WORDS_MAX)
        return err_set(e, -E2BIG, "array: more than %d bytes; ranges are shorter, as in 0-99",
                       JOB_ARRAY_WORDS_MAX);
    auto_free char *copy = text_dup(words);
    char *percent = strchr(copy, '%');
    if (percent)
        *percent++ = '\0';
    int r = read_items(copy, &a, e);
    if (r == 0 && percent)
        r = text_parse_u64(percent, 1, JOB_ARRAY_TASKS_MAX, "array: the limit behind %", &most, e);
    if (r < 0)
        return r;
    a.running_max = (uint32_t)most;
    *ret = a;
    a = (struct job_array){ .indices = NULL };
    return 0;
}

int64_t job_array_position(const struct job_array *a, uint32_t index)
{
    const uint32_t *at =
        a->count ? bsearch(&index, a->indices, a->count, sizeof index, ascending) : NULL;
    return at ? at - a->indices : -1;
}

/* How many from `indices` on follow each other by the same step. */
static size_t run_of(const uint32_t *indices, size_t count, uint32_t *ret_step)
{
    size_t n = 1;
    *ret_step = count > 1 ? indices[1] - indices[0] : 1;
    while (n < count && indices[n] - indices[n - 1] == *ret_step)
        n++;
    if (*ret_step != 1 && n < 3) /* two that are far from each other are no range */
        n = 1;
    return n;
}

void job_array_add_words(struct text *t, const uint32_t *indices, size_t count)
{
    for (size_t i = 0, n; i < count; i += n) {
        uint32_t step;
        n = run_of(indices + i, count - i, &step);
        text_addf(t, i ? ",%u" : "%u", indices[i]);
        if (n == 2)
            text_addf(t, ",%u", indices[i + 1]);
        else if (n > 2)
            text_addf(t, "-%u", indices[i + n - 1]);
        if (n > 2 && step != 1)
            text_addf(t, ":%u", step);
    }
}

char *job_array_output(const char *output, uint64_t array_id, uint32_t index)
{
    struct text t = TEXT_INIT;
    if (!output)
        return NULL;
    for (const char *p = output; *p; p++) {
        if (p[0] == '%' && p[1] == 'A')
            text_addf(&t, "%" PRIu64, array_id);
        else if (p[0] == '%' && p[1] == 'a')
            text_addf(&t, "%u", index);
        else
            text_addn(&t, p, p[0] == '%' && p[1] == '%' ? 2 : 1);
        if (p[0] == '%' && p[1] && strchr("Aa%", p[1]))
            p++;
    }
    return text_take(&t);
}
