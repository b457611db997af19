/*
 * sbatch.h - options of Slurm's sbatch, as ours.
 *
 * What has a counterpart becomes that; what has none is named in a note and
 * left out; what asks for another machine, or for two things at once, is
 * refused with file and line.
 *
 *     script_parse_sbatch("train.sh", text, len, &found, e);
 *     sbatch_words("train.sh", &found, &ours, &note, e);
 *     job_option_words("train.sh", ours.argv, ours.lines, ours.count, &options, e);
 *
 * Pure.
 */
#ifndef DIVVY_CLI_SBATCH_H
#define DIVVY_CLI_SBATCH_H

#include "config/script.h"

/* `ret` is script_options_done's. *ret_note (owned) names what was left out; NULL: nothing. */
int sbatch_words(const char *file, const struct script_options *found, struct script_options *ret,
                 char **ret_note, struct err *e);

/*
 * Our option ("cpus") for a word that names one of sbatch's ("--cpus-per-task=4", "-c"), or the
 * nearest where none is the same; NULL: none is near, or that is no option of sbatch.
 */
const char *sbatch_nearest(const char *word);

#endif
