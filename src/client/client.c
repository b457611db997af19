#include "client/connect.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define ASK_MS (CLIENT_TIMEOUT_S * 1000)
#define PAGE 2000u
#define POLL_US (50 * CLOCK_SECOND) /* one long poll; divvyd allows 60 s */
#define AWAY_US (10 * CLOCK_MINUTE) /* a daemon that is being upgraded comes back */

int client_get(struct client *c, const char *path, json_t **ret, struct err *e)
{
    return client_ask(c, "GET", path, NULL, ASK_MS, ret, e);
}

int client_post(struct client *c, const char *path, json_t *body, json_t **ret, struct err *e)
{
    return client_ask(c, "POST", path, body, ASK_MS, ret, e);
}

static char *take_note(json_t *answer)
{
    return text_dup(json_string_value(json_object_get(answer, "note")));
}

int client_submit(struct client *c, const struct job_spec *spec, uint64_t *ret_id, char **ret_note,
                  struct err *e)
{
    auto_json json_t *body = job_spec_to_json(spec, true);
    auto_json json_t *answer = NULL;
    int r = client_ask(c, "POST", "/v1/jobs", body, ASK_MS, &answer, e);
    if (r < 0)
        return r;
    json_int_t id = json_integer_value(json_object_get(answer, "id"));
    if (id <= 0)
        return err_set(e, -EREMOTEIO, "divvyd took the job and told no number for it");
    *ret_id = (uint64_t)id;
    *ret_note = take_note(answer);
    return 0;
}

static bool same_env(char *const *a, char *const *b)
{
    size_t i = 0;
    if (!a || !b)
        return a == b;
    while (a[i] && b[i] && strcmp(a[i], b[i]) == 0)
        i++;
    return !a[i] && !b[i];
}

/* An environment that they share goes along once. */
static json_t *many_to_json(const struct job_spec *specs, size_t count)
{
    json_t *body = json_object();
    json_t *jobs = json_array();
    for (size_t i = 0; i < count; i++) {
        bool own = !same_env(specs[i].env, specs[0].env);
        (void)json_array_append_new(jobs, job_spec_to_json(&specs[i], own)); /* or no memory */
    }
    json_put(body, "jobs", jobs);
    if (specs[0].env)
        json_put(body, "env", json_strv(specs[0].env));
    return body;
}

/* What the daemon said of the first that it refused. */
static int read_refusal(json_t *refused, struct err *e)
{
    json_int_t code = json_integer_value(json_object_get(refused, "code"));
    const char *why = json_string_value(json_object_get(refused, "message"));
    return err_set(e, code < 0 && code > -4096 ? (int)code : -EREMOTEIO, "%s",
                   why ? why : "divvyd told no reason");
}

int client_submit_many(struct client *c, const struct job_spec *specs, size_t count,
                       uint64_t *ret_ids, size_t *ret_taken, size_t *ret_refused, struct err *e)
{
    auto_json json_t *body = many_to_json(specs, count);
    auto_json json_t *answer = NULL;
    *ret_taken = 0;
    *ret_refused = count;
    int r = client_ask(c, "POST", "/v1/batch", body, ASK_MS, &answer, e);
    if (r < 0)
        return r;
    json_t *ids = json_object_get(answer, "ids");
    json_t *refused = json_object_get(answer, "refused");
    size_t n = json_array_size(ids);
    if (n > count || (n < count && !json_is_object(refused)))
        return err_set(e, -EREMOTEIO, "divvyd's answer tells of %zu jobs, and %zu were sent", n,
                       count);
    for (size_t i = 0; i < n; i++)
        ret_ids[i] = (uint64_t)json_integer_value(json_array_get(ids, i));
    *ret_taken = n;
    json_int_t at = json_integer_value(json_object_get(refused, "index"));
    if (n < count && at >= 0 && (size_t)at < count)
        *ret_refused = (size_t)at;
    return n < count ? read_refusal(refused, e) : 0;
}

/* Everything but letters, digits and a few harmless signs as %XX. */
static void add_escaped(struct text *t, const char *s)
{
    for (; *s; s++) {
        bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
                     (*s >= '0' && *s <= '9') || strchr("-._~", *s);
        if (plain)
            text_addn(t, s, 1);
        else
            text_addf(t, "%%%02X", (unsigned char)*s);
    }
}

static void add_states(struct text *t, uint32_t states)
{
    const char *before = "&state=";
    for (int s = 0; s < JOB_STATES; s++) {
        if (!(states >> s & 1))
            continue;
        text_addf(t, "%s%s", before, job_state_word((enum job_state)s));
        before = ",";
    }
}

static char *list_path(const struct job_filter *f, uint64_t after, uint32_t limit)
{
    struct text t = TEXT_INIT;
    text_addf(&t, "/v1/jobs?after=%" PRIu64 "&limit=%u", after, limit);
    if (f->has_uid)
        text_addf(&t, "&uid=%u", (unsigned)f->uid);
    if (f->user[0]) {
        text_add(&t, "&user=");
        add_escaped(&t, f->user);
    }
    if (f->account[0]) {
        text_add(&t, "&account=");
        add_escaped(&t, f->account);
    }
    if (f->fold)
        text_add(&t, "&fold=true");
    add_states(&t, f->states);
    return text_take(&t);
}

void job_list_done(struct job_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        job_view_done(&l->jobs[i]);
    free(l->jobs);
    *l = (struct job_list){ .jobs = NULL };
}

static int add_page(json_t *page, struct job_list *l, struct err *e)
{
    json_t *jobs = json_object_get(page, "jobs");
    if (!json_is_array(jobs))
        return err_set(e, -EREMOTEIO, "divvyd's answer has no list of jobs");
    ARRAY_ROOM(l->jobs, l->alloc, l->count + json_array_size(jobs));
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        if (job_view_from_json(json_array_get(jobs, i), &l->jobs[l->count], e) < 0)
            return err_wrap(e, -EREMOTEIO, "divvyd's answer");
        l->count++;
    }
    return 0;
}

int client_jobs(struct client *c, const struct job_filter *f, struct job_list *ret, struct err *e)
{
    struct job_list list = { .jobs = NULL };
    uint64_t after = f->after;
    int r = 0;
    for (bool more = true; more && r == 0;) {
        uint32_t left = f->limit ? f->limit - (uint32_t)list.count : PAGE;
        auto_free char *path = list_path(f, after, left < PAGE ? left : PAGE);
        auto_json json_t *page = NULL;
        r = client_get(c, path, &page, e);
        if (r == 0)
            r = add_page(page, &list, e);
        json_t *next = r == 0 ? json_object_get(page, "next") : NULL;
        uint64_t to = (uint64_t)json_integer_value(next);
        more = json_is_integer(next) && to > after && (!f->limit || list.count < f->limit);
        after = to;
    }
    if (r < 0)
        job_list_done(&list);
    else
        *ret = list;
    return r;
}

int client_usage(struct client *c, struct ledger *ret, struct err *e)
{
    char from[11], to[11];
    auto_json json_t *answer = NULL;
    day_text(ret->from_day, from);
    day_text(ret->to_day, to);
    auto_free char *path =
        text_fmt("/v1/usage?by=%s&from=%s&to=%s", ledger_by_word(ret->by), from, to);
    int r = client_get(c, path, &answer, e);
    if (r < 0)
        return r;
    if (ledger_from_json(answer, ret, e) < 0)
        return err_wrap(e, -EREMOTEIO, "divvyd's answer");
    return 0;
}

static char *history_path(const struct history_filter *f, uint64_t after)
{
    struct text t = TEXT_INIT;
    text_addf(&t, "/v1/history?from=%" PRId64 "&to=%" PRId64 "&after=%" PRIu64 "&limit=%u",
              f->from_wall_us, f->to_wall_us, after, PAGE);
    if (f->user[0]) {
        text_add(&t, "&user=");
        add_escaped(&t, f->user);
    }
    if (f->account[0]) {
        text_add(&t, "&account=");
        add_escaped(&t, f->account);
    }
    return text_take(&t);
}

int client_history(struct client *c, const struct history_filter *f, json_t **ret, struct err *e)
{
    auto_json json_t *all = json_array();
    uint64_t after = f->after;
    for (bool more = true; more;) {
        auto_free char *path = history_path(f, after);
        auto_json json_t *page = NULL;
        int r = client_get(c, path, &page, e);
        if (r < 0)
            return r;
        if (json_array_extend(all, json_object_get(page, "jobs")) < 0)
            return err_set(e, -EREMOTEIO, "divvyd's answer has no list of jobs");
        json_t *next = json_object_get(page, "next");
        uint64_t to = (uint64_t)json_integer_value(next);
        more = json_is_integer(next) && to > after;
        after = to;
    }
    *ret = take_ptr(all);
    return 0;
}

static int read_job(json_t *answer, struct job_view *ret, struct err *e)
{
    if (job_view_from_json(answer, ret, e) < 0)
        return err_wrap(e, -EREMOTEIO, "divvyd's answer");
    return 0;
}

int client_job(struct client *c, uint64_t id, struct job_view *ret, struct err *e)
{
    auto_free char *path = text_fmt("/v1/jobs/%" PRIu64, id);
    auto_json json_t *answer = NULL;
    int r = client_get(c, path, &answer, e);
    return r < 0 ? r : read_job(answer, ret, e);
}

int client_act(struct client *c, uint64_t id, enum job_action what, const char *indices,
               char **ret_note, struct err *e)
{
    static const char *const words[] = { "cancel", "hold", "release", "requeue" };
    auto_free char *path = text_fmt("/v1/jobs/%" PRIu64 "/%s", id, words[what]);
    auto_json json_t *body = json_object();
    auto_json json_t *answer = NULL;
    if (indices)
        json_put_text(body, "indices", indices);
    int r = client_ask(c, "POST", path, body, ASK_MS, &answer, e);
    if (r == 0)
        *ret_note = take_note(answer);
    return r;
}

static bool reached(const struct job_view *v, enum client_until until)
{
    static const enum job_state from[] = { [CLIENT_UNTIL_STARTING] = JOB_STARTING,
                                           [CLIENT_UNTIL_STARTED] = JOB_RUNNING,
                                           [CLIENT_UNTIL_ENDED] = JOB_COMPLETED };
    return v->state >= from[until];
}

static const char *const until_words[] = { "starting", "started", "ended" };

static int poll_job(struct client *c, uint64_t id, enum client_until until, int64_t for_us,
                    struct job_view *ret, struct err *e)
{
    auto_free char *path = text_fmt("/v1/jobs/%" PRIu64 "/wait?until=%s&timeout_ms=%" PRId64, id,
                                    until_words[until], for_us / 1000);
    auto_json json_t *answer = NULL;
    int r = client_ask(c, "GET", path, NULL, (int)(for_us / 1000) + ASK_MS, &answer, e);
    return r < 0 ? r : read_job(answer, ret, e);
}

/* Jobs outlive the daemon, and so does waiting for them. */
static bool may_come_back(int code, int64_t since_us, int64_t now_us)
{
    return (code == -EHOSTDOWN || code == -EREMOTEIO) && now_us - since_us < AWAY_US;
}

int client_wait(struct client *c, uint64_t id, enum client_until until, int64_t timeout_us,
                struct job_view *ret, struct err *e)
{
    int64_t end_us = timeout_us < 0 ? INT64_MAX : clock_now().boot_us + timeout_us;
    int64_t seen_us =
        clock_now().boot_us; /* when the daemon was last there: client_open found it */
    for (;;) {
        struct job_view v = { .id = 0 };
        struct err inner = ERR_INIT;
        int64_t now_us = clock_now().boot_us;
        int64_t left_us = end_us > now_us ? end_us - now_us : 0;
        int r = poll_job(c, id, until, left_us < POLL_US ? left_us : POLL_US, &v, &inner);
        now_us = clock_now().boot_us;
        if (r == 0 && (reached(&v, until) || now_us >= end_us)) {
            *ret = v;
            return 0;
        }
        job_view_done(&v);
        if (r == 0) {
            seen_us = now_us;
        } else if (now_us >= end_us || !may_come_back(r, seen_us, now_us)) {
            return err_set(e, r, "%s", inner.text);
        } else {
            struct timespec pause = { .tv_nsec = 200 * 1000 * 1000 };
            (void)nanosleep(&pause, NULL); /* shorter is as good */
        }
    }
}

static int get_inventory(struct client *c, const char *path, struct inventory *ret, struct err *e)
{
    auto_json json_t *answer = NULL;
    int r = client_get(c, path, &answer, e);
    if (r == 0 && inventory_from_json(answer, ret, e) < 0)
        r = err_wrap(e, -EREMOTEIO, "divvyd's answer");
    return r;
}

int client_inventory(struct client *c, struct inventory *ret, struct err *e)
{
    return get_inventory(c, "/v1/inventory", ret, e);
}

int client_look(struct client *c, struct inventory *ret, struct err *e)
{
    return get_inventory(c, "/v1/inventory?fresh=true", ret, e);
}

int client_set_card(struct client *c, uint32_t ordinal, const char *pool, const char *mode,
                    char **ret_note, struct err *e)
{
    auto_free char *path = text_fmt("/v1/cards/%u", ordinal);
    auto_json json_t *body = json_object();
    auto_json json_t *answer = NULL;
    if (pool)
        json_put_text(body, "pool", pool);
    if (mode)
        json_put_text(body, "mode", mode);
    int r = client_ask(c, "PATCH", path, body, ASK_MS, &answer, e);
    if (r == 0)
        *ret_note = take_note(answer);
    return r;
}

int client_daemon(struct client *c, struct daemon_view *ret, struct err *e)
{
    auto_json json_t *answer = NULL;
    int r = client_get(c, "/v1/status", &answer, e);
    if (r == 0 && daemon_view_from_json(answer, ret, e) < 0)
        r = err_wrap(e, -EREMOTEIO, "divvyd's answer");
    return r;
}

int client_shares(struct client *c, struct share_view *ret, struct err *e)
{
    auto_json json_t *answer = NULL;
    int r = client_get(c, "/v1/shares", &answer, e);
    if (r == 0 && share_view_from_json(answer, ret, e) < 0)
        r = err_wrap(e, -EREMOTEIO, "divvyd's answer");
    return r;
}

int client_why(struct client *c, uint64_t id, struct why_view *ret, struct err *e)
{
    auto_free char *path = text_fmt("/v1/jobs/%" PRIu64 "/why", id);
    auto_json json_t *answer = NULL;
    int r = client_get(c, path, &answer, e);
    if (r == 0 && why_view_from_json(answer, ret, e) < 0)
        r = err_wrap(e, -EREMOTEIO, "divvyd's answer");
    return r;
}
