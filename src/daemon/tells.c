#include "daemon/tells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/told.h"
#include "model/array.h"
#include "model/view.h"

#define LIMIT_US CLOCK_MINUTE

struct tell {
    struct job *job; /* it is let go of after the commit */
    bool end;
};

void tells_note(struct job *j)
{
    struct daemon *d = j->daemon;
    bool end = job_state_ended(j->state);
    bool start = j->state == JOB_RUNNING;
    if (!(end && (j->tells & JOB_TELLS_END)) && !(start && (j->tells & JOB_TELLS_START)))
        return;
    ARRAY_ROOM(d->tells, d->tell_alloc, d->tell_count + 1);
    d->tells[d->tell_count++] = (struct tell){ .job = j, .end = end };
}

/* By env(1): the job's own environment is in the store once for all jobs that have the same. */
static char **words(const struct tell *t, const char *command)
{
    char **argv = NULL;
    strv_add(&argv, "/usr/bin/env");
    told_add(&argv, t->job, t->end ? "end" : "start", t->job->reason);
    told_put_number(&argv, "DIVVY_ATTEMPT_NUMBER", t->job->attempts);
    strv_add(&argv, "/bin/sh");
    strv_add(&argv, "-c");
    strv_add(&argv, command);
    return argv;
}

/* The file that the job itself writes; its first task's, where each has its own. */
static char *output_of(const struct job *j, const struct job_spec *s)
{
    bool array = j->waits && j->waits->array.count;
    auto_free char *named =
        job_array_output(s->output, array ? j->waits->id : j->id, j->array_index);
    auto_free char *path = job_output_path(named, j->id, 0);
    AUTO(text) struct text t = TEXT_INIT;
    for (const char *p = path; p && *p; p++)
        text_add(&t, *p == '%' ? "%%" : (const char[]){ *p, '\0' }); /* it is read once more */
    return path ? text_take(&t) : NULL;
}

static void fill_spec(const struct tell *t, const struct job_spec *s, struct job_spec *ret)
{
    const struct job *j = t->job;
    *ret = (struct job_spec){
        .name = text_fmt("%s-of-%" PRIu64, t->end ? "end" : "start", j->id),
        .account = text_dup(j->account),
        .qos = text_dup(j->qos),
        .request = { .kind = REQUEST_NOTHING, .count = 1 },
        .limit_us = LIMIT_US,
        .argv = words(t, t->end ? s->on_end : s->on_start),
        .env = strv_copy(s->env),
        .cwd = text_dup(s->cwd),
        .output = output_of(j, s),
        .append = true,
    };
}

static int tell(struct daemon *d, const struct tell *t, struct err *e)
{
    const struct job *j = t->job;
    AUTO(job_spec) struct job_spec told = { .name = NULL };
    AUTO(job_spec) struct job_spec s = { .name = NULL };
    auto_free gid_t *groups = NULL;
    size_t count = 0;
    int r = store_job_spec(d->store, j->id, &told, e);
    if (r == 0)
        r = store_job_groups(d->store, j->id, &groups, &count, e);
    if (r < 0)
        return r;
    struct job_submit by = {
        .uid = j->uid, .gid = j->gid, .user = j->user, .groups = groups, .group_count = count
    };
    uint64_t id = 0;
    fill_spec(t, &told, &s);
    r = job_spec_check(&s, e);
    return r < 0 ? r : submit_enter(d, &by, &s, &id, e);
}

void tells_turn(struct daemon *d)
{
    for (size_t i = 0; i < d->tell_count && turn_write(d); i++) {
        struct err e = ERR_INIT;
        if (tell(d, &d->tells[i], &e) < 0)
            log_line(LOG_ERROR, "the owner of job %" PRIu64 " is not told: %s", d->tells[i].job->id,
                     e.text);
    }
    d->tell_count = 0;
}
