#include <stdlib.h>
#include <string.h>

#include "sched/queue.h"

void sched_decision_done(struct sched_decision *d)
{
    place_done(&d->place);
    plan_done(&d->plan);
    memset(d, 0, sizeof *d);
}

static void release_due(struct sched *s, int64_t now_us)
{
    while (pile_first_key(&s->held) <= now_us) {
        const struct entry *e = pile_first(&s->held);
        sched_release(s, e->id);
    }
}

void sched_cycle(struct sched *s, struct now now)
{
    release_due(s, now.boot_us);
    preempt_settle(s, now.boot_us);
    line_changed(s);
    s->cycle++;
    ask_forget(s);
    s->bookings.stale = true;
    s->bookings.next += BOOKING_LOOKS;
    s->bookings.looks = 0;
    s->holder_asked = false;
    s->passed_over = false;
    counted_forget(s);
    s->node.stale = true;
}

/* A booking went, so there may be room where there was none: all are asked again. */
static void begin_anew(struct sched *s)
{
    s->bookings.dropped = s->bookings.moved = false;
    s->cycle++;
    s->line_stale = true;
    s->holder_asked = false;
    ask_forget(s);
}

/* ---- one question ------------------------------------------------------------ */

static enum place_verdict ask(struct sched *s, const struct inventory *inv, struct entry *e,
                              size_t level, bool with_bans, struct now now,
                              struct sched_decision *d)
{
    *d = (struct sched_decision){ .job_id = e->id };
    return ask_place(s, inv, e->shape->question, level, with_bans, now, &d->place, &d->plan);
}

static bool fits(struct sched *s, const struct inventory *inv, struct question *q, size_t level,
                 bool with_bans, struct now now)
{
    struct sched_decision d = { .job_id = 0 };
    if (ask_place(s, inv, q, level, with_bans, now, &d.place, &d.plan) != PLACE_NOW)
        return false;
    sched_decision_done(&d);
    return true;
}

/* How long the machine has what it needs there from now on; NULL: what it needs at least. */
static int64_t room_us(struct sched *s, const struct inventory *inv, struct question *q,
                       const struct place *p, struct node_view v, struct now now)
{
    question_look(s, inv, q);
    struct node_need need = p ? node_on(s, q, p) : node_least(s, q);
    return node_most_us(s, &need, v, now);
}

/* The longest limit below `level` with which the question has a place now; 0: none has. */
static int64_t longest_us(struct sched *s, const struct inventory *inv, struct question *q,
                          size_t level, bool with_bans, struct now now)
{
    size_t low = 0, high = level;
    if (!level || !fits(s, inv, q, 0, with_bans, now))
        return 0;
    while (high - low > 1) { /* what ends sooner is in nobody's way whom longer ones spare */
        size_t mid = low + (high - low) / 2;
        if (fits(s, inv, q, mid, with_bans, now))
            low = mid;
        else
            high = mid;
    }
    return booking_level_us(s, low, now);
}

/*
 * What its limit of `limit_us` and that level could not start with; shorter ones may. False: there
 * was room, but it would turn the mode of cards that are kept; so nobody else can tell from it.
 */
static bool answer(struct sched *s, const struct inventory *inv, struct question *q, size_t level,
                   int64_t limit_us, struct now now)
{
    int64_t room = room_us(s, inv, q, NULL, NODE_VIEW_ALL, now);
    size_t end = level + (room < limit_us); /* then it was not the cards that said no */
    int64_t most = longest_us(s, inv, q, end, true, now);
    if (s->reservation.entry) {
        int64_t least = longest_us(s, inv, q, level + 1, false, now);
        least = least < s->reservation.short_us ? least : s->reservation.short_us;
        most = least > most ? least : most;
    }
    most = room < most ? room : most;
    if (most > 0 && most < limit_us)
        question_set(s, q, ANSWER_SHORT, most);
    else
        question_set(s, q, ANSWER_NO, 0);
    return most < limit_us;
}

/* A start is kept for the first of its request. */
static void book(struct sched *s, const struct inventory *inv, struct entry *e, struct now now)
{
    if (booking_of(s, e) == SIZE_MAX && !e->shape->question->booked)
        (void)ask_reservation(s, inv, e,
                              now); /* where none can be had, the next may have better luck */
}

/* It does not fit, and others may be before it from here on. */
static void does_not_fit(struct sched *s, const struct inventory *inv, struct entry *e,
                         size_t level, enum place_verdict verdict, struct now now)
{
    struct question *q = e->shape->question;
    if (verdict == PLACE_NEVER) {
        question_set(s, q, ANSWER_NEVER, 0);
        ask_speak(s, inv, q);
        return;
    }
    s->passed_over = true;
    bool lacks = answer(s, inv, q, level, e->limit_us, now);
    book(s, inv, e, now);
    if (lacks && !booking_room(s, NULL))
        ask_speak(s, inv, q);
}

/* Has the machine too little for it there? NULL: anywhere. Then its question has an answer. */
static bool lacks_room(struct sched *s, const struct inventory *inv, struct entry *e,
                       const struct place *p, struct now now)
{
    struct question *q = e->shape->question;
    int64_t most = room_us(s, inv, q, p, NODE_VIEW_ALL, now);
    if (most >= e->limit_us)
        return false;
    struct node_need least = node_least(s, q);
    if (node_over(s, &least)) {
        question_set(s, q, ANSWER_NEVER, 0);
        return true;
    }
    s->passed_over = true;
    question_set(s, q, most > 0 ? ANSWER_SHORT : ANSWER_NO, most);
    if (!inv->bulk)
        book(s, inv, e, now);
    if (!p && !booking_room(s, NULL)) /* what a place gives may differ for another limit */
        ask_speak(s, inv, q);
    return true;
}

/* Beside the cards that are kept there is no room; a short one may use them. */
static bool try_kept(struct sched *s, const struct inventory *inv, struct entry *e, size_t level,
                     struct now now, struct sched_decision *d)
{
    if (!s->reservation.entry || e->limit_us > s->reservation.short_us ||
        ask(s, inv, e, level, false, now, d) != PLACE_NOW)
        return false;
    s->passed_over = true;
    if (reserve_allows(s, inv, &d->plan, e->limit_us))
        return true;
    sched_decision_done(d);
    return false;
}

/* The same on counted cards, where what is kept is a number for a time. */
static bool try_counted(struct sched *s, const struct inventory *inv, struct entry *e,
                        struct now now, struct sched_decision *d)
{
    struct question *q = e->shape->question;
    enum place_verdict verdict = ask(s, inv, e, 0, false, now, d);
    int64_t most = INT64_MAX;
    if (verdict == PLACE_NOW && q->request.kind == REQUEST_CARDS)
        most = counted_most_us(s, inv->bulk, q->request.count, now.boot_us);
    int64_t room = room_us(s, inv, q, NULL, NODE_VIEW_ALL, now);
    most = room < most ? room : most;
    if (verdict == PLACE_NOW && e->limit_us <= most)
        return true;
    if (verdict == PLACE_NOW)
        sched_decision_done(d);
    if (verdict == PLACE_NEVER) {
        question_set(s, q, ANSWER_NEVER, 0);
        return false;
    }
    s->passed_over = true;
    counted_plan(s, inv->bulk, e, now.boot_us);
    question_set(s, q, verdict == PLACE_NOW && most > 0 ? ANSWER_SHORT : ANSWER_NO, most);
    return false;
}

/* True: starts as `d` says. False: its question has an answer now that keeps it waiting. */
static bool try_start(struct sched *s, const struct inventory *inv, struct entry *e, struct now now,
                      struct sched_decision *d)
{
    if (inv->bulk)
        return try_counted(s, inv, e, now, d);
    if (lacks_room(s, inv, e, NULL, now))
        return false;
    size_t level = booking_level(s, inv, e->limit_us, now);
    enum place_verdict verdict = ask(s, inv, e, level, true, now, d);
    if (verdict == PLACE_NOW || try_kept(s, inv, e, level, now, d)) {
        if (!lacks_room(s, inv, e, &d->place, now))
            return true;
        sched_decision_done(d);
        return false;
    }
    does_not_fit(s, inv, e, level, verdict, now);
    return false;
}

/* ---- whose turn ------------------------------------------------------------ */

/* It fits, but there it would have too much: the shape is passed over until something changes. */
static bool stopped(struct sched *s, struct entry *e, struct sched_decision *d)
{
    if (!e->shape->meter_count || !meters_over(e->shape, &d->place).meter)
        return false;
    e->shape->limited = s->cycle;
    sched_decision_done(d);
    return true;
}

/*
 * Who asks the same is served as well by what is kept. So the promise is kept
 * for the request, and whose turn it is by now takes it over: else every other
 * start would be decided by the shares as they were before it.
 */
static void pass_on(struct sched *s, const struct inventory *inv, struct now now)
{
    const struct question *q = s->reservation.entry->shape->question;
    struct entry *e = line_first_of(s, inv, q, INT64_MAX, now);
    if (e && booking_of(s, e) == SIZE_MAX)
        s->reservation.entry = e;
}

/* Where it would fit but for a limit, or a limit stops it anywhere, nothing is kept for it. */
static bool is_limited(struct sched *s, const struct inventory *inv, struct entry *e)
{
    question_look(s, inv, e->shape->question);
    return e->shape->meter_count && meters_full(e->shape).meter;
}

/* Where it may start beside the other bookings, or beside those before it. */
static enum place_verdict ask_beside(struct sched *s, const struct inventory *inv, size_t at,
                                     bool only_before, struct now now, struct sched_decision *d)
{
    struct entry *e = s->bookings.list[at].entry;
    struct question *q = e->shape->question;
    struct place_rules rules = reserve_rules(s, false);
    struct node_view v = { .without = at, .first = only_before ? at : SIZE_MAX };
    rules.kept = booking_kept_from(s, inv, at, only_before, now);
    enum place_verdict verdict =
        place_request(inv, &q->request, &rules, now, &d->place, &d->plan, NULL);
    if (verdict != PLACE_NOW || room_us(s, inv, q, &d->place, v, now) >= e->limit_us)
        return verdict;
    sched_decision_done(d);
    return PLACE_LATER;
}

/* The place that is kept for it, whatever that does to those behind it, once its time has come. */
static enum place_verdict ask_booked(struct sched *s, const struct inventory *inv, size_t at,
                                     struct now now, struct sched_decision *d)
{
    const struct booking *b = &s->bookings.list[at];
    *d = (struct sched_decision){ .job_id = b->entry->id };
    enum place_verdict v = ask_beside(s, inv, at, false, now, d);
    if (v != PLACE_LATER || b->from_us > now.boot_us)
        return v;
    return ask_beside(s, inv, at, true, now, d);
}

/* One that cannot start yet: sooner than it was told, perhaps; and what does its like do? */
static void stays_booked(struct sched *s, const struct inventory *inv, size_t at, bool may_fit,
                         struct now now)
{
    struct entry *e = s->bookings.list[at].entry;
    s->passed_over = true;
    booking_improve(s, inv, at, now);
    if (may_fit)
        (void)answer(s, inv, e->shape->question, booking_level(s, inv, e->limit_us, now),
                     e->limit_us, now); /* who comes to the same is asked himself */
    else
        question_set(s, e->shape->question, ANSWER_NO, 0);
}

/* Who takes a booking that can start. */
static struct entry *whose_turn(struct sched *s, const struct inventory *inv, size_t at,
                                struct now now)
{
    struct entry *e = s->bookings.list[at].entry;
    struct entry *first = line_first_of(s, inv, e->shape->question, e->limit_us, now);
    if (!first || first == e)
        return e;
    booking_hand_over(s, inv, at, first, now);
    return first;
}

/* Could it go now, if nothing were kept for anybody? */
static enum place_verdict ask_alone_with_room(struct sched *s, const struct inventory *inv,
                                              struct question *q, struct now now)
{
    enum place_verdict verdict = ask_alone(s, inv, q, now);
    struct node_need least = node_least(s, q);
    if (verdict != PLACE_NOW || node_fits_now(s, &least))
        return verdict;
    return node_over(s, &least) ? PLACE_NEVER : PLACE_LATER;
}

/* True: starts as `d` says; else it stays booked or, by a limit or for good, does not. */
static bool booked_starts(struct sched *s, const struct inventory *inv, size_t at, struct now now,
                          struct sched_decision *d)
{
    struct entry *e = s->bookings.list[at].entry;
    struct question *q = e->shape->question;
    if (e != s->claim && is_limited(s, inv, e)) {
        booking_drop(s, at);
        return false;
    }
    enum place_verdict verdict = ask_alone_with_room(s, inv, q, now);
    bool may_fit = verdict == PLACE_NOW;
    if (may_fit)
        verdict = ask_booked(s, inv, at, now, d);
    if (verdict == PLACE_NOW) {
        e = whose_turn(s, inv, at, now);
        d->job_id = e->id;
        at = booking_of(s, e);
    }
    if (verdict == PLACE_NOW && !stopped(s, e, d))
        return true;
    if (verdict == PLACE_LATER) {
        stays_booked(s, inv, at, may_fit, now);
        return false;
    }
    booking_drop(s, at);
    if (verdict == PLACE_NEVER)
        question_set(s, q, ANSWER_NEVER, 0);
    return false;
}

/* Those with a booking go first, each wherever it delays no other. */
static bool bookings_start(struct sched *s, const struct inventory *inv, struct now now,
                           struct sched_decision *ret)
{
    if (!s->bookings.count)
        return false;
    do {
        if (s->bookings.moved || s->bookings.dropped)
            ask_forget(s);
        s->bookings.dropped = s->bookings.moved = false;
        bookings_tend(s, inv, now);
        for (size_t i = 0; i < s->bookings.count;) {
            size_t count = s->bookings.count;
            if (booked_starts(s, inv, i, now, ret))
                return true;
            i += s->bookings.count == count;
        }
    } while (s->bookings.dropped || s->bookings.moved);
    return false;
}

static enum place_verdict ask_holder(struct sched *s, const struct inventory *inv, struct entry *e,
                                     size_t level, struct now now, struct sched_decision *d)
{
    struct node_view v = { .without = SIZE_MAX, .first = SIZE_MAX };
    enum place_verdict verdict = ask(s, inv, e, level, false, now, d);
    if (verdict != PLACE_NOW ||
        room_us(s, inv, e->shape->question, &d->place, v, now) >= e->limit_us)
        return verdict;
    sched_decision_done(d);
    return PLACE_LATER;
}

/* The one with cards kept goes next, and its cards are chosen anew. */
static bool holder_starts(struct sched *s, const struct inventory *inv, struct now now,
                          struct sched_decision *ret)
{
    if (!s->reservation.entry)
        return false;
    pass_on(s, inv, now);
    struct entry *e = s->reservation.entry;
    size_t level = booking_level(s, inv, e->limit_us, now);
    if (is_limited(s, inv, e)) {
        reserve_clear(s);
        return false;
    }
    enum place_verdict verdict = ask_holder(s, inv, e, level, now, ret);
    if (verdict == PLACE_NOW && !stopped(s, e, ret))
        return true;
    if (verdict != PLACE_LATER) {
        reserve_clear(s);
        if (verdict == PLACE_NEVER)
            question_set(s, e->shape->question, ANSWER_NEVER, 0);
        return false;
    }
    s->passed_over = true;
    if (!ask_reservation(s, inv, e, now))
        reserve_clear(s); /* without cards to name it gives its place up */
    (void)answer(s, inv, e->shape->question, booking_level(s, inv, e->limit_us, now), e->limit_us,
                 now);
    return false;
}

static bool holders_start(struct sched *s, const struct inventory *inv, struct now now,
                          struct sched_decision *ret)
{
    if (s->holder_asked || inv->bulk)
        return false;
    s->holder_asked = true;
    return bookings_start(s, inv, now, ret) || holder_starts(s, inv, now, ret);
}

/* What those leave who go for it is nobody else's; where it would not do any more, it is over. */
static void claim_waits(struct sched *s, const struct inventory *inv, struct now now)
{
    struct place place;
    struct entry *e = s->claim;
    if (!preempt_place(s, inv, e, now, &place)) {
        s->claim = NULL;
        return;
    }
    if (inv->bulk)
        counted_claim(s, e, now.boot_us);
    else if (booking_claim(s, e, &place, now))
        begin_anew(s);
    place_done(&place);
}

/* Room was made for it. */
static bool claim_starts(struct sched *s, const struct inventory *inv, struct now now,
                         struct sched_decision *ret)
{
    struct entry *e = s->claim;
    struct place_rules rules = reserve_rules(s, false);
    if (!e)
        return false;
    question_look(s, inv, e->shape->question);
    rules.kept = inv->bulk ? NULL : booking_kept_closed(s, inv, e->limit_us, now);
    *ret = (struct sched_decision){ .job_id = e->id };
    if (place_request(inv, &e->shape->question->request, &rules, now, &ret->place, &ret->plan,
                      NULL) == PLACE_NOW) {
        struct node_need need = node_on(s, e->shape->question, &ret->place);
        bool room = node_fits_now(s, &need);
        if (room && !stopped(s, e, ret))
            return true;
        if (!room)
            sched_decision_done(ret);
    }
    claim_waits(s, inv, now);
    return false;
}

/* The first of each request have theirs by now, as far as they go; then the first of all. */
static void book_more(struct sched *s, const struct inventory *inv, struct now now)
{
    struct entry *e;
    while (s->bookings.count + (s->reservation.entry != NULL) < s->policy.reservations &&
           (e = line_first_unbooked(s, inv, now)))
        if (!ask_reservation(s, inv, e, now))
            e->shape->question->undated = s->cycle;
}

int sched_next(struct sched *s, const struct inventory *inv, struct now now,
               struct sched_decision *ret)
{
    struct sched_decision d;
    if (s->bookings.dropped)
        begin_anew(s);
    s->bookings.stale = true; /* something started, maybe */
    node_look(s, inv);
    reserve_look(s, inv);
    keep_look(s, inv, false);
    if (claim_starts(s, inv, now, &d) || holders_start(s, inv, now, &d)) {
        *ret = d;
        return 1;
    }
    for (struct entry *e; (e = line_next(s, inv, now));) {
        if (try_start(s, inv, e, now, &d) && !stopped(s, e, &d)) {
            d.backfill = s->passed_over;
            *ret = d;
            return 1;
        }
        if (s->policy.strict && question_answer(s, e->shape->question) != ANSWER_NEVER &&
            e->shape->limited != s->cycle)
            s->line_count = 0;
    }
    if (!inv->bulk)
        book_more(s, inv, now);
    return 0;
}

/* A card that nobody holds may turn its mode from this moment on. */
static int64_t may_turn_us(const struct sched *s, const struct inventory_card *c)
{
    if (c->mode != MODE_AUTO || c->pool != POOL_QUEUE || !c->idle_since_boot_us ||
        !inventory_card_free(c))
        return INT64_MAX;
    return c->idle_since_boot_us + s->policy.mode_hold_us;
}

int64_t sched_wake_us(const struct sched *s, const struct inventory *inv, struct now now)
{
    int64_t wake = s->pending && s->policy.preempt_las ? s->crossing_us : INT64_MAX;
    if (pile_first_key(&s->held) < wake)
        wake = pile_first_key(&s->held);
    for (size_t i = 0; s->pending && i < inv->card_count; i++) {
        int64_t at = may_turn_us(s, &inv->cards[i]);
        if (at > now.boot_us && at < wake)
            wake = at;
    }
    return wake;
}
