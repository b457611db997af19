/*
 * step.h - the client's end of a step: processes of `srun` inside a job.
 *
 * Each process is a connection of its own to the job's supervisor, which
 * starts it in the task of a slice; its streams are handed over, and what
 * comes back is how it ended. A connection that closes hangs its process up.
 *
 *     step_start(path, &ask, &sock, e);      // -EAGAIN: not now
 *     … poll sock; step_take(sock, &end, e) until it is 1 …
 *
 * The wire format stands in model/attach_wire.h.
 */
#ifndef DIVVY_CLIENT_STEP_H
#define DIVVY_CLIENT_STEP_H

#include <stdbool.h>

#include "model/job.h"

/* All borrowed. */
struct step_ask {
    unsigned task;      /* where it would like to be */
    bool alone;         /* only where no step is yet */
    bool goes_on;       /* more processes of this step follow */
    const char *cwd;    /* absolute */
    char *const *argv;  /* at least one */
    char *const *env;   /* whole */
    const int *streams; /* three */
};

/*
 * Connects, asks, and waits for the answer. -EAGAIN: it may work later, with
 * the reason; -E2BIG; -EPROTO: refused, with the reason; -EPIPE. Caller closes.
 */
int step_start(const char *path, const struct step_ask *ask, int *ret_sock, struct err *e);

/* When `sock` is readable: 1 with its end in `ret`; 0: go on; -EPIPE: the job ends. */
int step_take(int sock, struct job_exit *ret, struct err *e);

void step_signal(int sock, int signal);

/* Who started it; 0: not known. What it sends, it has sent to the step, too. */
pid_t step_supervisor(int sock);

#endif
