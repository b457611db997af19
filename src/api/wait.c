#include "api/request.h"

#include <errno.h>

static bool reached(const struct job_view *v, enum api_until until)
{
    static const enum job_state from[] = { [API_UNTIL_STARTING] = JOB_STARTING,
                                           [API_UNTIL_STARTED] = JOB_RUNNING,
                                           [API_UNTIL_ENDED] = JOB_COMPLETED };
    return v->state >= from[until];
}

void wait_look(struct api_request *req, struct now now)
{
    struct api *api = req->api;
    struct job_view v = { .id = 0 };
    struct err e = ERR_INIT;
    req->look = false;
    if (api->cfg.ops->job(api->cfg.ctx, req->id, &v, &e) < 0) {
        request_reply_error(req, &e);
        return;
    }
    if (!reached(&v, req->until) && now.boot_us < req->deadline_boot_us)
        return;
    bool owns = caller_owns(&req->from->caller, &v);
    request_reply(req, 200, job_view_to_json(&v, owns ? JOB_VIEW_PRIVATE : JOB_VIEW_PUBLIC));
}

void api_job_changed(struct api *api, uint64_t id)
{
    for (struct api_request *r = api->suspended; r; r = r->next)
        if (r->waits && r->id == id)
            r->look = true;
}
