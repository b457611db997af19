/*
 * mount.h - inside jobdir/: whether the sync of a new file brings its name along.
 *
 * ext4, with a journal and without, and XFS bring a file to the disk together
 * with its name and those of the folders above it that are as new. There each
 * sync more is a flush of the disk's cache more, and finds nothing to write.
 * No other file system is taken to do so; where it cannot be told, neither.
 *
 * ext2 has ext4's magic number in statfs(2) and does nothing of the kind, so
 * what such a file system is comes from the list of mounts.
 */
#ifndef DIVVY_JOBDIR_MOUNT_H
#define DIVVY_JOBDIR_MOUNT_H

#include <stdbool.h>
#include <sys/types.h>

/* Is it enough to sync this file, which was made and named a moment ago? */
bool mount_brings_names(int fd);

/* Is that device ext4's, in the words of /proc/self/mountinfo (proc(5))? Not there: false. */
bool mount_is_ext4(const char *mountinfo, dev_t device);

#endif
