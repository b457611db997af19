/* What the machine has for jobs beside its cards. */
#include "daemon/daemon.h"

#include <sched.h>
#include <unistd.h>

#define KEPT_PERCENT 95u /* of the memory, for jobs: a part of it stays the system's */

uint64_t node_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages / 100 * KEPT_PERCENT * (uint64_t)size : 0;
}

uint64_t node_cpu_milli(void)
{
    cpu_set_t ours;
    return sched_getaffinity(0, sizeof ours, &ours) < 0 ? 0 : (uint64_t)CPU_COUNT(&ours) * 1000;
}
