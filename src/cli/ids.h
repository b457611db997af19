/*
 * ids.h - verbs whose arguments are jobs: "41", "#41", "41_7" and "41_[3-9]" for
 * tasks of an array, several of them.
 */
#ifndef DIVVY_CLI_IDS_H
#define DIVVY_CLI_IDS_H

#include "cli/verb.h"

struct id {
    uint64_t id;
    char *indices; /* of tasks, as in model/array.h; NULL: the job, or the whole array */
};

struct ids {
    struct id *items;
    size_t count, alloc;
    const char *verb; /* ids_each's */
};

void ids_done(struct ids *l);

/* For a verb's parser, on ARGP_KEY_ARG: appends; what is no job ends in verb_refuse. */
void ids_take(struct ids *l, const char *word);
void ids_add(struct ids *l, uint64_t id);

/*
 * Asks the daemon which jobs the tasks are: afterwards no item has indices.
 * With `whole`, the number of an array becomes all its tasks. Prints what is wrong.
 */
int ids_resolve(const struct session *s, struct client *c, bool whole, struct ids *l);

/* What a verb does about one job: adds to `ret` or prints JSON. Gives the exit status. */
typedef int (*ids_fn)(const struct session *s, struct client *c, uint64_t id, struct text *ret);

/*
 * All of a verb that only takes jobs: reads them, calls `fn` for each, prints.
 * Without any it asks "which job? divvy VERB 41". The first failure's status.
 */
int ids_each(struct session *s, int argc, char **argv, const char *verb, const char *doc,
             ids_fn fn);

/* The same for a verb that the daemon carries out, on arrays at once. */
int ids_act(struct session *s, int argc, char **argv, const char *verb, const char *doc,
            enum job_action what);
/* One of them. `jobs` (may be NULL) gets its number, when it was done. */
int ids_act_on(const struct session *s, struct client *c, const struct id *id, enum job_action what,
               json_t *jobs);

#endif
