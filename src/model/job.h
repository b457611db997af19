/*
 * job.h - a job, its attempts, and the only ways it may change state.
 *
 * A job is what was submitted; every start of it is an attempt, numbered from
 * 1. Folders, journal and exits are keyed ID.ATTEMPT. Holds, dependencies and
 * waits are reasons of PENDING, not states. job_next_state is the one function
 * that knows the transitions; ARCHITECTURE.md shows the same table.
 */
#ifndef DIVVY_MODEL_JOB_H
#define DIVVY_MODEL_JOB_H

#include <sys/types.h>

#include "base/clock.h"
#include "model/card.h"
#include "model/container.h"
#include "model/request.h"
#include "model/warning.h"

#define JOB_NAME_MAX 128 /* bytes, without NUL */
#define JOB_ACCOUNT_MAX 64
#define JOB_QOS_MAX 32
#define JOB_TELL_MAX 4096      /* bytes of --on-start and --on-end */
#define JOB_ARGS_MAX 4096      /* arguments of a command */
#define JOB_COMMAND_MAX 131072 /* bytes of all arguments together */
#define JOB_CPU_MILLI_MAX 65536000
#define JOB_MEM_MIN 1048576 /* less than a MiB starts nothing */
#define JOB_ENV_MAX 131072  /* bytes of the environment */
#define JOB_MANY_MAX 256    /* jobs in one request: what a turn of the loop may take */

enum job_state {
    JOB_PENDING = 0,
    JOB_PREPARING, /* its attempt is committed and slices are being cut */
    JOB_STARTING,  /* the supervisor was asked to start it */
    JOB_RUNNING,
    JOB_ENDING,    /* over or told to be; its tree is being cleared */
    JOB_COMPLETED, /* from here on: ended */
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_TIMEOUT,
    JOB_OOM,
    JOB_PREEMPTED,
    JOB_LOST,
    JOB_STATES,
};

enum job_event {
    JOB_EV_PLACE,    /* a place was found, the attempt committed */
    JOB_EV_READY,    /* its slices are there */
    JOB_EV_UNREADY,  /* they could not be cut: back to the queue */
    JOB_EV_STARTED,  /* the supervisor wrote `started` */
    JOB_EV_STOP,     /* cancel, time limit or preemption: the tree is told to end */
    JOB_EV_EXITED,   /* the supervisor wrote `exit` */
    JOB_EV_VANISHED, /* the supervisor is gone and left no exit */
    JOB_EV_CLEARED,  /* nothing of it runs any more: the verdict becomes the state */
    JOB_EV_REQUEUE,  /* cleared, and to be tried again */
    JOB_EV_DROP,     /* ended before it ever started: cancelled while pending or preparing */
    JOB_EVENTS,
};

/*
 * The state after `ev`. `verdict` is the final state that the attempt earned
 * (JOB_COMPLETED and later); it is read for CLEARED and DROP alone.
 * -EINVAL, and `ret` untouched, when the event cannot happen in that state.
 */
int job_next_state(enum job_state from, enum job_event ev, enum job_state verdict,
                   enum job_state *ret, struct err *e);

bool job_state_ended(enum job_state s);
/* PENDING … "pending", lower case as shown to people and in the API. */
const char *job_state_word(enum job_state s);
int job_state_parse(const char *word, enum job_state *ret);
const char *job_event_word(enum job_event ev);

/* How a process ended, as the supervisor found it. */
enum exit_kind {
    EXIT_NONE = 0,    /* not ended, or never started */
    EXIT_CODE,        /* value: 0 to 255 */
    EXIT_SIGNAL,      /* value: the signal */
    EXIT_OOM,         /* its memory limit killed it */
    EXIT_TIMEOUT,     /* its time limit killed it */
    EXIT_CANCELLED,   /* killed because it was asked to be */
    EXIT_NOT_STARTED, /* exec or set-up failed; `text` says why */
    EXIT_LOST,        /* nobody saw it end */
    EXIT_INTERRUPTED, /* the machine went down, or its unit was stopped; `text` says which */
};

struct job_exit {
    enum exit_kind kind;
    int value;
    int task; /* the first task that failed; 0 with one task */
    int64_t ended_boot_us, ended_wall_us;
    uint64_t mem_peak_bytes; /* 0: not known */
    int64_t cpu_us;          /* 0: not known */
    /* As divvyd saw it every few seconds. */
    uint64_t gpu_mem_peak_bytes; /* of all its processes, on all its cards; 0: not known */
    bool gpu_load_known;         /* whole cards tell it, and slices of some */
    uint32_t gpu_load_percent;   /* mean, of the whole time and all it held */
    char text[256];
};

const char *exit_kind_word(enum exit_kind k);
int exit_kind_parse(const char *word, enum exit_kind *ret);
/* What `divvy run` and `divvy wait` exit with: the code, 128 + signal, 124 for a time-out … */
int job_exit_status(const struct job_exit *x);
/* The final state that an exit earns by itself. */
enum job_state job_exit_verdict(const struct job_exit *x);

/* Where one task runs: a whole card, or a slice by exact placement. */
struct placed {
    char card_uuid[CARD_UUID_SIZE];
    uint32_t ordinal;
    uint32_t task; /* whole cards of one job all belong to task 0 */
    bool whole;
    uint32_t profile_id; /* of the GPU instance */
    char profile[PROFILE_NAME_SIZE];
    uint32_t start, units;
    uint32_t gi, ci;               /* NOT_AN_INSTANCE until it is cut */
    uint64_t generation;           /* 0 until it is cut */
    char uuid[CARD_UUID_SIZE];     /* MIG- or GPU-; "" until it is cut */
    uint32_t compute_ppm, mem_ppm; /* parts of the card */
};

struct place {
    struct placed *items;
    size_t count, alloc;
};

void place_done(struct place *p);
void place_copy(const struct place *p, struct place *ret);
struct placed *place_add(struct place *p);
/* "gpu0/2g.20gb@4, gpu1/2g.20gb@0", or "gpu0, gpu1" for whole cards. */
void place_add_text(struct text *t, const struct place *p);

/* Who keeps a job from starting. An owner cannot release what an operator holds. */
enum job_hold { JOB_HOLD_NONE = 0, JOB_HOLD_USER, JOB_HOLD_OPERATOR };
const char *job_hold_word(enum job_hold h); /* "", "user", "operator" */
int job_hold_parse(const char *word, enum job_hold *ret);

/* What can be asked of a job that is there. */
enum job_action { JOB_ACTION_CANCEL, JOB_ACTION_HOLD, JOB_ACTION_RELEASE, JOB_ACTION_REQUEUE };

enum job_bind { BIND_UUID = 0, BIND_INDEX, BIND_NONE };

/* What was submitted. Strings are owned; NULL where the table says "or NULL". */
struct job_spec {
    char *name; /* shown; the command's base name unless given */
    char *account;
    char *qos; /* class of jobs; NULL: the default one */
    struct request request;
    int64_t limit_us;               /* wall time limit; 0: none */
    uint64_t mem_bytes;             /* limit of memory of each task; 0: none */
    uint32_t cpu_milli;             /* and of CPU time, 1000: one CPU; 0: none */
    struct job_warning warning;     /* a signal before that limit */
    char **argv;                    /* NULL-terminated, at least one */
    char **env;                     /* NULL-terminated "NAME=value" */
    char *cwd;                      /* absolute */
    char *output;                   /* file for output and error, or NULL: attached, nothing kept */
    char *error;                    /* file for error alone; NULL: where output goes */
    char *submit_dir;               /* where it was submitted; NULL: in cwd */
    char *script;                   /* text of a submitted script, or NULL */
    struct job_container container; /* image NULL: none */
    char *array;                    /* its indices, as in model/array.h; NULL: one job */
    char *dependency;               /* as in model/depend.h; NULL: none */
    int64_t begin_wall_us;          /* it starts no earlier; 0: at once */
    int64_t deadline_wall_us;       /* it ends by then, or does not start; 0: none */
    uint32_t srun_tasks; /* the command runs once, and srun in it as many; 0: it knows no srun */
    enum job_bind bind;
    char *on_start, *on_end; /* for sh -c: told of it by a job of its own; NULL: nothing */
    bool append;             /* its output goes behind what the file has */
    bool hold;               /* it waits until it is released */
    bool keep_invalid;       /* it stays when its dependency cannot be met any more */
    bool no_requeue;         /* it is never started a second time */
    bool keep_going;         /* a failed task does not end the others */
    bool keep_on_hangup;     /* a lost client does not end an attached job */
    bool requeue_on_fault;   /* tried again when its card failed under it */
    bool attached;           /* divvy run: streams go through the attach socket */
    bool pty;
};

/* What a job is to tell its owner, as bits. */
enum job_tells { JOB_TELLS_START = 1 << 0, JOB_TELLS_END = 1 << 1 };
int job_tells(const struct job_spec *s);

void job_spec_done(struct job_spec *s);
/* Sizes, UTF-8, required fields, request_check. -EINVAL or -E2BIG with a sentence. */
int job_spec_check(const struct job_spec *s, struct err *e);

/*
 * The file that task `task` of job `id` writes: %j becomes the job's number, %t
 * the task's, %% a percent sign; other signs stay. NULL stays NULL. Caller frees.
 */
char *job_output_path(const char *output, uint64_t id, uint32_t task);
/* True when each task has a file of its own (%t is in it). */
bool job_output_by_task(const char *output);

/* NULL-terminated vectors of owned strings. */
void strv_free(char **v);
size_t strv_count(char *const *v);
char **strv_copy(char *const *v);
void strv_add(char ***v, const char *s); /* appends a copy; *v may be NULL */

#endif
