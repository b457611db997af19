#include "supervise/attempt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/killpoint.h"
#include "base/log.h"
#include "supervise/container.h"
#include "supervise/hook.h"
#include "supervise/leftover.h"
#include "supervise/loop.h"
#include "supervise/verdict.h"

#define HANGUP_GRACE_US (2 * CLOCK_SECOND)
#define KILL_AGAIN_US (CLOCK_SECOND / 10)
#define CLIENT_QUIT_US (5 * CLOCK_SECOND)
#define OOM_LOOK_US (CLOCK_SECOND / 100) /* between the kernel's word and its deed */
#define CANNOT_KILL_US CLOCK_MINUTE
#define WRITE_AGAIN_S 1
/* Most jobs that are shorter are never visited, and need no socket. */
#define DOOR_US (CLOCK_SECOND / 2)
#define SETTLE_US (CLOCK_SECOND / 2) /* for a container's runtime to put its things away */

static int64_t boot_us(void)
{
    return clock_now().boot_us;
}

static void set_trouble(struct attempt *a, enum exit_kind kind, const char *text)
{
    a->trouble_kind = kind;
    (void)snprintf(a->trouble, sizeof a->trouble, "%s", text); /* cut when too long */
}

/* ---- ending ------------------------------------------------------------- */

static void enter_clearing(struct attempt *a)
{
    bool settle = a->spec->job.container.image && !a->killed_us && tree_populated(&a->tree);
    /* Told to end, what goes on without its runtime keeps the grace that it was given. */
    if (!settle || a->stage != STAGE_ENDING)
        a->next_us = boot_us() + (settle ? SETTLE_US : 0); /* look and kill at once */
    a->stage = STAGE_CLEARING;
}

/* Nothing of the user's has run: the held children end when they are let go. */
static void drop_held(struct attempt *a, enum exit_kind kind, const char *text)
{
    set_trouble(a, kind, text);
    for (size_t i = 0; i < a->spec->task_count; i++)
        payload_drop(&a->tasks[i].process);
    a->stage = STAGE_ENDING;
    a->next_signal = SIGKILL;
    a->next_us = boot_us() + CLOCK_SECOND;
}

void attempt_begin_end(struct attempt *a, enum jobdir_stop why, int first_signal)
{
    if (a->stage > STAGE_RUNNING)
        return; /* the first reason counts */
    a->stop = why;
    if (a->stage == STAGE_HELD) {
        drop_held(a, EXIT_NONE, "");
        return;
    }
    a->stage = STAGE_ENDING;
    a->next_signal = first_signal;
    a->next_us = boot_us();
    attempt_tick(a, a->next_us);
}

static int64_t limit_at(const struct attempt *a);

/* Not beyond its time limit. */
static int64_t grace_ends(const struct attempt *a, int64_t now_us)
{
    int64_t limit = limit_at(a), end = now_us + a->notice.grace_us;
    return limit && limit < end ? limit : end;
}

void attempt_stop(struct attempt *a, enum jobdir_stop why, const struct jobdir_notice *n)
{
    if (a->stage == STAGE_RUNNING && n->signal) {
        a->notice = *n;
        a->in_grace = true;
        attempt_begin_end(a, why, n->signal);
    } else if (a->stage == STAGE_ENDING && a->in_grace && !n->signal) {
        a->next_us = boot_us();
        attempt_tick(a, a->next_us);
    } else {
        attempt_begin_end(a, why, SIGTERM);
    }
}

/* The first of a notice's signals; TERM is next. */
static void give_notice(struct attempt *a, int64_t now_us)
{
    int sig = a->notice.signal;
    a->notice.signal = 0;
    tree_signal(&a->tree, sig);
    tree_signal(&a->tree, SIGCONT);
    a->next_signal = SIGTERM;
    a->next_us = grace_ends(a, now_us);
}

/*
 * docker's clients are beside the tree. One that has nothing running yet would
 * go on to start it, one whose container was killed long ago hangs. What the
 * daemon makes of it all the same is removed by container_clear.
 */
static void end_clients(struct attempt *a, int sig, int64_t now_us)
{
    bool unborn = sig == SIGTERM && !tree_populated(&a->tree);
    bool late = a->killed_us && now_us - a->killed_us >= CLIENT_QUIT_US;
    if (!job_container_is_docker(&a->spec->job.container) || !(unborn || late))
        return;
    for (size_t i = 0; i < a->spec->task_count; i++)
        if (a->tasks[i].running)
            (void)kill(a->tasks[i].process.pid, SIGKILL); /* it may have ended */
}

static void send_next(struct attempt *a, int64_t now_us)
{
    int sig = a->next_signal;
    if (a->notice.signal) {
        give_notice(a, now_us);
        return;
    }
    a->in_grace = false;
    end_clients(a, sig, now_us);
    tree_signal(&a->tree, sig);
    if (sig != SIGKILL)
        tree_signal(&a->tree, SIGCONT); /* what is stopped could not hear it */
    else if (!a->killed_us)
        a->killed_us = now_us;
    a->next_signal = sig == SIGHUP ? SIGTERM : SIGKILL;
    a->next_us = now_us + (sig == SIGHUP    ? HANGUP_GRACE_US
                           : sig == SIGKILL ? KILL_AGAIN_US
                                            : a->spec->kill_grace_us);
}

static void give_up(struct attempt *a)
{
    set_trouble(a, EXIT_LOST, "a process of it could not be killed for 60 seconds");
    log_line(LOG_ERROR, "job %" PRIu64 ".%" PRIu32 ": %s", a->spec->job_id, a->spec->attempt,
             a->trouble);
    a->stage = STAGE_OVER;
}

static void clear(struct attempt *a, int64_t now_us)
{
    if (!tree_populated(&a->tree)) {
        a->stage = STAGE_OVER;
        return;
    }
    a->next_signal = SIGKILL;
    send_next(a, now_us);
    attempt_reap(a);
    if (!tree_populated(&a->tree))
        a->stage = STAGE_OVER;
}

/* ---- time --------------------------------------------------------------- */

static int64_t limit_at(const struct attempt *a)
{
    int64_t at;
    if (a->spec->job.limit_us <= 0 ||
        __builtin_add_overflow(a->started.boot_us, a->spec->job.limit_us, &at))
        return 0;
    return at;
}

/* When the signal before the limit is due; 0: there is none, or it was sent. */
static int64_t warning_at(const struct attempt *a)
{
    int64_t limit = limit_at(a);
    const struct job_warning *w = &a->spec->job.warning;
    if (!limit || !w->signal || a->warned || a->stage != STAGE_RUNNING)
        return 0;
    int64_t at = limit - w->before_us;
    return at > 0 ? at : 1;
}

static int64_t stage_deadline(const struct attempt *a)
{
    switch (a->stage) {
    case STAGE_HELD:
        return a->started.boot_us + a->spec->attach_wait_us;
    case STAGE_RUNNING:
        return limit_at(a);
    case STAGE_ENDING:
    case STAGE_CLEARING:
        return a->next_us;
    case STAGE_OVER:
        break;
    }
    return 0;
}

static int64_t sooner(int64_t a_us, int64_t b_us)
{
    return b_us && (a_us == 0 || b_us < a_us) ? b_us : a_us;
}

int64_t attempt_deadline(const struct attempt *a)
{
    return sooner(sooner(stage_deadline(a), warning_at(a)), sooner(a->oom_us, a->door_us));
}

void attempt_oom(struct attempt *a)
{
    a->oom_us = boot_us() + OOM_LOOK_US;
}

/* A task whose memory limit killed a part of it dies whole. */
static void look_for_oom(struct attempt *a)
{
    a->oom_us = 0;
    for (unsigned i = 0; i < a->spec->task_count; i++) {
        struct job_exit ignored;
        bool used = a->tasks[i].running || a->spec->job.srun_tasks;
        uint64_t kills = used ? tree_usage(&a->tree, i, &ignored) : 0;
        if (!kills)
            continue;
        a->tasks[i].oom_kills = kills; /* docker's daemon removes the cgroup that counted them */
        tree_kill_task(&a->tree, i);
    }
}

static void open_door(struct attempt *a)
{
    const struct jobdir_spec *s = a->spec;
    struct err e = ERR_INIT;
    a->door_us = 0;
    if (attach_listen(&a->attach, s->attach_socket, s->uid, s->gid, false, &e) < 0)
        log_line(LOG_WARN, "nobody can attach: %s", e.text);
    a->attach.no_client = true;
}

void attempt_visit(struct attempt *a)
{
    if (a->stage == STAGE_RUNNING)
        visits_take(&a->visits, a->spec, &a->tree.cgroup, &a->attach);
    else
        attach_refuse_guest(&a->attach, a->stage == STAGE_HELD
                                            ? "the job has not begun yet: it waits for its client"
                                            : "the job is ending");
}

void attempt_tick(struct attempt *a, int64_t now_us)
{
    if (a->door_us && now_us >= a->door_us)
        open_door(a);
    if (a->oom_us && now_us >= a->oom_us)
        look_for_oom(a);
    if (warning_at(a) && now_us >= warning_at(a)) {
        a->warned = true;
        tree_signal(&a->tree, a->spec->job.warning.signal);
    }
    int64_t at = stage_deadline(a);
    if (at == 0 || now_us < at)
        return;
    if (a->stage == STAGE_HELD)
        drop_held(a, EXIT_NOT_STARTED, "no client came to attach; divvy run was gone");
    else if (a->stage == STAGE_RUNNING)
        attempt_begin_end(a, JOBDIR_STOP_TIMEOUT, SIGTERM);
    else if (a->killed_us && now_us - a->killed_us >= CANNOT_KILL_US)
        give_up(a);
    else if (a->stage == STAGE_CLEARING)
        clear(a, now_us);
    else
        send_next(a, now_us);
}

/* ---- the tasks ---------------------------------------------------------- */

static int64_t used_us(const struct rusage *u)
{
    return (int64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * CLOCK_SECOND + u->ru_utime.tv_usec +
           u->ru_stime.tv_usec;
}

static void task_ended(struct attempt *a, unsigned i, int status, const struct rusage *used)
{
    struct attempt_task *t = &a->tasks[i];
    struct now now = clock_now();
    t->running = false;
    a->running--;
    t->exit.task = (int)i;
    t->exit.ended_boot_us = now.boot_us;
    t->exit.ended_wall_us = now.wall_us;
    t->exit.cpu_us = used_us(used);
    uint64_t oom_kills = tree_usage(&a->tree, i, &t->exit);
    if (oom_kills < t->oom_kills)
        oom_kills = t->oom_kills;
    if (!payload_report(&t->process, &t->exit))
        verdict_task(status, oom_kills, a->stop, &t->exit);
    if (verdict_failed(&t->exit) && a->first_failed < 0)
        a->first_failed = (int)i;
    if (a->running == 0)
        enter_clearing(a);
    else if (verdict_failed(&t->exit) && !a->spec->job.keep_going && a->stage == STAGE_RUNNING)
        attempt_begin_end(a, JOBDIR_STOP_NONE, SIGTERM);
}

void attempt_reap(struct attempt *a)
{
    for (;;) {
        int status;
        struct rusage used;
        pid_t pid = wait4(-1, &status, WNOHANG, &used);
        if (pid <= 0)
            return;
        if (visits_reaped(&a->visits, pid, status))
            continue;
        for (unsigned i = 0; i < a->spec->task_count; i++)
            if (a->tasks[i].running && a->tasks[i].process.pid == pid)
                task_ended(a, i, status, &used);
    }
}

/* With srun the first task alone has a process from the beginning: the others get theirs from it. */
static unsigned own_tasks(const struct jobdir_spec *s)
{
    return s->job.srun_tasks ? 1 : (unsigned)s->task_count;
}

void attempt_release(struct attempt *a)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    a->stage = STAGE_RUNNING;
    for (unsigned i = 0; i < own_tasks(a->spec); i++) {
        int streams[3];
        bool attached = a->spec->job.attached;
        if (attached)
            attach_streams(&a->attach, streams);
        if (i > 0)
            streams[0] = nothing; /* one input cannot be read by several */
        struct err e = ERR_INIT;
        if (payload_release(&a->tasks[i].process, attached ? streams : NULL,
                            i == 0 && a->attach.pty, &e) < 0)
            log_line(LOG_WARN, "task %u: %s", i, e.text); /* it is dead already: reaped as such */
    }
    if (nothing >= 0)
        (void)close(nothing); /* the tasks have it */
    attach_handed(&a->attach);
    if (a->spec->attach_socket && !a->spec->job.attached && !a->attach.path)
        a->door_us = boot_us() + DOOR_US;
    KILLPOINT(SUPERVISE_LETGO);
}

static int spawn_tasks(struct attempt *a, struct err *e)
{
    for (unsigned i = 0; i < own_tasks(a->spec); i++) {
        struct payload p = { .spec = a->spec,
                             .task = i,
                             .session = &a->session,
                             .cgroup = &a->tree.cgroup,
                             .dir = a->dir };
        struct attempt_task *t = &a->tasks[i];
        int r = payload_spawn(&p, &t->process, e);
        if (r < 0)
            return r;
        t->running = true;
        a->running++;
        a->started.tasks[i].process =
            (struct jobdir_process){ .pid = t->process.pid,
                                     .start_ticks = jobdir_start_ticks(t->process.pid) };
    }
    for (size_t i = own_tasks(a->spec); i < a->spec->task_count; i++)
        a->started.tasks[i].process = a->started.tasks[0].process; /* its script is all there is */
    return 0;
}

/* ---- beginning and end -------------------------------------------------- */

static void fill_started(struct attempt *a)
{
    struct now now = clock_now();
    struct jobdir_started *s = &a->started;
    (void)snprintf(s->boot_id, sizeof s->boot_id, "%s", clock_boot_id()); /* 36 characters */
    s->boot_us = now.boot_us;
    s->wall_us = now.wall_us;
    s->supervisor =
        (struct jobdir_process){ .pid = getpid(), .start_ticks = jobdir_start_ticks(getpid()) };
    s->tasks = mem_new(a->spec->task_count * sizeof *s->tasks);
    s->task_count = a->spec->task_count;
}

static int listen_early(struct attempt *a, struct err *e)
{
    const struct jobdir_spec *s = a->spec;
    if (!s->job.attached && s->job.srun_tasks && s->attach_socket) {
        open_door(a);
        return 0;
    }
    if (!s->job.attached)
        return 0;
    if (!s->attach_socket)
        return err_set(e, -EINVAL, "an attached job needs an attach socket, and none is given");
    return attach_listen(&a->attach, s->attach_socket, s->uid, s->gid, s->job.pty, e);
}

static int run_prolog(struct attempt *a, struct err *e)
{
    struct hook h = { .name = "prolog", .program = a->spec->prolog, .dir = a->dir };
    if (!h.program)
        return 0;
    int r = hook_run(&h, a->spec, e);
    if (r == -ECANCELED)
        a->stop = jobdir_read_stop(a->dir, NULL);
    else if (r < 0)
        (void)snprintf(a->prolog, sizeof a->prolog, "%s", e->text); /* cut when too long */
    return r;
}

/* Nothing of the job lives, and its end is not told yet. */
static void run_epilog(const struct attempt *a, struct jobdir_exit *x)
{
    struct err e = ERR_INIT;
    struct hook h = { .name = "epilog", .program = a->spec->epilog, .dir = -1 };
    memcpy(x->prolog, a->prolog, sizeof x->prolog);
    if (!h.program || hook_run(&h, a->spec, &e) == 0)
        return;
    (void)snprintf(x->epilog, sizeof x->epilog, "%s", e.text); /* cut when too long */
    log_line(LOG_ERROR, "%s", e.text);
}

/* Without cgroups what opens it could not be told from what the job leaves behind. */
static int open_session(struct attempt *a, struct err *e)
{
    if (a->spec->pam && a->tree.cgroup.kind == CGROUP_NONE)
        return err_set(e, -ENOTSUP, "no PAM session without cgroups: %s",
                       a->started.tracking_reason);
    a->visits.session = &a->session;
    return session_open(&a->session, a->spec, e);
}

static int begin(struct attempt *a, struct err *e)
{
    const struct jobdir_spec *s = a->spec;
    int r = listen_early(a, e);
    if (r == 0)
        r = run_prolog(a, e);
    if (r < 0)
        return r;
    fill_started(a);
    r = tree_open(s, &a->tree, &a->started, e);
    KILLPOINT(SUPERVISE_TREE);
    if (r == 0)
        r = open_session(a, e);
    if (r == 0)
        r = spawn_tasks(a, e);
    if (r < 0)
        return r;
    KILLPOINT(SUPERVISE_HELD);
    /* Without its client nothing is let go, and that does not outlive the machine. */
    r = jobdir_write_started(a->dir, &a->started, !s->job.attached, e);
    KILLPOINT(SUPERVISE_STARTED);
    if (r == 0 && !s->job.attached)
        attempt_release(a);
    return r;
}

static void fill_exit(struct attempt *a, struct jobdir_exit *x)
{
    struct now now = clock_now();
    x->tasks = mem_new(a->spec->task_count * sizeof *x->tasks);
    x->task_count = a->spec->task_count;
    for (unsigned i = 0; i < a->spec->task_count; i++) {
        struct attempt_task *t = &a->tasks[i];
        (void)tree_usage(&a->tree, i, &t->exit); /* once more: what outlived the task counts */
        t->exit.task = (int)i;
        if (a->trouble_kind == EXIT_NOT_STARTED || a->trouble_kind == EXIT_CANCELLED)
            t->exit.kind = a->trouble_kind;
        else if (t->running)
            t->exit.kind = EXIT_LOST;
        else if (i >= own_tasks(a->spec)) /* whatever srun ran there, its own end told of */
            t->exit.kind = EXIT_CODE;
        x->tasks[i] = t->exit;
    }
    verdict_job(x->tasks, x->task_count, a->first_failed, a->stop, &x->job);
    if (a->trouble_kind != EXIT_NONE) {
        x->job.kind = a->trouble_kind;
        x->job.value = 0;
        (void)snprintf(x->job.text, sizeof x->job.text, "%s", a->trouble); /* cut when too long */
    }
    x->job.ended_boot_us = now.boot_us;
    x->job.ended_wall_us = now.wall_us;
}

/* A disk that is full now need not stay so, and this file is all that tells how it ended. */
static int write_exit(struct attempt *a, const struct jobdir_exit *x, bool ran, struct err *e)
{
    bool first = !ran || a->spec->job.attached; /* else `started` is on it */
    for (bool told = false;; told = true) {
        int r = jobdir_write_exit(a->dir, x, first, e);
        if (r == 0 || !ran || r == -ENOENT)
            return r;
        if (!told)
            log_line(LOG_ERROR, "%s; trying again every %d s", e->text, WRITE_AGAIN_S);
        (void)nanosleep(&(struct timespec){ .tv_sec = WRITE_AGAIN_S }, NULL); /* short is fine */
    }
}

static void remove_leftovers(const struct attempt *a)
{
    struct leftover l = {
        .shm = "/dev/shm", .proc = "/proc", .uid = a->spec->uid, .since_wall_us = a->started.wall_us
    };
    if (!a->spec->remove_shm || l.uid == 0 || l.uid == geteuid() || a->trouble_kind == EXIT_LOST)
        return;
    unsigned n = leftover_remove(&l);
    if (n)
        log_line(LOG_NOTE, "removed %u pieces of shared memory that were left", n);
}

static int finish(struct attempt *a, bool ran, struct err *e)
{
    struct jobdir_exit x = { .tasks = NULL };
    fill_exit(a, &x);
    KILLPOINT(SUPERVISE_OVER);
    if (ran && a->spec->job.container.image && a->trouble_kind != EXIT_LOST)
        container_clear(a->spec, &a->tree);
    session_close(&a->session);
    if (ran)
        remove_leftovers(a);
    run_epilog(a, &x);
    int r = write_exit(a, &x, ran, e);
    KILLPOINT(SUPERVISE_EXIT);
    visits_done(&a->visits);
    if (a->attach.path)
        attach_end(&a->attach, &x.job);
    jobdir_exit_done(&x);
    tree_close(&a->tree); /* the next one on that slice does not wait for it */
    return r;
}

/* Something could not be had before `started`: whatever is held ends unused. */
static void abandon(struct attempt *a, const struct err *e)
{
    drop_held(a, a->stop == JOBDIR_STOP_NONE ? EXIT_NOT_STARTED : EXIT_CANCELLED, e->text);
    tree_signal(&a->tree, SIGKILL);
    while (a->running > 0 && wait4(-1, NULL, 0, NULL) > 0)
        a->running--;
    for (unsigned i = 0; i < a->spec->task_count; i++)
        a->tasks[i].running = false;
}

int attempt_run(int dir, const struct jobdir_spec *spec, struct err *e)
{
    struct attempt a = { .dir = dir,
                         .spec = spec,
                         .tree = TREE_INIT,
                         .session = SESSION_INIT,
                         .attach = ATTACH_INIT,
                         .first_failed = -1 };
    a.tasks = mem_new(spec->task_count * sizeof *a.tasks);
    for (size_t i = 0; i < spec->task_count; i++)
        a.tasks[i].process = (struct payload_process)PAYLOAD_PROCESS_INIT;
    struct err why = ERR_INIT;
    AUTO(loop) struct loop l = LOOP_INIT;
    int r = loop_open(&l, dir, &why);
    if (r == 0)
        r = begin(&a, &why);
    if (r == 0) {
        loop_run(&l, &a);
    } else {
        log_line(LOG_ERROR, "%s", why.text);
        abandon(&a, &why);
    }
    r = finish(&a, r == 0, e);
    jobdir_started_done(&a.started);
    free(a.tasks);
    return r;
}
