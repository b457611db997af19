/* Jobs that are stopped so that others can start. */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "store/preempted.h"

/* NOLINTNEXTLINE(misc-redundant-expression): two rooms, and each may change its own */
_Static_assert(QOS_GRACE_MAX_US <= JOBDIR_GRACE_MAX_US, "a supervisor takes what a class may say");

struct jobdir_notice preempt_notice(const struct job *j)
{
    const struct qos *q = divvyd_config_qos(&j->daemon->config, j->qos);
    if (!q || q->preempt != PREEMPT_SIGNAL || j->attempt->stop_reason != JOBDIR_STOP_PREEMPT)
        return (struct jobdir_notice){ .signal = 0 };
    return (struct jobdir_notice){ .signal = q->signal, .grace_us = q->grace_us };
}

/* How jobs of its class go; what no class says is not pushed out at all. */
static int way_of(const struct job *j)
{
    const struct qos *q = divvyd_config_qos(&j->daemon->config, j->qos);
    return q ? q->preempt : PREEMPT_NEVER;
}

static void note(const struct job *j, uint64_t by, const char *user)
{
    struct err e = ERR_INIT;
    if (turn_write(j->daemon) && store_add_preempted(j->daemon->store, j->id, j->attempt->number,
                                                     by, user, clock_now().wall_us, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
}

void preempt_show(struct daemon *d, uint64_t id, struct job_view *v)
{
    struct preempted_row row = { .times = 0 };
    if (!v->attempt || store_read_preempted(d->store, id, 0, &row, NULL) < 0 || !row.times)
        return;
    v->preempted = (struct job_preempted){ .times = row.times,
                                           .wall_us = row.wall_us,
                                           .by = row.by,
                                           .user = answers_keep(d, 9, row.user) };
}

/* One that is being prepared is stopped as soon as it could start: what is cut stays cut. */
static void stop(struct job *j, uint64_t by)
{
    const struct job *other = jobs_find(j->daemon, by);
    auto_free char *why =
        other ? text_fmt("preempted for #%" PRIu64 " of %s (%s)", by, other->user, other->name)
              : text_fmt("preempted for #%" PRIu64, by);
    j->attempt->preempted_for = by;
    if (j->state == JOB_PREPARING)
        return;
    note(j, by, other ? other->user : "");
    /* a failed store starts over */
    if (way_of(j) == PREEMPT_CANCEL)
        (void)job_stop(j, JOB_PREEMPTED, JOBDIR_STOP_PREEMPT, why);
    else
        (void)job_send_back(j, JOB_PREEMPTED, JOBDIR_STOP_PREEMPT, why, NULL);
}

void preempt_ready(struct job *j)
{
    if (j->attempt && j->attempt->preempted_for)
        stop(j, j->attempt->preempted_for);
}

void preempt_for_others(struct daemon *d, struct now now)
{
    struct sched_preemption p;
    if (sched_preempt(d->sched, &d->inventory, now, &p) <= 0)
        return;
    for (size_t i = 0; i < p.count; i++) {
        struct job *j = jobs_find(d, p.victims[i]);
        if (j && j->attempt)
            stop(j, p.job_id);
    }
    sched_preemption_done(&p);
}
