#include "cli/profiles_draw.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/table.h"

/* Memory units and compute slices that somebody has. */
static uint32_t taken_units(const struct inventory_card *c, bool units[BOARD_UNITS_MAX])
{
    uint32_t slices = 0;
    for (size_t i = 0; i < c->card.slice_count; i++) {
        const struct slice *s = &c->card.slices[i];
        if (c->slices[i].hold.kind == HOLD_NONE || s->start >= BOARD_UNITS_MAX)
            continue;
        const struct profile *p = board_profile_by_id(&c->card.board, s->profile_id);
        if (!units[s->start] && p)
            slices += p->slices; /* once for each GPU instance */
        for (uint32_t u = s->start; u < s->start + s->units && u < BOARD_UNITS_MAX; u++)
            units[u] = true;
    }
    return slices;
}

static bool all_free(const bool units[BOARD_UNITS_MAX], uint32_t from, uint32_t n)
{
    for (uint32_t u = from; u < from + n; u++)
        if (u >= BOARD_UNITS_MAX || units[u])
            return false;
    return true;
}

static bool can_be_cut_now(const struct inventory_card *c)
{
    if (c->card.health != CARD_OK || c->quarantined || c->hold.kind != HOLD_NONE)
        return false;
    return c->card.mig_now || (c->card.mig_capable && (c->mode != MODE_WHOLE || !c->owners_known));
}

uint32_t profiles_free(const struct inventory_card *c, const struct profile *p)
{
    bool units[BOARD_UNITS_MAX] = { false };
    uint32_t n = 0;
    if (!can_be_cut_now(c))
        return 0;
    uint32_t slices = taken_units(c, units);
    /* All placements of a profile are of one size, so taking the first that fit is best. */
    for (uint32_t i = 0; i < p->start_count; i++) {
        bool room = slices + p->slices <= c->card.board.slices && (!p->max || n < p->max);
        if (!room || !all_free(units, p->starts[i], p->units))
            continue;
        for (uint32_t u = p->starts[i]; u < p->starts[i] + p->units; u++)
            units[u] = true;
        slices += p->slices;
        n++;
    }
    return n;
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
