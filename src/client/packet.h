/*
 * packet.h - one message to or from a job's supervisor. Inside client.
 *
 * The wire format stands in model/attach_wire.h; what is said in which order
 * is told by those who say it (attach.h).
 */
#ifndef DIVVY_CLIENT_PACKET_H
#define DIVVY_CLIENT_PACKET_H

#include "model/attach_wire.h"
#include "model/job.h"

struct packet {
    struct attach_head head;
    char body[ATTACH_BODY_MAX];
};

/* `streams`: three descriptors to pass along (borrowed), or NULL. Negative errno, as sendmsg. */
int packet_send(int sock, enum attach_type type, const void *body, size_t len,
                const int streams[3]);

/* The body of an ATTACH_EXIT. -EINVAL. */
int packet_read_end(const char *text, size_t len, struct job_exit *ret, struct err *e);

#endif
