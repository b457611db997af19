#include "api/request.h"

#include <errno.h>
#include <string.h>

/* What each failure is called over HTTP. */
static const struct problem {
    int err_code;
    unsigned status;
    const char *code;
} problems[] = {
    { -EINVAL, 400, "invalid" },     { -ERANGE, 400, "invalid" },   { -EPERM, 403, "forbidden" },
    { -EACCES, 403, "forbidden" },   { -ENOENT, 404, "not_found" }, { -EBUSY, 409, "conflict" },
    { -EEXIST, 409, "conflict" },    { -EALREADY, 409, "already" }, { -E2BIG, 413, "too_large" },
    { -EFBIG, 413, "too_large" },    { -EDQUOT, 429, "limit" },     { -EAGAIN, 429, "limit" },
    { -ENOSPC, 503, "no_space" },    { -EROFS, 503, "no_space" },   { -EIO, 503, "unavailable" },
    { -ENODEV, 503, "unavailable" }, { 0, 500, "internal" },
};

static const struct problem *find_problem(int err_code)
{
    const struct problem *p = problems;
    while (p->err_code && p->err_code != err_code)
        p++;
    return p;
}

unsigned problem_status(int err_code)
{
    return find_problem(err_code)->status;
}

const char *problem_code(int err_code)
{
    return find_problem(err_code)->code;
}

json_t *problem_json(const char *code, const char *message)
{
    json_t *error = json_object();
    json_put_text(error, "code", code);
    json_put_text(error, "message", message);
    json_t *j = json_object();
    json_put(j, "error", error);
    return j;
}

void request_unlink(struct api_request *req)
{
    (void)epoll_ctl(req->api->epoll_fd, EPOLL_CTL_DEL, req->from->fd, NULL); /* may be gone */
    if (req->prev)
        req->prev->next = req->next;
    else
        req->api->suspended = req->next;
    if (req->next)
        req->next->prev = req->prev;
    req->prev = req->next = NULL;
}

void request_reply_text(struct api_request *req, unsigned status, char *take_text, size_t len)
{
    auto_free char *text = take_text;
    if (!req->mhd || req->status)
        return;
    req->status = status;
    req->answer = take_ptr(text);
    req->answer_len = len;
    req->waits = false;
    if (!req->suspended)
        return;
    req->suspended = false;
    request_unlink(req);
    MHD_resume_connection(req->mhd);
}

void request_reply(struct api_request *req, unsigned status, json_t *take_json)
{
    auto_json json_t *json = take_json;
    char *text = req->mhd ? json_dumps(json, JSON_COMPACT) : NULL;
    if (!text && req->mhd) {
        status = 500;
        text = text_dup("{\"error\":{\"code\":\"internal\",\"message\":"
                        "\"the answer is not representable as JSON\"}}");
    }
    request_reply_text(req, status, text, text ? strlen(text) : 0);
}

void request_reply_error(struct api_request *req, const struct err *e)
{
    request_reply(req, problem_status(e->code), problem_json(problem_code(e->code), e->text));
}

void request_reply_problem(struct api_request *req, unsigned status, const char *code,
                           const char *message)
{
    request_reply(req, status, problem_json(code, message));
}

/* The daemon lets go of it: if the client has left, nobody else will free it. */
static void settle(struct api_request *req)
{
    req->owed = false;
    if (req->api)
        req->api->owed--;
    if (req->mhd)
        return;
    text_done(&req->body);
    free(req->answer);
    free(req);
}

void api_answer_submitted(struct api_request *req, uint64_t id, const char *note)
{
    json_t *j = json_object();
    json_put_u64(j, "id", id);
    json_put_text(j, "note", note);
    request_reply(req, 201, j);
    settle(req);
}

void api_answer_ok(struct api_request *req, const char *note)
{
    json_t *j = json_object();
    json_put_text(j, "note", note);
    request_reply(req, 200, j);
    settle(req);
}

void api_answer_json(struct api_request *req, json_t *take_json)
{
    request_reply(req, 200, take_json);
    settle(req);
}

void api_answer_error(struct api_request *req, const struct err *e)
{
    request_reply_error(req, e);
    settle(req);
}
