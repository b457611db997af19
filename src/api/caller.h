/*
 * caller.h - who is at the other end of a unix socket, as the kernel says.
 *
 * SO_PEERCRED tells the process that called connect(2), SO_PEERGROUPS its
 * supplementary groups at that moment. Nothing that is sent can change them.
 */
#ifndef DIVVY_API_CALLER_H
#define DIVVY_API_CALLER_H

#include "api/api.h"

/* Reads both; is_operator is decided by api_caller_judge. `ret` is api_caller_done's. */
int api_caller_read(int fd, struct api_caller *ret, struct err *e);
void api_caller_done(struct api_caller *c);

/*
 * May this user talk to the daemon at all, and is it an operator? -EACCES for
 * a stranger at a private root. `daemon_uid` is the daemon's own.
 */
int api_caller_judge(struct api_caller *c, const struct api_config *cfg, uid_t daemon_uid,
                     struct err *e);

#endif
