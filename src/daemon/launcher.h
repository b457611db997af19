/*
 * launcher.h - how divvyd starts supervisors.
 */
#ifndef DIVVY_DAEMON_LAUNCHER_H
#define DIVVY_DAEMON_LAUNCHER_H

#include "base/err.h"

struct daemon;

/* A supervisor for the folder. It outlives this process, and is a session of its own. */
int launcher_start(struct daemon *d, const char *folder, struct err *e);

#endif
