#include "daemon/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/killpoint.h"
#include "base/log.h"
#include "daemon/daemon.h"

#include <spawn.h> /* its SCHED_FIFO is a macro, and ours a word of an enum */

#define AGAIN_US CLOCK_SECOND

extern char **environ;

int launcher_spawn(char *const argv[], int in, int out, struct err *e)
{
    pid_t pid;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none, defaults;
    (void)sigemptyset(&none);    /* cannot fail */
    (void)sigfillset(&defaults); /* cannot fail */
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &defaults);
    (void)posix_spawn_file_actions_init(&files);
    if (in >= 0)
        (void)posix_spawn_file_actions_adddup2(&files, in, 0);
    else
        (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    /* Standard error is ours until it has a log of its own: one that cannot run is heard. */
    if (out >= 0)
        (void)posix_spawn_file_actions_adddup2(&files, out, 1);
    else
        (void)posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    int r = posix_spawn(&pid, argv[0], &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return r ? err_set(e, -r, "cannot start %s: %s", argv[0], strerror(r)) : 0;
}

static void drop(struct launcher *l)
{
    l->io = sd_event_source_disable_unref(l->io);
    if (l->fd >= 0)
        (void)close(take_fd(l->fd)); /* what was sent is read, or asked for again */
    l->again_us = clock_now().boot_us + AGAIN_US;
}

/* It never says anything: it died. */
static int on_end(sd_event_source *s, int fd, uint32_t revents, void *user)
{
    struct daemon *d = user;
    (void)s, (void)fd, (void)revents; /* there is one */
    log_line(LOG_WARN, "the launcher of supervisors died; another one is started when needed");
    drop(&d->launcher);
    for (size_t i = d->active_count; i > 0; i--)
        if (i <= d->active_count)
            attempt_look(d->active[i - 1]);
    return 0;
}

static int open_launcher(struct daemon *d, struct err *e)
{
    struct launcher *l = &d->launcher;
    int ends[2];
    char *const argv[] = { d->paths.supervisor, "--launcher", d->paths.jobs, NULL };
    if (clock_now().boot_us < l->again_us)
        return err_set(e, -EAGAIN, "the last launcher died a moment ago");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(e, "cannot make a socket pair");
    auto_close int theirs = ends[1];
    l->fd = ends[0];
    int r = launcher_spawn(argv, theirs, -1, e);
    if (r == 0 && (r = sd_event_add_io(d->event, &l->io, l->fd, EPOLLIN, on_end, d)) < 0)
        err_set(e, r, "cannot watch the launcher: %s", strerror(-r));
    if (r < 0)
        drop(l);
    return r;
}

static int ask(struct daemon *d, const char *folder, struct err *e)
{
    struct launcher *l = &d->launcher;
    const char *name = strrchr(folder, '/') + 1; /* a path below `jobs` */
    int r = l->fd < 0 ? open_launcher(d, e) : 0;
    if (r == 0 && send(l->fd, name, strlen(name), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        r = err_sys(e, "cannot ask the launcher"); /* behind by hundreds, or dead */
    return r;
}

int launcher_start(struct daemon *d, const char *folder, struct err *e)
{
    char *const argv[] = { d->paths.supervisor, (char *)folder, NULL };
    return ask(d, folder, NULL) == 0 ? 0 : launcher_spawn(argv, -1, -1, e);
}

void launcher_close(struct launcher *l)
{
    drop(l);
}
