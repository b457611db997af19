#include "supervise/visit.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "supervise/verdict.h"

static struct visitor *free_place(struct visits *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->all[i].process.pid == 0)
            return &v->all[i];
    if (v->count == VISITS_MAX)
        return NULL;
    ARRAY_ROOM(v->all, v->alloc, v->count + 1);
    return &v->all[v->count++];
}

static unsigned steps_in(const struct visits *v, unsigned task)
{
    unsigned n = 0;
    for (size_t i = 0; i < v->count; i++)
        n += v->all[i].process.pid && v->all[i].step && v->all[i].task == task;
    return n;
}

/* The task that it wishes, or the next one with fewer steps. */
static unsigned choose_task(const struct visits *v, unsigned wish, unsigned tasks)
{
    unsigned best = wish;
    for (unsigned i = 1; i < tasks; i++) {
        unsigned task = (wish + i) % tasks;
        if (steps_in(v, task) < steps_in(v, best))
            best = task;
    }
    return best;
}

static bool lives(pid_t pid)
{
    return kill(pid, 0) == 0 || errno == EPERM;
}

/* NULL: it may begin now. Two half-begun steps could wait for each other for ever. */
static const char *why_not_yet(struct visits *v, const struct jobdir_spec *spec,
                               struct attach_visit *visit)
{
    unsigned tasks = (unsigned)spec->task_count;
    if (v->beginning && v->beginning != visit->pid && lives(v->beginning))
        return "another step of this job is just beginning";
    visit->task = choose_task(v, visit->task, tasks);
    if (visit->alone && tasks > 1 && steps_in(v, visit->task) > 0) {
        v->beginning = visit->goes_on ? visit->pid : 0;
        return "every slice of this job has a step that runs";
    }
    v->beginning = visit->goes_on ? visit->pid : 0;
    return NULL;
}

/* The terminal is the visitor's, so is what it can do. */
static char **with_term(char *const *env, const char *term)
{
    char **all = NULL;
    for (size_t i = 0; env && env[i]; i++)
        if (!term || !text_starts(env[i], "TERM="))
            strv_add(&all, env[i]);
    if (term) {
        auto_free char *entry = text_fmt("TERM=%s", term);
        strv_add(&all, entry);
    }
    return all;
}

/* Which slice it has: what the job was told of Slurm is for srun to say anew. */
static char **slice_env(const struct jobdir_spec *spec, unsigned task)
{
    char **all = NULL;
    char *const *env = spec->task_count > 1 ? spec->tasks[task].env : NULL;
    for (size_t i = 0; env && env[i]; i++)
        if (!text_starts(env[i], "SLURM_") && !text_starts(env[i], "PATH="))
            strv_add(&all, env[i]);
    return all;
}

static struct jobdir_task *tasks_of_step(const struct jobdir_spec *spec, unsigned task)
{
    struct jobdir_task *tasks = mem_new(spec->task_count * sizeof *tasks);
    memcpy(tasks, spec->tasks, spec->task_count * sizeof *tasks);
    tasks[task].env = slice_env(spec, task);
    return tasks;
}

/* The job's spec with another command; what is not replaced is borrowed. */
static int start(struct visitor *w, const struct jobdir_spec *spec, const struct session *session,
                 const struct cgroup *cgroup, const struct attach_visit *visit, struct err *e)
{
    struct jobdir_spec own = *spec;
    struct payload p = {
        .spec = &own, .task = visit->task, .session = session, .cgroup = cgroup, .inside = true
    };
    int streams[3];
    own.job.argv = visit->argv;
    own.job.env = visit->step ? strv_copy(visit->env) : with_term(spec->job.env, visit->term);
    if (visit->step) {
        own.job.cwd = visit->cwd;
        own.tasks = tasks_of_step(spec, visit->task);
    }
    own.job.script = NULL;
    own.job.pty = w->attach.pty;
    own.job.attached = true; /* streams come with the release */
    int r = payload_spawn(&p, &w->process, e);
    strv_free(own.job.env);
    if (visit->step) {
        strv_free(own.tasks[visit->task].env);
        free(own.tasks);
    }
    if (r < 0)
        return r;
    attach_streams(&w->attach, streams);
    r = payload_release(&w->process, streams, w->attach.pty, e);
    attach_handed(&w->attach);
    return r;
}

void visits_take(struct visits *v, const struct jobdir_spec *spec, const struct cgroup *cgroup,
                 struct attach *from)
{
    struct err e = ERR_INIT;
    struct attach_visit visit;
    struct attach attach;
    const char *later = NULL;
    if (attach_take_visit(from, spec->gid, (unsigned)spec->task_count, &attach, &visit) < 0)
        return;
    if (visit.step)
        later = why_not_yet(v, spec, &visit);
    struct visitor *w = later ? NULL : free_place(v);
    if (later) {
        attach_refuse_now(&attach, later);
    } else if (!w) {
        attach_refuse(&attach, "too many are attached to this job already");
    } else {
        *w = (struct visitor){ .attach = attach,
                               .process = PAYLOAD_PROCESS_INIT,
                               .step = visit.step,
                               .task = visit.task };
        if (start(w, spec, v->session, cgroup, &visit, &e) < 0) {
            log_line(LOG_WARN, "a command could not be run inside the job: %s", e.text);
            attach_refuse(&w->attach, e.text);
            payload_drop(&w->process);
            w->process.pid = 0; /* one that was made ends by itself */
        } else {
            (void)attach_welcome(&w->attach); /* who left meanwhile is found to be gone */
        }
    }
    attach_visit_done(&visit);
}

size_t visits_fds(const struct visits *v, struct pollfd ret[VISITS_FDS])
{
    for (size_t i = 0; i < v->count; i++) {
        if (v->all[i].process.pid)
            attach_fds(&v->all[i].attach, &ret[i * ATTACH_FDS]);
        for (size_t k = 0; !v->all[i].process.pid && k < ATTACH_FDS; k++)
            ret[i * ATTACH_FDS + k] = (struct pollfd){ .fd = -1 };
    }
    return v->count * ATTACH_FDS;
}

void visits_ready(struct visits *v, const struct pollfd *fds)
{
    for (size_t i = 0; i < v->count; i++) {
        struct visitor *w = &v->all[i];
        if (!w->process.pid)
            continue;
        enum attach_event ev = attach_ready(&w->attach, &fds[i * ATTACH_FDS]);
        if (ev == ATTACH_ASKED)
            (void)kill(-w->process.pid, w->attach.signal); /* it may have ended */
        else if (ev == ATTACH_LOST)
            (void)kill(-w->process.pid, SIGHUP); /* what goes on all the same ends with the job */
    }
}

bool visits_reaped(struct visits *v, pid_t pid, int status)
{
    for (size_t i = 0; i < v->count; i++) {
        struct visitor *w = &v->all[i];
        struct job_exit x = { .kind = EXIT_NONE };
        if (w->process.pid != pid)
            continue;
        if (!payload_report(&w->process, &x))
            verdict_task(status, 0, JOBDIR_STOP_NONE, &x);
        attach_end(&w->attach, &x);
        w->process.pid = 0;
        return true;
    }
    return false;
}

void visits_done(struct visits *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->all[i].process.pid) {
            attach_done(&v->all[i].attach);
            payload_drop(&v->all[i].process);
        }
    free(v->all);
    v->all = NULL;
    v->count = v->alloc = 0;
}
