#include "supervise/tree.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cgroup/gate.h"
#include "supervise/descend.h"

#define FILL(field, ...)                                                                           \
    (void)snprintf(field, sizeof field, __VA_ARGS__) /* a reason that is too long is cut */

static void tell_limits(const struct jobdir_limits *l, int enforced,
                        struct jobdir_started_task *ret)
{
    ret->memory_enforced = enforced & CGROUP_ENFORCES_MEMORY;
    ret->cpu_enforced = enforced & CGROUP_ENFORCES_CPU;
    ret->cpus_enforced = enforced & CGROUP_ENFORCES_CPUS;
    ret->pids_enforced = enforced & CGROUP_ENFORCES_PIDS;
    ret->mem_bytes = ret->memory_enforced ? l->mem_bytes : 0;
    ret->cpu_milli = ret->cpu_enforced ? l->cpu_milli : 0;
    ret->pids = ret->pids_enforced ? l->pids : 0;
    if (ret->cpus_enforced && strlen(l->cpus) < sizeof ret->cpus)
        FILL(ret->cpus, "%s", l->cpus);
}

static int set_limits(const struct jobdir_spec *s, struct tree *t, struct jobdir_started *ret,
                      struct err *e)
{
    for (unsigned i = 0; i < s->task_count; i++) {
        const struct jobdir_limits *l = &s->tasks[i].limits;
        struct cgroup_limits limits = { .mem_bytes = l->mem_bytes,
                                        .cpu_milli = l->cpu_milli,
                                        .pids = l->pids,
                                        .cpus = l->cpus,
                                        .mems = l->mems };
        int enforced = cgroup_limit(&t->cgroup, i, &limits, e);
        if (enforced < 0)
            return enforced;
        tell_limits(l, enforced, &ret->tasks[i]);
    }
    return 0;
}

static int make_gate(const struct jobdir_task *task, const struct gate *closed, struct gate *ret,
                     struct err *e)
{
    *ret = *closed;
    int r = 0;
    for (size_t i = 0; r == 0 && i < task->device_count; i++)
        r = gate_grant(ret, task->devices[i].major, task->devices[i].minor, e);
    return r;
}

/* The weakest of the tasks' gates is what the job has. */
static int close_gates(const struct jobdir_spec *s, struct tree *t, struct jobdir_started *ret,
                       struct err *e)
{
    struct gate closed = GATE_INIT;
    struct err why = ERR_INIT;
    int r = s->gate ? gate_close_driver(&closed, s->driver_root, &why)
                    : err_set(&why, -ENOTSUP, "not asked for");
    enum isolation weakest = r < 0 ? ISOLATION_NONE : ISOLATION_BPF;
    for (unsigned i = 0; weakest != ISOLATION_NONE && i < s->task_count; i++) {
        struct gate g;
        r = make_gate(&s->tasks[i], &closed, &g, e);
        if (r < 0)
            return err_wrap(e, r, "the gate of task %u", i);
        enum isolation got = gate_attach(&g, &t->cgroup, i, &why);
        if (got < weakest)
            weakest = got;
    }
    FILL(ret->isolation, "%s", isolation_word(weakest));
    if (weakest == ISOLATION_NONE)
        FILL(ret->isolation_reason, "%s", why.text);
    return 0;
}

static int open_cgroup(const struct jobdir_spec *s, struct tree *t, struct err *e)
{
    if (!s->cgroup_root[0])
        return err_set(e, -ENOTSUP, "no cgroup root is configured");
    AUTO(cgroup_host) struct cgroup_host host;
    cgroup_host_detect(NULL, NULL, &host);
    auto_free char *name = text_fmt("%" PRIu64 ".%" PRIu32, s->job_id, s->attempt);
    int r = cgroup_create(&host, s->cgroup_root, name, (unsigned)s->task_count, &t->cgroup, e);
    t->cgroup.alike = job_container_is_docker(&s->job.container);
    if (r == 0 && cgroup_events_fd(&t->cgroup, &t->events, NULL) < 0)
        t->events = -1;
    return r;
}

int tree_open(const struct jobdir_spec *s, struct tree *t, struct jobdir_started *ret,
              struct err *e)
{
    struct err why = ERR_INIT;
    if (open_cgroup(s, t, &why) < 0)
        FILL(ret->tracking_reason, "%s", why.text);
    else
        ret->cgroup = cgroup_find_root(&t->cgroup, s->cgroup_root);
    FILL(ret->tracking, "%s", cgroup_kind_word(t->cgroup.kind));
    int r = set_limits(s, t, ret, e);
    if (r == 0 && cgroup_oom_fd(&t->cgroup, &t->oom, NULL) < 0)
        t->oom = -1;
    if (r == 0)
        r = close_gates(s, t, ret, e);
    if (r < 0)
        tree_close(t);
    return r;
}

void tree_signal(const struct tree *t, int sig)
{
    /* What fails here is seen by tree_populated, which is asked until it says no. */
    if (t->cgroup.kind == CGROUP_NONE)
        (void)descend_signal(getpid(), sig, NULL);
    else if (sig == SIGKILL)
        (void)cgroup_kill(&t->cgroup, NULL);
    else
        (void)cgroup_signal(&t->cgroup, CGROUP_EVERY_TASK, sig, NULL);
}

void tree_kill_task(const struct tree *t, unsigned task)
{
    (void)cgroup_signal(&t->cgroup, task, SIGKILL, NULL); /* what it misses is cleared at the end */
}

bool tree_populated(const struct tree *t)
{
    if (t->cgroup.kind != CGROUP_NONE)
        return cgroup_populated(&t->cgroup, NULL) != 0; /* cannot be told: not empty */
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void tree_rearm(const struct tree *t)
{
    char bytes[256];
    (void)!pread(t->events, bytes, sizeof bytes, 0); /* the reading is what counts */
}

uint64_t tree_usage(const struct tree *t, unsigned task, struct job_exit *ret)
{
    struct cgroup_usage u;
    cgroup_usage(&t->cgroup, task, &u);
    if (u.mem_peak_bytes)
        ret->mem_peak_bytes = u.mem_peak_bytes;
    if (u.cpu_us)
        ret->cpu_us = u.cpu_us;
    return u.oom_kills;
}

static void remove_others(const struct cgroup *c)
{
    AUTO(cgroup_host) struct cgroup_host host;
    cgroup_host_detect(NULL, NULL, &host);
    cgroup_remove_others(&host, c);
}

void tree_close(struct tree *t)
{
    if (t->cgroup.kind != CGROUP_NONE)
        (void)cgroup_remove(&t->cgroup, NULL); /* the daemon removes what is still busy */
    if (t->cgroup.alike)
        remove_others(&t->cgroup);
    if (t->events >= 0)
        (void)close(t->events); /* read only */
    if (t->oom >= 0)
        (void)close(t->oom); /* read only */
    cgroup_done(&t->cgroup);
    t->events = t->oom = -1;
}
