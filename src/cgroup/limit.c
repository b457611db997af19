#include "cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "cgroup/control.h"

#define CPU_PERIOD_US 100000u

/*
 * One value. Returns 1 when the kernel took it, 0 where there is no such
 * controller or it is not ours to set, negative when it refused the value.
 */
static int set(const char *dir, const char *name, const char *value, struct err *e)
{
    int r = control_write(dir, name, value);
    if (r == 0)
        return 1;
    if (r == -EINVAL || r == -ERANGE || r == -ENOSPC)
        return err_set(e, r, "the kernel refuses %s=%s: %s", name, value, strerror(-r));
    return 0;
}

static int set_u64(const char *dir, const char *name, uint64_t n, struct err *e)
{
    auto_free char *value = text_fmt("%" PRIu64, n);
    return set(dir, name, value, e);
}

static uint64_t quota_us(uint32_t cpu_milli)
{
    uint64_t us = (uint64_t)cpu_milli * CPU_PERIOD_US / 1000;
    return us < 1000 ? 1000 : us; /* the kernel's least */
}

static int memory_v2(const char *dir, const struct cgroup_limits *l, struct err *e)
{
    int r = set_u64(dir, "memory.max", l->mem_bytes, e);
    if (r > 0) {
        (void)control_write(dir, "memory.swap.max", "0");  /* not there without swap */
        (void)control_write(dir, "memory.oom.group", "1"); /* not there before 4.19 */
    }
    return r;
}

static int memory_v1(const char *dir, const struct cgroup_limits *l, struct err *e)
{
    int r = set_u64(dir, "memory.limit_in_bytes", l->mem_bytes, e);
    if (r > 0)
        (void)set_u64(dir, "memory.memsw.limit_in_bytes", l->mem_bytes,
                      NULL); /* without swap: none */
    return r;
}

static int cpu_v2(const char *dir, const struct cgroup_limits *l, struct err *e)
{
    auto_free char *value = text_fmt("%" PRIu64 " %u", quota_us(l->cpu_milli), CPU_PERIOD_US);
    return set(dir, "cpu.max", value, e);
}

/* Each write of either goes through all processors, and the period is ours from the beginning. */
static int cpu_v1(const char *dir, const struct cgroup_limits *l, struct err *e)
{
    uint64_t period_us = 0;
    int r = 1;
    if (!control_read_u64(dir, "cpu.cfs_period_us", &period_us) || period_us != CPU_PERIOD_US)
        r = set_u64(dir, "cpu.cfs_period_us", CPU_PERIOD_US, e);
    return r > 0 ? set_u64(dir, "cpu.cfs_quota_us", quota_us(l->cpu_milli), e) : r;
}

static int cpuset_any(const char *dir, const struct cgroup_limits *l, struct err *e)
{
    int r = l->mems && l->mems[0] ? set(dir, "cpuset.mems", l->mems, e) : 1;
    return r > 0 ? set(dir, "cpuset.cpus", l->cpus, e) : r;
}

static int pids_any(const char *dir, const struct cgroup_limits *l, struct err *e)
{
    return set_u64(dir, "pids.max", l->pids, e);
}

/* A v1 cpuset takes no process while it is empty, and it begins empty: filled from above. */
static void inherit_cpuset(const char *mount_end, char *path)
{
    static const char *const names[] = { "cpuset.cpus", "cpuset.mems" };
    for (const char *p = mount_end; p;) {
        char *slash = strchr(p + 1, '/');
        if (slash)
            *slash = '\0';
        char *last = strrchr(path, '/');
        for (size_t i = 0; i < 2; i++) {
            *last = '\0';
            auto_free char *above = control_read(path, names[i]);
            *last = '/';
            auto_free char *here = control_read(path, names[i]);
            if (above && here && (here[0] == '\n' || !here[0]))
                (void)control_write(path, names[i], above); /* the entry tells when it failed */
        }
        if (slash)
            *slash = '/';
        p = slash;
    }
}

/* The v1 directory of a controller is made when it is first needed. */
static char *v1_task_dir(const struct cgroup *c, enum cgroup_hierarchy h, unsigned task)
{
    auto_free char *dir = control_task(c, h, task);
    if (control_mkdirs(dir, NULL) < 0)
        return NULL;
    if (h == CGROUP_CPUSET)
        inherit_cpuset(strstr(dir, "/cpuset/") + strlen("/cpuset"), dir);
    return take_ptr(dir);
}

typedef int (*limit_fn)(const char *dir, const struct cgroup_limits *l, struct err *e);

static const struct {
    enum cgroup_enforced bit;
    enum cgroup_hierarchy v1;
    limit_fn set_v1, set_v2;
} table[] = {
    { CGROUP_ENFORCES_MEMORY, CGROUP_MEMORY, memory_v1, memory_v2 },
    { CGROUP_ENFORCES_CPU, CGROUP_CPU, cpu_v1, cpu_v2 },
    { CGROUP_ENFORCES_CPUS, CGROUP_CPUSET, cpuset_any, cpuset_any },
    { CGROUP_ENFORCES_PIDS, CGROUP_PIDS, pids_any, pids_any },
};

static int wanted(const struct cgroup_limits *l)
{
    return (l->mem_bytes ? CGROUP_ENFORCES_MEMORY : 0) | (l->cpu_milli ? CGROUP_ENFORCES_CPU : 0) |
           (l->cpus && l->cpus[0] ? CGROUP_ENFORCES_CPUS : 0) |
           (l->pids ? CGROUP_ENFORCES_PIDS : 0);
}

int cgroup_limit(const struct cgroup *c, unsigned task, const struct cgroup_limits *limits,
                 struct err *e)
{
    int enforced = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table && c->kind != CGROUP_NONE; i++) {
        if (!(wanted(limits) & (int)table[i].bit))
            continue;
        bool v2 = c->kind == CGROUP_V2;
        auto_free char *dir = v2                      ? control_task(c, CGROUP_UNIFIED, task)
                              : c->paths[table[i].v1] ? v1_task_dir(c, table[i].v1, task)
                                                      : NULL;
        if (!dir)
            continue;
        int r = (v2 ? table[i].set_v2 : table[i].set_v1)(dir, limits, e);
        if (r < 0)
            return r;
        if (r > 0)
            enforced |= (int)table[i].bit;
    }
    return enforced;
}

/* Tells eventfd `fd` of the memory events of one task; -ENOENT when it has no limit. */
static int watch_oom(const struct cgroup *c, unsigned task, int fd)
{
    auto_free char *dir = control_task(c, CGROUP_MEMORY, task);
    auto_free char *path = text_fmt("%s/memory.oom_control", dir);
    auto_close int control = open(path, O_RDONLY | O_CLOEXEC);
    if (control < 0)
        return -errno;
    auto_free char *line = text_fmt("%d %d", fd, control);
    return control_write(dir, "cgroup.event_control", line);
}

int cgroup_oom_fd(const struct cgroup *c, int *ret_fd, struct err *e)
{
    if (!c->paths[CGROUP_MEMORY])
        return err_set(e, -ENOTSUP, "there is no v1 memory controller");
    auto_close int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return err_sys(e, "cannot make an event descriptor");
    bool any = false;
    for (unsigned i = 0; i < c->tasks; i++)
        any |= watch_oom(c, i, fd) == 0;
    if (!any)
        return err_set(e, -ENOTSUP, "no task has a memory limit that can be watched");
    *ret_fd = take_fd(fd);
    return 0;
}

static void usage_v2(const char *dir, struct cgroup_usage *ret)
{
    (void)control_read_u64(dir, "memory.peak", &ret->mem_peak_bytes); /* stays 0: not known */
    (void)control_read_key(dir, "memory.events", "oom_kill", &ret->oom_kills);
}

/* v1 counts a kill where the victim was, not where the limit is. */
static int add_kills(const char *dir, void *user)
{
    uint64_t *sum = user, kills = 0;
    if (control_read_key(dir, "memory.oom_control", "oom_kill", &kills))
        *sum += kills;
    return 0;
}

static void usage_v1(const char *dir, struct cgroup_usage *ret)
{
    (void)control_read_u64(dir, "memory.max_usage_in_bytes", &ret->mem_peak_bytes);
    (void)control_read_key(dir, "memory.oom_control", "oom_kill", &ret->oom_kills);
}

void cgroup_usage(const struct cgroup *c, unsigned task, struct cgroup_usage *ret)
{
    *ret = (struct cgroup_usage){ .mem_peak_bytes = 0 };
    if (c->paths[CGROUP_UNIFIED]) {
        auto_free char *dir = control_task(c, CGROUP_UNIFIED, task);
        uint64_t us = 0;
        if (control_read_key(dir, "cpu.stat", "usage_usec", &us))
            ret->cpu_us = (int64_t)us;
        usage_v2(dir, ret);
    }
    if (c->paths[CGROUP_MEMORY]) {
        auto_free char *dir = control_task(c, CGROUP_MEMORY, task);
        usage_v1(dir, ret);
        if (c->alike)
            (void)control_each_child(dir, add_kills, &ret->oom_kills); /* none below: as it is */
    }
}
