#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

int file_write_all(int fd, const void *data, size_t len, struct err *e)
{
    const char *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "cannot write");
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int file_sync_dir(int dirfd, struct err *e)
{
    auto_close int opened = dirfd == AT_FDCWD ? open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fsync(dirfd == AT_FDCWD ? opened : dirfd) < 0)
        return err_sys(e, "cannot sync the directory");
    return 0;
}

static int write_synced(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
                        struct err *e)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    auto_close int fd = openat(dirfd, name, flags, mode);
    if (fd < 0 && errno == EEXIST && unlinkat(dirfd, name, 0) == 0)
        fd = openat(dirfd, name, flags, mode); /* left by a killed process that had our pid */
    if (fd < 0)
        return err_sys(e, "cannot create %s", name);
    int r = file_write_all(fd, data, len, e);
    if (r < 0)
        return err_wrap(e, r, "%s", name);
    if (fsync(fd) < 0)
        return err_sys(e, "cannot sync %s", name);
    return 0;
}

int file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
                 struct err *e)
{
    static atomic_uint counter;
    auto_free char *temporary =
        text_fmt(".%s.%d.%u", name, (int)getpid(), atomic_fetch_add(&counter, 1));
    int r = write_synced(dirfd, temporary, data, len, mode, e);
    if (r == 0 && renameat(dirfd, temporary, dirfd, name) < 0)
        r = err_sys(e, "cannot rename %s", temporary);
    if (r < 0) {
        (void)unlinkat(dirfd, temporary, 0); /* may not exist; the first error is the one to tell */
        return err_wrap(e, r, "cannot replace %s", name);
    }
    return file_sync_dir(dirfd, e);
}

int file_read(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len,
              struct err *e)
{
    auto_close int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open %s", path);
    AUTO(text) struct text t = TEXT_INIT;
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(e, "cannot read %s", path);
        if (n == 0)
            break;
        if (t.len + (size_t)n > max)
            return err_set(e, -EFBIG, "%s is larger than %zu bytes", path, max);
        text_addn(&t, chunk, (size_t)n);
    }
    if (ret_len)
        *ret_len = t.len;
    *ret_data = text_take(&t);
    return 0;
}

int file_mkdirs(const char *path, mode_t mode, struct err *e)
{
    auto_free char *p = text_dup(path);
    for (size_t len = strlen(p); len > 1 && p[len - 1] == '/'; len--)
        p[len - 1] = '\0'; /* else the last one would be made as a parent, with 0755 */
    for (char *slash = *p ? strchr(p + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(p, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "cannot create the directory %s", p);
        *slash = '/';
    }
    if (mkdir(p, mode) < 0 && errno != EEXIST)
        return err_sys(e, "cannot create the directory %s", p);
    struct stat st;
    if (stat(p, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(e, -ENOTDIR, "%s is there and is no directory", p);
    return 0;
}

/* Empties the open directory; takes the descriptor. */
static int empty_dir(int fd, const char *path, struct err *e)
{
    auto_dir DIR *d = fdopendir(fd);
    if (!d) {
        int r = err_sys(e, "cannot list %s", path);
        (void)close(fd); /* fdopendir did not take it */
        return r;
    }
    for (struct dirent *entry; (entry = readdir(d));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        int r = file_remove_tree(fd, entry->d_name, e);
        if (r < 0)
            return err_wrap(e, r, "%s", path);
    }
    return 0;
}

int file_remove_tree(int dirfd, const char *path, struct err *e)
{
    if (unlinkat(dirfd, path, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_sys(e, "cannot remove %s", path);
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "cannot open %s", path);
    int r = empty_dir(fd, path, e);
    if (r < 0)
        return r;
    if (unlinkat(dirfd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_sys(e, "cannot remove %s", path);
    return 0;
}

char *file_under(const char *root, const char *path)
{
    if (!root || !root[0] || text_same(root, "/"))
        return text_dup(path);
    size_t len = strlen(root);
    while (len > 0 && root[len - 1] == '/')
        len--;
    return text_fmt("%.*s%s%s", (int)len, root, path[0] == '/' ? "" : "/", path);
}

char *file_find_program(const char *path, const char *name)
{
    for (const char *p = path; *p; p += *p == ':') {
        struct stat st;
        size_t len = strcspn(p, ":");
        auto_free char *file = text_fmt("%.*s/%s", (int)len, p, name);
        if (p[0] == '/' && stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
            return take_ptr(file);
        p += len;
    }
    return NULL;
}
