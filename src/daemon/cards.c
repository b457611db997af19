/* What is known of cards and slices: the store, and what each snapshot adds. */
#include "daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/layouts.h"
#include "daemon/maintenance.h"
#include "model/address.h"
#include "model/expect.h"

static void wrote(int r, const struct err *e)
{
    if (r < 0)
        log_line(LOG_ERROR, "the store's cards: %s", e->text);
}

struct card_memory *cards_find(const struct daemon *d, const char *uuid)
{
    for (size_t i = 0; i < d->card_count; i++)
        if (strcmp(d->cards[i]->row.uuid, uuid) == 0)
            return d->cards[i];
    return NULL;
}

/* Only the daemon that holds a card's lock hands it out. */
static void lock_card(struct daemon *d, struct card_memory *m)
{
    struct err e = ERR_INIT;
    m->lock_trouble[0] = '\0';
    if (m->row.pool != POOL_QUEUE || m->lock.fd >= 0)
        return;
    if (card_lock_take(&m->lock, d->paths.driver_root, m->row.uuid, "divvyd", &e) < 0)
        (void)snprintf(m->lock_trouble, sizeof m->lock_trouble, "%s",
                       e.text); /* cut when too long */
}

int cards_lock(struct daemon *d, struct card_memory *m, struct err *e)
{
    if (m->lock.fd >= 0)
        return 0;
    int r = card_lock_take(&m->lock, d->paths.driver_root, m->row.uuid, "divvyd", e);
    if (r == 0)
        m->lock_trouble[0] = '\0';
    return r;
}

static struct card_memory *remember(struct daemon *d, const struct card_row *row)
{
    struct card_memory *m = mem_new(sizeof *m);
    m->row = *row;
    m->row.layout = NULL; /* it ends with the callback */
    if (row->layout && row->layout[0])
        m->layout = text_dup(row->layout);
    m->lock.fd = -1;
    ARRAY_ROOM(d->cards, d->card_alloc, d->card_count + 1);
    size_t i = d->card_count++;
    for (; i > 0 && d->cards[i - 1]->row.ordinal > row->ordinal; i--)
        d->cards[i] = d->cards[i - 1];
    d->cards[i] = m;
    lock_card(d, m);
    return m;
}

static int load_card(const struct card_row *row, void *arg)
{
    (void)remember(arg, row); /* it is in the list now */
    return 0;
}

static int load_slice(const struct slice_row *row, void *arg)
{
    struct daemon *d = arg;
    ARRAY_ROOM(d->slices, d->slice_alloc, d->slice_count + 1);
    d->slices[d->slice_count++] = *row;
    return 0;
}

int cards_load(struct daemon *d, struct err *e)
{
    int r = store_each_card(d->store, load_card, d, e);
    return r < 0 ? r : store_each_slice(d->store, load_slice, d, e);
}

void cards_done(struct daemon *d)
{
    for (size_t i = 0; i < d->card_count; i++) {
        card_lock_done(&d->cards[i]->lock);
        card_done(&d->cards[i]->last);
        free(d->cards[i]->owners);
        free(d->cards[i]->layout);
        free(d->cards[i]->file);
        json_decref(d->cards[i]->identities);
        free(d->cards[i]);
    }
    free(d->cards);
    free(d->slices);
    d->cards = NULL;
    d->slices = NULL;
    d->card_count = d->card_alloc = d->slice_count = d->slice_alloc = 0;
    inventory_done(&d->inventory);
}

/* ---- slices and their generations ---- */

struct slice_row *cards_slice(const struct daemon *d, const char *uuid, uint32_t gi, uint32_t ci)
{
    for (size_t i = 0; i < d->slice_count; i++)
        if (d->slices[i].gi == gi && d->slices[i].ci == ci &&
            strcmp(d->slices[i].card_uuid, uuid) == 0)
            return &d->slices[i];
    return NULL;
}

uint64_t cards_generation(const struct daemon *d, const char *card_uuid, uint32_t gi, uint32_t ci)
{
    const struct slice_row *row = cards_slice(d, card_uuid, gi, ci);
    return row ? row->generation : 0;
}

static void end_row(struct daemon *d, struct slice_row *row)
{
    struct err e = ERR_INIT;
    if (!turn_write(d))
        return;
    wrote(store_end_slice(d->store, row->generation, clock_now(), &e), &e);
    *row = d->slices[--d->slice_count];
}

static void add_row(struct daemon *d, const struct card *c, const struct slice *s, bool adopted,
                    uint64_t job_id)
{
    struct err e = ERR_INIT;
    AUTO(text) struct text profile = TEXT_INIT;
    struct slice_row row = { .gi = s->gi,
                             .ci = s->ci,
                             .profile_id = s->profile_id,
                             .start = s->start,
                             .units = s->units,
                             .ci_profile_id = s->ci_profile_id,
                             .ci_start = s->ci_start,
                             .ci_slices = s->ci_slices,
                             .adopted = adopted,
                             .job_id = job_id };
    if (!turn_write(d))
        return;
    memcpy(row.card_uuid, c->uuid, sizeof row.card_uuid);
    memcpy(row.uuid, s->uuid, sizeof row.uuid);
    slice_add_profile(&profile, c, s);
    (void)snprintf(row.profile, sizeof row.profile, "%s",
                   profile.buf); /* both sizes are the same */
    struct now now = clock_now();
    row.made_wall_us = now.wall_us;
    int r = store_add_slice(d->store, &row, now, &row.generation, &e);
    wrote(r, &e);
    if (r == 0)
        (void)load_slice(&row, d); /* cannot fail */
}

static bool row_is(const struct slice_row *row, const struct slice *s)
{
    return row->profile_id == s->profile_id && row->start == s->start &&
           row->ci_start == s->ci_start && row->ci_slices == s->ci_slices;
}

/* What the driver shows against what the store knows: others may cut, too. */
static void reconcile_slices(struct daemon *d, const struct card_memory *m)
{
    const struct card *c = &m->last;
    if (c->health != CARD_OK || (c->mig_now && !(c->known & KNOW_SLICES)))
        return;
    for (size_t i = d->slice_count; i > 0; i--) {
        struct slice_row *row = &d->slices[i - 1];
        if (strcmp(row->card_uuid, c->uuid) != 0)
            continue;
        const struct slice *s = card_slice(c, row->gi, row->ci);
        if (!s || !row_is(row, s))
            end_row(d, row);
    }
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].ci != NOT_AN_INSTANCE &&
            !cards_slice(d, c->uuid, c->slices[i].gi, c->slices[i].ci))
            add_row(d, c, &c->slices[i], true, 0);
}

void cards_step_done(struct daemon *d, const struct step *s, uint64_t job_id)
{
    struct card_memory *m = cards_find(d, s->card_uuid);
    if (!m)
        return;
    card_expect(&m->last, s);
    m->changed_boot_us = clock_now().boot_us;
    d->inventory_stale = true;
    if (s->kind == STEP_CI_CREATE) {
        const struct slice *made = card_slice(&m->last, s->gi, s->ci);
        if (made && !cards_slice(d, s->card_uuid, s->gi, s->ci))
            add_row(d, &m->last, made, false, job_id);
        return;
    }
    for (size_t i = d->slice_count; i > 0; i--) {
        struct slice_row *row = &d->slices[i - 1];
        if (strcmp(row->card_uuid, s->card_uuid) == 0 && !card_slice(&m->last, row->gi, row->ci))
            end_row(d, row);
    }
}

/* ---- snapshots ---- */

static bool cut_is_on(const struct daemon *d, const char *uuid)
{
    if (!d->cutting)
        return false;
    const struct step *s = apply_next(&d->cutting->apply);
    return s && strcmp(s->card_uuid, uuid) == 0;
}

static struct card_memory *see_card(struct daemon *d, const struct card *c)
{
    struct err e = ERR_INIT;
    struct card_row row;
    struct card_memory *m = cards_find(d, c->uuid);
    bool known = m && m->seen && strcmp(m->row.bus_id, c->bus_id) == 0;
    if (known || !turn_write(d))
        return m;
    enum card_pool pool = (enum card_pool)d->config.default_pool;
    enum card_mode mode = (enum card_mode)d->config.default_mode;
    for (size_t i = 0; i < d->config.card_count; i++) {
        const struct config_card *wanted = &d->config.cards[i];
        if (strcmp(wanted->which, c->uuid) != 0 && strcmp(wanted->which, c->bus_id) != 0)
            continue;
        pool = (enum card_pool)wanted->pool;
        mode = (enum card_mode)wanted->mode;
    }
    int r = store_see_card(d->store, c, pool, mode, clock_now(), &row, &e);
    wrote(r, &e);
    if (r < 0)
        return m;
    if (!m)
        return remember(d, &row);
    m->row = row;
    return m;
}

static void find_owners(struct daemon *d, struct card_memory *m)
{
    const struct card *c = &m->last;
    free(m->owners);
    m->owners = mem_new(c->process_count * sizeof *m->owners);
    for (size_t i = 0; i < c->process_count; i++) {
        const struct job *j = owner_of(d, &c->processes[i]);
        m->owners[i] = j ? j->id : 0;
    }
}

/* Puts what one card showed into the picture, unless it is older than what we did to it. */
static void take_card(struct daemon *d, struct card *c, struct now taken)
{
    struct card_memory *m = see_card(d, c);
    if (!m)
        return;
    m->present = true;
    if (cut_is_on(d, c->uuid))
        return; /* a snapshot is asked for when its step is answered */
    if (m->changed_boot_us && taken.boot_us <= m->changed_boot_us) {
        children_refresh(&d->children);
        return;
    }
    card_done(&m->last);
    m->last = *c;
    memset(c, 0, sizeof *c);
    m->last.ordinal = m->row.ordinal;
    m->seen = true;
    find_owners(d, m);
}

/* A card that is not enumerated any more keeps its number. */
static void miss_card(struct card_memory *m)
{
    struct card *c = &m->last;
    if (!m->seen) {
        memcpy(c->uuid, m->row.uuid, sizeof c->uuid);
        memcpy(c->bus_id, m->row.bus_id, sizeof c->bus_id);
        memcpy(c->board.name, m->row.name, sizeof c->board.name);
        c->minor = UINT32_MAX;
        c->numa_node = -1;
        c->ordinal = m->row.ordinal;
    }
    c->health = m->silent ? CARD_UNRESPONSIVE : CARD_LOST;
    c->known = 0;
    (void)snprintf(c->trouble, sizeof c->trouble, "%s",
                   m->silent ? "a call to the driver about it did not come back; it is left alone"
                   : m->seen ? "the driver does not list it any more"
                             : "the driver does not list it");
    m->seen = true;
}

/* A lost card may have lost its UUID, too: then its place on the bus says which it was. */
static void name_lost_card(const struct daemon *d, struct card *c)
{
    for (size_t i = 0; !c->uuid[0] && i < d->card_count; i++)
        if (c->bus_id[0] && strcmp(d->cards[i]->row.bus_id, c->bus_id) == 0)
            memcpy(c->uuid, d->cards[i]->row.uuid, sizeof c->uuid);
}

/* Once for each change. Of silence cards_silent tells. */
static void tell_health(struct card_memory *m)
{
    const struct card *c = &m->last;
    if (c->health == m->told || c->health == CARD_UNRESPONSIVE)
        return;
    if (c->health == CARD_OK)
        log_line(LOG_NOTE, "gpu%u is well again", m->row.ordinal);
    else
        log_line(LOG_WARN, "gpu%u is %s%s%s", m->row.ordinal, card_health_word(c->health),
                 c->trouble[0] ? ": " : "", c->trouble);
    m->told = c->health;
}

void cards_snapshot(struct daemon *d, struct snapshot *take)
{
    if (!d->snapshot_came)
        d->look_soon = true; /* what was to be launched can be bound from now on */
    d->snapshot_came = true;
    d->snapshot_taken = take->taken;
    d->driver_trouble[0] = '\0';
    memcpy(d->driver_version, take->driver_version, sizeof d->driver_version);
    for (size_t i = 0; i < d->card_count; i++)
        d->cards[i]->present = false;
    for (size_t i = 0; i < take->card_count; i++) {
        name_lost_card(d, &take->cards[i]);
        if (take->cards[i].uuid[0])
            take_card(d, &take->cards[i], take->taken);
    }
    maintenance_snapshot(d, take);
    snapshot_done(take);
    for (size_t i = 0; i < d->card_count; i++) {
        if (!d->cards[i]->present)
            miss_card(d->cards[i]);
        if (d->cards[i]->lock_trouble[0])
            lock_card(d, d->cards[i]); /* whoever has it may be gone */
    }
    for (size_t i = 0; i < d->card_count; i++)
        tell_health(d->cards[i]);
    layouts_snapshot(d);
    idle_look(d, d->snapshot_taken);
    cuts_recover(d);
    /* Until it is known what became of a lost step, its slice would be taken for a stranger's. */
    for (size_t i = 0; i < d->card_count && !d->recover_cuts; i++)
        if (!cut_is_on(d, d->cards[i]->row.uuid))
            reconcile_slices(d, d->cards[i]);
    d->inventory_stale = d->schedule = true;
    samples_take(d);
    attempts_clear(d);
    tidy_learn(d);
}

void cards_release(struct daemon *d, struct card_memory *m)
{
    struct err e = ERR_INIT;
    log_line(LOG_NOTE, "gpu%u takes jobs again", m->row.ordinal);
    m->row.quarantine[0] = '\0';
    if (turn_write(d))
        wrote(store_set_card_quarantine(d->store, m->row.uuid, "", &e), &e);
}

void cards_silent(struct daemon *d, const struct driver_skip *card, bool silent)
{
    for (size_t i = 0; i < d->card_count; i++) {
        struct card_memory *m = d->cards[i];
        if (!(card->uuid[0] && strcmp(card->uuid, m->row.uuid) == 0) &&
            !(card->bus_id[0] && strcmp(card->bus_id, m->row.bus_id) == 0))
            continue;
        log_line(LOG_WARN, "gpu%u %s", m->row.ordinal,
                 silent ? "does not answer the driver and is left out" : "answers again");
        m->silent = silent;
        if (silent)
            m->last.health = CARD_UNRESPONSIVE;
        else if (m->row.quarantine[0])
            cards_release(d, m); /* nothing was known of a step on it: the next snapshot tells */
    }
    d->inventory_stale = d->schedule = true;
}

void cards_quarantine(struct daemon *d, const char *uuid, const char *why)
{
    struct err e = ERR_INIT;
    struct card_memory *m = cards_find(d, uuid);
    char cut[sizeof m->row.quarantine];
    (void)snprintf(cut, sizeof cut, "%s", why); /* cut when too long */
    if (!m || strcmp(m->row.quarantine, cut) == 0)
        return; /* said already */
    memcpy(m->row.quarantine, cut, sizeof cut);
    log_line(LOG_ERROR, "gpu%u takes no more jobs: %s", m->row.ordinal, why);
    if (turn_write(d))
        wrote(store_set_card_quarantine(d->store, uuid, m->row.quarantine, &e), &e);
    d->inventory_stale = true;
}

void cards_no_turn(struct daemon *d, const char *uuid)
{
    struct err e = ERR_INIT;
    struct card_memory *m = cards_find(d, uuid);
    if (!m || m->row.no_turn)
        return;
    m->row.no_turn = true;
    if (turn_write(d))
        wrote(store_set_card_no_turn(d->store, uuid, &e), &e);
    d->inventory_stale = true;
}

/* ---- who is on them ---- */

/* Is any process on that part of the card, by a snapshot that is young enough? */
static bool placed_clear(const struct daemon *d, const struct placed *item, int64_t since_boot_us)
{
    const struct card_memory *m = cards_find(d, item->card_uuid);
    if (!m || m->last.health != CARD_OK)
        return true; /* nothing can be asked of it, and it takes no job */
    if (d->snapshot_taken.boot_us <= since_boot_us)
        return false;
    for (size_t i = 0; i < m->last.process_count && m->owners; i++) {
        const struct gpu_process *p = &m->last.processes[i];
        bool on_it = item->whole || (p->gi == item->gi && p->ci == item->ci);
        if (on_it && m->owners[i])
            return false;
    }
    return true;
}

bool cards_clear(const struct daemon *d, const struct place *p, int64_t since_boot_us)
{
    for (size_t i = 0; i < p->count; i++)
        if (!d->driver_trouble[0] && !placed_clear(d, &p->items[i], since_boot_us))
            return false;
    return true;
}

/* ---- pool and mode ---- */

static int check_mode(const struct card_memory *m, int mode, struct err *e)
{
    if (mode == MODE_SLICES && m->seen && m->last.health == CARD_OK && !m->last.mig_capable)
        return err_set(e, -EINVAL, "gpu%u (%s) has no MIG and cannot be cut; its mode can be whole",
                       m->row.ordinal, board_short_name(&m->last.board));
    return 0;
}

static int set_pool(struct daemon *d, struct card_memory *m, enum card_pool pool, struct err *e)
{
    struct err busy = ERR_INIT;
    int r = 0;
    if (pool == POOL_QUEUE && m->lock.fd < 0)
        r = card_lock_take(&m->lock, d->paths.driver_root, m->row.uuid, "divvyd", &busy);
    if (r < 0)
        return err_set(e, r, "gpu%u stays in pool %s: %s", m->row.ordinal,
                       card_pool_word(m->row.pool), busy.text);
    r = store_set_card_pool(d->store, m->row.uuid, pool, e);
    if (r < 0)
        return r;
    m->row.pool = pool;
    m->lock_trouble[0] = '\0';
    if (pool == POOL_QUEUE && m->row.quarantine[0])
        cards_release(d, m); /* whoever puts it back has looked at it */
    return 0;
}

int cards_set(struct daemon *d, uint32_t ordinal, int pool, int mode, struct err *e)
{
    struct card_memory *m = NULL;
    for (size_t i = 0; i < d->card_count; i++)
        if (d->cards[i]->row.ordinal == ordinal)
            m = d->cards[i];
    if (!m)
        return err_set(e, -ENOENT, "there is no gpu%u here; divvy gpus shows what there is",
                       ordinal);
    if (!turn_write(d))
        return err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
    int r = check_mode(m, mode, e);
    if (r == 0 && pool >= 0)
        r = set_pool(d, m, (enum card_pool)pool, e);
    if (r == 0 && mode >= 0) {
        r = store_set_card_mode(d->store, m->row.uuid, (enum card_mode)mode, e);
        if (r == 0)
            m->row.mode = (enum card_mode)mode;
        if (r == 0 && mode != MODE_SLICES)
            r = keeps_set(d, m, NULL, e);
    }
    d->inventory_stale = d->schedule = true;
    return r;
}
