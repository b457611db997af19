#include "api/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "model/card_json.h"

/* What a route's handler gets beside the request. */
struct route_call {
    struct api_request *req;
    const struct api_caller *who;
    const struct api_ops *ops;
    void *ctx;
    struct api_parameter parameters[API_PARAMETERS_MAX];
    size_t parameter_count;
    bool too_many_parameters;
};

typedef int (*handler_fn)(struct route_call *c, struct err *e);

enum may {
    ANYBODY,  /* who may talk to the daemon at all */
    OWNER,    /* whose job it is, and operators */
    OPERATOR, /* root, the daemon's own user, the operators' group */
};

struct route {
    const char *method;
    const char *path; /* "{}" stands for a number */
    enum may may;
    bool parameters; /* its handler reads them; else there must be none */
    handler_fn handler;
};

struct api_jobs {
    struct text text; /* the list so far, without its end */
    const struct api_caller *who;
    uint32_t count, limit;
    uint64_t last;
    bool full;
};

bool caller_owns(const struct api_caller *c, const struct job_view *v)
{
    return c->is_operator || c->uid == v->uid;
}

static int get_status(struct route_call *c, struct err *e)
{
    (void)e; /* cannot fail: the daemon knows itself */
    struct daemon_view v = { .version = NULL };
    c->ops->daemon(c->ctx, &v);
    request_reply(c->req, 200, daemon_view_to_json(&v));
    return 0;
}

static int get_shares(struct route_call *c, struct err *e)
{
    (void)e; /* cannot fail */
    struct share_view v = { .rows = NULL };
    c->ops->shares(c->ctx, &v);
    request_reply(c->req, 200, share_view_to_json(&v));
    share_view_done(&v);
    return 0;
}

/* From here on the daemon owes the answer. */
static void owe(struct api_request *req)
{
    req->owed = true;
    req->api->owed++;
}

static int get_inventory(struct route_call *c, struct err *e)
{
    const struct inventory *inv = NULL;
    bool fresh = false;
    int r = api_read_inventory(c->parameters, c->parameter_count, &fresh, e);
    if (r == 0 && fresh) {
        owe(c->req);
        c->ops->look(c->ctx, c->req);
        return 0;
    }
    if (r == 0)
        r = c->ops->inventory(c->ctx, &inv, e);
    if (r == 0)
        request_reply(c->req, 200, inventory_to_json(inv));
    return r;
}

static int patch_card(struct route_call *c, struct err *e)
{
    int pool = -1;
    int mode = -1;
    if (c->req->id > UINT32_MAX)
        return err_set(e, -ENOENT, "there is no gpu%" PRIu64 " here", c->req->id);
    int r = api_read_set_card(c->req->body.buf, c->req->body.len, &pool, &mode, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->set_card(c->ctx, c->req, c->who, (uint32_t)c->req->id, pool, mode);
    return 0;
}

static int get_layout(struct route_call *c, struct err *e)
{
    (void)e; /* cannot fail: it is what the daemon remembers */
    request_reply(c->req, 200, c->ops->layout(c->ctx));
    return 0;
}

static int post_layout(struct route_call *c, struct err *e)
{
    struct layout_order order = LAYOUT_ORDER_INIT;
    int r = api_read_layout(c->req->body.buf, c->req->body.len, &order, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->change_layout(c->ctx, c->req, c->who, &order);
    return 0;
}

static int get_maintenance(struct route_call *c, struct err *e)
{
    (void)e; /* cannot fail: it is what the daemon remembers */
    request_reply(c->req, 200, c->ops->maintenance(c->ctx));
    return 0;
}

static int post_maintenance(struct route_call *c, struct err *e)
{
    struct maintenance_order order;
    int r = api_read_maintenance(c->req->body.buf, c->req->body.len, &order, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->change_maintenance(c->ctx, c->req, c->who, &order);
    return 0;
}

static int stop_layout(struct route_call *c, struct err *e)
{
    int r = api_read_nothing(c->req->body.buf, c->req->body.len, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->stop_layout(c->ctx, c->req, c->who);
    return 0;
}

static int post_job(struct route_call *c, struct err *e)
{
    struct job_spec spec = { .name = NULL };
    int r = api_read_submit(c->req->body.buf, c->req->body.len, &spec, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->submit(c->ctx, c->req, c->who, &spec);
    return 0;
}

static int post_batch(struct route_call *c, struct err *e)
{
    struct job_spec *specs = NULL;
    size_t count = 0;
    int r = api_read_submit_many(c->req->body.buf, c->req->body.len, &specs, &count, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->submit_many(c->ctx, c->req, c->who, specs, count);
    return 0;
}

static bool list_full(struct api_jobs *out)
{
    if (out->count == out->limit)
        out->full = true;
    return out->full;
}

static void list_add(struct api_jobs *out, const json_t *j, uint64_t number)
{
    auto_free char *text = json_dumps(j, JSON_COMPACT);
    if (text) {
        text_add(&out->text, out->count ? "," : "");
        text_add(&out->text, text);
        out->count++;
    }
    out->last = number;
}

bool api_jobs_add(struct api_jobs *out, const struct job_view *v, uint64_t last)
{
    if (list_full(out))
        return false;
    auto_json json_t *j = job_view_to_json(v, JOB_VIEW_PUBLIC);
    list_add(out, j, last);
    return true;
}

bool api_history_add(struct api_jobs *out, const struct job_view *v, const char *qos,
                     const struct held *h, uint64_t seq)
{
    if (list_full(out))
        return false;
    auto_json json_t *j = job_view_to_json(v, JOB_VIEW_PUBLIC);
    json_put_text(j, "qos", qos);
    json_put(j, "usage", held_to_json(h));
    list_add(out, j, seq);
    return true;
}

static void reply_list(struct route_call *c, struct api_jobs *out)
{
    if (out->full)
        text_addf(&out->text, "],\"next\":%" PRIu64 "}", out->last);
    else
        text_add(&out->text, "],\"next\":null}");
    size_t len = out->text.len;
    request_reply_text(c->req, 200, text_take(&out->text), len);
}

static int list_jobs(struct route_call *c, struct err *e)
{
    struct job_filter filter;
    struct api_jobs out = { .text = TEXT_INIT, .who = c->who };
    int r = api_read_filter(c->parameters, c->parameter_count, &filter, e);
    if (r < 0)
        return r;
    out.limit = filter.limit;
    text_add(&out.text, "{\"jobs\":[");
    r = c->ops->jobs(c->ctx, &filter, &out, e);
    if (r == 0)
        reply_list(c, &out);
    text_done(&out.text);
    return r;
}

static int list_history(struct route_call *c, struct err *e)
{
    struct history_filter filter;
    struct api_jobs out = { .text = TEXT_INIT, .who = c->who };
    int r = api_read_history(c->parameters, c->parameter_count, &filter, e);
    if (r < 0)
        return r;
    out.limit = filter.limit;
    text_add(&out.text, "{\"jobs\":[");
    r = c->ops->history(c->ctx, &filter, &out, e);
    if (r == 0)
        reply_list(c, &out);
    text_done(&out.text);
    return r;
}

static int get_usage(struct route_call *c, struct err *e)
{
    AUTO(ledger) struct ledger l = LEDGER_INIT;
    int r = api_read_usage(c->parameters, c->parameter_count, &l, e);
    if (r == 0)
        r = c->ops->usage(c->ctx, &l, e);
    if (r == 0)
        request_reply(c->req, 200, ledger_to_json(&l));
    return r;
}

static int get_job(struct route_call *c, struct err *e)
{
    struct job_view v = { .id = 0 };
    int r = c->ops->job(c->ctx, c->req->id, &v, e);
    if (r < 0)
        return r;
    enum job_view_for whom = caller_owns(c->who, &v) ? JOB_VIEW_PRIVATE : JOB_VIEW_PUBLIC;
    request_reply(c->req, 200, job_view_to_json(&v, whom));
    return 0;
}

static int wait_job(struct route_call *c, struct err *e)
{
    struct api_request *req = c->req;
    int64_t timeout_us = 0;
    int r = api_read_wait(c->parameters, c->parameter_count, &req->until, &timeout_us, e);
    if (r < 0)
        return r;
    struct now now = api_now(req->api);
    req->deadline_boot_us = now.boot_us + timeout_us;
    req->waits = true;
    wait_look(req, now);
    return 0;
}

static int why_job(struct route_call *c, struct err *e)
{
    struct why_view v = { .id = c->req->id };
    int r = c->ops->why(c->ctx, c->req->id, &v, e);
    if (r < 0)
        return r;
    request_reply(c->req, 200, why_view_to_json(&v));
    why_view_done(&v);
    return 0;
}

static int act(struct route_call *c, enum job_action what, struct err *e)
{
    auto_free char *indices = NULL;
    int r = api_read_indices(c->req->body.buf, c->req->body.len, &indices, e);
    if (r < 0)
        return r;
    owe(c->req);
    c->ops->act(c->ctx, c->req, c->who, c->req->id, what, indices);
    return 0;
}

static int cancel_job(struct route_call *c, struct err *e)
{
    return act(c, JOB_ACTION_CANCEL, e);
}

static int hold_job(struct route_call *c, struct err *e)
{
    return act(c, JOB_ACTION_HOLD, e);
}

static int release_job(struct route_call *c, struct err *e)
{
    return act(c, JOB_ACTION_RELEASE, e);
}

static int requeue_job(struct route_call *c, struct err *e)
{
    return act(c, JOB_ACTION_REQUEUE, e);
}

static const struct route routes[] = {
    { "GET", "/v1/status", ANYBODY, false, get_status },
    { "GET", "/v1/inventory", ANYBODY, true, get_inventory },
    { "GET", "/v1/shares", ANYBODY, false, get_shares },
    { "PATCH", "/v1/cards/{}", OPERATOR, false, patch_card },
    { "GET", "/v1/layout", ANYBODY, false, get_layout },
    { "POST", "/v1/layout", OPERATOR, false, post_layout },
    { "GET", "/v1/maintenance", ANYBODY, false, get_maintenance },
    { "POST", "/v1/maintenance", OPERATOR, false, post_maintenance },
    { "POST", "/v1/layout/stop", OPERATOR, false, stop_layout },
    { "GET", "/v1/usage", ANYBODY, true, get_usage },
    { "GET", "/v1/history", ANYBODY, true, list_history },
    { "GET", "/v1/jobs", ANYBODY, true, list_jobs },
    { "POST", "/v1/jobs", ANYBODY, false, post_job },
    { "POST", "/v1/batch", ANYBODY, false, post_batch },
    { "GET", "/v1/jobs/{}", ANYBODY, false, get_job },
    { "GET", "/v1/jobs/{}/wait", ANYBODY, true, wait_job },
    { "GET", "/v1/jobs/{}/why", ANYBODY, false, why_job },
    { "POST", "/v1/jobs/{}/cancel", OWNER, false, cancel_job },
    { "POST", "/v1/jobs/{}/hold", OWNER, false, hold_job },
    { "POST", "/v1/jobs/{}/release", OWNER, false, release_job },
    { "POST", "/v1/jobs/{}/requeue", OWNER, false, requeue_job },
};

/* Digits at *s into *ret, moving on behind them. False: none, or too many. */
static bool eat_number(const char **s, uint64_t *ret)
{
    uint64_t n = 0;
    const char *p = *s;
    for (; *p >= '0' && *p <= '9' && p - *s < 18; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    if (p == *s)
        return false;
    *s = p;
    *ret = n;
    return true;
}

static bool path_matches(const char *pattern, const char *url, uint64_t *ret_id)
{
    while (*pattern) {
        if (pattern[0] == '{') {
            if (!eat_number(&url, ret_id))
                return false;
            pattern += 2;
        } else if (*pattern++ != *url++) {
            return false;
        }
    }
    return *url == '\0';
}

static enum MHD_Result collect(void *ctx, enum MHD_ValueKind kind, const char *key,
                               const char *value)
{
    (void)kind; /* asked for the parameters alone */
    struct route_call *c = ctx;
    if (c->parameter_count == API_PARAMETERS_MAX) {
        c->too_many_parameters = true;
        return MHD_NO;
    }
    c->parameters[c->parameter_count++] = (struct api_parameter){ key, value };
    return MHD_YES;
}

static int may(const struct route *route, struct route_call *c, struct err *e)
{
    struct job_view v = { .id = 0 };
    if (route->may == ANYBODY || (route->may == OPERATOR && c->who->is_operator))
        return 0;
    if (route->may == OPERATOR)
        return err_set(e, -EPERM,
                       "only operators may change cards: root, and members of the group that "
                       "divvy.yaml names under operators");
    int r = c->ops->job(c->ctx, c->req->id, &v, e);
    if (r == 0 && !caller_owns(c->who, &v))
        return err_set(e, -EPERM, "job %" PRIu64 " is %s's; only they and operators may do that",
                       v.id, v.user);
    return r;
}

static void call_route(const struct route *route, struct api_request *req)
{
    struct route_call c = {
        .req = req, .who = &req->from->caller, .ops = req->api->cfg.ops, .ctx = req->api->cfg.ctx
    };
    struct err e = ERR_INIT;
    MHD_get_connection_values(req->mhd, MHD_GET_ARGUMENT_KIND, collect, &c);
    int r = 0;
    if (c.too_many_parameters)
        r = err_set(&e, -EINVAL, "there are more than %d parameters", API_PARAMETERS_MAX);
    else if (!route->parameters)
        r = api_read_no_parameters(c.parameters, c.parameter_count, &e);
    if (r == 0)
        r = may(route, &c, &e);
    if (r == 0)
        r = route->handler(&c, &e);
    if (r < 0)
        request_reply_error(req, &e);
}

static void refuse_method(struct api_request *req, const char *method, const char *allow)
{
    auto_free char *message = text_fmt("%.16s does not work here; %s does", method, allow);
    req->allow = allow;
    request_reply_problem(req, 405, "method", message);
}

void request_route(struct api_request *req, const char *method, const char *url)
{
    const char *allow = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (!path_matches(routes[i].path, url, &req->id))
            continue;
        if (strcmp(routes[i].method, method) == 0) {
            call_route(&routes[i], req);
            return;
        }
        allow = routes[i].method;
    }
    if (allow) {
        refuse_method(req, method, allow);
        return;
    }
    auto_free char *message = text_fmt("there is nothing at %.128s; docs/openapi.yaml lists what "
                                       "there is",
                                       url);
    request_reply_problem(req, 404, "not_found", message);
}
