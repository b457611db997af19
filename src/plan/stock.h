/*
 * stock.h - the cards as a search sees them: what is there to be given.
 *
 * Made from an inventory for one question and thrown away. Each card knows
 * whether it is open to the question and if not, why; whether its MIG mode may
 * be turned; its GPU instances as pieces (idle, busy, taken by this question,
 * to be destroyed for it); and two occupancies: of what may not be touched,
 * and of everything. plan/search.h takes from it; the takings become a place
 * and a plan.
 *
 * Invariants: a busy piece never changes state; `busy` is the sum of what may
 * not be touched (busy, taken and kept pieces), `all` that of all but destroyed
 * ones.
 */
#ifndef DIVVY_PLAN_STOCK_H
#define DIVVY_PLAN_STOCK_H

#include "plan/occupancy.h"
#include "plan/place.h"

#define STOCK_PIECES_MAX (2 * BOARD_UNITS_MAX)

enum piece_state {
    PIECE_IDLE = 0,
    PIECE_BUSY,
    PIECE_TAKEN,     /* by this question: reused, or made for it */
    PIECE_DESTROYED, /* for this question */
};

/* A GPU instance with whatever is in it. */
struct stock_piece {
    const struct profile *profile; /* NULL: the board does not know it; then it is busy */
    uint32_t start, units;
    size_t first, count; /* its slices in the card's list; count 0: to be made */
    bool kept;           /* found, not made by Divvy: may be reused, never destroyed */
    enum piece_state state;
};

enum stock_closed {
    STOCK_OPEN = 0,
    STOCK_OTHER_POOL,
    STOCK_UNHEALTHY,
    STOCK_QUARANTINED,
    STOCK_BANNED,
    STOCK_MODE_PENDING, /* a mode change waits for a reset */
};

enum stock_turn { TURN_NOT = 0, TURN_ON, TURN_OFF };

struct stock_card {
    const struct inventory_card *from;
    const struct board *board;
    size_t index; /* in the inventory */
    enum stock_closed closed;
    bool no_cuts;             /* BAN_NEW_CUTS, or an administrator's layout */
    bool no_whole, no_slices; /* kept for others: place_kept */
    bool keeps_more;
    uint32_t kept_units;
    bool held;            /* as a whole: by its holder, or by this question */
    bool free;            /* nobody holds it or a slice of it */
    bool keeps;           /* has pieces that are kept, so its mode stays */
    bool may_turn;        /* its MIG mode may be turned now, should that help */
    bool mig;             /* MIG is on, counting `turn` */
    bool used;            /* this question has taken something of it */
    enum stock_turn turn; /* what this question does to its mode */
    uint32_t room;        /* occupancy_room of `busy` */
    struct occupancy busy, all;
    size_t piece_count;
    struct stock_piece pieces[STOCK_PIECES_MAX];
};

/* What one task (or one card of the only task) was given. */
struct stock_taking {
    struct stock_card *card;
    size_t piece; /* of the card; not for whole cards */
    bool whole;
    uint32_t task;
};

struct stock {
    struct stock_card *cards;
    size_t card_count;
    struct stock_taking *takings;
    size_t taking_count, taking_alloc;
};

#define STOCK_INIT                                                                                 \
    {                                                                                              \
        .cards = NULL                                                                              \
    }

/* The cards now, later, or as if nobody were there. */
struct stock_view {
    bool nobody;        /* nobody holds anything, nothing is ill, reserved or waited for */
    int64_t at_boot_us; /* holders whose time is up by then are gone; INT64_MIN: none */
};

void stock_init(struct stock *s, const struct inventory *inv, const struct place_rules *rules,
                struct now now, struct stock_view view);
void stock_done(struct stock *s);

/* Are whole cards, slices given from this card at all (mode, MIG capability)? */
bool stock_card_gives_whole(const struct stock_card *c);
bool stock_card_gives_slices(const struct stock_card *c);

/* A GPU instance without a compute instance, and none planned either. */
bool slice_is_bare(const struct slice *s);

void stock_take_whole(struct stock *s, struct stock_card *c, uint32_t task);
/* Reuses a piece that is there. */
void stock_take_piece(struct stock *s, struct stock_card *c, size_t piece, uint32_t task);
/* Makes a new one, after destroying the pieces whose bits are set in `destroy`. */
void stock_take_new(struct stock *s, struct stock_card *c, const struct profile *p, uint32_t start,
                    uint32_t destroy, uint32_t task);

/* The takings as a place and a plan, both initialised by this. */
void stock_write(const struct stock *s, struct place *ret_place, struct plan *ret_plan);

#endif
