/*
 * maximal.h - every maximal layout of a board, to none of which a slice could be added, for tests.
 */
#ifndef DIVVY_TESTS_MAXIMAL_H
#define DIVVY_TESTS_MAXIMAL_H

#include "base/text.h"
#include "plan/occupancy.h"

struct maximal {
    const struct board *board;
    const struct profile *profiles[BOARD_UNITS_MAX];
    uint32_t starts[BOARD_UNITS_MAX]; /* ascending */
    size_t count;                     /* of slices */
    size_t found;                     /* layouts before this one */
    void (*fn)(const struct maximal *m, void *arg);
    void *arg;
};

/* "1g.10gb@6 2g.20gb@4", with `between` for the space. Caller frees. */
static inline char *maximal_text(const struct maximal *m, const char *between)
{
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < m->count; i++)
        text_addf(&t, "%s%s@%u", i ? between : "", m->profiles[i]->name, m->starts[i]);
    return text_take(&t);
}

static inline void maximal_walk(struct maximal *m, const struct occupancy *o, uint32_t from)
{
    const struct board *b = m->board;
    if (!occupancy_room(o, b)) {
        m->fn(m, m->arg);
        m->found++;
        return;
    }
    for (uint32_t at = from; at < b->units; at++)
        for (uint32_t i = 0; i < b->profile_count; i++) {
            if (!occupancy_fits(o, b, &b->profiles[i], at))
                continue;
            struct occupancy with = *o;
            occupancy_add(&with, b, &b->profiles[i], at);
            m->profiles[m->count] = &b->profiles[i];
            m->starts[m->count++] = at;
            maximal_walk(m, &with, at + 1);
            m->count--;
        }
}

/* Calls fn for each, by first unit; how many there are. */
static inline size_t maximal_each(const struct board *b,
                                  void (*fn)(const struct maximal *m, void *arg), void *arg)
{
    struct maximal m = { .board = b, .fn = fn, .arg = arg };
    struct occupancy nothing = { 0 };
    maximal_walk(&m, &nothing, 0);
    return m.found;
}

#endif
