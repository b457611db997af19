/*
 * container.h - a task inside a container: the words that start it, and those
 * that clear it away.
 *
 * The runtime is a process of the job's like any other: it is started as the
 * user, in the task's cgroup, behind its gate, and everything it starts stays
 * there. podman makes no cgroups of its own (--cgroups=disabled where the host
 * is unified; elsewhere a rootless one cannot). The image's own environment
 * holds but for the task's variables and those that the job names; the working
 * directory is mounted under its own name; of the devices the container has
 * the granted ones alone.
 *
 * docker's containers are made by its daemon, not by the user: see docker.h.
 *
 * A container is also a record in the user's storage, which outlives processes
 * that were killed: container_clear removes it when nothing of the job lives.
 *
 *     AUTO(container_host) struct container_host h = CONTAINER_HOST_INIT;
 *     container_find(&s->job.container, &h, e);
 *     container_run_words(s, 0, &h, &argv, e);
 *     … execve(h.program, argv, container_environment(env, s, 0, &h)) …
 *     container_clear(s, &tree);
 */
#ifndef DIVVY_SUPERVISE_CONTAINER_H
#define DIVVY_SUPERVISE_CONTAINER_H

#include "jobdir/jobdir.h"
#include "supervise/tree.h"

#define CONTAINER_SCRIPT_FD 3 /* where a script is handed in */

/* What there is on this machine to start one with. */
struct container_host {
    const char *runtime; /* "podman", "apptainer" or "docker" */
    char *program;       /* its path */
    char *oci;           /* podman: what it is to start containers with; NULL: its own choice */
    bool unified;        /* cgroup v2 alone */
    bool init;           /* podman: it has catatonit, which passes signals on */
};

#define CONTAINER_HOST_INIT                                                                        \
    {                                                                                              \
        .runtime = NULL                                                                            \
    }
void container_host_done(struct container_host *h);

/*
 * The runtime that was asked for, or the first that is there, along the
 * supervisor's own PATH: never the user's. -ENOENT with a sentence.
 */
int container_find(const struct job_container *c, struct container_host *ret, struct err *e);

/*
 * Calls for every variable that goes in, each once. The values stay off the
 * command line, which is for everybody to read.
 */
typedef void (*container_name_fn)(void *user, const char *name, size_t len);
void container_each_name(const struct jobdir_spec *s, unsigned task, container_name_fn each,
                         void *user);

/* "/dev/nvidia0", wherever the driver's root stands. */
const char *container_below_root(const char *driver_root, const char *path);

/*
 * The command line of a task, not docker's. Pure. -EINVAL: something has a name that the
 * runtime cannot take. *ret is strv_free's.
 */
int container_run_words(const struct jobdir_spec *s, unsigned task, const struct container_host *h,
                        char ***ret, struct err *e);

/*
 * The command line that runs job.argv inside the container of a task that
 * runs. NULL: the runtime has no such thing; what it runs is seen from the
 * host as well. Pure.
 */
char **container_inside_words(const struct jobdir_spec *s, unsigned task,
                              const struct container_host *h);

/* The command line that removes what is left of it, not docker's; NULL: nothing ever is. Pure. */
char **container_clear_words(const struct jobdir_spec *s, unsigned task,
                             const struct container_host *h);

/* What the runtime itself gets: `take_env`, less what would lead it elsewhere. Pure. */
char **container_environment(char **take_env, const struct jobdir_spec *s, unsigned task,
                             const struct container_host *h);

/*
 * Removes what is left of all tasks, as the user in their cgroups (docker's: as
 * root), and kills whatever that left. Blocks for 20 s at most, with SIGCHLD
 * blocked; what could not be removed is logged.
 */
void container_clear(const struct jobdir_spec *s, const struct tree *t);

#endif
