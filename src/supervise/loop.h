/*
 * loop.h - what the supervisor waits for: signals, the folder (`stop`), time,
 * the tree getting empty, and the attached client. One thread, one poll.
 */
#ifndef DIVVY_SUPERVISE_LOOP_H
#define DIVVY_SUPERVISE_LOOP_H

#include <signal.h>

#include "supervise/attempt.h"

struct loop {
    int signals, timer;
    bool watched; /* the kernel tells of `stop` */
};

#define LOOP_INIT                                                                                  \
    {                                                                                              \
        .signals = -1, .timer = -1                                                                 \
    }

/* What it waits for by signals; the caller blocks them before loop_open. */
void loop_signals(sigset_t *ret);
/* Before anything is started: afterwards nothing of it can fail. */
int loop_open(struct loop *l, int dir, struct err *e);
/* Turns until STAGE_OVER. */
void loop_run(const struct loop *l, struct attempt *a);
void loop_done(struct loop *l);

#endif
