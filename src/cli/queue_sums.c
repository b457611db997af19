#include "cli/queue_sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "model/charge.h"
#include "model/job_json.h"

static struct queue_sum *sum_of(struct queue_sum *sums, size_t *count, const char *key)
{
    for (size_t i = 0; i < *count; i++)
        if (strcmp(sums[i].key, key) == 0)
            return &sums[i];
    sums[*count] = (struct queue_sum){ .key = key };
    return &sums[(*count)++];
}

static void count_job(struct queue_sum *q, const struct job_view *v)
{
    int64_t at = v->expected_start_wall_us;
    uint32_t tasks = v->array_tasks > 1 ? v->array_tasks : 1;
    if (job_state_ended(v->state)) {
        q->ended++;
    } else if (v->state == JOB_PENDING) {
        q->waiting += tasks;
        if (at && (!q->next_start_wall_us || at < q->next_start_wall_us))
            q->next_start_wall_us = at;
    } else {
        q->running++;
        q->compute_ppm += charge_compute_ppm(&v->place);
        q->mem_ppm += charge_mem_ppm(&v->place);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct queue_sum *x = a;
    const struct queue_sum *y = b;
    return strcmp(x->key, y->key);
}

struct queue_sum *queue_sums(const struct job_view *jobs, size_t count, bool by_user,
                             size_t *ret_count)
{
    struct queue_sum *sums = mem_new((count + 1) * sizeof *sums);
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        const char *key = by_user ? jobs[i].user : jobs[i].account;
        count_job(sum_of(sums, &n, key ? key : ""), &jobs[i]);
    }
    qsort(sums, n, sizeof *sums, by_key);
    *ret_count = n;
    return sums;
}

static void cell(struct table *t, double x, int digits)
{
    char words[32];
    (void)snprintf(words, sizeof words, "%.*f", digits, x); /* a number fits */
    table_cell(t, words);
}

void queue_sums_draw(const struct queue_sum *sums, size_t count, bool by_user, int64_t now_wall_us,
                     const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    uint32_t ended = 0;
    for (size_t i = 0; i < count; i++)
        ended += sums[i].ended;
    table_column(&t, by_user ? "USER" : "ACCOUNT", TABLE_CUT);
    table_column(&t, "RUNNING", TABLE_RIGHT);
    table_column(&t, "WAITING", TABLE_RIGHT);
    if (ended)
        table_column(&t, "ENDED", TABLE_RIGHT);
    table_column(&t, "COMPUTE", TABLE_RIGHT);
    table_column(&t, "MEMORY", TABLE_RIGHT);
    table_column(&t, "NEXT START", 0);
    for (size_t i = 0; i < count; i++) {
        AUTO(text) struct text next = TEXT_INIT;
        if (sums[i].next_start_wall_us)
            when_add(&next, sums[i].next_start_wall_us, now_wall_us);
        table_cell(&t, sums[i].key);
        cell(&t, sums[i].running, 0);
        cell(&t, sums[i].waiting, 0);
        if (ended)
            cell(&t, sums[i].ended, 0);
        cell(&t, (double)sums[i].compute_ppm / PPM, 2);
        cell(&t, (double)sums[i].mem_ppm / PPM, 2);
        table_cell(&t, next.len ? next.buf : sums[i].waiting ? "n/a" : "");
    }
    table_draw(&t, s, ret);
}

json_t *queue_sums_json(const struct queue_sum *sums, size_t count, bool by_user)
{
    json_t *j = json_object();
    json_t *lines = json_array();
    for (size_t i = 0; i < count; i++) {
        const struct queue_sum *q = &sums[i];
        json_t *line = json_object();
        json_put_text(line, "key", q->key);
        json_put_u64(line, "running", q->running);
        json_put_u64(line, "waiting", q->waiting);
        json_put_u64(line, "ended", q->ended);
        json_put_u64(line, "compute_ppm", q->compute_ppm);
        json_put_u64(line, "mem_ppm", q->mem_ppm);
        json_put(line, "next_start_wall_us",
                 q->next_start_wall_us ? json_integer(q->next_start_wall_us) : json_null());
        (void)json_array_append_new(lines, line); /* out of memory: a shorter list */
    }
    json_put_text(j, "by", by_user ? "user" : "account");
    json_put(j, "lines", lines);
    return j;
}
