#include "cgroup/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define CONTROL_BYTES_MAX (64u << 10)
#define PROCS_BYTES_MAX (16u << 20)
#define DEPTH_MAX 32
#define MKDIR_TRIES 100

int control_write(const char *dir, const char *name, const char *value)
{
    auto_free char *path = text_fmt("%s/%s", dir, name);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

char *control_read(const char *dir, const char *name)
{
    auto_free char *path = text_fmt("%s/%s", dir, name);
    char *text = NULL;
    return file_read(AT_FDCWD, path, CONTROL_BYTES_MAX, &text, NULL, NULL) < 0 ? NULL : text;
}

static bool read_number(const char *text, uint64_t *ret)
{
    char *end = NULL;
    errno = 0;
    uint64_t n = strtoull(text, &end, 10);
    if (end == text || errno != 0)
        return false; /* "max", or nothing */
    *ret = n;
    return true;
}

bool control_read_u64(const char *dir, const char *name, uint64_t *ret)
{
    auto_free char *text = control_read(dir, name);
    return text && read_number(text, ret);
}

bool control_read_key(const char *dir, const char *name, const char *key, uint64_t *ret)
{
    auto_free char *text = control_read(dir, name);
    size_t len = strlen(key);
    for (char *line = text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, len) == 0 && line[len] == ' ')
            return read_number(line + len, ret);
    return false;
}

char *control_payload(const struct cgroup *c, enum cgroup_hierarchy h)
{
    return text_fmt("%s/payload", c->paths[h]);
}

/* 0 also when it is there. Negative errno. */
static int make_one(const char *path)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

/* An attempt's own directory is missing at most: what is above it stays. */
static int make_with_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    auto_free char *parent = text_fmt("%.*s", (int)(slash - path), path);
    int r = make_one(parent);
    return r < 0 ? r : make_one(path);
}

int control_mkdirs(const char *path, struct err *e)
{
    int r = make_one(path);
    if (r == -ENOENT)
        r = make_with_parent(path);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, "cannot create %s: %s", path, strerror(-r));
    for (int tries = 0; r == -ENOENT && tries < MKDIR_TRIES; tries++)
        r = file_mkdirs(path, 0755, e); /* another attempt's end may remove the root meanwhile */
    return r;
}

enum cgroup_hierarchy control_tracking(const struct cgroup *c)
{
    static const enum cgroup_hierarchy order[] = { CGROUP_UNIFIED, CGROUP_PIDS, CGROUP_MEMORY,
                                                   CGROUP_DEVICES, CGROUP_CPU };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (c->paths[order[i]])
            return order[i];
    return CGROUP_CPUSET;
}

char *control_task(const struct cgroup *c, enum cgroup_hierarchy h, unsigned task)
{
    if (c->alike || h == control_tracking(c))
        return text_fmt("%s/payload/task-%u", c->paths[h], task);
    /* A v1 hierarchy that only limits needs nothing around its tasks: each level costs. */
    return text_fmt("%s.task-%u", c->paths[h], task);
}

static int each_pid_here(const char *dir, control_pid_fn each, void *user)
{
    auto_free char *path = text_fmt("%s/cgroup.procs", dir);
    auto_free char *text = NULL;
    int r = file_read(AT_FDCWD, path, PROCS_BYTES_MAX, &text, NULL, NULL);
    if (r < 0)
        return r;
    int count = 0;
    char *next = NULL;
    for (char *p = text; *p; p = next) {
        long pid = strtol(p, &next, 10);
        if (next == p)
            break;
        while (*next == '\n')
            next++;
        if (pid <= 0) /* 0: lives in a pid namespace that we cannot see into */
            continue;
        each(user, (pid_t)pid);
        count++;
    }
    return count;
}

int control_each_child(const char *dir, control_child_fn f, void *user)
{
    auto_dir DIR *d = opendir(dir);
    if (!d)
        return -errno;
    int sum = 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        auto_free char *path = text_fmt("%s/%s", dir, entry->d_name);
        int r = f(path, user);
        if (r < 0 && r != -ENOENT)
            return r;
        sum += r > 0 ? r : 0;
    }
    return sum;
}

struct walk {
    control_pid_fn each;
    void *user;
    int depth;
};

static int walk_pids(const char *dir, void *user)
{
    struct walk *w = user;
    int here = each_pid_here(dir, w->each, w->user);
    if (here < 0 || w->depth == DEPTH_MAX)
        return here;
    w->depth++;
    int below = control_each_child(dir, walk_pids, w);
    w->depth--;
    return below < 0 ? below : here + below;
}

int control_each_pid(const char *dir, control_pid_fn each, void *user)
{
    struct walk w = { .each = each, .user = user };
    return walk_pids(dir, &w);
}

static int remove_one(const char *dir, void *user)
{
    (void)user;
    return control_remove(dir);
}

int control_remove(const char *dir)
{
    if (rmdir(dir) == 0 || errno == ENOENT)
        return 0;
    int r = control_each_child(dir, remove_one, NULL); /* a job may have made cgroups of its own */
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return rmdir(dir) == 0 || errno == ENOENT ? 0 : -errno;
}
