/*
 * waits.h - what submissions wait for beside their turn: other jobs, and, in
 * an array, each other.
 *
 * One row for each submission that has any of it, by the id of the job or of
 * the array's first task. What a dependency asks is looked up in the jobs
 * themselves: a number that was given once and is not there any more ended
 * longer ago than the store remembers.
 */
#ifndef DIVVY_STORE_WAITS_H
#define DIVVY_STORE_WAITS_H

#include "model/depend.h"
#include "store/jobs.h"

struct waits_row {
    uint64_t id;
    const char *array;  /* as in model/array.h; "": no array. Borrowed for the callback */
    const char *depend; /* what is not met yet, as in model/depend.h; "" */
    bool keep_invalid;
};

typedef int (*store_waits_fn)(const struct waits_row *row, void *arg);

/* For store_add_job: `spec` has an array or a dependency. */
int store_add_waits(struct store *s, uint64_t id, const struct job_spec *spec, struct err *e);
/* What is left of a dependency; "" when it is met. -ENOENT. */
int store_set_depend(struct store *s, uint64_t id, const char *depend, struct err *e);
/* Those of which a job has not ended. */
int store_each_waits(struct store *s, store_waits_fn fn, void *arg, struct err *e);
/* The indices of the array of which `id` is a task; the caller frees. -ENOENT: none. */
int store_array_words(struct store *s, uint64_t id, char **ret, struct err *e);

/* How it is with jobs that a dependency names (not for singleton). */
int store_depend_facts(struct store *s, const struct depend *d, struct depend_facts *ret,
                       struct err *e);
/* The largest id that was ever given; 0: none. */
int store_last_job(struct store *s, uint64_t *ret, struct err *e);

#endif
