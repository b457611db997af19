#include "base/pile.h"

#include <stdlib.h>

#include "base/text.h"

void pile_done(struct pile *h)
{
    free(h->items);
    *h = (struct pile)PILE_INIT;
}

static void set(struct pile *h, size_t at, struct pile_item item)
{
    h->items[at] = item;
    *item.slot = (uint32_t)(at + 1);
}

static void rise(struct pile *h, size_t at, struct pile_item item)
{
    for (; at && item.key < h->items[(at - 1) / 2].key; at = (at - 1) / 2)
        set(h, at, h->items[(at - 1) / 2]);
    set(h, at, item);
}

static void sink(struct pile *h, size_t at, struct pile_item item)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < h->count && h->items[child + 1].key < h->items[child].key)
            child++;
        if (child >= h->count || item.key <= h->items[child].key)
            break;
        set(h, at, h->items[child]);
        at = child;
    }
    set(h, at, item);
}

/* Something stands at `at` no more; `item` goes there, or where it belongs. */
static void settle(struct pile *h, size_t at, struct pile_item item)
{
    if (at && item.key < h->items[(at - 1) / 2].key)
        rise(h, at, item);
    else
        sink(h, at, item);
}

void pile_put(struct pile *h, int64_t key, void *of, uint32_t *slot)
{
    struct pile_item item = { .key = key, .of = of, .slot = slot };
    if (*slot) {
        settle(h, *slot - 1, item);
        return;
    }
    ARRAY_ROOM(h->items, h->alloc, h->count + 1);
    h->count++;
    rise(h, h->count - 1, item);
}

void pile_take(struct pile *h, uint32_t *slot)
{
    if (!*slot)
        return;
    size_t at = *slot - 1;
    struct pile_item last = h->items[--h->count];
    if (at < h->count)
        settle(h, at, last);
    *slot = 0;
}

void *pile_first(const struct pile *h)
{
    return h->count ? h->items[0].of : NULL;
}

int64_t pile_first_key(const struct pile *h)
{
    return h->count ? h->items[0].key : INT64_MAX;
}

/* What comes after all that is below `at`, on the way from left to right; SIZE_MAX: nothing. */
static size_t after(size_t at)
{
    while (at && at % 2 == 0)
        at = (at - 1) / 2;
    return at ? at + 1 : SIZE_MAX;
}

void *pile_within(const struct pile *h, int64_t most, size_t *i)
{
    for (size_t at = *i; at != SIZE_MAX; at = after(at)) {
        if (at >= h->count || h->items[at].key > most)
            continue;
        *i = 2 * at + 1;
        return h->items[at].of;
    }
    *i = SIZE_MAX;
    return NULL;
}
