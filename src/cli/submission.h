/*
 * submission.h - from the words of `divvy submit` or `divvy run` to a job.
 */
#ifndef DIVVY_CLI_SUBMISSION_H
#define DIVVY_CLI_SUBMISSION_H

#include "cli/spec.h"
#include "cli/verb.h"

struct submission {
    struct job_options options;
    char **command; /* borrowed from argv, NULL-terminated; NULL: none was given */
    bool quoted;    /* it stood behind "--": a command, not a script */
    bool quiet;     /* what was left out of its environment is not told */
};

/* For the verb's argp parser: 0 when it took the key, else ARGP_ERR_UNKNOWN. */
error_t submission_parse(struct submission *s, int key, char *arg, struct argp_state *state);

/*
 * Makes the job. `may_be_script`: a first word that is not behind "--" is a
 * script, whose text goes with the job. On failure prints, and returns the
 * exit status; STATUS_OK with `ret` for job_spec_done.
 */
int submission_spec(const struct session *session, struct submission *s, bool may_be_script,
                    struct job_spec *ret);

/*
 * The same of a command, never a script, without a word of its own. A %u in a
 * file's name needs session->caller_name.
 */
int submission_make(const struct session *session, const struct submission *s, struct job_spec *ret,
                    struct err *e);

/* Submits; prints the daemon's remark. On failure prints, and returns the exit status. */
int submission_send(const struct session *session, struct client *c, const struct job_spec *spec,
                    uint64_t *ret_id, char **ret_note);

/* How the job ended, for a person, on standard error, where its own output does not tell. */
void submission_tell_end(const struct job_view *v);

#endif
