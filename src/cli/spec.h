/*
 * spec.h - the job that comes of its options and of where it is submitted.
 *
 * Options are words (cli/options.h). Here they get their meaning: sizes,
 * limits, times, which of them exclude each other; and the place gives what
 * they leave out: the directory, the environment, the name of the output file.
 * What comes out would pass the daemon's own check, but for an account that
 * nobody named.
 *
 *     struct submit_place where = { .cwd = "/home/alice", .environ_ = environ, … };
 *     job_options_spec(&options, &where, &spec, &left_out, e);
 *
 * Pure: reads no clock, file or environment.
 */
#ifndef DIVVY_CLI_SPEC_H
#define DIVVY_CLI_SPEC_H

#include "cli/options.h"
#include "model/job.h"

/* Where and with what a job is submitted. All borrowed. */
struct submit_place {
    const char *cwd;          /* absolute */
    char *const *environ_;    /* of the caller */
    char *const *command;     /* NULL-terminated */
    const char *script;       /* text, or NULL */
    bool attached;            /* divvy run: no output file */
    int64_t now_wall_us;      /* for --begin and --deadline */
    const char *user;         /* for %u in the names of files; NULL: %u stays */
    const char *account_hint; /* DIVVY_ACCOUNT of the caller; NULL: the daemon knows */
};

/*
 * The job. `ret` is job_spec_done's. *ret_left_out (owned, NULL when empty)
 * names variables of the environment that are no UTF-8 and were left out.
 * -EINVAL, -ERANGE, -E2BIG with the option's name, and file and line for
 * what stood in a script.
 */
int job_options_spec(const struct job_options *o, const struct submit_place *where,
                     struct job_spec *ret, char **ret_left_out, struct err *e);

#endif
