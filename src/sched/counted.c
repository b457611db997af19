#include <stdlib.h>

#include "base/text.h"
#include "sched/queue.h"

/*
 * Backfill on cards that are only counted. In every cycle the first jobs that
 * cannot start are planned anew, in the order of the line, each at the first
 * moment at which it fits between those before it; the others fill what is
 * left, as far as their limits let them.
 */

static int64_t later(int64_t at_us, int64_t by_us)
{
    return by_us < INT64_MAX - at_us ? at_us + by_us : INT64_MAX;
}

/* How many are free then, if all end at their limits and start as planned. */
static int64_t free_at(const struct sched *s, const struct bulk *b, int64_t at_us)
{
    int64_t n = bulk_free_at(b, at_us);
    for (size_t i = 0; i < s->planned_count; i++)
        if (s->planned[i].from_us <= at_us && at_us < s->planned[i].until_us)
            n -= s->planned[i].cards;
    return n;
}

/* The first start after `from_us` that is planned and would suffer; INT64_MAX: none. */
static int64_t next_conflict_us(const struct sched *s, const struct bulk *b, uint32_t cards,
                                int64_t from_us)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < s->planned_count; i++) {
        int64_t at = s->planned[i].from_us;
        if (at > from_us && at < first && free_at(s, b, at) < cards)
            first = at;
    }
    return first;
}

int64_t counted_most_us(const struct sched *s, const struct bulk *b, uint32_t cards, int64_t now_us)
{
    if (free_at(s, b, now_us) < cards)
        return 0;
    int64_t at = next_conflict_us(s, b, cards, now_us);
    return at == INT64_MAX ? INT64_MAX : at - now_us;
}

/* Does it fit at that moment, for as long as it may take? */
static bool fits_at(struct sched *s, const struct bulk *b, const struct planned *p, int64_t at_us)
{
    int64_t limit_us = p->until_us - p->from_us;
    return free_at(s, b, at_us) >= p->cards &&
           next_conflict_us(s, b, p->cards, at_us) >= later(at_us, limit_us) &&
           node_fits_from(s, &p->need, NODE_VIEW_ALL, at_us, limit_us);
}

/* The first moment at which somebody ends who has of the machine what it needs. */
static int64_t soonest_room_us(struct sched *s, const struct bulk *b, const struct planned *p,
                               int64_t now_us)
{
    size_t n = node_moment_count(s, &p->need);
    auto_free int64_t *ends = mem_new((n + 1) * sizeof *ends);
    n = node_moments(s, n, ends);
    for (size_t i = 0; i < n; i++)
        if (ends[i] > now_us && fits_at(s, b, p, ends[i]))
            return ends[i];
    return INT64_MAX;
}

static int64_t soonest_us(struct sched *s, const struct bulk *b, const struct planned *p,
                          int64_t now_us)
{
    int64_t soonest = soonest_room_us(s, b, p, now_us);
    for (size_t i = 0; i < s->planned_count; i++) {
        int64_t at = s->planned[i].until_us;
        if (at > now_us && at < soonest && fits_at(s, b, p, at))
            soonest = at;
    }
    for (size_t i = 0; i < b->count; i++) {
        int64_t at = b->holds[i].until_boot_us > now_us ? b->holds[i].until_boot_us : now_us;
        if (at >= soonest)
            break;
        if (fits_at(s, b, p, at))
            return at;
    }
    return soonest;
}

void counted_plan(struct sched *s, const struct bulk *b, const struct entry *e, int64_t now_us)
{
    const struct question *q = e->shape->question;
    struct planned p = { .cards = q->request.count, .need = node_least(s, q) };
    if (s->planned_count >= s->policy.reservations)
        return;
    p.until_us = e->limit_us;
    int64_t at = soonest_us(s, b, &p, now_us);
    if (at == INT64_MAX) /* who holds them has no limit: nothing can be planned */
        return;
    ARRAY_ROOM(s->planned, s->planned_alloc, s->planned_count + 1);
    p.from_us = at;
    p.until_us = later(at, e->limit_us);
    s->planned[s->planned_count++] = p;
    node_add(&s->node.booked, &p.need);
}

void counted_forget(struct sched *s)
{
    while (s->planned_count > 0)
        node_sub(&s->node.booked, &s->planned[--s->planned_count].need);
}

void counted_claim(struct sched *s, const struct entry *e, int64_t now_us)
{
    uint64_t leaving = 0, cards = e->shape->question->request.count;
    for (size_t i = 0; i < s->leaf_count; i++)
        leaving += s->leaves[i]->leaving_ppm / PPM;
    if (s->claim_planned == s->cycle || leaving >= cards)
        return;
    s->claim_planned = s->cycle;
    ARRAY_ROOM(s->planned, s->planned_alloc, s->planned_count + 1);
    s->planned[s->planned_count++] = (struct planned){ .from_us = now_us,
                                                       .until_us = INT64_MAX,
                                                       .cards = (uint32_t)(cards - leaving) };
}
