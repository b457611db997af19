/*
 * secure.h - may somebody else change what lies at a path?
 *
 * A daemon that runs as root believes its configuration, its store and its job
 * folders. It may only if nobody else can write or replace them: the thing
 * itself and every directory above it belong to root or to the owner, and
 * neither group nor others may write there. A directory above with the sticky
 * bit (/tmp) is fine, since there one can remove only what is one's own; a
 * symbolic link is followed, and what it leads to is held to the same.
 * (munge's path_is_secure has the same idea.)
 *
 *     struct secure s = { .owner = 0, .refused = 022 };
 *     r = secure_check(&s, "/var/lib/divvy", e);
 */
#ifndef DIVVY_BASE_SECURE_H
#define DIVVY_BASE_SECURE_H

#include <sys/types.h>

#include "base/err.h"

struct secure {
    uid_t owner;     /* who may own it, beside root */
    mode_t refused;  /* bits of 022 that may not be set */
    const char *top; /* directories above this one are not looked at; NULL: all are */
};

/*
 * 0 when `path` (absolute) is safe. -EPERM with the directory, what is wrong
 * with it and the command that mends it; -ENOENT when there is nothing at
 * `path`, but what is above is safe; -ELOOP for links that go round.
 */
int secure_check(const struct secure *s, const char *path, struct err *e);

#endif
