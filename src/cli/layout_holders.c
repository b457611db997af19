/* Who is on the cards that a layout would change. */
#include <stdio.h>

#include "cli/layout.h"

static void add_all(struct holders *to, const struct holders *from)
{
    for (size_t i = 0; i < from->count; i++) {
        bool there = false;
        for (size_t k = 0; k < to->count; k++)
            there = there || to->list[k].pid == from->list[i].pid;
        if (there)
            continue;
        ARRAY_ROOM(to->list, to->alloc, to->count + 1);
        to->list[to->count++] = from->list[i];
    }
    to->hidden = from->hidden;
}

/* Where the mode stays, only slices that somebody has are of interest. */
static void find_on_slices(const struct inventory_card *c, struct holders *ret)
{
    for (size_t i = 0; i < c->card.slice_count; i++) {
        AUTO(holders) struct holders h = HOLDERS_INIT;
        if (c->slices[i].hold.kind == HOLD_NONE)
            continue;
        holders_find(NULL, &c->card, c->card.slices[i].gi, &h);
        add_all(ret, &h);
    }
}

/* With a mode that is changed by a reset the card must be nobody's. */
static bool needs_the_card_alone(const struct inventory_card *c, const struct layout_change *ch)
{
    return ch->turn >= 0 && ch->verdict == LAYOUT_TO_DO &&
           c->card.board.activation != MIG_IMMEDIATE;
}

static void become_busy(struct layout_change *ch)
{
    ch->verdict = LAYOUT_BUSY;
    (void)snprintf(ch->why, sizeof ch->why,
                   "MIG can be turned %s once nobody has the card open any more",
                   ch->turn ? "on" : "off");
    plan_done(&ch->steps);
}

void layout_work_find_holders(struct layout_work *w)
{
    w->holders = mem_new((w->inv.card_count + 1) * sizeof *w->holders);
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct inventory_card *c = &w->inv.cards[i];
        struct layout_change *ch = &w->changes[i];
        bool turns = w->wishes[i] && ch->turn >= 0 &&
                     (ch->verdict == LAYOUT_TO_DO || ch->verdict == LAYOUT_BUSY);
        if (turns)
            holders_find(NULL, &c->card, NOT_AN_INSTANCE, &w->holders[i]);
        else if (w->wishes[i] && ch->verdict == LAYOUT_BUSY)
            find_on_slices(c, &w->holders[i]);
        if (turns && needs_the_card_alone(c, ch) && holders_block(&w->holders[i]))
            become_busy(ch);
    }
}
