/*
 * attempt.h - one attempt, from its folder to its exit.
 *
 * The stages, in order: the tasks are made and held; `started` is written; an
 * attached job waits for its client; the tasks run; they are told to end (by
 * a stop, a limit, a failed sibling or a lost client); what is left is killed;
 * when nothing lives, `exit` is written. Every stage but the last two may be
 * left out; none is entered twice.
 */
#ifndef DIVVY_SUPERVISE_ATTEMPT_H
#define DIVVY_SUPERVISE_ATTEMPT_H

#include "jobdir/jobdir.h"
#include "supervise/attach.h"
#include "supervise/payload.h"
#include "supervise/session.h"
#include "supervise/tree.h"
#include "supervise/visit.h"

enum stage {
    STAGE_HELD, /* tasks made, nothing of the user's runs: waits for a client */
    STAGE_RUNNING,
    STAGE_ENDING,   /* told to end: HUP or a notice, TERM, KILL */
    STAGE_CLEARING, /* every task has ended; what they left is killed */
    STAGE_OVER,     /* nothing lives, or it cannot be killed */
};

struct attempt_task {
    struct payload_process process;
    bool running;
    struct job_exit exit;
    uint64_t oom_kills; /* the most that were seen */
};

struct attempt {
    int dir; /* of the job folder; borrowed */
    const struct jobdir_spec *spec;
    struct jobdir_started started;
    struct tree tree;
    struct session session;
    struct attach attach; /* path NULL: nobody can attach (yet) */
    bool warned;          /* the signal before the time limit was sent */
    bool in_grace;        /* STAGE_ENDING: it has its notice, and TERM is still to come */
    struct jobdir_notice notice;
    int64_t door_us; /* when to make its socket, for a job that is not attached; 0: not */
    struct visits visits;
    struct attempt_task *tasks;
    unsigned running;
    int first_failed; /* -1: none */
    enum stage stage;
    enum jobdir_stop stop;        /* why it ends; NONE for a failed sibling */
    int next_signal;              /* to send at next_us in STAGE_ENDING */
    int64_t next_us;              /* CLOCK_BOOTTIME; 0: nothing due */
    int64_t oom_us;               /* when to look for what the memory limit killed; 0: not now */
    int64_t killed_us;            /* when KILL was first sent; 0: not yet */
    char prolog[JOBDIR_TEXT_MAX]; /* why it failed; "": it did not */
    char trouble[256];            /* for the job's exit, when it is not the tasks' own */
    enum exit_kind trouble_kind;
};

/*
 * Runs it to the end. The caller holds the lock and has blocked SIGCHLD,
 * SIGTERM and SIGINT. 0: `exit` is written. Negative: it could not be, and
 * nothing of the job has run.
 */
int attempt_run(int dir, const struct jobdir_spec *spec, struct err *e);

/* Parts, for loop.c. */
void attempt_begin_end(struct attempt *a, enum jobdir_stop why, int first_signal);
/* As the file `stop` says; one without a notice cuts short what time another one gave. */
void attempt_stop(struct attempt *a, enum jobdir_stop why, const struct jobdir_notice *n);
void attempt_release(struct attempt *a);
void attempt_reap(struct attempt *a);
/* Some task has reached its memory limit; the kernel is about to kill one process of it. */
void attempt_oom(struct attempt *a);
void attempt_tick(struct attempt *a, int64_t now_us);
/* Somebody wants to run a command inside: after ATTACH_VISIT. */
void attempt_visit(struct attempt *a);
int64_t attempt_deadline(const struct attempt *a);

#endif
