/*
 * filter.h - which jobs a list is about: whose, of which account, in which states.
 *
 *     static const struct argp_option options[] = { FILTER_OPTIONS('m'), …, { 0 } };
 *     …in the parser:  if (filter_parse(key, arg, &c->filter)) return 0;
 */
#ifndef DIVVY_CLI_FILTER_H
#define DIVVY_CLI_FILTER_H

#include "cli/verb.h"

struct filter {
    bool mine;                         /* only the caller's own */
    char user[33];                     /* "": any */
    char account[JOB_ACCOUNT_MAX + 1]; /* "": any */
    uint32_t states;                   /* bits 1 << enum job_state; 0: not given */
};

/* clang-format off: rows of a table */
/* `letter` is --mine's: 'M' beside PERIOD_OPTIONS, whose --month has the 'm'; else 'm'. */
#define FILTER_OPTIONS(letter)                                                                     \
    { "mine", (letter), NULL, 0, "only your own", 1 },                                             \
        { "me", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1 },                                  \
        { "user", 'u', "NAME", 0, "only this user's", 1 },                                         \
    {                                                                                              \
        "account", 'A', "NAME", 0, "only this account's", 1                                        \
    }
#define FILTER_STATES                                                                              \
    {                                                                                              \
        "state", 't', "STATE,...", 0, "only in these states", 1                                    \
    }
/* clang-format on */

/* True when the key was one of these. Ends with verb_refuse on what cannot be. */
bool filter_parse(int key, const char *arg, struct filter *f);

/* Adds "waiting,running" to *states. -EINVAL, with the nearest, for what is no state. */
int filter_add_states(const char *words, uint32_t *states, struct err *e);

/* For the daemon. It knows jobs by the uid of their owner, and the past by his name. */
void filter_of_jobs(const struct filter *f, struct job_filter *ret);
void filter_of_history(const struct session *s, const struct filter *f, struct history_filter *ret);

#endif
