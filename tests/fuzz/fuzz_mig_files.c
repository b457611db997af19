/* Any bytes as a hooks file and as a checkpoint of mig-parted, and what was read against a card. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "config/mig_hooks.h"
#include "config/mig_state.h"
#include "fuzz.h"
#include "model/fields.h"
#include "plan/layout.h"

static void add_profile(struct board *b, const char *name, uint32_t index, uint32_t slices,
                        uint32_t units)
{
    struct profile *p = &b->profiles[b->profile_count++];
    *p = (struct profile){
        .id = 19 - index, .index = index, .slices = slices, .units = units, .max = 8 / units
    };
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    for (uint32_t at = 0; at + units <= 8; at += units)
        p->starts[p->start_count++] = (uint8_t)at;
    for (uint32_t n = 1; n <= slices; n++)
        p->cis[p->ci_count++] =
            (struct ci_profile){ .id = n, .index = n - 1, .slices = n, .max = slices / n };
}

static void try_hooks(const char *data, size_t size)
{
    AUTO(mig_hooks) struct mig_hooks h = MIG_HOOKS_INIT;
    struct err e = ERR_INIT;
    if (mig_hooks_parse("fuzz", data, size, &h, &e) < 0) {
        assert(e.code < 0 && e.text[0]);
        return;
    }
    for (int p = 0; p < MIG_HOOK_POINTS; p++)
        for (size_t i = 0; i < h.count[p]; i++)
            assert(h.list[p][i].command && h.list[p][i].command[0]);
}

static void try_checkpoint(const char *data, size_t size)
{
    struct err e = ERR_INIT;
    auto_json json_t *j = NULL;
    AUTO(layout) struct layout l = LAYOUT_INIT;
    AUTO(inventory) struct inventory inv = { .card_count = 1 };
    inv.cards = mem_new(sizeof *inv.cards);
    struct card *c = &inv.cards[0].card;
    (void)snprintf(c->uuid, sizeof c->uuid, "GPU-1");
    c->board.units = 8;
    c->board.slices = 7;
    add_profile(&c->board, "1g.10gb", 0, 1, 1);
    add_profile(&c->board, "3g.40gb", 2, 3, 4);
    c->mig_capable = c->mig_now = c->mig_pending = true;
    c->known = KNOW_SLICES;
    if (json_parse(data, size, "fuzz", &j, &e) < 0)
        return;
    if (mig_state_from_checkpoint("fuzz", j, &inv, &l, &e) < 0) {
        assert(e.code < 0 && e.text[0] && !l.wish_count);
        return;
    }
    for (size_t i = 0; i < l.wish_count; i++) {
        AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
        layout_plan(&inv.cards[0], &l.wishes[i], &ch);
        assert((ch.verdict > LAYOUT_TO_DO) == (ch.why[0] != '\0'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_hooks((const char *)data, size);
    try_checkpoint((const char *)data, size);
    return 0;
}
