/*
 * attach.h - the supervisor's end of an attached job.
 *
 * One client at a time: the one that said hello first has the streams. Any
 * other connection is a guest until its first message; one that enters leaves
 * as a struct attach of its own, without a listener (visit.h). With a
 * pty the supervisor relays between it and the client; without one the client
 * passes its own descriptors and only signals and the end come through here.
 * Nothing here blocks: every descriptor is non-blocking and driven from the
 * supervisor's loop. The wire format stands in model/attach_wire.h.
 *
 *     attach_listen(&a, path, uid, pty, e);
 *     … poll attach_fds; attach_ready(&a, …) …
 *     dup the streams of attach_streams(&a) into the tasks
 *     attach_end(&a, &exit);
 */
#ifndef DIVVY_SUPERVISE_ATTACH_H
#define DIVVY_SUPERVISE_ATTACH_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/attach_wire.h"
#include "model/job.h"

#define ATTACH_FDS 4 /* listener, guest, client, pty */

/* What a turn of the loop found. */
enum attach_event {
    ATTACH_NOTHING = 0,
    ATTACH_CAME,  /* a client said hello: the streams are there */
    ATTACH_ASKED, /* a signal is to be sent to the job: attach.signal */
    ATTACH_LOST,  /* the client went away */
    ATTACH_VISIT, /* somebody wants to run a command inside the job: attach_take_visit */
};

struct attach {
    char *path;
    uid_t uid;
    bool pty;
    bool no_client;               /* a job with its own output: there is nothing to attach to */
    int listener, client, master; /* -1: none */
    int guest;                    /* has said nothing yet, or wants to enter; -1: none */
    pid_t guest_pid;
    int guest_streams[3];
    int slave;                /* of the pty, for the tasks; -1 after attach_handed */
    int streams[3];           /* passed by the client; -1 after attach_handed */
    int signal;               /* with ATTACH_ASKED */
    char *to_pty, *to_client; /* bytes not yet taken by the other side */
    size_t to_pty_len, to_client_len;
    char *asked; /* with ATTACH_VISIT: what followed the struct attach_enter */
    size_t asked_len, asked_alloc;
    struct attach_enter enter;
};

#define ATTACH_INIT                                                                                \
    {                                                                                              \
        .listener = -1, .client = -1, .master = -1, .guest = -1, .slave = -1,                      \
        .streams = { -1, -1, -1 }, .guest_streams = {                                              \
            -1,                                                                                    \
            -1,                                                                                    \
            -1                                                                                     \
        }                                                                                          \
    }

/* Makes the socket (and, with `pty`, the terminal, owned by the user). Replaces a stale one. */
int attach_listen(struct attach *a, const char *path, uid_t uid, gid_t gid, bool pty,
                  struct err *e);

/* What a visitor asks for. Owned by the taker: attach_visit_done. */
struct attach_visit {
    unsigned task;
    char *term; /* NULL: none */
    char **argv;
    bool step; /* a process of `srun`, which comes with a folder and an environment of its own */
    bool alone, goes_on; /* of a step: see attach_wire.h */
    pid_t pid;           /* who asks */
    char *cwd;
    char **env;
};
void attach_visit_done(struct attach_visit *v);

/*
 * After ATTACH_VISIT: makes `ret` of the guest, with its terminal or streams.
 * Negative: the guest was told why, and is gone. Until attach_welcome it may
 * also be sent away with attach_refuse.
 */
void attach_refuse_guest(struct attach *a, const char *why);
int attach_take_visit(struct attach *from, gid_t gid, unsigned tasks, struct attach *ret,
                      struct attach_visit *ret_visit);
int attach_welcome(struct attach *visitor);
void attach_refuse(struct attach *visitor, const char *why);
/* The same for what may work when it is tried again. */
void attach_refuse_now(struct attach *visitor, const char *why);

/* What to poll for now; entries may be -1. */
void attach_fds(const struct attach *a, struct pollfd ret[ATTACH_FDS]);

/* Takes a turn. One event at a time: call again while it is not ATTACH_NOTHING. */
enum attach_event attach_ready(struct attach *a, const struct pollfd fds[ATTACH_FDS]);

/* The three descriptors that a task is to have; borrowed. Only after ATTACH_CAME. */
void attach_streams(const struct attach *a, int ret[3]);
/* The tasks have theirs: closes ours, so that their end can be seen. */
void attach_handed(struct attach *a);

/* Sends what is left of the pty (at most a second) and how it ended, then closes all. */
void attach_end(struct attach *a, const struct job_exit *x);

/* Closes everything and removes the socket. */
void attach_done(struct attach *a);

#endif
