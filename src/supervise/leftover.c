#include "supervise/leftover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#define DEPTH_MAX 16
#define STATUS_BYTES 65536u
#define SEGMENTS_BYTES (16u << 20)

/* Chosen first, and removed only when nobody is there: what comes meanwhile is not among them. */
struct found {
    char **names;
    ino_t *inodes;
    size_t count, alloc, inode_alloc;
    int *segments;
    size_t segment_count, segment_alloc;
};

static void found_done(struct found *f)
{
    for (size_t i = 0; i < f->count; i++)
        free(f->names[i]);
    free(f->names);
    free(f->inodes);
    free(f->segments);
}

static bool is_ours(const struct leftover *l, const struct statx *s)
{
    int64_t born_us = s->stx_btime.tv_sec * CLOCK_SECOND + s->stx_btime.tv_nsec / 1000;
    return s->stx_uid == l->uid && s->stx_mask & STATX_BTIME && born_us >= l->since_wall_us &&
           (S_ISREG(s->stx_mode) || S_ISDIR(s->stx_mode));
}

static int look(int dir, const char *name, struct statx *ret)
{
    return statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, ret);
}

static void find_files(const struct leftover *l, struct found *f)
{
    auto_dir DIR *d = opendir(l->shm);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct statx s;
        if (text_starts(entry->d_name, "libpod_") || text_same(entry->d_name, ".") ||
            text_same(entry->d_name, "..") || look(dirfd(d), entry->d_name, &s) < 0 ||
            !is_ours(l, &s))
            continue;
        ARRAY_ROOM(f->names, f->alloc, f->count + 1);
        ARRAY_ROOM(f->inodes, f->inode_alloc, f->count + 1);
        f->names[f->count] = text_dup(entry->d_name);
        f->inodes[f->count++] = (ino_t)s.stx_ino;
    }
}

/* Columns: key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime … */
static void find_segments(const struct leftover *l, struct found *f)
{
    auto_free char *path = text_fmt("%s/sysvipc/shm", l->proc);
    auto_free char *table = NULL;
    if (file_read(AT_FDCWD, path, SEGMENTS_BYTES, &table, NULL, NULL) < 0)
        return;
    for (const char *line = strchr(table, '\n'); line && *++line; line = strchr(line, '\n')) {
        int id;
        unsigned uid, cuid;
        uint64_t attached;
        int64_t changed_s;
        if (sscanf(line, "%*d %d %*o %*u %*d %*d %" SCNu64 " %u %*u %u %*u %*d %*d %" SCNd64, &id,
                   &attached, &uid, &cuid, &changed_s) != 5)
            continue;
        /* In whole seconds: what is of the one in which the attempt began counts as its own. */
        if (uid != l->uid || cuid != l->uid || attached ||
            (changed_s + 1) * CLOCK_SECOND <= l->since_wall_us)
            continue;
        ARRAY_ROOM(f->segments, f->segment_alloc, f->segment_count + 1);
        f->segments[f->segment_count++] = id;
    }
}

static bool is_of(const char *status, uid_t uid)
{
    const char *line = strstr(status, "\nUid:");
    unsigned real, effective, saved;
    return !line ||
           sscanf(line, "\nUid: %u %u %u", &real, &effective, &saved) != 3 || /* not to be told */
           real == uid || effective == uid || saved == uid;
}

static bool has_process(const struct leftover *l)
{
    auto_dir DIR *d = opendir(l->proc);
    if (!d)
        return true; /* cannot be told */
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        auto_free char *path = text_fmt("%s/%s/status", l->proc, entry->d_name);
        auto_free char *status = NULL;
        int r = file_read(AT_FDCWD, path, STATUS_BYTES, &status, NULL, NULL);
        if (r == -ENOENT || r == -ESRCH)
            continue; /* gone meanwhile */
        if (r < 0 || is_of(status, l->uid))
            return true;
    }
    return false;
}

/* Never along a link: the folder is held by its descriptor, and a name is only unlinked. */
static bool remove_tree(int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0)
        return true;
    if (errno != EISDIR)
        return false;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            (void)close(fd); /* read only */
        return false;
    }
    for (struct dirent *entry; depth < DEPTH_MAX && (entry = readdir(d));)
        if (!text_same(entry->d_name, ".") && !text_same(entry->d_name, ".."))
            (void)remove_tree(dirfd(d), entry->d_name, depth + 1); /* the rmdir tells */
    return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

static unsigned remove_found(const struct leftover *l, const struct found *f)
{
    unsigned removed = 0;
    auto_close int dir = open(l->shm, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; dir >= 0 && i < f->count; i++) {
        struct statx s;
        if (look(dir, f->names[i], &s) == 0 && is_ours(l, &s) && s.stx_ino == f->inodes[i])
            removed += remove_tree(dir, f->names[i], 0);
    }
    for (size_t i = 0; i < f->segment_count; i++)
        removed += shmctl(f->segments[i], IPC_RMID, NULL) == 0;
    return removed;
}

unsigned leftover_remove(const struct leftover *l)
{
    struct found f = { .count = 0 };
    unsigned removed = 0;
    find_files(l, &f);
    find_segments(l, &f);
    if ((f.count || f.segment_count) && !has_process(l))
        removed = remove_found(l, &f);
    found_done(&f);
    return removed;
}
