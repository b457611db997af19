#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "model/view.h"
#include "replay/trace.h"

static int add_job(json_t *j, struct trace *t, struct err *e)
{
    struct job_view v;
    int r = job_view_from_json(j, &v, e);
    if (r < 0)
        return r;
    struct trace_job job = { .id = v.id, .request = v.request, .limit_us = v.limit_us };
    bool ran = v.start_wall_us && v.end_wall_us && v.request.kind != REQUEST_NOTHING;
    job.mem_bytes = v.mem_bytes;
    job.cpu_milli = v.cpu_milli;
    job.submit_us = v.submit_wall_us;
    job.run_us = ran ? v.end_wall_us - v.start_wall_us : 0;
    job.wait_us = v.start_wall_us >= v.submit_wall_us ? v.start_wall_us - v.submit_wall_us : -1;
    job.attached = v.attached;
    job.user = trace_name(&t->users, v.user);
    job.account = trace_name(&t->accounts, v.account ? v.account : v.user);
    job.qos = UINT32_MAX;
    json_t *qos = json_object_get(j, "qos");
    if (json_is_string(qos))
        job.qos = trace_name(&t->qos, json_string_value(qos));
    trace_add(t, &job);
    job_view_done(&v);
    return 0;
}

static int add_list(json_t *list, const char *file, struct trace *t, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < json_array_size(list); i++) {
        r = add_job(json_array_get(list, i), t, e);
        if (r < 0)
            return err_wrap(e, r, "%s: job %zu of the list", file, i + 1);
    }
    return r;
}

/* A list, {"jobs": […]}, or one job of a line. */
static int add_value(json_t *j, const char *file, unsigned line, struct trace *t, struct err *e)
{
    json_t *jobs = json_is_array(j) ? j : json_object_get(j, "jobs");
    if (jobs)
        return add_list(jobs, file, t, e);
    int r = add_job(j, t, e);
    return r < 0 ? err_wrap(e, r, "%s:%u", file, line) : r;
}

int trace_read_history(const char *file, const char *text, size_t len, struct trace *t,
                       struct err *e)
{
    unsigned line = 1;
    const char *at = text, *end = text + len;
    for (;;) {
        for (; at < end && strchr(" \t\r\n", *at); at++)
            line += *at == '\n';
        if (at >= end)
            return 0;
        json_error_t je;
        auto_json json_t *j = json_loadb(at, (size_t)(end - at),
                                         JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &je);
        if (!j)
            return err_set(e, -EINVAL, "%s:%u: %s", file, line + (unsigned)je.line - 1, je.text);
        int r = add_value(j, file, line, t, e);
        if (r < 0)
            return r;
        for (const char *p = at; p < at + je.position; p++)
            line += *p == '\n';
        at += je.position;
    }
}
