#include "store/waits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "store/db.h"

int store_add_waits(struct store *s, uint64_t id, const struct job_spec *spec, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO waits (job_id, array, depend, keep_invalid) VALUES (?, ?, ?, ?)");
    query_bind_u64(&q, id);
    query_bind_text(&q, spec->array ? spec->array : "");
    query_bind_text(&q, spec->dependency ? spec->dependency : "");
    query_bind_int(&q, spec->keep_invalid);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

int store_set_depend(struct store *s, uint64_t id, const char *depend, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE waits SET depend = ? WHERE job_id = ?");
    query_bind_text(&q, depend);
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such dependency");
}

int store_each_waits(struct store *s, store_waits_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT job_id, array, depend, keep_invalid FROM waits WHERE job_id IN"
               " (SELECT coalesce(array_id, id) FROM jobs WHERE ended_wall_us IS NULL)"
               " ORDER BY job_id");
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct waits_row row = { .id = query_u64(&q) };
        row.array = query_text(&q);
        row.depend = query_text(&q);
        row.keep_invalid = query_int(&q) != 0;
        r = fn(&row, arg);
        if (r != 0)
            break;
    }
    return r;
}

int store_array_words(struct store *s, uint64_t id, char **ret, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT w.array FROM jobs j JOIN waits w ON w.job_id = j.array_id WHERE j.id = ?");
    query_bind_u64(&q, id);
    int r = query_next(&q, e);
    if (r == 0)
        return err_set(e, -ENOENT, "job %" PRIu64 " is no array", id);
    if (r > 0)
        *ret = text_dup(query_text(&q));
    return r < 0 ? r : 0;
}

#define FACTS                                                                                      \
    "SELECT count(*), sum(state IN ('pending', 'preparing', 'starting') AND begun IS NULL),"       \
    " sum(ended_wall_us IS NULL), sum(ended_wall_us IS NOT NULL AND state <> 'completed'),"        \
    " sum(ended_wall_us IS NOT NULL AND begun IS NULL), max(coalesce(begun, ended_wall_us, 0))"    \
    " FROM (SELECT *, (SELECT min(nullif(started_wall_us, 0)) FROM attempts"                       \
    "                  WHERE job_id = id) AS begun FROM jobs)"

int store_depend_facts(struct store *s, const struct depend *d, struct depend_facts *ret,
                       struct err *e)
{
    AUTO(query) struct query q;
    if (d->index >= 0)
        query_open(&q, s, FACTS " WHERE array_id = ? AND array_index = ?");
    else
        query_open(&q, s, FACTS " WHERE (id = ?1 AND array_id IS NOT id) OR array_id = ?1");
    query_bind_u64(&q, d->id);
    if (d->index >= 0)
        query_bind_int(&q, d->index);
    int r = query_next(&q, e);
    if (r <= 0)
        return r;
    *ret = (struct depend_facts){ .count = query_u64(&q) };
    ret->unstarted = query_u64(&q);
    ret->live = query_u64(&q);
    ret->not_ok = query_u64(&q);
    ret->dropped = query_u64(&q);
    ret->begun_wall_us = query_int(&q);
    return 0;
}

int store_last_job(struct store *s, uint64_t *ret, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT seq FROM sqlite_sequence WHERE name = 'jobs'");
    int r = query_next(&q, e);
    *ret = r > 0 ? query_u64(&q) : 0;
    return r < 0 ? r : 0;
}
