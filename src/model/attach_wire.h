/*
 * attach_wire.h - what `divvy run` and divvy-supervise say to each other.
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
 * The payload is held before exec until the HELLO of the first client. A
 * client that goes away without having had EXIT is lost: the job gets HUP,
 * then TERM, unless it keeps on (job_spec.keep_on_hangup).
 */
#ifndef DIVVY_MODEL_ATTACH_WIRE_H
#define DIVVY_MODEL_ATTACH_WIRE_H

#include <stdint.h>

#define ATTACH_VERSION 1
#define ATTACH_BODY_MAX 16384 /* bytes in one packet after the head */

enum attach_type {
    ATTACH_HELLO = 1,
    ATTACH_WELCOME,
    ATTACH_DATA,
    ATTACH_END_OF_INPUT,
    ATTACH_WINDOW,
    ATTACH_SIGNAL,
    ATTACH_EXIT,
    ATTACH_ERROR,
};

enum attach_flag {
    ATTACH_PTY = 1 << 0, /* must agree with job_spec.pty */
};

struct attach_head {
    uint32_t type; /* enum attach_type */
};

struct attach_hello {
    uint32_t version;
    uint32_t flags;         /* enum attach_flag */
    uint32_t rows, columns; /* of the terminal; 0 without one */
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
