/* What a task may use of the machine beside its card. */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define LIST_MAX 8192
#define LEAST_BYTES (UINT64_C(1) << 30)

/* CPUs in the kernel's list form, "0-7,16", added to `ret`. */
static void read_cpulist(const char *list, cpu_set_t *ret)
{
    for (const char *p = list; *p >= '0' && *p <= '9';) {
        char *end = NULL;
        unsigned long first = strtoul(p, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_SET(cpu, ret);
        p = *end == ',' ? end + 1 : "";
    }
}

static char *write_cpulist(const cpu_set_t *set)
{
    AUTO(text) struct text t = TEXT_INIT;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set))
            text_addf(&t, "%s%zu", t.len ? "," : "", cpu);
    return text_take(&t);
}

/* NVML writes eight digits of domain and capitals, sysfs four and small letters. */
static char *near_path(const char *bus_id)
{
    const char *colon = strchr(bus_id, ':');
    size_t domain = colon ? (size_t)(colon - bus_id) : 0;
    char *path = text_fmt("/sys/bus/pci/devices/%s/local_cpulist",
                          domain > 4 ? bus_id + domain - 4 : bus_id);
    for (char *p = path; *p; p++)
        if (*p >= 'A' && *p <= 'F')
            *p = (char)(*p - 'A' + 'a');
    return path;
}

/*
 * The CPUs that sysfs says are near the task's cards, as far as they are ours;
 * NULL where nothing is said, or where they are fewer than the task may use.
 */
static char *cpus_near(struct daemon *d, const struct place *p, uint32_t task, uint32_t cpu_milli)
{
    cpu_set_t near, ours, both;
    CPU_ZERO(&near);
    for (size_t i = 0; i < p->count; i++) {
        const struct card_memory *m = cards_find(d, p->items[i].card_uuid);
        auto_free char *list = NULL;
        if (p->items[i].task != task || !m || !m->seen)
            continue;
        auto_free char *below = near_path(m->last.bus_id);
        auto_free char *path = file_under(d->paths.driver_root, below);
        if (file_read(AT_FDCWD, path, LIST_MAX, &list, NULL, NULL) == 0)
            read_cpulist(list, &near);
    }
    if (sched_getaffinity(0, sizeof ours, &ours) < 0)
        return NULL;
    CPU_AND(&both, &near, &ours);
    if (CPU_EQUAL(&both, &ours) || !CPU_COUNT(&both) ||
        (uint64_t)CPU_COUNT(&both) * 1000 < cpu_milli)
        return NULL;
    return write_cpulist(&both);
}

/* What a task has of all cards of the machine together, in ppm of one card. */
static uint64_t part_ppm(const struct place *p, uint32_t task, bool memory)
{
    uint64_t ppm = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].task == task)
            ppm += memory ? p->items[i].mem_ppm : p->items[i].compute_ppm;
    return ppm;
}

static uint64_t at_least(uint64_t n, uint64_t least)
{
    return n < least ? least : n;
}

/* For what was not asked; a job without a card has no share to measure by. */
static void fill_shares(struct daemon *d, struct jobdir_limits *l, uint32_t task,
                        const struct place *p)
{
    const struct config_task_limits *c = &d->config.task_limits;
    size_t cards = d->inventory.card_count; /* as the queue counts them */
    uint64_t memory = sched_node_part(node_memory(d), part_ppm(p, task, true), cards);
    uint64_t milli = sched_node_part(node_cpu_milli(d), part_ppm(p, task, false), cards);
    if (memory && !l->mem_bytes && c->memory != TASK_LIMIT_NONE)
        l->mem_bytes = at_least(memory, LEAST_BYTES);
    if (milli && !l->cpu_milli && c->cpu != TASK_LIMIT_NONE)
        l->cpu_milli = (uint32_t)at_least(milli, 1000);
    if (!l->cpus && c->cpuset != TASK_LIMIT_NONE)
        l->cpus = cpus_near(d, p, task, l->cpu_milli);
    if (c->pids != TASK_LIMIT_NONE)
        l->pids = c->pids_max;
}

void limits_bind(struct daemon *d, struct jobdir_spec *s, uint32_t task, const struct place *p)
{
    struct jobdir_limits *l = &s->tasks[task].limits;
    l->mem_bytes = s->job.mem_bytes;
    l->cpu_milli = s->job.cpu_milli;
    if (l->cpu_milli && d->config.task_limits.cpuset != TASK_LIMIT_NONE)
        l->cpus = cpus_near(d, p, task, l->cpu_milli);
    if (d->cgroup_root[0])
        fill_shares(d, l, task, p);
}
