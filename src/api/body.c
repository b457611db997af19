#include "api/body.h"

#include <errno.h>
#include <string.h>

#include "model/array.h"

/* The daemon fills in the account; everything else is checked as if it had. */
static int check_submit(const struct job_spec *spec, struct err *e)
{
    struct job_spec whole = *spec;
    if (!whole.account)
        whole.account = (char *)"default";
    return job_spec_check(&whole, e);
}

int api_read_submit(const char *body, size_t len, struct job_spec *ret, struct err *e)
{
    auto_json json_t *json = NULL;
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    int r = json_parse(body, len, "the body", &json, e);
    if (r == 0)
        r = job_spec_from_json(json, &spec, e);
    if (r == 0)
        r = check_submit(&spec, e);
    if (r < 0)
        return r;
    *ret = spec;
    spec = (struct job_spec){ .name = NULL };
    return 0;
}

static int read_one_of_many(json_t *json, char *const *env, struct job_spec *ret, struct err *e)
{
    int r = job_spec_from_json(json, ret, e);
    if (r < 0)
        return r;
    if (!ret->env)
        ret->env = strv_copy(env);
    return check_submit(ret, e);
}

static int read_many(json_t *jobs, char *const *env, struct job_spec **ret, size_t *ret_count,
                     struct err *e)
{
    size_t n = json_array_size(jobs);
    struct job_spec *specs = mem_new((n + 1) * sizeof *specs);
    size_t i = 0;
    int r = n ? 0 : err_set(e, -EINVAL, "jobs: there is none");
    for (; r == 0 && i < n; i++)
        if ((r = read_one_of_many(json_array_get(jobs, i), env, &specs[i], e)) < 0)
            err_wrap(e, r, "jobs[%zu]", i);
    if (r == 0) {
        *ret = specs;
        *ret_count = n;
        return 0;
    }
    for (size_t k = 0; k < i; k++)
        job_spec_done(&specs[k]);
    free(specs);
    return r;
}

int api_read_submit_many(const char *body, size_t len, struct job_spec **ret, size_t *ret_count,
                         struct err *e)
{
    auto_json json_t *json = NULL;
    struct fields f;
    int r = json_parse(body, len, "the body", &json, e);
    if (r < 0)
        return r;
    fields_open(&f, json, "the body", e);
    char **env = fields_strv(&f, "env", FIELD_OPTIONAL, JOB_ENV_MAX, JOB_ENV_MAX);
    json_t *jobs = fields_array(&f, "jobs", FIELD_REQUIRED, JOB_MANY_MAX);
    r = fields_close(&f, FIELDS_STRICT);
    if (r == 0)
        r = read_many(jobs, env, ret, ret_count, e);
    strv_free(env);
    return r;
}

static void read_pool(struct fields *f, int *ret)
{
    const char *word = fields_text(f, "pool", FIELD_OPTIONAL, 32);
    enum card_pool pool;
    struct err inner = ERR_INIT;
    if (word && card_pool_parse(word, &pool, &inner) < 0)
        fields_fail(f, "%s", inner.text);
    else if (word)
        *ret = (int)pool;
}

static void read_mode(struct fields *f, int *ret)
{
    const char *word = fields_text(f, "mode", FIELD_OPTIONAL, 32);
    enum card_mode mode;
    struct err inner = ERR_INIT;
    if (word && card_mode_parse(word, &mode, &inner) < 0)
        fields_fail(f, "%s", inner.text);
    else if (word)
        *ret = (int)mode;
}

int api_read_set_card(const char *body, size_t len, int *ret_pool, int *ret_mode, struct err *e)
{
    auto_json json_t *json = NULL;
    int r = json_parse(body, len, "the body", &json, e);
    if (r < 0)
        return r;
    struct fields f;
    int pool = -1;
    int mode = -1;
    fields_open(&f, json, "card", e);
    read_pool(&f, &pool);
    read_mode(&f, &mode);
    r = fields_close(&f, FIELDS_STRICT);
    if (r < 0)
        return r;
    if (pool < 0 && mode < 0)
        return err_set(e, -EINVAL, "card: nothing to change; give 'pool', 'mode' or both");
    *ret_pool = pool;
    *ret_mode = mode;
    return 0;
}

int api_read_layout(const char *body, size_t len, struct layout_order *ret, struct err *e)
{
    auto_json json_t *json = NULL;
    int r = json_parse(body, len, "the body", &json, e);
    return r < 0 ? r : layout_order_from_json(json, ret, e);
}

int api_read_indices(const char *body, size_t len, char **ret, struct err *e)
{
    auto_json json_t *json = NULL;
    *ret = NULL;
    if (len == 0)
        return 0;
    int r = json_parse(body, len, "the body", &json, e);
    if (r < 0)
        return r;
    struct fields f;
    fields_open(&f, json, "the body", e);
    const char *indices = fields_text(&f, "indices", FIELD_OPTIONAL, JOB_ARRAY_WORDS_MAX);
    r = fields_close(&f, FIELDS_STRICT);
    if (r == 0)
        *ret = text_dup(indices);
    return r;
}

int api_read_maintenance(const char *body, size_t len, struct maintenance_order *ret, struct err *e)
{
    auto_json json_t *json = NULL;
    int r = json_parse(body, len, "the body", &json, e);
    return r < 0 ? r : maintenance_order_from_json(json, ret, e);
}

int api_read_nothing(const char *body, size_t len, struct err *e)
{
    auto_json json_t *json = NULL;
    if (len == 0)
        return 0;
    int r = json_parse(body, len, "the body", &json, e);
    if (r < 0)
        return r;
    struct fields f;
    fields_open(&f, json, "the body", e);
    return fields_close(&f, FIELDS_STRICT);
}

/* One reader for each parameter of a route; the table is all there is to know about it. */
typedef int (*parameter_fn)(const char *value, void *ret, struct err *e);
struct parameter {
    const char *key;
    parameter_fn read;
};

static int read_parameter(const struct parameter *table, const struct api_parameter *p, void *ret,
                          struct err *e)
{
    for (const struct parameter *t = table; t->key; t++) {
        if (strcmp(t->key, p->key) != 0)
            continue;
        if (!p->value || !p->value[0])
            return err_set(e, -EINVAL, "parameter '%s' has no value", t->key);
        return t->read(p->value, ret, e);
    }
    return err_set(e, -EINVAL, "there is no parameter '%.64s' here", p->key);
}

static int read_parameters(const struct parameter *table, const struct api_parameter *p, size_t n,
                           void *ret, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            if (strcmp(p[k].key, p[i].key) == 0)
                return err_set(e, -EINVAL, "parameter '%.64s' is there twice", p[i].key);
        int r = read_parameter(table, &p[i], ret, e);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_name(const char *value, const char *what, char *ret, size_t size, struct err *e)
{
    if (strlen(value) >= size)
        return err_set(e, -EINVAL, "%s: '%.40s…' is too long for a name", what, value);
    memcpy(ret, value, strlen(value) + 1);
    return 0;
}

static int filter_user(const char *value, void *ret, struct err *e)
{
    struct job_filter *f = ret;
    return read_name(value, "user", f->user, sizeof f->user, e);
}

static int filter_account(const char *value, void *ret, struct err *e)
{
    struct job_filter *f = ret;
    return read_name(value, "account", f->account, sizeof f->account, e);
}

static int filter_uid(const char *value, void *ret, struct err *e)
{
    struct job_filter *f = ret;
    uint64_t n = 0;
    int r = text_parse_u64(value, 0, UINT32_MAX - 1, "uid", &n, e);
    if (r == 0) {
        f->has_uid = true;
        f->uid = (uid_t)n;
    }
    return r;
}

static int filter_after(const char *value, void *ret, struct err *e)
{
    return text_parse_u64(value, 0, INT64_MAX, "after", &((struct job_filter *)ret)->after, e);
}

static int filter_fold(const char *value, void *ret, struct err *e)
{
    struct job_filter *f = ret;
    f->fold = strcmp(value, "true") == 0;
    if (!f->fold && strcmp(value, "false") != 0)
        return err_set(e, -EINVAL, "fold: it is true or false");
    return 0;
}

static int filter_limit(const char *value, void *ret, struct err *e)
{
    uint64_t n = 0;
    int r = text_parse_u64(value, 1, JOB_LIST_MAX, "limit", &n, e);
    if (r == 0)
        ((struct job_filter *)ret)->limit = (uint32_t)n;
    return r;
}

static uint32_t state_bits(const char *word)
{
    enum job_state state;
    if (strcmp(word, "all") == 0)
        return (1u << JOB_STATES) - 1;
    if (strcmp(word, "ended") == 0)
        return JOB_STATES_ENDED;
    if (strcmp(word, "active") == 0)
        return ((1u << JOB_STATES) - 1) & ~JOB_STATES_ENDED;
    return job_state_parse(word, &state) < 0 ? 0 : 1u << state;
}

static int filter_state(const char *value, void *ret, struct err *e)
{
    struct job_filter *f = ret;
    auto_free char *words = text_dup(value);
    char *save = NULL;
    for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        uint32_t bits = state_bits(w);
        if (!bits)
            return err_set(e, -EINVAL,
                           "state: '%.32s' is no state; it is active, ended, all, or pending, "
                           "running, completed, failed and so on",
                           w);
        f->states |= bits;
    }
    return 0;
}

int api_read_filter(const struct api_parameter *p, size_t n, struct job_filter *ret, struct err *e)
{
    static const struct parameter table[] = {
        { "user", filter_user },       { "uid", filter_uid },
        { "account", filter_account }, { "state", filter_state },
        { "after", filter_after },     { "limit", filter_limit },
        { "fold", filter_fold },       { NULL, NULL },
    };
    struct job_filter f = { .limit = JOB_LIST_MAX };
    int r = read_parameters(table, p, n, &f, e);
    if (r == 0)
        *ret = f;
    return r;
}

static int history_user(const char *value, void *ret, struct err *e)
{
    struct history_filter *f = ret;
    return read_name(value, "user", f->user, sizeof f->user, e);
}

static int history_account(const char *value, void *ret, struct err *e)
{
    struct history_filter *f = ret;
    return read_name(value, "account", f->account, sizeof f->account, e);
}

static int read_time(const char *value, const char *what, int64_t *ret, struct err *e)
{
    uint64_t n = 0;
    int r = text_parse_u64(value, 0, INT64_MAX, what, &n, e);
    if (r == 0)
        *ret = (int64_t)n;
    return r;
}

static int history_from(const char *value, void *ret, struct err *e)
{
    return read_time(value, "from", &((struct history_filter *)ret)->from_wall_us, e);
}

static int history_to(const char *value, void *ret, struct err *e)
{
    return read_time(value, "to", &((struct history_filter *)ret)->to_wall_us, e);
}

static int history_after(const char *value, void *ret, struct err *e)
{
    return text_parse_u64(value, 0, INT64_MAX, "after", &((struct history_filter *)ret)->after, e);
}

static int history_limit(const char *value, void *ret, struct err *e)
{
    uint64_t n = 0;
    int r = text_parse_u64(value, 1, JOB_LIST_MAX, "limit", &n, e);
    if (r == 0)
        ((struct history_filter *)ret)->limit = (uint32_t)n;
    return r;
}

int api_read_history(const struct api_parameter *p, size_t n, struct history_filter *ret,
                     struct err *e)
{
    static const struct parameter table[] = {
        { "user", history_user }, { "account", history_account }, { "from", history_from },
        { "to", history_to },     { "after", history_after },     { "limit", history_limit },
        { NULL, NULL },
    };
    struct history_filter f = { .to_wall_us = INT64_MAX, .limit = JOB_LIST_MAX };
    int r = read_parameters(table, p, n, &f, e);
    if (r == 0)
        *ret = f;
    return r;
}

static int usage_by(const char *value, void *ret, struct err *e)
{
    return ledger_by_parse(value, &((struct ledger *)ret)->by, e);
}

static int usage_from(const char *value, void *ret, struct err *e)
{
    return day_parse(value, "from", &((struct ledger *)ret)->from_day, e);
}

static int usage_to(const char *value, void *ret, struct err *e)
{
    return day_parse(value, "to", &((struct ledger *)ret)->to_day, e);
}

int api_read_usage(const struct api_parameter *p, size_t n, struct ledger *ret, struct err *e)
{
    static const struct parameter table[] = {
        { "by", usage_by },
        { "from", usage_from },
        { "to", usage_to },
        { NULL, NULL },
    };
    struct ledger l = LEDGER_INIT;
    int r = read_parameters(table, p, n, &l, e);
    if (r < 0)
        return r;
    if (!l.from_day)
        l.from_day = day_of(clock_now().wall_us);
    if (!l.to_day)
        l.to_day = day_next(l.from_day);
    if (l.to_day <= l.from_day)
        return err_set(e, -EINVAL, "to: it must be a later day than from");
    *ret = l;
    return 0;
}

struct wait_parameters {
    enum api_until until;
    int64_t timeout_us;
};

static int wait_until(const char *value, void *ret, struct err *e)
{
    struct wait_parameters *w = ret;
    if (strcmp(value, "starting") == 0)
        w->until = API_UNTIL_STARTING;
    else if (strcmp(value, "started") == 0)
        w->until = API_UNTIL_STARTED;
    else if (strcmp(value, "ended") == 0)
        w->until = API_UNTIL_ENDED;
    else
        return err_set(e, -EINVAL,
                       "until: a job can be waited for until it is starting, started or ended");
    return 0;
}

static int wait_timeout(const char *value, void *ret, struct err *e)
{
    uint64_t ms = 0;
    int r = text_parse_u64(value, 0, API_WAIT_MAX_US / 1000, "timeout_ms", &ms, e);
    if (r == 0)
        ((struct wait_parameters *)ret)->timeout_us = (int64_t)ms * 1000;
    return r;
}

int api_read_wait(const struct api_parameter *p, size_t n, enum api_until *ret_until,
                  int64_t *ret_timeout_us, struct err *e)
{
    static const struct parameter table[] = {
        { "until", wait_until },
        { "timeout_ms", wait_timeout },
        { NULL, NULL },
    };
    struct wait_parameters w = { .until = API_UNTIL_ENDED, .timeout_us = API_WAIT_MAX_US };
    int r = read_parameters(table, p, n, &w, e);
    if (r < 0)
        return r;
    *ret_until = w.until;
    *ret_timeout_us = w.timeout_us;
    return 0;
}

static int inventory_fresh(const char *value, void *ret, struct err *e)
{
    *(bool *)ret = strcmp(value, "true") == 0;
    if (!*(bool *)ret && strcmp(value, "false") != 0)
        return err_set(e, -EINVAL, "fresh: true asks the driver first, false does not");
    return 0;
}

int api_read_inventory(const struct api_parameter *p, size_t n, bool *ret_fresh, struct err *e)
{
    static const struct parameter table[] = { { "fresh", inventory_fresh }, { NULL, NULL } };
    bool fresh = false;
    int r = read_parameters(table, p, n, &fresh, e);
    if (r < 0)
        return r;
    *ret_fresh = fresh;
    return 0;
}

int api_read_no_parameters(const struct api_parameter *p, size_t n, struct err *e)
{
    static const struct parameter none[] = { { NULL, NULL } };
    return read_parameters(none, p, n, NULL, e);
}
