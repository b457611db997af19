#include "supervise/verdict.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void set(struct job_exit *x, enum exit_kind kind, int value, const char *text)
{
    x->kind = kind;
    x->value = value;
    (void)snprintf(x->text, sizeof x->text, "%s", text); /* ours, and short */
}

static void set_stopped(struct job_exit *x, enum jobdir_stop stopped, int signal)
{
    if (stopped == JOBDIR_STOP_TIMEOUT)
        set(x, EXIT_TIMEOUT, signal, "its time limit ended it");
    else if (stopped == JOBDIR_STOP_PREEMPT)
        set(x, EXIT_CANCELLED, signal, "preempted");
    else if (stopped == JOBDIR_STOP_OUTSIDE)
        set(x, EXIT_INTERRUPTED, signal,
            "ended from outside of Divvy: the machine shut down, or its unit was stopped");
    else
        set(x, EXIT_CANCELLED, signal, "");
}

void verdict_task(int status, uint64_t oom_kills, enum jobdir_stop stopped, struct job_exit *ret)
{
    bool signaled = WIFSIGNALED(status);
    int value = signaled ? WTERMSIG(status) : WEXITSTATUS(status);
    if (stopped != JOBDIR_STOP_NONE)
        set_stopped(ret, stopped, signaled ? value : 0);
    else if (oom_kills > 0 && (signaled || value != 0))
        set(ret, EXIT_OOM, SIGKILL, "its memory limit killed it");
    else
        set(ret, signaled ? EXIT_SIGNAL : EXIT_CODE, value, "");
}

bool verdict_failed(const struct job_exit *x)
{
    return x->kind != EXIT_CODE || x->value != 0;
}

void verdict_job(const struct job_exit *tasks, size_t count, int first_failed,
                 enum jobdir_stop stopped, struct job_exit *ret)
{
    *ret = tasks[first_failed >= 0 ? first_failed : 0];
    ret->task = first_failed >= 0 ? first_failed : 0;
    if (stopped != JOBDIR_STOP_NONE)
        set_stopped(ret, stopped, 0);
    ret->mem_peak_bytes = 0;
    ret->cpu_us = 0;
    for (size_t i = 0; i < count; i++) {
        ret->cpu_us += tasks[i].cpu_us;
        if (tasks[i].mem_peak_bytes > ret->mem_peak_bytes)
            ret->mem_peak_bytes = tasks[i].mem_peak_bytes;
    }
}
