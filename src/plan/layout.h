/*
 * layout.h - from what a card is to what somebody wants of it: by which steps,
 * or why not.
 *
 * Pure. One card at a time: wishes for different cards have nothing to do with
 * each other. The answer is exact (plan/solve.h): nothing that is busy is
 * touched, the fewest idle slices are destroyed and moved, and what is free
 * afterwards holds the most. A card that is as wanted gets an empty plan.
 *
 *     AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
 *     layout_plan(&inv.cards[i], wish, &ch);
 *     if (ch.verdict == LAYOUT_TO_DO) … ch.steps …
 *
 * Profiles are the board's, found by id, by name, or by another tool's spelling
 * of it: as many slices, the same suffix, and a size that differs by rounding.
 */
#ifndef DIVVY_PLAN_LAYOUT_H
#define DIVVY_PLAN_LAYOUT_H

#include "model/layout.h"
#include "plan/plan.h"

/* From best to worst. */
enum layout_verdict {
    LAYOUT_AS_WANTED = 0,
    LAYOUT_TO_DO,        /* `steps` leads there now */
    LAYOUT_NEEDS_REBOOT, /* its mode is stored and waits for a reboot (apply/reboot.h); never a
                            plan's answer, which knows only the card */
    LAYOUT_BUSY,         /* somebody is in the way: `why` says who */
    LAYOUT_NEEDS_RESET,  /* the card asks for a reset before anything else */
    LAYOUT_UNREACHABLE,  /* lost, or not to be opened */
    LAYOUT_IMPOSSIBLE,   /* no arrangement on an empty card of this board holds it */
    LAYOUT_INVALID,      /* the board has no such profile, place or MIG at all */
};

enum layout_fate { FATE_KEEP = 0, FATE_DESTROY, FATE_CREATE, FATE_MOVE_AWAY, FATE_MOVE_HERE };

/* What becomes of one slice. */
struct layout_line {
    enum layout_fate fate;
    size_t slice; /* of the card: KEEP, DESTROY, MOVE_AWAY; else SIZE_MAX */
    char profile[PROFILE_NAME_SIZE];
    uint32_t start;
    uint32_t ci_start; /* of a smaller compute instance; LAYOUT_ANYWHERE: it has all */
    bool busy;         /* one that is there */
};

struct layout_change {
    enum layout_verdict verdict;
    char why[ERR_TEXT_MAX]; /* not for the first two */
    char nearest[256];      /* BUSY, IMPOSSIBLE: what would fit; "" when nothing does */
    char warning[256];      /* another spelling was understood; "" */
    int turn;               /* 1: MIG on, 0: off, -1: as it is */
    uint32_t destroyed, moved, created, kept; /* slices; moved: GPU instances */
    struct layout_line *lines;
    size_t line_count, line_alloc;
    struct plan steps; /* TO_DO */
};

#define LAYOUT_CHANGE_INIT                                                                         \
    {                                                                                              \
        .lines = NULL                                                                              \
    }

void layout_change_done(struct layout_change *ch);

/* `ret` is filled in any case; the caller ends it. The wish's pieces stay as they are. */
void layout_plan(const struct inventory_card *c, const struct layout_wish *w,
                 struct layout_change *ret);

/* "as wanted", "to do", "busy", … in JSON and messages. */
const char *layout_verdict_word(enum layout_verdict v);
/* "keep", "destroy", "create", "move away", "move here". */
const char *layout_fate_word(enum layout_fate f);

/*
 * The board's profile that `word` means: by name, or by another spelling, and
 * then *ret_other is true. NULL: none.
 */
const struct profile *layout_find_profile(const struct board *b, const char *word, bool *ret_other);

#endif
