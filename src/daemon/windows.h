/*
 * windows.h - maintenance that is planned: from when to when an administrator
 * will have cards.
 *
 * No job starts on a card of a window that could still be there when the
 * window begins, by its time limit; one without a limit never does. From then
 * on the card takes nobody. Who runs there already is left alone: he had his
 * place before. When the window is over the card takes jobs again and the
 * window is forgotten. A window does not touch driver and services; who needs
 * that says `divvy maintenance begin` in it.
 *
 * Windows are in the store as soon as they are answered. They are times of the
 * wall clock, since people agree on those.
 */
#ifndef DIVVY_DAEMON_WINDOWS_H
#define DIVVY_DAEMON_WINDOWS_H

#include "daemon/daemon.h"

#define WINDOWS_MAX 64u

struct windows;

int windows_load(struct daemon *d, struct err *e);
void windows_done(struct daemon *d);
/* The next moment of the wall clock at which one begins or ends; INT64_MAX: none does. */
int64_t windows_next_us(const struct daemon *d);
/* Forgets those that are over, and has jobs scheduled then. */
void windows_clock(struct daemon *d);
/* Tells the queue of them, before a cycle. */
void windows_close(struct daemon *d, struct now now);

/* -EINVAL, -ENOENT, -ENOSPC. In the open transaction. */
int windows_plan(struct daemon *d, const char *who, const struct maintenance_order *o,
                 struct err *e);
int windows_cancel(struct daemon *d, uint64_t id, struct err *e);
/* Tells each card of its next ones. */
void windows_show(struct daemon *d);
/* A list, by when they begin; each with the jobs that may still be there then. */
json_t *windows_to_json(const struct daemon *d);

#endif
