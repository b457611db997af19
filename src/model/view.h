/*
 * view.h - what the daemon tells about its jobs and about itself.
 *
 * One form serves both ends: divvyd fills a view and api/ writes it as JSON;
 * client/ reads that JSON back into the same struct. Times are wall clock, µs
 * since 1970, and 0 where there is none; in JSON such a value is null.
 *
 * Strings and the arrays inside `place` are borrowed. In a view that a reader
 * made they belong to its `json`, and job_view_done lets go of all of it; a
 * view that the daemon filled needs no end.
 *
 *     struct job_view v = { .id = 41, .user = "alice", .state = JOB_RUNNING, … };
 *     json_t *j = job_view_to_json(&v, JOB_VIEW_PRIVATE);
 */
#ifndef DIVVY_MODEL_VIEW_H
#define DIVVY_MODEL_VIEW_H

#include "model/fields.h"
#include "model/inventory.h"
#include "model/promise.h"

/* Limits that the kernel took. */
enum job_enforced {
    JOB_ENFORCES_MEMORY = 1 << 0,
    JOB_ENFORCES_CPU = 1 << 1,
    JOB_ENFORCES_CPUS = 1 << 2,
    JOB_ENFORCES_PIDS = 1 << 3,
};

/* How often it was stopped so that others could start, and the last time of it. */
struct job_preempted {
    uint32_t times;   /* 0: never */
    int64_t wall_us;  /* when */
    uint64_t by;      /* the job that it made room for; 0: not known */
    const char *user; /* whose that was; NULL: not known */
};

struct job_view {
    uint64_t id;
    uid_t uid;           /* who submitted it */
    const char *user;    /* its name; the number as text where it has none */
    const char *account; /* NULL: none */
    const char *qos;     /* class of jobs; NULL: not told */
    const char *name;
    enum job_state state;
    const char *reason; /* why it waits, or why it ended so, for a person; NULL: nothing to say */
    struct request request;
    struct place place; /* empty until it was placed; kept after the end */
    uint32_t attempt;   /* 0: never started */
    uint32_t tasks;
    int64_t limit_us; /* wall time limit; 0: none */
    int64_t submit_wall_us, start_wall_us, end_wall_us;
    int64_t begin_wall_us, deadline_wall_us; /* not before, and no longer than; 0: none */
    enum job_hold hold;
    uint64_t array_id;    /* of the array that it is a task of; 0: none */
    uint32_t array_index; /* with array_id */
    uint32_t array_max;   /* tasks that may run at a time; 0: no limit, or not told */
    uint32_t array_tasks; /* above 1: so many that wait alike, of which this is the first */
    const char *indices;  /* theirs, as in model/array.h; NULL with one */
    int64_t expected_start_wall_us; /* 0: not known, or it did start */
    const char *expected_place;     /* "gpu0/3g.40gb@4"; NULL: not known, or it did start */
    struct job_preempted preempted;
    struct job_exit exit; /* kind EXIT_NONE while it has not ended */
    bool attached;        /* a `divvy run` */
    /* Of the machine, all its tasks together, as it is counted; 0: none. */
    uint64_t needs_mem_bytes, needs_cpu_milli;
    uint64_t mem_bytes; /* limits of each task: as asked for, or what holds by its share; 0: none */
    uint32_t cpu_milli;
    uint32_t pids;             /* these are never asked for: what holds */
    const char *cpus;          /* "0-7,16"; NULL: any */
    int enforced;              /* enum job_enforced of what holds now; -1: it does not run */
    const char *isolation;     /* "bpf", "v1", "none"; NULL: not started */
    const char *isolation_why; /* why it is none; NULL */
    /* What only the owner and operators get to see. */
    const char
        *output; /* as submitted, absolute, with its %j and %t (job_output_path); NULL: none */
    const char *cwd;
    char *const *argv; /* NULL-terminated */
    const char *script;
    const char *array;      /* all indices, as submitted; NULL: no array, or not told */
    const char *dependency; /* as submitted; NULL */
    json_t *json;           /* owner of the strings, where a reader made it; else NULL */
};

/* What may be shown to whom. */
enum job_view_for {
    JOB_VIEW_PUBLIC,  /* everybody on the machine: who, what for, where, since when */
    JOB_VIEW_PRIVATE, /* owner and operators: also command, directory, output, script */
};

/* "#37 of games"; nothing where that is not known. */
void job_preempted_add_by(struct text *t, const struct job_preempted *p);

/* New reference; never NULL. Beside the fields it carries "asks" and "addresses" in words. */
json_t *job_view_to_json(const struct job_view *v, enum job_view_for whom);
/* Open reader: fields of later versions are ignored. `ret` is job_view_done's. -EINVAL. */
int job_view_from_json(json_t *j, struct job_view *ret, struct err *e);
void job_view_done(struct job_view *v);
/* Place of one task or card in words, "gpu0/2g.20gb@4"; "gpu1" for a whole card. */
void placed_add_text(struct text *t, const struct placed *p);

/* "41", "41_7" for a task of array 41, "41_[8-95%4]" for several of them that wait. */
void job_view_add_id(struct text *t, const struct job_view *v);

/* Which jobs a list is about. Zeroed means all that have not ended. */
struct job_filter {
    bool has_uid;
    uid_t uid;
    char account[JOB_ACCOUNT_MAX + 1]; /* "": any */
    char user[33];                     /* "": any */
    uint32_t states;                   /* bits 1 << enum job_state; 0: all that have not ended */
    uint64_t after;                    /* only larger ids: the next page */
    uint32_t limit;                    /* at most so many; 0: JOB_LIST_MAX */
    bool fold;                         /* tasks of an array that wait alike are told as one */
};

/* Which attempts of the past. */
struct history_filter {
    int64_t from_wall_us, to_wall_us;  /* ended in [from, to) */
    char account[JOB_ACCOUNT_MAX + 1]; /* "": any */
    char user[33];                     /* "": any */
    uint64_t after;                    /* the next page: as the last one said; 0: the first */
    uint32_t limit;                    /* at most so many; 0: JOB_LIST_MAX */
};

#define JOB_LIST_MAX 10000u
#define JOB_STATES_ENDED                                                                           \
    ((1u << JOB_COMPLETED) | (1u << JOB_FAILED) | (1u << JOB_CANCELLED) | (1u << JOB_TIMEOUT) |    \
     (1u << JOB_OOM) | (1u << JOB_PREEMPTED) | (1u << JOB_LOST))

/* Account, user and states (not the page). */
bool job_filter_matches(const struct job_filter *f, enum job_state state, uid_t uid,
                        const char *user, const char *account);

/* What `divvy status` shows. */
struct daemon_view {
    const char *version; /* of divvyd */
    pid_t pid;
    const char *root; /* "/" or the private root */
    bool private_root;
    int64_t started_wall_us;
    const char *driver_version; /* NULL: none */
    const char *driver_trouble; /* why there is no driver, or it does not answer; NULL: fine */
    const char *isolation;      /* what jobs get here: "bpf", "v1", "none" */
    const char *isolation_why;  /* why not more; NULL */
    uint32_t jobs[JOB_STATES];  /* how many are in each state; ended ones since the store began */
    struct promises promises;   /* of starts that were announced, since the store began */
    uint64_t mem_bytes, mem_used_bytes; /* of the machine, for jobs; 0: not counted */
    uint64_t cpu_milli, cpu_used_milli;
    uint32_t cards, cards_queue, cards_trouble; /* all; in pool queue; not healthy or quarantined */
    json_t *json;                               /* as in job_view */
};

json_t *daemon_view_to_json(const struct daemon_view *v);
int daemon_view_from_json(json_t *j, struct daemon_view *ret, struct err *e);
void daemon_view_done(struct daemon_view *v);

/* Why a job waits or ended, in one sentence and then term by term. */
struct why_term {
    const char *what; /* "order", "gpu1", "limit" */
    const char *text;
};

struct why_view {
    uint64_t id;
    const char *summary; /* "#62 waits for 2 whole cards." */
    struct why_term *terms;
    size_t term_count, term_alloc;
    char **sooner;   /* what would start it sooner; NULL-terminated, or NULL */
    json_t *holders; /* who has the cards, each with all its pids; owned; NULL: not told */
    json_t *ahead;   /* how many go before it, and the first of them; owned; NULL: not in line */
    json_t *json;    /* NULL: `what` and `text` are owned copies (made by why_view_add) */
};

/* Appends copies. */
void why_view_add(struct why_view *v, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
json_t *why_view_to_json(const struct why_view *v);
int why_view_from_json(json_t *j, struct why_view *ret, struct err *e);
/* Ends both kinds; `summary` of one that the daemon filled stays the daemon's. */
void why_view_done(struct why_view *v);

#endif
