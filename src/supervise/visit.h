/*
 * visit.h - commands that somebody runs inside a job while it runs.
 *
 * `divvy attach` asks through the job's socket; each visitor is one more
 * process in the cgroup of a task: under its gate and its limits, with its
 * environment, as its user. It has streams or a terminal of its own. Its end
 * does not touch the job; the end of the job kills it with all the rest.
 *
 * `srun` comes by the same door, a visitor for each process of a step: with a
 * folder and an environment of its own, each in the task that has the fewest
 * steps, so that it has a slice for itself while there is one.
 *
 *     visits_take(&v, spec, &cgroup, &listening);  // after ATTACH_VISIT
 *     … poll visits_fds; visits_ready(&v, fds) …
 *     if (!visits_reaped(&v, pid, status)) it was a task
 *     visits_done(&v);
 */
#ifndef DIVVY_SUPERVISE_VISIT_H
#define DIVVY_SUPERVISE_VISIT_H

#include "supervise/attach.h"
#include "supervise/payload.h"

#define VISITS_MAX (8 + REQUEST_TASKS_MAX)
#define VISITS_FDS (VISITS_MAX * ATTACH_FDS)

struct visitor {
    struct attach attach;
    struct payload_process process; /* pid 0: this place is free */
    bool step;
    unsigned task; /* of a step */
};

struct visits {
    const struct session *session; /* of the job; borrowed */
    struct visitor *all;
    size_t count, alloc; /* at most VISITS_MAX */
    pid_t beginning;     /* of whose step some processes have begun and others not; 0: none */
};

/* Lets the guest of `from` in, or tells him why not. `spec` and `cgroup` are the job's. */
void visits_take(struct visits *v, const struct jobdir_spec *spec, const struct cgroup *cgroup,
                 struct attach *from);

/* Returns how many it filled, which visits_ready takes back; they may be -1. */
size_t visits_fds(const struct visits *v, struct pollfd ret[VISITS_FDS]);
void visits_ready(struct visits *v, const struct pollfd *fds);

/* True when `pid` was a visitor's: whoever attached is told how it ended. */
bool visits_reaped(struct visits *v, pid_t pid, int status);

/* Lets go of all that are left; their processes are not ours to kill. */
void visits_done(struct visits *v);

#endif
