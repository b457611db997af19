/*
 * cleanup.h - locals that own something.
 *
 * Such a local is declared initialised, with the macro of its kind, and is
 * let go when the block ends, on every path:
 *
 *     auto_free char *path = path_join(dir, name);
 *     auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
 *     AUTO(text) struct text t = TEXT_INIT;      // text_done(&t)
 *     AUTO_PTR(json_decref) json_t *root = …;    // json_decref(root) unless NULL
 *
 * A local that is there only to be let go (a lock) needs no other use.
 *
 * To hand it on: `return take_ptr(path)`, `*ret_fd = take_fd(fd)`.
 */
#ifndef DIVVY_BASE_CLEANUP_H
#define DIVVY_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        (void)close(*fd); /* data that matters was synced before, with its error seen */
    errno = saved;
}

static inline void cleanup_file(FILE **f)
{
    if (*f)
        (void)fclose(*f); /* used for reading; writers check fclose themselves */
}

static inline void cleanup_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d); /* closing a directory loses nothing */
}

#define auto_free __attribute__((cleanup(cleanup_free), unused))
#define auto_close __attribute__((cleanup(cleanup_close), unused))
#define auto_file __attribute__((cleanup(cleanup_file), unused))
#define auto_dir __attribute__((cleanup(cleanup_dir), unused))

/* AUTO(x): the local is a struct in this frame and ends with x_done(&local). */
#define AUTO(x) __attribute__((cleanup(x##_done), unused))

/* DEFINE_AUTO_PTR(T, f): afterwards AUTO_PTR(f) works for locals of type T *. */
#define DEFINE_AUTO_PTR(T, f)                                                                      \
    static inline void cleanup_ptr_##f(T **p)                                                      \
    {                                                                                              \
        if (*p)                                                                                    \
            f(*p);                                                                                 \
    }                                                                                              \
    struct cleanup_ptr_##f##_needs_a_semicolon
#define AUTO_PTR(f) __attribute__((cleanup(cleanup_ptr_##f), unused))

#define take_ptr(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })

static inline int take_fd_from(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
#define take_fd(fd) take_fd_from(&(fd))

#endif
