#include "client/connect.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/file.h"
#include "client/http.h"

/* divvyd lets go of idle connections after 10 s; one that may be gone is not used to change things. */
#define STALE_US (3 * CLOCK_SECOND)
#define DIAL_AGAIN_NS 20000000

struct client {
    char *root;
    char *path; /* of the socket */
    int fd;     /* -1: not connected */
    int64_t used_boot_us;
};

char *client_root(const char *root)
{
    if (!root || !root[0])
        root = getenv("DIVVY_ROOT");
    return text_dup(root && root[0] ? root : "/");
}

int client_open(const char *root, struct client **ret, struct err *e)
{
    struct client *c = mem_new(sizeof *c);
    *c = (struct client){ .root = client_root(root), .fd = -1 };
    c->path = file_under(c->root, "/run/divvy/divvyd.sock");
    int r = client_dial(c, e);
    if (r < 0) {
        client_close(c);
        return r;
    }
    *ret = c;
    return 0;
}

int client_open_by(const char *root, int64_t until_boot_us, struct client **ret, struct err *e)
{
    const struct timespec pause = { .tv_nsec = DIAL_AGAIN_NS };
    int r;
    while ((r = client_open(root, ret, e)) == -EHOSTDOWN && clock_now().boot_us < until_boot_us)
        (void)nanosleep(&pause, NULL); /* shorter is as good */
    return r;
}

static void hang_up(struct client *c)
{
    if (c->fd >= 0)
        (void)close(c->fd); /* nothing is on its way */
    c->fd = -1;
}

void client_close(struct client *c)
{
    if (!c)
        return;
    hang_up(c);
    free(c->root);
    free(c->path);
    free(c);
}

static int not_there(const struct client *c, struct err *e)
{
    if (text_same(c->root, "/"))
        return err_set(e, -EHOSTDOWN,
                       "divvyd does not answer at %s: start it with 'systemctl start divvyd', or "
                       "name the root of your own with --root",
                       c->path);
    return err_set(e, -EHOSTDOWN, "divvyd does not answer at %s: start it with 'divvyd --root %s'",
                   c->path, c->root);
}

int client_dial(struct client *c, struct err *e)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    if (c->fd >= 0)
        return 0;
    if (strlen(c->path) >= sizeof addr.sun_path)
        return err_set(e, -EHOSTDOWN,
                       "the path of divvyd's socket has %zu bytes and at most %zu work; choose a "
                       "shorter root than %.200s",
                       strlen(c->path), sizeof addr.sun_path - 1, c->root);
    memcpy(addr.sun_path, c->path, strlen(c->path) + 1);
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set(e, -EREMOTEIO, "cannot make a socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) < 0) {
        if (errno == EACCES || errno == EPERM)
            return err_set(e, -EACCES, "you may not open %s; its owner can use it", c->path);
        return not_there(c, e);
    }
    c->fd = take_fd(fd);
    return 0;
}

/* Waits until the socket can be read. */
static int wait_readable(const struct client *c, int64_t until_us, struct err *e)
{
    struct pollfd p = { .fd = c->fd, .events = POLLIN };
    int64_t left_us = until_us - clock_now().boot_us;
    int r = left_us <= 0 ? 0 : poll(&p, 1, (int)((left_us + 999) / 1000));
    if (r > 0)
        return 0;
    if (r == 0)
        return err_set(e, -EREMOTEIO,
                       "divvyd took the request and did not answer in time; 'divvy status' shows "
                       "whether it is alive");
    return errno == EINTR ? err_set(e, -EINTR, "interrupted while divvyd was asked")
                          : err_set(e, -EREMOTEIO, "cannot wait for divvyd: %s", strerror(errno));
}

/* -EPIPE: the connection was closed before anything of an answer came. */
static int read_answer(struct client *c, int64_t until_us, struct http_answer *a, struct err *e)
{
    char buf[65536];
    bool began = false;
    int r = HTTP_MORE;
    while (r == HTTP_MORE) {
        r = wait_readable(c, until_us, e);
        if (r < 0)
            return r;
        ssize_t n = recv(c->fd, buf, sizeof buf, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 && !began)
            return err_set(e, -EPIPE, "divvyd closed the connection without an answer");
        r = n > 0 ? http_feed(a, buf, (size_t)n, e) : http_end(a, e);
        began = true;
    }
    return r < 0 ? err_wrap(e, -EREMOTEIO, "divvyd at %s", c->path) : 0;
}

static int send_request(struct client *c, const struct text *request)
{
    size_t sent = 0;
    while (sent < request->len) {
        ssize_t n = send(c->fd, request->buf + sent, request->len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        sent += (size_t)n;
    }
    return 0;
}

/* One try on the connection there is. -EPIPE: it was closed, and nothing was answered. */
static int exchange(struct client *c, const struct text *request, int timeout_ms,
                    struct http_answer *a, struct err *e)
{
    int64_t until_us = clock_now().boot_us + (int64_t)timeout_ms * 1000;
    int r = client_dial(c, e);
    if (r < 0)
        return r;
    /* Who is turned away gets the reason before the connection closes: read it all the same. */
    (void)send_request(c, request);
    r = read_answer(c, until_us, a, e);
    c->used_boot_us = clock_now().boot_us;
    if (r < 0 || a->closes)
        hang_up(c);
    return r;
}

static void add_request(struct text *t, const char *method, const char *path, const char *body)
{
    text_addf(t, "%s %s HTTP/1.1\r\nHost: divvy\r\n", method, path);
    if (body)
        text_addf(t, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    else if (!text_same(method, "GET"))
        text_add(t, "Content-Length: 0\r\n");
    text_add(t, "\r\n");
    text_add(t, body ? body : "");
}

/* What the daemon refused, in its own words, with a code of ours. */
static int refused(unsigned status, json_t *json, struct err *e)
{
    static const struct {
        unsigned status;
        int code;
    } codes[] = { { 400, -EINVAL }, { 403, -EACCES }, { 404, -ENOENT },
                  { 409, -EBUSY },  { 413, -E2BIG },  { 429, -EDQUOT } };
    json_t *error = json_object_get(json, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *word = json_string_value(json_object_get(error, "code"));
    int code = -EREMOTEIO;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    if (code == -EBUSY && text_same(word, "already"))
        code = -EALREADY;
    if (!message)
        return err_set(e, code, "divvyd answered with HTTP status %u and without a reason", status);
    return err_set(e, code, "%s", message);
}

static int take_answer(const struct http_answer *a, json_t **ret, struct err *e)
{
    auto_json json_t *json = NULL;
    int r = json_parse(a->body.buf, a->body.len, "divvyd's answer", &json, e);
    if (a->status >= 300)
        return refused(a->status, json, e);
    if (r < 0)
        return err_wrap(e, -EREMOTEIO, "divvyd and divvy do not understand each other");
    if (ret)
        *ret = take_ptr(json);
    return 0;
}

int client_ask(struct client *c, const char *method, const char *path, json_t *body, int timeout_ms,
               json_t **ret, struct err *e)
{
    AUTO(text) struct text request = TEXT_INIT;
    AUTO(http_answer) struct http_answer a = HTTP_ANSWER_INIT(CLIENT_ANSWER_MAX);
    auto_free char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    if (body && !text)
        return err_set(e, -EINVAL,
                       "the request has text that is no UTF-8; divvyd takes only UTF-8");
    add_request(&request, method, path, text);
    bool reading = text_same(method, "GET");
    bool reused = c->fd >= 0 && c->used_boot_us;
    if (reused && !reading && clock_now().boot_us - c->used_boot_us > STALE_US)
        hang_up(c);
    int r = exchange(c, &request, timeout_ms, &a, e);
    if (r == -EPIPE && reading && reused)
        r = exchange(c, &request, timeout_ms, &a, e);
    if (r == -EPIPE)
        return err_set(e, -EREMOTEIO, "divvyd closed the connection without an answer; %s",
                       reading ? "try again" : "look with 'divvy queue' whether it was done");
    return r < 0 ? r : take_answer(&a, ret, e);
}
