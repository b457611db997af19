/*
 * jobdir.h - the folder of one attempt: jobs/ID.ATTEMPT/.
 *
 * It is the whole conversation between divvyd and divvy-supervise, on disk,
 * so that either may be killed at any instruction:
 *
 *     spec.json  what to run, by divvyd, before it starts the supervisor;
 *                locked while a supervisor lives: the kernel lets go of it
 *     started    by the supervisor before the first exec, durable unless the
 *                job is attached: its client does not outlive the machine
 *     stop       by divvyd: end it, and why. The supervisor watches for it
 *     exit       by the supervisor, when nothing of the attempt runs any more
 *
 * Invariants. Each file appears whole, by rename, and is written once; a `stop`
 * that leaves time may be followed by one that does not. An
 * attempt that has `started` is never started again. `exit` is the truth about
 * the end; the attach socket and inotify are only hints. Starting a supervisor
 * is idempotent: the second one finds the lock taken, or `started`, and ends.
 * Readers ignore fields that they do not know and read every `v` since 1; the
 * format stands in docs/jobdir.md.
 *
 *     jobdir_create(jobs, &spec, e);         // then start the supervisor
 *     jobdir_open(jobs, 41, 1, &dir, e);
 *     switch (jobdir_state(dir, e)) { case JOBDIR_ENDED: jobdir_read_exit(dir, &end, e); … }
 *     jobdir_put_away(jobs, 41, 1, &gone, e); // after the store has committed the end
 *
 * To be told: inotify IN_MOVED_TO on the folder names `started` and `exit`;
 * a supervisor that dies closes `spec.json` (IN_CLOSE_WRITE).
 */
#ifndef DIVVY_JOBDIR_JOBDIR_H
#define DIVVY_JOBDIR_JOBDIR_H

#include "model/job.h"

#define JOBDIR_VERSION 1
#define JOBDIR_DEVICES_MAX 256  /* granted to one task */
#define JOBDIR_GROUPS_MAX 65536 /* as many as Linux lets a process have */
#define JOBDIR_TEXT_MAX 256
#define JOBDIR_BINDS_MAX 512

/* ---- spec.json ---------------------------------------------------------- */

/* A device node that a task may open. */
struct jobdir_device {
    char *path; /* as the driver shows it, driver_root included; for messages and logs */
    uint32_t major, minor;
};

/* Limits of one task; 0 or NULL: none. What is enforced stands in `started`. */
struct jobdir_limits {
    uint64_t mem_bytes; /* the task dies as one beyond it; no swap */
    uint32_t cpu_milli; /* 1000: the time of one CPU */
    uint32_t pids;
    char *cpus; /* kernel's list form, "0-7,16" */
    char *mems; /* NUMA nodes, the same form; NULL with `cpus`: all of them */
};

struct jobdir_task {
    char **env; /* "NAME=value", on top of the job's; wins over it */
    struct jobdir_device *devices;
    size_t device_count, device_alloc;
    struct jobdir_limits limits;
    char **cdi; /* names of its cards or slices in the CDI specification; NULL: none is kept */
};

/* How docker's daemon makes the containers of a job that runs in one. */
struct jobdir_docker {
    char *socket; /* of the daemon; NULL: the administrator lets no job have it */
    bool pull;    /* it may fetch an image that it does not have */
    char *cdi;    /* folder of the CDI specification that tasks' cdi is of; NULL: none is kept */
};

struct jobdir_spec {
    uint64_t job_id;
    uint32_t attempt;
    uid_t uid;
    gid_t gid;
    char *user;          /* name, for messages; may be NULL */
    gid_t *groups;       /* supplementary groups as the kernel told them at submit; NULL: gid */
    size_t group_count;  /* with groups */
    struct job_spec job; /* with environment */
    struct place place;  /* for messages only: what is bound stands in the tasks */
    struct jobdir_task *tasks; /* request_tasks(&job.request) of them, at least one */
    size_t task_count, task_alloc;
    int64_t kill_grace_us;  /* between TERM and KILL */
    int64_t attach_wait_us; /* how long an attached job waits for its client */
    char *root;             /* DIVVY_ROOT of the job; "/" */
    char *driver_root;      /* where /proc/devices of the driver stands; "/" */
    char *cgroup_root;      /* see cgroup.h; "" means: no cgroups wanted */
    char *attach_socket;    /* path, or NULL: nobody can attach */
    char **binds;           /* the driver's files for a container, "HOST:CONTAINER" each; or NULL */
    struct jobdir_docker docker;
    char *prolog, *epilog; /* programs of the administrator, see supervise/hook.h; or NULL */
    int64_t hook_limit_us; /* how long each of them may take */
    char *pam;             /* service of the PAM session to open for `user`; NULL: none */
    bool remove_shm;       /* what it leaves in shared memory, see supervise/leftover.h */
    bool gate;             /* close NVIDIA majors but for the tasks' devices */
    bool new_privileges;   /* let setuid programs work inside the job; default no */
};

/* A new zeroed task, or device of one, at the end; valid until the next addition. */
struct jobdir_task *jobdir_spec_add_task(struct jobdir_spec *s);
struct jobdir_device *jobdir_task_add_device(struct jobdir_task *t);
void jobdir_spec_done(struct jobdir_spec *s);

/* ---- started ------------------------------------------------------------ */

struct jobdir_process {
    pid_t pid;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat; pid and this are one process */
};

struct jobdir_started_task {
    struct jobdir_process process;
    bool memory_enforced, cpu_enforced, cpus_enforced, pids_enforced;
    uint64_t mem_bytes; /* the limits that are, 0 or "" where none is or it is not enforced */
    uint32_t cpu_milli, pids;
    char cpus[JOBDIR_TEXT_MAX]; /* a longer list is left out */
};

struct jobdir_started {
    char boot_id[BOOT_ID_SIZE];
    int64_t boot_us, wall_us; /* of that boot; the time limit runs from here */
    struct jobdir_process supervisor;
    struct jobdir_started_task *tasks;
    size_t task_count, task_alloc;
    char isolation[16];                     /* "bpf", "v1" or "none" */
    char isolation_reason[JOBDIR_TEXT_MAX]; /* why it is none; "" otherwise */
    char tracking[16]; /* "v2", "hybrid", "v1" or "none": how the tree is known */
    char tracking_reason[JOBDIR_TEXT_MAX];
    char *cgroup; /* what cgroup_open takes as `root` to find the tree again; NULL with none */
};

#define JOBDIR_STARTED_INIT                                                                        \
    {                                                                                              \
        .tasks = NULL                                                                              \
    }
void jobdir_started_done(struct jobdir_started *s);

/* ---- exit --------------------------------------------------------------- */

struct jobdir_exit {
    struct job_exit job;    /* the first failure's, or task 0's when none failed */
    struct job_exit *tasks; /* one for each task */
    size_t task_count, task_alloc;
    char prolog[JOBDIR_TEXT_MAX]; /* why it failed, and nothing was run; "" otherwise */
    char epilog[JOBDIR_TEXT_MAX]; /* why it failed; "" otherwise */
};

void jobdir_exit_done(struct jobdir_exit *x);

/* ---- stop --------------------------------------------------------------- */

enum jobdir_stop {
    JOBDIR_STOP_NONE = 0,
    JOBDIR_STOP_CANCEL,
    JOBDIR_STOP_PREEMPT, /* recorded as EXIT_CANCELLED; the daemon knows that it preempted */
    JOBDIR_STOP_TIMEOUT,
    JOBDIR_STOP_OUTSIDE, /* never in the file: a signal to the supervisor, as a shutdown sends it */
};

#define JOBDIR_GRACE_MAX_US CLOCK_DAY

/* What a job gets before TERM, to write down how far it is. */
struct jobdir_notice {
    int signal;       /* 0: none, TERM comes at once */
    int64_t grace_us; /* until TERM; 0 to JOBDIR_GRACE_MAX_US */
};

/* ---- the folder --------------------------------------------------------- */

enum jobdir_state {
    JOBDIR_NEW,           /* spec only: start a supervisor (again) */
    JOBDIR_STARTING,      /* a supervisor has the lock and has not written `started` */
    JOBDIR_STARTED_ALIVE, /* running, supervised */
    JOBDIR_STARTED_DEAD,  /* no supervisor, no exit: clear what runs, then it is LOST */
    JOBDIR_ENDED,         /* `exit` is there */
};

/* "jobs/41.1". Caller frees. */
char *jobdir_path(const char *jobs, uint64_t job_id, uint32_t attempt);

/* Reads "41.1"; false for any other name. */
bool jobdir_parse_name(const char *name, uint64_t *ret_job_id, uint32_t *ret_attempt);

/*
 * Makes the folder with spec.json, mode 0700, under a temporary name,
 * then renames it. -EEXIST: it is there already, untouched. `jobs` must exist.
 * Not synced: what an attempt needs to outlive a power cut is synced by the
 * supervisor together with `started`. A folder that a power cut took away had
 * not started, and is made again from the store.
 */
int jobdir_create(const char *jobs, const struct jobdir_spec *spec, struct err *e);

/* Directory descriptor, close-on-exec. -ENOENT. Caller closes. */
int jobdir_open(const char *jobs, uint64_t job_id, uint32_t attempt, int *ret_dir, struct err *e);

/*
 * Which files there are, and whether somebody holds the lock. Negative: cannot
 * be told. A child that was just forked holds it for a moment after its
 * supervisor was killed: look again after IN_CLOSE_WRITE, or some milliseconds.
 */
int jobdir_state(int dir, struct err *e);
const char *jobdir_state_word(enum jobdir_state s);

/*
 * Takes the lock without waiting. -EBUSY: somebody has it. -EALREADY: the
 * attempt has `started` (nothing is held then). Closing the descriptor lets
 * go. The daemon claims, too, before it removes a folder that has not started.
 */
int jobdir_claim(int dir, int *ret_lock, struct err *e);

/*
 * Readers. -ENOENT when the file is not there; -EINVAL when it cannot be
 * understood (a file torn by a power cut is empty); -EPROTONOSUPPORT when its
 * `v` is from the future. `ret` is filled only on success, the caller ends it
 * with its _done.
 */
int jobdir_read_spec(int dir, struct jobdir_spec *ret, struct err *e);
int jobdir_read_started(int dir, struct jobdir_started *ret, struct err *e);
int jobdir_read_exit(int dir, struct jobdir_exit *ret, struct err *e);
/*
 * JOBDIR_STOP_NONE when there is none; what cannot be read counts as CANCEL, and
 * a notice that cannot be read as none. `ret` may be NULL.
 */
enum jobdir_stop jobdir_read_stop(int dir, struct jobdir_notice *ret);

/*
 * Writers. A `durable` `started`, and `exit`, are on disk when they return, with
 * the folder and, for the `first` of them, its entry in `jobs`: written, renamed,
 * then synced, so that the whole of it is one commit of the file system's journal.
 * Without `durable` whoever dies finds it all the same, but a power cut may take
 * it. jobdir_stop is not synced: the store knows that a stop was asked and asks
 * again. `n` may be NULL: none.
 */
int jobdir_write_started(int dir, const struct jobdir_started *s, bool durable, struct err *e);
int jobdir_write_exit(int dir, const struct jobdir_exit *x, bool first, struct err *e);
int jobdir_stop(int dir, enum jobdir_stop reason, const struct jobdir_notice *n, struct err *e);
const char *jobdir_stop_word(enum jobdir_stop reason);

/*
 * Takes the folder's name away, so that it is no attempt any more: a folder
 * that lost only `started` would look new. What is left has the name
 * *ret_name below `jobs` (the caller frees it) for jobdir_remove_leftover, when
 * there is time. -ENOENT: there is no such folder.
 */
int jobdir_put_away(const char *jobs, uint64_t job_id, uint32_t attempt, char **ret_name,
                    struct err *e);

/* Is it such a name? Then of which attempt. */
bool jobdir_parse_put_away(const char *name, uint64_t *ret_job_id, uint32_t *ret_attempt);

/* As jobdir_put_away, and removes it with all in it; one that is not there is no error. */
int jobdir_remove(const char *jobs, uint64_t job_id, uint32_t attempt, struct err *e);

/*
 * Calls `each` for every attempt's folder, in no order, and `garbage` (may be
 * NULL) for any other entry: leftovers of an interrupted jobdir_create, and
 * what others put there. A negative answer of `each` ends the walk and is
 * returned.
 */
typedef int (*jobdir_each_fn)(void *user, uint64_t job_id, uint32_t attempt, struct err *e);
typedef void (*jobdir_garbage_fn)(void *user, const char *name);
int jobdir_scan(const char *jobs, jobdir_each_fn each, jobdir_garbage_fn garbage, void *user,
                struct err *e);

/*
 * Removes what a jobdir_put_away, or a jobdir_create that was killed, left under this
 * name. -EINVAL: it is no such thing, and is left alone. Only for who alone
 * makes and removes folders there, as the holder of the store's lock does.
 */
int jobdir_remove_leftover(const char *jobs, const char *name, struct err *e);

/* Field 22 of /proc/PID/stat; 0: there is no such process (any more). */
uint64_t jobdir_start_ticks(pid_t pid);
/* Does that very process still live? */
bool jobdir_process_lives(const struct jobdir_process *p);

#endif
