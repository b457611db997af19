/* What the machine has for jobs beside its cards. */
#include "daemon/daemon.h"

#include <sched.h>
#include <unistd.h>

#include "policy/policy.h"

#define KEPT_PERCENT 95u /* of the memory, for jobs: a part of it stays the system's */

static uint64_t machine_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages / 100 * KEPT_PERCENT * (uint64_t)size : 0;
}

uint64_t node_memory(const struct daemon *d)
{
    const struct config_node *n = &d->config.node;
    return n->memory == COUNT_SAID ? n->mem_bytes : machine_memory();
}

uint64_t node_cpu_milli(const struct daemon *d)
{
    const struct config_node *n = &d->config.node;
    cpu_set_t ours;
    if (n->cpus == COUNT_SAID)
        return n->cpu_milli;
    return sched_getaffinity(0, sizeof ours, &ours) < 0 ? 0 : (uint64_t)CPU_COUNT(&ours) * 1000;
}

void node_policy(const struct daemon *d, struct sched_policy *p)
{
    const struct config_node *n = &d->config.node;
    p->node.cpu_milli = n->cpus == COUNT_OFF ? 0 : node_cpu_milli(d);
    p->node.mem_bytes = n->memory == COUNT_OFF ? 0 : node_memory(d);
    p->node.cpu_shares = p->node.cpu_shares && d->cgroup_root[0];
    p->node.mem_shares = p->node.mem_shares && d->cgroup_root[0];
}

void node_view(struct daemon *d, struct daemon_view *v)
{
    struct sched_policy p = policy_of(&d->config);
    struct sched_amount used = sched_node_used(d->sched, &d->inventory);
    node_policy(d, &p);
    v->mem_bytes = p.node.mem_bytes;
    v->cpu_milli = p.node.cpu_milli;
    v->mem_used_bytes = used.mem_bytes;
    v->cpu_used_milli = used.cpu_milli;
}

void node_view_job(struct daemon *d, const struct job *j, struct job_view *v)
{
    struct sched_amount needs;
    if (!sched_node_needs(d->sched, &d->inventory, j->id, &needs))
        return;
    v->needs_mem_bytes = needs.mem_bytes;
    v->needs_cpu_milli = needs.cpu_milli;
}
