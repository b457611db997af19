/*
 * warning.h - the signal that a job wants before its time limit, and signals by name.
 *
 *     struct job_warning w;
 *     job_warning_parse("USR1@60s", &w, e);   // SIGUSR1 a minute before the end
 */
#ifndef DIVVY_MODEL_WARNING_H
#define DIVVY_MODEL_WARNING_H

#include <stdint.h>

#include "base/err.h"

/* "USR1", "SIGUSR1" in any case, or a number from 1 to 31. -EINVAL with what works. */
int signal_parse(const char *word, int *ret, struct err *e);
/* "USR1"; NULL: it has no name here. */
const char *signal_word(int sig);

/* A signal for every process of a job, some time before its limit ends it. */
struct job_warning {
    int signal; /* 0: none */
    int64_t before_us;
};

/* "SIGNAL@TIME"; without @TIME it is 60 seconds. -EINVAL, -ERANGE. */
int job_warning_parse(const char *text, struct job_warning *ret, struct err *e);
/* Does it make sense with this limit (0: none)? -EINVAL with a sentence. */
int job_warning_check(const struct job_warning *w, int64_t limit_us, struct err *e);

#endif
