/*
 * tells.h - telling owners: --on-start and --on-end of a job.
 *
 * Each is a job of its own that is written in the transaction that writes the
 * event, so it is there once, whatever is killed. As any job it runs through a
 * supervisor as its owner, in a closed gate, with a time limit; nothing waits
 * for it, and it tells nothing itself.
 */
#ifndef DIVVY_DAEMON_TELLS_H
#define DIVVY_DAEMON_TELLS_H

#include "daemon/daemon.h"

/* j has moved: remembered when its owner wants to know. */
void tells_note(struct job *j);
/* Before the commit: enters what was remembered. */
void tells_turn(struct daemon *d);

#endif
