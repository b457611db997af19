#include "client/step.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "client/attach.h"
#include "client/packet.h"

#define SOCKET_US (5 * CLOCK_SECOND)

static int wait_for(int sock, short events)
{
    struct pollfd p = { .fd = sock, .events = events };
    int r;
    do
        r = poll(&p, 1, -1);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

/* Blocks. One that refused has closed already; its reason is still to be read. */
static int say(int sock, enum attach_type type, const char *body, size_t len, const int *streams,
               struct err *e)
{
    int r;
    while ((r = packet_send(sock, type, body, len, streams)) == -EAGAIN || r == -EINTR)
        if (wait_for(sock, POLLOUT) < 0)
            break;
    return r < 0 && r != -EPIPE ? err_set(e, r, "cannot ask for a step: %s", strerror(-r)) : 0;
}

static void add_string(struct text *t, const char *s)
{
    text_addn(t, s, strlen(s) + 1);
}

static void add_strings(struct text *t, const struct step_ask *ask)
{
    auto_free char *count = text_fmt("%zu", strv_count(ask->argv));
    add_string(t, ""); /* no terminal */
    add_string(t, ask->cwd);
    add_string(t, count);
    for (size_t i = 0; ask->argv[i]; i++)
        add_string(t, ask->argv[i]);
    for (size_t i = 0; ask->env && ask->env[i]; i++)
        add_string(t, ask->env[i]);
}

static int say_all(int sock, const struct step_ask *ask, struct err *e)
{
    AUTO(text) struct text strings = TEXT_INIT;
    struct attach_enter enter = { .version = ATTACH_VERSION,
                                  .flags = ATTACH_STEP | (ask->alone ? ATTACH_ALONE : 0) |
                                           (ask->goes_on ? ATTACH_STEP_GOES_ON : 0),
                                  .task = ask->task };
    int r = 0;
    add_strings(&strings, ask);
    if (strings.len > ATTACH_ASKED_MAX)
        return err_set(e, -E2BIG, "the command and its environment have %zu bytes, %d work",
                       strings.len, ATTACH_ASKED_MAX);
    for (size_t at = 0; r == 0 && at < strings.len; at += ATTACH_BODY_MAX) {
        size_t left = strings.len - at;
        r = say(sock, ATTACH_MORE, strings.buf + at,
                left < ATTACH_BODY_MAX ? left : ATTACH_BODY_MAX, NULL, e);
    }
    return r < 0 ? r : say(sock, ATTACH_ENTER, (const char *)&enter, sizeof enter, ask->streams, e);
}

/* The next packet's length without its head; -EAGAIN; -EPIPE. */
static ssize_t receive(int sock, struct packet *p, struct err *e)
{
    ssize_t n = recv(sock, p, sizeof *p, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (n < (ssize_t)sizeof p->head)
        return err_set(e, -EPIPE, "the job ends");
    return n - (ssize_t)sizeof p->head;
}

static int await_welcome(int sock, struct err *e)
{
    bool busy = false;
    struct packet p;
    for (;;) {
        ssize_t n = receive(sock, &p, e);
        if (n == -EAGAIN && wait_for(sock, POLLIN) == 0)
            continue;
        if (n < 0)
            return (int)n;
        if (p.head.type == ATTACH_WELCOME)
            return 0;
        if (p.head.type == ATTACH_BUSY)
            busy = true;
        if (p.head.type == ATTACH_ERROR)
            return err_set(e, busy ? -EAGAIN : -EPROTO, "%.*s", (int)n, p.body);
    }
}

int step_start(const char *path, const struct step_ask *ask, int *ret_sock, struct err *e)
{
    auto_close int sock = -1;
    int r = attach_open(path, SOCKET_US, &sock, e);
    if (r == 0)
        r = say_all(sock, ask, e);
    if (r == 0)
        r = await_welcome(sock, e);
    if (r == 0)
        *ret_sock = take_fd(sock);
    return r;
}

int step_take(int sock, struct job_exit *ret, struct err *e)
{
    struct packet p;
    ssize_t n = receive(sock, &p, e);
    if (n == -EAGAIN)
        return 0;
    if (n < 0)
        return (int)n;
    if (p.head.type != ATTACH_EXIT)
        return 0;
    int r = packet_read_end(p.body, (size_t)n, ret, e);
    return r < 0 ? r : 1;
}

void step_signal(int sock, int signal)
{
    struct attach_signal asked = { .signal = (uint32_t)signal };
    (void)packet_send(sock, ATTACH_SIGNAL, &asked, sizeof asked, NULL); /* gone: seen soon */
}

pid_t step_supervisor(int sock)
{
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof peer;
    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ? 0 : peer.pid;
}
