#include "cgroup/cgroup.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "cgroup/control.h"

#define DEFAULT_MOUNT "/sys/fs/cgroup"

static const char *const kind_words[] = { "none", "v1", "hybrid", "v2" };

const char *cgroup_kind_word(enum cgroup_kind k)
{
    return kind_words[k];
}

static int real_magic(const char *path, uint64_t *ret_magic)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return -errno;
    *ret_magic = (uint64_t)fs.f_type;
    return 0;
}

static bool is_a(cgroup_magic_fn magic, const char *path, uint64_t wanted)
{
    uint64_t found = 0;
    return magic(path, &found) == 0 && found == wanted;
}

/* The v1 mount of a controller goes by its name, or together with another ("cpu,cpuacct"). */
static char *find_v1(const char *mount, cgroup_magic_fn magic, const char *const *names)
{
    for (; *names; names++) {
        auto_free char *path = text_fmt("%s/%s", mount, *names);
        if (is_a(magic, path, CGROUP_SUPER_MAGIC))
            return take_ptr(path);
    }
    return NULL;
}

static const char *const v1_names[CGROUP_HIERARCHIES][4] = {
    [CGROUP_MEMORY] = { "memory" },   [CGROUP_CPU] = { "cpu", "cpu,cpuacct", "cpuacct,cpu" },
    [CGROUP_CPUSET] = { "cpuset" },   [CGROUP_PIDS] = { "pids" },
    [CGROUP_DEVICES] = { "devices" },
};

void cgroup_host_detect(const char *mount, cgroup_magic_fn magic, struct cgroup_host *ret)
{
    mount = mount ? mount : DEFAULT_MOUNT;
    magic = magic ? magic : real_magic;
    *ret = (struct cgroup_host){ .kind = CGROUP_NONE };
    if (is_a(magic, mount, CGROUP2_SUPER_MAGIC)) {
        ret->kind = CGROUP_V2;
        ret->mounts[CGROUP_UNIFIED] = text_dup(mount);
        return;
    }
    for (int h = CGROUP_MEMORY; h < CGROUP_HIERARCHIES; h++)
        if ((ret->mounts[h] = find_v1(mount, magic, v1_names[h])))
            ret->kind = CGROUP_V1;
    auto_free char *unified = text_fmt("%s/unified", mount);
    if (is_a(magic, unified, CGROUP2_SUPER_MAGIC)) {
        ret->kind = CGROUP_HYBRID;
        ret->mounts[CGROUP_UNIFIED] = take_ptr(unified);
    }
    if (ret->kind == CGROUP_NONE)
        (void)snprintf(ret->reason, sizeof ret->reason, "no cgroup file system is mounted at %s",
                       mount); /* cut when the path is very long */
}

void cgroup_host_done(struct cgroup_host *h)
{
    for (int i = 0; i < CGROUP_HIERARCHIES; i++)
        free(h->mounts[i]);
    *h = (struct cgroup_host){ .kind = CGROUP_NONE };
}

char *cgroup_root_for(const char *divvy_root)
{
    if (!divvy_root || !divvy_root[0] || text_same(divvy_root, "/"))
        return text_dup("/divvy");
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (const char *p = divvy_root; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    return text_fmt("/divvy-%012llx", (unsigned long long)(hash & 0xffffffffffffu));
}
