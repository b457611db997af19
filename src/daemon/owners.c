/* Whose is a process that the driver lists? */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define ANCESTORS_MAX 64
#define PROC_FILE_MAX 65536

/* The attempt whose cgroup it is in: ".../41.1/payload/task-0", or its unit's, in any hierarchy. */
static struct job *by_cgroup(const struct daemon *d, pid_t pid)
{
    auto_free char *path = text_fmt("/proc/%d/cgroup", (int)pid);
    auto_free char *text = NULL;
    if (file_read(AT_FDCWD, path, PROC_FILE_MAX, &text, NULL, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < d->active_count; i++) {
        struct job *j = d->active[i];
        auto_free char *mark = text_fmt("/%" PRIu64 ".%u/payload", j->id, j->attempt->number);
        auto_free char *unit =
            text_fmt("@%" PRIu64 ".%u.service/payload", j->id, j->attempt->number);
        const char *root = d->cgroup_root[0] ? strstr(text, d->cgroup_root) : NULL;
        if (root && (strstr(root, mark) || strstr(root, unit)))
            return j;
    }
    return NULL;
}

static pid_t parent_of(pid_t pid)
{
    auto_free char *path = text_fmt("/proc/%d/stat", (int)pid);
    auto_free char *text = NULL;
    if (file_read(AT_FDCWD, path, PROC_FILE_MAX, &text, NULL, NULL) < 0)
        return 0;
    const char *end = strrchr(text, ')'); /* the name may have any character inside */
    int parent = 0;
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* A supervisor adopts whatever its job leaves behind, so the line of ancestors leads to it. */
static struct job *by_ancestors(const struct daemon *d, pid_t pid)
{
    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++, pid = parent_of(pid))
        for (size_t k = 0; k < d->active_count; k++)
            if (d->active[k]->attempt->supervisor == pid)
                return d->active[k];
    return NULL;
}

struct job *owner_of(struct daemon *d, const struct gpu_process *p)
{
    if (!d->active_count)
        return NULL;
    struct job *j = by_cgroup(d, p->pid);
    return j ? j : by_ancestors(d, p->pid);
}
