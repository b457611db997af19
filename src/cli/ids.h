/*
 * ids.h - verbs whose arguments are jobs: "41", "#41", several of them.
 */
#ifndef DIVVY_CLI_IDS_H
#define DIVVY_CLI_IDS_H

#include "cli/verb.h"

struct ids {
    uint64_t *ids;
    size_t count, alloc;
};

void ids_done(struct ids *l);

/* For a verb's parser, on ARGP_KEY_ARG: appends; what is no number ends in verb_refuse. */
void ids_take(struct ids *l, const char *word);

#endif
