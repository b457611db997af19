/* Snapshot + store + plans under way + holders = the inventory. */
#include "daemon/daemon.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/layouts.h"
#include "daemon/maintenance.h"
#include "model/expect.h"

/* As the card will be when every cut under way is through, or undone. */
static void expect_cuts(const struct daemon *d, struct card *c)
{
    const struct cut *cut;
    for (size_t i = 0; (cut = cuts_next(d, &i));) {
        const struct apply *a = &cut->apply;
        bool going = a->state == APPLY_GOING;
        const struct plan *p = going ? &a->plan : &a->back;
        for (size_t k = going ? a->at : a->back_at; k < p->count; k++)
            if (strcmp(p->steps[k].card_uuid, c->uuid) == 0)
                card_expect(c, &p->steps[k]);
    }
}

static void fill_card(struct daemon *d, const struct card_memory *m, struct inventory_card *ret)
{
    card_copy(&m->last, &ret->card);
    expect_cuts(d, &ret->card);
    ret->pool = m->row.pool;
    ret->mode = m->row.mode;
    ret->owners_known = true;
    ret->no_turn = m->row.no_turn;
    const char *why = m->row.quarantine[0] ? m->row.quarantine : m->lock_trouble;
    ret->quarantined = why[0] != '\0';
    memcpy(ret->quarantine, why, sizeof ret->quarantine);
    ret->slices = mem_new(ret->card.slice_count * sizeof *ret->slices);
    for (size_t i = 0; i < ret->card.slice_count; i++) {
        const struct slice *s = &ret->card.slices[i];
        const struct slice_row *row = cards_slice(d, m->row.uuid, s->gi, s->ci);
        ret->slices[i].generation = row ? row->generation : 0;
        ret->slices[i].adopted = row && row->adopted;
    }
}

static void hold_by_job(struct hold *h, const struct job *j, uint32_t task)
{
    const struct attempt *a = j->attempt;
    *h = (struct hold){ .kind = HOLD_JOB, .job_id = j->id, .attempt = a->number, .task = task };
    (void)snprintf(h->user, sizeof h->user, "%s", j->user); /* a longer name is cut */
    (void)snprintf(h->name, sizeof h->name, "%s", j->name); /* fits */
    h->pid = task < a->task_pid_count ? a->task_pids[task] : 0;
    h->since_boot_us = a->started_boot_us ? a->started_boot_us : a->placed_boot_us;
    if (j->limit_us)
        h->until_boot_us = h->since_boot_us + j->limit_us;
    if (j->state == JOB_ENDING || a->preempted_for) /* it frees this before anybody else */
        h->until_boot_us = clock_now().boot_us;
}

static void hold_placed(struct inventory_card *c, const struct placed *item, const struct job *j)
{
    if (item->whole) {
        hold_by_job(&c->hold, j, item->task);
        return;
    }
    bool found = false;
    for (size_t i = 0; i < c->card.slice_count; i++) {
        const struct slice *s = &c->card.slices[i];
        bool same = item->gi != NOT_AN_INSTANCE ? s->gi == item->gi && s->ci == item->ci
                                                : s->profile_id == item->profile_id;
        if (same && s->start == item->start) {
            hold_by_job(&c->slices[i].hold, j, item->task);
            found = true;
        }
    }
    if (!found) /* its slice vanished, as when the driver was loaded anew; the job has not ended */
        hold_by_job(&c->hold, j, item->task);
}

/* /proc counts from the boot as CLOCK_BOOTTIME does; 0: not known. */
static int64_t ticks_us(uint64_t ticks)
{
    uint64_t a_second = (uint64_t)sysconf(_SC_CLK_TCK);
    return (int64_t)(ticks / a_second * CLOCK_SECOND + ticks % a_second * CLOCK_SECOND / a_second);
}

static void hold_foreign(struct hold *h, const struct gpu_process *p)
{
    if (h->kind != HOLD_NONE)
        return;
    h->kind = HOLD_FOREIGN;
    h->pid = p->pid;
    h->since_boot_us = ticks_us(p->start_ticks);
    memcpy(h->name, p->name, sizeof p->name);
    (void)snprintf(h->user, sizeof h->user, "%d",
                   (int)p->uid); /* a name is looked up for people only */
}

/* Processes that no job owns keep their card or slice from being handed out. */
static void hold_strangers(const struct card_memory *m, struct inventory_card *c)
{
    for (size_t i = 0; i < m->last.process_count && m->owners; i++) {
        const struct gpu_process *p = &m->last.processes[i];
        if (m->owners[i])
            continue;
        if (p->gi == NOT_AN_INSTANCE)
            hold_foreign(&c->hold, p);
        for (size_t k = 0; k < c->card.slice_count; k++)
            if (c->card.slices[k].gi == p->gi && c->card.slices[k].ci == p->ci)
                hold_foreign(&c->slices[k].hold, p);
    }
}

/* Vanished cards that nobody wanted are of no interest. */
static bool shown(const struct card_memory *m)
{
    return m->seen && (m->present || m->row.pool != POOL_OFF);
}

static void note_idle(const struct daemon *d, struct card_memory *m, struct inventory_card *c,
                      struct now now)
{
    bool is_free = inventory_card_free(c);
    m->was_held |= !is_free;
    if (!is_free)
        m->idle_since_boot_us = 0;
    else if (!m->idle_since_boot_us)
        m->idle_since_boot_us = m->was_held ? now.boot_us : 1; /* free since before we looked */
    c->idle_since_boot_us = m->idle_since_boot_us;
    if (m->row.pool != POOL_QUEUE && m->lock.fd >= 0 && inventory_card_free(c) &&
        !layouts_need(d, m->row.uuid))
        card_lock_done(&m->lock);
}

void cards_rebuild(struct daemon *d)
{
    struct inventory *inv = &d->inventory;
    size_t n = 0;
    inventory_done(inv);
    d->inventory_stale = false;
    inv->now = clock_now();
    inv->from_daemon = true;
    memcpy(inv->driver_version, d->driver_version, sizeof inv->driver_version);
    inv->cards = mem_new(d->card_count * sizeof *inv->cards);
    for (size_t i = 0; i < d->card_count; i++)
        if (shown(d->cards[i]))
            fill_card(d, d->cards[i], &inv->cards[n++]);
    inv->card_count = n;
    for (size_t i = 0; i < d->active_count; i++) {
        const struct job *j = d->active[i];
        for (size_t k = 0; k < j->attempt->place.count; k++) {
            const struct placed *item = &j->attempt->place.items[k];
            struct inventory_card *c = inventory_uuid(inv, item->card_uuid);
            if (c)
                hold_placed(c, item, j);
        }
    }
    for (size_t i = 0, k = 0; i < d->card_count; i++)
        if (shown(d->cards[i])) {
            struct inventory_card *c = &inv->cards[k++];
            hold_strangers(d->cards[i], c);
            note_idle(d, d->cards[i], c, inv->now);
        }
    layouts_mark(d);
    maintenance_mark(d);
}
