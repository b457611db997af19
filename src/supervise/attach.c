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
enum { FD_LISTENER, FD_GUEST, FD_CLIENT, FD_MASTER };

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

static void init(struct attach *a, uid_t uid, bool pty)
{
    *a = (struct attach)ATTACH_INIT;
    a->uid = uid;
    a->pty = pty;
    if (!pty)
        return; /* nothing is relayed */
    a->to_pty = mem_new(ATTACH_BODY_MAX);
    a->to_client = mem_new(RELAY_BYTES);
}

int attach_listen(struct attach *a, const char *path, uid_t uid, gid_t gid, bool pty, struct err *e)
{
    init(a, uid, pty);
    a->path = text_dup(path);
    int r = open_listener(a, gid, e);
    if (r == 0 && pty)
        r = open_terminal(a, gid, e);
    if (r < 0)
        attach_done(a);
    return r;
}

void attach_fds(const struct attach *a, struct pollfd ret[ATTACH_FDS])
{
    struct pollfd *client = &ret[FD_CLIENT];
    struct pollfd *master = &ret[FD_MASTER];
    ret[FD_LISTENER] = (struct pollfd){ .fd = a->listener, .events = POLLIN };
    ret[FD_GUEST] = (struct pollfd){ .fd = a->guest, .events = POLLIN };
    *client = (struct pollfd){ .fd = a->client };
    *master = (struct pollfd){ .fd = a->master };
    if (a->to_pty_len == 0)
        client->events |= POLLIN;
    else
        master->events |= POLLOUT;
    if (a->to_client_len > 0)
        client->events |= POLLOUT;
    else if (a->slave < 0) /* before the tasks have it there is nothing, and after only HUP */
        master->events |= POLLIN;
    if (!master->events)
        master->fd = -1; /* or a terminal that hung up wakes us for ever */
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
static void refuse(int sock, bool later, const char *text)
{
    char bytes[64];
    if (later)
        (void)send_packet(sock, ATTACH_BUSY, NULL, 0);         /* it may have gone */
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
        refuse(sock, false, "this job belongs to another user");
        return;
    }
    if (a->guest >= 0) {
        refuse(sock, true, "another client is just attaching to this job; try again");
        return;
    }
    a->guest = sock;
    a->guest_pid = peer.pid;
    a->asked_len = 0;
}

static void close_streams(int streams[3])
{
    for (int i = 0; i < 3; i++)
        close_fd(&streams[i]);
}

/* Takes passed descriptors; more than three, or (NULL) at a time when none are due, are closed. */
static void take_descriptors(int streams[3], struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fds[8];
        memcpy(fds, CMSG_DATA(c), count * sizeof(int));
        for (size_t i = 0; i < count; i++) {
            if (i < 3 && streams && streams[i] < 0)
                streams[i] = fds[i];
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
    close_fd(&a->client);
    a->to_client_len = 0;
    return ATTACH_LOST;
}

static enum attach_event drop_guest(struct attach *a)
{
    close_fd(&a->guest);
    close_streams(a->guest_streams);
    return ATTACH_NOTHING;
}

static enum attach_event refuse_guest(struct attach *a, const char *why)
{
    refuse(take_fd_from(&a->guest), false, why);
    return drop_guest(a);
}

static bool three(const int streams[3])
{
    return streams[0] >= 0 && streams[1] >= 0 && streams[2] >= 0;
}

static const char other_version[] =
    "this job speaks another version of the attach protocol; use the divvy that "
    "belongs to its daemon";
static const char no_streams[] = "the three standard streams did not come along";

static const char *why_no_client(const struct attach *a, const struct attach_hello *hello)
{
    if (hello->version != ATTACH_VERSION)
        return other_version;
    if (a->no_client)
        return "this job writes to a file; divvy logs shows it, divvy attach enters the job";
    if (a->client >= 0)
        return "another client is attached to this job";
    if (!(hello->flags & ATTACH_PTY) != !a->pty)
        return a->pty ? "this job has a terminal; attach from one" : "this job has no terminal";
    return a->pty || three(a->guest_streams) ? NULL : no_streams;
}

static int welcome(int sock)
{
    struct attach_welcome body = { .version = ATTACH_VERSION };
    return send_packet(sock, ATTACH_WELCOME, &body, sizeof body);
}

static enum attach_event greet(struct attach *a, const struct attach_hello *hello)
{
    const char *fault = why_no_client(a, hello);
    if (fault)
        return refuse_guest(a, fault);
    set_window(a, hello->rows, hello->columns);
    a->client = take_fd_from(&a->guest);
    for (int i = 0; i < 3; i++) {
        close_fd(&a->streams[i]);
        a->streams[i] = take_fd_from(&a->guest_streams[i]);
    }
    return welcome(a->client) < 0 ? drop_client(a) : ATTACH_CAME;
}

/* -E2BIG: more than anything that can be run. */
static int add_asked(struct attach *a, const char *bytes, size_t len)
{
    if (len > ATTACH_ASKED_MAX - a->asked_len)
        return -E2BIG;
    ARRAY_ROOM(a->asked, a->asked_alloc, a->asked_len + len + 1);
    memcpy(a->asked + a->asked_len, bytes, len);
    a->asked_len += len;
    a->asked[a->asked_len] = '\0'; /* the last string may lack its NUL */
    return 0;
}

static const char too_much[] = "the command and its environment are too long";

static enum attach_event enter(struct attach *a, const char *body, size_t len)
{
    memcpy(&a->enter, body, sizeof a->enter);
    if (a->enter.version != ATTACH_VERSION)
        return refuse_guest(a, other_version);
    if (!(a->enter.flags & ATTACH_PTY) && !three(a->guest_streams))
        return refuse_guest(a, no_streams);
    if (add_asked(a, body + sizeof a->enter, len - sizeof a->enter) < 0)
        return refuse_guest(a, too_much);
    return ATTACH_VISIT;
}

static enum attach_event handle_guest(struct attach *a, const struct packet *p, size_t len)
{
    if (p->head.type == ATTACH_HELLO && len >= sizeof(struct attach_hello)) {
        struct attach_hello hello;
        memcpy(&hello, p->body, sizeof hello);
        return greet(a, &hello);
    }
    if (p->head.type == ATTACH_MORE)
        return add_asked(a, p->body, len) < 0 ? refuse_guest(a, too_much) : ATTACH_NOTHING;
    if (p->head.type == ATTACH_ENTER && len >= sizeof a->enter)
        return enter(a, p->body, len);
    return drop_guest(a);
}

static enum attach_event handle(struct attach *a, const struct packet *p, size_t len)
{
    const void *body = p->body;
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

/* Length of the body; -EAGAIN: nothing came; -EPIPE: it left, or said nonsense. */
static ssize_t receive(int sock, struct packet *p, int streams[3])
{
    struct iovec iov = { .iov_base = p, .iov_len = sizeof *p };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return -EAGAIN;
    if (n > 0)
        take_descriptors(streams, &msg);
    if (n < (ssize_t)sizeof p->head || (msg.msg_flags & MSG_TRUNC))
        return -EPIPE;
    return n - (ssize_t)sizeof p->head;
}

static enum attach_event read_guest(struct attach *a)
{
    struct packet p;
    ssize_t n = receive(a->guest, &p, a->guest_streams);
    if (n == -EAGAIN)
        return ATTACH_NOTHING;
    return n < 0 ? drop_guest(a) : handle_guest(a, &p, (size_t)n);
}

static enum attach_event read_client(struct attach *a)
{
    struct packet p;
    ssize_t n = receive(a->client, &p, NULL);
    if (n == -EAGAIN)
        return ATTACH_NOTHING;
    return n < 0 ? drop_client(a) : handle(a, &p, (size_t)n);
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
    a->to_client_len = a->client >= 0 ? (size_t)n : 0;
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
    const short come = POLLIN | POLLHUP | POLLERR;
    if (fds[FD_MASTER].fd >= 0 && fds[FD_MASTER].fd == a->master) {
        if (fds[FD_MASTER].revents & POLLOUT)
            write_master(a);
        if (a->to_client_len == 0 && (fds[FD_MASTER].revents & come))
            (void)read_master(a); /* told by to_client_len */
    }
    enum attach_event ev = ATTACH_NOTHING;
    if (fds[FD_CLIENT].fd >= 0 && fds[FD_CLIENT].fd == a->client) {
        if (a->to_client_len > 0)
            ev = write_client(a);
        if (ev == ATTACH_NOTHING && (fds[FD_CLIENT].revents & come))
            ev = read_client(a);
    }
    if (fds[FD_LISTENER].fd >= 0 && (fds[FD_LISTENER].revents & POLLIN))
        accept_client(a);
    else if (ev == ATTACH_NOTHING && fds[FD_GUEST].fd >= 0 && (fds[FD_GUEST].revents & come))
        ev = read_guest(a);
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
    close_streams(a->streams);
}

/* The next string, or "" behind the last one. */
static const char *next_string(const char **p, const char *end)
{
    const char *found = *p;
    if (found >= end)
        return "";
    *p += strlen(found) + 1;
    return found;
}

static void read_step(const char *p, const char *end, struct attach_visit *ret)
{
    uint64_t count = 0;
    ret->step = true;
    ret->cwd = text_dup(next_string(&p, end));
    (void)text_parse_u64(next_string(&p, end), 1, JOB_ARGS_MAX, "arguments", &count,
                         NULL); /* 0: none, seen by who called */
    for (; count && p < end; count--)
        strv_add(&ret->argv, next_string(&p, end));
    while (p < end)
        strv_add(&ret->env, next_string(&p, end));
}

/* Strings with a NUL each: TERM, then the arguments, or what makes a step. */
static int read_visit(const struct attach *from, unsigned tasks, struct attach_visit *ret)
{
    const char *p = from->asked ? from->asked : "";
    const char *end = p + from->asked_len;
    const char *term = next_string(&p, end);
    *ret = (struct attach_visit){ .task = from->enter.task,
                                  .alone = from->enter.flags & ATTACH_ALONE,
                                  .goes_on = from->enter.flags & ATTACH_STEP_GOES_ON,
                                  .pid = from->guest_pid };
    if (*term)
        ret->term = text_dup(term);
    if (from->enter.flags & ATTACH_STEP)
        read_step(p, end, ret);
    while (!ret->step && p < end)
        strv_add(&ret->argv, next_string(&p, end));
    return ret->argv && ret->task < tasks ? 0 : -EINVAL;
}

void attach_visit_done(struct attach_visit *v)
{
    free(v->term);
    free(v->cwd);
    strv_free(v->argv);
    strv_free(v->env);
}

int attach_take_visit(struct attach *from, gid_t gid, unsigned tasks, struct attach *ret,
                      struct attach_visit *ret_visit)
{
    struct err e = ERR_INIT;
    bool pty = from->enter.flags & ATTACH_PTY;
    init(ret, from->uid, pty);
    ret->client = take_fd_from(&from->guest);
    for (int i = 0; i < 3; i++)
        ret->streams[i] = take_fd_from(&from->guest_streams[i]);
    int r = read_visit(from, tasks, ret_visit);
    if (r < 0)
        err_set(&e, r, "there is no command, or the job has no task %u", from->enter.task);
    else if (pty)
        r = open_terminal(ret, gid, &e);
    if (r == 0) {
        set_window(ret, from->enter.rows, from->enter.columns);
        return 0;
    }
    attach_visit_done(ret_visit);
    attach_refuse(ret, e.text);
    return r;
}

int attach_welcome(struct attach *visitor)
{
    return welcome(visitor->client);
}

void attach_refuse_guest(struct attach *a, const char *why)
{
    (void)refuse_guest(a, why); /* nothing comes of it */
}

void attach_refuse(struct attach *visitor, const char *why)
{
    refuse(take_fd_from(&visitor->client), false, why);
    attach_done(visitor);
}

void attach_refuse_now(struct attach *visitor, const char *why)
{
    refuse(take_fd_from(&visitor->client), true, why);
    attach_done(visitor);
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
    if (there && wait_writable(a->client)) {
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
    close_fd(&a->guest);
    close_streams(a->streams);
    close_streams(a->guest_streams);
    free(a->asked);
    if (a->listener >= 0 && a->path)
        (void)unlink(a->path); /* the daemon clears what stays */
    close_fd(&a->listener);
    free(a->path);
    free(a->to_pty);
    free(a->to_client);
    *a = (struct attach)ATTACH_INIT;
}
