/*
 * batch.h - `divvy submit --batch FILE`: a job of every line.
 *
 *     # options, and behind -- a command; or a command alone
 *     --slice 1g.10gb --name first -- python3 train.py --seed 1
 *     ./evaluate.sh "all of it"
 *
 * Words are split as in #DIVVY lines (config/script.h). The whole file is read
 * and checked before the first job is sent; then hundreds of them go into one
 * request, and into one transaction of the store, each as safe on the disk as a
 * job of its own submit. One that the daemon refuses ends it: those of the
 * lines above are queued then, and the message says so.
 */
#ifndef DIVVY_CLI_BATCH_H
#define DIVVY_CLI_BATCH_H

#include "cli/submission.h"

/* Options of `all` are for every job that does not say better. "-": standard input. Prints the
 * numbers, one a line, and returns the exit status. */
int batch_submit(const struct session *s, const char *file, const struct submission *all);

#endif
