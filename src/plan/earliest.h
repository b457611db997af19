/*
 * earliest.h - when does a request go, and exactly where, beside what is kept
 * for others from some moment on?
 *
 * place_soonest names cards, as if nobody else would come. Here the caller
 * knows who else is to start when and where, and says what that keeps of each
 * card for as long as the request would run. The first moment is found at
 * which the request fits for all of its time, with the place that it has then.
 */
#ifndef DIVVY_PLAN_EARLIEST_H
#define DIVVY_PLAN_EARLIEST_H

#include "plan/place.h"

/* What is kept if it began at that moment: one per card, valid until the next call; NULL: nothing. */
typedef const struct place_kept *(*place_kept_fn)(void *arg, int64_t at_boot_us);

/* Does what the cards do not tell let it start then? `p`: there; NULL: anywhere at all. */
typedef bool (*place_room_fn)(void *arg, int64_t at_boot_us, const struct place *p);

struct place_ahead {
    place_kept_fn kept;
    place_room_fn room; /* NULL: always */
    void *arg;
    const int64_t *also; /* more moments at which something may become possible, in any order */
    size_t also_count;
    int64_t before_us; /* only what is before that is of use; INT64_MAX: whenever */
};

/*
 * True: `ret_place` (which the caller ends) and `ret_when_boot_us` are filled;
 * the time is now where only holders that are past their limits are in the
 * way. False: there is no such moment, since somebody has no limit or it is
 * not before `before_us`. rules->kept is not looked at. Where there is no
 * moment before `before_us` even without the others, that costs one search.
 */
bool place_earliest(const struct inventory *inv, const struct request *r,
                    const struct place_rules *rules, struct now now, const struct place_ahead *a,
                    struct place *ret_place, int64_t *ret_when_boot_us);

#endif
