#include "store/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/array.h"
#include "model/job_json.h"
#include "store/db.h"
#include "store/environment.h"
#include "store/waits.h"

/* ---- JSON and words in columns -------------------------------------------- */

static json_t *parse(const char *text, const char *what, struct err *e)
{
    json_t *json = NULL;
    return json_parse(text, strlen(text), what, &json, e) < 0 ? NULL : json;
}

static int damaged(struct err *e, uint64_t id)
{
    return err_wrap(e, -EILSEQ, "the store's row of job %" PRIu64, id);
}

static int read_state(const char *word, enum job_state *ret, uint64_t id, struct err *e)
{
    *ret = JOB_PENDING;
    if (!*word || job_state_parse(word, ret) == 0)
        return 0;
    return err_set(e, -EILSEQ, "the store's row of job %" PRIu64 " has the state '%.32s'", id,
                   word);
}

static const char *state_or_null(enum job_state state)
{
    return state == JOB_PENDING ? NULL : job_state_word(state);
}

/* ---- submitting ------------------------------------------------------------ */

/* One row of jobs: of a job, or of one task of an array. */
struct insert {
    const struct job_submit *who;
    const struct job_spec *spec;
    const char *request;
    struct now now;
    uint64_t array_id; /* 0: none, or the first task, whose id is not known before */
    int64_t index;     /* -1: no array */
};

static int insert_job(struct store *s, const struct insert *in, uint64_t *ret_id, struct err *e)
{
    const struct job_submit *who = in->who;
    const struct job_spec *spec = in->spec;
    AUTO(query) struct query q;
    query_open(
        &q, s,
        "INSERT INTO jobs (uid, gid, user, account, qos, name, request, limit_us, mem_bytes,"
        " cpu_milli, state, reason,"
        " submit_wall_us, submit_boot_us, submit_boot, begin_wall_us, deadline_wall_us, hold,"
        " attached, tells, array_id, array_index)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0),"
        " nullif(?, -1))");
    query_bind_int(&q, who->uid);
    query_bind_int(&q, who->gid);
    query_bind_text(&q, who->user);
    query_bind_text(&q, spec->account ? spec->account : "");
    query_bind_text(&q, spec->qos ? spec->qos : "");
    query_bind_text(&q, spec->name);
    query_bind_text(&q, in->request);
    query_bind_int(&q, spec->limit_us);
    query_bind_u64(&q, spec->mem_bytes);
    query_bind_int(&q, spec->cpu_milli);
    query_bind_text(&q, job_state_word(JOB_PENDING));
    query_bind_text(&q, who->reason ? who->reason : "");
    query_bind_int(&q, in->now.wall_us);
    query_bind_int(&q, in->now.boot_us);
    query_bind_int(&q, s->boot);
    query_bind_int(&q, spec->begin_wall_us);
    query_bind_int(&q, spec->deadline_wall_us);
    query_bind_text(&q, job_hold_word(spec->hold ? JOB_HOLD_USER : JOB_HOLD_NONE));
    query_bind_int(&q, spec->attached);
    query_bind_int(&q, job_tells(spec));
    query_bind_u64(&q, in->array_id);
    query_bind_int(&q, in->index);
    int r = query_write(&q, e);
    *ret_id = (uint64_t)sqlite3_last_insert_rowid(s->db);
    return r < 0 ? r : 0;
}

static int insert_spec(struct store *s, uint64_t id, const struct job_submit *who,
                       const struct job_spec *spec, int64_t environment, struct err *e)
{
    auto_free char *json = db_json(job_spec_to_json(spec, false));
    AUTO(text) struct text groups = TEXT_INIT;
    for (size_t i = 0; i < who->group_count && i < STORE_GROUPS_MAX; i++)
        text_addf(&groups, i ? " %u" : "%u", (unsigned int)who->groups[i]);
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO specs (job_id, spec, groups, environment)"
               " VALUES (?, ?, ?, nullif(?, 0))");
    query_bind_u64(&q, id);
    query_bind_text(&q, json);
    query_bind_text(&q, groups.buf);
    query_bind_int(&q, environment);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

/* The first task's id is the array's, and is known only now. */
static int insert_tasks(struct store *s, struct insert *in, uint64_t *ret_id, struct err *e)
{
    AUTO(job_array) struct job_array a = { .indices = NULL };
    uint64_t id = 0;
    int r = job_array_parse(in->spec->array, &a, e);
    for (size_t i = 0; r == 0 && i < a.count; i++) {
        in->index = a.indices[i];
        r = insert_job(s, in, &id, e);
        if (r == 0 && i == 0)
            in->array_id = id;
    }
    if (r < 0)
        return r;
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE jobs SET array_id = id WHERE id = ?");
    query_bind_u64(&q, in->array_id);
    *ret_id = in->array_id;
    return query_write_one(&q, e, "such job");
}

static int insert_rows(struct store *s, const struct job_submit *who, const struct job_spec *spec,
                       struct now now, uint64_t *ret_id, struct err *e)
{
    auto_free char *request = db_json(request_to_json(&spec->request));
    struct insert in = { .who = who, .spec = spec, .request = request, .now = now, .index = -1 };
    int r = spec->array ? insert_tasks(s, &in, ret_id, e) : insert_job(s, &in, ret_id, e);
    if (r == 0 && (spec->array || spec->dependency))
        r = store_add_waits(s, *ret_id, spec, e);
    return r;
}

int store_add_job(struct store *s, const struct job_submit *who, const struct job_spec *spec,
                  struct now now, uint64_t *ret_id, struct err *e)
{
    uint64_t id = 0;
    int64_t environment = 0;
    int r = spec->env ? environment_keep(s, spec->env, &environment, e) : 0;
    if (r == 0)
        r = insert_rows(s, who, spec, now, &id, e);
    if (r == 0)
        r = insert_spec(s, id, who, spec, environment, e);
    if (r == 0)
        *ret_id = id;
    return r;
}

static int raise_sequence(struct store *s, uint64_t id, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'jobs'");
    query_bind_u64(&q, id);
    return query_write(&q, e);
}

int store_reserve_job(struct store *s, uint64_t id, struct err *e)
{
    int r = raise_sequence(s, id, e);
    if (r != 0)
        return r < 0 ? r : 0;
    AUTO(query) struct query q; /* no job was ever taken */
    query_open(&q, s, "INSERT INTO sqlite_sequence (name, seq) VALUES ('jobs', ?)");
    query_bind_u64(&q, id);
    r = query_write(&q, e);
    return r < 0 ? r : 0;
}

/* ---- states ---------------------------------------------------------------- */

int store_set_state(struct store *s, uint64_t id, enum job_state state, enum job_state verdict,
                    const char *reason, struct now now, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE jobs SET state = ?, verdict = ?, reason = coalesce(?, reason),"
               " ended_wall_us = nullif(?, -1) WHERE id = ?");
    query_bind_text(&q, job_state_word(state));
    query_bind_text(&q, state_or_null(verdict));
    query_bind_text(&q, reason);
    query_bind_int(&q, job_state_ended(state) ? now.wall_us : -1);
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such job");
}

int store_set_hold(struct store *s, uint64_t id, enum job_hold hold, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE jobs SET hold = ? WHERE id = ?");
    query_bind_text(&q, job_hold_word(hold));
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such job");
}

int store_set_requeue(struct store *s, uint64_t id, bool requeue, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE jobs SET requeue = ? WHERE id = ?");
    query_bind_int(&q, requeue);
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such job");
}

int store_set_reason(struct store *s, uint64_t id, const char *reason, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE jobs SET reason = ? WHERE id = ?");
    query_bind_text(&q, reason);
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such job");
}

/* ---- attempts -------------------------------------------------------------- */

static int last_attempt(struct store *s, uint64_t id, uint32_t *ret, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, "SELECT attempt FROM jobs WHERE id = ?");
    query_bind_u64(&q, id);
    int r = query_next(&q, e);
    if (r == 0)
        return err_set(e, -ENOENT, "the store has no job %" PRIu64, id);
    if (r > 0)
        *ret = (uint32_t)query_int(&q);
    return r < 0 ? r : 0;
}

static int insert_attempt(struct store *s, uint64_t id, uint32_t attempt, const struct place *place,
                          struct now now, struct err *e)
{
    auto_free char *json = db_json(place_to_json(place));
    AUTO(query) struct query q;
    query_open(&q, s,
               "INSERT INTO attempts (job_id, attempt, place, boot, placed_boot_us,"
               " placed_wall_us) VALUES (?, ?, ?, ?, ?, ?)");
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    query_bind_text(&q, json);
    query_bind_int(&q, s->boot);
    query_bind_int(&q, now.boot_us);
    query_bind_int(&q, now.wall_us);
    int r = query_write(&q, e);
    return r < 0 ? r : 0;
}

int store_add_attempt(struct store *s, uint64_t id, uint32_t attempt, const struct place *place,
                      struct now now, struct err *e)
{
    uint32_t last = 0;
    int r = last_attempt(s, id, &last, e);
    if (r == 0 && attempt != last + 1)
        r = err_set(e, -EINVAL, "the next attempt of job %" PRIu64 " is %u, not %u", id, last + 1,
                    attempt);
    if (r == 0)
        r = insert_attempt(s, id, attempt, place, now, e);
    if (r < 0)
        return r;
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE jobs SET attempt = ? WHERE id = ?");
    query_bind_int(&q, attempt);
    query_bind_u64(&q, id);
    return query_write_one(&q, e, "such job");
}

int store_set_place(struct store *s, uint64_t id, uint32_t attempt, const struct place *place,
                    struct err *e)
{
    auto_free char *json = db_json(place_to_json(place));
    AUTO(query) struct query q;
    query_open(&q, s, "UPDATE attempts SET place = ? WHERE job_id = ? AND attempt = ?");
    query_bind_text(&q, json);
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    return query_write_one(&q, e, "such attempt");
}

int store_attempt_started(struct store *s, uint64_t id, uint32_t attempt, struct now at,
                          struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE attempts SET started_boot_us = ?, started_wall_us = ?"
               " WHERE job_id = ? AND attempt = ?");
    query_bind_int(&q, at.boot_us);
    query_bind_int(&q, at.wall_us);
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    return query_write_one(&q, e, "such attempt");
}

int store_set_samples(struct store *s, uint64_t id, uint32_t attempt,
                      const struct attempt_samples *samples, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE attempts SET gpu_mem_peak_bytes = ?, gpu_load_sum = ?, gpu_load_count = ?"
               " WHERE job_id = ? AND attempt = ?");
    query_bind_u64(&q, samples->mem_peak_bytes);
    query_bind_u64(&q, samples->load_sum);
    query_bind_u64(&q, samples->load_count);
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    return query_write_one(&q, e, "such attempt");
}

int store_end_attempt(struct store *s, uint64_t id, uint32_t attempt, enum job_state outcome,
                      const struct job_exit *exit, uint64_t charge_ppm_us, struct now at,
                      struct err *e)
{
    auto_free char *json = exit ? db_json(exit_to_json(exit)) : NULL;
    AUTO(query) struct query q;
    query_open(&q, s,
               "UPDATE attempts SET ended_boot_us = iif(boot = ?, ?, 0), ended_wall_us = ?,"
               " outcome = ?, exit = ?, charge_ppm_us = ?"
               " WHERE job_id = ? AND attempt = ?");
    query_bind_int(&q, s->boot);
    query_bind_int(&q, at.boot_us);
    query_bind_int(&q, at.wall_us);
    query_bind_text(&q, state_or_null(outcome));
    query_bind_text(&q, json);
    query_bind_u64(&q, charge_ppm_us);
    query_bind_u64(&q, id);
    query_bind_int(&q, attempt);
    return query_write_one(&q, e, "such attempt");
}

/* ---- reading --------------------------------------------------------------- */

#define ATTEMPT_COLUMNS                                                                            \
    "a.attempt, a.place, b.boot_id, a.placed_boot_us, a.placed_wall_us, a.started_boot_us,"        \
    " a.started_wall_us, a.ended_boot_us, a.ended_wall_us, a.outcome, a.exit, a.charge_ppm_us,"    \
    " a.gpu_mem_peak_bytes, a.gpu_load_sum, a.gpu_load_count"
#define JOB_COLUMNS                                                                                \
    "j.id, j.uid, j.gid, j.user, j.account, j.qos, j.name, j.request, j.limit_us, "                \
    "j.mem_bytes, j.cpu_milli, j.state, "                                                          \
    "j.verdict,"                                                                                   \
    " j.reason, j.submit_wall_us, j.begin_wall_us, j.deadline_wall_us, j.ended_wall_us, j.hold,"   \
    " j.attached, j.expected_wall_us, j.requeue, j.tells, j.array_id, j.array_index,"              \
    " (SELECT total(x.charge_ppm_us) FROM attempts x WHERE x.job_id = j.id)"
#define JOBS_WITH_LAST_ATTEMPT                                                                     \
    "SELECT " JOB_COLUMNS ", " ATTEMPT_COLUMNS " FROM jobs j"                                      \
    " LEFT JOIN attempts a ON a.job_id = j.id AND a.attempt = j.attempt"                           \
    " LEFT JOIN boots b ON b.id = a.boot"

static int read_place(const char *text, struct place *ret, struct err *e)
{
    auto_json json_t *json = parse(text, "place", e);
    return json ? place_from_json(json, ret, e) : -EILSEQ;
}

static int read_exit(const char *text, struct job_exit *ret, struct err *e)
{
    if (!*text)
        return 0;
    auto_json json_t *json = parse(text, "exit", e);
    return json ? exit_from_json(json, ret, e) : -EILSEQ;
}

/* On success the place is the caller's. */
static int read_attempt(struct query *q, uint64_t id, struct attempt_row *a, struct err *e)
{
    *a = (struct attempt_row){ .job_id = id, .attempt = (uint32_t)query_int(q) };
    if (a->attempt == 0)
        return 0;
    const char *place = query_text(q);
    query_copy(q, a->boot_id, sizeof a->boot_id);
    a->placed_boot_us = query_int(q);
    a->placed_wall_us = query_int(q);
    a->started_boot_us = query_int(q);
    a->started_wall_us = query_int(q);
    a->ended_boot_us = query_int(q);
    a->ended_wall_us = query_int(q);
    int r = read_state(query_text(q), &a->outcome, id, e);
    if (r == 0 && read_exit(query_text(q), &a->exit, e) < 0)
        r = damaged(e, id);
    a->charge_ppm_us = query_u64(q);
    a->samples.mem_peak_bytes = query_u64(q);
    a->samples.load_sum = query_u64(q);
    a->samples.load_count = query_u64(q);
    if (r == 0 && read_place(place, &a->place, e) < 0)
        r = damaged(e, id);
    return r;
}

static int read_request(const char *text, struct request *ret, struct err *e)
{
    auto_json json_t *json = parse(text, "request", e);
    return json ? request_from_json(json, ret, e) : -EILSEQ;
}

/* On success the last attempt's place is the caller's. */
static int read_job(struct query *q, struct job_row *j, struct err *e)
{
    *j = (struct job_row){ .id = query_u64(q) };
    j->uid = (uid_t)query_int(q);
    j->gid = (gid_t)query_int(q);
    j->user = query_text(q);
    j->account = query_text(q);
    j->qos = query_text(q);
    j->name = query_text(q);
    const char *request = query_text(q);
    j->limit_us = query_int(q);
    j->mem_bytes = query_u64(q);
    j->cpu_milli = (uint32_t)query_int(q);
    int r = read_state(query_text(q), &j->state, j->id, e);
    if (r == 0)
        r = read_state(query_text(q), &j->verdict, j->id, e);
    if (r < 0)
        return r;
    j->reason = query_text(q);
    j->submit_wall_us = query_int(q);
    j->begin_wall_us = query_int(q);
    j->deadline_wall_us = query_int(q);
    j->ended_wall_us = query_int(q);
    if (job_hold_parse(query_text(q), &j->hold) < 0)
        return damaged(e, j->id);
    j->attached = query_int(q) != 0;
    j->expected_wall_us = query_int(q);
    j->requeue = query_int(q) != 0;
    j->tells = (int)query_int(q);
    j->array_id = query_u64(q);
    j->array_index = (uint32_t)query_int(q);
    j->charged_ppm_us = (uint64_t)query_real(q);
    if (read_request(request, &j->request, e) < 0)
        return damaged(e, j->id);
    return read_attempt(q, j->id, &j->last, e);
}

static int walk_jobs(struct query *q, store_job_fn fn, void *arg, struct err *e)
{
    int r;
    while ((r = query_next(q, e)) > 0) {
        struct job_row row;
        r = read_job(q, &row, e);
        if (r == 0)
            r = fn(&row, arg);
        place_done(&row.last.place);
        if (r != 0)
            break;
    }
    return r;
}

int store_each_live_job(struct store *s, store_job_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s, JOBS_WITH_LAST_ATTEMPT " WHERE j.ended_wall_us IS NULL ORDER BY j.id");
    return walk_jobs(&q, fn, arg, e);
}

static void add_states(struct text *sql, uint32_t states)
{
    const char *between = "";
    text_add(sql, " AND j.state IN (");
    for (int i = 0; i < JOB_STATES; i++)
        if (states & 1u << i) {
            text_addf(sql, "%s'%s'", between, job_state_word((enum job_state)i));
            between = ", ";
        }
    text_add(sql, ")");
}

/* Conditions are left out where they do not matter, so that an index is used where they do. */
static void add_conditions(struct text *sql, const struct job_query *q)
{
    if (q->id)
        text_addf(sql, " AND j.id = %" PRIu64, q->id);
    if (q->before_id)
        text_addf(sql, " AND j.id < %" PRIu64, q->before_id);
    if (q->by_uid)
        text_addf(sql, " AND j.uid = %u", (unsigned int)q->uid);
    if (q->account)
        text_add(sql, " AND j.account = ?");
    if (q->states)
        add_states(sql, q->states);
    if (q->ended_since_wall_us)
        text_addf(sql, " AND (j.ended_wall_us IS NULL OR j.ended_wall_us >= %" PRId64 ")",
                  q->ended_since_wall_us);
    text_addf(sql, " ORDER BY j.id DESC LIMIT %u", q->limit ? q->limit : 1000);
}

int store_each_job(struct store *s, const struct job_query *q, store_job_fn fn, void *arg,
                   struct err *e)
{
    AUTO(text) struct text sql = TEXT_INIT;
    text_add(&sql, JOBS_WITH_LAST_ATTEMPT " WHERE 1");
    add_conditions(&sql, q);
    AUTO(query) struct query rows;
    query_open_once(&rows, s, sql.buf);
    if (q->account)
        query_bind_text(&rows, q->account);
    return walk_jobs(&rows, fn, arg, e);
}

int store_each_attempt(struct store *s, uint64_t id, store_attempt_fn fn, void *arg, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT " ATTEMPT_COLUMNS " FROM attempts a LEFT JOIN boots b ON b.id = a.boot"
               " WHERE a.job_id = ? ORDER BY a.attempt");
    query_bind_u64(&q, id);
    int r;
    while ((r = query_next(&q, e)) > 0) {
        struct attempt_row row;
        r = read_attempt(&q, id, &row, e);
        if (r == 0)
            r = fn(&row, arg);
        place_done(&row.place);
        if (r != 0)
            break;
    }
    return r;
}

/* ---- specs ----------------------------------------------------------------- */

static int read_spec(const char *text, struct job_spec *ret, struct err *e)
{
    auto_json json_t *json = parse(text, "job", e);
    return json ? job_spec_from_json(json, ret, e) : -EILSEQ;
}

int store_job_spec(struct store *s, uint64_t id, struct job_spec *ret, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT s.spec, v.content FROM specs s"
               " LEFT JOIN environments v ON v.id = s.environment"
               " WHERE s.job_id = (SELECT coalesce(array_id, id) FROM jobs WHERE id = ?)");
    query_bind_u64(&q, id);
    int r = query_next(&q, e);
    if (r == 0)
        return err_set(e, -ENOENT, "there is no job %" PRIu64, id);
    if (r < 0)
        return r;
    struct job_spec spec = { .name = NULL };
    if (read_spec(query_text(&q), &spec, e) < 0)
        return damaged(e, id);
    size_t len = 0;
    const char *env = query_blob(&q, &len);
    strv_free(spec.env);
    spec.env = env ? environment_split(env, len) : NULL;
    *ret = spec;
    return 0;
}

static gid_t *split_groups(const char *text, size_t *ret_count)
{
    gid_t *groups = NULL;
    size_t n = 0, alloc = 0;
    for (char *end; *text; text = end) {
        unsigned long gid = strtoul(text, &end, 10);
        if (end == text || n == STORE_GROUPS_MAX)
            break;
        ARRAY_ROOM(groups, alloc, n + 1);
        groups[n++] = (gid_t)gid;
    }
    *ret_count = n;
    return groups;
}

int store_job_groups(struct store *s, uint64_t id, gid_t **ret, size_t *ret_count, struct err *e)
{
    AUTO(query) struct query q;
    query_open(&q, s,
               "SELECT groups FROM specs"
               " WHERE job_id = (SELECT coalesce(array_id, id) FROM jobs WHERE id = ?)");
    query_bind_u64(&q, id);
    int r = query_next(&q, e);
    if (r == 0)
        return err_set(e, -ENOENT, "there is no job %" PRIu64, id);
    if (r > 0)
        *ret = split_groups(query_text(&q), ret_count);
    return r < 0 ? r : 0;
}
