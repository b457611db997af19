/* Layouts that cards keep: remembered, looked for, given back. */
#include "daemon/layouts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/hooks.h"
#include "model/address.h"

#define AGAIN_US (5 * CLOCK_SECOND)

/* ---- what is remembered ---- */

static json_t *slice_json(const struct card *c, const struct slice *s)
{
    const struct profile *p = board_profile_by_id(&c->board, s->profile_id);
    AUTO(text) struct text t = TEXT_INIT;
    json_t *j = json_object();
    address_add(&t, c, s);
    json_put_text(j, "slice", strchr(t.buf, '/') + 1);
    json_put_u64(j, "profile_id", s->profile_id);
    json_put_u64(j, "slices", p ? p->slices : 0);
    json_put_text(j, "uuid", s->uuid);
    return j;
}

static char *layout_text(const struct card *c)
{
    auto_json json_t *j = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < c->slice_count; i++)
        if (board_profile_by_id(&c->board, c->slices[i].profile_id))
            (void)json_array_append_new(list, slice_json(c, &c->slices[i])); /* a short list */
    json_put(j, "slices", list);
    return json_dumps(j, JSON_COMPACT);
}

int keeps_set(struct daemon *d, struct card_memory *m, const char *layout, struct err *e)
{
    if (text_same(m->layout, layout))
        return 0;
    if (!turn_write(d))
        return err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
    int r = store_set_card_layout(d->store, m->row.uuid, layout ? layout : "", e);
    if (r < 0)
        return r;
    free(m->layout);
    m->layout = text_dup(layout);
    m->seek = false;
    m->seek_trouble[0] = '\0';
    d->inventory_stale = d->schedule = true;
    return 0;
}

static enum card_mode mode_of(const struct card_memory *m, const struct layout_wish *w)
{
    if (w->has_mode)
        return w->mode;
    return w->has_slices ? MODE_SLICES : m->row.mode;
}

int keeps_take(struct daemon *d, struct card_memory *m, const struct layout_wish *w, struct err *e)
{
    enum card_mode mode = mode_of(m, w);
    int r = 0;
    if (mode != m->row.mode) {
        if (!turn_write(d))
            return err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
        r = store_set_card_mode(d->store, m->row.uuid, mode, e);
        if (r < 0)
            return r;
        m->row.mode = mode;
        d->inventory_stale = d->schedule = true;
    }
    auto_free char *text = mode == MODE_SLICES && w->has_slices ? layout_text(&m->last) : NULL;
    return keeps_set(d, m, text, e);
}

/* ---- what is wished ---- */

/* Another driver may call it otherwise: its id and slices say what it is. */
static void rename_piece(struct layout_piece *p, const struct board *b, uint32_t id,
                         uint32_t slices)
{
    const struct profile *now = board_profile_by_id(b, id);
    const char *part = strstr(p->profile, "c.");
    char name[sizeof p->profile];
    if (!now || now->slices != slices)
        return;
    int n = snprintf(name, sizeof name, "%.*s%s", part ? (int)(part + 2 - p->profile) : 0,
                     p->profile, now->name);
    if (n > 0 && (size_t)n < sizeof name)
        memcpy(p->profile, name, sizeof name);
}

static int read_slice(json_t *j, const struct board *b, struct layout_wish *w, struct err *e)
{
    struct fields f;
    struct layout_piece p;
    fields_open(&f, j, "a slice of a layout in the store", e);
    const char *word = fields_text(&f, "slice", FIELD_REQUIRED, 64);
    uint32_t id = (uint32_t)fields_u64(&f, "profile_id", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    uint32_t slices = (uint32_t)fields_u64(&f, "slices", FIELD_REQUIRED, 0, 64, 0);
    const char *uuid = fields_text(&f, "uuid", FIELD_OPTIONAL, CARD_UUID_SIZE - 1);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        r = layout_piece_parse(word, &p, e);
    if (r < 0)
        return r;
    rename_piece(&p, b, id, slices);
    (void)snprintf(p.uuid, sizeof p.uuid, "%s", uuid ? uuid : ""); /* fits */
    *layout_add_piece(w) = p;
    return 0;
}

/* The caller ends `ret`. */
static int wish_of(const struct card_memory *m, struct layout *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    int r = json_parse(m->layout, strlen(m->layout), "a layout in the store", &j, e);
    json_t *list = r == 0 ? json_object_get(j, "slices") : NULL;
    struct layout_wish *w = layout_add_wish(ret);
    w->has_mode = w->has_slices = true;
    w->mode = MODE_SLICES;
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = read_slice(json_array_get(list, i), &m->last.board, w, e);
    return r;
}

/* ---- is it lost? ---- */

static void seek(struct card_memory *m)
{
    if (m->seek)
        return;
    m->seek = true;
    m->seek_boot_us = clock_now().boot_us;
    m->seek_again_us = 0;
    m->seek_trouble[0] = '\0';
}

/* Nothing at all is left of it, as after a reset or a driver that was loaded anew. */
static bool has_none(const struct card_memory *m)
{
    return m->layout && m->last.health == CARD_OK && m->last.slice_count == 0 &&
           !strstr(m->layout, "\"slices\":[]");
}

void keeps_snapshot(struct daemon *d)
{
    struct layouts *l = d->layouts;
    bool all = !l->started || l->driver_was_gone;
    for (size_t i = 0; i < d->card_count; i++) {
        struct card_memory *m = d->cards[i];
        bool ours = l->cut.open && apply_touches(&l->cut.apply, m->row.uuid);
        bool back = m->was_away && m->last.health == CARD_OK;
        bool none = has_none(m);
        m->was_away = m->last.health != CARD_OK;
        m->given_up = m->given_up && none && !all && !back;
        if (m->layout && !ours && !m->given_up && !reboots_has(d, m->row.uuid) &&
            (all || back || none))
            seek(m);
    }
    l->started = true;
    l->driver_was_gone = false;
}

/* ---- and back ---- */

static void tell_identity(struct daemon *d, struct card_memory *m, const struct slice *s,
                          const char *was)
{
    AUTO(text) struct text t = TEXT_INIT;
    address_add(&t, &m->last, s);
    log_line(LOG_NOTE, "%s is %s now; it was %s", t.buf, s->uuid, was);
    hooks_note_identity(d, t.buf, was, s->uuid);
    json_t *j = json_object();
    json_put_text(j, "address", t.buf);
    json_put_text(j, "old", was);
    json_put_text(j, "new", s->uuid);
    if (!m->identities)
        m->identities = json_array();
    (void)json_array_append_new(m->identities, j); /* a short list */
}

static const struct slice *slice_at(const struct card *c, const struct layout_piece *p)
{
    for (size_t i = 0; i < c->slice_count; i++) {
        const struct slice *s = &c->slices[i];
        if (s->start == p->start &&
            (p->ci_start == LAYOUT_ANYWHERE ? s->full : !s->full && s->ci_start == p->ci_start))
            return s;
    }
    return NULL;
}

/* MIG UUIDs may come back and may not: who has them written down must know. */
static void restored(struct daemon *d, struct card_memory *m, const struct layout_wish *w)
{
    struct err e = ERR_INIT;
    json_decref(take_ptr(m->identities));
    for (size_t i = 0; i < w->piece_count; i++) {
        const struct slice *s = slice_at(&m->last, &w->pieces[i]);
        if (s && w->pieces[i].uuid[0] && strcmp(s->uuid, w->pieces[i].uuid) != 0)
            tell_identity(d, m, s, w->pieces[i].uuid);
    }
    auto_free char *text = layout_text(&m->last);
    if (keeps_set(d, m, text, &e) < 0)
        log_line(LOG_ERROR, "the store's layouts: %s", e.text);
    m->seek = false;
    m->seek_trouble[0] = '\0';
    d->inventory_stale = d->schedule = true;
}

static void give_up(struct daemon *d, struct card_memory *m)
{
    log_line(LOG_ERROR, "gpu%u has not got its layout back: %s", m->row.ordinal,
             m->seek_trouble[0] ? m->seek_trouble : "it took too long");
    m->seek = false;
    m->given_up = true;
    d->inventory_stale = d->schedule = true;
}

static void trouble(struct card_memory *m, const char *why)
{
    (void)snprintf(m->seek_trouble, sizeof m->seek_trouble, "%s", why); /* cut when longer */
}

static void restore(struct daemon *d, struct card_memory *m, struct inventory_card *c,
                    struct plan *ret)
{
    struct err e = ERR_INIT;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    if (wish_of(m, &l, &e) < 0) {
        trouble(m, e.text);
        give_up(d, m);
        return;
    }
    layouts_plan_card(d, c, &l.wishes[0], &ch);
    if (ch.verdict == LAYOUT_AS_WANTED) {
        restored(d, m, &l.wishes[0]);
        return;
    }
    if (ch.verdict == LAYOUT_TO_DO)
        for (size_t i = 0; i < ch.steps.count; i++)
            plan_add_step(ret, &ch.steps.steps[i]);
    else
        trouble(m, ch.why);
    if (ch.verdict >= LAYOUT_IMPOSSIBLE)
        give_up(d, m);
}

void keeps_plan(struct daemon *d, struct plan *ret)
{
    int64_t now = clock_now().boot_us;
    for (size_t i = 0; i < d->card_count; i++) {
        struct card_memory *m = d->cards[i];
        struct inventory_card *c = inventory_uuid(&d->inventory, m->row.uuid);
        m->seek = m->seek && !reboots_has(d, m->row.uuid);
        if (!m->seek)
            continue;
        if (now - m->seek_boot_us > d->config.restore_time_us)
            give_up(d, m);
        else if (c && now >= m->seek_again_us)
            restore(d, m, c, ret);
        if (ret->count)
            return; /* each by itself: what fails on one card undoes no other */
    }
}

void keeps_cut_over(struct daemon *d, const struct apply *a)
{
    if (a->state == APPLY_DONE)
        return; /* the next look finds it as it is to be */
    struct card_memory *m = a->plan.count ? cards_find(d, a->plan.steps[0].card_uuid) : NULL;
    if (m && m->seek) {
        m->seek_again_us = clock_now().boot_us + AGAIN_US;
        trouble(m, a->failure);
    }
    log_line(LOG_WARN, "a layout cannot be restored: %s", a->failure);
}

json_t *keeps_json(const struct daemon *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->card_count; i++) {
        const struct card_memory *m = d->cards[i];
        auto_json json_t *kept = NULL;
        if (!m->layout || json_parse(m->layout, strlen(m->layout), "layout", &kept, NULL) < 0)
            continue;
        json_t *j = json_object();
        json_put_u64(j, "gpu", m->row.ordinal);
        json_put_text(j, "uuid", m->row.uuid);
        json_put(j, "slices", json_incref(json_object_get(kept, "slices")));
        json_put_bool(j, "restoring", m->seek);
        json_put_text(j, "trouble", m->seek_trouble[0] ? m->seek_trouble : NULL);
        json_put(j, "identities", m->identities ? json_incref(m->identities) : json_array());
        (void)json_array_append_new(list, j); /* out of memory: a short list */
    }
    return list;
}
