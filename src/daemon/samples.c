/* What attempts were seen to use of their cards: from snapshots that are taken anyway. */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"

/* A restart of divvyd costs what was seen since the last writing: that much, and no more. */
#define KEEP_EVERY_US CLOCK_MINUTE

/* Memory of its processes on one card; false where the driver does not tell one's. */
static bool memory_on(const struct card_memory *m, uint64_t job_id, uint64_t *ret_bytes)
{
    uint64_t sum = 0;
    if (!(m->last.known & KNOW_PROCESSES) || !m->owners)
        return false;
    for (size_t i = 0; i < m->last.process_count; i++) {
        if (m->owners[i] != job_id)
            continue;
        if (m->last.processes[i].mem_bytes == UINT64_MAX)
            return false;
        sum += m->last.processes[i].mem_bytes;
    }
    *ret_bytes = sum;
    return true;
}

static bool seen_before(const struct place *p, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(p->items[i].card_uuid, p->items[at].card_uuid) == 0)
            return true;
    return false;
}

static void take_memory(struct job *j)
{
    struct attempt *a = j->attempt;
    uint64_t sum = 0;
    bool told = a->place.count > 0;
    for (size_t i = 0; i < a->place.count; i++) {
        const struct card_memory *m = cards_find(j->daemon, a->place.items[i].card_uuid);
        uint64_t bytes = 0;
        if (seen_before(&a->place, i))
            continue;
        told &= m && m->present && memory_on(m, j->id, &bytes);
        sum += bytes;
    }
    if (told && sum > a->samples.mem_peak_bytes)
        a->samples.mem_peak_bytes = sum;
}

bool samples_load(const struct job *j, const struct placed *item, uint32_t *ret_percent)
{
    const struct card_memory *m = cards_find(j->daemon, item->card_uuid);
    if (!m || !m->present)
        return false;
    if (item->whole) {
        *ret_percent = m->last.load_percent;
        return m->last.known & KNOW_LOAD;
    }
    const struct slice *s = card_slice(&m->last, item->gi, item->ci);
    if (!s || !s->load_known || s->load_since_boot_us < j->attempt->started_boot_us)
        return false; /* not told, or a part of it was somebody else's */
    *ret_percent = s->load_percent;
    return true;
}

/* Of all that it holds, or not at all: half of it would be no mean. */
static void take_load(struct job *j)
{
    struct attempt *a = j->attempt;
    uint64_t sum = 0;
    for (size_t i = 0; i < a->place.count; i++) {
        uint32_t percent = 0;
        if (!samples_load(j, &a->place.items[i], &percent))
            return;
        sum += percent;
    }
    a->samples.load_sum += sum;
    a->samples.load_count += a->place.count;
}

static void keep(struct job *j, int64_t now_us)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    uint64_t kept = a->samples_peak_kept;
    bool grew = a->samples.mem_peak_bytes > kept + kept / 16;
    bool due = a->samples.load_count && now_us - a->samples_kept_us >= KEEP_EVERY_US;
    if ((!grew && !due) || !turn_write(j->daemon))
        return;
    if (store_set_samples(j->daemon->store, j->id, a->number, &a->samples, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    a->samples_peak_kept = a->samples.mem_peak_bytes;
    a->samples_kept_us = now_us;
}

void samples_take(struct daemon *d)
{
    for (size_t i = 0; i < d->active_count; i++) {
        struct job *j = d->active[i];
        const struct attempt *a = j->attempt;
        if (j->state != JOB_RUNNING || a->exit_seen_boot_us ||
            a->started_boot_us > d->snapshot_taken.boot_us)
            continue;
        take_memory(j);
        take_load(j);
        keep(j, d->snapshot_taken.boot_us);
    }
}

void samples_fill_exit(struct attempt *a)
{
    const struct attempt_samples *s = &a->samples;
    a->exit.gpu_mem_peak_bytes = s->mem_peak_bytes;
    a->exit.gpu_load_known = s->load_count > 0;
    if (s->load_count)
        a->exit.gpu_load_percent = (uint32_t)((s->load_sum + s->load_count / 2) / s->load_count);
}
