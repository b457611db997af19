#include "store/usage.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "store/db.h"

int store_set_usage(struct store *s, const char *account, uid_t uid, double used_card_us,
                    struct now stamp, struct err *e)
{
    assert(isfinite(used_card_us) && used_card_us >= 0);
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT OR REPLACE INTO usage (account, uid, used_card_us, boot,"
               " stamp_boot_us, stamp_wall_us) VALUES (?, ?, ?, ?, ?, ?)");
    query_bind_text(&q, account);
    query_bind_int(&q, uid);
    query_bind_real(&q, used_card_us);
    query_bind_int(&q, s->boot);
    query_bind_int(&q, stamp.boot_us);
    query_bind_int(&q, stamp.wall_us);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

static void read_usage(struct query *q, struct usage_row *row)
{
    memset(row, 0, sizeof *row);
    row->account = query_text(q);
    row->uid = (uid_t)query_int(q);
    row->used_card_us = query_real(q);
    row->stamp.boot_us = query_int(q);
    row->stamp.wall_us = query_int(q);
    query_copy(q, row->boot_id, sizeof row->boot_id);
}

int store_each_usage(struct store *s, store_usage_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT u.account, u.uid, u.used_card_us, u.stamp_boot_us, u.stamp_wall_us,"
               " b.boot_id FROM usage u JOIN boots b ON b.id = u.boot"
               " ORDER BY u.account, u.uid");
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct usage_row row;
        read_usage(&q, &row);
        r = fn(&row, arg);
        if (r != 0)
            break;
    }
    return r;
}

int64_t usage_age_us(const struct usage_row *row, struct now now, const char *boot_id)
{
    bool same_boot = *boot_id && strcmp(row->boot_id, boot_id) == 0;
    int64_t age = same_boot ? now.boot_us - row->stamp.boot_us : now.wall_us - row->stamp.wall_us;
    return age > 0 ? age : 0;
}
