#include "supervise/visit.h"

#include <signal.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "supervise/verdict.h"

static struct visitor *free_place(struct visits *v)
{
    for (size_t i = 0; i < VISITS_MAX; i++)
        if (v->all[i].process.pid == 0)
            return &v->all[i];
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
    own.job.env = with_term(spec->job.env, visit->term);
    own.job.script = NULL;
    own.job.pty = w->attach.pty;
    own.job.attached = true; /* streams come with the release */
    int r = payload_spawn(&p, &w->process, e);
    strv_free(own.job.env);
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
    struct visitor *w = free_place(v);
    if (attach_take_visit(from, spec->gid, (unsigned)spec->task_count, &attach, &visit) < 0)
        return;
    if (!w) {
        attach_refuse(&attach, "too many are attached to this job already");
    } else {
        *w = (struct visitor){ .attach = attach, .process = PAYLOAD_PROCESS_INIT };
        if (start(w, spec, v->session, cgroup, &visit, &e) < 0) {
            log_line(LOG_WARN, "a command could not be run inside the job: %s", e.text);
            attach_refuse(&w->attach, e.text);
            payload_drop(&w->process);
            w->process.pid = 0; /* one that was made ends by itself */
        } else {
            (void)attach_welcome(&w->attach); /* who left meanwhile is found to be gone */
        }
    }
    free(visit.term);
    strv_free(visit.argv);
}

void visits_fds(const struct visits *v, struct pollfd ret[VISITS_FDS])
{
    for (size_t i = 0; i < VISITS_MAX; i++) {
        if (v->all[i].process.pid)
            attach_fds(&v->all[i].attach, &ret[i * ATTACH_FDS]);
        for (size_t k = 0; !v->all[i].process.pid && k < ATTACH_FDS; k++)
            ret[i * ATTACH_FDS + k] = (struct pollfd){ .fd = -1 };
    }
}

void visits_ready(struct visits *v, const struct pollfd fds[VISITS_FDS])
{
    for (size_t i = 0; i < VISITS_MAX; i++) {
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
    for (size_t i = 0; i < VISITS_MAX; i++) {
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
    for (size_t i = 0; i < VISITS_MAX; i++)
        if (v->all[i].process.pid) {
            attach_done(&v->all[i].attach);
            payload_drop(&v->all[i].process);
            v->all[i].process.pid = 0;
        }
}
