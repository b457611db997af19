/*
 * client.h - one call of a program of the machine's, its words caught, its time
 * bounded.
 *
 * For the clients of daemons that may hang (docker): it is killed when its time
 * is over, and dies with its caller. It takes no signal away from the caller's
 * own loop.
 *
 *     struct client_call call = { .words = words, .env = env, .limit_us = … };
 *     if (client_run(&call, &said, e) == 0 && call.status == 0) …
 */
#ifndef DIVVY_SUPERVISE_CLIENT_H
#define DIVVY_SUPERVISE_CLIENT_H

#include <stdint.h>

#include "base/err.h"

struct client_call {
    char **words; /* the program's path first */
    char **env;
    int64_t limit_us;
    int status; /* out: its exit status; 128 and more: killed by a signal */
};

/*
 * Runs it and waits. *ret_said: what it wrote to both its outputs, 256 KiB at
 * most, NUL at the end; the caller frees. -ETIMEDOUT: it was killed. Its own
 * failure is no failure here: see status.
 */
int client_run(struct client_call *c, char **ret_said, struct err *e);

/*
 * For a new child whose parent watches in its own way: becomes words[0], in a
 * session of its own, with no signal blocked or ignored, nothing to read, and
 * both outputs in `said`. It dies with its parent. One that cannot be run says
 * so there and exits with 126.
 */
_Noreturn void client_become(char *const *words, char *const *env, int said);

#endif
