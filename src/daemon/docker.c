/* What a dead supervisor left with docker's daemon. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/log.h"

#include <spawn.h> /* its SCHED_FIFO is a macro, and ours a word of an enum */

#define AGAIN_US CLOCK_SECOND

extern char **environ;

void docker_forget(struct attempt *a)
{
    if (a->clearing.said)
        (void)close(a->clearing.said); /* what it does is right in any case */
    a->clearing.said = 0;
}

/* It says a word when it is done, since the kernel reaps our children (divvy-supervise --clear). */
static int spawn(struct daemon *d, const char *folder, int said, struct err *e)
{
    pid_t pid;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none, defaults;
    char *const argv[] = { d->paths.supervisor, (char *)"--clear", (char *)(uintptr_t)folder,
                           NULL };
    (void)sigemptyset(&none);    /* cannot fail */
    (void)sigfillset(&defaults); /* cannot fail */
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &defaults);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, said, 1);
    int r = posix_spawn(&pid, argv[0], &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return r ? err_set(e, -r, "cannot start %s: %s", argv[0], strerror(r)) : 0;
}

static void begin(struct job *j)
{
    struct err e = ERR_INIT;
    struct docker_clearing *c = &j->attempt->clearing;
    auto_free char *folder = jobdir_path(j->daemon->paths.jobs, j->id, j->attempt->number);
    int ends[2];
    c->again_us = clock_now().boot_us + AGAIN_US;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return; /* out of descriptors: tried again */
    auto_close int theirs = ends[1];
    c->said = ends[0];
    if (spawn(j->daemon, folder, theirs, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
}

static bool is_dockers(int dir)
{
    struct jobdir_spec s = { .job_id = 0 };
    if (jobdir_read_spec(dir, &s, NULL) < 0)
        return false;
    bool docker = job_container_is_docker(&s.job.container);
    jobdir_spec_done(&s);
    return docker;
}

bool docker_cleared(struct job *j, int dir)
{
    struct docker_clearing *c = &j->attempt->clearing;
    char word;
    if (c->done)
        return true;
    if (!c->said && !c->again_us && !is_dockers(dir)) {
        c->done = true;
        return true;
    }
    ssize_t n = c->said ? read(c->said, &word, 1) : 0;
    c->done = n == 1;
    if (n >= 0)
        docker_forget(j->attempt);
    if (!c->done && !c->said && clock_now().boot_us >= c->again_us)
        begin(j);
    return c->done;
}
