#include "sched/fairtree.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"

#define MOVES_EACH 4 /* of each of those to sort; then it is quicker to sort from the start */

/* What siblings have together. */
struct sums {
    double shares, usage;
};

struct item {
    double level;
    uint32_t node;
    bool inner;
};

struct walk {
    struct fairtree_node *nodes;
    size_t count;
    uint32_t *begin;    /* of a node's children in `children`; node + 1: their end */
    uint32_t *children; /* all of them, the top's first */
    uint32_t leaves;
    uint32_t met;  /* leaves that have a rank */
    uint32_t rank; /* of the last one */
};

/* Slot 0 is the top's, slot i + 1 node i's. */
static size_t slot(uint32_t parent)
{
    return parent == FAIRTREE_TOP ? 0 : (size_t)parent + 1;
}

static void sum_up(struct fairtree_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert(nodes[i].parent == FAIRTREE_TOP ||
               (nodes[i].parent < i && !nodes[nodes[i].parent].leaf));
        if (!nodes[i].leaf)
            nodes[i].usage = 0;
    }
    for (size_t i = count; i-- > 0;)
        if (nodes[i].parent != FAIRTREE_TOP)
            nodes[nodes[i].parent].usage += nodes[i].usage;
}

/* One product over another rather than a quotient of quotients: what is equal comes out equal. */
static double level_of(const struct fairtree_node *n, const struct sums *all)
{
    if (n->shares <= 0)
        return 0;
    if (n->usage <= 0)
        return INFINITY;
    return n->shares * all->usage / (all->shares * n->usage);
}

static void weigh(struct fairtree_node *nodes, size_t count)
{
    auto_free struct sums *all = mem_new((count + 1) * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[slot(nodes[i].parent)].shares += nodes[i].shares;
        all[slot(nodes[i].parent)].usage += nodes[i].usage;
    }
    for (size_t i = 0; i < count; i++) {
        struct fairtree_node *n = &nodes[i];
        const struct sums *of = &all[slot(n->parent)];
        n->norm_shares = of->shares > 0 ? n->shares / of->shares : 0;
        n->norm_usage = of->usage > 0 ? n->usage / of->usage : 0;
        n->level = level_of(n, of);
    }
}

static void clear_ranks(struct fairtree_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nodes[i].rank = 0;
        nodes[i].factor = 0;
    }
}

/* What a caller left there; no more than there are nodes. */
static uint32_t old_rank(const struct walk *w, size_t i)
{
    return w->nodes[i].rank <= w->count ? w->nodes[i].rank : 0;
}

/* All nodes by the rank that they had, those that had none first: `ret` has room for all. */
static void by_old_rank(const struct walk *w, uint32_t *ret)
{
    auto_free uint32_t *next = mem_new((w->count + 2) * sizeof *next);
    for (size_t i = 0; i < w->count; i++)
        next[old_rank(w, i) + 1]++;
    for (size_t i = 0; i <= w->count; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < w->count; i++)
        ret[next[old_rank(w, i)]++] = (uint32_t)i;
}

/* Siblings stand as they went last time: little changes between two decisions. */
static void list_children(struct walk *w)
{
    auto_free uint32_t *nodes = mem_new((w->count + 1) * sizeof *nodes);
    by_old_rank(w, nodes);
    for (size_t i = 0; i < w->count; i++)
        w->begin[slot(w->nodes[i].parent) + 1]++;
    for (size_t i = 0; i <= w->count; i++)
        w->begin[i + 1] += w->begin[i];
    auto_free uint32_t *next = mem_dup(w->begin, (w->count + 1) * sizeof *next);
    for (size_t i = 0; i < w->count; i++)
        w->children[next[slot(w->nodes[nodes[i]].parent)]++] = nodes[i];
}

static int by_level(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    if (x->level > y->level || x->level < y->level)
        return x->level > y->level ? -1 : 1;
    if (x->inner != y->inner)
        return x->inner ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* In few steps where nearly all are in order; the order is total: any way comes to the same. */
static void sort_items(struct item *items, size_t n)
{
    size_t moves = 0;
    for (size_t i = 1; i < n; i++) {
        struct item item = items[i];
        size_t at = i;
        for (; at && by_level(&item, &items[at - 1]) < 0; at--)
            items[at] = items[at - 1];
        items[at] = item;
        moves += i - at;
        if (moves > MOVES_EACH * n) {
            qsort(items, n, sizeof *items, by_level);
            return;
        }
    }
}

static size_t add_children(const struct walk *w, uint32_t parent, struct item *items, size_t n)
{
    size_t at = slot(parent);
    for (uint32_t k = w->begin[at]; k < w->begin[at + 1]; k++) {
        const struct fairtree_node *c = &w->nodes[w->children[k]];
        items[n++] = (struct item){ .level = c->level, .node = w->children[k], .inner = !c->leaf };
    }
    return n;
}

static void rank_leaf(struct walk *w, struct fairtree_node *n, bool tied)
{
    w->met++;
    if (!tied)
        w->rank = w->met;
    n->rank = w->rank;
    n->factor = (double)(w->leaves - w->rank + 1) / w->leaves;
}

/* Siblings of one level, or of several that came out equal; ends them. */
static void rank_items(struct walk *w, struct item *items, size_t n, bool tied);

/* Inner nodes from `at` on that are equal: their children, as if they were siblings. */
static size_t rank_inner(struct walk *w, const struct item *items, size_t at, size_t n, bool tied)
{
    size_t end = at, below = 0;
    for (; end < n && items[end].level == items[at].level; end++)
        below += w->begin[slot(items[end].node) + 1] - w->begin[slot(items[end].node)];
    auto_free struct item *children = mem_new((below + 1) * sizeof *children);
    size_t count = 0;
    for (size_t i = at; i < end; i++)
        count = add_children(w, items[i].node, children, count);
    rank_items(w, children, count, tied);
    return end;
}

static void rank_items(struct walk *w, struct item *items, size_t n, bool tied)
{
    sort_items(items, n);
    for (size_t i = 0; i < n;) {
        bool equal = i ? items[i].level == items[i - 1].level : tied;
        if (items[i].inner)
            i = rank_inner(w, items, i, n, equal);
        else
            rank_leaf(w, &w->nodes[items[i++].node], equal);
    }
}

static void rank_parents(struct fairtree_node *nodes, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        struct fairtree_node *up = nodes[i].parent == FAIRTREE_TOP ? NULL : &nodes[nodes[i].parent];
        if (up && nodes[i].rank && (!up->rank || nodes[i].rank < up->rank))
            up->rank = nodes[i].rank;
    }
}

void fairtree_rank(struct fairtree_node *nodes, size_t count)
{
    auto_free uint32_t *begin = mem_new((count + 2) * sizeof *begin);
    auto_free uint32_t *children = mem_new((count + 1) * sizeof *children);
    auto_free struct item *top = mem_new((count + 1) * sizeof *top);
    struct walk w = { .nodes = nodes, .count = count, .begin = begin, .children = children };
    sum_up(nodes, count);
    weigh(nodes, count);
    list_children(&w);
    clear_ranks(nodes, count);
    for (size_t i = 0; i < count; i++)
        w.leaves += nodes[i].leaf;
    rank_items(&w, top, add_children(&w, FAIRTREE_TOP, top, 0), false);
    rank_parents(nodes, count);
}
