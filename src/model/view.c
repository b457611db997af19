#include "model/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/address.h"
#include "model/array.h"
#include "model/job_json.h"

#define TEXT_FIELD_MAX (2u << 20) /* of an answer: a script is the longest */

static void put_time(json_t *j, const char *key, int64_t wall_us)
{
    json_put(j, key, wall_us ? json_integer(wall_us) : json_null());
}

void placed_add_text(struct text *t, const struct placed *p)
{
    if (p->whole)
        text_addf(t, "gpu%u", p->ordinal);
    else
        address_add_place(t, p->ordinal, p->profile, p->start);
}

void job_view_add_id(struct text *t, const struct job_view *v)
{
    if (!v->array_id) {
        text_addf(t, "%" PRIu64, v->id);
        return;
    }
    text_addf(t, "%" PRIu64 "_", v->array_id);
    if (!v->indices)
        text_addf(t, "%u", v->array_index);
    else
        text_addf(t, "[%s", v->indices);
    if (v->indices && v->array_max)
        text_addf(t, "%%%u", v->array_max);
    text_add(t, v->indices ? "]" : "");
}

static json_t *array_to_json(const struct job_view *v)
{
    if (!v->array_id)
        return json_null();
    json_t *j = json_object();
    json_put_u64(j, "id", v->array_id);
    json_put_u64(j, "index", v->array_index);
    json_put(j, "running_max", v->array_max ? json_integer(v->array_max) : json_null());
    json_put_u64(j, "tasks", v->array_tasks ? v->array_tasks : 1);
    json_put_text(j, "indices", v->indices);
    json_put_text(j, "all", v->array);
    return j;
}

static void put_order(json_t *j, const struct job_view *v)
{
    put_time(j, "begin_wall_us", v->begin_wall_us);
    put_time(j, "deadline_wall_us", v->deadline_wall_us);
    json_put_text(j, "hold", v->hold ? job_hold_word(v->hold) : NULL);
    json_put_text(j, "dependency", v->dependency);
    json_put(j, "array", array_to_json(v));
}

static json_t *addresses(const struct place *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++) {
        AUTO(text) struct text t = TEXT_INIT;
        placed_add_text(&t, &p->items[i]);
        json_t *address = json_string(t.buf); /* NULL: a driver named a profile in no UTF-8 */
        json_add(list, address ? address : json_null());
    }
    return list;
}

static void put_asks(json_t *j, const struct request *r)
{
    AUTO(text) struct text asks = TEXT_INIT;
    request_add(&asks, r);
    json_put_text(j, "asks", asks.buf);
    json_put(j, "request", request_to_json(r));
}

/* A job alone counts as an array of one, as far as file names go. */
static uint64_t job_view_array(const struct job_view *v)
{
    return v->array_id ? v->array_id : v->id;
}

/* The files that it writes: one, or one for each task. */
static json_t *outputs(const struct job_view *v)
{
    json_t *list = json_array();
    uint32_t count = job_output_by_task(v->output) ? v->tasks : 1;
    for (uint32_t task = 0; v->output && task < count; task++) {
        auto_free char *of_array = job_array_output(v->output, job_view_array(v), v->array_index);
        auto_free char *path = job_output_path(of_array, v->id, task);
        json_t *s = json_string(path);
        json_add(list, s ? s : json_null());
    }
    return list;
}

static void put_private(json_t *j, const struct job_view *v)
{
    json_put_text(j, "output", v->output);
    json_put(j, "outputs", outputs(v));
    json_put_text(j, "cwd", v->cwd);
    json_put(j, "argv", v->argv ? json_strv(v->argv) : json_null());
    json_put_text(j, "script", v->script);
}

static const char *const enforced_words[] = { "memory", "cpu", "cpus", "pids" };
#define ENFORCED (sizeof enforced_words / sizeof *enforced_words)

static void put_limits(json_t *j, const struct job_view *v)
{
    json_t *held = v->enforced < 0 ? json_null() : json_array();
    for (size_t i = 0; v->enforced > 0 && i < ENFORCED; i++)
        if (v->enforced & 1 << i)
            (void)json_array_append_new(held, json_string(enforced_words[i]));
    json_put_u64(j, "needs_mem_bytes", v->needs_mem_bytes ? v->needs_mem_bytes : UINT64_MAX);
    json_put_u64(j, "needs_cpu_milli", v->needs_cpu_milli ? v->needs_cpu_milli : UINT64_MAX);
    json_put(j, "mem_bytes", v->mem_bytes ? json_integer((json_int_t)v->mem_bytes) : json_null());
    json_put(j, "cpu_milli", v->cpu_milli ? json_integer(v->cpu_milli) : json_null());
    json_put(j, "pids", v->pids ? json_integer(v->pids) : json_null());
    json_put_text(j, "cpus", v->cpus);
    json_put(j, "enforced", held);
}

static int read_enforced(json_t *list)
{
    int bits = list ? 0 : -1;
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t k = 0; k < ENFORCED; k++)
            if (text_same(json_string_value(json_array_get(list, i)), enforced_words[k]))
                bits |= 1 << k;
    return bits;
}

void job_preempted_add_by(struct text *t, const struct job_preempted *p)
{
    if (p->by)
        text_addf(t, "#%" PRIu64 "%s%s", p->by, p->user && p->user[0] ? " of " : "",
                  p->user ? p->user : "");
}

static json_t *preempted_to_json(const struct job_preempted *p)
{
    if (!p->times)
        return json_null();
    json_t *j = json_object();
    json_put_u64(j, "times", p->times);
    put_time(j, "wall_us", p->wall_us);
    json_put(j, "by", p->by ? json_integer((json_int_t)p->by) : json_null());
    json_put_text(j, "user", p->user);
    return j;
}

static int read_preempted(json_t *j, struct job_preempted *p, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "preempted", e);
    p->times = (uint32_t)fields_u64(&f, "times", FIELD_REQUIRED, 1, UINT32_MAX, 1);
    p->wall_us = fields_i64(&f, "wall_us", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
    p->by = fields_u64(&f, "by", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    p->user = fields_text(&f, "user", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    return fields_close(&f, FIELDS_OPEN);
}

json_t *job_view_to_json(const struct job_view *v, enum job_view_for whom)
{
    json_t *j = json_object();
    json_put_u64(j, "id", v->id);
    json_put_text(j, "user", v->user);
    json_put_u64(j, "uid", v->uid);
    json_put_text(j, "account", v->account);
    json_put_text(j, "qos", v->qos);
    json_put_text(j, "name", v->name);
    json_put_text(j, "state", job_state_word(v->state));
    json_put_text(j, "reason", v->reason);
    put_asks(j, &v->request);
    json_put(j, "place", place_to_json(&v->place));
    json_put(j, "addresses", addresses(&v->place));
    json_put_u64(j, "attempt", v->attempt);
    json_put_u64(j, "tasks", v->tasks);
    json_put(j, "limit_us", v->limit_us ? json_integer(v->limit_us) : json_null());
    put_time(j, "submit_wall_us", v->submit_wall_us);
    put_time(j, "start_wall_us", v->start_wall_us);
    put_time(j, "end_wall_us", v->end_wall_us);
    put_time(j, "expected_start_wall_us", v->expected_start_wall_us);
    json_put_text(j, "expected_place", v->expected_place);
    json_put(j, "preempted", preempted_to_json(&v->preempted));
    put_order(j, v);
    bool ended = v->exit.kind != EXIT_NONE;
    json_put(j, "exit", ended ? exit_to_json(&v->exit) : json_null());
    json_put(j, "exit_status", ended ? json_integer(job_exit_status(&v->exit)) : json_null());
    json_put_bool(j, "attached", v->attached);
    put_limits(j, v);
    json_put_text(j, "isolation", v->isolation);
    json_put_text(j, "isolation_why", v->isolation_why);
    if (whom == JOB_VIEW_PRIVATE)
        put_private(j, v);
    return j;
}

/* A list of strings as an argv whose strings stay the JSON's. */
static char **borrow_strv(json_t *list)
{
    size_t n = json_array_size(list);
    char **v = mem_new((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const char *s = json_string_value(json_array_get(list, i));
        v[i] = (char *)(s ? s : "");
    }
    return v;
}

static int64_t read_time(struct fields *f, const char *key)
{
    return fields_i64(f, key, FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
}

static void read_view_state(struct fields *f, struct job_view *v)
{
    const char *word = fields_text(f, "state", FIELD_REQUIRED, 32);
    if (word && job_state_parse(word, &v->state) < 0)
        fields_fail(f, "'%s' is no state of a job that this version knows", word);
}

static int read_array(json_t *j, struct job_view *v, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "array", e);
    v->array_id = fields_u64(&f, "id", FIELD_REQUIRED, 1, INT64_MAX, 0);
    v->array_index = (uint32_t)fields_u64(&f, "index", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    v->array_max = (uint32_t)fields_u64(&f, "running_max", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    v->array_tasks = (uint32_t)fields_u64(&f, "tasks", FIELD_OPTIONAL, 0, UINT32_MAX, 1);
    v->indices = fields_text(&f, "indices", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->array = fields_text(&f, "all", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    return fields_close(&f, FIELDS_OPEN);
}

static void read_view_order(struct fields *f, struct job_view *v)
{
    v->begin_wall_us = read_time(f, "begin_wall_us");
    v->deadline_wall_us = read_time(f, "deadline_wall_us");
    v->dependency = fields_text(f, "dependency", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    const char *hold = fields_text(f, "hold", FIELD_OPTIONAL, 32);
    if (hold && job_hold_parse(hold, &v->hold) < 0)
        fields_fail(f, "'%s' is no hold that this version knows", hold);
}

static void read_view_words(struct fields *f, struct job_view *v)
{
    v->id = fields_u64(f, "id", FIELD_REQUIRED, 0, INT64_MAX, 0);
    v->uid = (uid_t)fields_u64(f, "uid", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    v->user = fields_text(f, "user", FIELD_REQUIRED, TEXT_FIELD_MAX);
    v->account = fields_text(f, "account", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->qos = fields_text(f, "qos", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->name = fields_text(f, "name", FIELD_REQUIRED, TEXT_FIELD_MAX);
    v->reason = fields_text(f, "reason", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->isolation = fields_text(f, "isolation", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->isolation_why = fields_text(f, "isolation_why", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->cpus = fields_text(f, "cpus", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->pids = (uint32_t)fields_u64(f, "pids", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    v->output = fields_text(f, "output", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->cwd = fields_text(f, "cwd", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->script = fields_text(f, "script", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->attempt = (uint32_t)fields_u64(f, "attempt", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    v->tasks = (uint32_t)fields_u64(f, "tasks", FIELD_OPTIONAL, 0, UINT32_MAX, 1);
    v->limit_us = read_time(f, "limit_us");
    v->submit_wall_us = read_time(f, "submit_wall_us");
    v->start_wall_us = read_time(f, "start_wall_us");
    v->end_wall_us = read_time(f, "end_wall_us");
    v->expected_start_wall_us = read_time(f, "expected_start_wall_us");
    v->expected_place = fields_text(f, "expected_place", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v->attached = fields_bool(f, "attached", false);
    v->needs_mem_bytes = fields_u64(f, "needs_mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    v->needs_cpu_milli = fields_u64(f, "needs_cpu_milli", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    v->mem_bytes = fields_u64(f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    v->cpu_milli = (uint32_t)fields_u64(f, "cpu_milli", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
}

int job_view_from_json(json_t *j, struct job_view *ret, struct err *e)
{
    struct fields f;
    struct job_view v = { .id = 0 };
    fields_open(&f, j, "job", e);
    read_view_state(&f, &v);
    read_view_words(&f, &v);
    read_view_order(&f, &v);
    json_t *array = fields_object(&f, "array", FIELD_OPTIONAL);
    json_t *preempted = fields_object(&f, "preempted", FIELD_OPTIONAL);
    json_t *request = fields_object(&f, "request", FIELD_REQUIRED);
    json_t *place = fields_array(&f, "place", FIELD_OPTIONAL, 65536);
    json_t *exit = fields_object(&f, "exit", FIELD_OPTIONAL);
    v.enforced = read_enforced(fields_array(&f, "enforced", FIELD_OPTIONAL, 16));
    json_t *argv = fields_array(&f, "argv", FIELD_OPTIONAL, JOB_ARGS_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = request_from_json(request, &v.request, e);
    if (code == 0 && array)
        code = read_array(array, &v, e);
    if (code == 0 && preempted)
        code = read_preempted(preempted, &v.preempted, e);
    if (code == 0 && exit)
        code = exit_from_json(exit, &v.exit, e);
    if (code == 0 && place)
        code = place_from_json(place, &v.place, e);
    if (code < 0)
        return code;
    if (argv)
        v.argv = borrow_strv(argv);
    v.json = json_incref(j);
    *ret = v;
    return 0;
}

void job_view_done(struct job_view *v)
{
    if (v->json) {
        place_done(&v->place);
        free((void *)v->argv);
        json_decref(v->json);
    }
    *v = (struct job_view){ .id = 0 };
}

bool job_filter_matches(const struct job_filter *f, enum job_state state, uid_t uid,
                        const char *user, const char *account)
{
    bool in_state = f->states ? (f->states >> state & 1) != 0 : !job_state_ended(state);
    if (!in_state || (f->has_uid && f->uid != uid))
        return false;
    if (f->user[0] && (!user || strcmp(f->user, user) != 0))
        return false;
    return !f->account[0] || (account && strcmp(f->account, account) == 0);
}

/* What nobody can say is null: without any, or beyond the last size that is told apart. */
static json_t *promises_to_json(const struct promises *p)
{
    json_t *j = json_object();
    json_t *jobs = json_array();
    uint64_t count = promises_count(p);
    int64_t bound = promises_bound_us(p, 90);
    for (uint32_t i = 0; i < PROMISE_SIZES; i++)
        json_add(jobs, json_integer((json_int_t)p->jobs[i]));
    json_put_u64(j, "count", count);
    json_put_u64(j, "late", p->late);
    json_put_u64(j, "mean_off_us", count ? (uint64_t)promises_mean_us(p) : UINT64_MAX);
    json_put_u64(j, "p90_off_us", count && bound != INT64_MAX ? (uint64_t)bound : UINT64_MAX);
    json_put(j, "by_size", jobs);
    return j;
}

static int read_promises(json_t *j, struct promises *ret, struct err *e)
{
    struct fields f;
    struct promises p = { .late = 0 };
    fields_open(&f, j, "expected_starts", e);
    p.late = fields_u64(&f, "late", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    uint64_t mean = fields_u64(&f, "mean_off_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    json_t *sizes = fields_array(&f, "by_size", FIELD_OPTIONAL, PROMISE_SIZES);
    for (uint32_t i = 0; sizes && i < PROMISE_SIZES; i++) {
        json_int_t n = json_integer_value(json_array_get(sizes, i));
        p.jobs[i] = n > 0 ? (uint64_t)n : 0;
    }
    p.off_us = (double)mean * (double)promises_count(&p);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        *ret = p;
    return r;
}

/* What is not counted is null, and so is what is used of it. */
static json_t *node_to_json(const struct daemon_view *v)
{
    json_t *j = json_object();
    json_put_u64(j, "mem_bytes", v->mem_bytes ? v->mem_bytes : UINT64_MAX);
    json_put_u64(j, "mem_used_bytes", v->mem_bytes ? v->mem_used_bytes : UINT64_MAX);
    json_put_u64(j, "cpu_milli", v->cpu_milli ? v->cpu_milli : UINT64_MAX);
    json_put_u64(j, "cpu_used_milli", v->cpu_milli ? v->cpu_used_milli : UINT64_MAX);
    return j;
}

static int read_node(json_t *j, struct daemon_view *v, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "node", e);
    v->mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    v->mem_used_bytes = fields_u64(&f, "mem_used_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    v->cpu_milli = fields_u64(&f, "cpu_milli", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    v->cpu_used_milli = fields_u64(&f, "cpu_used_milli", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    return fields_close(&f, FIELDS_OPEN);
}

json_t *daemon_view_to_json(const struct daemon_view *v)
{
    json_t *j = json_object();
    json_t *jobs = json_object();
    json_put_text(j, "version", v->version);
    json_put_i64(j, "pid", v->pid);
    json_put_text(j, "root", v->root);
    json_put_bool(j, "private_root", v->private_root);
    put_time(j, "started_wall_us", v->started_wall_us);
    json_put_text(j, "driver_version", v->driver_version);
    json_put_text(j, "driver_trouble", v->driver_trouble);
    json_put_text(j, "isolation", v->isolation);
    json_put_text(j, "isolation_why", v->isolation_why);
    for (int s = 0; s < JOB_STATES; s++)
        json_put_u64(jobs, job_state_word((enum job_state)s), v->jobs[s]);
    json_put(j, "jobs", jobs);
    json_put(j, "expected_starts", promises_to_json(&v->promises));
    json_put(j, "node", node_to_json(v));
    json_put_u64(j, "cards", v->cards);
    json_put_u64(j, "cards_queue", v->cards_queue);
    json_put_u64(j, "cards_trouble", v->cards_trouble);
    return j;
}

static int read_job_counts(json_t *jobs, uint32_t counts[JOB_STATES], struct err *e)
{
    struct fields f;
    fields_open(&f, jobs, "jobs", e);
    for (int s = 0; s < JOB_STATES; s++)
        counts[s] = (uint32_t)fields_u64(&f, job_state_word((enum job_state)s), FIELD_OPTIONAL, 0,
                                         UINT32_MAX, 0);
    return fields_close(&f, FIELDS_OPEN);
}

int daemon_view_from_json(json_t *j, struct daemon_view *ret, struct err *e)
{
    struct fields f;
    struct daemon_view v = { .version = NULL };
    fields_open(&f, j, "status", e);
    v.version = fields_text(&f, "version", FIELD_REQUIRED, 128);
    v.pid = (pid_t)fields_i64(&f, "pid", FIELD_OPTIONAL, 0, INT32_MAX, 0);
    v.root = fields_text(&f, "root", FIELD_REQUIRED, TEXT_FIELD_MAX);
    v.private_root = fields_bool(&f, "private_root", false);
    v.started_wall_us = read_time(&f, "started_wall_us");
    v.driver_version = fields_text(&f, "driver_version", FIELD_OPTIONAL, 128);
    v.driver_trouble = fields_text(&f, "driver_trouble", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v.isolation = fields_text(&f, "isolation", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v.isolation_why = fields_text(&f, "isolation_why", FIELD_OPTIONAL, TEXT_FIELD_MAX);
    v.cards = (uint32_t)fields_u64(&f, "cards", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    v.cards_queue = (uint32_t)fields_u64(&f, "cards_queue", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    v.cards_trouble = (uint32_t)fields_u64(&f, "cards_trouble", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    json_t *jobs = fields_object(&f, "jobs", FIELD_REQUIRED);
    json_t *promises = fields_object(&f, "expected_starts", FIELD_OPTIONAL);
    json_t *node = fields_object(&f, "node", FIELD_OPTIONAL);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = read_job_counts(jobs, v.jobs, e);
    if (code == 0 && promises)
        code = read_promises(promises, &v.promises, e);
    if (code == 0 && node)
        code = read_node(node, &v, e);
    if (code < 0)
        return code;
    v.json = json_incref(j);
    *ret = v;
    return 0;
}

void daemon_view_done(struct daemon_view *v)
{
    if (v->json)
        json_decref(v->json);
    *v = (struct daemon_view){ .version = NULL };
}

static struct why_term *add_term(struct why_view *v)
{
    ARRAY_ROOM(v->terms, v->term_alloc, v->term_count + 1);
    return &v->terms[v->term_count++];
}

void why_view_add(struct why_view *v, const char *what, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        abort(); /* out of memory: as in base/text.h */
    va_end(ap);
    *add_term(v) = (struct why_term){ .what = text_dup(what), .text = text };
}

json_t *why_view_to_json(const struct why_view *v)
{
    json_t *j = json_object();
    json_t *terms = json_array();
    json_put_u64(j, "id", v->id);
    json_put_text(j, "summary", v->summary);
    for (size_t i = 0; i < v->term_count; i++) {
        json_t *term = json_object();
        json_put_text(term, "what", v->terms[i].what);
        json_put_text(term, "text", v->terms[i].text);
        json_add(terms, term);
    }
    json_put(j, "terms", terms);
    json_put(j, "sooner", json_strv(v->sooner));
    json_put(j, "ahead", v->ahead ? json_incref(v->ahead) : json_null());
    json_put(j, "holders", v->holders ? json_incref(v->holders) : json_array());
    return j;
}

static int read_terms(json_t *list, struct why_view *v, struct err *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && list && i < json_array_size(list); i++) {
        struct fields f;
        struct why_term term = { .what = NULL };
        fields_open(&f, json_array_get(list, i), "term", e);
        term.what = fields_text(&f, "what", FIELD_REQUIRED, TEXT_FIELD_MAX);
        term.text = fields_text(&f, "text", FIELD_REQUIRED, TEXT_FIELD_MAX);
        code = fields_close(&f, FIELDS_OPEN);
        if (code == 0)
            *add_term(v) = term;
    }
    return code;
}

int why_view_from_json(json_t *j, struct why_view *ret, struct err *e)
{
    struct fields f;
    struct why_view v = { .id = 0 };
    fields_open(&f, j, "why", e);
    v.id = fields_u64(&f, "id", FIELD_REQUIRED, 0, INT64_MAX, 0);
    v.summary = fields_text(&f, "summary", FIELD_REQUIRED, TEXT_FIELD_MAX);
    json_t *terms = fields_array(&f, "terms", FIELD_OPTIONAL, 4096);
    json_t *sooner = fields_array(&f, "sooner", FIELD_OPTIONAL, 4096);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = read_terms(terms, &v, e);
    if (code < 0) {
        free(v.terms);
        return code;
    }
    v.sooner = borrow_strv(sooner);
    v.json = json_incref(j);
    *ret = v;
    return 0;
}

void why_view_done(struct why_view *v)
{
    for (size_t i = 0; !v->json && i < v->term_count; i++) {
        free((void *)v->terms[i].what);
        free((void *)v->terms[i].text);
    }
    free(v->terms);
    json_decref(v->holders);
    json_decref(v->ahead);
    if (v->json) {
        free(v->sooner);
        json_decref(v->json);
    } else {
        strv_free(v->sooner);
    }
    *v = (struct why_view){ .id = 0 };
}
