/* Changes of layouts under way: whose turn it is, what came of it, and what the queue is told. */
#include "daemon/layouts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "config/board.h"
#include "daemon/maintenance.h"

/* In the place of a user's name, where nobody asked. */
#define WHO_KEEPS "divvyd: layouts that are kept"
#define WHO_REBOOT "divvyd: what a reboot was waited for"

struct cut *layouts_cut(const struct daemon *d)
{
    return &d->layouts->cut;
}

struct find_plan {
    struct layouts *layouts;
    int code;
    struct err *e;
};

static int take_plan(const struct journal_row *row, void *arg)
{
    struct find_plan *f = arg;
    struct layouts *l = f->layouts;
    auto_json json_t *j = NULL;
    if (row->job_id)
        return 0;
    f->code = json_parse(row->step, strlen(row->step), "the journal", &j, f->e);
    if (f->code == 0)
        f->code = apply_from_json(j, &l->cut.apply, f->e);
    if (f->code < 0)
        return 1;
    l->cut.open = true;
    l->cut.plan_id = row->plan_id;
    l->work = strcmp(row->who, WHO_KEEPS) == 0             ? FOR_KEEPS
              : strcmp(row->who, LAYOUTS_WHO_JOURNAL) == 0 ? FOR_JOURNAL
              : strcmp(row->who, WHO_REBOOT) == 0          ? FOR_REBOOT
                                                           : FOR_ORDER;
    return 1; /* there is one at a time */
}

int layouts_load(struct daemon *d, struct err *e)
{
    d->layouts = mem_new(sizeof *d->layouts);
    struct find_plan f = { .layouts = d->layouts, .e = e };
    int r = orders_load(d, e);
    if (r == 0)
        r = reboots_load(d, e);
    if (r == 0)
        r = store_each_open_step(d->store, take_plan, &f, e);
    if (r >= 0 && f.code == 0 && d->layouts->cut.open)
        d->recover_cuts = true;
    return r < 0 ? r : f.code;
}

void layouts_done(struct daemon *d)
{
    if (!d->layouts)
        return;
    if (d->cutting == &d->layouts->cut)
        d->cutting = NULL;
    orders_forget(d->layouts);
    reboots_done(d->layouts);
    apply_done(&d->layouts->cut.apply);
    journal_close(d->layouts->journal);
    free(d->layouts);
    d->layouts = NULL;
}

/* ---- a look at the cards ---- */

void layouts_know_board(struct daemon *d, struct inventory_card *c)
{
    struct card_memory *m = cards_find(d, c->card.uuid);
    if (c->card.board.key[0] || !m)
        return;
    if (!m->file_sought) {
        struct board *b = mem_new(sizeof *b);
        m->file_sought = true;
        if (board_find_device(c->card.board.name, c->card.board.pci_device_id, b, NULL) == 0)
            m->file = take_ptr(b);
        free(b);
    }
    if (m->file)
        board_know(&c->card.board, m->file);
}

static void busy(struct layout_change *ch, const char *why)
{
    ch->verdict = LAYOUT_BUSY;
    (void)snprintf(ch->why, sizeof ch->why, "%s", why); /* a longer text is cut */
}

/* A mode that is changed by a reset needs a card that nobody has open, listed or not. */
static void check_holders(const struct inventory_card *c, struct layout_change *ch)
{
    AUTO(holders) struct holders h = HOLDERS_INIT;
    AUTO(text) struct text who = TEXT_INIT;
    if (ch->verdict != LAYOUT_TO_DO || ch->turn < 0 || c->card.board.activation == MIG_IMMEDIATE)
        return;
    holders_find(NULL, &c->card, NOT_AN_INSTANCE, &h);
    if (!holders_block(&h))
        return;
    holders_add_sentence(&who, &h, NULL, NULL);
    auto_free char *why =
        text_fmt("MIG can be turned %s once nobody has the card open any more: %s",
                 ch->turn ? "on" : "off", who.buf);
    busy(ch, why);
}

void layouts_plan_card(struct daemon *d, struct inventory_card *c, const struct layout_wish *w,
                       struct layout_change *ret)
{
    struct err e = ERR_INIT;
    struct card_memory *m = cards_find(d, c->card.uuid);
    layouts_know_board(d, c);
    layout_plan(c, w, ret);
    if (reboot_mark(&d->layouts->reboots, &c->card, ret) || ret->verdict > LAYOUT_TO_DO)
        return;
    if (cuts_of_jobs_on(d, c->card.uuid))
        busy(ret, "slices are being cut on it for a job; possible when that is over");
    else if (ret->verdict == LAYOUT_TO_DO && (!m || cards_lock(d, m, &e) < 0))
        busy(ret, m ? e.text : "the card is not known yet");
    else
        check_holders(c, ret);
}

/* With nothing of it nothing is written, and what was only noted may wait for its commit. */
static bool anything_open(const struct daemon *d)
{
    bool open = orders_open(d->layouts) || d->layouts->waiting_count > 0;
    for (size_t i = 0; i < d->card_count && !open; i++)
        open = d->cards[i]->seek;
    return open;
}

void layouts_turn(struct daemon *d)
{
    struct layouts *l = d->layouts;
    AUTO(plan) struct plan p = PLAN_INIT;
    if (maintenance_away(d) || maintenance_unchecked(d) || !d->snapshot_came || d->recover_cuts ||
        l->cut.open || (!l->look && !d->inventory_stale))
        return;
    if (anything_open(d) && !turn_write(d))
        return;
    if (d->inventory_stale)
        cards_rebuild(d);
    l->look = false;
    /* What an order has just made of a card must not be taken for a layout that was lost. */
    if (orders_open(l) && !orders_see(d))
        return;
    if (orders_open(l))
        orders_turn(d);
    if (l->cut.open)
        return;
    reboots_plan(d, &p);
    l->work = p.count ? FOR_REBOOT : FOR_KEEPS;
    if (!p.count)
        keeps_plan(d, &p);
    if (!p.count)
        return;
    /* When it cannot begin it is tried again. */
    (void)cut_begin_layout(d, &l->cut, &p, l->work == FOR_REBOOT ? WHO_REBOOT : WHO_KEEPS);
    d->inventory_stale = true;
}

void layouts_cut_over(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct cut over = l->cut;
    const struct apply *a = &over.apply;
    l->cut = (struct cut){ .open = false };
    l->look = true;
    size_t aside = reboots_take(d, a, l->work);
    if (l->work == FOR_KEEPS)
        keeps_cut_over(d, a);
    else if (l->work == FOR_JOURNAL)
        journal_cut_over(a);
    else if (l->work == FOR_REBOOT)
        reboots_cut_over(d, a);
    else
        orders_cut_over(d, &over, aside);
    apply_done(&over.apply);
}

/* ---- what the queue is told ---- */

bool layouts_need(const struct daemon *d, const char *card_uuid)
{
    const struct layouts *l = d->layouts;
    return l && l->cut.open && apply_touches(&l->cut.apply, card_uuid);
}

void layouts_reserve(struct inventory_card *c, const char *why)
{
    (void)snprintf(c->reserved, sizeof c->reserved, "%s", why); /* a longer one is cut */
}

void layouts_mark(struct daemon *d)
{
    struct layouts *l = d->layouts;
    if (!l)
        return;
    l->look = true;
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        struct inventory_card *c = &d->inventory.cards[i];
        const struct card_memory *m = cards_find(d, c->card.uuid);
        c->laid_out = m && m->layout && !m->seek;
        if (l->cut.open && apply_touches(&l->cut.apply, c->card.uuid))
            layouts_reserve(c, "its layout is being changed");
        else if (m && m->seek)
            layouts_reserve(c, "its layout is to be restored");
    }
    reboots_mark(d);
    orders_mark(d);
}

void layouts_snapshot(struct daemon *d)
{
    journal_seek(d);
    reboots_seek(d);
    keeps_snapshot(d);
}
