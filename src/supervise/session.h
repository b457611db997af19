/*
 * session.h - the PAM session of an attempt, held open while it lives.
 *
 * PAM's modules are shared objects that read files, ask name services and may
 * crash; they run in a program of their own, divvy-session, which is started
 * beside the tasks (as root, outside of their cgroups). It opens the session,
 * tells what that made of itself (resource limits, umask, nice value) and what
 * PAM puts into the environment, and waits. When the supervisor closes the
 * session, or dies, it closes it and ends. Each task takes over what was told
 * before it becomes the user.
 *
 *     session_open(&session, spec, e);      // at most 30 s
 *     … in the child: session_enter(&session, e); …
 *     session_close(&session);
 *
 * What a module does to its own process beyond that (a mount namespace, a
 * cgroup) does not reach the tasks.
 */
#ifndef DIVVY_SUPERVISE_SESSION_H
#define DIVVY_SUPERVISE_SESSION_H

#include <sys/resource.h>

#include "jobdir/jobdir.h"
#include "model/fields.h"

/* Where divvy-session looks for its service; the service's name is in the spec. */
#define SESSION_MESSAGE_MAX 262144u

struct session {
    pid_t pid; /* of divvy-session; 0: there is no session */
    int hold;  /* it ends when this closes; -1: none */
    struct rlimit limits[RLIM_NLIMITS];
    bool limited[RLIM_NLIMITS]; /* which of them were told */
    mode_t umask;
    int nice;
    char **env; /* "NAME=value"; NULL: none */
};

#define SESSION_INIT                                                                               \
    {                                                                                              \
        .hold = -1, .umask = 022                                                                   \
    }

/* With spec->pam NULL nothing happens. Else negative, with PAM's own words: the job must not run. */
int session_open(struct session *s, const struct jobdir_spec *spec, struct err *e);

/* In a child that is still root: takes over limits, umask and nice value. */
int session_enter(const struct session *s, struct err *e);

/* Those of PAM's variables that the job does not have itself are added. */
void session_add_env(const struct session *s, char ***env);

/* Waits for the session to be closed, at most 30 s. */
void session_close(struct session *s);

/* What divvy-session writes, and session_open reads. New reference; -EINVAL. */
json_t *session_to_json(const struct session *s);
int session_from_json(json_t *j, struct session *ret, struct err *e);

#endif
