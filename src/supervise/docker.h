/*
 * docker.h - a task in a container that docker's daemon makes.
 *
 * The daemon is root, and whoever may ask it is root by another name. So the
 * user asks nothing: docker's command line runs as root beside the supervisor,
 * with words that are ours but for those that model/container.h lets through,
 * in an environment that is ours alone. The container is born below the task's
 * cgroup (--cgroup-parent), so that the gate, the limits and the end of the job
 * hold it; inside it the user is himself (--user), without capabilities and
 * without new privileges.
 *
 * What is mounted is named to the daemon by path, and it follows the path as
 * root, later than we looked. So only what nobody but root can exchange is
 * named: docker_source gives that part of a path. What lies below is reached
 * by the user himself, inside, with his own rights.
 *
 *     docker_look(s, &tree->cgroup, task, &d, e);
 *     docker_run_words(s, task, &d, "/usr/bin/docker", &words, e);
 *     … as root: execve(words[0], words, docker_environment(s)), with
 *       what docker_env_file gave as descriptor CONTAINER_SCRIPT_FD …
 *     docker_clear(s, program);
 *
 * The client dies with its supervisor; what it had asked for may come true all
 * the same. So docker_clear is called before the cgroup goes, by the supervisor
 * or, after its death, by `divvy-supervise --clear`, which divvyd calls.
 */
#ifndef DIVVY_SUPERVISE_DOCKER_H
#define DIVVY_SUPERVISE_DOCKER_H

#include "base/text.h"
#include "jobdir/jobdir.h"
#include "cgroup/cgroup.h"

#define DOCKER_SCRIPT "/divvy-script" /* a job's script, inside */

/* What the daemon can do, and where the container goes. */
struct docker_host {
    char *parent;  /* cgroup of the task, below each mount */
    char *script;  /* the job's script as a file that only root can exchange; NULL: there is none */
    char **mounts; /* words for what the job wants to have mounted */
    char **reach;  /* what these mount: the user has to be able to go there */
    bool init;     /* it has a small init, which passes signals on */
    bool cdi;      /* it reads the CDI specification that divvyd keeps */
};

#define DOCKER_HOST_INIT                                                                           \
    {                                                                                              \
        .parent = NULL                                                                             \
    }
void docker_host_done(struct docker_host *d);

/* Asks the daemon, for 20 s at most. -ENOTSUP or -EIO with what would have to be otherwise. */
int docker_look(const struct jobdir_spec *s, const struct cgroup *c, unsigned task,
                struct docker_host *ret, struct err *e);

/* The same from its answer, JSON as `docker info` gives it. Pure. `ret` gets init and cdi. */
int docker_judge(const struct jobdir_spec *s, const char *info, struct docker_host *ret,
                 struct err *e);

/*
 * The longest beginning of `path`, with all links followed, of which nobody but
 * root can exchange any part: "/home/a" for "/home/a/train", "/tmp" for
 * "/tmp/x". It looks as root: whether the user may go there is asked as the user
 * (docker_reachable). -EINVAL for what a mount cannot name.
 */
int docker_source(const char *path, char **ret, struct err *e);

/* Can the caller go to all of these? Called as the user. -EACCES with its name. */
int docker_reachable(char *const *reach, struct err *e);

/* The command lines; none has a value of a variable in it. Pure. *ret is strv_free's. */
int docker_run_words(const struct jobdir_spec *s, unsigned task, const struct docker_host *d,
                     const char *program, char ***ret, struct err *e);
char **docker_inside_words(const struct jobdir_spec *s, unsigned task, const char *program);
char **docker_clear_words(const struct jobdir_spec *s, unsigned task, const char *program);

/* Of the client: nothing of the user's. */
char **docker_environment(const struct jobdir_spec *s);

/*
 * The variables that go in, as docker's --env-file takes them, with their values
 * of `env`. -EINVAL: one has a line break, for which that file has no word.
 */
int docker_env_file(const struct jobdir_spec *s, unsigned task, char *const *env, struct text *ret,
                    struct err *e);

/*
 * Ends and removes the containers of all tasks. Blocks, for 20 s at most with
 * each; what could not be removed is logged. -ETIMEDOUT: the daemon hangs, and
 * may yet do what it was asked for. One that is not there does nothing more.
 */
int docker_clear(const struct jobdir_spec *s, const char *program);

#endif
