/*
 * file.h - files that are there whole or not at all.
 *
 * Paths are relative to a directory descriptor (AT_FDCWD for the working
 * directory), as in openat(2). Nothing here follows a link in the last
 * component when it writes.
 */
#ifndef DIVVY_BASE_FILE_H
#define DIVVY_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Replaces `name` by `len` bytes of `data`, durably: temporary file, fsync,
 * rename, fsync of the directory. After a crash the old or the new content is
 * there, never a mixture. `name` has no slash. Leaves no temporary file.
 */
int file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
                 struct err *e);

/* Whole file, NUL appended (not counted). -EFBIG above `max` bytes. Caller frees. */
int file_read(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len,
              struct err *e);

/* mkdir -p; parents 0755, the last one `mode`. Directories that exist are left as they are. */
int file_mkdirs(const char *path, mode_t mode, struct err *e);

/* Removes a directory and what is in it; what is not there is no error. Does not cross links. */
int file_remove_tree(int dirfd, const char *path, struct err *e);

int file_sync_dir(int dirfd, struct err *e);

/*
 * The executable file `name` along `path` ("/usr/bin:/bin"), or NULL. Relative folders
 * in it are passed over. Caller frees.
 */
char *file_find_program(const char *path, const char *name);

/* Writes all of it, over EINTR and short writes. */
int file_write_all(int fd, const void *data, size_t len, struct err *e);

/* root "/" or "" gives path itself; else root + path. Caller frees. */
char *file_under(const char *root, const char *path);

#endif
