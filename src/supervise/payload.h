/*
 * payload.h - the process of one task, from fork to exec.
 *
 * The child gets everything ready by itself (cgroup, session, user, folder,
 * output file) while the supervisor makes `started` durable; it runs nothing
 * of the user's before it is released. A supervisor that dies lets go of the
 * release socket, and the child ends.
 *
 *     payload_spawn(&p, &child, e);
 *     … write `started` …
 *     payload_release(&child, streams, terminal, e);
 *     … waitpid …; if (payload_report(&child, &exit)) it never got to exec
 *
 * The order of becoming the user: cgroups, session, oom_score_adj, what PAM's
 * session brought, capability bounding set, groups, gid, uid (verified), no_new_privs, descriptors, folder,
 * output. All files of the user's are opened as the user.
 */
#ifndef DIVVY_SUPERVISE_PAYLOAD_H
#define DIVVY_SUPERVISE_PAYLOAD_H

#include "cgroup/cgroup.h"
#include "jobdir/jobdir.h"

struct container_host;
struct session;

struct payload {
    const struct jobdir_spec *spec;
    unsigned task;
    const struct session *session; /* NULL: none */
    const struct cgroup *cgroup;   /* kind CGROUP_NONE: none to enter */
    int dir;                       /* the job folder, for a script that docker's daemon mounts */
    /* Of a job in a container: */
    bool inside;                          /* the command goes into the one that runs */
    const struct container_host *runtime; /* run the spec's argv itself, as this runtime is run */
};

struct payload_process {
    pid_t pid; /* 0: none */
    int go;    /* to release it; -1 after */
    int told;  /* what went wrong before exec */
};

#define PAYLOAD_PROCESS_INIT                                                                       \
    {                                                                                              \
        .go = -1, .told = -1                                                                       \
    }

int payload_spawn(const struct payload *p, struct payload_process *ret, struct err *e);

/*
 * Lets it exec. `streams`: its standard input, output and error (borrowed), or
 * NULL for the output file of the spec; `terminal`: the first is a terminal
 * that shall control its session.
 */
int payload_release(struct payload_process *c, const int streams[3], bool terminal, struct err *e);

/* Lets go of one that was never released: it ends without having run anything. */
void payload_drop(struct payload_process *c);

/* After it ended: true, and `ret` filled, when it failed before exec. Closes. */
bool payload_report(struct payload_process *c, struct job_exit *ret);

/* What the task gets: the job's environment, the task's on top, and the marks of stray.h. */
char **payload_environment(const struct jobdir_spec *s, unsigned task);

#endif
