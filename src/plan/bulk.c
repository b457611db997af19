#include "plan/bulk.h"

#include <errno.h>
#include <stdio.h>

static uint32_t cards_of(const struct request *r)
{
    return r->kind == REQUEST_CARDS ? r->count : 0;
}

enum place_verdict bulk_possible(const struct bulk *b, const struct request *r, struct err *e)
{
    if (r->kind != REQUEST_CARDS && r->kind != REQUEST_NOTHING) {
        (void)err_set(e, -EINVAL,
                      "cards that are only counted have no slices; ask for whole cards, or name "
                      "the cards with their board");
        return PLACE_NEVER;
    }
    if (cards_of(r) <= b->cards)
        return PLACE_LATER;
    (void)err_set(e, -ENOSPC, "%u cards are asked for, and there are %u", r->count, b->cards);
    return PLACE_NEVER;
}

static void fill(struct place *place, uint32_t cards)
{
    *place = (struct place){ .items = NULL };
    for (uint32_t i = 0; i < cards; i++) {
        struct placed *item = place_add(place);
        *item = (struct placed){ .ordinal = i, .whole = true, .gi = NOT_AN_INSTANCE };
        item->ci = NOT_AN_INSTANCE;
        item->compute_ppm = item->mem_ppm = PPM;
        (void)snprintf(item->card_uuid, sizeof item->card_uuid, "any"); /* three letters fit */
    }
}

enum place_verdict bulk_request(const struct bulk *b, const struct request *r,
                                struct place *ret_place, struct plan *ret_plan, struct err *e)
{
    if (bulk_possible(b, r, e) == PLACE_NEVER)
        return PLACE_NEVER;
    if (cards_of(r) > b->free) {
        (void)err_set(e, -EBUSY, "%u of %u cards are free", b->free, b->cards);
        return PLACE_LATER;
    }
    fill(ret_place, cards_of(r));
    *ret_plan = (struct plan){ .steps = NULL };
    return PLACE_NOW;
}
