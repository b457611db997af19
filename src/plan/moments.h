/*
 * moments.h - when may something become possible that is not possible now?
 *
 * Holders end at their limits, and a while after that an idle card may change
 * its MIG mode. Between two of these moments nothing changes, so whoever looks
 * ahead need ask about the moments alone.
 *
 *     AUTO(moments) struct moments m = moments_list(inv, hold_us, now);
 */
#ifndef DIVVY_PLAN_MOMENTS_H
#define DIVVY_PLAN_MOMENTS_H

#include "model/inventory.h"

struct moments {
    int64_t *list; /* boot time, ascending, after now; at least one: "as things are" is now + 1 */
    size_t count, alloc;
};

struct moments moments_list(const struct inventory *inv, int64_t mode_hold_us, struct now now);
void moments_done(struct moments *m);

#endif
