/* What a dead supervisor left with docker's daemon. */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <inttypes.h>

#include "base/log.h"

#define AGAIN_US CLOCK_SECOND

void docker_forget(struct attempt *a)
{
    if (a->clearing.said)
        (void)close(a->clearing.said); /* what it does is right in any case */
    a->clearing.said = 0;
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
    /* It says a word when it is done, since the kernel reaps our children. */
    char *const argv[] = { j->daemon->paths.supervisor, (char *)"--clear", folder, NULL };
    if (launcher_spawn(argv, -1, theirs, &e) < 0)
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
