#include "replay/heap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/text.h"

void heap_done(struct heap *h)
{
    free(h->items);
    *h = (struct heap){ .items = NULL };
}

static bool before(const struct moment *a, const struct moment *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->job < b->job;
}

void heap_put(struct heap *h, struct moment m)
{
    ARRAY_ROOM(h->items, h->alloc, h->count + 1);
    size_t at = h->count++;
    for (; at > 0 && before(&m, &h->items[(at - 1) / 2]); at = (at - 1) / 2)
        h->items[at] = h->items[(at - 1) / 2];
    h->items[at] = m;
}

struct moment heap_take(struct heap *h)
{
    assert(h->count);
    struct moment first = h->items[0], last = h->items[--h->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && before(&h->items[child + 1], &h->items[child]))
            child++;
        if (!before(&h->items[child], &last))
            break;
        h->items[at] = h->items[child];
    }
    h->items[at] = last;
    return first;
}
