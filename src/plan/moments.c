#include "plan/moments.h"

#include <stdlib.h>

#include "base/text.h"

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

void moments_done(struct moments *m)
{
    free(m->list);
}

static void add_time(struct moments *m, int64_t at, struct now now)
{
    if (at <= now.boot_us)
        return;
    ARRAY_ROOM(m->list, m->alloc, m->count + 1);
    m->list[m->count++] = at;
}

/* A holder frees something at its limit, and may free a mode change when the hold has passed too. */
static void add_hold(struct moments *m, const struct hold *h, int64_t hold_us, struct now now)
{
    if (h->kind != HOLD_JOB || !h->until_boot_us)
        return;
    add_time(m, h->until_boot_us, now);
    add_time(m, h->until_boot_us + hold_us, now);
}

struct moments moments_list(const struct inventory *inv, int64_t mode_hold_us, struct now now)
{
    struct moments m = { .list = NULL };
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct inventory_card *c = &inv->cards[i];
        add_hold(&m, &c->hold, mode_hold_us, now);
        if (c->idle_since_boot_us)
            add_time(&m, c->idle_since_boot_us + mode_hold_us, now);
        for (size_t k = 0; k < c->card.slice_count; k++)
            add_hold(&m, &c->slices[k].hold, mode_hold_us, now);
    }
    add_time(&m, now.boot_us + 1, now); /* as things are */
    if (m.count > 1)
        qsort(m.list, m.count, sizeof *m.list, by_time);
    return m;
}
