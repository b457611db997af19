#include <stdlib.h>

#include "base/text.h"
#include "sched/queue.h"

/*
 * A heap of leaves by their best candidates, or by what these could be at best
 * while nobody has looked. What was the best can only become worse while nothing
 * starts (questions close, none opens), so a leaf is looked at only when it
 * comes to the top.
 */

struct turn turn_of(const struct sched *s, const struct entry *e, int64_t now_us)
{
    const struct sched_order *o = &s->policy.order;
    const struct shape *sh = e->shape;
    double cards = s->cards ? (double)s->cards : 1;
    double waited = (double)(now_us - e->submit_us);
    struct turn t = { .tier = sh->class->priority, .factor = s->tree[sh->leaf->node].factor };
    if (o->age_max_us > 0 && waited > 0)
        t.age = waited < (double)o->age_max_us ? waited / (double)o->age_max_us : 1;
    t.size = (double)sh->question->need.dominant_ppm / PPM / cards;
    if (t.size > 1)
        t.size = 1;
    t.points = o->share * t.factor + o->age * t.age + o->size * t.size;
    return t;
}

static struct entry *candidate_of(struct sched *s, const struct inventory *inv, struct shape *sh)
{
    struct entry *e = NULL;
    switch (question_answer(s, sh->question)) {
    case ANSWER_OPEN:
        e = sh->first;
        break;
    case ANSWER_SHORT:
        if (sh->shortest_us <= sh->question->short_us)
            e = tree_first_within(sh->root, sh->question->short_us);
        break;
    case ANSWER_NO:
    case ANSWER_NEVER:
        break;
    }
    if (!e || sh->limited == s->cycle)
        return NULL;
    question_look(s, inv, sh->question);
    return sh->meter_count && meters_full(sh).meter ? NULL : e;
}

/* Inside a leaf: tier, attained service, points, place in line. */
static bool before(const struct entry *a, const struct turn *ta, const struct entry *b,
                   const struct turn *tb)
{
    if (ta->tier != tb->tier)
        return ta->tier > tb->tier;
    if (a->level != b->level)
        return a->level < b->level;
    if (ta->points < tb->points || ta->points > tb->points)
        return ta->points > tb->points;
    return entry_before(a, b);
}

/* Between leaves, whose service is not compared. */
static bool turn_before(const struct entry *a, const struct turn *ta, const struct entry *b,
                        const struct turn *tb)
{
    if (ta->tier != tb->tier)
        return ta->tier > tb->tier;
    if (ta->points < tb->points || ta->points > tb->points)
        return ta->points > tb->points;
    return a->order != b->order ? a->order < b->order : a->id < b->id;
}

/* Its best candidate now; notes what the heap goes by. */
static struct entry *look(struct sched *s, const struct inventory *inv, struct leaf *l,
                          int64_t now_us)
{
    struct entry *best = NULL;
    struct turn turn = { .tier = 0 };
    for (struct shape *sh = l->shapes; sh; sh = sh->next) {
        struct entry *e = sh->first ? candidate_of(s, inv, sh) : NULL;
        if (!e)
            continue;
        struct turn t = turn_of(s, e, now_us);
        if (!best || before(e, &t, best, &turn)) {
            best = e;
            turn = t;
        }
    }
    if (best) {
        l->tier = turn.tier;
        l->points = turn.points;
        l->order = best->order;
    }
    return best;
}

/*
 * The best that a candidate of this leaf could be, without looking at its shapes: most leaves
 * never come to the top, and their shapes are what a cycle would cost.
 */
static void hope(const struct sched *s, struct leaf *l)
{
    const struct sched_order *o = &s->policy.order;
    l->tier = 0;
    for (size_t i = 0; i < s->class_count; i++)
        if (s->classes[i]->priority > l->tier)
            l->tier = s->classes[i]->priority;
    l->points = o->share * s->tree[l->node].factor + (o->age > 0 ? o->age : 0) +
                (o->size > 0 ? o->size : 0);
    l->order = l->account->inside == SCHED_LAS ? 0 : l->first->order; /* by service, not order */
}

static bool goes_before(const struct leaf *a, const struct leaf *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier;
    if (a->points < b->points || a->points > b->points)
        return a->points > b->points;
    return a->order != b->order ? a->order < b->order : a->index < b->index;
}

static void sink(struct sched *s, size_t at)
{
    for (;;) {
        size_t first = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < s->line_count; child++)
            if (goes_before(s->line[child], s->line[first]))
                first = child;
        if (first == at)
            return;
        struct leaf *l = s->line[at];
        s->line[at] = s->line[first];
        s->line[first] = l;
        at = first;
    }
}

static void make(struct sched *s, const struct inventory *inv, int64_t now_us)
{
    s->line_stale = false;
    s->cards = inv->bulk ? inv->bulk->cards : inv->card_count;
    tree_rank(s, now_us);
    ARRAY_ROOM(s->line, s->line_alloc, s->leaf_count + 1);
    s->line_count = 0;
    for (size_t i = 0; i < s->leaf_count; i++)
        if (s->leaves[i]->first) {
            hope(s, s->leaves[i]);
            s->line[s->line_count++] = s->leaves[i];
        }
    for (size_t i = s->line_count / 2; i-- > 0;)
        sink(s, i);
}

struct entry *line_next(struct sched *s, const struct inventory *inv, struct now now)
{
    if (s->line_stale)
        make(s, inv, now.boot_us);
    while (s->line_count && s->closed < s->question_count) {
        struct leaf *l = s->line[0];
        struct entry *e = look(s, inv, l, now.boot_us);
        if (!e)
            s->line[0] = s->line[--s->line_count];
        sink(s, 0);
        if (e && s->line_count && s->line[0] == l)
            return e;
    }
    return NULL;
}

struct entry *line_first_of(struct sched *s, const struct inventory *inv, const struct question *q,
                            struct now now)
{
    struct entry *best = NULL;
    struct turn turn = { .tier = 0 };
    if (s->line_stale)
        make(s, inv, now.boot_us);
    for (size_t i = 0; i < s->line_count; i++)
        for (struct shape *sh = s->line[i]->shapes; sh; sh = sh->next) {
            struct entry *e = sh->question == q && sh->first ? candidate_of(s, inv, sh) : NULL;
            if (!e)
                continue;
            struct turn t = turn_of(s, e, now.boot_us);
            bool inside = best && best->shape->leaf == sh->leaf;
            if (!best || (inside ? before(e, &t, best, &turn) : turn_before(e, &t, best, &turn))) {
                best = e;
                turn = t;
            }
        }
    return best;
}
