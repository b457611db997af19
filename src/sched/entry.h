/*
 * entry.h - inside sched/: one job, in as few bytes as will do, and the tree
 * that keeps a shape's pending jobs in line.
 *
 * The tree is a treap: ordered by level, then by place in line, balanced by a
 * hash of the id, so that its form depends on nothing but its content. Every node knows
 * the shortest limit below it; "the first in line with a limit of at most X"
 * is one walk down.
 */
#ifndef DIVVY_SCHED_ENTRY_H
#define DIVVY_SCHED_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/job.h"
#include "sched/node.h"

enum entry_state { ENTRY_PENDING = 0, ENTRY_HELD, ENTRY_RUNNING };

/* What only a running job needs. */
struct run {
    struct place place; /* what it holds; empty: nothing */
    uint64_t share_ppm; /* of a card, as its account pays it */
    uint64_t held_ppm;  /* dominant share of what it holds: its service */
    int64_t since_us;
    struct node_need need; /* of the machine */
    bool leaving;          /* told to go for another */
};

struct entry {
    uint64_t id;
    uint64_t order;
    int64_t limit_us; /* INT64_MAX: without end */
    struct shape *shape;
    struct entry *next;         /* same bucket of the table; or next free one */
    struct entry *left, *right; /* pending: the tree; running: before and after in the list */
    union {
        int64_t shortest_us;   /* pending: the least limit at and below this node */
        int64_t held_until_us; /* held */
        struct run *run;       /* running: owned */
    };
    int64_t submit_us;       /* its age counts from then */
    double attained_card_us; /* service of the attempts that are over */
    union {
        uint32_t size; /* pending: nodes at and below this one */
        uint32_t slot; /* held: its place among them */
    };
    uint16_t level; /* thresholds of attained service it has passed; 0 where it does not matter */
    uint16_t state; /* enum entry_state */
};

/* The root after it; `e` is not in any tree before, or no more. */
struct entry *tree_insert(struct entry *root, struct entry *e);
struct entry *tree_remove(struct entry *root, struct entry *e);

struct entry *tree_first(struct entry *root); /* NULL: empty */
/*
 * The first in line with a limit of at most this; NULL: there is none. It is
 * the answer for every limit from its own up to (without) `ret_until_us`.
 */
struct entry *tree_first_within(struct entry *root, int64_t limit_us, int64_t *ret_until_us);
/* The one before which so many stand; NULL: there are no more. */
struct entry *tree_at(struct entry *root, uint32_t before);
/* How many stand before this place in line. */
uint32_t tree_before(const struct entry *root, const struct entry *e);
static inline uint32_t tree_size(const struct entry *root)
{
    return root ? root->size : 0;
}

bool entry_before(const struct entry *a, const struct entry *b);
/* When a running one must have ended, by its limit; INT64_MAX: it has none. */
int64_t entry_ends_us(const struct entry *e);

/* All entries by id, and their memory. */
struct entries {
    struct entry **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t count;
    struct entry *free;
    struct entry **blocks;
    size_t block_count, block_alloc;
};

void entries_done(struct entries *t);
struct entry *entries_get(const struct entries *t, uint64_t id);
struct entry *entries_add(struct entries *t, uint64_t id); /* zeroed but for the id */
void entries_drop(struct entries *t, struct entry *e);
size_t entries_bytes(const struct entries *t);

#endif
