/*
 * leftover.h - shared memory that an attempt left behind.
 *
 * A file in /dev/shm and a System V segment outlive the processes that used
 * them, and take memory from whoever comes next. They go with the attempt,
 * where nobody can miss them: only when their user has no process on the
 * machine any more (another job of his, a login), and only what was made since
 * the attempt began. A file whose time of birth the kernel does not tell stays,
 * and so do the locks of podman, which belong to containers that may come back.
 *
 *     struct leftover l = { .shm = "/dev/shm", .proc = "/proc", .uid = 1001,
 *                           .since_wall_us = started.wall_us };
 *     n = leftover_remove(&l);
 */
#ifndef DIVVY_SUPERVISE_LEFTOVER_H
#define DIVVY_SUPERVISE_LEFTOVER_H

#include <stdint.h>
#include <sys/types.h>

struct leftover {
    const char *shm, *proc; /* where they stand; others only in tests */
    uid_t uid;
    int64_t since_wall_us;
};

/*
 * Looks for what was left and removes it: how many files, folders and segments
 * that were. 0 when there was none, or a process of the user lives. What cannot
 * be removed is left.
 */
unsigned leftover_remove(const struct leftover *l);

#endif
