#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "supervise/verdict.h"

#define EXITED(code) ((code) << 8)
#define KILLED(sig) (sig)

static struct job_exit task(int status, uint64_t oom_kills, enum jobdir_stop stopped)
{
    struct job_exit x = { .kind = EXIT_NONE };
    verdict_task(status, oom_kills, stopped, &x);
    return x;
}

static void assert_ended(struct job_exit x, enum exit_kind kind, int value)
{
    assert_int_equal(x.kind, kind);
    assert_int_equal(x.value, value);
}

static void codes_and_signals_are_themselves(void **state)
{
    (void)state;
    assert_ended(task(EXITED(0), 0, JOBDIR_STOP_NONE), EXIT_CODE, 0);
    assert_ended(task(EXITED(255), 0, JOBDIR_STOP_NONE), EXIT_CODE, 255);
    assert_ended(task(KILLED(SIGSEGV), 0, JOBDIR_STOP_NONE), EXIT_SIGNAL, SIGSEGV);
}

static void memory_limit_counts_only_for_a_failure(void **state)
{
    (void)state;
    assert_ended(task(KILLED(SIGKILL), 1, JOBDIR_STOP_NONE), EXIT_OOM, SIGKILL);
    assert_ended(task(EXITED(1), 3, JOBDIR_STOP_NONE), EXIT_OOM, SIGKILL);
    assert_ended(task(EXITED(0), 1, JOBDIR_STOP_NONE), EXIT_CODE, 0);
    assert_ended(task(KILLED(SIGKILL), 0, JOBDIR_STOP_NONE), EXIT_SIGNAL, SIGKILL);
}

static void what_was_asked_to_end_ended_for_that(void **state)
{
    (void)state;
    assert_int_equal(task(KILLED(SIGTERM), 0, JOBDIR_STOP_CANCEL).kind, EXIT_CANCELLED);
    assert_int_equal(task(EXITED(0), 0, JOBDIR_STOP_CANCEL).kind, EXIT_CANCELLED);
    assert_int_equal(task(KILLED(SIGKILL), 0, JOBDIR_STOP_TIMEOUT).kind, EXIT_TIMEOUT);
    struct job_exit preempted = task(KILLED(SIGTERM), 0, JOBDIR_STOP_PREEMPT);
    assert_int_equal(preempted.kind, EXIT_CANCELLED);
    assert_string_equal(preempted.text, "preempted");
    struct job_exit outside = task(EXITED(0), 0, JOBDIR_STOP_OUTSIDE);
    assert_ended(outside, EXIT_INTERRUPTED, 0);
    assert_non_null(strstr(outside.text, "the machine shut down"));
}

static void job_ends_as_its_first_failure(void **state)
{
    (void)state;
    struct job_exit tasks[3] = { task(EXITED(0), 0, JOBDIR_STOP_NONE),
                                 task(KILLED(SIGTERM), 0, JOBDIR_STOP_NONE),
                                 task(EXITED(9), 0, JOBDIR_STOP_NONE) };
    struct job_exit job;
    verdict_job(tasks, 3, 2, JOBDIR_STOP_NONE, &job);
    assert_ended(job, EXIT_CODE, 9);
    assert_int_equal(job.task, 2);
    verdict_job(tasks, 1, -1, JOBDIR_STOP_NONE, &job);
    assert_ended(job, EXIT_CODE, 0);
    assert_int_equal(job.task, 0);
}

static void stop_wins_over_what_the_tasks_made_of_it(void **state)
{
    (void)state;
    struct job_exit tasks[2] = { task(EXITED(0), 0, JOBDIR_STOP_NONE),
                                 task(KILLED(SIGTERM), 0, JOBDIR_STOP_TIMEOUT) };
    struct job_exit job;
    verdict_job(tasks, 2, 1, JOBDIR_STOP_TIMEOUT, &job);
    assert_int_equal(job.kind, EXIT_TIMEOUT);
}

static void memory_is_the_largest_and_time_the_sum(void **state)
{
    (void)state;
    struct job_exit tasks[2] = { { .kind = EXIT_CODE, .mem_peak_bytes = 5, .cpu_us = 30 },
                                 { .kind = EXIT_CODE, .mem_peak_bytes = 7, .cpu_us = 12 } };
    struct job_exit job;
    verdict_job(tasks, 2, -1, JOBDIR_STOP_NONE, &job);
    assert_int_equal(job.mem_peak_bytes, 7);
    assert_int_equal(job.cpu_us, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_signals_are_themselves),
        cmocka_unit_test(memory_limit_counts_only_for_a_failure),
        cmocka_unit_test(what_was_asked_to_end_ended_for_that),
        cmocka_unit_test(job_ends_as_its_first_failure),
        cmocka_unit_test(stop_wins_over_what_the_tasks_made_of_it),
        cmocka_unit_test(memory_is_the_largest_and_time_the_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
