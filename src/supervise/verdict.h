/*
 * verdict.h - how a task, and a job of tasks, ended. Pure.
 *
 *     verdict_task(status, oom_kills, stopped, &t->exit);
 *     verdict_job(exits, count, first_failed, stopped, &job);
 */
#ifndef DIVVY_SUPERVISE_VERDICT_H
#define DIVVY_SUPERVISE_VERDICT_H

#include "jobdir/jobdir.h"

/*
 * `status` as waitpid gives it. `stopped`: the stop that the task was still
 * running under, JOBDIR_STOP_NONE for one that ended by itself. Sets kind and
 * value, and text where a person needs one; other fields stay.
 */
void verdict_task(int status, uint64_t oom_kills, enum jobdir_stop stopped, struct job_exit *ret);

bool verdict_failed(const struct job_exit *x);

/*
 * The job's own: what stopped it while something ran, else the first failure,
 * else task 0's. Memory is the largest task's, CPU time the sum.
 */
void verdict_job(const struct job_exit *tasks, size_t count, int first_failed,
                 enum jobdir_stop stopped, struct job_exit *ret);

#endif
