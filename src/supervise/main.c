/*
 * divvy-supervise DIR: the parent of one attempt.
 *
 * DIR is the attempt's folder (jobdir.h). Started by divvyd, or by the service
 * manager; never by hand. `--launcher JOBS`: launcher.h. Ends with 0 when `exit` was written, 3 when another
 * supervisor has, or had, this attempt, 1 for any other failure.
 *
 * `--clear DIR`: removes the containers that docker's daemon made for an attempt
 * whose supervisor died. Says "cleared" when nothing of them is left, or comes.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/killpoint.h"
#include "base/log.h"
#include "supervise/attempt.h"
#include "supervise/container.h"
#include "supervise/docker.h"
#include "supervise/launcher.h"
#include "supervise/loop.h"

#define EXIT_TAKEN 3

static const char usage[] =
    "Usage: divvy-supervise DIR\n"
    "Runs the attempt that the folder DIR describes, as its user, and writes there how it ended.\n"
    "divvyd starts it; by hand it is of no use.\n";

static void block_signals(void)
{
    sigset_t set;
    loop_signals(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* the daemon's terminal is not ours */
}

/* The last to be chosen when memory is out: it alone knows how its job ends. */
static void protect_from_oom(void)
{
    auto_close int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!write(fd, "-900", 4); /* only root may */
}

/* Our own words go beside the job's files; the caller's descriptors are let go. */
static void settle(int dir)
{
    auto_close int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; nothing >= 0 && fd <= 2; fd++)
        (void)dup2(nothing, fd);
    log_to_file(dir, "supervise.log");
    (void)setsid(); /* fails when we lead a session already */
    (void)chdir("/");
    (void)umask(022);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* the environment of a job is in our memory */
    protect_from_oom();
    block_signals();
}

/* Stopped before it began: it ends without having started. */
static int end_unstarted(int dir, enum jobdir_stop why, struct err *e)
{
    struct now now = clock_now();
    struct job_exit x = { .kind = why == JOBDIR_STOP_TIMEOUT ? EXIT_TIMEOUT : EXIT_CANCELLED,
                          .ended_boot_us = now.boot_us,
                          .ended_wall_us = now.wall_us };
    if (why == JOBDIR_STOP_PREEMPT)
        (void)snprintf(x.text, sizeof x.text, "preempted");
    struct jobdir_exit whole = { .job = x };
    return jobdir_write_exit(dir, &whole, true, e);
}

static int end_unreadable(int dir, const struct err *why, struct err *e)
{
    struct now now = clock_now();
    struct job_exit x = { .kind = EXIT_NOT_STARTED,
                          .ended_boot_us = now.boot_us,
                          .ended_wall_us = now.wall_us };
    (void)snprintf(x.text, sizeof x.text, "%.*s", (int)sizeof x.text - 1, why->text);
    struct jobdir_exit whole = { .job = x };
    return jobdir_write_exit(dir, &whole, true, e);
}

static int supervise(int dir, struct err *e)
{
    auto_close int lock = -1;
    int r = jobdir_claim(dir, &lock, e);
    if (r < 0)
        return r;
    KILLPOINT(SUPERVISE_LOCKED);
    settle(dir);
    AUTO(jobdir_spec) struct jobdir_spec spec = { .job_id = 0 };
    struct err why = ERR_INIT;
    enum jobdir_stop stop = jobdir_read_stop(dir, NULL);
    if (stop != JOBDIR_STOP_NONE)
        return end_unstarted(dir, stop, e);
    if (jobdir_read_spec(dir, &spec, &why) < 0)
        return end_unreadable(dir, &why, e);
    return attempt_run(dir, &spec, e);
}

static int run(int at, const char *path)
{
    auto_close int dir = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct err e = ERR_INIT;
    int r = dir < 0 ? err_sys(&e, "cannot open %s", path) : supervise(dir, &e);
    if (r == 0)
        return 0;
    log_line(LOG_ERROR, "%s: %s", path, e.text);
    return r == -EBUSY || r == -EALREADY ? EXIT_TAKEN : 1;
}

static int launch(char **argv)
{
    auto_close int jobs = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = ERR_INIT;
    char name[32]; /* of a folder */
    int r = jobs < 0 ? err_sys(&e, "cannot open %s", argv[2])
                     : launcher_run(argv, name, sizeof name, &e);
    if (r < 0)
        log_line(LOG_ERROR, "%s", e.text);
    return r > 0 ? run(jobs, name) : r < 0;
}

/* Without the folder's words, or docker's, there is nobody who could be asked. */
static int clear(const char *path)
{
    struct err e = ERR_INIT;
    AUTO(jobdir_spec) struct jobdir_spec spec = { .job_id = 0 };
    AUTO(container_host) struct container_host h = CONTAINER_HOST_INIT;
    auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = dir < 0 ? err_sys(&e, "cannot open %s", path) : jobdir_read_spec(dir, &spec, &e);
    if (r == 0)
        r = container_find(&spec.job.container, &h, &e);
    if (r < 0)
        log_line(LOG_ERROR, "%s", e.text);
    else if (docker_clear(&spec, h.program) < 0)
        return 1;
    return printf("cleared\n") < 0;
}

int main(int argc, char **argv)
{
    log_init("divvy-supervise", LOG_NOTE);
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return fputs(usage, stdout) < 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("divvy-supervise %s\n", DIVVY_VERSION) < 0;
    if (argc == 3 && strcmp(argv[1], "--clear") == 0)
        return clear(argv[2]);
    bool launcher = argc == 3 && strcmp(argv[1], "--launcher") == 0;
    if (!launcher && (argc != 2 || argv[1][0] == '-')) {
        (void)fputs(usage, stderr); /* nowhere else to say it */
        return 2;
    }
    (void)syscall(SYS_close_range, 3u, ~0u, 0u); /* what a caller left open is not ours to keep */
    return launcher ? launch(argv) : run(AT_FDCWD, argv[1]);
}
