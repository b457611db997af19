/*
 * told.h - what is said of a job to those who are told of it: event_hook's
 * program (hooks.c) and its owner's command (tells.c).
 */
#ifndef DIVVY_DAEMON_TOLD_H
#define DIVVY_DAEMON_TOLD_H

#include "daemon/daemon.h"

/* Appends NAME=VALUE; `value` may be NULL: empty. */
void told_put(char ***env, const char *name, const char *value);
void told_put_number(char ***env, const char *name, int64_t n);

/*
 * Appends what both get: DIVVY_EVENT, _JOB_ID, _JOB_NAME, _STATE, _REASON (`why`,
 * else what its end says), _SLICES, and _EXIT_STATUS once it has one.
 */
void told_add(char ***env, const struct job *j, const char *event, const char *why);

#endif
