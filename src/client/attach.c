#include "client/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "client/packet.h"

#define RETRY_FIRST_NS 200000 /* a supervisor needs about a millisecond to be there */
#define RETRY_NS 5000000
#define INPUT_BYTES 4096
#define INTERRUPTS_TO_LEAVE 3

/* A command to run inside the job. */
struct entry {
    unsigned task;
    const char *term;
    char *const *argv;
};

struct relay {
    int sock, signals;
    bool pty, raw;
    struct termios saved; /* while raw */
    sigset_t saved_mask;
    char input[INPUT_BYTES]; /* read from the terminal and not yet taken */
    size_t input_len;
    bool input_over;
    int64_t interrupted_us[INTERRUPTS_TO_LEAVE]; /* when SIGINT came, the last ones */
};

/* ---- connecting --------------------------------------------------------- */

/* Through the folder's descriptor, since a socket's path may have 107 bytes only. */
static int connect_at(int sock, const char *path)
{
    struct sockaddr_un a = { .sun_family = AF_UNIX };
    const char *slash = strrchr(path, '/');
    if (!slash)
        return -EINVAL;
    auto_free char *folder = text_fmt("%.*s", (int)(slash - path) + 1, path);
    auto_close int dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    auto_free char *at = text_fmt("/proc/self/fd/%d%s", dir, slash);
    if (strlen(at) >= sizeof a.sun_path)
        return -ENAMETOOLONG;
    memcpy(a.sun_path, at, strlen(at) + 1);
    return connect(sock, (struct sockaddr *)&a, sizeof a) < 0 ? -errno : 0;
}

int attach_open(const char *path, int64_t wait_us, int *ret_sock, struct err *e)
{
    int64_t until_us = clock_now().boot_us + wait_us;
    long pause_ns = RETRY_FIRST_NS;
    auto_close int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return err_sys(e, "cannot make a socket");
    for (;;) {
        int r = connect_at(sock, path);
        if (r == 0)
            break;
        if (r != -ENOENT && r != -ECONNREFUSED)
            return err_set(e, r, "cannot attach to the job at %s: %s", path, strerror(-r));
        if (clock_now().boot_us >= until_us)
            return err_set(e, -ENOENT, "nobody answers for the job at %s", path);
        (void)nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL); /* short is fine */
        pause_ns = pause_ns + pause_ns / 4 < RETRY_NS ? pause_ns + pause_ns / 4 : RETRY_NS;
    }
    if (fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
        return err_sys(e, "cannot set up the socket");
    *ret_sock = take_fd(sock);
    return 0;
}

/* ---- the terminal and the signals --------------------------------------- */

static int open_signals(struct relay *r, struct err *e)
{
    static const int relayed[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH };
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof relayed / sizeof *relayed; i++)
        sigaddset(&set, relayed[i]);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signals < 0)
        return err_sys(e, "cannot make a signal descriptor");
    return sigprocmask(SIG_BLOCK, &set, &r->saved_mask) < 0 ? err_sys(e, "cannot block signals")
                                                            : 0;
}

static int make_raw(struct relay *r, struct err *e)
{
    if (tcgetattr(STDIN_FILENO, &r->saved) < 0)
        return err_sys(e, "standard input is no terminal");
    struct termios raw = r->saved;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
        return err_sys(e, "cannot set the terminal");
    r->raw = true;
    return 0;
}

static void relay_done(struct relay *r)
{
    if (r->raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &r->saved); /* it may be gone */
    if (r->signals < 0)
        return;
    (void)close(r->signals);
    (void)sigprocmask(SIG_SETMASK, &r->saved_mask, NULL);
}

/* ---- packets ------------------------------------------------------------ */

static struct winsize window_size(void)
{
    struct winsize size = { .ws_row = 0 };
    (void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size); /* zero: not known */
    return size;
}

static const int standard[3] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };

static int say(const struct relay *r, enum attach_type type, const void *body, size_t len,
               struct err *e)
{
    int code = packet_send(r->sock, type, body, len, r->pty ? NULL : standard);
    /* A supervisor that refused has closed already; its reason is still to be read. */
    return code < 0 && code != -EPIPE ? err_set(e, code, "cannot attach: %s", strerror(-code)) : 0;
}

static int say_hello(const struct relay *r, struct err *e)
{
    struct winsize size = r->pty ? window_size() : (struct winsize){ .ws_row = 0 };
    struct attach_hello hello = { .version = ATTACH_VERSION,
                                  .flags = r->pty ? ATTACH_PTY : 0,
                                  .rows = size.ws_row,
                                  .columns = size.ws_col };
    return say(r, ATTACH_HELLO, &hello, sizeof hello, e);
}

static int say_enter(const struct relay *r, const struct entry *entry, struct err *e)
{
    struct winsize size = r->pty ? window_size() : (struct winsize){ .ws_row = 0 };
    struct attach_enter enter = { .version = ATTACH_VERSION,
                                  .flags = r->pty ? ATTACH_PTY : 0,
                                  .rows = size.ws_row,
                                  .columns = size.ws_col,
                                  .task = entry->task };
    AUTO(text) struct text body = TEXT_INIT;
    text_addn(&body, (const char *)&enter, sizeof enter);
    text_add(&body, entry->term ? entry->term : "");
    text_addn(&body, "", 1);
    for (size_t i = 0; entry->argv[i]; i++)
        text_addn(&body, entry->argv[i], strlen(entry->argv[i]) + 1);
    if (body.len > ATTACH_BODY_MAX)
        return err_set(e, -E2BIG, "the command is too long: %d bytes can be taken into a job",
                       ATTACH_BODY_MAX);
    return say(r, ATTACH_ENTER, body.buf, body.len, e);
}

static void send_window(const struct relay *r)
{
    struct winsize size = window_size();
    struct attach_window window = { .rows = size.ws_row, .columns = size.ws_col };
    (void)packet_send(r->sock, ATTACH_WINDOW, &window, sizeof window,
                      NULL); /* the next one tells */
}

/* ---- turns -------------------------------------------------------------- */

static bool wants_to_leave(struct relay *r)
{
    int64_t now_us = clock_now().boot_us;
    memmove(r->interrupted_us, r->interrupted_us + 1,
            (INTERRUPTS_TO_LEAVE - 1) * sizeof *r->interrupted_us);
    r->interrupted_us[INTERRUPTS_TO_LEAVE - 1] = now_us;
    return r->interrupted_us[0] > 0 && now_us - r->interrupted_us[0] < CLOCK_SECOND;
}

static int take_signals(struct relay *r, struct err *e)
{
    struct signalfd_siginfo info;
    while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGWINCH) {
            if (r->pty)
                send_window(r);
            continue;
        }
        struct attach_signal asked = { .signal = info.ssi_signo };
        (void)packet_send(r->sock, ATTACH_SIGNAL, &asked, sizeof asked, NULL); /* gone: seen soon */
        if (info.ssi_signo == SIGINT && wants_to_leave(r))
            return err_set(e, -EINTR, "interrupted three times; the job is hung up");
    }
    return 0;
}

static void take_input(struct relay *r)
{
    ssize_t n = read(STDIN_FILENO, r->input, sizeof r->input);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        r->input_over = true;
        (void)packet_send(r->sock, ATTACH_END_OF_INPUT, NULL, 0, NULL); /* as good as typing ^D */
        return;
    }
    r->input_len = (size_t)n;
}

static void give_input(struct relay *r)
{
    int code = packet_send(r->sock, ATTACH_DATA, r->input, r->input_len, NULL);
    if (code != -EAGAIN && code != -EINTR)
        r->input_len = 0; /* taken, or nobody is there to take it: seen soon */
}

/* 1: the job has ended and `ret` is filled; 0: go on. */
static int take_packet(struct relay *r, struct job_exit *ret, struct err *e)
{
    struct packet p;
    ssize_t n = recv(r->sock, &p, sizeof p, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return err_set(e, -EPIPE, "the job's supervisor went away without telling how it ended");
    if (n < (ssize_t)sizeof p.head)
        return err_set(e, -EPROTO, "the job's supervisor sent what this version cannot read");
    size_t len = (size_t)n - sizeof p.head;
    if (p.head.type == ATTACH_DATA) /* output that nobody reads is no reason to end the job */
        (void)file_write_all(STDOUT_FILENO, p.body, len, NULL);
    if (p.head.type == ATTACH_ERROR)
        return err_set(e, -EPROTO, "%.*s", (int)len, p.body);
    if (p.head.type != ATTACH_EXIT)
        return 0;
    int code = packet_read_end(p.body, len, ret, e);
    return code < 0 ? code : 1;
}

static int turn(struct relay *r, struct job_exit *ret, struct err *e)
{
    bool reads = r->pty && !r->input_over && r->input_len == 0;
    struct pollfd fds[3] = { { .fd = r->sock,
                               .events = (short)(POLLIN | (r->input_len ? POLLOUT : 0)) },
                             { .fd = r->signals, .events = POLLIN },
                             { .fd = reads ? STDIN_FILENO : -1, .events = POLLIN } };
    if (poll(fds, 3, -1) < 0)
        return errno == EINTR ? 0 : err_sys(e, "cannot wait for the job");
    int code = fds[1].revents ? take_signals(r, e) : 0;
    if (code == 0 && fds[2].revents)
        take_input(r);
    if (code == 0 && r->input_len > 0)
        give_input(r);
    if (code == 0 && (fds[0].revents & ~POLLOUT))
        code = take_packet(r, ret, e);
    return code;
}

static int relay(int sock, bool pty, const struct entry *entry, struct job_exit *ret, struct err *e)
{
    AUTO(relay) struct relay r = { .sock = sock, .signals = -1, .pty = pty };
    int code = open_signals(&r, e);
    if (code == 0 && pty)
        code = make_raw(&r, e);
    if (code == 0)
        code = entry ? say_enter(&r, entry, e) : say_hello(&r, e);
    while (code == 0)
        code = turn(&r, ret, e);
    return code < 0 ? code : 0;
}

int attach_relay(int sock, bool pty, struct job_exit *ret, struct err *e)
{
    return relay(sock, pty, NULL, ret, e);
}

int attach_enter(int sock, bool pty, unsigned task, const char *term, char *const *argv,
                 struct job_exit *ret, struct err *e)
{
    struct entry entry = { .task = task, .term = term, .argv = argv };
    return relay(sock, pty, &entry, ret, e);
}
