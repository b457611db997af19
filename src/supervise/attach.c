#include "supervise/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "model/job_json.h"

#define RELAY_BYTES 8192
#define DRAIN_MS 1000
#define END_OF_FILE 4 /* what a terminal takes for the end of input: ^D */

struct packet {
    struct attach_head head;
    char body[ATTACH_BODY_MAX];
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(take_fd_from(fd)); /* sockets and terminals: nothing to lose */
}

/* Under a name that nobody knows, until it is the user's and listens. */
static int bind_hidden(int sock, int dir, const char *hidden, const char *path, struct err *e)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    /* Through the folder's descriptor, since a socket's path may have 107 bytes only. */
    auto_free char *at = text_fmt("/proc/self/fd/%d/%s", dir, hidden);
    if (strlen(at) >= sizeof a.sun_path)
        return err_set(e, -ENAMETOOLONG, "the name of the attach socket %s is too long", path);
    memcpy(a.sun_path, at, strlen(at) + 1);
    (void)unlinkat(dir, hidden, 0); /* of a supervisor that died before it started anything */
    mode_t mask = umask(0177);
    int r = bind(sock, (struct sockaddr *)&a, sizeof a);
    (void)umask(mask);
    return r < 0 ? err_sys(e, "cannot make the attach socket %s", path) : 0;
}

static int open_listener(struct attach *a, gid_t gid, struct err *e)
{
    const char *slash = strrchr(a->path, '/');
    if (!slash || slash == a->path)
        return err_set(e, -EINVAL, "the attach socket %s is no absolute path", a->path);
    auto_free char *folder = text_fmt("%.*s", (int)(slash - a->path), a->path);
    auto_free char *hidden = text_fmt(".%s", slash + 1);
    auto_close int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open %s", folder);
    a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->listener < 0)
        return err_sys(e, "cannot make the attach socket");
    int r = bind_hidden(a->listener, dir, hidden, a->path, e);
    if (r < 0)
        return r;
    if (geteuid() == 0 && fchownat(dir, hidden, a->uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(e, "cannot give %s to its user", a->path);
    if (listen(a->listener, 4) < 0 || renameat(dir, hidden, dir, slash + 1) < 0)
        return err_sys(e, "cannot listen on %s", a->path);
    return 0;
}

static int open_terminal(struct attach *a, gid_t gid, struct err *e)
{
    char name[128];
    a->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (a->master < 0 || grantpt(a->master) < 0 || unlockpt(a->master) < 0 ||
        ptsname_r(a->master, name, sizeof name) != 0)
        return err_sys(e, "cannot make a terminal");
    a->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (a->slave < 0)
        return err_sys(e, "cannot open the terminal %s", name);
    if (geteuid() == 0 && fchown(a->slave, a->uid, gid) < 0)
        return err_sys(e, "cannot give the terminal to its user");
    return 0;
}

int attach_listen(struct attach *a, const char *path, uid_t uid, gid_t gid, bool pty, struct err *e)
{
    *a = (struct attach)ATTACH_INIT;
    a->path = text_dup(path);
    a->uid = uid;
    a->pty = pty;
    a->to_pty = mem_new(ATTACH_BODY_MAX);
    a->to_client = mem_new(RELAY_BYTES);
    int r = open_listener(a, gid, e);
    if (r == 0 && pty)
        r = open_terminal(a, gid, e);
    if (r < 0)
        attach_done(a);
    return r;
}

void attach_fds(const struct attach *a, struct pollfd ret[ATTACH_FDS])
{
    ret[0] = (struct pollfd){ .fd = a->listener, .events = POLLIN };
    ret[1] = (struct pollfd){ .fd = a->client };
    ret[2] = (struct pollfd){ .fd = a->master };
    if (a->to_pty_len == 0)
        ret[1].events |= POLLIN;
    else
        ret[2].events |= POLLOUT;
    if (a->to_client_len > 0)
        ret[1].events |= POLLOUT;
    else if (a->slave < 0) /* before the tasks have it there is nothing, and after only HUP */
        ret[2].events |= POLLIN;
    if (!ret[2].events)
        ret[2].fd = -1; /* or a terminal that hung up wakes us for ever */
}

static int send_packet(int sock, enum attach_type type, const void *body, size_t len)
{
    struct attach_head head = { .type = type };
    struct iovec iov[2] = { { .iov_base = &head, .iov_len = sizeof head },
                            { .iov_base = (void *)(uintptr_t)body, .iov_len = len } };
    struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
    return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What it said unheard is taken first: else closing resets, and it never reads why. */
static void refuse(int sock, const char *text)
{
    char bytes[64];
    (void)send_packet(sock, ATTACH_ERROR, text, strlen(text)); /* it may have gone */
    (void)shutdown(sock, SHUT_RD);
    while (recv(sock, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    (void)close(sock);
}

static void accept_client(struct attach *a)
{
    int sock = accept4(a->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct ucred peer = { .uid = (uid_t)-1 };
    socklen_t len = sizeof peer;
    if (sock < 0)
        return; /* gone again */
    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
        (peer.uid != a->uid && peer.uid != 0)) {
        refuse(sock, "this job belongs to another user");
        return;
    }
    if (a->client >= 0) {
        refuse(sock, "another client is attached to this job");
        return;
    }
    a->client = sock;
    a->greeted = false;
}

static void close_streams(struct attach *a)
{
    for (int i = 0; i < 3; i++)
        close_fd(&a->streams[i]);
}

/* Takes passed descriptors; more than three, or at a time when none are due, are closed. */
static void take_descriptors(struct attach *a, struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fds[8];
        memcpy(fds, CMSG_DATA(c), count * sizeof(int));
        for (size_t i = 0; i < count; i++) {
            if (i < 3 && a->streams[i] < 0 && !a->greeted)
                a->streams[i] = fds[i];
            else
                (void)close(fds[i]); /* not asked for */
        }
    }
}

static void set_window(struct attach *a, uint32_t rows, uint32_t columns)
{
    struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };
    if (a->master >= 0 && rows > 0 && columns > 0 && rows <= UINT16_MAX && columns <= UINT16_MAX)
        (void)ioctl(a->master, TIOCSWINSZ, &size); /* a wrong size is no reason to end a job */
}

static enum attach_event drop_client(struct attach *a)
{
    bool had = a->greeted;
    close_fd(&a->client);
    a->greeted = false;
    a->to_client_len = 0;
    if (!had)
        close_streams(a);
    return had ? ATTACH_LOST : ATTACH_NOTHING;
}

static enum attach_event greet(struct attach *a, const struct attach_hello *hello)
{
    const char *fault = NULL;
    if (hello->version != ATTACH_VERSION)
        fault = "this job speaks another version of the attach protocol; use the divvy that "
                "belongs to its daemon";
    else if (!(hello->flags & ATTACH_PTY) != !a->pty)
        fault = a->pty ? "this job has a terminal; attach from one" : "this job has no terminal";
    else if (!a->pty && (a->streams[0] < 0 || a->streams[1] < 0 || a->streams[2] < 0))
        fault = "the three standard streams did not come along";
    if (fault) {
        refuse(take_fd(a->client), fault);
        close_streams(a);
        return ATTACH_NOTHING;
    }
    struct attach_welcome welcome = { .version = ATTACH_VERSION };
    set_window(a, hello->rows, hello->columns);
    a->greeted = true;
    if (send_packet(a->client, ATTACH_WELCOME, &welcome, sizeof welcome) < 0)
        return drop_client(a);
    return ATTACH_CAME;
}

static enum attach_event handle(struct attach *a, const struct packet *p, size_t len)
{
    const void *body = p->body;
    if (!a->greeted) {
        if (p->head.type == ATTACH_HELLO && len >= sizeof(struct attach_hello))
            return greet(a, body);
        return drop_client(a);
    }
    if (p->head.type == ATTACH_DATA && a->master >= 0) {
        memcpy(a->to_pty, p->body, len);
        a->to_pty_len = len;
    } else if (p->head.type == ATTACH_END_OF_INPUT && a->master >= 0) {
        a->to_pty[0] = END_OF_FILE;
        a->to_pty_len = 1;
    } else if (p->head.type == ATTACH_WINDOW && len >= sizeof(struct attach_window)) {
        const struct attach_window *window = body;
        set_window(a, window->rows, window->columns);
    } else if (p->head.type == ATTACH_SIGNAL && len >= sizeof(struct attach_signal)) {
        const struct attach_signal *asked = body;
        if (asked->signal >= 1 && asked->signal < (uint32_t)SIGRTMIN) {
            a->signal = (int)asked->signal;
            return ATTACH_ASKED;
        }
    }
    return ATTACH_NOTHING;
}

static enum attach_event read_client(struct attach *a)
{
    struct packet p;
    struct iovec iov = { .iov_base = &p, .iov_len = sizeof p };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t n = recvmsg(a->client, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return ATTACH_NOTHING;
    if (n > 0)
        take_descriptors(a, &msg);
    if (n < (ssize_t)sizeof p.head || (msg.msg_flags & MSG_TRUNC))
        return drop_client(a);
    return handle(a, &p, (size_t)n - sizeof p.head);
}

static void write_master(struct attach *a)
{
    ssize_t n = write(a->master, a->to_pty, a->to_pty_len);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0)
        n = (ssize_t)a->to_pty_len; /* nobody reads any more */
    a->to_pty_len -= (size_t)n;
    memmove(a->to_pty, a->to_pty + n, a->to_pty_len);
}

/* False when nothing came. Without a client what the job says is read and forgotten. */
static bool read_master(struct attach *a)
{
    ssize_t n = read(a->master, a->to_client, RELAY_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close_fd(&a->master); /* every task has closed its end */
        return false;
    }
    a->to_client_len = a->client >= 0 && a->greeted ? (size_t)n : 0;
    return true;
}

static enum attach_event write_client(struct attach *a)
{
    int r = send_packet(a->client, ATTACH_DATA, a->to_client, a->to_client_len);
    if (r == -EAGAIN || r == -EINTR || r == -ENOBUFS)
        return ATTACH_NOTHING;
    a->to_client_len = 0;
    return r < 0 ? drop_client(a) : ATTACH_NOTHING;
}

enum attach_event attach_ready(struct attach *a, const struct pollfd fds[ATTACH_FDS])
{
    if (fds[2].fd >= 0 && fds[2].fd == a->master) {
        if (fds[2].revents & POLLOUT)
            write_master(a);
        if (a->to_client_len == 0 && (fds[2].revents & (POLLIN | POLLHUP | POLLERR)))
            (void)read_master(a); /* told by to_client_len */
    }
    enum attach_event ev = ATTACH_NOTHING;
    if (fds[1].fd >= 0 && fds[1].fd == a->client) {
        if (a->to_client_len > 0)
            ev = write_client(a);
        if (ev == ATTACH_NOTHING && (fds[1].revents & (POLLIN | POLLHUP | POLLERR)))
            ev = read_client(a);
    }
    if (fds[0].fd >= 0 && (fds[0].revents & POLLIN))
        accept_client(a);
    return ev;
}

void attach_streams(const struct attach *a, int ret[3])
{
    for (int i = 0; i < 3; i++)
        ret[i] = a->pty ? a->slave : a->streams[i];
}

void attach_handed(struct attach *a)
{
    close_fd(&a->slave);
    close_streams(a);
}

static bool wait_writable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    return poll(&p, 1, DRAIN_MS) > 0 && (p.revents & POLLOUT);
}

static bool send_all_now(struct attach *a)
{
    while (a->client >= 0 && a->to_client_len > 0) {
        if (!wait_writable(a->client))
            return false;
        (void)write_client(a); /* a client that is lost now misses only the end */
    }
    return a->client >= 0;
}

void attach_end(struct attach *a, const struct job_exit *x)
{
    close_fd(&a->slave);
    bool there = send_all_now(a);
    while (there && a->master >= 0 && read_master(a))
        there = send_all_now(a);
    if (there && a->greeted && wait_writable(a->client)) {
        auto_json json_t *j = exit_to_json(x);
        auto_free char *text = json_dumps(j, JSON_COMPACT);
        if (text)
            (void)send_packet(a->client, ATTACH_EXIT, text, strlen(text)); /* last word */
    }
    attach_done(a);
}

void attach_done(struct attach *a)
{
    close_fd(&a->client);
    close_fd(&a->master);
    close_fd(&a->slave);
    close_streams(a);
    if (a->listener >= 0 && a->path)
        (void)unlink(a->path); /* the daemon clears what stays */
    close_fd(&a->listener);
    free(a->path);
    free(a->to_pty);
    free(a->to_client);
    *a = (struct attach)ATTACH_INIT;
}
