/*
 * tree.h - the processes of one attempt, however this host can hold them.
 *
 * With cgroups: one for each task with its limits and its gate. Without: the
 * descendants of this process, which must be a subreaper. What could not be
 * had is written down, with the reason, in the struct jobdir_started.
 */
#ifndef DIVVY_SUPERVISE_TREE_H
#define DIVVY_SUPERVISE_TREE_H

#include "cgroup/cgroup.h"
#include "jobdir/jobdir.h"

struct tree {
    struct cgroup cgroup; /* kind CGROUP_NONE: by descent */
    int events;           /* POLLPRI when the tree gets empty; -1: look by time */
    int oom;              /* POLLIN when a memory limit is reached; -1: the kernel sees to it */
};

#define TREE_INIT                                                                                  \
    {                                                                                              \
        .cgroup = CGROUP_INIT, .events = -1, .oom = -1                                             \
    }

/*
 * Makes the cgroups, sets limits, closes the gates, and fills the tracking,
 * isolation and enforced fields of `ret` (its tasks must be there). Negative
 * only for a limit that the kernel refuses, or a gate that cannot be made of
 * the spec: then nothing is left.
 */
int tree_open(const struct jobdir_spec *s, struct tree *t, struct jobdir_started *ret,
              struct err *e);

void tree_signal(const struct tree *t, int sig);
/* The task alone; only with a cgroup. */
void tree_kill_task(const struct tree *t, unsigned task);
/* Is anything left? Reaped or not. */
bool tree_populated(const struct tree *t);
/* Takes note of an event on `events`, so that the next one is told. */
void tree_rearm(const struct tree *t);
/* Peak memory, CPU time (kept when not known) and OOM kills of a task. */
uint64_t tree_usage(const struct tree *t, unsigned task, struct job_exit *ret);
/* Removes the cgroups when they are empty. */
void tree_close(struct tree *t);

#endif
