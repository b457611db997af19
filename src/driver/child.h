/*
 * child.h - the driver behind a process boundary.
 *
 * A driver call can hang in the kernel for ever. divvyd makes them in two
 * children: `watch` takes snapshots and waits for events, `act` carries out
 * steps. Each is divvyd's own program started again (`divvyd --child watch`),
 * with one socket as descriptor 3 and nothing else of the parent's: no lock,
 * no listening socket. A child dies with its parent.
 *
 * The parent asks, and goes on; answers come through the descriptor:
 *
 *     driver_child_start(argv, DRIVER_CHILD_WATCH, &c, e);
 *     sd_event_add_io(event, NULL, driver_child_fd(c), EPOLLIN, on_child, …);
 *     driver_child_ask_snapshot(c, skip, n, &seq, e);
 *     …
 *     static int on_child(…)
 *     {
 *         for (;;) {
 *             struct driver_reply r;
 *             int n = driver_child_read(c, &r, e);
 *             if (n <= 0)
 *                 break;              // 0: no more now; -EPIPE: the child is gone
 *             switch (r.kind) …
 *             driver_reply_done(&r);
 *         }
 *     }
 *
 * A child does one thing after the other, in the order asked. Before the calls
 * on each card it says so: driver_child_at tells which card it is at, and since
 * when. When that is too long ago, the card is unresponsive: driver_child_abandon,
 * start another, and put that card on the skip list of every later snapshot.
 *
 * NVML is opened by the first request that needs it and kept; ask_release lets
 * go of it (before a reset, a mode change of an Ampere card, a driver upgrade)
 * until the next request: a child that was watching pauses until then, too, but
 * 30 s at most. It has let go when DRIVER_REPLY_RELEASED arrives, not before.
 * So: release, wait for the answer, carry out the step, ask for a snapshot.
 *
 * The messages are JSON in SOCK_SEQPACKET, see driver/message.h. Both ends are
 * always the same version: a daemon starts its own program.
 */
#ifndef DIVVY_DRIVER_CHILD_H
#define DIVVY_DRIVER_CHILD_H

#include "driver/driver.h"

#define DRIVER_CHILD_FD 3 /* the child's end of the socket */

enum driver_child_kind { DRIVER_CHILD_WATCH = 0, DRIVER_CHILD_ACT };

/* "watch", "act": the word after --child. */
const char *driver_child_word(enum driver_child_kind k);
int driver_child_parse(const char *word, enum driver_child_kind *ret, struct err *e);

/*
 * The child's whole life: serves `sock` until the other end closes. Returns the
 * exit status. `options` as for driver_open; its `at` is set here. Closes
 * every other descriptor above 2 first.
 *
 * `alive` (-1: none) is a descriptor of driver_child_hold that it keeps.
 */
int driver_child_main(enum driver_child_kind kind, int sock, const struct driver_options *options,
                      int alive);

/*
 * A child outlives its parent by moments, or for as long as a driver call
 * hangs, and may still change a card then. One that carries out steps therefore
 * holds a file locked, shared, as long as it lives. Returns the descriptor,
 * which keeps the lock.
 */
int driver_child_hold(const char *path, struct err *e);

/*
 * Waits until nobody holds that file: what the driver shows from
 * then on is not changed any more by somebody's last breath. -EBUSY: somebody is
 * still there after `timeout_ms`. Blocks; a few milliseconds where the parent
 * has just been killed, none at all otherwise.
 */
int driver_child_wait_alone(const char *path, int timeout_ms, struct err *e);

/* The parent's side. */
struct driver_child;

/*
 * Starts argv[0] (a path) with argv, and the socket as DRIVER_CHILD_FD. With
 * argv NULL the child is a plain fork that calls driver_child_main with
 * `options` (tests, small tools); else `options` is not looked at. stdin and
 * stdout are /dev/null, stderr is shared.
 */
int driver_child_start(char *const argv[], enum driver_child_kind kind,
                       const struct driver_options *options, struct driver_child **ret,
                       struct err *e);

int driver_child_fd(const struct driver_child *c); /* readable: call driver_child_read */
pid_t driver_child_pid(const struct driver_child *c);

/*
 * Requests. They do not block: -EAGAIN when the child does not read (treat it
 * as unresponsive), -EPIPE when it is gone. `ret_seq` (may be NULL) is the
 * number that the answer carries. Any kind of child answers any of them.
 */
int driver_child_ask_snapshot(struct driver_child *c, const struct driver_skip *skip,
                              size_t skip_count, uint64_t *ret_seq, struct err *e);
int driver_child_ask_step(struct driver_child *c, const struct step *s, uint64_t *ret_seq,
                          struct err *e);
int driver_child_ask_restore(struct driver_child *c, const struct driver_restore *what,
                             uint64_t *ret_seq, struct err *e);
int driver_child_ask_release(struct driver_child *c, uint64_t *ret_seq, struct err *e);
/*
 * Snapshots without being asked, every `every_ms` (0: stop), and events as they
 * come. Skips as given. Their seq is this request's.
 */
int driver_child_ask_watch(struct driver_child *c, int every_ms, const struct driver_skip *skip,
                           size_t skip_count, uint64_t *ret_seq, struct err *e);

enum driver_reply_kind {
    DRIVER_REPLY_SNAPSHOT = 0, /* code 0: `snapshot` is set */
    DRIVER_REPLY_STEP,         /* code as driver_step; `step` is the step, done where code is 0 */
    DRIVER_REPLY_RESTORED,     /* code as driver_restore; `restore` is what was asked */
    DRIVER_REPLY_RELEASED,
    DRIVER_REPLY_EVENT, /* `event` */
};

struct driver_reply {
    enum driver_reply_kind kind;
    uint64_t seq;
    int code;       /* 0, or what driver_open, driver_snapshot or driver_step returned */
    struct err err; /* its words */
    struct snapshot snapshot;
    struct step step;
    struct driver_restore restore;
    struct driver_event event;
};

void driver_reply_done(struct driver_reply *r);

/*
 * The next answer: 1 and `ret` filled (the caller calls driver_reply_done), 0
 * when there is none yet, -EPIPE when the child is gone, -EPROTO when it sends
 * nonsense (abandon it). Never blocks.
 */
int driver_child_read(struct driver_child *c, struct driver_reply *ret, struct err *e);

/*
 * The card that the child is calling the driver about, or NULL when it is not
 * in a card's calls. `uuid` may be "" and `index` -1. As of the messages read:
 * call driver_child_read first. `ret_since_boot_us` (may be NULL): since when.
 */
const struct driver_skip *driver_child_at(const struct driver_child *c, int64_t *ret_since_boot_us);

/* CLOCK_BOOTTIME µs when the oldest request without an answer was sent; 0: none is open. */
int64_t driver_child_busy_since(const struct driver_child *c);

/*
 * Ends the child without waiting for it: closes the socket and kills it. A
 * process that hangs in the kernel dies when the call returns; its pid, which
 * the caller must reap some time (waitpid), is returned, or 0 when it is gone
 * already. NULL is fine. Frees `c`.
 */
pid_t driver_child_abandon(struct driver_child *c);

/*
 * Ends the child in order: closes the socket, waits up to `timeout_ms` for it
 * to let go of NVML and exit, then as driver_child_abandon.
 */
pid_t driver_child_stop(struct driver_child *c, int timeout_ms);

#endif
