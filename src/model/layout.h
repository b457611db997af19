/*
 * layout.h - what an administrator wants of the cards: which of them, and into
 * which slices.
 *
 * A layout is a list of wishes. A wish names cards (its claims) and says what
 * they should be: whole, or cut into exactly these slices. It is made from a
 * file (config/layout.h, config/mig_parted.h) and knows nothing of boards:
 * profiles stand in it as they were written, with the place where, and become
 * profiles of a board only in plan/layout.h.
 *
 *     AUTO(layout) struct layout l = LAYOUT_INIT;
 *     r = layout_read("lab.yaml", &l, e);
 *     r = layout_assign(&l, &inventory, wishes, e);   // a wish for each card, or NULL
 *
 * In a wish the order of the slices means nothing.
 */
#ifndef DIVVY_MODEL_LAYOUT_H
#define DIVVY_MODEL_LAYOUT_H

#include "base/cleanup.h"
#include "base/text.h"
#include "model/inventory.h"

#define LAYOUT_ANYWHERE UINT32_MAX
#define LAYOUT_WISHES_MAX 256u
#define LAYOUT_PIECES_MAX 64u
#define LAYOUT_COUNT_MAX 64u

/* Which card somebody means. */
enum claim_kind {
    CLAIM_ALL = 0, /* every card; those that cannot be as wished are left out */
    CLAIM_ORDINAL, /* gpu0 */
    CLAIM_UUID,
    CLAIM_BUS,   /* 0000:07:00.0, or shorter */
    CLAIM_BOARD, /* a100-80gb, or the name that the driver gives */
};

struct layout_claim {
    enum claim_kind kind;
    uint32_t ordinal;
    char word[CARD_UUID_SIZE];
    unsigned line, column;
};

/* So many slices of a kind, as they were written. */
struct layout_piece {
    char profile[PROFILE_NAME_SIZE]; /* "2g.20gb", "1c.3g.40gb" */
    uint32_t count;
    uint32_t start;    /* memory unit, or LAYOUT_ANYWHERE; then ci_start is too */
    uint32_t ci_start; /* of a smaller compute instance: compute slice, or LAYOUT_ANYWHERE */
    char uuid[CARD_UUID_SIZE]; /* what it was when the file was saved; "" */
    unsigned line, column;
};

struct layout_wish {
    struct layout_claim *claims;
    size_t claim_count, claim_alloc;
    bool has_mode;
    enum card_mode mode; /* with has_mode */
    bool has_slices;     /* false: the slices that are there stay */
    struct layout_piece *pieces;
    size_t piece_count, piece_alloc;
    /* PCI device ids (device << 16 | vendor) that it is for; none: any. mig-parted's. */
    uint32_t *devices;
    size_t device_count, device_alloc;
    unsigned line, column;
};

struct layout {
    char *file;
    char *label; /* which of a file's layouts; NULL where a file has one */
    struct layout_wish *wishes;
    size_t wish_count, wish_alloc;
    bool last_wins; /* a card that two wishes claim gets the last one; else that is an error */
};

#define LAYOUT_INIT                                                                                \
    {                                                                                              \
        .file = NULL                                                                               \
    }

void layout_done(struct layout *l);
/* New zeroed entries at the end; valid until the next addition. */
struct layout_wish *layout_add_wish(struct layout *l);
struct layout_claim *layout_add_claim(struct layout_wish *w);
struct layout_piece *layout_add_piece(struct layout_wish *w);
void layout_add_device(struct layout_wish *w, uint32_t id);

/*
 * What `word` names: all, gpu0 or 0, a UUID, a PCI address, else a board.
 * -EINVAL for what can be none of these. Line and column are left alone.
 */
int layout_claim_parse(const char *word, struct layout_claim *ret, struct err *e);
bool layout_claim_covers(const struct layout_claim *claim, const struct card *c);

/* Has the board one of the wish's PCI device ids, where it names any? */
bool layout_wish_is_for(const struct layout_wish *w, const struct board *b);

/* MIG on (1), off (0), or as it is (-1). */
int layout_wish_mig(const struct layout_wish *w);

/*
 * The wish for each card of the inventory, in its order, into `ret_wishes`
 * (card_count of them; NULL: none, the card is not touched). `all` leaves out
 * cards that cannot be cut when the wish is to cut them. -EINVAL, with file and
 * line: two wishes for one card, or a card that is not here. A board that is
 * not here is no error: one file may serve many servers.
 */
int layout_assign(const struct layout *l, const struct inventory *inv,
                  const struct layout_wish **ret_wishes, struct err *e);

#endif
