#include "model/bulk.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void bulk_done(struct bulk *b)
{
    free(b->holds);
    memset(b, 0, sizeof *b);
}

void bulk_copy(const struct bulk *b, struct bulk *ret)
{
    struct bulk copy = *b;
    copy.holds = NULL;
    copy.alloc = 0;
    ARRAY_ROOM(copy.holds, copy.alloc, b->count + 1);
    if (b->count)
        memcpy(copy.holds, b->holds, b->count * sizeof *b->holds);
    *ret = copy;
}

/* The first that ends later than this. */
static size_t place_of(const struct bulk *b, int64_t until_us)
{
    size_t low = 0, high = b->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->holds[mid].until_boot_us <= until_us)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool bulk_hold(struct bulk *b, const struct bulk_hold *h)
{
    if (h->cards > b->free)
        return false;
    size_t at = place_of(b, h->until_boot_us);
    ARRAY_ROOM(b->holds, b->alloc, b->count + 1);
    memmove(&b->holds[at + 1], &b->holds[at], (b->count - at) * sizeof *b->holds);
    b->holds[at] = *h;
    b->count++;
    b->free -= h->cards;
    return true;
}

bool bulk_end(struct bulk *b, uint64_t job_id)
{
    for (size_t i = 0; i < b->count; i++) {
        if (b->holds[i].job_id != job_id)
            continue;
        b->free += b->holds[i].cards;
        memmove(&b->holds[i], &b->holds[i + 1], (--b->count - i) * sizeof *b->holds);
        return true;
    }
    return false;
}

uint32_t bulk_free_at(const struct bulk *b, int64_t boot_us)
{
    uint32_t n = b->free;
    for (size_t i = 0; i < b->count && b->holds[i].until_boot_us <= boot_us; i++)
        n += b->holds[i].cards;
    return n;
}

int64_t bulk_soonest_us(const struct bulk *b, uint32_t cards, int64_t now_us)
{
    uint32_t n = b->free;
    size_t i = 0;
    for (; n < cards && i < b->count && b->holds[i].until_boot_us < INT64_MAX; i++)
        n += b->holds[i].cards;
    if (n < cards)
        return INT64_MAX;
    int64_t at = i ? b->holds[i - 1].until_boot_us : now_us;
    return at > now_us ? at : now_us;
}
