/*
 * attach_wire.h - what `divvy run` and `divvy attach` say to divvy-supervise.
 *
 * A SOCK_SEQPACKET unix socket, made by the supervisor, 0600 and the user's;
 * the peer's uid (SO_PEERCRED) must be the job's or 0. A message is one
 * packet: a struct attach_head and then its body, both in host order, since
 * both ends are on one machine. Unknown types are ignored, unknown versions
 * refused with ATTACH_ERROR.
 *
 *     client                          supervisor
 *     HELLO {version, flags, rows, columns}
 *           with fds 0, 1, 2 unless ATTACH_PTY
 *                                     WELCOME {version}, or ERROR text and close
 *     DATA bytes, END_OF_INPUT        DATA bytes            (with a pty only)
 *     WINDOW {rows, columns}
 *     SIGNAL {signal}
 *                                     EXIT json (exit_to_json), then close
 *
 *     ENTER {version, flags, rows, columns, task}, then strings: the value of
 *           TERM or "", and the command's arguments, each with its NUL
 *           with fds 0, 1, 2 unless ATTACH_PTY
 *                                     as above; EXIT tells of the command
 *
 *     MORE bytes: strings that the next ENTER begins with, when one packet
 *           cannot hold them
 *                                     BUSY before ERROR: later it may work
 *
 * With ATTACH_STEP the strings of ENTER are: "", the folder to run in, the
 * number of arguments, the arguments, and then a whole environment. The task
 * is then a wish: with ATTACH_ALONE a free task is taken (BUSY: there is none),
 * else the one with the fewest steps. While ATTACH_STEP_GOES_ON was the last
 * word of a process, no other process begins a step.
 *
 * HELLO attaches to the job itself, one client at a time, and only to a job
 * that was submitted to be attached. ENTER runs one more command inside a job
 * that runs: in the cgroup of a task, under its gate, with its environment and
 * as its user. Its end does not end the job, the job's end kills it.
 *
 * The payload is held before exec until the HELLO of the first client. A
 * client that goes away without having had EXIT is lost: the job gets HUP,
 * then TERM, unless it keeps on (job_spec.keep_on_hangup). A command that was
 * entered with gets HUP alone.
 */
#ifndef DIVVY_MODEL_ATTACH_WIRE_H
#define DIVVY_MODEL_ATTACH_WIRE_H

#include <stdint.h>

#define ATTACH_VERSION 1
#define ATTACH_BODY_MAX 16384   /* bytes in one packet after the head */
#define ATTACH_ASKED_MAX 524288 /* of all strings of an ENTER together */

enum attach_type {
    ATTACH_HELLO = 1,
    ATTACH_WELCOME,
    ATTACH_DATA,
    ATTACH_END_OF_INPUT,
    ATTACH_WINDOW,
    ATTACH_SIGNAL,
    ATTACH_EXIT,
    ATTACH_ERROR,
    ATTACH_ENTER,
    ATTACH_MORE,
    ATTACH_BUSY,
};

enum attach_flag {
    ATTACH_PTY = 1 << 0, /* with HELLO it must agree with job_spec.pty */
    ATTACH_STEP = 1 << 1,
    ATTACH_ALONE = 1 << 2,
    ATTACH_STEP_GOES_ON = 1 << 3,
};

struct attach_head {
    uint32_t type; /* enum attach_type */
};

struct attach_hello {
    uint32_t version;
    uint32_t flags;         /* enum attach_flag */
    uint32_t rows, columns; /* of the terminal; 0 without one */
};

/* Strings follow it in the same packet. */
struct attach_enter {
    uint32_t version;
    uint32_t flags;         /* enum attach_flag */
    uint32_t rows, columns; /* of the terminal; 0 without one */
    uint32_t task;
};

struct attach_welcome {
    uint32_t version;
};

struct attach_window {
    uint32_t rows, columns;
};

struct attach_signal {
    uint32_t signal;
};

#endif
