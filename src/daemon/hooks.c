/* Telling the administrator's program what happened to jobs. */
#include "daemon/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/secure.h"
#include "daemon/told.h"

#define AT_ONCE 8u
#define WAITING_MAX 1000u
#define PATH_OF_HOOKS "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct event {
    char **env;
};

struct hooks {
    struct daemon *daemon;
    struct event *waiting; /* first to be run first */
    size_t count, alloc;
    size_t committed; /* so many of them are in the store */
    unsigned running, dropped;
};

static const char *const words[] = { "start", "end", "requeue", "fault", "idle", "identity" };

/* ---- what is told ---- */

static char **environment(const struct job *j, enum hook_event ev, const char *why)
{
    char **env = NULL;
    told_put(&env, "PATH", PATH_OF_HOOKS);
    told_put(&env, "DIVVY_ROOT", j->daemon->paths.root);
    told_add(&env, j, words[ev], why);
    told_put_number(&env, "DIVVY_ATTEMPT", j->attempts);
    told_put(&env, "DIVVY_USER", j->user);
    told_put_number(&env, "DIVVY_UID", j->uid);
    told_put(&env, "DIVVY_ACCOUNT", j->account);
    return env;
}

/* NULL: nobody is told, or too many wait. */
static struct event *add_event(struct hooks *h)
{
    if (!h)
        return NULL;
    if (h->count >= WAITING_MAX) {
        if (!h->dropped++)
            log_line(LOG_ERROR, "%u events wait for event_hook; those that follow are dropped",
                     WAITING_MAX);
        return NULL;
    }
    ARRAY_ROOM(h->waiting, h->alloc, h->count + 1);
    return &h->waiting[h->count++];
}

void hooks_note(struct job *j, enum hook_event ev, const char *why)
{
    struct event *event = add_event(j->daemon->hooks);
    if (event)
        event->env = environment(j, ev, why);
}

void hooks_note_identity(struct daemon *d, const char *address, const char *was, const char *now)
{
    struct event *event = add_event(d->hooks);
    if (!event)
        return;
    event->env = NULL;
    told_put(&event->env, "PATH", PATH_OF_HOOKS);
    told_put(&event->env, "DIVVY_ROOT", d->paths.root);
    told_put(&event->env, "DIVVY_EVENT", words[HOOK_IDENTITY]);
    told_put(&event->env, "DIVVY_SLICES", address);
    told_put(&event->env, "DIVVY_UUID", now);
    told_put(&event->env, "DIVVY_UUID_BEFORE", was);
    told_put(&event->env, "DIVVY_REASON", "its layout was made again");
}

/* ---- running it ---- */

static int on_ended(sd_event_source *s, int fd, uint32_t revents, void *user)
{
    struct hooks *h = user;
    (void)revents; /* a process that ended */
    /*
     * In this order: a child between its fork and its exec has the descriptor
     * too, and would keep it in the loop's epoll beyond our own close.
     */
    sd_event_source_disable_unref(s);
    (void)close(fd);
    h->running--;
    return 0; /* the turn that follows runs the next one */
}

/* Another divvyd, which waits for it: this one does not learn how its children end. */
static int start(struct hooks *h, char **env, struct err *e)
{
    struct daemon *d = h->daemon;
    pid_t pid;
    posix_spawnattr_t attr;
    sigset_t none;
    auto_free char *what =
        text_fmt("hook:%" PRId64 ":%s", d->config.event_time_us, d->config.event_hook);
    char *const argv[] = { d->paths.self, (char *)"--child", what, NULL };
    (void)sigemptyset(&none);          /* cannot fail */
    (void)posix_spawnattr_init(&attr); /* nor these */
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    int r = posix_spawn(&pid, d->paths.self, NULL, &attr, argv, env);
    (void)posix_spawnattr_destroy(&attr);
    if (r)
        return err_set(e, -r, "cannot start %s: %s", d->config.event_hook, strerror(r));
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    sd_event_source *source = NULL;
    if (fd < 0 || sd_event_add_io(d->event, &source, fd, EPOLLIN, on_ended, h) < 0) {
        if (fd >= 0)
            (void)close(fd);
        return 0; /* it ended already: nothing to wait for */
    }
    h->running++;
    return 0;
}

void hooks_run(struct daemon *d)
{
    struct hooks *h = d->hooks;
    if (!h)
        return;
    h->committed = h->count;
    size_t i = 0;
    for (; i < h->committed && h->running < AT_ONCE; i++) {
        struct err e = ERR_INIT;
        if (start(h, h->waiting[i].env, &e) < 0)
            log_line(LOG_ERROR, "%s", e.text);
        strv_free(h->waiting[i].env);
    }
    memmove(h->waiting, h->waiting + i, (h->count - i) * sizeof *h->waiting);
    h->count -= i;
    h->committed -= i;
    if (h->dropped && h->count < WAITING_MAX / 2) {
        log_line(LOG_ERROR, "%u events were dropped", h->dropped);
        h->dropped = 0;
    }
}

void hooks_forget(struct daemon *d)
{
    struct hooks *h = d->hooks;
    while (h && h->count > h->committed)
        strv_free(h->waiting[--h->count].env);
}

void hooks_open(struct daemon *d)
{
    if (!d->config.event_hook)
        return;
    d->hooks = mem_new(sizeof *d->hooks);
    d->hooks->daemon = d;
}

void hooks_close(struct daemon *d)
{
    struct hooks *h = d->hooks;
    if (!h)
        return;
    h->committed = 0;
    hooks_forget(d);
    free(h->waiting);
    free(h);
    d->hooks = NULL;
}

/* ---- the one that waits ---- */

static _Noreturn void exec_hook(const char *program)
{
    char *const argv[] = { (char *)(uintptr_t)program, NULL };
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setpgid(0, 0); /* a new child: cannot fail */
    if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(2, 1) == 1)
        (void)execv(program, argv);
    log_line(LOG_ERROR, "cannot run %s: %s", program, strerror(errno));
    _exit(126);
}

static void tell_outcome(const char *program, int status, bool late)
{
    const char *ev = getenv("DIVVY_EVENT");
    const char *id = getenv("DIVVY_JOB_ID");
    auto_free char *who = text_fmt("%s (%s of job %s)", program, ev ? ev : "?", id ? id : "?");
    if (late)
        log_line(LOG_WARN, "%s took too long and was killed", who);
    else if (WIFSIGNALED(status))
        log_line(LOG_WARN, "%s was killed by signal %d", who, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        log_line(LOG_WARN, "%s ended with %d", who, WEXITSTATUS(status));
}

int hooks_child_main(const char *what)
{
    struct err e = ERR_INIT;
    char *program = NULL;
    struct secure secure = { .owner = geteuid(), .refused = 022 };
    int64_t limit_us = strtoll(what, &program, 10); /* our own parent wrote it */
    int status = 0;
    if (*program++ != ':' || secure_check(&secure, program, &e) < 0) {
        log_line(LOG_ERROR, "the event hook is not run: %s", e.text);
        return EXIT_FAILURE;
    }
    (void)signal(SIGCHLD, SIG_DFL);
    pid_t pid = fork();
    if (pid == 0)
        exec_hook(program);
    if (pid < 0)
        return EXIT_FAILURE;
    auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    bool late = poll(&p, 1, (int)(limit_us / 1000)) == 0;
    (void)kill(pid, SIGKILL);  /* when it is late, maybe before it has a group */
    (void)kill(-pid, SIGKILL); /* and what it left behind */
    (void)waitpid(pid, &status, 0);
    tell_outcome(program, status, late);
    return EXIT_SUCCESS;
}
