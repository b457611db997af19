/* Cards that come back from maintenance, one by one, and those that stay out. */
#include "daemon/maintenance.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/layouts.h"

/* ---- those that stay out ---- */

static struct out_card *find_out(const struct maintenance *m, const char *uuid)
{
    for (size_t i = 0; i < m->out_count; i++)
        if (strcmp(m->out[i].uuid, uuid) == 0)
            return &m->out[i];
    return NULL;
}

void maintenance_add_out(struct maintenance *m, const char *uuid, const char *why)
{
    struct out_card *o = find_out(m, uuid);
    if (!o) {
        ARRAY_ROOM(m->out, m->out_alloc, m->out_count + 1);
        o = &m->out[m->out_count++];
        (void)snprintf(o->uuid, sizeof o->uuid, "%s", uuid); /* fits */
    }
    (void)snprintf(o->why, sizeof o->why, "%s", why); /* cut when longer */
}

static void drop_out(struct maintenance *m, const char *uuid)
{
    struct out_card *o = find_out(m, uuid);
    if (o)
        *o = m->out[--m->out_count];
}

bool maintenance_forget_out(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    bool changed = false;
    for (size_t i = m->out_count; i > 0; i--) {
        const struct card_memory *c = cards_find(d, m->out[i - 1].uuid);
        if (c && c->row.quarantine[0])
            continue;
        m->out[i - 1] = m->out[--m->out_count]; /* somebody has put it back */
        changed = true;
    }
    return changed;
}

json_t *maintenance_out_json(const struct daemon *d)
{
    const struct maintenance *m = d->maintenance;
    json_t *list = json_array();
    for (size_t i = 0; i < m->out_count; i++) {
        const struct card_memory *c = cards_find(d, m->out[i].uuid);
        json_t *j = json_object();
        json_put_u64(j, "gpu", c ? c->row.ordinal : 0);
        json_put_text(j, "uuid", m->out[i].uuid);
        json_put_text(j, "why", m->out[i].why);
        (void)json_array_append_new(list, j); /* a short list */
    }
    return list;
}

bool maintenance_again(struct maintenance *m)
{
    if (!m->out_count)
        return false;
    strv_free(take_ptr(m->cards));
    for (size_t i = 0; i < m->out_count; i++)
        strv_add(&m->cards, m->out[i].uuid);
    return true;
}

/* ---- one card ---- */

static void leave(struct maintenance *m, const char *uuid)
{
    size_t n = 0;
    for (size_t i = 0; m->cards && m->cards[i]; i++) {
        if (strcmp(m->cards[i], uuid) == 0)
            free(m->cards[i]);
        else
            m->cards[n++] = m->cards[i];
    }
    if (m->cards)
        m->cards[n] = NULL;
}

static void stay_out(struct daemon *d, struct card_memory *c, const char *why)
{
    auto_free char *full =
        text_fmt("%s; 'divvy maintenance end' tries again, 'divvy pool gpu%u queue' takes the card "
                 "as it is",
                 why, c->row.ordinal);
    auto_free char *brief =
        text_fmt("out after maintenance: %.90s (divvy maintenance status)", why);
    log_line(LOG_ERROR, "maintenance: gpu%u stays out: %s", c->row.ordinal, full);
    maintenance_add_out(d->maintenance, c->row.uuid, full);
    leave(d->maintenance, c->row.uuid);
    cards_quarantine(d, c->row.uuid, brief);
}

static void reopen(struct daemon *d, struct card_memory *c)
{
    log_line(LOG_NOTE, "maintenance: gpu%u is back", c->row.ordinal);
    if (find_out(d->maintenance, c->row.uuid) && c->row.quarantine[0])
        cards_release(d, c);
    drop_out(d->maintenance, c->row.uuid);
    leave(d->maintenance, c->row.uuid);
}

enum coming { NOT_YET, WELL, ILL };

static enum coming look(struct daemon *d, const struct card_memory *c, char **ret_why)
{
    if (!c->present)
        *ret_why = text_dup("the driver does not list it any more");
    else if (c->last.health != CARD_OK)
        *ret_why = text_fmt("it is %s%s%s", card_health_word(c->last.health),
                            c->last.trouble[0] ? ": " : "", c->last.trouble);
    else if (c->given_up)
        *ret_why = text_fmt("its layout was not restored: %s",
                            c->seek_trouble[0] ? c->seek_trouble : "it took too long");
    if (*ret_why)
        return ILL;
    if (c->seek || layouts_need(d, c->row.uuid))
        return NOT_YET;
    if (d->snapshot_taken.boot_us > c->changed_boot_us)
        return WELL; /* what was made was seen by a look at all of the card, too */
    children_refresh(&d->children);
    return NOT_YET;
}

bool maintenance_return_cards(struct daemon *d, bool open)
{
    struct maintenance *m = d->maintenance;
    bool all = true, changed = false;
    for (size_t i = 0; i < d->card_count; i++) {
        struct card_memory *c = d->cards[i];
        auto_free char *why = NULL;
        if (!maintenance_has(m, c->row.uuid))
            continue;
        enum coming now = look(d, c, &why);
        if (now == ILL)
            stay_out(d, c, why);
        else if (now == WELL && open)
            reopen(d, c);
        changed = changed || now == ILL || (now == WELL && open);
        all = all && now != NOT_YET;
    }
    if (changed)
        maintenance_save(d);
    return all;
}
