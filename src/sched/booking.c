#include "sched/booking.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "plan/earliest.h"
#include "sched/queue.h"

static int64_t later(int64_t at_us, int64_t by_us)
{
    return by_us < INT64_MAX - at_us ? at_us + by_us : INT64_MAX;
}

static bool overlap(int64_t from_us, int64_t until_us, int64_t other_from_us,
                    int64_t other_until_us)
{
    return from_us < other_until_us && other_from_us < until_us;
}

static size_t card_index(const struct inventory *inv, uint32_t ordinal)
{
    size_t i = 0;
    while (i < inv->card_count && inv->cards[i].card.ordinal != ordinal)
        i++;
    return i;
}

static int64_t turn_us(const struct sched *s, const struct inventory_card *c)
{
    return c->mode == MODE_AUTO ? s->policy.mode_hold_us : 0;
}

void bookings_done(struct bookings *b)
{
    for (size_t i = 0; i < b->count; i++)
        place_done(&b->list[i].place);
    free(b->closed);
    free(b->steps);
    free(b->levels);
    free(b->made);
    free(b->scratch);
}

/* ---- what is kept ------------------------------------------------------------ */

/* Bookings that count, for a start that lasts from `from_us` to `until_us`. */
struct span {
    int64_t from_us, until_us;
    size_t without; /* this booking does not */
    size_t first;   /* only so many of the first do */
    bool now;       /* it starts now, so whoever is there is there, past his limit or not */
};

static const struct booking *counts(const struct sched *s, const struct span *sp, size_t i)
{
    return i == sp->without || i >= sp->first ? NULL : &s->bookings.list[i];
}

static bool held_until_after(const struct hold *h, int64_t at_us)
{
    return h->kind != HOLD_NONE &&
           (h->kind != HOLD_JOB || !h->until_boot_us || h->until_boot_us > at_us);
}

/* What of a card's slices is held at that moment; INT64_MIN: now, by whomever. */
static struct occupancy held_at(const struct inventory_card *c, int64_t at_us)
{
    struct occupancy o = { .units = 0 };
    const struct board *b = &c->card.board;
    for (size_t i = 0; i < c->card.slice_count;) {
        const struct slice *sl = &c->card.slices[i];
        const struct profile *p = board_profile_by_id(b, sl->profile_id);
        bool busy = !p;
        for (; i < c->card.slice_count && c->card.slices[i].start == sl->start; i++)
            busy = busy || c->slices[i].adopted || c->slices[i].leaving ||
                   held_until_after(&c->slices[i].hold, at_us);
        if (busy && p)
            occupancy_add(&o, b, p, sl->start);
    }
    return o;
}

static void add_item(struct occupancy *o, const struct board *b, const struct placed *item)
{
    const struct profile *p = board_profile_by_id(b, item->profile_id);
    if (p)
        occupancy_add(o, b, p, item->start);
    else
        occupancy_add_units(o, item->start, item->units);
}

/* Slices of the card that are held or booked at that moment. */
static struct occupancy taken_at(const struct sched *s, const struct span *sp,
                                 const struct inventory_card *c, int64_t at_us)
{
    struct occupancy o = held_at(c, at_us);
    for (size_t i = 0; i < s->bookings.count; i++) {
        const struct booking *b = counts(s, sp, i);
        if (!b || at_us < b->from_us || at_us >= b->until_us)
            continue;
        for (size_t k = 0; k < b->place.count; k++)
            if (!b->place.items[k].whole && b->place.items[k].ordinal == c->card.ordinal)
                add_item(&o, &c->card.board, &b->place.items[k]);
    }
    return o;
}

/* Sums are as great as they will be at any moment of the span, beyond what they are at its begin. */
static void keep_sums(const struct sched *s, const struct span *sp, const struct inventory_card *c,
                      struct place_kept *kept)
{
    struct occupancy most = { .units = 0 };
    struct occupancy base = held_at(c, sp->now ? INT64_MIN : sp->from_us);
    for (size_t i = 0; i < s->bookings.count; i++) {
        const struct booking *b = counts(s, sp, i);
        if (!b || !overlap(sp->from_us, sp->until_us, b->from_us, b->until_us))
            continue;
        int64_t at = b->from_us > sp->from_us ? b->from_us : sp->from_us;
        struct occupancy o = taken_at(s, sp, c, at);
        occupancy_widen(&most, &o);
    }
    uint32_t units = kept->more.units;
    occupancy_lessen(&most, &base);
    kept->more = most;
    kept->more.units = units;
}

static void keep_item(const struct sched *s, const struct span *sp, const struct booking *b,
                      const struct placed *item, const struct inventory_card *c,
                      struct place_kept *kept)
{
    int64_t turn = turn_us(s, c);
    bool here = overlap(sp->from_us, sp->until_us, b->from_us, b->until_us);
    bool near = overlap(sp->from_us, sp->until_us, b->from_us - turn, later(b->until_us, turn));
    kept->whole |= item->whole ? here : near;
    kept->slices |= item->whole && near;
    if (!item->whole && here)
        kept->more.units |= ((UINT32_C(1) << item->units) - 1) << item->start;
}

static void keep_all(const struct sched *s, const struct inventory *inv, const struct span *sp,
                     struct place_kept *ret)
{
    memset(ret, 0, inv->card_count * sizeof *ret);
    for (size_t i = 0; i < s->bookings.closed_count; i++) {
        const struct sched_closed *c = &s->bookings.closed[i];
        size_t at = card_index(inv, c->ordinal);
        if (at < inv->card_count && overlap(sp->from_us, sp->until_us, c->from_us, c->until_us))
            ret[at].whole = ret[at].slices = true;
    }
    for (size_t i = 0; i < s->bookings.count; i++) {
        const struct booking *b = counts(s, sp, i);
        for (size_t k = 0; b && k < b->place.count; k++) {
            size_t at = card_index(inv, b->place.items[k].ordinal);
            if (at < inv->card_count)
                keep_item(s, sp, b, &b->place.items[k], &inv->cards[at], &ret[at]);
        }
    }
    for (size_t i = 0; i < inv->card_count; i++)
        if (ret[i].more.units)
            keep_sums(s, sp, &inv->cards[i], &ret[i]);
}

static struct place_kept *scratch(struct sched *s, const struct inventory *inv)
{
    ARRAY_ROOM(s->bookings.scratch, s->bookings.scratch_alloc, inv->card_count + 1);
    return s->bookings.scratch;
}

const struct place_kept *booking_kept_from(struct sched *s, const struct inventory *inv, size_t at,
                                           bool only_before, struct now now)
{
    struct span sp = { .from_us = now.boot_us,
                       .until_us = later(now.boot_us, s->bookings.list[at].entry->limit_us),
                       .without = at,
                       .first = only_before ? at : SIZE_MAX,
                       .now = true };
    struct place_kept *kept = scratch(s, inv);
    keep_all(s, inv, &sp, kept);
    return kept;
}

const struct place_kept *booking_kept_closed(struct sched *s, const struct inventory *inv,
                                             int64_t limit_us, struct now now)
{
    struct span sp = { .from_us = now.boot_us,
                       .until_us = later(now.boot_us, limit_us),
                       .without = SIZE_MAX,
                       .first = 0,
                       .now = true };
    if (!s->bookings.closed_count)
        return NULL;
    struct place_kept *kept = scratch(s, inv);
    keep_all(s, inv, &sp, kept);
    return kept;
}

/* ---- levels ------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_step(struct bookings *b, int64_t at_us, struct now now)
{
    if (at_us <= now.boot_us)
        return;
    ARRAY_ROOM(b->steps, b->step_alloc, b->step_count + 1);
    b->steps[b->step_count++] = at_us;
}

static void list_steps(struct sched *s, const struct inventory *inv, struct now now)
{
    struct bookings *b = &s->bookings;
    size_t n = 0;
    b->step_count = 0;
    for (size_t i = 0; i < b->closed_count; i++)
        add_step(b, b->closed[i].from_us, now);
    for (size_t i = 0; i < b->count; i++)
        for (size_t k = 0; k < b->list[i].place.count; k++) {
            size_t at = card_index(inv, b->list[i].place.items[k].ordinal);
            add_step(b, b->list[i].from_us, now);
            if (at < inv->card_count)
                add_step(b, b->list[i].from_us - turn_us(s, &inv->cards[at]), now);
        }
    if (b->step_count > 1)
        qsort(b->steps, b->step_count, sizeof *b->steps, by_time);
    for (size_t i = 0; i < b->step_count; i++)
        if (n == 0 || b->steps[i] != b->steps[n - 1])
            b->steps[n++] = b->steps[i];
    b->step_count = n;
}

static void look(struct sched *s, const struct inventory *inv, struct now now)
{
    struct bookings *b = &s->bookings;
    if (!b->stale)
        return;
    b->stale = false;
    list_steps(s, inv, now);
    ARRAY_ROOM(b->levels, b->level_alloc, (b->step_count + 1) * (inv->card_count + 1));
    ARRAY_ROOM(b->made, b->made_alloc, b->step_count + 1);
    memset(b->made, 0, (b->step_count + 1) * sizeof *b->made);
}

size_t booking_level(struct sched *s, const struct inventory *inv, int64_t limit_us, struct now now)
{
    size_t level = 0;
    look(s, inv, now);
    while (level < s->bookings.step_count &&
           s->bookings.steps[level] < later(now.boot_us, limit_us))
        level++;
    return level;
}

int64_t booking_level_us(const struct sched *s, size_t level, struct now now)
{
    const struct bookings *b = &s->bookings;
    return level < b->step_count ? b->steps[level] - now.boot_us : INT64_MAX;
}

const struct place_kept *booking_kept(struct sched *s, const struct inventory *inv, size_t level,
                                      struct now now)
{
    struct bookings *b = &s->bookings;
    look(s, inv, now);
    if (!b->count && !b->closed_count)
        return NULL;
    assert(level <= b->step_count);
    struct place_kept *kept = &b->levels[level * inv->card_count];
    if (!b->made[level]) {
        struct span sp = { .from_us = now.boot_us,
                           .until_us = later(now.boot_us, booking_level_us(s, level, now)),
                           .without = SIZE_MAX,
                           .first = SIZE_MAX,
                           .now = true };
        keep_all(s, inv, &sp, kept);
        b->made[level] = true;
    }
    return kept;
}

/* ---- booking ------------------------------------------------------------------ */

struct ahead {
    struct sched *s;
    const struct inventory *inv;
    struct span span;
    int64_t limit_us;
    const struct question *question;
    bool kept; /* what is kept for one of whom nobody can say when he starts counts */
};

static const struct place_kept *kept_ahead(void *arg, int64_t at_boot_us)
{
    struct ahead *a = arg;
    struct place_kept *kept = scratch(a->s, a->inv);
    a->span.from_us = at_boot_us;
    a->span.until_us = later(at_boot_us, a->limit_us);
    keep_all(a->s, a->inv, &a->span, kept);
    return kept;
}

/* Has the machine what it needs then? */
static bool room_ahead(void *arg, int64_t at_boot_us, const struct place *p)
{
    const struct ahead *a = arg;
    struct node_need need = p ? node_on(a->s, a->question, p) : node_least(a->s, a->question);
    struct node_view v = { .without = a->span.without, .first = a->span.first, .kept = a->kept };
    return node_fits_from(a->s, &need, v, at_boot_us, a->limit_us);
}

/* When the others are over, and what they keep with them. */
static size_t list_ends(const struct sched *s, const struct inventory *inv, int64_t *ret)
{
    size_t n = 0;
    const struct bookings *b = &s->bookings;
    for (size_t i = 0; i < b->closed_count; i++)
        ret[n++] = b->closed[i].until_us;
    for (size_t i = 0; i < b->count; i++) {
        if (b->list[i].until_us == INT64_MAX)
            continue;
        ret[n++] = b->list[i].until_us;
        if (s->policy.mode_hold_us && inv->card_count)
            ret[n++] = later(b->list[i].until_us, s->policy.mode_hold_us);
    }
    return n;
}

/* Beside all others but `without`. */
static bool find(struct sched *s, const struct inventory *inv, const struct entry *e,
                 size_t without, int64_t before_us, struct now now, struct booking *ret)
{
    struct question *q = e->shape->question;
    struct ahead a = { .s = s, .inv = inv, .limit_us = e->limit_us, .question = q };
    struct place_rules rules = reserve_rules(s, s->reservation.entry != e);
    question_look(s, inv, q);
    struct node_need least = node_least(s, q);
    size_t more = node_moment_count(s, &least);
    auto_free int64_t *ends =
        mem_new((2 * s->bookings.count + s->bookings.closed_count + more + 1) * sizeof *ends);
    struct place_ahead ahead = { .kept = kept_ahead, .room = room_ahead, .arg = &a, .also = ends };
    a.span.without = without;
    a.span.first = SIZE_MAX;
    a.kept = s->reservation.entry != e;
    ahead.also_count = list_ends(s, inv, ends);
    ahead.also_count += node_moments(s, more, ends + ahead.also_count);
    ahead.before_us = before_us;
    *ret = (struct booking){ .entry = (struct entry *)e }; /* its owner's again */
    if (!place_earliest(inv, &q->request, &rules, now, &ahead, &ret->place, &ret->from_us))
        return false;
    ret->need = node_on(s, q, &ret->place);
    ret->until_us = later(ret->from_us, e->limit_us);
    return true;
}

static void insert(struct sched *s, size_t at, const struct booking *b)
{
    struct bookings *all = &s->bookings;
    assert(all->count < SCHED_RESERVATIONS_MAX);
    memmove(&all->list[at + 1], &all->list[at], (all->count - at) * sizeof *all->list);
    all->list[at] = *b;
    all->count++;
    all->stale = true;
    node_add(&s->node.booked, &b->need);
    b->entry->shape->question->booked++;
    b->entry->shape->booked++;
}

bool booking_room(const struct sched *s, const struct entry *e)
{
    const struct entry *kept = s->reservation.entry;
    size_t all = s->bookings.count + (kept && kept != e);
    return all < s->policy.reservations && all < SCHED_RESERVATIONS_MAX;
}

bool booking_make(struct sched *s, const struct inventory *inv, struct entry *e, struct now now)
{
    struct booking b;
    assert(booking_of(s, e) == SIZE_MAX && booking_room(s, e));
    if (!find(s, inv, e, SIZE_MAX, INT64_MAX, now, &b))
        return false;
    if (s->reservation.entry == e)
        reserve_clear(s);
    insert(s, s->bookings.count, &b);
    return true;
}

static bool same_place(const struct place *a, const struct place *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const struct placed *x = &a->items[i], *y = &b->items[i];
        same = x->ordinal == y->ordinal && x->whole == y->whole && x->start == y->start &&
               x->profile_id == y->profile_id;
    }
    return same;
}

bool booking_claim(struct sched *s, struct entry *e, const struct place *place, struct now now)
{
    struct booking b = { .entry = e, .from_us = now.boot_us };
    size_t most = s->policy.reservations < SCHED_RESERVATIONS_MAX ? s->policy.reservations
                                                                  : SCHED_RESERVATIONS_MAX;
    if (booking_of(s, e) == 0 && same_place(&s->bookings.list[0].place, place) &&
        s->bookings.list[0].from_us <= now.boot_us)
        return false;
    booking_drop_of(s, e);
    reserve_clear(s);
    while (s->bookings.count && s->bookings.count >= most)
        booking_drop(s, s->bookings.count - 1);
    b.until_us = later(now.boot_us, e->limit_us);
    b.need = node_on(s, e->shape->question, place);
    place_copy(place, &b.place);
    insert(s, 0, &b);
    return true;
}

static void replace(struct sched *s, size_t at, const struct booking *b)
{
    struct booking *old = &s->bookings.list[at];
    node_sub(&s->node.booked, &old->need);
    node_add(&s->node.booked, &b->need);
    place_done(&old->place);
    *old = *b;
    s->bookings.stale = true;
}

void booking_improve(struct sched *s, const struct inventory *inv, size_t at, struct now now)
{
    struct booking b;
    const struct booking *old = &s->bookings.list[at];
    size_t turn =
        (at + s->bookings.count - s->bookings.next % s->bookings.count) % s->bookings.count;
    if (old->from_us <= now.boot_us || turn >= BOOKING_LOOKS || s->bookings.looks >= BOOKING_LOOKS)
        return;
    s->bookings.looks++;
    if (!find(s, inv, old->entry, at, old->from_us, now, &b))
        return;
    replace(s, at, &b);
    s->bookings.moved = true;
}

void booking_drop(struct sched *s, size_t at)
{
    struct bookings *b = &s->bookings;
    b->list[at].entry->shape->question->booked--;
    b->list[at].entry->shape->booked--;
    node_sub(&s->node.booked, &b->list[at].need);
    place_done(&b->list[at].place);
    b->count--;
    memmove(&b->list[at], &b->list[at + 1], (b->count - at) * sizeof *b->list);
    b->stale = true;
    b->dropped = true;
}

size_t booking_of(const struct sched *s, const struct entry *e)
{
    for (size_t i = 0; e->shape->question->booked && i < s->bookings.count; i++)
        if (s->bookings.list[i].entry == e)
            return i;
    return SIZE_MAX;
}

size_t booking_of_question(const struct sched *s, const struct question *q)
{
    for (size_t i = 0; q->booked && i < s->bookings.count; i++)
        if (s->bookings.list[i].entry->shape->question == q)
            return i;
    return SIZE_MAX;
}

void booking_drop_of(struct sched *s, const struct entry *e)
{
    size_t at = booking_of(s, e);
    if (at != SIZE_MAX)
        booking_drop(s, at);
}

/* ---- as time goes on ------------------------------------------------------------ */

static bool units_meet(const struct placed *a, const struct placed *b)
{
    return a->whole || b->whole ||
           (a->start < b->start + b->units && b->start < a->start + a->units);
}

/* Do two that are booked want the same at the same time? */
static bool booked_twice(const struct sched *s, const struct inventory *inv,
                         const struct booking *a, const struct booking *b)
{
    for (size_t i = 0; i < a->place.count; i++)
        for (size_t k = 0; k < b->place.count; k++) {
            const struct placed *x = &a->place.items[i], *y = &b->place.items[k];
            size_t at = card_index(inv, x->ordinal);
            if (x->ordinal != y->ordinal || at == inv->card_count || !units_meet(x, y))
                continue;
            int64_t turn = x->whole != y->whole ? turn_us(s, &inv->cards[at]) : 0;
            if (overlap(a->from_us, a->until_us, b->from_us - turn, later(b->until_us, turn)))
                return true;
        }
    return false;
}

static bool is_closed(const struct sched *s, const struct booking *b, uint32_t ordinal)
{
    for (size_t i = 0; i < s->bookings.closed_count; i++) {
        const struct sched_closed *c = &s->bookings.closed[i];
        if (c->ordinal == ordinal && overlap(b->from_us, b->until_us, c->from_us, c->until_us))
            return true;
    }
    return false;
}

/* As held_until_after, but for those who are told to go. */
static bool stays_until_after(const struct sched *s, const struct hold *h, int64_t at_us)
{
    const struct entry *e = h->kind == HOLD_JOB ? entries_get(&s->entries, h->job_id) : NULL;
    return held_until_after(h, at_us) && !(e && e->state == ENTRY_RUNNING && e->run->leaving);
}

/* Will it be free by then, as far as limits tell? */
static bool item_holds(const struct sched *s, const struct inventory_card *c,
                       const struct placed *item, int64_t from_us)
{
    bool open =
        c->pool == POOL_QUEUE && c->card.health == CARD_OK && !c->quarantined && !c->reserved[0];
    if (!open || stays_until_after(s, &c->hold, from_us))
        return false;
    for (size_t i = 0; i < c->card.slice_count; i++) {
        const struct slice *sl = &c->card.slices[i];
        bool meets = item->whole ||
                     (sl->start < item->start + item->units && item->start < sl->start + sl->units);
        if (meets && stays_until_after(s, &c->slices[i].hold, from_us))
            return false;
    }
    return true;
}

/* Will the machine have what it needs, beside those before it or (`all`) all others? */
static bool node_holds(struct sched *s, size_t at, bool all)
{
    const struct booking *b = &s->bookings.list[at];
    struct node_view v = { .without = at, .first = all ? SIZE_MAX : at };
    return node_fits_from(s, &b->need, v, b->from_us, b->entry->limit_us);
}

static bool holds(struct sched *s, const struct inventory *inv, size_t at)
{
    const struct booking *b = &s->bookings.list[at];
    for (size_t i = 0; i < b->place.count; i++) {
        size_t card = card_index(inv, b->place.items[i].ordinal);
        if (card == inv->card_count || is_closed(s, b, b->place.items[i].ordinal) ||
            !item_holds(s, &inv->cards[card], &b->place.items[i], b->from_us))
            return false;
    }
    for (size_t i = 0; i < at; i++)
        if (booked_twice(s, inv, &s->bookings.list[i], b))
            return false;
    return node_holds(s, at, false);
}

/* Is it in nobody's way, whether he was booked before it or later? */
static bool fits_in(struct sched *s, const struct inventory *inv, size_t at)
{
    const struct booking *b = &s->bookings.list[at];
    for (size_t i = 0; i < s->bookings.count; i++)
        if (i != at && booked_twice(s, inv, &s->bookings.list[i], b))
            return false;
    for (size_t i = 0; i < b->place.count; i++)
        if (is_closed(s, b, b->place.items[i].ordinal))
            return false;
    return node_holds(s, at, true);
}

static void give(struct sched *s, size_t at, struct entry *e)
{
    struct booking *b = &s->bookings.list[at];
    b->entry->shape->booked--;
    e->shape->booked++;
    b->entry = e;
    b->until_us = later(b->from_us, e->limit_us);
    s->bookings.stale = true;
}

void booking_hand_over(struct sched *s, const struct inventory *inv, size_t at, struct entry *e,
                       struct now now)
{
    struct booking again;
    struct entry *from = s->bookings.list[at].entry;
    size_t other = booking_of(s, e);
    give(s, at, e);
    if (other == SIZE_MAX)
        return;
    give(s, other, from);
    if (fits_in(s, inv, other))
        return;
    if (find(s, inv, from, other, INT64_MAX, now, &again))
        replace(s, other, &again);
    else
        booking_drop(s, other);
}

/* Who should have started and could not yet will take as long from now. */
static void slide(struct booking *b, struct now now)
{
    if (b->from_us >= now.boot_us)
        return;
    b->from_us = now.boot_us;
    b->until_us = later(now.boot_us, b->entry->limit_us);
}

void bookings_tend(struct sched *s, const struct inventory *inv, struct now now)
{
    struct bookings *all = &s->bookings;
    for (size_t i = 0; i < all->count; i++)
        slide(&all->list[i], now);
    for (size_t i = 0; i < all->count;) {
        struct booking b;
        if (!holds(s, inv, i)) {
            if (!find(s, inv, all->list[i].entry, i, INT64_MAX, now, &b)) {
                booking_drop(s, i);
                continue;
            }
            replace(s, i, &b);
        }
        i++;
    }
    all->stale = true;
}

size_t booking_in_the_way(const struct sched *s, int64_t limit_us, bool cards, struct now now)
{
    size_t first = SIZE_MAX;
    const struct booking *list = s->bookings.list;
    for (size_t i = 0; i < s->bookings.count; i++)
        if ((list[i].place.count || !cards) && list[i].from_us < later(now.boot_us, limit_us) &&
            (first == SIZE_MAX || list[i].from_us < list[first].from_us))
            first = i;
    return first;
}
