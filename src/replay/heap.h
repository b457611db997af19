/*
 * heap.h - inside replay/: what happens next on the virtual clock.
 *
 * A binary heap of moments; of equal ones the lower job comes first, so that
 * the order depends on nothing else.
 */
#ifndef DIVVY_REPLAY_HEAP_H
#define DIVVY_REPLAY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct moment {
    int64_t at_us;
    size_t job;
    uint64_t attempt; /* of the job; an older one's moment means nothing any more */
};

struct heap {
    struct moment *items;
    size_t count, alloc;
};

void heap_done(struct heap *h);
void heap_put(struct heap *h, struct moment m);
/* The first; the heap must not be empty. */
struct moment heap_take(struct heap *h);

#endif
