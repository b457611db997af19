/*
 * descend.h - the processes below this one, by their parents.
 *
 * A subreaper's descendants stay its descendants, whatever they fork: that is
 * how a tree is known where there is no cgroup.
 */
#ifndef DIVVY_SUPERVISE_DESCEND_H
#define DIVVY_SUPERVISE_DESCEND_H

#include <sys/types.h>

#include "base/err.h"

/* Sends `sig` (0: only count) to all of them. Returns how many. One that forks meanwhile may be missed. */
int descend_signal(pid_t top, int sig, struct err *e);

#endif
