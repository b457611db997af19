/*
 * container.h - the container that a job runs in, as it was asked for.
 *
 * The words are checked here alone, so that the command, the API and the
 * supervisor agree on what cannot be: an image or an argument that would be
 * taken for something else, and options that would lead the container out of
 * the job (another cgroup, another name, the background).
 */
#ifndef DIVVY_MODEL_CONTAINER_H
#define DIVVY_MODEL_CONTAINER_H

#include <stdbool.h>

#include "base/err.h"

#define CONTAINER_IMAGE_MAX 512u
#define CONTAINER_ARGS_MAX 256u
#define CONTAINER_BYTES_MAX 16384u /* of all arguments, or of all names, together */

/* Strings are owned; image NULL: the job runs on the host itself. */
struct job_container {
    char *image;   /* as the runtime takes it: a name, or a file */
    char *runtime; /* "podman", "apptainer" or "docker"; NULL: the first that is there */
    char **args;   /* more words for the runtime, each an option; or NULL */
    char **env;    /* names of the job's variables that go in, beside the task's; or NULL */
};

void job_container_done(struct job_container *c);

/*
 * -EINVAL with a sentence. docker makes its containers as root: of its options
 * only those that lead to nothing that their user could not reach are taken.
 */
int job_container_check(const struct job_container *c, struct err *e);
bool job_container_is_docker(const struct job_container *c);

/* The runtimes that a user starts himself, in the order of preference; ends with NULL. docker comes after them. */
extern const char *const container_runtimes[];

#endif
