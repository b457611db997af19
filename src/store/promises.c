#include "store/promises.h"

#include "store/db.h"

int store_set_expected(struct store *s, uint64_t id, int64_t wall_us, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE jobs SET expected_wall_us = ? WHERE id = ?");
    query_bind_int(&q, wall_us);
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such job");
}

int store_add_promise(struct store *s, int64_t off_us, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO promises (size, jobs, late, off_us) VALUES (?, 1, ?, ?)"
               " ON CONFLICT (size) DO UPDATE SET jobs = jobs + 1, late = late + excluded.late,"
               " off_us = off_us + excluded.off_us");
    query_bind_int(&q, promise_size(off_us));
    query_bind_int(&q, promise_is_late(off_us));
    query_bind_real(&q, (double)(off_us < 0 ? -off_us : off_us));
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

int store_read_promises(struct store *s, struct promises *ret, struct err *e)
{
    int r;
    AUTO(query) struct query q;
    struct promises p = { .late = 0 };
    query_open(&q, s, "SELECT size, jobs, late, off_us FROM promises");
    while ((r = query_next(&q, e)) > 0) {
        uint64_t size = query_u64(&q);
        uint64_t jobs = query_u64(&q);
        if (size < PROMISE_SIZES)
            p.jobs[size] = jobs;
        p.late += query_u64(&q);
        p.off_us += query_real(&q);
    }
    if (r == 0)
        *ret = p;
    return r;
}
