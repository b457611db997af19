/*
 * stray.h - the processes of an attempt found by the mark in their environment.
 *
 * Every task gets DIVVY_ATTEMPT=ID.ATTEMPT and DIVVY_ROOT=…, and its children
 * inherit them. Where there is no cgroup this is how a tree is found again
 * after its supervisor died. A process can wipe its environment: it is the
 * last resort, and `tracking: none` says so.
 */
#ifndef DIVVY_CGROUP_STRAY_H
#define DIVVY_CGROUP_STRAY_H

#include <sys/types.h>

#include "base/err.h"

/*
 * Sends `sig` (0: only look) to every process but the caller whose environment
 * at exec held DIVVY_ATTEMPT=`attempt` and DIVVY_ROOT=`root`. Returns how many
 * there are. Walks /proc: milliseconds on a large server.
 */
int stray_signal(const char *root, const char *attempt, int sig, struct err *e);

#endif
