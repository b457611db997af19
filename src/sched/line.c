#include <stdlib.h>

#include "base/text.h"
#include "sched/queue.h"

/*
 * A heap of leaves by their best candidates, or by what these could be at best
 * while nobody has looked. What was the best can only become worse while nothing
 * starts (questions close, none opens), so a leaf is looked at only when it
 * comes to the top. Who has nothing left that may be tried is not in the line:
 * each question knows who asks it, by limit, and so who is still to be heard
 * when jobs of a short limit alone may go; then only the shapes that ask are
 * looked at, not all of their leaves.
 */

static double age_of(const struct sched *s, const struct entry *e, int64_t now_us)
{
    int64_t most_us = s->policy.order.age_max_us;
    double waited = (double)(now_us - e->submit_us);
    if (most_us <= 0 || waited <= 0)
        return 0;
    return waited < (double)most_us ? waited / (double)most_us : 1;
}

static double size_of(const struct sched *s, const struct question *q)
{
    double size = (double)q->need.dominant_ppm / PPM / (s->cards ? (double)s->cards : 1);
    return size > 1 ? 1 : size;
}

struct turn turn_of(const struct sched *s, const struct entry *e, int64_t now_us)
{
    const struct sched_order *o = &s->policy.order;
    const struct shape *sh = e->shape;
    struct turn t = { .tier = sh->class->priority,
                      .factor = s->tree[sh->leaf->node].factor,
                      .age = age_of(s, e, now_us),
                      .size = size_of(s, sh->question) };
    t.points = o->share * t.factor + o->age * t.age + o->size * t.size;
    return t;
}

static bool weighs(double weight)
{
    return weight > 0 || weight < 0;
}

static double points_of(const struct sched *s, const struct shape *sh, const struct entry *e,
                        int64_t now_us)
{
    const struct sched_order *o = &s->policy.order;
    double points = o->share * s->tree[sh->leaf->node].factor;
    if (weighs(o->age))
        points += o->age * age_of(s, e, now_us);
    if (weighs(o->size))
        points += o->size * size_of(s, sh->question);
    return points;
}

static struct entry *candidate_of(struct sched *s, const struct inventory *inv, struct shape *sh)
{
    struct entry *e = NULL;
    question_look(s, inv, sh->question);
    switch (question_answer(s, sh->question)) {
    case ANSWER_OPEN:
        e = sh->first;
        break;
    case ANSWER_SHORT:
        if (sh->shortest_us <= sh->question->short_us)
            e = shape_first_within(sh, sh->question->short_us);
        break;
    case ANSWER_NO:
    case ANSWER_NEVER:
        break;
    }
    if (!e || sh->limited == s->cycle)
        return NULL;
    return sh->meter_count && meters_full(sh).meter ? NULL : e;
}

static struct stand stand_of(struct sched *s, const struct inventory *inv, struct shape *sh,
                             int64_t now_us)
{
    struct stand st = { .entry = sh->first ? candidate_of(s, inv, sh) : NULL };
    if (!st.entry)
        return st;
    st.tier = sh->class->priority;
    st.level = sh->leaf->account->inside == SCHED_LAS ? st.entry->level : 0;
    st.order = st.entry == sh->first ? sh->first_order : st.entry->order;
    st.points = points_of(s, sh, st.entry, now_us);
    return st;
}

/* Inside a leaf: tier, attained service, points, place in line. */
static bool before(const struct stand *a, const struct stand *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier;
    if (a->level != b->level)
        return a->level < b->level;
    if (a->points < b->points || a->points > b->points)
        return a->points > b->points;
    return a->order != b->order ? a->order < b->order : a->entry->id < b->entry->id;
}

/* Between leaves, whose service is not compared. */
static bool turn_before(const struct stand *a, const struct stand *b)
{
    if (a->tier != b->tier)
        return a->tier > b->tier;
    if (a->points < b->points || a->points > b->points)
        return a->points > b->points;
    return a->order != b->order ? a->order < b->order : a->entry->id < b->entry->id;
}

static struct stand stand_now(const struct sched *s, struct entry *e, int64_t now_us)
{
    const struct shape *sh = e->shape;
    return (struct stand){ .entry = e,
                           .tier = sh->class->priority,
                           .level = sh->leaf->account->inside == SCHED_LAS ? e->level : 0,
                           .points = points_of(s, sh, e, now_us),
                           .order = e->order };
}

bool line_before(const struct sched *s, struct entry *a, struct entry *b, int64_t now_us)
{
    struct stand x = stand_now(s, a, now_us), y = stand_now(s, b, now_us);
    return a->shape->leaf == b->shape->leaf ? before(&x, &y) : turn_before(&x, &y);
}

/* The best of a leaf now. */
static struct stand first_of_leaf(struct sched *s, const struct inventory *inv,
                                  const struct leaf *l, int64_t now_us)
{
    struct stand best = { .entry = NULL };
    for (struct shape *sh = l->shapes; sh; sh = sh->next) {
        struct stand st = stand_of(s, inv, sh, now_us);
        if (st.entry && (!best.entry || before(&st, &best)))
            best = st;
    }
    return best;
}

static uint32_t top_tier(const struct sched *s)
{
    uint32_t tier = 0;
    for (size_t i = 0; i < s->class_count; i++)
        if (s->classes[i]->priority > tier)
            tier = s->classes[i]->priority;
    return tier;
}

/*
 * The best that a candidate of this leaf could be, without looking at its shapes: most leaves
 * never come to the top, and their shapes are what a cycle would cost.
 */
static struct stand hope(const struct sched *s, const struct leaf *l, uint32_t tier)
{
    const struct sched_order *o = &s->policy.order;
    struct stand st = { .tier = tier };
    st.points = o->share * s->tree[l->node].factor + (o->age > 0 ? o->age : 0) +
                (o->size > 0 ? o->size : 0);
    st.order = l->account->inside == SCHED_LAS ? 0 : l->first->order; /* by service, not order */
    return st;
}

static bool goes_before(const struct place_in_line *a, const struct place_in_line *b)
{
    if (a->best.tier != b->best.tier)
        return a->best.tier > b->best.tier;
    if (a->best.points < b->best.points || a->best.points > b->best.points)
        return a->best.points > b->best.points;
    return a->best.order != b->best.order ? a->best.order < b->best.order
                                          : a->leaf->index < b->leaf->index;
}

static void sink(struct sched *s, size_t at)
{
    struct place_in_line p = s->line[at];
    for (size_t child; (child = 2 * at + 1) < s->line_count; at = child) {
        if (child + 1 < s->line_count && goes_before(&s->line[child + 1], &s->line[child]))
            child++;
        if (!goes_before(&s->line[child], &p))
            break;
        s->line[at] = s->line[child];
    }
    s->line[at] = p;
}

/* Does the top go before all others? */
static bool is_first(const struct sched *s)
{
    for (size_t child = 1; child <= 2 && child < s->line_count; child++)
        if (goes_before(&s->line[child], &s->line[0]))
            return false;
    return true;
}

void line_changed(struct sched *s)
{
    s->line_stale = true;
    s->rank_stale = true;
}

void line_rank(struct sched *s, const struct inventory *inv, struct now now)
{
    if (!s->rank_stale)
        return;
    s->rank_stale = false;
    s->cards = inv->bulk ? inv->bulk->cards : inv->card_count;
    tree_rank(s, now.boot_us);
}

/* ---- the line -------------------------------------------------------------- */

static void begin(struct sched *s)
{
    ARRAY_ROOM(s->line, s->line_alloc, s->leaf_count + 1);
    s->line_count = 0;
    s->line_made++;
    s->line_wide = false;
    s->line_vain = 0;
}

static void add(struct sched *s, struct leaf *l, struct stand best)
{
    l->line = s->line_made;
    l->at = s->line_count;
    s->line[s->line_count++] = (struct place_in_line){ .leaf = l, .best = best };
}

static void add_all(struct sched *s)
{
    uint32_t tier = top_tier(s);
    for (size_t i = 0; i < s->leaf_count; i++)
        if (s->leaves[i]->first)
            add(s, s->leaves[i], hope(s, s->leaves[i], tier));
}

/* Its leaf stands there by the best of its shapes. */
static void add_shape(struct sched *s, const struct inventory *inv, struct shape *sh,
                      struct now now)
{
    struct leaf *l = sh->leaf;
    line_rank(s, inv, now);
    struct stand st = stand_of(s, inv, sh, now.boot_us);
    if (!st.entry)
        return;
    if (l->line != s->line_made)
        add(s, l, st);
    else if (before(&st, &s->line[l->at].best))
        s->line[l->at].best = st;
}

/* Those with a job that may be tried still; `from`: that stand in that line; 0: any. */
static void add_askers(struct sched *s, const struct inventory *inv, uint64_t from, struct now now)
{
    for (struct question *q = s->questions; q; q = q->next) {
        enum answer answer = question_answer(s, q);
        int64_t most = answer == ANSWER_OPEN ? INT64_MAX : q->short_us;
        if (answer > ANSWER_SHORT)
            continue;
        struct shape *sh;
        for (size_t i = 0; (sh = pile_within(&q->waiting, most, &i));)
            if (!from || sh->leaf->line == from || sh->leaf->line == s->line_made)
                add_shape(s, inv, sh, now);
    }
}

/* Would add_askers cost more than to go through so many leaves? */
static bool many_ask(const struct sched *s, size_t leaves)
{
    size_t n = 0;
    for (struct question *q = s->questions; q && n <= leaves; q = q->next)
        n += question_answer(s, q) == ANSWER_OPEN ? q->waiting.count : 0;
    return n > leaves;
}

static void sort(struct sched *s)
{
    for (size_t i = s->line_count / 2; i-- > 0;)
        sink(s, i);
}

/*
 * When most questions are answered, it holds a few or nobody, and who is nobody needs no rank;
 * but usage is settled in every cycle.
 */
static void make(struct sched *s, const struct inventory *inv, struct now now)
{
    bool all = many_ask(s, s->leaf_count);
    begin(s);
    s->line_stale = false;
    if (all || s->line_cycle != s->cycle)
        line_rank(s, inv, now);
    s->line_cycle = s->cycle;
    if (all)
        add_all(s);
    else
        add_askers(s, inv, 0, now);
    sort(s);
}

/* Leaves out who has nothing left to try. */
static void narrow(struct sched *s, const struct inventory *inv, struct now now)
{
    uint64_t from = s->line_made;
    if (many_ask(s, s->line_count)) {
        s->line_wide = false;
        return;
    }
    begin(s);
    add_askers(s, inv, from, now);
    sort(s);
}

static void leave(struct sched *s)
{
    s->line[0].leaf->line = 0;
    s->line[0] = s->line[--s->line_count];
}

/* Looking in vain costs what the answers that came are worth: so often, it is time to sift. */
static void looked_in_vain(struct sched *s, const struct inventory *inv, struct now now)
{
    s->line_vain++;
    if (s->line_wide && s->line_vain >= s->question_count + s->line_count / 8)
        narrow(s, inv, now);
    else if (s->line_count)
        sink(s, 0);
}

struct entry *line_next(struct sched *s, const struct inventory *inv, struct now now)
{
    if (s->line_stale)
        make(s, inv, now);
    while (s->line_count) {
        struct leaf *l = s->line[0].leaf;
        struct stand best = first_of_leaf(s, inv, l, now.boot_us);
        if (best.entry)
            s->line[0].best = best;
        else
            leave(s);
        if (best.entry && is_first(s))
            return best.entry;
        looked_in_vain(s, inv, now);
    }
    return NULL;
}

static struct stand stand_at(const struct sched *s, struct entry *e, int64_t now_us)
{
    return (struct stand){ .entry = e,
                           .tier = e->shape->class->priority,
                           .level = e->level,
                           .points = points_of(s, e->shape, e, now_us),
                           .order = e->order };
}

static bool is_stopped(struct sched *s, const struct inventory *inv, const struct shape *sh)
{
    if (sh->limited == s->cycle)
        return true;
    question_look(s, inv, sh->question);
    return sh->meter_count && meters_full(sh).meter;
}

/* Those that are booked are among the first, most likely. */
static struct entry *first_unbooked(struct sched *s, const struct inventory *inv, struct shape *sh)
{
    struct question *q = sh->question;
    if (!sh->first || q->undated == s->cycle || question_answer(s, q) == ANSWER_NEVER ||
        is_stopped(s, inv, sh) || (sh->booked && !meters_allow(sh, sh->booked + 1)))
        return NULL;
    if (!sh->booked && sh->first != s->reservation.entry)
        return sh->first;
    for (uint32_t i = 0; i <= sh->booked + 1; i++) {
        struct entry *e = tree_at(sh->root, i);
        if (e && booking_of(s, e) == SIZE_MAX && e != s->reservation.entry)
            return e;
    }
    return NULL;
}

static struct stand unbooked_of_leaf(struct sched *s, const struct inventory *inv,
                                     const struct leaf *l, int64_t now_us)
{
    struct stand best = { .entry = NULL };
    for (struct shape *sh = l->shapes; sh; sh = sh->next) {
        struct entry *e = first_unbooked(s, inv, sh);
        struct stand st = e ? stand_at(s, e, now_us) : best;
        if (e && (!best.entry || before(&st, &best)))
            best = st;
    }
    return best;
}

struct entry *line_first_unbooked(struct sched *s, const struct inventory *inv, struct now now)
{
    struct stand first = { .entry = NULL };
    line_rank(s, inv, now);
    for (size_t i = 0; i < s->leaf_count; i++) {
        if (!s->leaves[i]->first)
            continue;
        struct stand st = unbooked_of_leaf(s, inv, s->leaves[i], now.boot_us);
        if (st.entry && (!first.entry || turn_before(&st, &first)))
            first = st;
    }
    return first.entry;
}

/* Whatever was answered: who has no longer limit than one that fits, fits. */
static struct stand within_shape(struct sched *s, const struct inventory *inv, struct shape *sh,
                                 int64_t limit_us, int64_t now_us)
{
    if (!sh->root || sh->shortest_us > limit_us || is_stopped(s, inv, sh))
        return (struct stand){ .entry = NULL };
    return stand_at(s, shape_first_within(sh, limit_us), now_us);
}

static struct stand within_leaf(struct sched *s, const struct inventory *inv, const struct leaf *l,
                                const struct question *q, int64_t limit_us, int64_t now_us)
{
    struct stand best = { .entry = NULL };
    for (struct shape *sh = l->shapes; sh; sh = sh->next) {
        if (sh->question != q)
            continue;
        struct stand st = within_shape(s, inv, sh, limit_us, now_us);
        if (st.entry && (!best.entry || before(&st, &best)))
            best = st;
    }
    return best;
}

struct entry *line_first_of(struct sched *s, const struct inventory *inv, const struct question *q,
                            int64_t limit_us, struct now now)
{
    struct stand first = { .entry = NULL };
    struct shape *sh;
    line_rank(s, inv, now);
    for (size_t i = 0; (sh = pile_within(&q->waiting, limit_us, &i));) {
        bool layered = sh->leaf->account->inside == SCHED_LAS;
        struct stand st = layered ? within_leaf(s, inv, sh->leaf, q, limit_us, now.boot_us)
                                  : within_shape(s, inv, sh, limit_us, now.boot_us);
        if (st.entry && (!first.entry || turn_before(&st, &first)))
            first = st;
    }
    return first.entry;
}
