#include "store/preempted.h"

#include <stdio.h>

#include "store/db.h"

int store_add_preempted(struct store *s, uint64_t id, uint32_t attempt, uint64_t by,
                        const char *user, int64_t wall_us, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO preempted (job_id, attempt, by_job, by_user, wall_us)"
               " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    query_bind_u64(&q, by);
    query_bind_text(&q, user);
    query_bind_int(&q, wall_us);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

int store_read_preempted(struct store *s, uint64_t id, uint32_t attempt, struct preempted_row *ret,
                         struct err *e)
{
    AUTO(query) struct query q;
    struct preempted_row row = { .times = 0 };
    int r;
    query_open(&q, s,
               "SELECT wall_us, by_job, by_user FROM preempted"
               " WHERE job_id = ?1 AND (?2 = 0 OR attempt = ?2) ORDER BY attempt");
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    while ((r = query_next(&q, e)) > 0) {
        row.times++;
        row.wall_us = query_int(&q);
        row.by = query_u64(&q);
        (void)snprintf(row.user, sizeof row.user, "%s", query_text(&q)); /* names are no longer */
    }
    if (r == 0)
        *ret = row;
    return r;
}
