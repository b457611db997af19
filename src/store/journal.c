#include "store/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "store/db.h"

static const char *const words[] = { "planned", "sent", "done", "failed", "undone" };

const char *journal_state_word(enum journal_state st)
{
    return words[st];
}

static int read_word(const char *word, enum journal_state *ret, uint64_t plan_id, struct err *e)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) {
            *ret = (enum journal_state)i;
            return 0;
        }
    return err_set(e, -EILSEQ, "the store's plan %" PRIu64 " has a step in the state '%.32s'",
                   plan_id, word);
}

static int insert_plan(struct store *s, uint64_t job_id, uint32_t attempt, const char *who,
                       struct now now, uint64_t *ret_id, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO plans (job_id, attempt, who, made_wall_us)"
               " VALUES (nullif(?, 0), ?, ?, ?)");
    query_bind_u64(&q, job_id);
    query_bind_int(&q, attempt);
    query_bind_text(&q, who ? who : "");
    query_bind_int(&q, now.wall_us);
    int r = query_write(&q, e);
    *ret_id = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return r < 0 ? r : 0;
}

static int insert_step(struct store *s, uint64_t plan_id, size_t seq, const char *step,
                       struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "INSERT INTO journal (plan_id, seq, state, step) VALUES (?, ?, ?, ?)");
    query_bind_u64(&q, plan_id);
    query_bind_u64(&q, seq);
    query_bind_text(&q, words[JOURNAL_PLANNED]);
    query_bind_text(&q, step);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

/* NOLINTNEXTLINE(readability-function-size): whose it is, its steps, when, and what comes of it */
int store_add_plan(struct store *s, uint64_t job_id, uint32_t attempt, const char *who,
                   const char *const *steps, size_t count, struct now now, uint64_t *ret_plan_id,
                   struct err *e)
{
    uint64_t id = 0;
    if (count == 0)
        return err_set(e, -EINVAL, "a plan without steps has no journal");
    int r = insert_plan(s, job_id, attempt, who, now, &id, e);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = insert_step(s, id, i, steps[i], e);
    if (r == 0)
        *ret_plan_id = id;
    return r;
}

int store_set_step(struct store *s, uint64_t plan_id, uint32_t seq, enum journal_state state,
                   const char *step, const char *note, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE journal SET state = ?, step = coalesce(?, step),"
               " note = coalesce(?, note) WHERE plan_id = ? AND seq = ?");
    query_bind_text(&q, words[state]);
    query_bind_text(&q, step);
    query_bind_text(&q, note);
    query_bind_u64(&q, plan_id);
    query_bind_int(&q, seq);
    return query_write_one(&q, e, "such step");
}

int store_close_plan(struct store *s, uint64_t plan_id, struct now now, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE plans SET closed_wall_us = ? WHERE id = ?");
    query_bind_int(&q, now.wall_us);
    query_bind_u64(&q, plan_id);
    return query_write_one(&q, e, "such plan");
}

static int read_row(struct query *q, struct journal_row *row, struct err *e)
{
    *row = (struct journal_row){ .plan_id = query_u64(q) };
    row->job_id = query_u64(q);
    row->attempt = (uint32_t)query_int(q);
    row->who = query_text(q);
    row->made_wall_us = query_int(q);
    row->seq = (uint32_t)query_int(q);
    int r = read_word(query_text(q), &row->state, row->plan_id, e);
    row->step = query_text(q);
    row->note = query_text(q);
    return r;
}

static int walk(struct query *q, store_journal_fn fn, void *arg, struct err *e)
{
    int r;
    while ((r = query_next(q, e)) > 0) {
        struct journal_row row;
        r = read_row(q, &row, e);
        if (r == 0)
            r = fn(&row, arg);
        if (r != 0)
            break;
    }
    return r;
}

#define STEPS                                                                                      \
    "SELECT p.id, p.job_id, p.attempt, p.who, p.made_wall_us, t.seq, t.state, t.step, t.note"      \
    " FROM plans p JOIN journal t ON t.plan_id = p.id"

int store_each_open_step(struct store *s, store_journal_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, STEPS " WHERE p.closed_wall_us IS NULL ORDER BY p.id, t.seq");
    return walk(&q, fn, arg, e);
}

int store_each_job_step(struct store *s, uint64_t job_id, store_journal_fn fn, void *arg,
                        struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, STEPS " WHERE p.job_id = ? ORDER BY p.id, t.seq");
    query_bind_u64(&q, job_id);
    return walk(&q, fn, arg, e);
}
