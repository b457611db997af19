/*
 * options.h - what can be said about a job, on the command line and in a
 * script's #DIVVY lines.
 *
 * One table tells every option once; argp, scripts and the refusals use it.
 * Words are kept as they were typed, with where they stood, until both sources
 * are known: the command line wins, and what it asks for as GPU replaces
 * whatever GPU the script asks for. What they mean is read by cli/spec.h.
 *
 *     AUTO(job_options) struct job_options cmd = JOB_OPTIONS_INIT, script = …;
 *     job_option_words("train.sh", words, lines, n, &script, e);   // #DIVVY lines
 *     job_options_merge(&cmd, &script);
 *
 * Pure: reads no clock, file or environment.
 */
#ifndef DIVVY_CLI_OPTIONS_H
#define DIVVY_CLI_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum job_option {
    OPT_GPUS = 0,
    OPT_SLICE,
    OPT_GPU_MEM,
    OPT_GPU_COMPUTE,
    OPT_TASKS,
    OPT_SPREAD,
    OPT_EXACT,
    OPT_OR_7G,
    OPT_BIND,
    OPT_KEEP_GOING,
    OPT_REQUEUE_ON_FAULT,
    OPT_NAME,
    OPT_ACCOUNT,
    OPT_QOS,
    OPT_TIME,
    OPT_OUTPUT,
    OPT_ERROR,
    OPT_SRUN,
    OPT_MEM,
    OPT_CPUS,
    OPT_SIGNAL,
    OPT_ENV,
    OPT_CHDIR,
    OPT_CONTAINER,
    OPT_CONTAINER_RUNTIME,
    OPT_CONTAINER_ARG,
    OPT_ARRAY,
    OPT_BEGIN,
    OPT_DEADLINE,
    OPT_DEPENDENCY,
    OPT_HOLD,
    OPT_KEEP_INVALID,
    OPT_NO_REQUEUE,
    OPT_ON_START,
    OPT_ON_END,
    OPT_APPEND,
    JOB_OPTIONS,
};

struct job_option_value {
    const char *words; /* NULL: not given; "" for one without a value. Borrowed */
    const char *file;  /* where it stood; NULL: the command line */
    unsigned line;
};

struct job_options {
    struct job_option_value values[JOB_OPTIONS];
    char *env;            /* several --env, joined; owned */
    char *container_args; /* several --container-arg, a line each; owned */
};

#define JOB_OPTIONS_INIT                                                                           \
    {                                                                                              \
        .values = { { NULL } }                                                                     \
    }

void job_options_done(struct job_options *o);

/* The table as argp wants it, ending with zeroes; `submit` chooses whose. */
const struct argp_option *job_options_argp(void);

/* An option by argp's key; the last one wins, but each --env adds. False: not one of these. */
bool job_option_set(struct job_options *o, int key, const char *arg);

/*
 * Options from a script's words; lines[i] is where word i stood. -EINVAL with
 * file and line: unknown (with the nearest), without a value, no option at all.
 */
int job_option_words(const char *file, char *const *words, const unsigned *lines, size_t n,
                     struct job_options *ret, struct err *e);

/* Fills what `o` leaves open from `below`. */
void job_options_merge(struct job_options *o, const struct job_options *below);

#endif
