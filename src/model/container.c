#include "model/container.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/job.h"

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
    if (strcmp(runtime, "docker") == 0)
        return err_set(e, -ENOTSUP,
                       "docker's own daemon makes its containers, outside the job: limits, the "
                       "gate and cancelling would not reach them, and who may ask it is root by "
                       "another name; podman runs the same images");
    for (size_t i = 0; container_runtimes[i]; i++)
        if (strcmp(runtime, container_runtimes[i]) == 0)
            return 0;
    return err_set(e, -EINVAL, "'%.32s' is no container runtime here; podman and apptainer are",
                   runtime);
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
    return r < 0 ? r : check_env(c->env, e);
}
