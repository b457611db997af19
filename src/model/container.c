#include "model/container.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/job.h"

#define DOCKER "docker"

const char *const container_runtimes[] = { "podman", "apptainer", NULL };

void job_container_done(struct job_container *c)
{
    free(c->image);
    free(c->runtime);
    strv_free(c->args);
    strv_free(c->env);
    memset(c, 0, sizeof *c);
}

static int check_image(const char *image, struct err *e)
{
    if (!image[0])
        return err_set(e, -EINVAL, "the container's image is missing");
    if (strlen(image) > CONTAINER_IMAGE_MAX)
        return err_set(e, -EINVAL, "the image's name has %zu bytes, at most %u work", strlen(image),
                       CONTAINER_IMAGE_MAX);
    if (image[0] == '-' || strchr(image, ' ') || !text_is_printable(image))
        return err_set(e, -EINVAL,
                       "'%.64s' is no image; it is a name such as docker.io/library/debian:12, or "
                       "a file for apptainer",
                       image);
    return 0;
}

static int check_runtime(const char *runtime, struct err *e)
{
    for (size_t i = 0; container_runtimes[i]; i++)
        if (strcmp(runtime, container_runtimes[i]) == 0)
            return 0;
    if (strcmp(runtime, DOCKER) == 0)
        return 0;
    return err_set(e, -EINVAL,
                   "'%.32s' is no container runtime here; podman, apptainer and docker are",
                   runtime);
}

bool job_container_is_docker(const struct job_container *c)
{
    return c->image && text_same(c->runtime, DOCKER);
}

/* Divvy sets these, or they would take the container out of the job. */
static const char *const reserved[] = {
    "--name",        "--replace",       "--rm",           "--detach",  "--cgroups", "--restart",
    "--cgroup-conf", "--cgroup-parent", "--preserve-fds", "--cidfile",
};

static bool is_reserved(const char *arg)
{
    if (arg[1] != '-') /* -d, and -itd */
        return memchr(arg + 1, 'd', strspn(arg + 1, "itPqd")) != NULL;
    size_t len = strcspn(arg, "=");
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (strlen(reserved[i]) == len && strncmp(arg, reserved[i], len) == 0)
            return true;
    return false;
}

static int check_args(char *const *args, struct err *e)
{
    size_t bytes = 0;
    for (size_t i = 0; args && args[i]; i++) {
        bytes += strlen(args[i]) + 1;
        if (i >= CONTAINER_ARGS_MAX || bytes > CONTAINER_BYTES_MAX)
            return err_set(e, -EINVAL,
                           "the container has too many arguments; %u of %u bytes together work",
                           CONTAINER_ARGS_MAX, CONTAINER_BYTES_MAX);
        if (args[i][0] != '-' || !args[i][1] || strcmp(args[i], "--") == 0)
            return err_set(e, -EINVAL,
                           "'%.64s' is no option of the container's runtime; a value goes behind "
                           "=, as in --volume=/data:/data",
                           args[i]);
        if (!text_is_printable(args[i]))
            return err_set(e, -EINVAL, "the container's argument %zu is no printable UTF-8", i);
        if (is_reserved(args[i]))
            return err_set(e, -EINVAL,
                           "%.64s is not for a job to say: its container stays in the foreground, "
                           "in the job's own cgroup, and goes when the job ends",
                           args[i]);
    }
    return 0;
}

/* What root's daemon may be told by somebody who is not root. */
static int check_docker_arg(const char *arg, struct err *e)
{
    static const char *const known[] = { "--entrypoint=",  "--env=",      "--network=none",
                                         "--network=host", "--read-only", "--shm-size=",
                                         "--tmpfs=",       "--volume=",   "--workdir=" };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = strlen(known[i]);
        bool whole = known[i][len - 1] != '=';
        if (strncmp(arg, known[i], len) == 0 && (!whole || !arg[len]))
            return 0;
    }
    return err_set(
        e, -EINVAL,
        "%.64s is not for a job to say where docker's own daemon makes the container, as "
        "root; it takes --volume=, --tmpfs=, --env=, --workdir=, --entrypoint=, "
        "--shm-size=, --read-only, --network=none and --network=host",
        arg);
}

/* "/data:/data" or "/data:/data:ro": a name alone would be a volume of the daemon's. */
static int check_docker_volume(const char *volume, struct err *e)
{
    const char *to = strchr(volume, ':');
    const char *how = to ? strchr(to + 1, ':') : NULL;
    if (volume[0] == '/' && to && to[1] == '/' && !strpbrk(volume, ",\"") &&
        (!how || strcmp(how, ":ro") == 0 || strcmp(how, ":rw") == 0))
        return 0;
    return err_set(e, -EINVAL,
                   "--volume=%.128s: docker takes /FROM:/TO, with :ro behind it for reading alone, "
                   "and neither a comma nor a quote in it",
                   volume);
}

static int check_docker(char *const *args, struct err *e)
{
    static const char volume[] = "--volume=";
    int r = 0;
    for (size_t i = 0; r == 0 && args && args[i]; i++) {
        r = check_docker_arg(args[i], e);
        if (r == 0 && text_starts(args[i], volume))
            r = check_docker_volume(args[i] + strlen(volume), e);
    }
    return r;
}

static bool is_variable(const char *s)
{
    if (!isalpha((unsigned char)s[0]) && s[0] != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

static int check_env(char *const *env, struct err *e)
{
    size_t bytes = 0;
    for (size_t i = 0; env && env[i]; i++) {
        bytes += strlen(env[i]) + 1;
        if (!is_variable(env[i]) || bytes > CONTAINER_BYTES_MAX)
            return err_set(e, -EINVAL,
                           "'%.64s' cannot be the name of a variable inside the container", env[i]);
    }
    return 0;
}

int job_container_check(const struct job_container *c, struct err *e)
{
    if (!c->image) {
        if (c->runtime || c->args || c->env)
            return err_set(e, -EINVAL, "a container's runtime and arguments need an image");
        return 0;
    }
    int r = check_image(c->image, e);
    if (r == 0 && c->runtime)
        r = check_runtime(c->runtime, e);
    if (r == 0)
        r = check_args(c->args, e);
    if (r == 0 && job_container_is_docker(c))
        r = check_docker(c->args, e);
    return r < 0 ? r : check_env(c->env, e);
}
