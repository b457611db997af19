/*
 * trace.h - jobs of the past as a replay wants them: who asked for what, when,
 * and how long it ran.
 *
 * Four forms are read, told apart by how they begin:
 *
 *   history  JSON: a line a job, a list, or {"jobs": […]}, with the fields of
 *            the API's jobs. This is what `divvy queue --ended --json` prints.
 *   csv      A line of names, then a line a job. `divvy history --csv` writes
 *            id,user,account,qos,name,gpus,slice,gpu_mem,gpu_compute,
 *            submitted,started,ended,limit,state,attached,memory,cpus
 *            and a table from elsewhere may have fewer and others: needed are
 *            `submitted` and either `run` or `started` and `ended`. gpus is a
 *            number of whole cards; slice "2g.20gb" or "1g.10gb:4"; gpu_mem a
 *            size; gpu_compute a fraction; a job that names none of them asks
 *            for one card. memory (a size) and cpus are of the machine, for each
 *            task, and count where the policy has a node. Times are seconds from any origin, or
 *            2026-11-30T16:40:00 (UTC, a fraction and a Z allowed). run and
 *            limit are seconds, or durations as `--time` takes them. attached is
 *            yes or no (no where it is missing): somebody sat before it.
 *   sacct    What `sacct -P` prints: names in the first line, | between. Read
 *            are JobID, User, Account, QOS, Submit, Start, End, Elapsed or
 *            ElapsedRaw, Timelimit or TimelimitRaw, State, and the cards, CPUs and
 *            memory of AllocTRES or ReqTRES (gres/gpu=2, gres/mig:1g.10gb=1, cpu=8, mem=64G). Steps
 *            (41.batch) and jobs without a GPU are left out.
 *   plain    No names in the first line: submit time and duration in seconds,
 *            cards, and the account's name or number, separated by spaces or tabs.
 *
 * Jobs that never started, that ran for no time or that cannot be asked of
 * any server are left out and counted, not refused: a history is full of
 * them. What cannot be read at all is refused with its line.
 */
#ifndef DIVVY_REPLAY_TRACE_H
#define DIVVY_REPLAY_TRACE_H

#include "base/cleanup.h"
#include "base/map.h"
#include "model/fields.h"
#include "model/job.h"

#define TRACE_BYTES_MAX ((size_t)1 << 30)

struct trace_job {
    uint64_t id;       /* as the trace has it; its place in the file, from 1, where it has none */
    int64_t submit_us; /* wall clock, or since the trace's own origin */
    int64_t run_us;    /* how long it held its cards; above 0 */
    int64_t limit_us;  /* asked; 0: none */
    int64_t wait_us;   /* how long it waited then; -1: not told */
    bool attached;     /* somebody sat before it */
    struct request request;
    uint64_t mem_bytes; /* of the machine, for each task; 0: not told */
    uint32_t cpu_milli;
    uint32_t account, user, qos; /* indices of names; qos UINT32_MAX: none */
};

/* Words that many jobs share. */
struct trace_names {
    char **words;
    size_t count, alloc;
    struct map by_word; /* index + 1 */
};

struct trace {
    struct trace_job *jobs; /* in the order of submission */
    size_t count, alloc;
    struct trace_names accounts, users, qos;
    size_t left_out; /* never started, or asked for nothing that can be replayed */
};

#define TRACE_INIT                                                                                 \
    {                                                                                              \
        .jobs = NULL                                                                               \
    }

void trace_done(struct trace *t);

/*
 * Reads a trace from memory; `file` is for messages. -EINVAL with file:line;
 * `ret` is filled only on success and is then trace_done's.
 */
int trace_parse(const char *file, const char *text, size_t len, struct trace *ret, struct err *e);

/*
 * Gives every job a limit of its run time × u, u even between 1 and `most`,
 * drawn from `seed`: what people ask when they guess on the safe side.
 */
void trace_guess_limits(struct trace *t, double most, uint64_t seed);

/* ---- inside replay/: for the readers of the forms ---- */

/* The index of the word, made when it is not there. */
uint32_t trace_name(struct trace_names *n, const char *word);
/* Appends, or counts as left out what cannot be replayed. */
void trace_add(struct trace *t, const struct trace_job *job);
/* Seconds with a fraction, or a date and time, into µs. False: neither. */
bool trace_time(const char *word, int64_t *ret_us);
/* Seconds, or a duration; "", UNLIMITED and the like are 0. False: neither. */
bool trace_duration(const char *word, int64_t *ret_us);

int trace_read_table(const char *file, char *text, char between, struct trace *t, struct err *e);
int trace_read_plain(const char *file, char *text, struct trace *t, struct err *e);
int trace_read_history(const char *file, const char *text, size_t len, struct trace *t,
                       struct err *e);

#endif
