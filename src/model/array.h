/*
 * array.h - the tasks of a job array: "0-99%4", "1,3,5-9:2".
 *
 * Every task is a job of its own; the tasks of one array have consecutive
 * numbers, in the order of their indices, so that index and number follow from
 * each other: the task at position p of array 41 is job 41 + p. `running_max`
 * (behind %) is how many of them may run at a time.
 *
 *     AUTO(job_array) struct job_array a = { .indices = NULL };
 *     job_array_parse("0-99%4", &a, e);    // a.count is 100, a.running_max 4
 */
#ifndef DIVVY_MODEL_ARRAY_H
#define DIVVY_MODEL_ARRAY_H

#include "base/cleanup.h"
#include "base/text.h"

#define JOB_ARRAY_TASKS_MAX 20000u
#define JOB_ARRAY_INDEX_MAX 4194303u
#define JOB_ARRAY_WORDS_MAX 4096 /* bytes of an array as it is written */

struct job_array {
    uint32_t *indices; /* ascending, each once */
    size_t count, alloc;
    uint32_t running_max; /* 0: no limit */
};

void job_array_done(struct job_array *a);

/*
 * Reads a list of indices and ranges with steps, in any order, and a limit
 * behind %. -EINVAL, -ERANGE, -E2BIG with what is wrong and what would work.
 */
int job_array_parse(const char *words, struct job_array *ret, struct err *e);

/* Where this index stands; negative: it is not one of them. */
int64_t job_array_position(const struct job_array *a, uint32_t index);

/* "0-95,97" for `count` ascending indices; equal steps above 1 as "1-9:2". */
void job_array_add_words(struct text *t, const uint32_t *indices, size_t count);

/*
 * An output file's name for one task: %A becomes the array's number, %a the
 * index; other signs, and %%, stay for job_output_path. NULL stays NULL. Caller
 * frees.
 */
char *job_array_output(const char *output, uint64_t array_id, uint32_t index);

#endif
