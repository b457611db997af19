#include "plan/place.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plan/bulk.h"
#include "plan/moments.h"
#include "plan/refuse.h"
#include "plan/search.h"

static const struct stock_view now_view = { .nobody = false, .at_boot_us = INT64_MIN };
static const struct stock_view nobody_view = { .nobody = true, .at_boot_us = INT64_MIN };

enum place_verdict place_possible(const struct inventory *inv, const struct request *r,
                                  const struct place_rules *rules, struct err *e)
{
    if (inv->bulk)
        return bulk_possible(inv->bulk, r, e);
    AUTO(stock) struct stock s = STOCK_INIT;
    struct now any = { 0 };
    stock_init(&s, inv, rules, any, nobody_view);
    uint32_t served = search_take(&s, r);
    if (served == search_wanted(r))
        return PLACE_LATER;
    if (!e)
        return PLACE_NEVER;
    AUTO(stock) struct stock fresh = STOCK_INIT;
    stock_init(&fresh, inv, rules, any, nobody_view);
    refuse_never(&fresh, r, served, e);
    return PLACE_NEVER;
}

enum place_verdict place_request(const struct inventory *inv, const struct request *r,
                                 const struct place_rules *rules, struct now now,
                                 struct place *ret_place, struct plan *ret_plan, struct err *e)
{
    if (inv->bulk)
        return bulk_request(inv->bulk, r, ret_place, ret_plan, e);
    AUTO(stock) struct stock s = STOCK_INIT;
    stock_init(&s, inv, rules, now, now_view);
    uint32_t served = search_take(&s, r);
    if (served == search_wanted(r)) {
        stock_write(&s, ret_place, ret_plan);
        return PLACE_NOW;
    }
    if (place_possible(inv, r, rules, e) == PLACE_NEVER)
        return PLACE_NEVER;
    if (!e)
        return PLACE_LATER;
    AUTO(stock) struct stock fresh = STOCK_INIT;
    stock_init(&fresh, inv, rules, now, now_view);
    refuse_later(&fresh, r, served, e);
    return PLACE_LATER;
}

uint32_t place_served(const struct inventory *inv, const struct request *r,
                      const struct place_rules *rules, struct now now)
{
    AUTO(stock) struct stock s = STOCK_INIT;
    stock_init(&s, inv, rules, now, now_view);
    return search_take(&s, r);
}

/* Takes for the request as things are at that moment. */
static bool serves_at(struct stock *s, const struct inventory *inv, const struct request *r,
                      const struct place_rules *rules, int64_t at)
{
    struct now then = { .boot_us = at };
    stock_init(s, inv, rules, then, (struct stock_view){ .at_boot_us = at });
    return search_take(s, r) == search_wanted(r);
}

static size_t list_cards(const struct stock *s, size_t *ret_cards)
{
    size_t n = 0;
    for (size_t i = 0; i < s->card_count; i++)
        if (s->cards[i].used)
            ret_cards[n++] = s->cards[i].index;
    return n;
}

size_t place_soonest(const struct inventory *inv, const struct request *r,
                     const struct place_rules *rules, struct now now, size_t *ret_cards,
                     int64_t *ret_when_boot_us)
{
    AUTO(moments) struct moments t = moments_list(inv, rules ? rules->mode_hold_us : 0, now);
    *ret_when_boot_us = INT64_MAX;
    /* What is possible stays possible as more is free, so the first moment can be halved for. */
    size_t low = 0, high = t.count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        AUTO(stock) struct stock s = STOCK_INIT;
        if (serves_at(&s, inv, r, rules, t.list[mid]))
            high = mid;
        else
            low = mid + 1;
    }
    if (low == t.count)
        return 0;
    AUTO(stock) struct stock s = STOCK_INIT;
    if (!serves_at(&s, inv, r, rules, t.list[low]))
        return 0;
    *ret_when_boot_us = t.list[low] == now.boot_us + 1 ? now.boot_us : t.list[low];
    return list_cards(&s, ret_cards);
}
