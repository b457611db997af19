#include "model/job_json.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/array.h"
#include "model/depend.h"

static const char *const request_words[] = { "nothing", "cards", "slices", "need" };
static const char *const bind_words[] = { "uuid", "index", "none" };

const char *job_bind_word(enum job_bind b)
{
    return bind_words[b];
}

int job_bind_parse(const char *word, enum job_bind *ret, struct err *e)
{
    for (size_t i = 0; i < 3; i++)
        if (strcmp(word, bind_words[i]) == 0) {
            *ret = (enum job_bind)i;
            return 0;
        }
    return err_set(e, -EINVAL, "'%.32s' is no way to bind; it is uuid, index or none", word);
}

json_t *request_to_json(const struct request *r)
{
    json_t *j = json_object();
    json_put_text(j, "kind", request_words[r->kind]);
    json_put_u64(j, "count", r->count);
    if (r->kind == REQUEST_SLICES)
        json_put_text(j, "profile", r->profile);
    if (r->kind == REQUEST_NEED) {
        json_put_u64(j, "mem_bytes", r->mem_bytes);
        json_put_u64(j, "compute_ppm", r->compute_ppm);
    }
    json_put_bool(j, "or_7g", r->or_7g);
    json_put_bool(j, "spread", r->spread);
    json_put_bool(j, "exact", r->exact);
    return j;
}

static enum request_kind read_request_kind(struct fields *f)
{
    const char *word = fields_text(f, "kind", FIELD_REQUIRED, 16);
    for (size_t i = 0; word && i < 4; i++)
        if (strcmp(word, request_words[i]) == 0)
            return (enum request_kind)i;
    if (word)
        fields_fail(f, "'kind' is nothing, cards, slices or need, not '%s'", word);
    return REQUEST_NOTHING;
}

static int read_request(json_t *j, enum fields_rule rule, struct request *ret, struct err *e)
{
    struct fields f;
    struct request r = { .kind = REQUEST_NOTHING };
    fields_open(&f, j, "request", e);
    r.kind = read_request_kind(&f);
    r.count = (uint32_t)fields_u64(&f, "count", FIELD_OPTIONAL, 0, UINT32_MAX, 1);
    fields_copy(&f, "profile", FIELD_OPTIONAL, r.profile, sizeof r.profile);
    r.mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    r.compute_ppm = (uint32_t)fields_u64(&f, "compute_ppm", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    r.or_7g = fields_bool(&f, "or_7g", false);
    r.spread = fields_bool(&f, "spread", false);
    r.exact = fields_bool(&f, "exact", false);
    int code = fields_close(&f, rule);
    if (code == 0)
        code = request_check(&r, e);
    if (code == 0)
        *ret = r;
    return code;
}

int request_from_json(json_t *j, struct request *ret, struct err *e)
{
    return read_request(j, FIELDS_STRICT, ret, e);
}

json_t *place_to_json(const struct place *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++) {
        const struct placed *item = &p->items[i];
        json_t *j = json_object();
        json_put_text(j, "card_uuid", item->card_uuid);
        json_put_u64(j, "gpu", item->ordinal);
        json_put_u64(j, "task", item->task);
        json_put_bool(j, "whole", item->whole);
        json_put_u64(j, "compute_ppm", item->compute_ppm);
        json_put_u64(j, "mem_ppm", item->mem_ppm);
        json_put_text(j, "uuid", item->uuid);
        if (!item->whole) {
            json_put_u64(j, "profile_id", item->profile_id);
            json_put_text(j, "profile", item->profile);
            json_put_u64(j, "start", item->start);
            json_put_u64(j, "units", item->units);
            json_put_u64(j, "gi", item->gi == NOT_AN_INSTANCE ? UINT64_MAX : item->gi);
            json_put_u64(j, "ci", item->ci == NOT_AN_INSTANCE ? UINT64_MAX : item->ci);
            json_put_u64(j, "generation", item->generation);
        }
        json_add(list, j);
    }
    return list;
}

static int placed_from_json(json_t *j, struct placed *item, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "place", e);
    fields_copy(&f, "card_uuid", FIELD_REQUIRED, item->card_uuid, sizeof item->card_uuid);
    item->ordinal = (uint32_t)fields_u64(&f, "gpu", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    item->task = (uint32_t)fields_u64(&f, "task", FIELD_OPTIONAL, 0, REQUEST_TASKS_MAX, 0);
    item->whole = fields_bool(&f, "whole", false);
    item->compute_ppm = (uint32_t)fields_u64(&f, "compute_ppm", FIELD_OPTIONAL, 0, PPM, 0);
    item->mem_ppm = (uint32_t)fields_u64(&f, "mem_ppm", FIELD_OPTIONAL, 0, PPM, 0);
    fields_copy(&f, "uuid", FIELD_OPTIONAL, item->uuid, sizeof item->uuid);
    item->profile_id = (uint32_t)fields_u64(&f, "profile_id", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    fields_copy(&f, "profile", FIELD_OPTIONAL, item->profile, sizeof item->profile);
    item->start = (uint32_t)fields_u64(&f, "start", FIELD_OPTIONAL, 0, BOARD_UNITS_MAX, 0);
    item->units = (uint32_t)fields_u64(&f, "units", FIELD_OPTIONAL, 0, BOARD_UNITS_MAX, 0);
    item->gi = (uint32_t)fields_u64(&f, "gi", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    item->ci = (uint32_t)fields_u64(&f, "ci", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    item->generation = fields_u64(&f, "generation", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    return fields_close(&f, FIELDS_OPEN);
}

int place_from_json(json_t *j, struct place *ret, struct err *e)
{
    if (!json_is_array(j))
        return err_set(e, -EINVAL, "place: must be a list");
    struct place p = { .items = NULL };
    for (size_t i = 0; i < json_array_size(j); i++) {
        int r = placed_from_json(json_array_get(j, i), place_add(&p), e);
        if (r < 0) {
            place_done(&p);
            return r;
        }
    }
    *ret = p;
    return 0;
}

json_t *exit_to_json(const struct job_exit *x)
{
    json_t *j = json_object();
    json_put_text(j, "kind", exit_kind_word(x->kind));
    json_put_i64(j, "value", x->value);
    json_put_i64(j, "task", x->task);
    json_put_i64(j, "ended_boot_us", x->ended_boot_us);
    json_put_i64(j, "ended_wall_us", x->ended_wall_us);
    json_put_u64(j, "mem_peak_bytes", x->mem_peak_bytes ? x->mem_peak_bytes : UINT64_MAX);
    json_put_u64(j, "cpu_us", x->cpu_us ? (uint64_t)x->cpu_us : UINT64_MAX);
    json_put_u64(j, "gpu_mem_peak_bytes",
                 x->gpu_mem_peak_bytes ? x->gpu_mem_peak_bytes : UINT64_MAX);
    json_put_u64(j, "gpu_load_percent", x->gpu_load_known ? x->gpu_load_percent : UINT64_MAX);
    json_put_text(j, "text", x->text);
    return j;
}

int exit_from_json(json_t *j, struct job_exit *ret, struct err *e)
{
    struct fields f;
    struct job_exit x = { .kind = EXIT_NONE };
    fields_open(&f, j, "exit", e);
    const char *word = fields_text(&f, "kind", FIELD_REQUIRED, 32);
    if (word && exit_kind_parse(word, &x.kind) < 0)
        fields_fail(&f, "'kind' is no way to end: %s", word);
    int most = x.kind == EXIT_SIGNAL ? SIGRTMAX : 255; /* what wait(2) can tell */
    x.value = (int)fields_i64(&f, "value", FIELD_OPTIONAL, 0, most, 0);
    x.task = (int)fields_i64(&f, "task", FIELD_OPTIONAL, 0, REQUEST_TASKS_MAX, 0);
    x.ended_boot_us = fields_i64(&f, "ended_boot_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    x.ended_wall_us = fields_i64(&f, "ended_wall_us", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
    x.mem_peak_bytes = fields_u64(&f, "mem_peak_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    x.cpu_us = fields_i64(&f, "cpu_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    x.gpu_mem_peak_bytes = fields_u64(&f, "gpu_mem_peak_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    uint64_t load = fields_u64(&f, "gpu_load_percent", FIELD_OPTIONAL, 0, 100, UINT64_MAX);
    x.gpu_load_known = load <= 100;
    x.gpu_load_percent = x.gpu_load_known ? (uint32_t)load : 0;
    fields_copy(&f, "text", FIELD_OPTIONAL, x.text, sizeof x.text);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        *ret = x;
    return code;
}

static json_t *container_to_json(const struct job_container *c)
{
    json_t *j = json_object();
    json_put_text(j, "image", c->image);
    json_put_text(j, "runtime", c->runtime);
    json_put(j, "args", json_strv(c->args));
    json_put(j, "env", json_strv(c->env));
    return j;
}

static int read_container(json_t *j, enum fields_rule rule, struct job_container *ret,
                          struct err *e)
{
    struct fields f;
    fields_open(&f, j, "container", e);
    ret->image = text_dup(fields_text(&f, "image", FIELD_REQUIRED, CONTAINER_IMAGE_MAX));
    ret->runtime = text_dup(fields_text(&f, "runtime", FIELD_OPTIONAL, 32));
    ret->args = fields_strv(&f, "args", FIELD_OPTIONAL, CONTAINER_ARGS_MAX, CONTAINER_BYTES_MAX);
    ret->env = fields_strv(&f, "env", FIELD_OPTIONAL, JOB_ARGS_MAX, CONTAINER_BYTES_MAX);
    return fields_close(&f, rule);
}

/* Only what was asked for: an older reader takes what has none of it. */
static void put_order(json_t *j, const struct job_spec *s)
{
    if (s->array)
        json_put_text(j, "array", s->array);
    if (s->dependency)
        json_put_text(j, "dependency", s->dependency);
    if (s->begin_wall_us)
        json_put_i64(j, "begin_wall_us", s->begin_wall_us);
    if (s->deadline_wall_us)
        json_put_i64(j, "deadline_wall_us", s->deadline_wall_us);
    if (s->hold)
        json_put_bool(j, "hold", true);
    if (s->keep_invalid)
        json_put_bool(j, "keep_invalid", true);
    if (s->no_requeue)
        json_put_bool(j, "no_requeue", true);
    if (s->on_start)
        json_put_text(j, "on_start", s->on_start);
    if (s->on_end)
        json_put_text(j, "on_end", s->on_end);
    if (s->append)
        json_put_bool(j, "append", true);
}

json_t *job_spec_to_json(const struct job_spec *s, bool with_env)
{
    json_t *j = json_object();
    json_put_text(j, "name", s->name);
    json_put_text(j, "account", s->account);
    if (s->qos)
        json_put_text(j, "qos", s->qos);
    json_put(j, "request", request_to_json(&s->request));
    json_put_i64(j, "limit_us", s->limit_us);
    if (s->mem_bytes)
        json_put_u64(j, "mem_bytes", s->mem_bytes);
    if (s->cpu_milli)
        json_put_u64(j, "cpu_milli", s->cpu_milli);
    if (s->warning.signal) {
        json_put_text(j, "signal", signal_word(s->warning.signal));
        json_put_i64(j, "signal_before_us", s->warning.before_us);
    }
    json_put(j, "argv", json_strv(s->argv));
    if (with_env)
        json_put(j, "env", json_strv(s->env));
    json_put_text(j, "cwd", s->cwd);
    json_put_text(j, "output", s->output);
    if (s->error)
        json_put_text(j, "error", s->error);
    if (s->submit_dir)
        json_put_text(j, "submit_dir", s->submit_dir);
    json_put_text(j, "script", s->script);
    if (s->srun_tasks)
        json_put_u64(j, "srun_tasks", s->srun_tasks);
    if (s->container.image) /* an older reader takes what has none */
        json_put(j, "container", container_to_json(&s->container));
    put_order(j, s);
    json_put_text(j, "bind", job_bind_word(s->bind));
    json_put_bool(j, "keep_going", s->keep_going);
    json_put_bool(j, "keep_on_hangup", s->keep_on_hangup);
    json_put_bool(j, "requeue_on_fault", s->requeue_on_fault);
    json_put_bool(j, "attached", s->attached);
    json_put_bool(j, "pty", s->pty);
    return j;
}

static void read_spec_strings(struct fields *f, struct job_spec *s)
{
    s->name = text_dup(fields_text(f, "name", FIELD_REQUIRED, JOB_NAME_MAX));
    s->account = text_dup(fields_text(f, "account", FIELD_OPTIONAL, JOB_ACCOUNT_MAX));
    s->qos = text_dup(fields_text(f, "qos", FIELD_OPTIONAL, JOB_QOS_MAX));
    s->cwd = text_dup(fields_text(f, "cwd", FIELD_REQUIRED, 4096));
    s->output = text_dup(fields_text(f, "output", FIELD_OPTIONAL, 4096));
    s->error = text_dup(fields_text(f, "error", FIELD_OPTIONAL, 4096));
    s->submit_dir = text_dup(fields_text(f, "submit_dir", FIELD_OPTIONAL, 4096));
    s->script = text_dup(fields_text(f, "script", FIELD_OPTIONAL, 1 << 20));
    s->argv = fields_strv(f, "argv", FIELD_REQUIRED, JOB_ARGS_MAX, JOB_COMMAND_MAX);
    s->env = fields_strv(f, "env", FIELD_OPTIONAL, JOB_ENV_MAX, JOB_ENV_MAX);
}

static void read_spec_bind(struct fields *f, struct job_spec *s)
{
    const char *word = fields_text(f, "bind", FIELD_OPTIONAL, 16);
    struct err inner = ERR_INIT;
    if (word && job_bind_parse(word, &s->bind, &inner) < 0)
        fields_fail(f, "%s", inner.text);
}

static void read_spec_warning(struct fields *f, struct job_spec *s)
{
    const char *word = fields_text(f, "signal", FIELD_OPTIONAL, 16);
    struct err inner = ERR_INIT;
    if (word && signal_parse(word, &s->warning.signal, &inner) < 0)
        fields_fail(f, "%s", inner.text);
    int64_t before_us =
        fields_i64(f, "signal_before_us", FIELD_OPTIONAL, 0, TEXT_DURATION_MAX_US, 0);
    if (word)
        s->warning.before_us = before_us ? before_us : CLOCK_MINUTE;
}

static void read_spec_order(struct fields *f, struct job_spec *s)
{
    s->array = text_dup(fields_text(f, "array", FIELD_OPTIONAL, JOB_ARRAY_WORDS_MAX));
    s->dependency = text_dup(fields_text(f, "dependency", FIELD_OPTIONAL, DEPEND_WORDS_MAX));
    s->begin_wall_us = fields_i64(f, "begin_wall_us", FIELD_OPTIONAL, 0, FIELD_WALL_MAX_US, 0);
    s->deadline_wall_us =
        fields_i64(f, "deadline_wall_us", FIELD_OPTIONAL, 0, FIELD_WALL_MAX_US, 0);
    s->hold = fields_bool(f, "hold", false);
    s->keep_invalid = fields_bool(f, "keep_invalid", false);
    s->no_requeue = fields_bool(f, "no_requeue", false);
    s->on_start = text_dup(fields_text(f, "on_start", FIELD_OPTIONAL, JOB_TELL_MAX));
    s->on_end = text_dup(fields_text(f, "on_end", FIELD_OPTIONAL, JOB_TELL_MAX));
    s->append = fields_bool(f, "append", false);
}

static int read_spec(json_t *j, enum fields_rule rule, struct job_spec *ret, struct err *e)
{
    struct fields f;
    AUTO(job_spec) struct job_spec s = { .request = { .kind = REQUEST_NOTHING, .count = 1 } };
    fields_open(&f, j, "job", e);
    read_spec_strings(&f, &s);
    read_spec_bind(&f, &s);
    s.limit_us = fields_i64(&f, "limit_us", FIELD_OPTIONAL, 0, TEXT_DURATION_MAX_US, 0);
    s.mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    s.srun_tasks = (uint32_t)fields_u64(&f, "srun_tasks", FIELD_OPTIONAL, 0, REQUEST_TASKS_MAX, 0);
    s.cpu_milli = (uint32_t)fields_u64(&f, "cpu_milli", FIELD_OPTIONAL, 0, JOB_CPU_MILLI_MAX, 0);
    read_spec_warning(&f, &s);
    read_spec_order(&f, &s);
    s.keep_going = fields_bool(&f, "keep_going", false);
    s.keep_on_hangup = fields_bool(&f, "keep_on_hangup", false);
    s.requeue_on_fault = fields_bool(&f, "requeue_on_fault", false);
    s.attached = fields_bool(&f, "attached", false);
    s.pty = fields_bool(&f, "pty", false);
    json_t *request = fields_object(&f, "request", FIELD_OPTIONAL);
    json_t *container = fields_object(&f, "container", FIELD_OPTIONAL);
    int code = fields_close(&f, rule);
    if (code == 0 && request)
        code = read_request(request, rule, &s.request, e);
    if (code == 0 && container)
        code = read_container(container, rule, &s.container, e);
    if (code < 0)
        return code;
    *ret = s;
    s = (struct job_spec){ .name = NULL };
    return 0;
}

int job_spec_from_json(json_t *j, struct job_spec *ret, struct err *e)
{
    return read_spec(j, FIELDS_STRICT, ret, e);
}

int job_spec_from_json_open(json_t *j, struct job_spec *ret, struct err *e)
{
    return read_spec(j, FIELDS_OPEN, ret, e);
}
