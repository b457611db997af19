/* Any bytes as a layout or mig-parted file, and what was read against a card. */
#include <assert.h>
#include <string.h>

#include "config/layout.h"
#include "fuzz.h"
#include "plan/layout.h"

static const struct {
    const char *name;
    uint32_t id, slices, units;
} rows[] = { { "1g.10gb", 19, 1, 1 }, { "2g.20gb", 14, 2, 2 }, { "7g.80gb", 0, 7, 8 } };

static void fill(struct inventory_card *c)
{
    struct board *b = &c->card.board;
    b->units = 8;
    b->slices = 7;
    for (uint32_t i = 0; i < 3; i++) {
        struct profile *p = &b->profiles[b->profile_count++];
        *p = (struct profile){
            .id = rows[i].id, .slices = rows[i].slices, .units = rows[i].units, .max = 7
        };
        memcpy(p->name, rows[i].name, strlen(rows[i].name) + 1);
        for (uint32_t at = 0; at + p->units <= (i == 2 ? 8 : 7); at += p->units)
            p->starts[p->start_count++] = (uint8_t)at;
        for (uint32_t n = 1; n <= p->slices; n++)
            p->cis[p->ci_count++] = (struct ci_profile){ .id = n, .slices = n, .max = 7 / n };
    }
    c->card.mig_capable = true;
    c->card.mig_now = c->card.mig_pending = true;
    c->card.known = KNOW_SLICES;
}

static void try_wish(const struct layout_wish *w)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    auto_free struct inventory_card *c = mem_new(sizeof *c);
    fill(c);
    layout_plan(c, w, &ch);
    assert(ch.verdict != LAYOUT_BUSY && ch.verdict != LAYOUT_UNREACHABLE);
    assert((ch.verdict == LAYOUT_TO_DO) == (ch.steps.count > 0));
    assert((ch.verdict > LAYOUT_TO_DO) == (ch.why[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
    struct err e = ERR_INIT;
    if (layout_list_parse("fuzz", (const char *)data, size, &l, &e) < 0) {
        assert(e.code < 0 && e.text[0] && !l.count);
        return 0;
    }
    for (size_t i = 0; i < l.count; i++)
        for (size_t k = 0; k < l.layouts[i].wish_count; k++)
            try_wish(&l.layouts[i].wishes[k]);
    return 0;
}
