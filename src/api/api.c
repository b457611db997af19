#include "api/caller.h"
#include "api/request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONNECTIONS_MAX 1024u
#define PER_UID_MAX 128u
#define HALF_REQUEST_S 10u
#define CONNECTION_MEMORY (16u * 1024u) /* headers and a piece of the body */
#define BODY_SWALLOWED                                                                             \
    (8u * 1024u * 1024u) /* read to the end and refused, so that the refusal is seen */
#define ROUNDS_MAX 8

struct now api_now(const struct api *api)
{
    return api->cfg.clock ? api->cfg.clock() : clock_now();
}

/* ---- connections ---- */

static size_t uid_connections(const struct api *api, uid_t uid)
{
    return (size_t)(uintptr_t)map_get(&api->per_uid, uid);
}

static void count_connection(struct api *api, uid_t uid, int change)
{
    size_t n = uid_connections(api, uid) + (size_t)change;
    if (n)
        map_put(&api->per_uid, uid, (void *)(uintptr_t)n);
    else
        (void)map_remove(&api->per_uid, uid); /* the last one of this user went */
    api->connections += (unsigned)change;
}

/* Called by libmicrohttpd inside MHD_add_connection, or in the next MHD_run. */
static void connection_changed(void *ctx, struct MHD_Connection *mhd, void **context,
                               enum MHD_ConnectionNotificationCode what)
{
    struct api_connection *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = mem_new(sizeof *c);
        *c = (struct api_connection){ .api = ctx, .fd = info->connect_fd };
        /* It was asked and judged at accept; should the kernel not tell now, it is nobody. */
        if (api_caller_read(c->fd, &c->caller, NULL) < 0 ||
            api_caller_judge(&c->caller, &c->api->cfg, c->api->own_uid, NULL) < 0)
            c->caller = (struct api_caller){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
        patience_add(c->api, c);
        *context = c;
        return;
    }
    if (!c)
        return;
    count_connection(c->api, c->caller.uid, -1);
    patience_remove(c);
    api_caller_done(&c->caller);
    free(c);
    *context = NULL;
}

/* A short answer to somebody who does not get in. Never waits. */
static void turn_away(int fd, int err_code, const char *message)
{
    auto_json json_t *j = problem_json(problem_code(err_code), message);
    auto_free char *body = json_dumps(j, JSON_COMPACT);
    if (!body)
        return;
    auto_free char *answer =
        text_fmt("HTTP/1.1 %u Refused\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                 "Connection: close\r\n\r\n%s",
                 problem_status(err_code), strlen(body), body);
    (void)send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL); /* best effort */
}

static int check_room(const struct api *api, const struct api_caller *c, struct err *e)
{
    if (api->connections >= api->cfg.connections_max)
        return err_set(e, -EAGAIN, "divvyd has %u connections open and takes no more just now",
                       api->connections);
    if (!c->is_operator && uid_connections(api, c->uid) >= api->cfg.per_uid_max)
        return err_set(e, -EAGAIN, "you have %u connections to divvyd open, which is the most",
                       api->cfg.per_uid_max);
    return 0;
}

static void admit(struct api *api, int take_fd_)
{
    auto_close int fd = take_fd_;
    struct err e = ERR_INIT;
    struct api_caller c = { .groups = NULL };
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int r = api_caller_read(fd, &c, &e);
    if (r == 0)
        r = api_caller_judge(&c, &api->cfg, api->own_uid, &e);
    if (r == 0)
        r = check_room(api, &c, &e);
    uid_t uid = c.uid;
    api_caller_done(&c);
    if (r < 0) {
        turn_away(fd, e.code, e.text);
        return;
    }
    count_connection(api, uid, 1);
    int given = take_fd(fd); /* closed by libmicrohttpd even when it fails */
    if (MHD_add_connection(api->mhd, given, (const struct sockaddr *)&addr, sizeof addr) != MHD_YES)
        count_connection(api, uid, -1);
}

/* Out of descriptors: one is kept so that somebody who waits is told, and the loop does not spin. */
static bool refuse_one(struct api *api)
{
    (void)close(api->reserve_fd); /* /dev/null: nothing to lose */
    int fd = accept4(api->cfg.listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        turn_away(fd, -EAGAIN, "divvyd has no file descriptor left; try again in a moment");
        (void)close(fd); /* nothing was promised on it */
    }
    api->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void accept_all(struct api *api)
{
    for (int i = 0; i < 128; i++) {
        int fd = accept4(api->cfg.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            admit(api, fd);
        else if (errno == EMFILE || errno == ENFILE)
            (void)refuse_one(api); /* whether or not one was there, the loop ends */
        else if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

/* ---- requests ---- */

static struct api_request *request_new(struct api *api, struct MHD_Connection *mhd)
{
    struct api_request *req = mem_new(sizeof *req);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    *req = (struct api_request){ .api = api, .mhd = mhd, .body = TEXT_INIT };
    req->from = info ? info->socket_context : NULL;
    return req;
}

static void request_suspend(struct api_request *req)
{
    struct api *api = req->api;
    /* Whoever hangs up while waiting should not keep a place; libmicrohttpd does not look now. */
    struct epoll_event ev = { .events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = req };
    (void)epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, req->from->fd, &ev); /* else: until it is over */
    req->suspended = true;
    req->next = api->suspended;
    if (req->next)
        req->next->prev = req;
    api->suspended = req;
    MHD_suspend_connection(req->mhd);
}

static enum MHD_Result send_answer(struct api_request *req)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(req->answer_len, req->answer, MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    req->answer = NULL; /* the response has it */
    patience_hold(req->from, req->answer_len);
    patience_phase(req->from, PHASE_TAKES);
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    if (req->allow)
        (void)MHD_add_response_header(response, "Allow", req->allow);
    enum MHD_Result r = MHD_queue_response(req->mhd, req->status, response);
    MHD_destroy_response(response);
    return r;
}

static bool announces_too_much(struct MHD_Connection *mhd)
{
    const char *length = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");
    uint64_t n = 0;
    return length && (text_parse_u64(length, 0, BODY_SWALLOWED, "Content-Length", &n, NULL) < 0);
}

static void take_piece(struct api_request *req, const char *data, size_t *size)
{
    if (req->too_large || req->body.len + *size > API_BODY_MAX) {
        req->too_large = true;
    } else if (req->no_room || !patience_room(req->from, *size)) {
        req->no_room = true;
    } else {
        text_addn(&req->body, data, *size);
        patience_hold(req->from, *size);
    }
    *size = 0;
}

/* What was not read to the end is answered all the same. */
static void refuse_size(struct api_request *req)
{
    if (req->too_large)
        request_reply_problem(req, 413, "too_large",
                              "the request is too large; 1 MiB holds the longest command and "
                              "environment that work");
    else if (req->no_room)
        request_reply_problem(req, 429, "limit",
                              "too much is under way between you and divvyd; read the answers "
                              "first, then ask again");
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **context)
{
    (void)version; /* 1.0 and 1.1 are served alike */
    struct api_request *req = *context;
    if (!req) {
        *context = req = request_new(ctx, mhd);
        if (!req->from)
            return MHD_NO;
        req->too_large = announces_too_much(mhd);
        req->no_room = !patience_room(req->from, 1);
        if (!req->too_large)
            return MHD_YES;
    }
    if (*size) {
        take_piece(req, data, size);
        return MHD_YES;
    }
    if (!req->status)
        refuse_size(req);
    if (!req->routed && !req->status) {
        req->routed = true;
        patience_phase(req->from, PHASE_WAITS);
        request_route(req, method, url);
    }
    if (req->status)
        return send_answer(req);
    request_suspend(req);
    return MHD_YES;
}

static void request_over(void *ctx, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode why)
{
    (void)mhd, (void)why; /* sent or not: nothing is left to do about it */
    struct api *api = ctx;
    struct api_request *req = *context;
    *context = NULL;
    if (!req)
        return;
    if (req->from) {
        patience_let_go(req->from);
        patience_phase(req->from, PHASE_ASKS);
    }
    req->mhd = NULL;
    if (api->closing)
        req->api = NULL;
    if (req->owed)
        return; /* freed by the answer that is still to come */
    text_done(&req->body);
    free(req->answer);
    free(req);
}

/* ---- the room ---- */

static int watch(struct api *api, int fd, void *what, struct err *e)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = what };
    if (epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
        return err_sys(e, "cannot watch a descriptor of the API");
    return 0;
}

static int start_http(struct api *api, struct err *e)
{
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
    api->mhd = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, api, MHD_OPTION_NOTIFY_COMPLETED, request_over, api,
        MHD_OPTION_NOTIFY_CONNECTION, connection_changed, api, MHD_OPTION_CONNECTION_LIMIT,
        api->cfg.connections_max, MHD_OPTION_CONNECTION_TIMEOUT, api->cfg.half_request_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
    if (!api->mhd)
        return err_set(e, -EIO, "cannot start the HTTP interface (libmicrohttpd refused)");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(api->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    return watch(api, info->epoll_fd, api, e);
}

static void set_defaults(struct api_config *cfg)
{
    cfg->connections_max = cfg->connections_max ? cfg->connections_max : CONNECTIONS_MAX;
    cfg->per_uid_max = cfg->per_uid_max ? cfg->per_uid_max : PER_UID_MAX;
    cfg->half_request_s = cfg->half_request_s ? cfg->half_request_s : HALF_REQUEST_S;
}

int api_open(const struct api_config *cfg, struct api **ret, struct err *e)
{
    struct api *api = mem_new(sizeof *api);
    *api =
        (struct api){ .cfg = *cfg, .own_uid = geteuid(), .per_uid = MAP_INIT, .held_by = MAP_INIT };
    set_defaults(&api->cfg);
    api->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    api->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int r = api->epoll_fd < 0 ? err_sys(e, "cannot make an epoll descriptor") : 0;
    if (r == 0)
        r = watch(api, cfg->listen_fd, NULL, e);
    if (r == 0)
        r = start_http(api, e);
    if (r < 0) {
        api->cfg.listen_fd = -1; /* stays the caller's */
        api_close(api);
        return r;
    }
    *ret = api;
    return 0;
}

void api_close(struct api *api)
{
    if (!api)
        return;
    api->closing = true;
    while (api->suspended)
        request_reply_problem(api->suspended, 503, "unavailable", "divvyd is stopping");
    if (api->mhd)
        MHD_stop_daemon(api->mhd);
    map_done(&api->per_uid);
    map_done(&api->held_by);
    if (api->epoll_fd >= 0)
        (void)close(api->epoll_fd); /* holds no data */
    if (api->reserve_fd >= 0)
        (void)close(api->reserve_fd); /* /dev/null */
    if (api->cfg.listen_fd >= 0)
        (void)close(api->cfg.listen_fd); /* holds no data */
    free(api);
}

int api_fd(const struct api *api)
{
    return api->epoll_fd;
}

bool api_owes(const struct api *api)
{
    return api->owed > 0;
}

/* Somebody who waited has left: a long poll ends, a commit that is under way does not. */
static void hung_up(struct api_request *req)
{
    if (req->waits)
        request_reply_problem(req, 503, "unavailable", "nobody listens");
}

static void look_at_waits(struct api *api)
{
    struct now now = api_now(api);
    struct api_request *next;
    for (struct api_request *req = api->suspended; req; req = next) {
        next = req->next;
        if (req->waits && (req->look || now.boot_us >= req->deadline_boot_us))
            wait_look(req, now);
    }
}

/* libmicrohttpd keeps a list of its own of what is ready, which its descriptor does not tell. */
static bool http_is_busy(const struct api *api)
{
    MHD_UNSIGNED_LONG_LONG ms = 1;
    return MHD_get_timeout(api->mhd, &ms) == MHD_YES && ms == 0;
}

void api_run(struct api *api)
{
    struct epoll_event events[64];
    int n = epoll_wait(api->epoll_fd, events, 64, 0);
    for (int i = 0; i < n; i++) {
        if (!events[i].data.ptr)
            accept_all(api);
        else if (events[i].data.ptr != api)
            hung_up(events[i].data.ptr);
    }
    look_at_waits(api);
    patience_look(api, api_now(api));
    int rounds = 0;
    do
        (void)MHD_run(api->mhd); /* its failures are those of single connections */
    while (http_is_busy(api) && ++rounds < ROUNDS_MAX);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

int64_t api_timeout_us(const struct api *api, struct now now)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    int64_t us = MHD_get_timeout(api->mhd, &ms) == MHD_YES ? (int64_t)ms * 1000 : -1;
    us = sooner(us, patience_timeout_us(api, now));
    for (const struct api_request *req = api->suspended; req; req = req->next) {
        if (!req->waits)
            continue;
        int64_t left = req->deadline_boot_us - now.boot_us;
        us = sooner(us, req->look || left < 0 ? 0 : left);
    }
    return us;
}
