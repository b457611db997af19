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
    s->holder_asked = false;
    s->passed_over = false;
    s->planned_count = 0;
}

/* ---- one question ------------------------------------------------------------ */

static enum place_verdict ask(struct sched *s, const struct inventory *inv, struct entry *e,
                              bool with_bans, struct now now, struct sched_decision *d)
{
    *d = (struct sched_decision){ .job_id = e->id };
    return ask_place(s, inv, e->shape->question, with_bans, now, &d->place, &d->plan);
}

/* It does not fit, with the whole server to choose from. */
static void does_not_fit(struct sched *s, const struct inventory *inv, struct entry *e,
                         enum place_verdict verdict, struct now now)
{
    struct question *q = e->shape->question;
    question_set(s, q, verdict == PLACE_NEVER ? ANSWER_NEVER : ANSWER_NO, 0);
    if (verdict == PLACE_NEVER)
        return;
    s->passed_over = true;
    s->holder_asked = true;    /* if it gets the reservation now, its answer is known */
    if (!s->reservation.entry) /* where no cards can be named, the next one may have better luck */
        (void)ask_reservation(s, inv, e, now);
}

/* The longest limit with which its shape may still try reserved cards. */
static int64_t most_us(const struct sched *s, const struct question *q, struct now now)
{
    return question_answer(s, q) == ANSWER_SHORT ? q->short_us : reserve_short_us(s, now);
}

/*
 * It fits on reserved cards alone: may it? When not, shorter jobs of its shape
 * may try with what a mode change back would cost taken off.
 */
static bool fits_before(struct sched *s, const struct inventory *inv, struct entry *e,
                        struct now now, struct sched_decision *d)
{
    struct question *q = e->shape->question;
    int64_t less = reserve_short_us(s, now) - s->policy.mode_hold_us;
    s->passed_over = true;
    if (reserve_allows(s, inv, &d->place, &d->plan, e->limit_us, now))
        return true;
    if (less < most_us(s, q, now) && less > 0 && less < e->limit_us)
        question_set(s, q, ANSWER_SHORT, less);
    else
        question_set(s, q, ANSWER_NO, 0);
    return false;
}

/* Beside the reservation there is no room. Whether there is any at all matters to short ones only. */
static bool try_reserved(struct sched *s, const struct inventory *inv, struct entry *e,
                         struct now now, struct sched_decision *d)
{
    struct question *q = e->shape->question;
    int64_t most = most_us(s, q, now);
    if (e->limit_us > most) {
        s->passed_over = true;
        question_set(s, q, ANSWER_SHORT, most);
        return false;
    }
    enum place_verdict verdict = ask(s, inv, e, false, now, d);
    if (verdict != PLACE_NOW) {
        does_not_fit(s, inv, e, verdict, now);
        return false;
    }
    if (fits_before(s, inv, e, now, d))
        return true;
    sched_decision_done(d);
    return false;
}

/* The same on counted cards, where what is kept is a number for a time. */
static bool try_counted(struct sched *s, const struct inventory *inv, struct entry *e,
                        struct now now, struct sched_decision *d)
{
    struct question *q = e->shape->question;
    enum place_verdict verdict = ask(s, inv, e, false, now, d);
    int64_t most = INT64_MAX;
    if (verdict == PLACE_NOW && q->request.kind == REQUEST_CARDS)
        most = counted_most_us(s, inv->bulk, q->request.count, now.boot_us);
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
    enum place_verdict verdict = PLACE_LATER;
    if (inv->bulk)
        return try_counted(s, inv, e, now, d);
    if (question_answer(s, e->shape->question) == ANSWER_OPEN)
        verdict = ask(s, inv, e, true, now, d);
    if (verdict == PLACE_NOW)
        return true;
    if (s->reservation.entry) /* without the reserved cards, that was */
        return try_reserved(s, inv, e, now, d);
    does_not_fit(s, inv, e, verdict, now);
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
    struct entry *e = line_first_of(s, inv, s->reservation.entry->shape->question, now);
    if (e)
        s->reservation.entry = e;
}

/* The one with the reservation goes first, and its cards are chosen anew. */
static bool holder_starts(struct sched *s, const struct inventory *inv, struct now now,
                          struct sched_decision *ret)
{
    if (s->holder_asked || !s->reservation.entry)
        return false;
    s->holder_asked = true;
    pass_on(s, inv, now);
    struct entry *e = s->reservation.entry;
    question_look(s, inv, e->shape->question);
    if (e->shape->meter_count && meters_full(e->shape).meter) {
        reserve_clear(s);
        return false;
    }
    enum place_verdict verdict = ask(s, inv, e, false, now, ret);
    if (verdict == PLACE_NOW && !stopped(s, e, ret))
        return true;
    if (verdict == PLACE_NOW) {
        reserve_clear(s);
        return false;
    }
    s->passed_over = true;
    if (verdict == PLACE_NEVER)
        reserve_clear(s);
    else
        (void)ask_reservation(s, inv, e, now); /* without cards to name it gives its place up */
    question_set(s, e->shape->question, verdict == PLACE_NEVER ? ANSWER_NEVER : ANSWER_NO, 0);
    return false;
}

/* Room was made for it. */
static bool claim_starts(struct sched *s, const struct inventory *inv, struct now now,
                         struct sched_decision *ret)
{
    struct entry *e = s->claim;
    if (!e)
        return false;
    question_look(s, inv, e->shape->question);
    if (ask(s, inv, e, false, now, ret) == PLACE_NOW)
        return !stopped(s, e, ret);
    if (!inv->bulk && s->reservation.entry != e) { /* what they leave is nobody else's */
        reserve_clear(s);
        s->holder_asked = ask_reservation(s, inv, e, now);
    }
    return false;
}

int sched_next(struct sched *s, const struct inventory *inv, struct now now,
               struct sched_decision *ret)
{
    struct sched_decision d;
    reserve_look(s, inv);
    keep_look(s, inv, false);
    if (claim_starts(s, inv, now, &d) || holder_starts(s, inv, now, &d)) {
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
