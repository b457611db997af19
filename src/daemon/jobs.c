/* Live jobs, and the only place where they change state. */
#include "daemon/daemon.h"
#include "daemon/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/hooks.h"
#include "daemon/tells.h"
#include "model/charge.h"
#include "policy/policy.h"

struct job *jobs_find(const struct daemon *d, uint64_t id)
{
    return map_get(&d->jobs, id);
}

static void job_free(struct job *j)
{
    if (j->attempt)
        attempt_free(j);
    waits_leave(j);
    free(j->name);
    free(j->reason);
    free(j);
}

void jobs_done(struct daemon *d)
{
    struct job *j;
    for (size_t i = 0; (j = map_next(&d->jobs, &i));)
        job_free(j);
    map_done(&d->jobs);
    waits_done(d);
    free(d->active);
    d->active = NULL;
    d->active_count = d->active_alloc = 0;
    sched_free(d->sched);
    d->sched = NULL;
}

static int64_t since_submit(const struct job *j)
{
    int64_t us = clock_now().wall_us - j->submit_wall_us;
    return us > 0 ? us : 0;
}

static void queue_job(struct daemon *d, const struct job *j)
{
    struct sched_job s = { .id = j->id,
                           .uid = j->uid,
                           .user = j->user,
                           .account = j->account,
                           .qos = j->qos,
                           .request = &j->request,
                           .limit_us = j->limit_us,
                           .submit_us = clock_now().boot_us - since_submit(j),
                           .attained_card_us = j->charged_card_us,
                           .attached = j->attached,
                           .mem_bytes = j->mem_bytes,
                           .cpu_milli = j->cpu_milli };
    sched_add(d->sched, &s);
}

struct job *jobs_add(struct daemon *d, const struct job_row *row)
{
    struct job *j = mem_new(sizeof *j);
    *j = (struct job){ .daemon = d,
                       .id = row->id,
                       .uid = row->uid,
                       .gid = row->gid,
                       .user = intern(d, row->user),
                       .account = intern(d, row->account),
                       .qos = intern(d, row->qos),
                       .charged_card_us = (double)row->charged_ppm_us / PPM,
                       .name = text_dup(row->name),
                       .request = row->request,
                       .limit_us = row->limit_us,
                       .submit_wall_us = row->submit_wall_us,
                       .begin_wall_us = row->begin_wall_us,
                       .deadline_wall_us = row->deadline_wall_us,
                       .expected_wall_us = row->expected_wall_us,
                       .array_index = row->array_index,
                       .hold = row->hold,
                       .tells = (uint8_t)row->tells,
                       .attached = row->attached,
                       .mem_bytes = row->mem_bytes,
                       .cpu_milli = row->cpu_milli,
                       .state = row->state,
                       .verdict = row->verdict,
                       .attempts = row->last.attempt };
    if (row->reason && row->reason[0])
        j->reason = text_dup(row->reason);
    map_put(&d->jobs, j->id, j);
    queue_job(d, j);
    waits_join(j, row->array_id);
    return j;
}

/* An attempt that was alive when the last daemon ended. */
static void load_attempt(struct job *j, const struct attempt_row *row)
{
    struct daemon *d = j->daemon;
    bool this_boot = strcmp(row->boot_id, clock_boot_id()) == 0;
    struct attempt *a = attempt_new(j, row->attempt, &row->place);
    a->placed_boot_us = this_boot ? row->placed_boot_us : 0;
    a->started_boot_us = this_boot ? row->started_boot_us : 0;
    a->started_wall_us = row->started_wall_us;
    a->exit = row->exit;
    a->samples = row->samples;
    a->samples_peak_kept = row->samples.mem_peak_bytes;
    int64_t since = a->started_boot_us ? a->started_boot_us : a->placed_boot_us;
    sched_start(d->sched, j->id, &a->place, charge_of(d, &a->place),
                since ? since : clock_now().boot_us);
    if (j->state == JOB_ENDING)
        sched_leaving(d->sched, j->id);
}

static int load_job(const struct job_row *row, void *arg)
{
    struct daemon *d = arg;
    struct job *j = jobs_add(d, row);
    if (j->state == JOB_PENDING)
        return 0;
    load_attempt(j, &row->last);
    j->attempt->requeue = j->attempt->asked = row->requeue;
    return 0;
}

int jobs_load(struct daemon *d, struct err *e)
{
    struct sched_policy policy = policy_of(&d->config);
    node_policy(d, &policy);
    d->sched = sched_new(&policy);
    policy_load(d->sched, &d->config);
    int r = accounts_usage_load(d, e);
    if (r == 0)
        r = promises_load(d, e);
    d->moment_wall_us = INT64_MAX;
    if (r == 0)
        r = waits_load(d, e);
    if (r == 0)
        r = store_each_live_job(d->store, load_job, d, e);
    for (size_t i = 0; r == 0 && i < d->active_count; i++) {
        struct err cut = ERR_INIT;
        struct job *j = d->active[i];
        if (j->state == JOB_PREPARING && cut_load(j, &cut) < 0)
            log_line(LOG_WARN, "%s", cut.text);
        if (j->state == JOB_PREPARING && j->verdict == JOB_CANCELLED)
            j->attempt->cut.cancelled = true;
    }
    d->inventory_stale = d->schedule = true;
    return r;
}

static void set_reason(struct job *j, const char *reason)
{
    if (!reason)
        return;
    free(j->reason);
    j->reason = text_dup(reason);
}

/* Back to the queue, or gone: the attempt is over either way. */
static void leave_attempt(struct job *j, struct now now)
{
    struct daemon *d = j->daemon;
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    int64_t end = a->exit.ended_boot_us ? a->exit.ended_boot_us : now.boot_us;
    if (a->faulted) /* time lost to a fault is not charged */
        end = a->started_boot_us;
    uint64_t charge = 0;
    if (a->started_boot_us && end > a->started_boot_us)
        charge = charge_dominant_ppm(&a->place) * (uint64_t)(end - a->started_boot_us);
    enum job_state outcome = j->state == JOB_PENDING ? JOB_PENDING : j->verdict;
    const struct job_exit *x = a->exit.kind == EXIT_NONE ? NULL : &a->exit;
    if (store_end_attempt(d->store, j->id, a->number, outcome, x, charge, now, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    if (ledger_end(j, outcome, now, &e) < 0)
        log_line(LOG_ERROR, "the history of job %" PRIu64 ": %s", j->id, e.text);
    if (j->state == JOB_PENDING)
        sched_requeue(d->sched, j->id, end);
    else
        sched_end(d->sched, j->id, end);
    uid_t payer = sched_is_pooled(d->sched, j->account) ? USAGE_OF_ALL : j->uid;
    if (store_set_usage(d->store, j->account, payer, sched_usage(d->sched, j->account, j->uid, now),
                        now, &e) < 0)
        log_line(LOG_ERROR, "usage of %s: %s", j->account, e.text);
    d->inventory_stale = d->schedule = true;
}

static void note_event(struct job *j, enum job_event ev)
{
    tells_note(j);
    if (j->state == JOB_RUNNING)
        hooks_note(j, HOOK_START, j->reason);
    else if (ev == JOB_EV_REQUEUE)
        hooks_note(j, HOOK_REQUEUE, j->reason);
    else if (job_state_ended(j->state))
        hooks_note(j, HOOK_END, j->reason);
}

/* Its folder tells of that, and nothing is given away by it. */
static bool told_by_folder(enum job_event ev)
{
    return ev == JOB_EV_STARTED || ev == JOB_EV_EXITED;
}

bool job_move(struct job *j, enum job_event ev, const char *reason)
{
    struct daemon *d = j->daemon;
    struct err e = ERR_INIT;
    struct now now = clock_now();
    enum job_state to = j->state;
    if (!(told_by_folder(ev) ? turn_note(d) : turn_write(d)))
        return false;
    if (job_next_state(j->state, ev, j->verdict, &to, &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
        return false;
    }
    enum job_state verdict = to == JOB_ENDING ? j->verdict : JOB_PENDING;
    if (store_set_state(d->store, j->id, to, verdict, reason, now, &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
        return false;
    }
    j->state = to;
    set_reason(j, reason);
    note_event(j, ev);
    if (job_state_ended(to)) {
        d->ended[to]++;
        if (!j->attempt)
            sched_remove(d->sched, j->id);
        turn_todo(d, j);
    }
    if (j->attempt && (job_state_ended(to) || to == JOB_PENDING))
        leave_attempt(j, now);
    if (to == JOB_PENDING && j->attempt)
        attempt_free(j);
    else if (job_state_ended(to) && j->attempt)
        attempt_retire(j);
    if (to == JOB_PENDING)
        waits_apply(j);
    else if (to == JOB_RUNNING || job_state_ended(to))
        waits_changed(j);
    if (to == JOB_RUNNING)
        promise_kept(j);
    api_job_changed(d->api, j->id);
    return true;
}

bool job_stop(struct job *j, enum job_state verdict, enum jobdir_stop how, const char *reason)
{
    j->verdict = verdict;
    if (!job_move(j, JOB_EV_STOP, reason))
        return false;
    sched_leaving(j->daemon->sched, j->id);
    j->attempt->stop = true;
    j->attempt->stop_reason = how;
    turn_todo(j->daemon, j);
    return true;
}

/* Written down at once: the step under way may outlive this daemon. */
static bool cancel_preparing(struct job *j, const char *reason)
{
    struct daemon *d = j->daemon;
    struct err e = ERR_INIT;
    if (!turn_write(d))
        return false;
    if (store_set_state(d->store, j->id, JOB_PREPARING, JOB_CANCELLED, reason, clock_now(), &e) <
        0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
        return false;
    }
    set_reason(j, reason);
    if (j->attempt->cut.open)
        cut_cancel(d, &j->attempt->cut);
    return true;
}

/* It was to be started again; now it is not. */
static bool cancel_requeue(struct job *j, const char *reason)
{
    struct daemon *d = j->daemon;
    struct err e = ERR_INIT;
    if (!turn_write(d))
        return false;
    j->verdict = JOB_CANCELLED;
    if (store_set_requeue(d->store, j->id, false, &e) < 0 ||
        store_set_state(d->store, j->id, JOB_ENDING, j->verdict, reason, clock_now(), &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
        return false;
    }
    set_reason(j, reason);
    j->attempt->requeue = false;
    j->attempt->stop = true; /* what time it was given is over */
    j->attempt->stop_reason = JOBDIR_STOP_CANCEL;
    turn_todo(d, j);
    return true;
}

int job_send_back(struct job *j, enum job_state verdict, enum jobdir_stop how, const char *reason,
                  struct err *e)
{
    struct daemon *d = j->daemon;
    if (!turn_write(d))
        return err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
    int r = store_set_requeue(d->store, j->id, true, e);
    if (r < 0)
        return r;
    j->attempt->requeue = j->attempt->asked = true;
    return job_stop(j, verdict, how, reason) ? 0 : err_set(e, -EIO, "the store took no write");
}

int job_requeue(struct job *j, const char *reason, struct err *e)
{
    if (j->state != JOB_STARTING && j->state != JOB_RUNNING)
        return err_set(e, -EBUSY, "job %" PRIu64 " is %s; only jobs that run can be requeued",
                       j->id, job_state_word(j->state));
    return job_send_back(j, JOB_CANCELLED, JOBDIR_STOP_CANCEL, reason, e);
}

bool job_cancel(struct job *j, const char *who, struct err *e)
{
    auto_free char *reason = text_fmt("cancelled by %s", who);
    bool done = true;
    switch (j->state) {
    case JOB_PENDING:
        j->verdict = JOB_CANCELLED;
        done = job_move(j, JOB_EV_DROP, reason);
        break;
    case JOB_PREPARING:
        done = cancel_preparing(j, reason);
        break;
    case JOB_STARTING:
    case JOB_RUNNING:
        done = job_stop(j, JOB_CANCELLED, JOBDIR_STOP_CANCEL, reason);
        break;
    case JOB_ENDING:
        if (j->attempt->requeue) {
            done = cancel_requeue(j, reason);
            break;
        } /* fall through */
    default:
        err_set(e, -EALREADY, "job %" PRIu64 " is ending already", j->id);
        return false;
    }
    if (!done)
        err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", j->daemon->stalled_why);
    return done;
}

/* Everything is there: it may be started after the commit. */
static void start_ready(struct job *j)
{
    if (job_move(j, JOB_EV_READY, NULL)) {
        j->attempt->launch = true;
        turn_todo(j->daemon, j);
        preempt_ready(j);
    }
}

static bool start_job(struct daemon *d, const struct sched_decision *s)
{
    struct err e = ERR_INIT;
    struct now now = clock_now();
    struct job *j = jobs_find(d, s->job_id);
    if (!j || !turn_write(d))
        return false;
    struct attempt *a = attempt_new(j, j->attempts + 1, &s->place);
    a->placed_boot_us = now.boot_us;
    if (store_add_attempt(d->store, j->id, a->number, &a->place, now, &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
        attempt_free(j);
        return false;
    }
    sched_start(d->sched, j->id, &a->place, charge_of(d, &a->place), now.boot_us);
    if (!job_move(j, JOB_EV_PLACE, ""))
        return false;
    if (s->plan.count)
        cut_begin(j, &s->plan);
    else
        start_ready(j);
    cards_rebuild(d);
    return true;
}

void jobs_schedule(struct daemon *d)
{
    struct now now = clock_now();
    if (d->inventory_stale)
        cards_rebuild(d);
    d->schedule = false;
    windows_close(d, now);
    sched_cycle(d->sched, now);
    for (bool going = true; going;) {
        struct sched_decision s;
        if (sched_next(d->sched, &d->inventory, now, &s) <= 0)
            break;
        going = start_job(d, &s);
        sched_decision_done(&s);
    }
    promise_note(d, now);
    preempt_for_others(d, now);
}
