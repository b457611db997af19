/*
 * ids.h - verbs whose arguments are jobs: "41", "#41", several of them.
 */
#ifndef DIVVY_CLI_IDS_H
#define DIVVY_CLI_IDS_H

#include "cli/verb.h"

struct ids {
    uint64_t *ids;
    size_t count, alloc;
    const char *verb; /* ids_each's */
};

void ids_done(struct ids *l);

/* For a verb's parser, on ARGP_KEY_ARG: appends; what is no number ends in verb_refuse. */
void ids_take(struct ids *l, const char *word);

/* What a verb does about one job: adds to `ret` or prints JSON. Gives the exit status. */
typedef int (*ids_fn)(const struct session *s, struct client *c, uint64_t id, struct text *ret);

/*
 * All of a verb that only takes jobs: reads them, calls `fn` for each, prints.
 * Without any it asks "which job? divvy VERB 41". The first failure's status.
 */
int ids_each(struct session *s, int argc, char **argv, const char *verb, const char *doc,
             ids_fn fn);

#endif
