/* Cards whose new MIG mode waits for a reboot of the machine, and what follows on them after it. */
#include "daemon/layouts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/killpoint.h"
#include "base/log.h"

#define META "layout_reboots"

/* ---- the store ---- */

static json_t *waiting_json(const struct waiting_card *w)
{
    json_t *j = json_object();
    json_put_text(j, "card", w->uuid);
    json_put_text(j, "who", w->who);
    json_put_u64(j, "order", w->order);
    json_put_text(j, "mode", w->has_mode ? card_mode_word(w->mode) : NULL);
    json_put_bool(j, "slices", w->has_slices);
    json_put_bool(j, "for_job", w->for_job);
    return j;
}

static void save(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    auto_json json_t *j = json_object();
    json_t *cards = json_array();
    for (size_t i = 0; i < l->waiting_count; i++)
        (void)json_array_append_new(cards, waiting_json(&l->waiting[i])); /* a short list */
    json_put(j, "cards", cards);
    json_put(j, "steps", plan_to_json(&l->reboots.steps));
    auto_free char *text = json_dumps(j, JSON_COMPACT);
    if (text && turn_write(d) && store_set_meta(d->store, META, text, &e) < 0)
        log_line(LOG_ERROR, "the store's cards that wait for a reboot: %s", e.text);
    d->inventory_stale = d->schedule = true;
}

static struct waiting_card *add_waiting(struct layouts *l)
{
    ARRAY_ROOM(l->waiting, l->waiting_alloc, l->waiting_count + 1);
    struct waiting_card *w = &l->waiting[l->waiting_count++];
    memset(w, 0, sizeof *w);
    return w;
}

static int read_waiting(json_t *j, struct layouts *l, struct err *e)
{
    struct fields f;
    struct waiting_card *w = add_waiting(l);
    fields_open(&f, j, "a card that waits for a reboot", e);
    fields_copy(&f, "card", FIELD_REQUIRED, w->uuid, sizeof w->uuid);
    w->who = text_dup(fields_text(&f, "who", FIELD_OPTIONAL, 64));
    w->order = fields_u64(&f, "order", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    const char *word = fields_text(&f, "mode", FIELD_OPTIONAL, 16);
    w->has_slices = fields_bool(&f, "slices", false);
    w->for_job = fields_bool(&f, "for_job", false);
    int r = fields_close(&f, FIELDS_OPEN);
    w->has_mode = word != NULL;
    if (r == 0 && word)
        r = card_mode_parse(word, &w->mode, e);
    return r;
}

int reboots_load(struct daemon *d, struct err *e)
{
    struct layouts *l = d->layouts;
    auto_free char *text = NULL;
    auto_json json_t *j = NULL;
    int r = store_meta(d->store, META, &text, e);
    if (r < 0 || !text)
        return r;
    r = json_parse(text, strlen(text), "the store's cards that wait for a reboot", &j, e);
    json_t *cards = json_object_get(j, "cards");
    for (size_t i = 0; r == 0 && i < json_array_size(cards); i++)
        r = read_waiting(json_array_get(cards, i), l, e);
    return r < 0 ? r : plan_from_json(json_object_get(j, "steps"), &l->reboots.steps, e);
}

void reboots_done(struct layouts *l)
{
    for (size_t i = 0; i < l->waiting_count; i++)
        free(l->waiting[i].who);
    free(l->waiting);
    reboot_done(&l->reboots);
}

/* ---- who waits ---- */

static struct waiting_card *find(const struct daemon *d, const char *uuid)
{
    struct layouts *l = d->layouts;
    for (size_t i = 0; i < l->waiting_count; i++)
        if (strcmp(l->waiting[i].uuid, uuid) == 0)
            return &l->waiting[i];
    return NULL;
}

bool reboots_has(const struct daemon *d, const char *uuid)
{
    return find(d, uuid) != NULL;
}

static void drop(struct daemon *d, const char *uuid)
{
    struct layouts *l = d->layouts;
    struct waiting_card *w = find(d, uuid);
    reboot_drop(&l->reboots, uuid);
    if (!w)
        return;
    free(w->who);
    *w = l->waiting[--l->waiting_count];
    save(d);
}

void reboots_forget(struct daemon *d, const char *uuid)
{
    if (reboots_has(d, uuid))
        drop(d, uuid);
}

void reboots_keep(struct daemon *d, const struct plan *steps, const char *who,
                  const struct layout_wish *wish, uint64_t order)
{
    struct layouts *l = d->layouts;
    for (size_t i = 0; i < steps->count; i++)
        if (reboots_has(d, steps->steps[i].card_uuid))
            drop(d, steps->steps[i].card_uuid);
    reboot_add(&l->reboots, steps);
    for (size_t i = 0; i < steps->count; i++) {
        if (reboots_has(d, steps->steps[i].card_uuid))
            continue;
        struct waiting_card *w = add_waiting(l);
        memcpy(w->uuid, steps->steps[i].card_uuid, sizeof w->uuid);
        w->who = text_dup(who);
        w->order = order;
        w->has_mode = wish && wish->has_mode;
        w->mode = wish ? wish->mode : MODE_AUTO;
        w->has_slices = wish && wish->has_slices;
    }
    save(d);
}

/* The picture shows what is stored before the next snapshot does. */
static void see_stored(struct daemon *d, const struct step *s)
{
    struct card_memory *m = cards_find(d, s->card_uuid);
    if (!m)
        return;
    m->last.mig_pending = s->kind == STEP_MIG_ON;
    m->changed_boot_us = clock_now().boot_us;
}

void reboots_keep_for_job(struct daemon *d, const struct plan *aside)
{
    for (size_t i = 0; i < aside->count; i++) {
        const struct step *s = &aside->steps[i];
        AUTO(plan) struct plan mode = PLAN_INIT;
        if (!step_is_mode(s))
            continue;
        see_stored(d, s);
        plan_add_step(&mode, s);
        reboots_keep(d, &mode, NULL, NULL, 0);
        find(d, s->card_uuid)->for_job = true;
    }
    save(d);
}

size_t reboots_take(struct daemon *d, const struct apply *a, enum layout_work work)
{
    struct layouts *l = d->layouts;
    size_t cards = 0;
    for (size_t i = 0; a->state == APPLY_DONE && i < a->aside.count; i++) {
        const struct step *s = &a->aside.steps[i];
        AUTO(plan) struct plan of_card = PLAN_INIT;
        if (!step_is_mode(s))
            continue;
        cards++;
        see_stored(d, s);
        plan_add_step(&of_card, s);
        /* What a card keeps is looked for by itself, once it has the mode for it. */
        for (size_t k = 0; work != FOR_KEEPS && k < a->aside.count; k++)
            if (k != i && strcmp(a->aside.steps[k].card_uuid, s->card_uuid) == 0)
                plan_add_step(&of_card, &a->aside.steps[k]);
        reboots_keep(d, &of_card, work == FOR_ORDER ? l->who : NULL,
                     work == FOR_ORDER ? orders_wish(d, s->card_uuid) : NULL,
                     work == FOR_ORDER ? l->id : 0);
        log_line(LOG_WARN, "gpu%u waits for a reboot: %s", s->ordinal, a->reboot);
    }
    return cards;
}

/* ---- the reboot has come ---- */

static void over(struct daemon *d, const char *uuid, const char *failure)
{
    struct err e = ERR_INIT;
    struct card_memory *m = cards_find(d, uuid);
    const struct waiting_card *w = find(d, uuid);
    if (!w || !m)
        return;
    struct layout_wish wish = { .has_mode = w->has_mode,
                                .mode = w->mode,
                                .has_slices = w->has_slices };
    uint64_t order = w->order;
    if (!failure && (w->has_mode || w->has_slices) && keeps_take(d, m, &wish, &e) < 0)
        log_line(LOG_ERROR, "the store's layouts: %s", e.text);
    if (failure)
        log_line(LOG_ERROR, "gpu%u: what was to follow the reboot is not done: %s", m->row.ordinal,
                 failure);
    else
        log_line(LOG_NOTE,
                 "gpu%u: the reboot that it waited for has come, and what was to follow "
                 "is done",
                 m->row.ordinal);
    drop(d, uuid);
    bool last = true;
    for (size_t i = 0; i < d->layouts->waiting_count; i++)
        last = last && d->layouts->waiting[i].order != order;
    orders_rebooted(d, order, failure, last);
}

/* Negative: it cannot be done now. 1: steps were added. 0: it is over, or still waits. */
static int plan_one(struct daemon *d, const char *uuid, struct plan *ret)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    struct card_memory *m = cards_find(d, uuid);
    const struct inventory_card *c = inventory_uuid(&d->inventory, uuid);
    if (!m || !c || c->card.health != CARD_OK)
        return 0;
    switch (reboot_look(&l->reboots, &c->card)) {
    case REBOOT_WAITS:
        return 0;
    case REBOOT_NONE:
    case REBOOT_LOST:
        over(d, uuid, "its MIG mode was turned back since");
        return 0;
    case REBOOT_DONE:
        break;
    }
    if (cards_lock(d, m, &e) < 0 || cuts_of_jobs_on(d, uuid))
        return -EBUSY;
    reboot_rest(&l->reboots, uuid, ret);
    if (ret->count)
        return 1;
    over(d, uuid, NULL);
    return 0;
}

void reboots_plan(struct daemon *d, struct plan *ret)
{
    struct layouts *l = d->layouts;
    for (size_t i = l->waiting_count; i > 0 && !ret->count; i--) {
        char uuid[CARD_UUID_SIZE];
        memcpy(uuid, l->waiting[i - 1].uuid, sizeof uuid);
        (void)plan_one(d, uuid, ret); /* what cannot be now is looked at again */
    }
}

void reboots_cut_over(struct daemon *d, const struct apply *a)
{
    if (!a->plan.count)
        return;
    char uuid[CARD_UUID_SIZE];
    memcpy(uuid, a->plan.steps[0].card_uuid, sizeof uuid);
    over(d, uuid, a->state == APPLY_DONE ? NULL : a->failure);
}

/* ---- what a command left ---- */

void reboots_seek(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    struct stat st;
    AUTO(reboot) struct reboot r = REBOOT_INIT;
    auto_free char *path = text_fmt("%s/reboot.json", d->paths.state);
    if (l->reboots_taken || l->reboots_unreadable || stat(path, &st) < 0 ||
        !journal_all_locked(d) || !turn_write(d))
        return;
    if (reboot_load(d->paths.state, &r, &e) < 0) {
        log_line(LOG_ERROR, "cards that wait for a reboot cannot be gone on with: %s", e.text);
        l->reboots_unreadable = true;
        return;
    }
    reboots_keep(d, &r.steps, NULL, NULL, 0);
    l->reboots_taken = true;
    l->look = true;
}

void reboots_committed(struct daemon *d)
{
    struct err e = ERR_INIT;
    static const struct reboot none = REBOOT_INIT;
    if (!d->layouts->reboots_taken)
        return;
    KILLPOINT(REBOOTS_TAKEN);
    d->layouts->reboots_taken = false;
    if (reboot_save(d->paths.state, &none, &e) < 0)
        log_line(LOG_ERROR, "%s", e.text);
}

/* ---- what is told ---- */

void reboots_mark(struct daemon *d)
{
    struct layouts *l = d->layouts;
    for (size_t i = 0; i < l->waiting_count; i++) {
        struct inventory_card *c = inventory_uuid(&d->inventory, l->waiting[i].uuid);
        if (!c)
            continue;
        if (l->waiting[i].for_job && reboot_look(&l->reboots, &c->card) == REBOOT_WAITS) {
            c->no_turn = true;
            continue;
        }
        c->no_cuts = true;
        if (!c->reserved[0])
            layouts_reserve(c, reboot_look(&l->reboots, &c->card) == REBOOT_WAITS
                                   ? "its new MIG mode waits for a reboot of this machine"
                                   : "its layout is being finished after a reboot");
    }
}

static const struct step *mode_step(const struct layouts *l, const char *uuid)
{
    for (size_t i = 0; i < l->reboots.steps.count; i++)
        if (step_is_mode(&l->reboots.steps.steps[i]) &&
            strcmp(l->reboots.steps.steps[i].card_uuid, uuid) == 0)
            return &l->reboots.steps.steps[i];
    return NULL;
}

json_t *reboots_json(const struct daemon *d)
{
    const struct layouts *l = d->layouts;
    json_t *list = json_array();
    for (size_t i = 0; i < l->waiting_count; i++) {
        const struct waiting_card *w = &l->waiting[i];
        const struct step *s = mode_step(l, w->uuid);
        AUTO(plan) struct plan rest = PLAN_INIT;
        if (!s)
            continue;
        reboot_rest(&l->reboots, w->uuid, &rest);
        json_t *j = json_object();
        json_put_u64(j, "gpu", s->ordinal);
        json_put_text(j, "uuid", w->uuid);
        json_put_bool(j, "mig", s->kind == STEP_MIG_ON);
        json_put_text(j, "who", w->who);
        json_put_u64(j, "steps", rest.count);
        (void)json_array_append_new(list, j); /* a short list */
    }
    return list;
}
