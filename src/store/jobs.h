/*
 * jobs.h - jobs, what was submitted, and every attempt to run them.
 *
 *     struct job_submit who = { .uid = 1001, .user = "alice", … };
 *     store_add_job(s, &who, &spec, now, &id, e);
 *     …its turn…
 *     store_add_attempt(s, id, 1, &place, now, e);
 *     store_set_state(s, id, JOB_PREPARING, JOB_PENDING, "", now, e);
 *
 * Ids start at 1, rise, and are never used again, pruned or not. A job's
 * spec, with its command, lies apart from the row that changes with every
 * state; its environment is kept once per content, however many jobs use it.
 * States are stored as words: the order of the enum may change. An array is
 * entered as all its tasks, with consecutive ids; its spec lies once, at the
 * first, and is found from each.
 *
 * The store does not judge transitions: job_next_state does, before.
 */
#ifndef DIVVY_STORE_JOBS_H
#define DIVVY_STORE_JOBS_H

#include "model/job.h"
#include "store/store.h"

#define STORE_GROUPS_MAX 65536

/* Who submits; the rest of a job is in its spec. Borrowed for the call. */
struct job_submit {
    uid_t uid;
    gid_t gid;
    const char *user;    /* name at that time, "1001" when it has none */
    const gid_t *groups; /* supplementary ones, as the kernel told */
    size_t group_count;
    const char *reason; /* why it waits; "" or NULL: nothing said yet */
};

/* What was seen of an attempt on its cards so far. */
struct attempt_samples {
    uint64_t mem_peak_bytes;       /* 0: nothing */
    uint64_t load_sum, load_count; /* percents, and how many they are */
};

/* One start of a job. Times are 0 until they come. */
struct attempt_row {
    uint64_t job_id;
    uint32_t attempt;           /* from 1; 0 in a job_row: never started */
    struct place place;         /* borrowed by callbacks */
    char boot_id[BOOT_ID_SIZE]; /* of the boot times below */
    int64_t placed_boot_us, placed_wall_us;
    int64_t started_boot_us, started_wall_us; /* `started` was seen */
    int64_t ended_boot_us, ended_wall_us;     /* cleared */
    enum job_state
        outcome;          /* final state it earned; JOB_PENDING while it lives, or was sent back */
    struct job_exit exit; /* kind EXIT_NONE until it is known */
    struct attempt_samples samples;
    uint64_t charge_ppm_us; /* what it cost; 0 until it ended */
};

/* A job without its spec. Strings borrowed for the callback. */
struct job_row {
    uint64_t id;
    uid_t uid;
    gid_t gid;
    const char *user, *account, *qos, *name;
    struct request request;
    uint64_t mem_bytes; /* of the machine, for each task: as it was asked for; 0: it was not */
    uint32_t cpu_milli;
    int64_t limit_us; /* 0: none */
    enum job_state state;
    enum job_state verdict; /* while ENDING: what it will become; else JOB_PENDING (none) */
    const char *reason;     /* why it waits, or why it ended so; "" */
    int64_t submit_wall_us, begin_wall_us, deadline_wall_us, ended_wall_us; /* 0: not */
    enum job_hold hold;
    int64_t expected_wall_us; /* its start as it was announced; 0: it was not */
    bool attached;            /* a `divvy run` */
    int tells;                /* bits of enum job_tells */
    bool requeue;             /* while ENDING: to be started again */
    uint64_t array_id;        /* of the array's first task; 0: no array */
    uint32_t array_index;     /* with array_id */
    uint64_t charged_ppm_us;  /* what its attempts that are over cost, together */
    struct attempt_row last;  /* the latest attempt; last.attempt 0: there was none */
};

typedef int (*store_job_fn)(const struct job_row *row, void *arg);
typedef int (*store_attempt_fn)(const struct attempt_row *row, void *arg);

/* `spec` passed job_spec_check. JOB_PENDING; gives the new id, of an array the first task's. */
int store_add_job(struct store *s, const struct job_submit *who, const struct job_spec *spec,
                  struct now now, uint64_t *ret_id, struct err *e);

/* From here on new jobs get numbers above `id`. */
int store_reserve_job(struct store *s, uint64_t id, struct err *e);

/*
 * `verdict` JOB_PENDING: none. An ended state sets ended_wall_us to now's.
 * `reason` NULL keeps the one that is there. -ENOENT.
 */
int store_set_state(struct store *s, uint64_t id, enum job_state state, enum job_state verdict,
                    const char *reason, struct now now, struct err *e);
int store_set_hold(struct store *s, uint64_t id, enum job_hold hold, struct err *e);
/* Is it to be started again once it has ended? */
int store_set_requeue(struct store *s, uint64_t id, bool requeue, struct err *e);
/* Only the reason shown; cheap, but one write per job: for the few that are looked at. */
int store_set_reason(struct store *s, uint64_t id, const char *reason, struct err *e);

/*
 * An attempt begins: `attempt` is the last one's number + 1 (-EINVAL
 * otherwise, -ENOENT without the job). Its placed times are `now`.
 */
int store_add_attempt(struct store *s, uint64_t id, uint32_t attempt, const struct place *place,
                      struct now now, struct err *e);
/* The place once it is cut: gi, ci, uuid and generation are known now. */
int store_set_place(struct store *s, uint64_t id, uint32_t attempt, const struct place *place,
                    struct err *e);
/* `at`: when the supervisor wrote that it started. */
int store_attempt_started(struct store *s, uint64_t id, uint32_t attempt, struct now at,
                          struct err *e);
int store_set_samples(struct store *s, uint64_t id, uint32_t attempt,
                      const struct attempt_samples *samples, struct err *e);
/*
 * The attempt is over and its tree empty. `outcome` is the final state it
 * earned, or JOB_PENDING for one whose slices could not be cut. `exit` may be
 * NULL (it never started). `at` its end.
 */
int store_end_attempt(struct store *s, uint64_t id, uint32_t attempt, enum job_state outcome,
                      const struct job_exit *exit, uint64_t charge_ppm_us, struct now at,
                      struct err *e);

/* All jobs that have not ended, by id: what a starting daemon needs, in one pass. */
int store_each_live_job(struct store *s, store_job_fn fn, void *arg, struct err *e);

/* What to list. Zeroed means everything, newest first. */
struct job_query {
    uint64_t id;        /* this one alone; 0: any */
    uint64_t before_id; /* the next page: smaller ids than this; 0: from the newest */
    bool by_uid;
    uid_t uid;
    const char *account;         /* NULL: any */
    uint32_t states;             /* bits 1u << enum job_state; 0: any */
    int64_t ended_since_wall_us; /* live ones, and those that ended since; 0: any */
    uint32_t limit;              /* rows; 0 means 1000 */
};
int store_each_job(struct store *s, const struct job_query *q, store_job_fn fn, void *arg,
                   struct err *e);

/* Attempts of one job, oldest first. None is no error. */
int store_each_attempt(struct store *s, uint64_t id, store_attempt_fn fn, void *arg, struct err *e);

/* Everything that was submitted, environment included; the caller ends it. -ENOENT. */
int store_job_spec(struct store *s, uint64_t id, struct job_spec *ret, struct err *e);
/* The submitter's supplementary groups; the caller frees. -ENOENT. */
int store_job_groups(struct store *s, uint64_t id, gid_t **ret, size_t *ret_count, struct err *e);

#endif
