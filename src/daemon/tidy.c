/* What an owner left on a card: set back before the next one gets it. */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "model/address.h"

#define SETTINGS (KNOW_COMPUTE_MODE | KNOW_APP_CLOCKS)
/* The driver gives memory back a moment after the process went. */
#define MEMORY_WAIT_US (5 * CLOCK_SECOND)
#define RESTORE_WAIT_US (30 * CLOCK_SECOND)
/* So much an empty slice or card may have in use: the driver's own, by generation and mode. */
#define SLICE_OWN_BYTES (UINT64_C(512) << 20)
#define CARD_OWN_BYTES (UINT64_C(1536) << 20)
#define MORE_BYTES (UINT64_C(256) << 20) /* than when it was seen empty */

static bool is_on(const struct job *j, const char *uuid)
{
    const struct place *p = &j->attempt->place;
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->items[i].card_uuid, uuid) == 0)
            return true;
    return false;
}

static bool has_job(const struct daemon *d, const char *uuid, const struct job *but)
{
    for (size_t i = 0; i < d->active_count; i++)
        if (d->active[i] != but && is_on(d->active[i], uuid))
            return true;
    return false;
}

/* Which of the settings differ, of those that both know. */
static unsigned int differing(const struct card_memory *m)
{
    const struct card_settings *now = &m->last.settings;
    const struct card_settings *then = &m->row.settings;
    unsigned int both = m->last.known & m->row.settings_known & SETTINGS;
    unsigned int differ = 0;
    if (now->compute_mode != then->compute_mode)
        differ |= KNOW_COMPUTE_MODE;
    if (now->app_sm_mhz != then->app_sm_mhz || now->app_mem_mhz != then->app_mem_mhz)
        differ |= KNOW_APP_CLOCKS;
    return differ & both;
}

static void learn_settings(struct daemon *d, struct card_memory *m)
{
    struct err e = ERR_INIT;
    struct card_settings s = m->row.settings;
    unsigned int known = m->last.known & SETTINGS;
    if ((known & ~m->row.settings_known) == 0 && !differing(m))
        return;
    if (known & KNOW_COMPUTE_MODE)
        s.compute_mode = m->last.settings.compute_mode;
    if (known & KNOW_APP_CLOCKS) {
        s.app_sm_mhz = m->last.settings.app_sm_mhz;
        s.app_mem_mhz = m->last.settings.app_mem_mhz;
    }
    if (!turn_write(d))
        return;
    known |= m->row.settings_known; /* with MIG on a card tells less, and what it told holds */
    if (store_set_card_settings(d->store, m->row.uuid, &s, known, &e) < 0) {
        log_line(LOG_ERROR, "the store's cards: %s", e.text);
        return;
    }
    m->row.settings = s;
    m->row.settings_known = known;
}

void tidy_learn(struct daemon *d)
{
    for (size_t i = 0; i < d->card_count; i++) {
        struct card_memory *m = d->cards[i];
        const struct card *c = &m->last;
        if (!m->present || c->health != CARD_OK || m->row.quarantine[0] || m->restore_boot_us ||
            has_job(d, m->row.uuid, NULL))
            continue;
        learn_settings(d, m);
        if (c->mig_now || c->process_count || !(c->known & KNOW_MEMORY))
            continue;
        m->idle_used_bytes = c->mem_used_bytes;
        m->idle_known = true;
    }
}

/* ---- memory ---- */

static uint64_t left_on_card(const struct card_memory *m)
{
    const struct card *c = &m->last;
    uint64_t own = m->idle_known ? m->idle_used_bytes + MORE_BYTES : CARD_OWN_BYTES;
    bool told = c->known & KNOW_MEMORY && c->known & KNOW_PROCESSES;
    return told && !c->process_count && c->mem_used_bytes > own ? c->mem_used_bytes : 0;
}

/* Memory belongs to the GPU instance: whoever else is in it may have taken it. */
static uint64_t left_on_slice(const struct card_memory *m, const struct placed *item)
{
    const struct card *c = &m->last;
    const struct slice *s = card_slice(c, item->gi, item->ci);
    if (!s || !s->mem_known || !(c->known & KNOW_PROCESSES) || !s->full)
        return 0;
    for (size_t i = 0; i < c->process_count; i++)
        if (c->processes[i].gi == item->gi)
            return 0;
    return s->mem_used_bytes > SLICE_OWN_BYTES ? s->mem_used_bytes : 0;
}

/* Is any of its memory in use by nobody? True as long as that may pass by itself. */
static bool memory_waits(struct job *j, int64_t waited_us)
{
    const struct place *p = &j->attempt->place;
    for (size_t i = 0; i < p->count; i++) {
        const struct placed *item = &p->items[i];
        const struct card_memory *m = cards_find(j->daemon, item->card_uuid);
        if (!m || !m->present || m->silent || m->last.health != CARD_OK)
            continue;
        uint64_t left = item->whole ? left_on_card(m) : left_on_slice(m, item);
        if (left && waited_us < MEMORY_WAIT_US)
            return true;
        if (!left)
            continue;
        AUTO(text) struct text why = TEXT_INIT;
        text_addf(&why, "#%" PRIu64 " is gone, and ", j->id);
        placed_add_text(&why, item);
        text_add(&why, " has ");
        text_add_size(&why, left);
        text_add(&why, " in use by no process; a reset of the card frees it");
        cards_quarantine(j->daemon, item->card_uuid, why.buf);
    }
    return false;
}

/* ---- settings ---- */

/* Only root can lock clocks, and a whole card's owner alone is not noticed by others. */
static bool may_have_locked(const struct job *j, const char *uuid)
{
    const struct place *p = &j->attempt->place;
    for (size_t i = 0; i < p->count; i++)
        if (p->items[i].whole && strcmp(p->items[i].card_uuid, uuid) == 0)
            return j->uid == 0 && !j->daemon->private_root && !j->attempt->unlocked;
    return false;
}

static void ask_restore(struct job *j, struct card_memory *m, unsigned int differ, bool unlock)
{
    struct err e = ERR_INIT;
    struct driver_restore r = { .known = differ, .settings = m->row.settings, .unlock = unlock };
    memcpy(r.uuid, m->row.uuid, sizeof r.uuid);
    if (differ)
        log_line(LOG_NOTE, "#%" PRIu64 " left gpu%u with another %s; it is set back", j->id,
                 m->row.ordinal,
                 differ == SETTINGS            ? "compute mode and other clocks"
                 : differ == KNOW_COMPUTE_MODE ? "compute mode"
                                               : "application clock");
    if (children_restore(&j->daemon->children, &r, &e) == 0)
        m->restore_boot_us = clock_now().boot_us;
    else
        j->daemon->look_soon = true; /* `act` is being started again */
}

static bool settings_wait(struct job *j, int64_t waited_us)
{
    bool waits = false;
    struct daemon *d = j->daemon;
    for (size_t i = 0; i < d->card_count; i++) {
        struct card_memory *m = d->cards[i];
        if (!is_on(j, m->row.uuid) || !m->present || m->silent || m->last.health != CARD_OK ||
            m->row.quarantine[0] || has_job(d, m->row.uuid, j))
            continue;
        unsigned int differ = differing(m);
        bool unlock = may_have_locked(j, m->row.uuid);
        if (!differ && !unlock)
            continue;
        if (waited_us > RESTORE_WAIT_US) {
            auto_free char *why = text_fmt(
                "#%" PRIu64 " left it with other settings, and they could not be set back in time",
                j->id);
            cards_quarantine(d, m->row.uuid, why);
            continue;
        }
        waits = true;
        if (!m->restore_boot_us)
            ask_restore(j, m, differ, unlock);
    }
    return waits;
}

bool tidy_cards(struct job *j, int64_t waited_us)
{
    if (memory_waits(j, waited_us))
        return false;
    return j->daemon->config.between.keep_settings || !settings_wait(j, waited_us);
}

static void mark_unlocked(struct daemon *d, const char *uuid)
{
    for (size_t i = 0; i < d->active_count; i++)
        if (is_on(d->active[i], uuid))
            d->active[i]->attempt->unlocked = true;
}

static void take_restored(struct daemon *d, struct card_memory *m,
                          const struct driver_restore *what)
{
    struct card_settings *s = &m->last.settings;
    if (what->known & KNOW_COMPUTE_MODE)
        s->compute_mode = what->settings.compute_mode;
    if (what->known & KNOW_APP_CLOCKS) {
        s->app_sm_mhz = what->settings.app_sm_mhz;
        s->app_mem_mhz = what->settings.app_mem_mhz;
    }
    m->changed_boot_us = clock_now().boot_us; /* what was seen before is no news of it */
    if (what->unlock)
        mark_unlocked(d, m->row.uuid);
}

void tidy_restored(struct daemon *d, int code, const struct driver_restore *what,
                   const struct err *why)
{
    if (!what) {
        for (size_t i = 0; i < d->card_count; i++)
            d->cards[i]->restore_boot_us = 0;
        d->look_soon = true;
        return;
    }
    struct card_memory *m = cards_find(d, what->uuid);
    if (!m)
        return;
    m->restore_boot_us = 0;
    if (code < 0) {
        auto_free char *words = text_fmt("between two owners: %s", why->text);
        cards_quarantine(d, what->uuid, words);
    } else {
        take_restored(d, m, what);
    }
    attempts_clear(d);
}
