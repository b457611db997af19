/* Job folders, supervisors, and how attempts begin and end. */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/killpoint.h"
#include "base/log.h"
#include "cgroup/stray.h"
#include "daemon/hooks.h"
#include "daemon/units.h"

/* How long the end of an attempt may wait for a snapshot that shows its slices free. */
#define CLEAR_WAIT_US (30 * CLOCK_SECOND)
#define ATTACH_WAIT_US (30 * CLOCK_SECOND)
/* So often is a job tried again after a prolog failed: each time on other cards. */
#define PROLOG_TRIES 3
#define FAULT_TRIES 5

struct attempt *attempt_new(struct job *j, uint32_t number, const struct place *p)
{
    struct daemon *d = j->daemon;
    struct attempt *a = mem_new(sizeof *a);
    a->number = number;
    place_copy(p, &a->place);
    j->attempt = a;
    j->attempts = number;
    ARRAY_ROOM(d->active, d->active_alloc, d->active_count + 1);
    d->active[d->active_count++] = j;
    return a;
}

void attempt_retire(struct job *j)
{
    struct daemon *d = j->daemon;
    for (size_t i = 0; i < d->active_count; i++)
        if (d->active[i] == j) {
            memmove(&d->active[i], &d->active[i + 1],
                    (d->active_count - i - 1) * sizeof *d->active);
            d->active_count--;
            break;
        }
    if (d->cutting == &j->attempt->cut)
        d->cutting = NULL;
}

void attempt_free(struct job *j)
{
    struct attempt *a = j->attempt;
    attempt_retire(j);
    a->watch = sd_event_source_disable_unref(a->watch);
    docker_forget(a);
    apply_done(&a->cut.apply);
    place_done(&a->place);
    free(a->task_pids);
    free(a->cpus);
    free(a->isolation_why);
    free(a);
    j->attempt = NULL;
}

/* ---- starting ---- */

static char *attach_path(const struct daemon *d, uint64_t job_id, uint32_t attempt)
{
    return text_fmt("%s/%" PRIu64 ".%u.sock", d->paths.attach, job_id, attempt);
}

static int fill_spec(struct job *j, struct jobdir_spec *s, struct err *e)
{
    struct daemon *d = j->daemon;
    int r = store_job_spec(d->store, j->id, &s->job, e);
    if (r == 0)
        r = store_job_groups(d->store, j->id, &s->groups, &s->group_count, e);
    if (r < 0)
        return r;
    s->job.limit_us = waits_limit(j, s->job.limit_us, clock_now().wall_us);
    bool array = j->waits && j->waits->array.count;
    char **files[] = { &s->job.output, &s->job.error };
    for (size_t i = 0; i < 2; i++) {
        char *name = job_array_output(*files[i], array ? j->waits->id : j->id, j->array_index);
        free(*files[i]);
        *files[i] = name;
    }
    s->job_id = j->id;
    s->attempt = j->attempt->number;
    s->uid = j->uid;
    s->gid = j->gid;
    s->user = text_dup(j->user);
    place_copy(&j->attempt->place, &s->place);
    s->kill_grace_us = d->config.kill_wait_us;
    s->attach_wait_us = ATTACH_WAIT_US;
    s->root = text_dup(d->paths.root);
    s->driver_root = text_dup(d->paths.driver_root);
    s->cgroup_root = text_dup(units_cgroup_root(d));
    s->attach_socket = attach_path(d, j->id, s->attempt);
    s->prolog = text_dup(d->config.prolog);
    s->epilog = text_dup(d->config.epilog);
    s->hook_limit_us = d->config.prolog_time_us;
    s->pam = d->config.pam ? text_dup("divvy") : NULL;
    s->remove_shm = !d->config.between.keep_shm && !d->private_root;
    r = bind_tasks(d, j, s, e);
    if (r == 0 && s->job.container.image)
        container_bind(d, s);
    return r;
}

static int on_folder(sd_event_source *s, const struct inotify_event *ev, void *user)
{
    (void)s, (void)ev; /* whatever it was: look */
    attempt_look(user);
    return 0;
}

static void watch_folder(struct job *j, const char *path)
{
    struct attempt *a = j->attempt;
    if (a->watch)
        return;
    int r = sd_event_add_inotify(j->daemon->event, &a->watch, path, IN_MOVED_TO | IN_CLOSE_WRITE,
                                 on_folder, j);
    if (r < 0) /* it is looked at every few seconds all the same */
        log_line(LOG_WARN, "cannot watch %s: %s", path, strerror(-r));
}

void attempt_watch(struct job *j)
{
    auto_free char *path = jobdir_path(j->daemon->paths.jobs, j->id, j->attempt->number);
    watch_folder(j, path);
}

static int launch(struct job *j, struct err *e)
{
    struct daemon *d = j->daemon;
    struct jobdir_spec spec = { .job_id = 0 };
    auto_free char *folder = jobdir_path(d->paths.jobs, j->id, j->attempt->number);
    KILLPOINT(LAUNCH);
    int r = fill_spec(j, &spec, e);
    if (r == 0)
        r = jobdir_create(d->paths.jobs, &spec, e);
    if (r == -EEXIST && recover_torn_folder(d, j->id, spec.attempt))
        r = jobdir_create(d->paths.jobs, &spec, e);
    jobdir_spec_done(&spec);
    if (r < 0 && r != -EEXIST)
        return r;
    KILLPOINT(FOLDER_MADE);
    watch_folder(j, folder);
    r = 0;
    if (d->units)
        units_start(j);
    else
        r = launcher_start(d, folder, e);
    KILLPOINT(SUPERVISOR_MADE);
    return r;
}

/* Back to the queue. Its folder goes after the commit; a start sweeps it as well. */
static void requeue(struct job *j)
{
    uint32_t number = j->attempt->number;
    struct err e = ERR_INIT;
    auto_free char *why = text_fmt("tried again: %s", j->attempt->exit.text);
    if (!job_move(j, JOB_EV_REQUEUE, j->attempt->asked ? NULL : why))
        return; /* a failed store starts over */
    if (store_set_requeue(j->daemon->store, j->id, false, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    j->leftover = number;
    turn_todo(j->daemon, j);
}

static void fail_start(struct job *j, const struct err *why)
{
    struct job_exit *x = &j->attempt->exit;
    struct now now = clock_now();
    *x = (struct job_exit){ .kind = EXIT_NOT_STARTED,
                            .value = 126,
                            .ended_boot_us = now.boot_us,
                            .ended_wall_us = now.wall_us };
    (void)snprintf(x->text, sizeof x->text, "%.*s", (int)sizeof x->text - 1, why->text);
    j->attempt->exit_seen_boot_us = now.boot_us;
    j->verdict = JOB_FAILED;
    j->attempt->requeue =
        recover_place_gone(j->daemon, &j->attempt->place) && j->attempt->number < FAULT_TRIES;
    if (!job_move(j, JOB_EV_EXITED, ""))
        return; /* a failed store starts over */
    if (j->attempt->requeue)
        requeue(j);
    else
        (void)job_move(j, JOB_EV_CLEARED, NULL); /* nothing ever ran; the same */
}

void attempt_start_failed(struct job *j, const struct err *why)
{
    auto_close int dir = -1;
    if (j->state != JOB_STARTING ||
        jobdir_open(j->daemon->paths.jobs, j->id, j->attempt->number, &dir, NULL) < 0 ||
        jobdir_state(dir, NULL) != JOBDIR_NEW)
        return; /* its folder tells more than the service manager */
    log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, why->text);
    fail_start(j, why);
}

/* ---- ending ---- */

/* NVIDIA's "XID errors": those that point to hardware, not to a program or the driver's use. */
bool cards_xid_is_fault(uint64_t xid)
{
    static const uint64_t faults[] = { 48, 54, 61, 62, 64, 74, 79, 92, 94, 95, 119, 120, 140 };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i] == xid)
            return true;
    return false;
}

/* Did a card of it fail while it ran? */
static const struct card_memory *failed_card(const struct job *j)
{
    const struct attempt *a = j->attempt;
    for (size_t i = 0; i < a->place.count; i++) {
        const struct card_memory *m = cards_find(j->daemon, a->place.items[i].card_uuid);
        bool lost = !m || !m->present || m->last.health == CARD_LOST;
        if (a->started_boot_us && m && (lost || m->fault_boot_us >= a->started_boot_us))
            return m;
    }
    return NULL;
}

static void note_fault(struct job *j, const struct card_memory *m, bool gone)
{
    auto_free char *card = m ? text_fmt("gpu%u failed under it", m->row.ordinal) : NULL;
    hooks_note(j, HOOK_FAULT, card ? card : gone ? "its slice vanished under it" : NULL);
}

/* With the snapshot that came after its end: the fault and the end may be told in any order. */
static void judge_fault(struct job *j)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    bool failed = j->verdict == JOB_FAILED || j->verdict == JOB_LOST;
    const struct card_memory *m = failed ? failed_card(j) : NULL;
    bool gone = failed && a->started_boot_us && recover_place_gone(j->daemon, &a->place);
    if (!m && !gone && a->exit.kind != EXIT_INTERRUPTED)
        return;
    a->faulted = true;
    note_fault(j, m, gone);
    if (a->number >= FAULT_TRIES || store_job_spec(j->daemon->store, j->id, &spec, &e) < 0 ||
        !spec.requeue_on_fault)
        return;
    if (m)
        (void)snprintf(a->exit.text, sizeof a->exit.text, "gpu%u failed under it", m->row.ordinal);
    else if (gone)
        (void)snprintf(a->exit.text, sizeof a->exit.text, "its slice vanished under it");
    a->requeue = true;
}

static void clear(struct job *j)
{
    judge_fault(j);
    if (j->attempt->requeue)
        requeue(j);
    else
        (void)job_move(j, JOB_EV_CLEARED, NULL); /* a failed store starts over */
}

static void try_clear(struct job *j)
{
    struct attempt *a = j->attempt;
    int64_t waited = clock_now().boot_us - a->exit_seen_boot_us;
    if (j->state != JOB_ENDING || !a->exit_seen_boot_us)
        return;
    if (!cards_clear(j->daemon, &a->place, a->exit_seen_boot_us) && waited <= CLEAR_WAIT_US)
        children_refresh_since(&j->daemon->children, a->exit_seen_boot_us);
    else if (tidy_cards(j, waited))
        clear(j);
}

void attempts_clear(struct daemon *d)
{
    for (size_t i = d->active_count; i > 0; i--)
        if (i <= d->active_count)
            try_clear(d->active[i - 1]);
}

static void take_exit(struct job *j, const struct job_exit *x, enum job_event ev)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    /* The exit speaks for itself; who cancelled it stands there already. */
    const char *words = x->kind == EXIT_CANCELLED ? NULL : "";
    struct now now = clock_now();
    j->attempt->exit = *x;
    samples_fill_exit(j->attempt);
    j->attempt->exit_seen_boot_us = now.boot_us;
    bool preempted = j->state == JOB_ENDING && j->verdict == JOB_PREEMPTED;
    j->verdict = preempted && x->kind == EXIT_CANCELLED ? JOB_PREEMPTED : job_exit_verdict(x);
    if (j->state != JOB_ENDING) {
        if (!job_move(j, ev, words))
            return;
    } else if (turn_note(d) &&
               store_set_state(d->store, j->id, JOB_ENDING, j->verdict, words, now, &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    }
    try_clear(j);
}

/* What holds for every task. */
static int enforced_limits(const struct jobdir_started *s)
{
    int all = s->task_count ? ~0 : 0;
    for (size_t i = 0; i < s->task_count; i++)
        all &= (s->tasks[i].memory_enforced ? JOB_ENFORCES_MEMORY : 0) |
               (s->tasks[i].cpu_enforced ? JOB_ENFORCES_CPU : 0) |
               (s->tasks[i].cpus_enforced ? JOB_ENFORCES_CPUS : 0) |
               (s->tasks[i].pids_enforced ? JOB_ENFORCES_PIDS : 0);
    return all;
}

static void take_limits(struct attempt *a, const struct jobdir_started *s)
{
    a->enforced = enforced_limits(s);
    if (!s->task_count)
        return;
    a->mem_bytes = s->tasks[0].mem_bytes;
    a->cpu_milli = s->tasks[0].cpu_milli;
    a->pids = s->tasks[0].pids;
    a->cpus = s->tasks[0].cpus[0] ? text_dup(s->tasks[0].cpus) : NULL;
}

static void take_pids(struct attempt *a, const struct jobdir_started *s)
{
    a->task_pids = mem_new(s->task_count * sizeof *a->task_pids);
    for (size_t i = 0; i < s->task_count; i++)
        a->task_pids[a->task_pid_count++] = s->tasks[i].process.pid;
}

static void take_started(struct job *j, int dir)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    struct attempt *a = j->attempt;
    struct jobdir_started s = JOBDIR_STARTED_INIT;
    if (a->supervisor || jobdir_read_started(dir, &s, &e) < 0)
        return; /* known, or not there yet */
    bool this_boot = strcmp(s.boot_id, clock_boot_id()) == 0;
    a->supervisor = s.supervisor.pid;
    a->started_boot_us = this_boot ? s.boot_us : 0;
    a->started_wall_us = s.wall_us;
    memcpy(a->isolation, s.isolation, sizeof a->isolation);
    if (s.isolation_reason[0])
        a->isolation_why = text_dup(s.isolation_reason);
    take_limits(a, &s);
    take_pids(a, &s);
    struct now at = { .boot_us = a->started_boot_us, .wall_us = s.wall_us };
    if (j->state == JOB_STARTING && turn_note(d) &&
        store_attempt_started(d->store, j->id, a->number, at, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    if (j->state == JOB_STARTING)
        (void)job_move(j, JOB_EV_STARTED, ""); /* a failed store starts over */
    KILLPOINT(STARTED_READ);
    d->inventory_stale = true;
    jobdir_started_done(&s);
}

static void remove_cgroup(const struct daemon *d, const struct cgroup *c)
{
    struct err e = ERR_INIT;
    (void)cgroup_remove(c, &e); /* an empty directory harms nobody */
    cgroup_remove_others(&d->cgroup_host, c);
}

/* Kills what a dead supervisor left behind. True when nothing is left. */
static bool clear_orphans(struct job *j, int dir)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    struct jobdir_started s = JOBDIR_STARTED_INIT;
    struct cgroup c = CGROUP_INIT;
    auto_free char *name = text_fmt("%" PRIu64 ".%u", j->id, j->attempt->number);
    bool same_boot =
        jobdir_read_started(dir, &s, NULL) == 0 && strcmp(s.boot_id, clock_boot_id()) == 0;
    bool coming =
        same_boot && !docker_cleared(j, dir); /* it would be born into no cgroup of ours */
    int left = 0;
    if (same_boot && s.cgroup && cgroup_open(&d->cgroup_host, s.cgroup, name, &c, &e) == 0) {
        left = cgroup_populated(&c, &e);
        if (left > 0)
            (void)cgroup_kill(&c, &e); /* looked at again */
        else if (!coming)
            remove_cgroup(d, &c);
        cgroup_done(&c);
    } else if (same_boot) {
        left = stray_signal(d->paths.root, name, SIGKILL, &e);
    }
    jobdir_started_done(&s);
    return left <= 0 && !coming;
}

/* It had started, and not in this boot; or it may have, which is not on disk for sure. */
static bool went_with_the_machine(const struct attempt *a)
{
    return a->started_wall_us ? !a->started_boot_us : !a->placed_boot_us;
}

static void take_vanished(struct job *j, int dir, const char *why)
{
    struct now now = clock_now();
    bool went_down = went_with_the_machine(j->attempt);
    struct job_exit x = { .kind = went_down ? EXIT_INTERRUPTED : EXIT_LOST,
                          .ended_boot_us = now.boot_us,
                          .ended_wall_us = now.wall_us };
    if (went_down && j->state == JOB_ENDING && j->verdict == JOB_CANCELLED)
        x.kind = EXIT_CANCELLED; /* as it was asked to end, and did */
    if (went_down)
        why = "the machine went down under it";
    if (j->state != JOB_ENDING) {
        j->verdict = JOB_LOST;
        if (!job_move(j, JOB_EV_VANISHED, why))
            return;
    }
    if (dir >= 0 && !clear_orphans(j, dir)) {
        j->daemon->look_soon = true;
        return;
    }
    (void)snprintf(x.text, sizeof x.text, "%s", why); /* a longer text is cut */
    take_exit(j, &x, JOB_EV_VANISHED);
}

/* The card, not the machine: the others go on. */
static void quarantine_place(struct job *j, const char *why)
{
    const struct place *p = &j->attempt->place;
    auto_free char *words = text_fmt("#%" PRIu64 ": %s", j->id, why);
    for (size_t i = 0; i < p->count; i++)
        if (i == 0 || strcmp(p->items[i].card_uuid, p->items[i - 1].card_uuid) != 0)
            cards_quarantine(j->daemon, p->items[i].card_uuid, words);
}

/* What an end says about the cards that it was on. */
static void judge_cards(struct job *j, const struct jobdir_exit *x)
{
    struct attempt *a = j->attempt;
    if (x->job.kind == EXIT_LOST)
        quarantine_place(j, x->job.text);
    if (x->prolog[0])
        quarantine_place(j, x->prolog);
    if (x->epilog[0])
        quarantine_place(j, x->epilog);
    /* Without a card there is no other place to try. */
    a->requeue = a->requeue || (x->prolog[0] && a->place.count && a->number < PROLOG_TRIES &&
                                j->verdict != JOB_CANCELLED);
}

static void take_end(struct job *j, int dir)
{
    struct err e = ERR_INIT;
    struct jobdir_exit x = { .tasks = NULL };
    take_started(j, dir);
    if (jobdir_read_exit(dir, &x, &e) < 0) {
        take_vanished(j, dir, e.text);
        return;
    }
    KILLPOINT(EXIT_READ);
    judge_cards(j, &x);
    take_exit(j, &x.job, JOB_EV_EXITED);
    jobdir_exit_done(&x);
}

/* Nothing of it ran, and nothing will: told to end before a supervisor took it up. */
static void take_unstarted(struct job *j, int dir)
{
    struct now now = clock_now();
    struct job_exit x = { .kind = EXIT_CANCELLED,
                          .ended_boot_us = now.boot_us,
                          .ended_wall_us = now.wall_us };
    auto_close int lock = -1;
    /* A supervisor on its way here reads `stop` once it has the lock. */
    if (dir >= 0 && (jobdir_stop(dir, JOBDIR_STOP_CANCEL, NULL, NULL) < 0 ||
                     jobdir_claim(dir, &lock, NULL) < 0))
        return; /* it has it already, and tells the end itself */
    take_exit(j, &x, JOB_EV_EXITED);
}

static void relaunch(struct job *j)
{
    if (!j->daemon->snapshot_came)
        return; /* the cards have to be known before a task can be bound to them */
    j->attempt->launch = true;
    turn_todo(j->daemon, j);
}

/*
 * No supervisor took it up. With an attached job that is certain only in the
 * boot that it was placed in: what its `started` said need not be on disk.
 */
static void look_new(struct job *j, int dir)
{
    bool lost = j->attached && !j->attempt->placed_boot_us;
    if (j->state == JOB_STARTING && !lost)
        relaunch(j);
    else if (j->state == JOB_ENDING && !j->attempt->started_wall_us)
        take_unstarted(j, dir);
    else
        take_vanished(j, dir, "its folder is gone");
}

void attempt_look(struct job *j)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    auto_close int dir = -1;
    bool placed = j->state == JOB_STARTING || j->state == JOB_RUNNING || j->state == JOB_ENDING;
    if (!a || !placed || a->launch || clock_now().boot_us < j->daemon->stalled_until_us)
        return;
    if (a->exit_seen_boot_us) {
        try_clear(j);
        return;
    }
    int r = jobdir_open(j->daemon->paths.jobs, j->id, a->number, &dir, &e);
    if (r == -ENOENT) {
        look_new(j, -1);
        return;
    }
    r = r < 0 ? r : jobdir_state(dir, &e);
    switch (r) {
    case JOBDIR_NEW:
        look_new(j, dir);
        break;
    case JOBDIR_STARTING:
        break;
    case JOBDIR_STARTED_ALIVE:
        take_started(j, dir);
        break;
    case JOBDIR_STARTED_DEAD:
        take_started(j, dir);
        take_vanished(j, dir, "its supervisor died");
        break;
    case JOBDIR_ENDED:
        take_end(j, dir);
        break;
    default:
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    }
}

/* ---- after the commit ---- */

static void write_stop(struct job *j)
{
    struct err e = ERR_INIT;
    auto_close int dir = -1;
    struct jobdir_notice notice = preempt_notice(j);
    j->attempt->stop = false;
    KILLPOINT(STOP);
    int r = jobdir_open(j->daemon->paths.jobs, j->id, j->attempt->number, &dir, &e);
    if (r == 0)
        r = jobdir_stop(dir, j->attempt->stop_reason, &notice, &e);
    KILLPOINT(STOP_WRITTEN);
    if (r < 0 && r != -ENOENT)
        log_line(LOG_ERROR, "job %" PRIu64 " cannot be told to end: %s", j->id, e.text);
}

/* The folder last: it tells the next start that there is something to remove. */
int attempt_remove_files(struct daemon *d, uint64_t job_id, uint32_t attempt, struct err *e)
{
    auto_free char *attach = attach_path(d, job_id, attempt);
    (void)unlink(attach); /* of a supervisor that was killed; mostly there is none */
    char *gone = NULL;
    int r = jobdir_put_away(d->paths.jobs, job_id, attempt, &gone, e);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    bin_add(&d->bin, gone);
    return 0;
}

/* Its supervisor removes it, unless that was killed between the end and this. */
void attempt_gone(void *user, uint64_t job_id, uint32_t attempt)
{
    struct daemon *d = user;
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    const char *root = units_cgroup_root(d);
    auto_free char *name = text_fmt("%" PRIu64 ".%u", job_id, attempt);
    if (root[0] == '/' && cgroup_open(&d->cgroup_host, root, name, &c, NULL) == 0)
        remove_cgroup(d, &c);
}

static void forget(struct job *j)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    KILLPOINT(FOLDER_REMOVE);
    if (j->attempts && attempt_remove_files(d, j->id, j->attempts, &e) < 0)
        log_line(LOG_WARN, "job %" PRIu64 ": %s", j->id, e.text);
    KILLPOINT(FOLDER_REMOVED);
    if (j->attempt)
        attempt_free(j);
    (void)map_remove(&d->jobs, j->id); /* it is there */
    waits_leave(j);
    free(j->name);
    free(j->reason);
    free(j);
}

void attempt_carry_out(struct job *j)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    if (j->leftover && attempt_remove_files(j->daemon, j->id, j->leftover, &e) < 0)
        log_line(LOG_WARN, "job %" PRIu64 ": %s", j->id, e.text);
    j->leftover = 0;
    if (job_state_ended(j->state)) {
        forget(j);
        return;
    }
    if (!a)
        return;
    if (a->launch) {
        a->launch = false;
        if (launch(j, &e) < 0) {
            log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
            fail_start(j, &e);
            return;
        }
    }
    if (a->stop)
        write_stop(j);
}

/* ---- the folders at a start ---- */

static int sweep_one(void *user, uint64_t job_id, uint32_t attempt, struct err *e)
{
    struct daemon *d = user;
    struct job *j = jobs_find(d, job_id);
    (void)e; /* one folder that cannot be looked at does not end the walk */
    if (j && j->attempt && j->attempt->number == attempt) {
        attempt_watch(j);
        return 0;
    }
    recover_unknown(d, job_id, attempt);
    return 0;
}

static void sweep_garbage(void *user, const char *name)
{
    struct daemon *d = user;
    bin_add(&d->bin, text_dup(name));
}

void attempts_sweep(struct daemon *d)
{
    struct err e = ERR_INIT;
    if (jobdir_scan(d->paths.jobs, sweep_one, sweep_garbage, d, &e) < 0)
        log_line(LOG_ERROR, "%s", e.text);
    for (size_t i = d->active_count; i > 0; i--)
        if (i <= d->active_count) {
            struct job *j = d->active[i - 1];
            attempt_look(j);
            if (j->attempt && j->state == JOB_ENDING && !j->attempt->exit_seen_boot_us) {
                j->attempt->stop =
                    true; /* asked before the last daemon ended, and not on disk for sure */
                j->attempt->stop_reason =
                    j->verdict == JOB_PREEMPTED ? JOBDIR_STOP_PREEMPT : JOBDIR_STOP_CANCEL;
                turn_todo(d, j);
            }
        }
}
