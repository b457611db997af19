/*
 * daemon.h - divvyd: compare wanted with actual, take one step, repeat.
 *
 * Three truths: the hardware (children.h), the store, the job folders. The
 * loop holds a picture of all three in memory. Whatever happens (a request, a
 * snapshot, an exit, a timer) changes the picture and writes the change into
 * the open transaction; at the end of the turn (turn.c) the transaction is
 * committed, and only then is anything answered, sent or started. A commit
 * that fails throws the picture away and reads it again, as a start does.
 *
 * Who does what:
 *     main.c      options, opening and closing
 *     turn.c      the order of things in one turn
 *     children.c  the processes that hold the driver
 *     cards.c     what is known of cards and slices
 *     inventory.c snapshot + store + plans + holders = the inventory
 *     owners.c    whose a process on a card is
 *     submit.c    a job comes in
 *     jobs.c      live jobs and their transitions
 *     cuts.c      plans on their way through `act`
 *     layouts.c   changes of layouts
 *     layout_orders.c  those that operators ask for
 *     layout_reboots.c cards whose new MIG mode waits for a reboot
 *     layout_journal.c what a command without a daemon left
 *     maintenance.c cards that an administrator has for a while
 *     maintenance_return.c and card by card gives them back
 *     windows.c   maintenance that is planned
 *     keeps.c     layouts that cards keep, over reboots and driver reloads
 *     attempts.c  job folders, supervisors, exits
 *     idle.c      whether what was handed out is used
 *     idle_hold.c what follows when it is not
 *     bin.c       folders that are over
 *     launcher.c  how supervisors are started
 *     told.c      what is said of a job to those who are told:
 *     tells.c     its owner's commands
 *     hooks.c     the administrator's program that is told of events
 *     preempt.c   jobs that are stopped for others
 *     recover.c   what a restart finds that nobody expected
 *     units.c     supervisors started by the service manager
 *     looks.c     whoever wants the cards as they are now
 *     tidy.c      what an owner left on a card, before the next one comes
 *     samples.c   what attempts were seen to use of their cards
 *     ledger.c    what was held and used, day by day
 *     promise.c   starts that were announced, and how they came
 *     bind.c      what a task is told and may open
 *     limits.c    what a task may use beside its card
 *     container.c what a job in a container needs, and the CDI specification
 *     docker.c    what a dead supervisor left with docker's daemon
 *     check.c     whether divvy.yaml is what was meant
 *     accounts.c  who may charge whom
 *     shares.c    the share tree, told
 *     node.c      what the machine has for jobs beside its cards
 *     waits.c     what keeps a job out of line
 *     actions.c   what is asked of jobs that are there
 *     answers.c   what the API is told
 *     why.c       why a job waits, term by term
 *     why_line.c  and who goes before it
 *     why_cards.c and who has the cards meanwhile
 *
 * All of it runs in one thread. Nothing here blocks but the commit.
 */
#ifndef DIVVY_DAEMON_DAEMON_H
#define DIVVY_DAEMON_DAEMON_H

#include <systemd/sd-event.h>

#include "api/api.h"
#include "apply/apply.h"
#include "apply/lock.h"
#include "base/map.h"
#include "cgroup/gate.h"
#include "config/divvyd.h"
#include "daemon/bin.h"
#include "daemon/children.h"
#include "daemon/launcher.h"
#include "jobdir/jobdir.h"
#include "model/array.h"
#include "model/promise.h"
#include "sched/sched.h"
#include "store/cards.h"
#include "store/jobs.h"
#include "store/journal.h"
#include "store/ledger.h"
#include "store/store.h"
#include "store/usage.h"
#include "store/waits.h"

/* Where this Divvy lives; all owned. */
struct paths {
    char *root;        /* "/" or a private root */
    char *config;      /* ROOT/etc/divvy/divvy.yaml */
    char *state;       /* ROOT/var/lib/divvy */
    char *jobs;        /* ROOT/var/lib/divvy/jobs */
    char *run;         /* ROOT/run/divvy */
    char *attach;      /* ROOT/run/divvy/jobs */
    char *socket;      /* ROOT/run/divvy/divvyd.sock */
    char *driver_root; /* where /dev and /proc of the driver stand */
    char *self;        /* this program */
    char *supervisor;  /* divvy-supervise */
    char *srun;        /* folder of the srun that jobs find */
    char *cdi;         /* the CDI specification to keep up to date; NULL: none */
};

/* What the daemon remembers of a card beside its last snapshot. */
struct card_memory {
    struct card_row row;
    struct card last;        /* as it was last seen, brought up to date by steps */
    uint64_t *owners;        /* job of each process of `last`; 0: none of ours */
    bool present;            /* in the last snapshot */
    bool seen;               /* `last` was filled at least once */
    bool silent;             /* does not answer the driver */
    int64_t fault_boot_us;   /* when it last told of a fault of its own; 0: never */
    int64_t changed_boot_us; /* a step on it was answered then: older snapshots say nothing of it */
    int64_t idle_since_boot_us; /* 0: somebody holds it */
    bool was_held;              /* since this daemon looks at it */
    bool idle_known;            /* its memory was seen with nobody on it */
    uint64_t idle_used_bytes;   /* and so much of it was in use then */
    int64_t restore_boot_us;    /* `act` was asked to set its settings back then; 0: it is not */
    struct card_lock lock;      /* held while the card is in pool queue */
    char lock_trouble[160];     /* why it is not held; "" */
    char *layout;               /* the slices that it is to keep (keeps.c); NULL: none */
    bool seek;                  /* it may not have them: they are to be looked for */
    int64_t seek_boot_us;       /* since when */
    int64_t seek_again_us;      /* a restore that failed is not tried before */
    bool given_up;              /* they were not to be had back in time */
    bool was_away;              /* the card did not answer in the snapshot before */
    char seek_trouble[ERR_TEXT_MAX]; /* why it has not got them back; "" */
    json_t *identities; /* slices whose UUID changed when they were made again; or NULL */
    struct board *file; /* its board's file, once it was looked for; or NULL */
    bool file_sought;
    enum card_health told; /* what the log said of it last; CARD_OK at first */
};

/* A plan on its way through `act`. */
struct cut {
    struct apply apply;
    bool open;        /* it is not over: `apply` is set */
    uint64_t plan_id; /* its journal; 0: there never was one */
    bool cancelled;   /* it is undone as soon as the step under way is answered */
    struct job *job;  /* whose slices these are; NULL: an operator's, a layout */
};

/* Whether an attempt does nothing with what it holds, as far as this divvyd saw (idle_hold.c). */
struct idle_hold {
    int64_t since_boot_us;  /* idle at every look since then; 0: it is not, or nobody can say */
    int64_t warned_boot_us; /* its owner was told; 0: not */
    int64_t cpu_us;         /* at the last look; -1: not asked */
    enum { IDLE_NO_PROCESS = 0, IDLE_NO_LOAD, IDLE_NO_CPU } how;
    bool goes_back; /* when the time is up: back to the queue, not ended */
};

/* One attempt that is alive: from its place to its end. */
/* Of the containers that docker's daemon made, after its supervisor died: docker.c. */
struct docker_clearing {
    int said;         /* pipe of the process that does it; 0: none */
    bool done;        /* nothing of them is left, or comes */
    int64_t again_us; /* CLOCK_BOOTTIME: not tried again before */
};

struct attempt {
    uint32_t number;
    struct place place;
    int64_t placed_boot_us;
    int64_t started_boot_us, started_wall_us; /* 0: not yet */
    struct cut cut;                           /* of its slices */
    bool launch;            /* after the commit: make the folder and start the supervisor */
    bool stop;              /* after the commit: write the `stop` file */
    bool remove;            /* after the commit: remove the folder; the attempt is over */
    bool faulted;           /* a card of it failed under it: the time is not charged */
    bool requeue;           /* it goes back to the queue once it is clear */
    uint64_t preempted_for; /* the job for which it is stopped; 0: nobody's */
    bool unlocked;          /* clocks that it may have locked were lifted */
    bool asked;             /* and somebody asked for that */
    bool unit_asked;        /* the service manager was asked to start it, and has not answered */
    enum jobdir_stop stop_reason;
    struct attempt_samples samples; /* what was seen of it on its cards */
    uint64_t samples_peak_kept;     /* of these in the store */
    int64_t samples_kept_us;        /* since when (boot time) */
    struct job_exit exit;           /* kind EXIT_NONE until it is known */
    int64_t exit_seen_boot_us;      /* the slices are free after a snapshot younger than this */
    pid_t supervisor;               /* 0: not known */
    pid_t *task_pids;               /* first process of each task; owned */
    size_t task_pid_count;          /* 0: it has not started */
    char isolation[16];             /* "" until it started */
    int enforced;                   /* enum job_enforced: limits that hold for every task */
    uint64_t mem_bytes;             /* and how much that is of the first; 0: none, or not held */
    uint32_t cpu_milli, pids;
    char *cpus;             /* owned, or NULL */
    char *isolation_why;    /* the same: why its isolation is none */
    sd_event_source *watch; /* inotify on its folder */
    struct docker_clearing clearing;
    /* Whether what it holds is used: see idle.c. */
    int64_t looked_boot_us; /* of the snapshot counted last; 0: none */
    int64_t used_boot_us;   /* when a process was last seen on it; 0: never */
    double seen_card_us, idle_card_us, measured_card_us, busy_card_us; /* model/ledger.h */
    struct idle_hold idle;
};

/* What the jobs of one submission wait for together: a job, or the tasks of an array. */
struct waits {
    uint64_t id;               /* of the job, or of the array's first task */
    uint32_t jobs;             /* that have not ended */
    struct depend_list depend; /* what is not met yet */
    char *never;               /* why it never will be, and the jobs stay all the same; or NULL */
    bool keep_invalid;
    bool stale;             /* to be looked at in this turn */
    uint64_t blocker;       /* the earlier job that a singleton waits for */
    struct job_array array; /* count 0: none */
    uint32_t slots;         /* of running_max, given to tasks */
    uint32_t next;          /* no task before this position waits for a slot */
};

/* A job that has not ended. Pending ones cost this, their name, and sched's part. */
struct job {
    struct daemon *daemon;
    uint64_t id;
    uid_t uid;
    gid_t gid;
    const char *user, *account, *qos; /* interned */
    char *name;                       /* owned */
    char *reason;                     /* owned, or NULL */
    struct request request;
    int64_t limit_us;
    uint64_t mem_bytes; /* of the machine, for each task: as it was asked for; 0: it was not */
    uint32_t cpu_milli;
    int64_t submit_wall_us;
    double charged_card_us;                  /* of attempts that are over, when it was loaded */
    int64_t begin_wall_us, deadline_wall_us; /* 0: none */
    int64_t expected_wall_us;                /* its start as it was announced; 0: it was not */
    struct waits *waits;                     /* or NULL */
    uint32_t array_index;
    enum job_hold hold;
    bool blocked;  /* kept out of line by waits.c */
    bool slot;     /* its array's limit lets it run */
    bool attached; /* a `divvy run` */
    uint8_t tells; /* bits of enum job_tells */
    enum job_state state, verdict;
    uint32_t attempts;       /* number of the last one */
    uint32_t leftover;       /* after the commit: remove the folder of this attempt; 0: none */
    struct attempt *attempt; /* NULL while pending */
};

enum owed_kind { OWED_SUBMITTED, OWED_OK, OWED_JSON, OWED_ERROR };

/* An answer to be given after the commit. */
struct owed {
    struct api_request *request;
    enum owed_kind kind;
    uint64_t id;
    char *note;   /* or NULL */
    json_t *json; /* OWED_JSON; owned */
    struct err err;
};

struct stray {
    uint64_t job_id;
    uint32_t attempt;
};

struct daemon {
    struct paths paths;
    struct divvyd_config config;
    bool private_root; /* not root: own uid only, no user switch */
    int64_t started_wall_us;
    sd_event *event;
    sd_event_source *turn, *api_io, *api_timer, *wake_timer, *look_timer, *moment_timer,
        *commit_timer, *sigterm, *sigint, *sighup;
    struct store *store;
    struct api *api;
    struct sched *sched;
    struct hooks *hooks; /* NULL: nobody is told of events */
    struct tell *tells;  /* owners to be told, before the commit */
    size_t tell_count, tell_alloc;
    struct bin bin; /* folders to be removed */
    struct launcher launcher;
    struct units *units; /* NULL: supervisors are started by divvyd itself */
    struct children children;
    char **child_options;
    enum isolation isolation; /* what the gate gives here */
    char isolation_why[ERR_TEXT_MAX];
    struct cgroup_host cgroup_host;
    char *cgroup_root; /* "": no cgroups; isolation_why or tracking tells */

    /* The picture. */
    struct card_memory **cards; /* by ordinal */
    size_t card_count, card_alloc;
    struct slice_row *slices; /* living ones */
    size_t slice_count, slice_alloc;
    char driver_version[32];
    char *cdi_written; /* what the specification was made of; NULL: it is not there */
    char driver_trouble[ERR_TEXT_MAX]; /* "": fine */
    bool snapshot_came;                /* at least one since the start */
    bool serves;                       /* the API is answered */
    int64_t serve_boot_us;             /* from then on at the latest, cards or not */
    struct now snapshot_taken;
    struct inventory inventory;
    struct map jobs;       /* id -> struct job */
    struct map waits;      /* id of a job or of an array's first task -> struct waits */
    struct map words;      /* interned users and accounts */
    struct map user_names; /* uid -> struct known_name (accounts.c) */
    uint64_t ended[JOB_STATES];
    struct promises promises;
    struct job **active; /* jobs with an attempt, oldest attempt first */
    size_t active_count, active_alloc;
    struct layouts *layouts;
    struct maintenance *maintenance;
    struct windows *windows;      /* maintenance that is planned */
    struct cut *cutting;          /* whose step is with `act` now, or about to be sent */
    bool send_step;               /* after the commit: hand it over */
    bool release_asked, released; /* of `watch`, for the step that is about to be sent */

    /* What this turn has to do. */
    int64_t cut_lost_boot_us; /* what `recover_cuts` is decided by must have been seen after this */
    bool inventory_stale, schedule, recover_cuts;
    bool waits_stale;       /* somebody's waits are */
    int64_t moment_wall_us; /* the next begin or deadline; INT64_MAX: none */
    bool look_soon;         /* something of a dead supervisor is being killed */
    struct owed *owed;
    size_t owed_count, owed_alloc;
    struct looker *lookers; /* looks.c */
    size_t looker_count, looker_alloc;
    struct job **todo; /* jobs with launch, stop or remove set */
    size_t todo_count, todo_alloc;
    struct stray *strays; /* attempts that the store knows nothing of */
    size_t stray_count, stray_alloc;
    int64_t commit_boot_us;         /* the open transaction is committed then */
    int64_t prune_boot_us;          /* old jobs are looked for again then */
    int64_t stalled_until_us;       /* the store took no write: nothing is tried before */
    char stalled_why[ERR_TEXT_MAX]; /* and why */

    /* What an answer borrowed until the next turn. */
    struct job_spec view_spec;
    struct place view_place;
    char *view_words[10];
};

/* ---- turn.c ---- */
int turn_open(struct daemon *d, struct err *e);
/* Begins the turn's transaction unless it is open. False: the store takes no write now. */
bool turn_write(struct daemon *d);
/*
 * The same for what a job's folder tells a divvyd that comes back as well: it is
 * committed with the next write, some milliseconds later at the latest. Until
 * then no hook is run.
 */
bool turn_note(struct daemon *d);
void turn_owe(struct daemon *d, const struct owed *o);
void turn_todo(struct daemon *d, struct job *j);

/* ---- cards.c ---- */
int cards_load(struct daemon *d, struct err *e);
void cards_done(struct daemon *d);
void cards_snapshot(struct daemon *d, struct snapshot *take);
void cards_silent(struct daemon *d, const struct driver_skip *card, bool silent);
/* A step was carried out: the picture and the store's slices follow. */
void cards_step_done(struct daemon *d, const struct step *s, uint64_t job_id);
struct card_memory *cards_find(const struct daemon *d, const char *uuid);
/* What the store has of a living slice; NULL: nothing. */
struct slice_row *cards_slice(const struct daemon *d, const char *uuid, uint32_t gi, uint32_t ci);
int cards_set(struct daemon *d, uint32_t ordinal, int pool, int mode, struct err *e);
/* Was this event the card's own fault (its memory, its bus), not a program's? */
bool cards_xid_is_fault(uint64_t xid);
void cards_quarantine(struct daemon *d, const char *uuid, const char *why);
/* And back. */
void cards_release(struct daemon *d, struct card_memory *m);
/* No reset works on it: till the machine is rebooted its MIG mode is not turned for a job. */
void cards_no_turn(struct daemon *d, const char *uuid);
/* Only who holds a card's lock changes it. -EBUSY: who else does. It is kept while needed. */
int cards_lock(struct daemon *d, struct card_memory *m, struct err *e);
/* The generation of a living slice; 0: not known. */
uint64_t cards_generation(const struct daemon *d, const char *card_uuid, uint32_t gi, uint32_t ci);
/* Does the driver list a process on any part of this place, in a snapshot younger than `since`? */
bool cards_clear(const struct daemon *d, const struct place *p, int64_t since_boot_us);

/* ---- tidy.c ---- */
/* With a fresh snapshot: keeps in mind how cards look that nobody has. */
void tidy_learn(struct daemon *d);
/*
 * Of an attempt whose processes are gone: true when its cards are as the next
 * owner may find them, or take no more jobs. False: something is being set back
 * or waited for; asked again when that is answered, and with each snapshot.
 */
bool tidy_cards(struct job *j, int64_t waited_us);
/* The answer of `act`; `what` NULL: it went away. */
void tidy_restored(struct daemon *d, int code, const struct driver_restore *what,
                   const struct err *why);
/* ---- idle.c ---- */
/* Counts, for every running attempt, what it used of what it holds since the last snapshot. */
void idle_look(struct daemon *d, struct now taken);

/* ---- idle_hold.c ---- */
/*
 * A running job was looked at, the last time at `since_us`; `seen`: nothing was
 * missed in between. Warns its owner, and ends or requeues it, as divvy.yaml's
 * `idle` says. What was not seen is held against nobody: the clock begins anew.
 */
void idle_hold_look(struct job *j, int64_t since_us, int64_t until_us, bool seen);
/* What its owner is warned of; NULL: nothing. The caller frees. */
char *idle_words(const struct job *j, int64_t now_us);

/* ---- ledger.c ---- */
/* The attempt of `j` ended: it goes into the history and into the days it held something on. */
int ledger_end(struct job *j, enum job_state outcome, struct now now, struct err *e);
/* What was handed out, by ret->by, on [ret->from_day, ret->to_day), with what runs still. */
int ledger_sum(struct daemon *d, struct ledger *ret, struct err *e);
int ledger_history(struct daemon *d, const struct history_filter *f, struct api_jobs *out,
                   struct err *e);

/* ---- samples.c ---- */
/* With a fresh snapshot: what each attempt has of its cards now. */
void samples_take(struct daemon *d);
/* How busy this part of what j holds was since j has it; false: not told. */
bool samples_load(const struct job *j, const struct placed *item, uint32_t *ret_percent);
/* Into the exit of an attempt that ended. */
void samples_fill_exit(struct attempt *a);

/* ---- inventory.c ---- */
/* Makes the inventory anew from what is remembered, the plans under way and who holds what. */
void cards_rebuild(struct daemon *d);

/* ---- owners.c ---- */
/* The live job that a process belongs to, by its cgroup, its ancestors or its mark; NULL: none of ours. */
struct job *owner_of(struct daemon *d, const struct gpu_process *p);

/* ---- jobs.c ---- */
int jobs_load(struct daemon *d, struct err *e);
void jobs_done(struct daemon *d);
struct job *jobs_find(const struct daemon *d, uint64_t id);
/* Enters a new job; its row is already in the transaction. */
struct job *jobs_add(struct daemon *d, const struct job_row *row);
/*
 * The only way a live job changes state: asks job_next_state, writes, wakes
 * whoever waits. `reason` NULL keeps the one that is there. A job that ended
 * is forgotten at the end of the turn. False: the store failed.
 */
bool job_move(struct job *j, enum job_event ev, const char *reason);
bool job_cancel(struct job *j, const char *who, struct err *e);
/* One that starts or runs is told to end, and is `verdict` then. False: the store failed. */
bool job_stop(struct job *j, enum job_state verdict, enum jobdir_stop how, const char *reason);
/* The same, but back to its old place in the queue. -ENOSPC and others: the store failed. */
int job_send_back(struct job *j, enum job_state verdict, enum jobdir_stop how, const char *reason,
                  struct err *e);
/* Ends what runs of it and puts it back to its old place; `reason` says who wanted that. */
int job_requeue(struct job *j, const char *reason, struct err *e);
/* Starts what can start. */
void jobs_schedule(struct daemon *d);

/* ---- promise.c ---- */
int promises_load(struct daemon *d, struct err *e);
/* After a cycle: keeps what is announced to the one that cards are kept for, the first time. */
void promise_note(struct daemon *d, struct now now);
/* It runs now. */
void promise_kept(struct job *j);

/* ---- waits.c ---- */
/* Before the jobs themselves are entered. */
int waits_load(struct daemon *d, struct err *e);
int waits_enter(struct daemon *d, const struct waits_row *row, struct err *e);
void waits_done(struct daemon *d);
/* A job was entered (array_id 0: no array's), or is about to be freed. */
void waits_join(struct job *j, uint64_t array_id);
void waits_leave(struct job *j);
/* Puts a pending job in line, or out of it, as things are. */
void waits_apply(struct job *j);
/* Its hold was changed. */
void waits_hold(struct job *j);
/* It started or ended: who waits for it is looked at in this turn. */
void waits_changed(struct job *j);
/* Dependencies that are met, or cannot be any more; tasks whose array lets them run. */
void waits_turn(struct daemon *d);
/* Begin times and deadlines that have come. */
void waits_clock(struct daemon *d);
/* The time limit of an attempt that starts now: its own, or what its deadline leaves. */
int64_t waits_limit(const struct job *j, int64_t limit_us, int64_t now_wall_us);
/* "16:40", with the day where that is another one. */
void waits_add_moment(struct text *t, int64_t wall_us, int64_t now_wall_us);
/* In words, when the start that is kept for it is too late for its deadline; NULL: it is not. */
char *waits_too_late(const struct job *j, const struct sched_explanation *x, struct now now);
/* Why it is not in line; NULL: it is. The caller frees. */
char *waits_words(const struct job *j);
/* Can this be waited for at all? */
int waits_check(struct daemon *d, const struct job_spec *s, struct err *e);

/* ---- actions.c ---- */
void op_act(void *ctx, struct api_request *req, const struct api_caller *who, uint64_t id,
            enum job_action what, const char *indices);

/* ---- preempt.c ---- */
/* Stops those that have to go for one that waits, where their classes say so. */
void preempt_for_others(struct daemon *d, struct now now);
/* How often, when and for whom it was stopped so, into its view. Reads the store. */
void preempt_show(struct daemon *d, uint64_t id, struct job_view *v);
/* It has just become ready to start: not so, if it was to be stopped meanwhile. */
void preempt_ready(struct job *j);
/* What it is told before TERM, if it is stopped for another and its class wants that. */
struct jobdir_notice preempt_notice(const struct job *j);

/* ---- cuts.c ---- */
/* Every open one in turn; begin with *i 0, NULL ends. */
struct cut *cuts_next(const struct daemon *d, size_t *i);
void cut_begin(struct job *j, const struct plan *p);
/* The same for a layout: `who` asked for it. False: the store takes nothing now. */
bool cut_begin_layout(struct daemon *d, struct cut *c, const struct plan *p, const char *who);
/* The same for one that others began; `a` is taken over when it returns true. */
bool cut_adopt_layout(struct daemon *d, struct cut *c, const struct apply *a, const char *who);
/* Is a plan of a job under way on this card? */
bool cuts_of_jobs_on(const struct daemon *d, const char *card_uuid);
int cut_load(struct job *j, struct err *e);
void cut_step_answer(struct daemon *d, int code, const struct step *done, const struct err *why);
/* Journals the next step of the oldest plan, when `act` is free. Before the commit. */
void cuts_prepare(struct daemon *d);
/* Hands it over. After the commit. */
void cuts_send(struct daemon *d);
/* `watch` has let go of the driver: a step that needs the card for itself may go. */
void cuts_released(struct daemon *d);
/* With a fresh snapshot: were steps done whose answer got lost? */
void cuts_recover(struct daemon *d);
void cut_cancel(struct daemon *d, struct cut *c);

/* ---- attempts.c ---- */
struct attempt *attempt_new(struct job *j, uint32_t number, const struct place *p);
void attempt_free(struct job *j);
/* It holds nothing any more; what is left of it goes with its folder, after the commit. */
void attempt_retire(struct job *j);
/* Compares the folder with the picture and moves the job where it stands. */
void attempt_look(struct job *j);
/* To be told of changes in its folder, which is there. */
void attempt_watch(struct job *j);
/* Folders of attempts that the store does not know, or knows as ended. */
void attempts_sweep(struct daemon *d);
/* After the commit. */
void attempt_carry_out(struct job *j);
/* Its supervisor could not be started. Nothing happens unless it is still to start. */
void attempt_start_failed(struct job *j, const struct err *why);
/* A snapshot came: are the slices of ended attempts free? */
void attempts_clear(struct daemon *d);

/* ---- recover.c ---- */
/* Is a card or slice of this place gone, so that nothing can be bound to it? */
bool recover_place_gone(const struct daemon *d, const struct place *p);
/* Removes the folder of an attempt that never began and cannot be read. True: it is to be made again. */
bool recover_torn_folder(struct daemon *d, uint64_t job_id, uint32_t attempt);
/*
 * A folder of which the store knows nothing, as after an older store was put
 * back. A job that waits takes its attempt up; any other one is told to end.
 */
void recover_unknown(struct daemon *d, uint64_t job_id, uint32_t attempt);
/* Removes what recover_unknown told to end, once it has. */
void recover_strays(struct daemon *d);
/* Files of an attempt that is over; the folder last. */
int attempt_remove_files(struct daemon *d, uint64_t job_id, uint32_t attempt, struct err *e);
/* For the bin: what a supervisor that was killed after the end left besides its folder. */
void attempt_gone(void *user, uint64_t job_id, uint32_t attempt);

/* ---- bind.c ---- */
/* Fills tasks, environment and devices of `spec` from its place. */
int bind_tasks(struct daemon *d, const struct job *j, struct jobdir_spec *spec, struct err *e);

/* ---- limits.c ---- */
/* Fills the limits of one task of `spec` from its place. */
void limits_bind(struct daemon *d, struct jobdir_spec *s, uint32_t task, const struct place *p);

/* ---- what the machine has for jobs beside its cards (node.c) ---- */

/* What is shared out: as divvy.yaml says, else what the machine has. */
uint64_t node_memory(const struct daemon *d);
uint64_t node_cpu_milli(const struct daemon *d);
/* Makes the queue count it. Parts by cards count only where tasks are held to them. */
void node_policy(const struct daemon *d, struct sched_policy *p);
void node_view(struct daemon *d, struct daemon_view *v);
void node_view_job(struct daemon *d, const struct job *j, struct job_view *v);

/* ---- docker.c ---- */
/*
 * Is nothing left of the containers that docker's daemon made for an attempt
 * whose supervisor died, and nothing on its way? `dir` is its folder. Begins to
 * remove them if not; to be asked again soon. Jobs without any: true at once.
 */
bool docker_cleared(struct job *j, int dir);
void docker_forget(struct attempt *a);

/* ---- container.c ---- */
/*
 * Can a container be run at all for this user? -ENOTSUP, -EPERM with a sentence.
 * Names docker as its runtime where that is allowed and there is no other.
 */
int container_check(const struct daemon *d, struct job_spec *s, uid_t uid, struct err *e);
/*
 * How docker makes it, and the driver's files that a container needs; those that
 * cannot be found are left out. Its tasks are bound already.
 */
void container_bind(const struct daemon *d, struct jobdir_spec *s);
/* Removes what an earlier divvyd left: until the cards are known it may be wrong. */
void cdi_open(struct daemon *d);
/* Writes the specification anew when cards or slices are not as it says. */
void cdi_follow(struct daemon *d);
void cdi_done(struct daemon *d);

/* ---- accounts.c ---- */
int accounts_usage_load(struct daemon *d, struct err *e);
/*
 * The account that `who` charges: the named one if he may, else his own.
 * Interned. -EPERM, -ENOENT with a sentence.
 */
int account_of(struct daemon *d, const struct api_caller *who, const char *named, const char **ret,
               struct err *e);
/* The class that `who` may put a job of that account into: the named one, or the default. Interned. */
int class_of(struct daemon *d, const struct api_caller *who, const char *account, const char *named,
             const char **ret, struct err *e);
/* What a place costs, in ppm of a card: its dominant share times what its cards cost. */
uint64_t charge_of(const struct daemon *d, const struct place *p);
/* Ended by the caller (share_view_done); its strings live as long as sched. */
void shares_view(struct daemon *d, struct share_view *ret);
const char *intern(struct daemon *d, const char *word);
/* Interned; the number where there is no name. Asked of the name service once a minute. */
const char *user_name(struct daemon *d, uid_t uid);
void accounts_done(struct daemon *d);

/* ---- answers.c ---- */
extern const struct api_ops daemon_api_ops;
void answers_forget(struct daemon *d);
void answers_owe_error(struct daemon *d, struct api_request *req, const struct err *e);
/* A copy that lives until the next turn, one for each slot. */
const char *answers_keep(struct daemon *d, size_t slot, const char *word);

/* The cards as they were last seen. -ENODEV: no driver, and why. */
int answers_inventory(struct daemon *d, const struct inventory **ret, struct err *e);

/* ---- looks.c ---- */
/* api.h's `look`. */
void looks_op(void *ctx, struct api_request *req);
/* Owes the cards to those who waited for a picture that has come, or that is not to be had. */
void looks_turn(struct daemon *d);
/* After api_close, which has told whoever still waited. */
void looks_done(struct daemon *d);

/* ---- submit.c: ops of api.h ---- */
void submit_op(void *ctx, struct api_request *req, const struct api_caller *who,
               struct job_spec *take_spec);
void submit_op_many(void *ctx, struct api_request *req, const struct api_caller *who,
                    struct job_spec *take_specs, size_t count);
/*
 * Writes a job whose spec is checked, puts it into the queue, and gives its number, of an
 * array the first task's. The turn is writing (turn_write).
 */
int submit_enter(struct daemon *d, const struct job_submit *by, const struct job_spec *s,
                 uint64_t *ret_id, struct err *e);

/* ---- why.c ---- */
/* Of a job that waits; fills `v`, which has its id. */
void why_pending(struct daemon *d, const struct job *j, struct why_view *v);

/* ---- why_line.c ---- */

/* Who goes before it, and for whom what it could have is kept; `x` as sched_explain has just told. */
void why_line(const struct daemon *d, const struct job *j, const struct sched_explanation *x,
              struct now now, struct why_view *v);

/* ---- why_cards.c ---- */
/* A term for each card: who has it, until when, since when, as which process. */
void why_cards(struct daemon *d, struct now now, struct why_view *v);

#endif
