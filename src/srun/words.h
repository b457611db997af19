/*
 * words.h - what was said to srun.
 *
 * Slurm's options that have a meaning on one machine are taken, those that
 * have none here are named in a note and left out, what cannot be done is
 * refused. Options end at the first word that is none: the command.
 *
 * Pure but for getopt's own state.
 */
#ifndef DIVVY_SRUN_WORDS_H
#define DIVVY_SRUN_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct words {
    uint32_t tasks;             /* 0: as many as the job says */
    const char *output, *error; /* files; NULL: those of srun */
    const char *input, *cwd;    /* NULL: those of srun */
    bool overlap;               /* a slice that has a step is as good as a free one */
    bool kill_on_bad_exit;      /* one that fails ends the others */
    bool label;                 /* number of the process before each line */
    bool version;               /* say which, and no more */
    char *const *command;       /* borrowed, at least one word */
    struct text left_out;       /* "--mpi, --cpu-bind"; "": nothing */
};

void words_done(struct words *w);
/* -EINVAL with a sentence. `ret` is words_done's either way. */
int words_parse(int argc, char **argv, struct words *ret, struct err *e);

#endif
