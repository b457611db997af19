/*
 * child.h - the child's side of payload.h: from fork to exec, in order.
 */
#ifndef DIVVY_SUPERVISE_CHILD_H
#define DIVVY_SUPERVISE_CHILD_H

#include "supervise/session.h"

#define CHILD_BORN 'b' /* the child's first word on `go` */
#define CHILD_GO 'g'
#define CHILD_GO_TERMINAL 't'
#define CHILD_PROCS_MAX 16

struct child {
    const struct jobdir_spec *spec;
    unsigned task;
    const struct session *session; /* NULL: none */
    char **env;
    int script;       /* memory file to exec instead of argv[0], or for the words; -1: none */
    char **words;     /* of a container's runtime, whose path is the first; NULL: job.argv */
    bool client;      /* root runs the words, beside the job, for its user: docker.h */
    char **reach;     /* what the user has to be able to reach then */
    int go, told;     /* the child's ends */
    const int *procs; /* cgroup.procs files to write "0" to */
    int procs_count;
};

/* Written to `told` when it cannot exec; less than PIPE_BUF, so whole or not at all. */
struct child_report {
    int value; /* 127: no such program; 126: anything else */
    char text[240];
};

_Noreturn void child_run(const struct child *c);

#endif
