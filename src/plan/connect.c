#include "plan/connect.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Better is smaller, field by field. */
struct score {
    uint32_t links_missing; /* LINKS_MOST less the NVLinks, summed over pairs */
    uint32_t path;
    uint32_t far; /* pairs on different NUMA nodes */
    uint32_t cost;
    uint32_t torn_links; /* NVLinks of the chosen ones to all in the list */
    uint32_t torn_near;  /* the nearer those are by PCIe, the more */
};

#define LINKS_MOST 64u

struct choosing {
    const struct card *const *cards;
    const uint32_t *costs;
    size_t n, want;
    uint32_t links[CONNECT_MAX], near[CONNECT_MAX]; /* of each card to all others */
    size_t chosen[CONNECT_MAX];
    bool any;
    struct score best;
    size_t best_chosen[CONNECT_MAX];
};

static int32_t node_of(const struct card *c)
{
    return c->known & KNOW_NUMA ? c->numa_node : -1;
}

static uint32_t links_of(const struct card_peer *p)
{
    uint32_t links = p ? p->nvlinks : 0;
    return links < LINKS_MOST ? links : LINKS_MOST;
}

static uint32_t path_of(const struct card_peer *p)
{
    return p && p->path < CARD_PATH_FARTHEST ? p->path : CARD_PATH_FARTHEST;
}

/* Of sets as good inside, the one with the fewest links to all others has the fewest to the rest. */
static void sum_links(struct choosing *c)
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->n; k++) {
            const struct card_peer *p = k == i ? NULL : card_peer(c->cards[i], c->cards[k]->bus_id);
            c->links[i] += links_of(p);
            c->near[i] += CARD_PATH_FARTHEST - path_of(p);
        }
}

/* Adds what card `i` costs beside the first `count` chosen ones. */
static void add_card(const struct choosing *c, size_t i, size_t count, struct score *s)
{
    s->cost += c->costs[i];
    s->torn_links += c->links[i];
    s->torn_near += c->near[i];
    for (size_t k = 0; k < count; k++) {
        const struct card *other = c->cards[c->chosen[k]];
        const struct card_peer *p = card_peer(c->cards[i], other->bus_id);
        s->links_missing += LINKS_MOST - links_of(p);
        s->path += path_of(p);
        s->far += node_of(c->cards[i]) != node_of(other);
    }
}

static bool better(const struct score *a, const struct score *b)
{
    if (a->links_missing != b->links_missing)
        return a->links_missing < b->links_missing;
    if (a->path != b->path)
        return a->path < b->path;
    if (a->far != b->far)
        return a->far < b->far;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    if (a->torn_links != b->torn_links)
        return a->torn_links < b->torn_links;
    return a->torn_near < b->torn_near;
}

static void offer(struct choosing *c, const struct score *s)
{
    if (c->any && !better(s, &c->best))
        return;
    c->any = true;
    c->best = *s;
    memcpy(c->best_chosen, c->chosen, sizeof c->best_chosen);
}

/* All sets that go on from the first `count`; scores only grow, so a worse one is dropped early. */
static void try_all(struct choosing *c, size_t from, size_t count, struct score so_far)
{
    if (count == c->want) {
        offer(c, &so_far);
        return;
    }
    for (size_t i = from; i + (c->want - count) <= c->n; i++) {
        struct score s = so_far;
        add_card(c, i, count, &s);
        if (c->any && !better(&s, &c->best))
            continue;
        c->chosen[count] = i;
        try_all(c, i + 1, count + 1, s);
    }
}

static bool has(const struct choosing *c, size_t i, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (c->chosen[k] == i)
            return true;
    return false;
}

static void grow_from(struct choosing *c, size_t first)
{
    struct score so_far = { .cost = 0 };
    add_card(c, first, 0, &so_far);
    c->chosen[0] = first;
    for (size_t count = 1; count < c->want; count++) {
        struct score next = so_far;
        size_t pick = c->n;
        for (size_t i = 0; i < c->n; i++) {
            struct score s = so_far;
            if (has(c, i, count))
                continue;
            add_card(c, i, count, &s);
            if (pick == c->n || better(&s, &next)) {
                pick = i;
                next = s;
            }
        }
        c->chosen[count] = pick;
        so_far = next;
    }
    offer(c, &so_far);
}

static int by_position(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

void connect_choose(const struct card *const *cards, const uint32_t *costs, size_t n, size_t want,
                    size_t *ret_chosen)
{
    auto_free struct choosing *c = mem_new(sizeof *c);
    c->cards = cards;
    c->costs = costs;
    c->n = n < CONNECT_MAX ? n : CONNECT_MAX;
    c->want = want;
    sum_links(c);
    if (c->n <= CONNECT_EXACT)
        try_all(c, 0, 0, (struct score){ .cost = 0 });
    else
        for (size_t i = 0; i < c->n; i++)
            grow_from(c, i);
    memcpy(ret_chosen, c->best_chosen, want * sizeof *ret_chosen);
    qsort(ret_chosen, want, sizeof *ret_chosen, by_position);
}
