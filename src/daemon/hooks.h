/*
 * hooks.h - divvy.yaml's event_hook: a program that is told what happened to
 * jobs, and to the slices of layouts, for mail, chat, accounting.
 *
 * Invariants. What a turn notes is run only after its commit, or forgotten
 * with it. Eight run at once at most and 1,000 wait; beyond that events are
 * dropped, and the log says so. Nothing here waits: each program has a process
 * over it that knows its time limit and logs how it ended. Told at most once: a
 * divvyd that is killed between a commit and the hook does not tell again; what
 * became of a job stands in the store.
 */
#ifndef DIVVY_DAEMON_HOOKS_H
#define DIVVY_DAEMON_HOOKS_H

#include "daemon/daemon.h"

enum hook_event { HOOK_START = 0, HOOK_END, HOOK_REQUEUE, HOOK_FAULT, HOOK_IDLE, HOOK_IDENTITY };

/* Nothing where divvy.yaml names no program. */
void hooks_open(struct daemon *d);
void hooks_close(struct daemon *d);

/* Something happened to j, which still has its attempt. `why` may be NULL. */
void hooks_note(struct job *j, enum hook_event ev, const char *why);
/* A slice has another UUID since its layout was made again. */
void hooks_note_identity(struct daemon *d, const char *address, const char *was, const char *now);
/* After a commit: runs what was noted. */
void hooks_run(struct daemon *d);
/* The commit failed: what was noted since the last one did not happen. */
void hooks_forget(struct daemon *d);

/* `divvyd --child hook:LIMIT_US:PROGRAM`, with the event in its environment. */
int hooks_child_main(const char *what);

#endif
