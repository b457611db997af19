#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plan/carry.h"
#include "sched/queue.h"

/*
 * A job may go for another for three reasons: its class says so; both are of
 * one leaf that goes by attained service, and it had more; or its leaf has so
 * much that it keeps no less of its due, without it, than the other's leaf
 * then has. The last cannot go round: each time the larger share shrinks, and
 * the smaller does not overtake it. Nor can all three together: only a class
 * pushes out one that stands below it (same_tier).
 */

void sched_preemption_done(struct sched_preemption *p)
{
    free(p->victims);
    memset(p, 0, sizeof *p);
}

/* ---- attained service of those that run ------------------------------------ */

static bool by_service(const struct entry *e)
{
    return e->shape->leaf->account->inside == SCHED_LAS;
}

static uint16_t level_now(const struct sched *s, const struct entry *e, int64_t now_us)
{
    uint16_t level = 0;
    if (!by_service(e))
        return 0;
    double had = e->attained_card_us;
    if (now_us > e->run->since_us)
        had += (double)(now_us - e->run->since_us) * (double)e->run->held_ppm / PPM;
    while (level < s->policy.las_count && had >= (double)s->policy.las_us[level])
        level++;
    return level;
}

/* When it passes its next threshold; INT64_MAX: never. */
static int64_t crossing_us(const struct sched *s, const struct entry *e)
{
    if (!by_service(e) || e->level >= s->policy.las_count || !e->run->held_ppm)
        return INT64_MAX;
    double left = ((double)s->policy.las_us[e->level] - e->attained_card_us) * PPM;
    return e->run->since_us + (int64_t)(left / (double)e->run->held_ppm) + 1;
}

static void note_crossing(struct sched *s, const struct entry *e)
{
    int64_t at = crossing_us(s, e);
    if (at < s->crossing_us)
        s->crossing_us = at;
}

void preempt_started(struct sched *s, struct entry *e)
{
    s->stock_taken = false;
    note_crossing(s, e);
}

void preempt_ended(struct sched *s, struct entry *e)
{
    struct leaf *l = e->shape->leaf;
    s->stock_taken = false;
    l->held_ppm -= e->run->held_ppm;
    if (e->run->leaving)
        l->leaving_ppm -= e->run->held_ppm;
}

void preempt_settle(struct sched *s, int64_t now_us)
{
    if (now_us < s->crossing_us)
        return;
    s->crossing_us = INT64_MAX;
    s->stock_taken = false;
    for (struct entry *e = s->runs; e; e = e->right) {
        e->level = level_now(s, e, now_us);
        note_crossing(s, e);
    }
}

/* ---- who may go for whom --------------------------------------------------- */

/* What a leaf holds of its due, where that is a part of all cards. */
static double part_of(const struct leaf *l, double ppm)
{
    return l->due > 0 ? ppm / l->due : ppm > 0 ? INFINITY : 0;
}

static double due_of(const struct sched *s, const struct leaf *l)
{
    double due = s->tree[l->node].norm_shares;
    for (const struct account *a = l->account; a; a = a->parent)
        if (a->node != l->node)
            due *= s->tree[a->node].norm_shares;
    return due;
}

/* What those hold who are told to go is not the leaf's own any more. */
static double keeps_ppm(const struct leaf *l)
{
    return (double)(l->held_ppm - l->leaving_ppm);
}

static bool evens_out(const struct entry *e, double need_ppm, const struct entry *v)
{
    const struct leaf *gains = e->shape->leaf, *loses = v->shape->leaf;
    return part_of(gains, keeps_ppm(gains) + need_ppm) <=
           part_of(loses, keeps_ppm(loses) - (double)v->run->held_ppm);
}

/* By what they have used, as Fair Tree has it: what is left over goes by the same order. */
static bool ranks_before(const struct sched *s, const struct leaf *a, const struct leaf *b)
{
    return s->tree[a->node].rank < s->tree[b->node].rank;
}

static bool class_says(const struct entry *e, const struct entry *v)
{
    const struct class *mine = e->shape->class, *its = v->shape->class;
    return its->preempt != PREEMPT_NEVER && mine->preempts >> its->index & 1;
}

/* Its class was said, and not how its jobs go. */
static bool stays(const struct entry *v)
{
    return v->shape->class->set && v->shape->class->preempt == PREEMPT_NEVER;
}

/* One without cards makes room only by what it has of the machine. */
static bool gives_machine(const struct sched *s, const struct entry *e, const struct entry *v)
{
    struct node_need least = node_least(s, e->shape->question);
    return node_meet(&v->run->need, &least);
}

/*
 * A class stands above those that it pushes out. If shares could take back what a class has taken,
 * jobs would go for each other in a circle.
 */
static bool same_tier(const struct class *a, const struct class *b)
{
    return a->priority == b->priority && a->height == b->height;
}

static bool may_go(const struct sched *s, const struct entry *e, double need_ppm,
                   const struct entry *v)
{
    if (v->run->leaving)
        return false;
    if (class_says(e, v))
        return v->run->held_ppm || gives_machine(s, e, v);
    if (!v->run->held_ppm || !same_tier(e->shape->class, v->shape->class) || stays(v))
        return false;
    if (v->shape->leaf == e->shape->leaf)
        return s->policy.preempt_las && by_service(e) &&
               (e->level != v->level ? e->level < v->level : entry_before(e, v));
    return s->policy.preempt_shares && ranks_before(s, e->shape->leaf, v->shape->leaf) &&
           evens_out(e, need_ppm, v);
}

/* ---- what there is to be had ----------------------------------------------- */

static void take_stock(struct sched *s)
{
    if (s->stock_taken)
        return;
    s->stock_taken = true;
    for (size_t i = 0; i < s->leaf_count; i++) {
        memset(&s->leaves[i]->levels, 0, sizeof s->leaves[i]->levels);
        s->leaves[i]->due = due_of(s, s->leaves[i]);
    }
    for (size_t i = 0; i < s->class_count; i++)
        s->classes[i]->held_ppm = s->classes[i]->cardless = 0;
    for (const struct entry *e = s->runs; e; e = e->right) {
        struct levels *l = &e->shape->leaf->levels;
        if (e->run->leaving)
            continue;
        l->ppm[e->level] += e->run->held_ppm;
        if (e->order > l->last_order[e->level])
            l->last_order[e->level] = e->order;
        e->shape->class->held_ppm += e->run->held_ppm;
        e->shape->class->cardless += !e->run->held_ppm;
    }
}

/* No more than this of cards can be had for `e`. */
static double most_ppm(const struct sched *s, const struct entry *e, double need_ppm)
{
    const struct leaf *mine = e->shape->leaf;
    const struct levels *l = &mine->levels;
    double sum = 0, after = part_of(mine, keeps_ppm(mine) + need_ppm);
    for (size_t i = 0; i < s->class_count; i++)
        if (e->shape->class->preempts >> i & 1)
            sum += (double)s->classes[i]->held_ppm;
    if (s->policy.preempt_las && by_service(e)) {
        sum += l->last_order[e->level] >= e->order ? (double)l->ppm[e->level] : 0;
        for (size_t i = e->level + 1u; i <= SCHED_LAS_MAX; i++)
            sum += (double)l->ppm[i];
    }
    for (size_t i = 0; s->policy.preempt_shares && i < s->leaf_count; i++) {
        const struct leaf *other = s->leaves[i];
        double over = other->held_ppm ? keeps_ppm(other) - after * other->due : 0;
        sum += over > 0 && ranks_before(s, mine, other) ? over : 0;
    }
    return sum;
}

/* Are there some who could go for it only for what they have of the machine? */
static bool may_push_cardless(const struct sched *s, const struct entry *e)
{
    bool any = false;
    for (size_t i = 0; i < s->class_count; i++)
        any = any || (e->shape->class->preempts >> i & 1 && s->classes[i]->cardless);
    return any;
}

static double free_ppm(const struct inventory *inv)
{
    return inv->bulk ? (double)inv->bulk->free * PPM : 0;
}

/* ---- a choice -------------------------------------------------------------- */

/* Who goes first: of the lower tier, who had most, who began last. */
static int by_going(const void *x, const void *y)
{
    const struct entry *a = *(struct entry *const *)x, *b = *(struct entry *const *)y;
    if (a->shape->class->priority != b->shape->class->priority)
        return a->shape->class->priority < b->shape->class->priority ? -1 : 1;
    if (a->level != b->level)
        return a->level > b->level ? -1 : 1;
    if (!by_service(a) && a->run->since_us != b->run->since_us)
        return a->run->since_us > b->run->since_us ? -1 : 1;
    if (a->order != b->order)
        return a->order > b->order ? -1 : 1;
    return a->id > b->id ? -1 : a->id < b->id;
}

/* victims_caps, and what it is made of. */
struct caps {
    size_t *group;
    uint64_t *loses, *cap;
    bool *under;
    struct victims_caps all;
};

static void list_candidates(struct sched *s, const struct entry *e, double need_ppm,
                            struct choice *c)
{
    c->count = 0;
    for (struct entry *v = s->runs; v; v = v->right)
        if (may_go(s, e, need_ppm, v)) {
            ARRAY_ROOM(c->list, c->alloc, c->count + 1);
            c->list[c->count++] = v;
        }
    if (c->count > 1)
        qsort(c->list, c->count, sizeof *c->list, by_going);
}

void preempt_mark(struct entry *v, bool leaving)
{
    struct leaf *l = v->shape->leaf;
    v->run->leaving = leaving;
    if (leaving)
        l->leaving_ppm += v->run->held_ppm;
    else
        l->leaving_ppm -= v->run->held_ppm;
}

void sched_leaving(struct sched *s, uint64_t id)
{
    struct entry *e = entries_get(&s->entries, id);
    if (!e || e->state != ENTRY_RUNNING || e->run->leaving)
        return;
    preempt_mark(e, true);
    s->stock_taken = false;
    s->node.stale = true;
}

/* ---- would it fit? ---------------------------------------------------------- */

static uint64_t leaving_ppm(const struct sched *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->leaf_count; i++)
        sum += s->leaves[i]->leaving_ppm;
    return sum;
}

uint64_t preempt_lacks_ppm(const struct sched *s, const struct bulk *b, const struct entry *e)
{
    uint64_t have = (uint64_t)b->free * PPM + leaving_ppm(s);
    uint64_t need = (uint64_t)e->shape->question->request.count * PPM;
    return need > have ? need - have : 0;
}

/* Would a limit stop it there (NULL: anywhere), when all are gone that are told to go? */
static bool is_over(const struct sched *s, const struct entry *e, const struct place *place)
{
    if (!e->shape->meter_count)
        return false;
    for (const struct entry *v = s->runs; v; v = v->right)
        if (v->run->leaving)
            meters_give(v->shape, &v->run->place);
    struct excess x = place ? meters_over(e->shape, place) : meters_full(e->shape);
    for (const struct entry *v = s->runs; v; v = v->right)
        if (v->run->leaving)
            meters_take(v->shape, &v->run->place);
    return x.meter;
}

void preempt_without(const struct sched *s, const struct inventory *inv, struct now now,
                     struct inventory *ret)
{
    carry_copy(inv, ret);
    for (const struct entry *v = s->runs; v; v = v->right)
        if (v->run->leaving)
            carry_end(ret, v->id, now.boot_us);
}

bool preempt_place(struct sched *s, const struct inventory *inv, const struct entry *e,
                   struct now now, struct place *ret)
{
    struct place place = { .items = NULL };
    struct plan plan;
    if (inv->bulk) {
        struct node_need least = node_least(s, e->shape->question);
        *ret = place;
        return !preempt_lacks_ppm(s, inv->bulk, e) && node_fits_without_leaving(s, &least) &&
               !is_over(s, e, NULL);
    }
    AUTO(inventory) struct inventory copy = { .cards = NULL };
    struct place_rules rules = { .kept = booking_kept_closed(s, inv, e->limit_us, now),
                                 .mode_hold_us = s->modes_stay ? s->policy.mode_hold_us : 0 };
    preempt_without(s, inv, now, &copy);
    if (place_request(&copy, &e->shape->question->request, &rules, now, &place, &plan, NULL) !=
        PLACE_NOW)
        return false;
    plan_done(&plan);
    struct node_need need = node_on(s, e->shape->question, &place);
    if (!node_fits_without_leaving(s, &need) || is_over(s, e, &place)) {
        place_done(&place);
        return false;
    }
    *ret = place;
    return true;
}

static bool fits(struct sched *s, const struct inventory *inv, const struct entry *e,
                 struct now now)
{
    struct place place;
    if (!preempt_place(s, inv, e, now, &place))
        return false;
    place_done(&place);
    return true;
}

static bool somebody_leaves(const struct sched *s, const struct inventory *inv)
{
    if (inv->bulk)
        return leaving_ppm(s) > 0;
    for (const struct entry *v = s->runs; v; v = v->right)
        if (v->run->leaving)
            return true;
    return false;
}

/* ---- the fewest ------------------------------------------------------------- */

/* The most of its cards that may go, so that it keeps no less of its due than `after`. */
static uint64_t cap_of(const struct leaf *l, double after)
{
    double keeps = keeps_ppm(l);
    double cap = l->due > 0 ? floor(keeps - after * l->due) : keeps - 1;
    if (cap + 1 <= keeps && part_of(l, keeps - cap - 1) >= after)
        cap++; /* by rounding alone */
    else if (cap >= 0 && part_of(l, keeps - cap) < after)
        cap--;
    return cap > 0 ? (uint64_t)cap : 0;
}

/* Where a larger share goes for a smaller one, the two must not change places. */
static void list_caps(const struct sched *s, const struct entry *e, double need_ppm,
                      const struct choice *c, struct caps *ret)
{
    const struct leaf *mine = e->shape->leaf;
    double after = part_of(mine, keeps_ppm(mine) + need_ppm);
    bool any = false;
    ret->group = mem_new((c->count + 1) * sizeof *ret->group);
    ret->loses = mem_new((c->count + 1) * sizeof *ret->loses);
    ret->under = mem_new((c->count + 1) * sizeof *ret->under);
    ret->cap = mem_new((s->leaf_count + 1) * sizeof *ret->cap);
    for (size_t i = 0; i < c->count; i++) {
        const struct entry *v = c->list[i];
        ret->group[i] = v->shape->leaf->index;
        ret->loses[i] = v->run->held_ppm;
        ret->under[i] = v->shape->leaf != mine && !class_says(e, v);
        any = any || ret->under[i];
    }
    for (size_t i = 0; any && i < s->leaf_count; i++)
        ret->cap[i] = cap_of(s->leaves[i], after);
    ret->all = (struct victims_caps){ ret->group, ret->loses, ret->under, ret->cap,
                                      any ? s->leaf_count : 0 };
}

static void caps_done(struct caps *caps)
{
    free(caps->group);
    free(caps->loses);
    free(caps->under);
    free(caps->cap);
}

static void mark_all(const struct choice *c, bool leaving)
{
    for (size_t i = 0; i < c->count; i++)
        preempt_mark(c->list[i], leaving);
}

/* Would it fit if all went that may? Most questions end here. */
static bool all_are_enough(struct sched *s, const struct inventory *inv, const struct entry *e,
                           const struct choice *c, struct now now)
{
    mark_all(c, true);
    bool enough = c->count > 0 && fits(s, inv, e, now);
    mark_all(c, false);
    return enough;
}

/* ---- where that is too dear: none that can be left out ------------------------ */

/* Those without whom it fits as well stay; who would go last is asked first. */
static void spare(struct sched *s, const struct inventory *inv, const struct entry *e,
                  struct choice *c, struct now now)
{
    size_t n = 0;
    for (size_t i = c->count; i-- > 0;) {
        preempt_mark(c->list[i], false);
        if (!fits(s, inv, e, now))
            preempt_mark(c->list[i], true);
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i]->run->leaving)
            c->list[n++] = c->list[i];
    c->count = n;
    mark_all(c, false);
}

static bool choose_in_order(struct sched *s, const struct inventory *inv, const struct entry *e,
                            double need_ppm, struct now now, struct choice *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->count; i++) {
        struct entry *v = c->list[i];
        if (!may_go(s, e, need_ppm, v)) /* of its leaf enough have gone already */
            continue;
        preempt_mark(v, true);
        c->list[n++] = v;
        if (fits(s, inv, e, now)) {
            c->count = n;
            spare(s, inv, e, c, now);
            return true;
        }
    }
    while (n-- > 0)
        preempt_mark(c->list[n], false);
    return false;
}

static bool choose_fewest(struct sched *s, const struct inventory *inv, const struct entry *e,
                          double need_ppm, struct now now, struct choice *c)
{
    struct caps caps;
    list_caps(s, e, need_ppm, c, &caps);
    enum victims_answer answer = preempt_fewest(s, inv, e, &caps.all, now, c);
    caps_done(&caps);
    if (answer == VICTIMS_DEAR && choose_in_order(s, inv, e, need_ppm, now, c))
        answer = VICTIMS_FOUND;
    if (answer == VICTIMS_FOUND)
        mark_all(c, true);
    return answer == VICTIMS_FOUND;
}

/* With nobody gone there is a card for it as soon as that has turned its mode. */
static bool waits_for_a_turn(struct sched *s, const struct inventory *inv, const struct entry *e,
                             struct now now)
{
    return !inv->bulk && s->policy.mode_hold_us &&
           ask_alone(s, inv, e->shape->question, now) != PLACE_NOW && fits(s, inv, e, now);
}

/* True: those left in `c` go. */
static bool choose(struct sched *s, const struct inventory *inv, const struct entry *e,
                   double need_ppm, struct now now, struct choice *c)
{
    if (somebody_leaves(s, inv) && fits(s, inv, e, now))
        return false; /* it need only wait for those */
    list_candidates(s, e, need_ppm, c);
    if (!all_are_enough(s, inv, e, c, now))
        return false;
    s->modes_stay = waits_for_a_turn(s, inv, e, now);
    bool found = (!s->modes_stay || all_are_enough(s, inv, e, c, now)) &&
                 choose_fewest(s, inv, e, need_ppm, now, c);
    s->modes_stay = false;
    return found;
}

/* ---- a question ------------------------------------------------------------ */

/* Who waits and goes first, with what decides between them. */
struct waiting {
    struct entry *entry;
    struct turn turn;
};

static int by_turn(const void *x, const void *y)
{
    const struct waiting *a = x, *b = y;
    if (a->turn.tier != b->turn.tier)
        return a->turn.tier > b->turn.tier ? -1 : 1;
    if (a->entry->shape->leaf == b->entry->shape->leaf && a->entry->level != b->entry->level)
        return a->entry->level < b->entry->level ? -1 : 1;
    if (a->turn.points < b->turn.points || a->turn.points > b->turn.points)
        return a->turn.points > b->turn.points ? -1 : 1;
    return entry_before(a->entry, b->entry) ? -1 : 1;
}

static double need_ppm(const struct inventory *inv, const struct entry *e)
{
    if (inv->bulk)
        return (double)e->shape->question->request.count * PPM;
    return (double)e->shape->question->need.dominant_ppm;
}

/* The first in line of each shape for which enough could go, in the order of the line. */
static size_t list_waiting(struct sched *s, const struct inventory *inv, struct now now,
                           struct waiting **ret)
{
    size_t n = 0, alloc = 0;
    take_stock(s);
    for (size_t i = 0; i < s->leaf_count; i++)
        for (struct shape *sh = s->leaves[i]->shapes; sh; sh = sh->next) {
            struct entry *e = sh->first;
            if (!e || question_answer(s, sh->question) == ANSWER_NEVER || sh->limited == s->cycle)
                continue;
            question_look(s, inv, sh->question); /* nobody may have looked at it in this cycle */
            double need = need_ppm(inv, e), most = most_ppm(s, e, need);
            if ((most <= 0 && !may_push_cardless(s, e)) ||
                (inv->bulk && most + free_ppm(inv) < need))
                continue;
            ARRAY_ROOM(*ret, alloc, n + 1);
            (*ret)[n++] = (struct waiting){ .entry = e, .turn = turn_of(s, e, now.boot_us) };
        }
    if (n > 1)
        qsort(*ret, n, sizeof **ret, by_turn);
    return n;
}

static bool anybody_may(const struct sched *s)
{
    bool classes = false;
    for (size_t i = 0; i < s->class_count; i++)
        classes = classes || s->classes[i]->preempts;
    return classes || s->policy.preempt_las || s->policy.preempt_shares;
}

int sched_preempt(struct sched *s, const struct inventory *inv, struct now now,
                  struct sched_preemption *ret)
{
    struct choice c = { .list = NULL };
    auto_free struct waiting *waiting = NULL;
    int found = 0;
    if (!s->pending || s->claim || !anybody_may(s))
        return 0;
    line_rank(s, inv, now);
    size_t n = list_waiting(s, inv, now, &waiting);
    for (size_t i = 0; i < n && !found; i++) {
        struct entry *e = waiting[i].entry;
        if (!choose(s, inv, e, need_ppm(inv, e), now, &c))
            continue;
        *ret = (struct sched_preemption){ .job_id = e->id };
        ARRAY_ROOM(ret->victims, ret->alloc, c.count);
        for (size_t k = 0; k < c.count; k++)
            ret->victims[ret->count++] = c.list[k]->id;
        s->claim = e;
        s->stock_taken = false;
        s->node.stale = true;
        found = 1;
    }
    free(c.list);
    return found;
}
