#include "store/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/job_json.h"
#include "store/db.h"

static void bind_held(struct query *q, const struct held *h)
{
    query_bind_u64(q, h->parts);
    query_bind_real(q, h->asked);
    query_bind_real(q, h->held);
    query_bind_real(q, h->compute);
    query_bind_real(q, h->mem);
    query_bind_real(q, h->seen);
    query_bind_real(q, h->idle);
    query_bind_real(q, h->measured);
    query_bind_real(q, h->busy);
}

static void read_held(struct query *q, struct held *ret)
{
    ret->parts = query_u64(q);
    ret->asked = query_real(q);
    ret->held = query_real(q);
    ret->compute = query_real(q);
    ret->mem = query_real(q);
    ret->seen = query_real(q);
    ret->idle = query_real(q);
    ret->measured = query_real(q);
    ret->busy = query_real(q);
}

/* ---- history ---- */

int store_add_history(struct store *s, const struct history_row *row, struct err *e)
{
    AUTO(query) struct query q;
    auto_free char *request = db_json(request_to_json(&row->request));
    auto_free char *place = db_json(place_to_json(&row->place));
    query_open(
        &q, s,
        "INSERT INTO history (job_id, attempt, uid, user, account, qos, name, request, place,"
        " limit_us, attached, mem_bytes, cpu_milli, submit_wall_us, started_wall_us,"
        " ended_wall_us, outcome, preempted_by, parts, asked, held, compute, mem, seen, idle,"
        " measured, busy)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "?)");
    query_bind_u64(&q, row->job_id);
    query_bind_int(&q, row->attempt);
    query_bind_int(&q, row->uid);
    query_bind_text(&q, row->user);
    query_bind_text(&q, row->account);
    query_bind_text(&q, row->qos);
    query_bind_text(&q, row->name);
    query_bind_text(&q, request);
    query_bind_text(&q, place);
    query_bind_int(&q, row->limit_us);
    query_bind_int(&q, row->attached);
    query_bind_u64(&q, row->mem_bytes);
    query_bind_int(&q, row->cpu_milli);
    query_bind_int(&q, row->submit_wall_us);
    query_bind_int(&q, row->started_wall_us);
    query_bind_int(&q, row->ended_wall_us);
    query_bind_text(&q, job_state_word(row->outcome));
    query_bind_u64(&q, row->preempted_by);
    bind_held(&q, &row->held);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

static int read_json(const char *text, const char *what, json_t **ret, struct err *e)
{
    return json_parse(text, strlen(text), what, ret, e);
}

static int read_row(struct query *q, struct history_row *row, struct err *e)
{
    auto_json json_t *request = NULL;
    auto_json json_t *place = NULL;
    memset(row, 0, sizeof *row);
    row->job_id = query_u64(q);
    row->attempt = (uint32_t)query_int(q);
    row->uid = (uid_t)query_int(q);
    row->user = query_text(q);
    row->account = query_text(q);
    row->qos = query_text(q);
    row->name = query_text(q);
    int r = read_json(query_text(q), "a request", &request, e);
    if (r == 0)
        r = read_json(query_text(q), "a place", &place, e);
    if (r == 0)
        r = request_from_json(request, &row->request, e);
    if (r == 0)
        r = place_from_json(place, &row->place, e);
    if (r < 0)
        return err_wrap(e, -EILSEQ, "the store's history of job %" PRIu64, row->job_id);
    row->limit_us = query_int(q);
    row->attached = query_int(q) != 0;
    row->mem_bytes = query_u64(q);
    row->cpu_milli = (uint32_t)query_int(q);
    row->submit_wall_us = query_int(q);
    row->started_wall_us = query_int(q);
    row->ended_wall_us = query_int(q);
    if (job_state_parse(query_text(q), &row->outcome) < 0)
        row->outcome = JOB_LOST; /* a later version's word */
    row->preempted_by = query_u64(q);
    read_held(q, &row->held);
    return 0;
}

int store_each_history(struct store *s, const struct history_query *hq, store_history_fn fn,
                       void *arg, uint64_t *ret_seq, struct err *e)
{
    AUTO(query) struct query q;
    query_open(
        &q, s,
        "SELECT seq, job_id, attempt, uid, user, account, qos, name, request, place, limit_us,"
        " attached, mem_bytes, cpu_milli, submit_wall_us, started_wall_us, ended_wall_us, outcome,"
        " preempted_by, parts, asked, held, compute, mem, seen, idle, measured, busy FROM history"
        " WHERE seq > ? AND ended_wall_us >= ? AND ended_wall_us < ?"
        " AND (?4 IS NULL OR user = ?4) AND (?5 IS NULL OR account = ?5)"
        " ORDER BY seq LIMIT ?6");
    query_bind_u64(&q, hq->after);
    query_bind_int(&q, hq->from_wall_us);
    query_bind_int(&q, hq->to_wall_us);
    query_bind_text(&q, hq->user);
    query_bind_text(&q, hq->account);
    query_bind_int(&q, hq->limit);
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct history_row row;
        *ret_seq = query_u64(&q);
        r = read_row(&q, &row, e);
        if (r == 0)
            r = fn(&row, arg);
        place_done(&row.place);
        if (r != 0)
            break;
    }
    return r;
}

/* ---- days ---- */

int store_book(struct store *s, const struct ledger_place *where, const struct held *h,
               struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO ledger (day, user, account, profile, card, parts, asked, held, compute,"
               " mem, seen, idle, measured, busy)"
               " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
               " ON CONFLICT DO UPDATE SET parts = parts + excluded.parts,"
               " asked = asked + excluded.asked, held = held + excluded.held,"
               " compute = compute + excluded.compute, mem = mem + excluded.mem,"
               " seen = seen + excluded.seen, idle = idle + excluded.idle,"
               " measured = measured + excluded.measured, busy = busy + excluded.busy");
    query_bind_int(&q, where->day);
    query_bind_text(&q, where->user);
    query_bind_text(&q, where->account);
    query_bind_text(&q, where->profile);
    query_bind_text(&q, where->card);
    bind_held(&q, h);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

#define LEDGER_SUM(key)                                                                            \
    "SELECT " key ", sum(parts), sum(asked), sum(held), sum(compute), sum(mem), sum(seen),"        \
    " sum(idle), sum(measured), sum(busy) FROM ledger WHERE day >= ? AND day < ? GROUP BY " key

int store_read_ledger(struct store *s, struct ledger *l, struct err *e)
{
    static const char *const sums[] = {
        [LEDGER_BY_USER] = LEDGER_SUM("user"),
        [LEDGER_BY_ACCOUNT] = LEDGER_SUM("account"),
        [LEDGER_BY_PROFILE] = LEDGER_SUM("profile"),
        [LEDGER_BY_CARD] = LEDGER_SUM("card"),
    };
    AUTO(query) struct query q;
    query_open(&q, s, sums[l->by]);
    query_bind_int(&q, l->from_day);
    query_bind_int(&q, l->to_day);
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct held h;
        auto_free char *key = text_dup(query_text(&q));
        read_held(&q, &h);
        ledger_book(l, key, &h);
    }
    return r;
}

int store_prune_ledger(struct store *s, int32_t before_day, uint32_t max, struct err *e)
{
    static const char *const old[] = {
        "DELETE FROM history WHERE seq IN (SELECT seq FROM history WHERE ended_wall_us < ?"
        " LIMIT ?)",
        "DELETE FROM ledger WHERE rowid IN (SELECT rowid FROM ledger WHERE day < ? LIMIT ?)",
    };
    int sum = 0;
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        AUTO(query) struct query q;
        query_open(&q, s, old[i]);
        query_bind_int(&q, i == 0 ? day_begin(before_day) : before_day);
        query_bind_int(&q, max);
        int r = query_write(&q, e);
        if (r < 0)
            return r;
        sum += r;
    }
    return sum;
}
