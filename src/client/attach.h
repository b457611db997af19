/*
 * attach.h - the client's end of an attached job.
 *
 * With a terminal the bytes, the window's size and the signals are relayed;
 * without one the caller's own standard input, output and error become the
 * job's, and only signals and the end go through the socket.
 *
 *     auto_close int sock = -1;
 *     attach_open(path, 10 * CLOCK_SECOND, &sock, e);
 *     struct job_exit end;
 *     r = attach_relay(sock, pty, &end, e);
 *     exit(r < 0 ? 125 : job_exit_status(&end));
 *
 * The wire format stands in model/attach_wire.h.
 */
#ifndef DIVVY_CLIENT_ATTACH_H
#define DIVVY_CLIENT_ATTACH_H

#include <stdbool.h>

#include "model/job.h"

/*
 * Connects to a supervisor's socket and waits up to `wait_us` for it to be
 * there. -ENOENT: nobody is there; -EACCES: not this user's job. Caller closes.
 */
int attach_open(const char *path, int64_t wait_us, int *ret_sock, struct err *e);

/*
 * Says hello and relays until the job has ended. Blocks. `pty`: this process's
 * standard input is a terminal; it is set to raw mode and back, also on every
 * failure. Without: descriptors 0, 1 and 2 are handed over. SIGINT, SIGTERM,
 * SIGQUIT, SIGHUP, SIGUSR1 and SIGUSR2 go to the job meanwhile (a third SIGINT
 * within a second ends the relay with -EINTR, and the job is hung up). 0 with
 * the end in `ret`; -EPIPE: the supervisor went away without telling; -EPROTO.
 */
int attach_relay(int sock, bool pty, struct job_exit *ret, struct err *e);

/*
 * The same for a command of one's own inside the job: as `task`'s process, in
 * the job's folder. `argv`: at least one; -E2BIG beyond ATTACH_BODY_MAX bytes.
 * `term`: what kind of terminal this is, or NULL. `ret` is how the command ended.
 */
int attach_enter(int sock, bool pty, unsigned task, const char *term, char *const *argv,
                 struct job_exit *ret, struct err *e);

#endif
