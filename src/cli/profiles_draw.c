#include "cli/profiles_draw.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/table.h"
#include "plan/stock.h"

/* Idle ones of the profile that stay as they are, and count as taken for all others. */
static uint32_t stay_idle(const struct stock_card *c, const struct profile *p)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->piece_count; i++) {
        const struct stock_piece *piece = &c->pieces[i];
        bool whole = piece->count == 1 && c->from->card.slices[piece->first].full;
        n += piece->state == PIECE_IDLE && piece->profile == p && whole &&
             (piece->kept || c->no_cuts);
    }
    return n;
}

/* All placements of a profile are of one size, so taking the first that fit is best. */
static uint32_t to_be_made(const struct stock_card *c, const struct profile *p)
{
    struct occupancy o = c->busy;
    uint32_t n = 0;
    if (c->no_cuts || (!c->mig && !c->may_turn))
        return 0;
    for (uint32_t i = 0; i < p->start_count; i++)
        if (occupancy_fits(&o, c->board, p, p->starts[i])) {
            occupancy_add(&o, c->board, p, p->starts[i]);
            n++;
        }
    return n;
}

uint32_t profiles_free(const struct inventory_card *c, const struct profile *p)
{
    AUTO(stock) struct stock s = STOCK_INIT;
    struct inventory_card one = *c;
    struct inventory inv = { .cards = &one, .card_count = 1 };
    if (!c->owners_known) {
        one.pool = POOL_QUEUE; /* who may hand it out, nobody says */
        one.mode = MODE_AUTO;
    }
    size_t index = (size_t)(p - c->card.board.profiles);
    stock_init(&s, &inv, NULL, (struct now){ 0 }, (struct stock_view){ .at_boot_us = INT64_MIN });
    const struct stock_card *card = &s.cards[0];
    if (card->closed || card->held || !stock_card_gives_slices(card))
        return 0;
    const struct profile *same = &card->board->profiles[index];
    return stay_idle(card, same) + to_be_made(card, same);
}

static void add_engines(struct text *t, const struct profile *p)
{
    const struct {
        const char *name;
        uint32_t n;
    } engines[] = { { "copy", p->copy_engines },
                    { "dec", p->decoders },
                    { "enc", p->encoders },
                    { "jpeg", p->jpegs },
                    { "ofa", p->ofas } };
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (engines[i].n)
            text_addf(t, "%s%u %s", t->len ? ", " : "", engines[i].n, engines[i].name);
    if (!t->len)
        text_add(t, "-");
}

static void add_starts(struct text *t, const struct profile *p)
{
    for (uint32_t i = 0; i < p->start_count; i++)
        text_addf(t, "%s%u", i ? "," : "", (unsigned)p->starts[i]);
    if (!t->len)
        text_add(t, "n/a");
}

static void add_profile(struct table *t, const struct profile *p,
                        const struct inventory_card *const *cards, size_t count)
{
    AUTO(text) struct text mem = TEXT_INIT;
    AUTO(text) struct text engines = TEXT_INIT;
    AUTO(text) struct text starts = TEXT_INIT;
    uint32_t n = 0;
    text_add_size(&mem, p->mem_bytes);
    add_engines(&engines, p);
    add_starts(&starts, p);
    table_cellf(t, "%u", p->id);
    table_cellf(t, "%s%s", p->name, p->unconfirmed ? "*" : "");
    table_cellf(t, "%u", p->slices);
    table_cell(t, mem.buf);
    table_cellf(t, "%u", p->units);
    table_cellf(t, "%u", p->max);
    if (count) {
        for (size_t i = 0; i < count; i++)
            n += profiles_free(cards[i], p);
        table_cellf(t, "%u", n);
    }
    table_cell(t, starts.buf);
    table_cell(t, engines.buf);
}

void profiles_draw(const struct board *b, const struct inventory_card *const *cards, size_t count,
                   const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    if (!b->profile_count) {
        text_add(ret, "whole only: no MIG on this card\n");
        return;
    }
    table_column(&t, "ID", TABLE_RIGHT);
    table_column(&t, "PROFILE", 0);
    table_column(&t, "SLICES", TABLE_RIGHT);
    table_column(&t, "MEMORY", TABLE_RIGHT);
    table_column(&t, "UNITS", TABLE_RIGHT);
    table_column(&t, "MAX", TABLE_RIGHT);
    if (count)
        table_column(&t, "FREE", TABLE_RIGHT);
    table_column(&t, "STARTS", 0);
    table_column(&t, "ENGINES", TABLE_WRAP);
    for (uint32_t i = 0; i < b->profile_count; i++)
        add_profile(&t, &b->profiles[i], cards, count);
    table_draw(&t, s, ret);
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].unconfirmed) {
            text_add(ret, "* numbers inferred, not seen on hardware\n");
            return;
        }
}
