#include "supervise/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/cleanup.h"

enum {
    FD_SIGNALS,
    FD_TIMER,
    FD_TREE,
    FD_OOM,
    FD_ATTACH,
    FD_VISITS = FD_ATTACH + ATTACH_FDS,
    FD_COUNT = FD_VISITS + VISITS_FDS
};

#define LOOK_MS 1000 /* so often for `stop`, where the kernel does not tell (no CONFIG_DNOTIFY) */

void loop_signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGCHLD);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGIO);
}

static int open_signals(struct err *e)
{
    sigset_t set;
    loop_signals(&set);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? err_sys(e, "cannot make a signal descriptor") : fd;
}

/*
 * SIGIO for every change. Not inotify: a user has 128 of its instances
 * (fs.inotify.max_user_instances), all supervisors are root, and the 129th job
 * could not start.
 */
static bool watch_folder(int dir)
{
    return fcntl(dir, F_SETOWN, getpid()) == 0 &&
           fcntl(dir, F_NOTIFY, DN_CREATE | DN_RENAME | DN_MULTISHOT) == 0;
}

int loop_open(struct loop *l, int dir, struct err *e)
{
    l->signals = open_signals(e);
    if (l->signals < 0)
        return -EMFILE;
    l->watched = watch_folder(dir);
    l->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return l->timer < 0 ? err_sys(e, "cannot make a timer") : 0;
}

void loop_done(struct loop *l)
{
    const int fds[] = { l->signals, l->timer };
    for (size_t i = 0; i < 2; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]); /* nothing was written to them */
    *l = (struct loop)LOOP_INIT;
}

static void arm(const struct loop *l, int64_t at_us)
{
    struct itimerspec t = { .it_value = { .tv_sec = at_us / CLOCK_SECOND,
                                          .tv_nsec = at_us % CLOCK_SECOND * 1000 } };
    (void)timerfd_settime(l->timer, TFD_TIMER_ABSTIME, &t,
                          NULL); /* 0 disarms; the values are ours */
}

static void drain(int fd)
{
    char bytes[4096];
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
}

static void look_for_stop(struct attempt *a)
{
    struct jobdir_notice notice;
    enum jobdir_stop why = jobdir_read_stop(a->dir, &notice);
    if (why != JOBDIR_STOP_NONE)
        attempt_stop(a, why, &notice);
}

static void take_signals(struct attempt *a, int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo == SIGIO)
            look_for_stop(a);
        else if (info.ssi_signo != SIGCHLD)
            attempt_begin_end(a, JOBDIR_STOP_OUTSIDE, SIGTERM);
    attempt_reap(a);
}

/* Only to the tasks' own process groups, as a terminal would. */
static void pass_signal(const struct attempt *a)
{
    for (size_t i = 0; i < a->spec->task_count && a->stage >= STAGE_RUNNING; i++)
        if (a->tasks[i].running)
            (void)kill(-a->tasks[i].process.pid, a->attach.signal); /* it may have ended */
}

static void take_attach(struct attempt *a, const struct pollfd *fds)
{
    enum attach_event ev = attach_ready(&a->attach, fds);
    if (ev == ATTACH_CAME && a->stage == STAGE_HELD)
        attempt_release(a);
    else if (ev == ATTACH_CAME)
        attach_handed(&a->attach); /* somebody who came later sees a terminal, not new streams */
    else if (ev == ATTACH_VISIT)
        attempt_visit(a);
    else if (ev == ATTACH_ASKED)
        pass_signal(a);
    else if (ev == ATTACH_LOST && !a->spec->job.keep_on_hangup)
        attempt_begin_end(a, JOBDIR_STOP_CANCEL, SIGHUP);
}

/* How many there are. */
static size_t fill_fds(const struct attempt *a, const struct loop *l, struct pollfd *fds)
{
    fds[FD_SIGNALS] = (struct pollfd){ .fd = l->signals, .events = POLLIN };
    fds[FD_TIMER] = (struct pollfd){ .fd = l->timer, .events = POLLIN };
    fds[FD_TREE] = (struct pollfd){ .fd = a->stage == STAGE_CLEARING ? a->tree.events : -1,
                                    .events = POLLPRI };
    fds[FD_OOM] = (struct pollfd){ .fd = a->tree.oom, .events = POLLIN };
    attach_fds(&a->attach, &fds[FD_ATTACH]);
    return FD_VISITS + visits_fds(&a->visits, &fds[FD_VISITS]);
}

/* In STAGE_CLEARING each death may have been the last. */
static void look_if_empty(struct attempt *a)
{
    bool settling = a->spec->job.container.image != NULL; /* it may be over without a KILL */
    if (a->stage == STAGE_CLEARING && (a->killed_us || settling) && !tree_populated(&a->tree))
        a->stage = STAGE_OVER;
}

static void turn(struct attempt *a, const struct loop *l, const struct pollfd *fds)
{
    if (fds[FD_SIGNALS].revents) {
        take_signals(a, l->signals);
        look_if_empty(a);
    }
    if (!l->watched)
        look_for_stop(a);
    if (fds[FD_TIMER].revents)
        drain(l->timer);
    if (fds[FD_TREE].revents) {
        tree_rearm(&a->tree);
        look_if_empty(a);
    }
    if (fds[FD_OOM].revents) {
        drain(a->tree.oom);
        attempt_oom(a);
    }
    visits_ready(&a->visits, &fds[FD_VISITS]);
    take_attach(a, &fds[FD_ATTACH]);
    if (a->stage != STAGE_OVER)
        attempt_tick(a, clock_now().boot_us);
}

void loop_run(const struct loop *l, struct attempt *a)
{
    look_for_stop(a); /* asked before we watched */
    while (a->stage != STAGE_OVER) {
        struct pollfd fds[FD_COUNT];
        arm(l, attempt_deadline(a));
        size_t count = fill_fds(a, l, fds);
        if (poll(fds, count, l->watched ? -1 : LOOK_MS) >= 0)
            turn(a, l, fds);
    }
}
