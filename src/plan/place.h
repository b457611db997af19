/*
 * place.h - where does a request go, and by which steps?
 *
 * Pure: no I/O, no clock, no random number. The same question to the same
 * inventory gives the same answer. A place is exact (card, profile, first
 * memory unit); what is busy is never touched; idle slices are reused first,
 * and destroyed only where that makes room. By, in this order: smallest fit by
 * dominant share; reuse before create before destroy; on a card the place that
 * leaves the most room (fewest possible placements lost, summed over the
 * board's profiles), and of the cards the one that loses the least of its worth
 * to those who may come (plan/occupancy.h); the lowest ordinal and start.
 *
 * MIG modes: an `auto` card is turned when nobody holds it and nobody did for
 * mode_hold_us. A card in mode `slices` or `whole` that is not in that mode yet
 * is brought into it, once free, without that hold: it is the only mode it may
 * have. Of several whole cards the best connected are taken (plan/connect.h).
 */
#ifndef DIVVY_PLAN_PLACE_H
#define DIVVY_PLAN_PLACE_H

#include "plan/occupancy.h"
#include "plan/plan.h"

/* What the caller forbids on a card, beside what the inventory already says. */
enum card_ban {
    BAN_NOTHING = 0,
    BAN_ALL,      /* reserved (draining), or not managed by the queue: takes nothing */
    BAN_NEW_CUTS, /* idle slices may be used, nothing may be destroyed or created */
};

/* What of a card is kept for others, though nobody holds it yet. */
struct place_kept {
    bool whole;            /* it is not to be had whole */
    bool slices;           /* nor slices of it */
    struct occupancy more; /* units that nothing may lie on, and sums beside what is held now */
};

struct place_rules {
    const enum card_ban *bans;     /* one per inventory card, in its order; NULL: none */
    const struct place_kept *kept; /* the same */
    int64_t mode_hold_us;          /* an auto card changes its MIG mode only when idle this long */
    bool slices_of_all;            /* ignore pools (layout tools); false: POOL_QUEUE only */
};

/* Why a request does not go anywhere now. */
enum place_verdict {
    PLACE_NOW = 0, /* goes now */
    PLACE_LATER,   /* would go on this server when others end */
    PLACE_NEVER,   /* no card of this server can ever serve it */
};

/*
 * Looks for a place of the whole request (all tasks, all cards). On PLACE_NOW
 * fills `ret_place` (gi, ci, uuid and generation set for reused slices) and
 * `ret_plan` (empty when nothing is to be cut), which the caller ends. On the
 * others writes one sentence into e: the reason, and what would work. Without
 * `e` it is quicker.
 * `now` decides mode holds.
 */
enum place_verdict place_request(const struct inventory *inv, const struct request *r,
                                 const struct place_rules *rules, struct now now,
                                 struct place *ret_place, struct plan *ret_plan, struct err *e);

/*
 * How many of its tasks (cards, where it asks for whole ones) would have a place now: all of them
 * where place_request says PLACE_NOW. What a card serves does not depend on the other cards, so
 * with all but one banned this is that card's part, and the parts add up. Not for counted cards.
 */
uint32_t place_served(const struct inventory *inv, const struct request *r,
                      const struct place_rules *rules, struct now now);

/*
 * Could this server serve the request if nobody used it? Cards that are lost
 * count, cards in other pools do not. PLACE_LATER or PLACE_NEVER, with a
 * sentence for the latter: this is what a submit is refused with.
 */
enum place_verdict place_possible(const struct inventory *inv, const struct request *r,
                                  const struct place_rules *rules, struct err *e);

/*
 * When would it go, if those who hold what is in the way end at their limits?
 * Fills `ret_cards` (inventory indices, room for card_count) with the cards
 * that free soonest and together serve the request, and `ret_when_boot_us`.
 * Returns the number of cards, 0 when some holder has no limit on every
 * choice (then *ret_when is INT64_MAX) or it is PLACE_NEVER. This is the
 * reservation of one of whom nobody can say when he starts; sched/ names the others by place_earliest.
 */
size_t place_soonest(const struct inventory *inv, const struct request *r,
                     const struct place_rules *rules, struct now now, size_t *ret_cards,
                     int64_t *ret_when_boot_us);

#endif
