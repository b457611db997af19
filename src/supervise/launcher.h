/*
 * launcher.h - one process that makes a supervisor of each attempt by fork.
 *
 * To exec a program costs more than all that its first milliseconds do, and
 * it costs that again for each of a thousand short jobs. divvyd runs one
 * launcher, `divvy-supervise --launcher JOBS`, and asks it for each attempt by
 * the name of its folder, one packet each, on standard input. Nothing is
 * answered: the job folder tells, as it does of a supervisor that was exec'd.
 *
 * It holds nothing that matters. Killed at any instruction it leaves behind
 * supervisors that live on, and folders without one, for which divvyd asks the
 * next launcher once more. When divvyd ends, so does it.
 */
#ifndef DIVVY_SUPERVISE_LAUNCHER_H
#define DIVVY_SUPERVISE_LAUNCHER_H

#include <stddef.h>

#include "base/err.h"

/*
 * Serves standard input. Returns more than once: 1 in each child, with the
 * folder's name and the command line changed to it, and everything else as
 * after an exec by divvyd; 0 in the launcher, when nobody can ask any more.
 * `argv` is main's own.
 */
int launcher_run(char **argv, char *ret_name, size_t size, struct err *e);

#endif
