/* Whether what was handed out is used: every snapshot tells which parts have a process on them. */
#include "daemon/daemon.h"

/* After a longer gap (a driver that was silent, a machine that slept) nothing is known of it. */
#define GAP_US (30 * CLOCK_SECOND)

static bool has_process(const struct card_memory *m, const struct placed *item, uint64_t job_id)
{
    for (size_t i = 0; i < m->last.process_count; i++) {
        const struct gpu_process *p = &m->last.processes[i];
        if (m->owners[i] == job_id && (item->whole || p->gi == item->gi))
            return true;
    }
    return false;
}

static double share_of(const struct placed *item)
{
    uint32_t ppm = item->compute_ppm > item->mem_ppm ? item->compute_ppm : item->mem_ppm;
    return ppm / 1e6;
}

/* Unknown is not idle: such time is not measured. */
static void take_busy(struct job *j, const struct placed *item, double card_us)
{
    uint32_t percent = 0;
    if (!samples_load(j, item, &percent))
        return;
    j->attempt->measured_card_us += card_us;
    j->attempt->busy_card_us += card_us * percent / 100;
}

static void look_at(struct daemon *d, struct job *j, int64_t since_us, int64_t until_us)
{
    struct attempt *a = j->attempt;
    double span = (double)(until_us - since_us);
    for (size_t i = 0; i < a->place.count; i++) {
        const struct placed *item = &a->place.items[i];
        const struct card_memory *m = cards_find(d, item->card_uuid);
        if (!m || !m->present || !m->owners)
            continue;
        a->seen_card_us += share_of(item) * span;
        take_busy(j, item, share_of(item) * span);
        if (has_process(m, item, j->id))
            a->used_boot_us = until_us;
        else
            a->idle_card_us += share_of(item) * span;
    }
}

void idle_look(struct daemon *d, struct now taken)
{
    for (size_t i = 0; i < d->active_count; i++) {
        struct job *j = d->active[i];
        struct attempt *a = j->attempt;
        if (j->state != JOB_RUNNING || !a->started_boot_us)
            continue;
        int64_t since = a->looked_boot_us ? a->looked_boot_us : a->started_boot_us;
        if (taken.boot_us <= since)
            continue;
        bool seen = a->looked_boot_us && taken.boot_us - since <= GAP_US;
        if (taken.boot_us - since <= GAP_US)
            look_at(d, j, since, taken.boot_us);
        a->looked_boot_us = taken.boot_us;
        idle_hold_look(j, since, taken.boot_us, seen);
    }
}
