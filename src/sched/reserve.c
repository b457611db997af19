#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sched/queue.h"

/* Holders without a limit get one this far away: it orders cards and is never believed. */
#define FAR_US (10 * 365 * CLOCK_DAY)

/* While nobody knows when cards free, jobs of at most this may use what is idle on them. */
#define SHORT_MAX_US CLOCK_HOUR

/* An inventory of which the holds may be changed; everything else is borrowed. */
struct shadow {
    struct inventory inv;
};

static void shadow_init(struct shadow *sh, const struct inventory *inv)
{
    sh->inv = *inv;
    sh->inv.cards = mem_dup(inv->cards, inv->card_count * sizeof *inv->cards);
    for (size_t i = 0; i < inv->card_count; i++)
        sh->inv.cards[i].slices = mem_dup(inv->cards[i].slices, inv->cards[i].card.slice_count *
                                                                    sizeof *inv->cards[i].slices);
}

static void shadow_done(struct shadow *sh)
{
    for (size_t i = 0; i < sh->inv.card_count; i++)
        free(sh->inv.cards[i].slices);
    free(sh->inv.cards);
}

struct place_rules reserve_rules(const struct sched *s, bool with_bans)
{
    return (struct place_rules){
        .bans = with_bans && s->reservation.entry ? s->bans : NULL,
        .mode_hold_us = s->policy.mode_hold_us,
    };
}

void reserve_clear(struct sched *s)
{
    if (s->reservation.entry)
        ask_forget(s);
    s->reservation.entry = NULL;
    s->reservation.count = 0;
}

void reserve_look(struct sched *s, const struct inventory *inv)
{
    struct reservation *res = &s->reservation;
    size_t n = 0;
    ARRAY_ROOM(s->bans, s->ban_alloc, inv->card_count + 1);
    memset(s->bans, 0, inv->card_count * sizeof *s->bans);
    for (size_t k = 0; k < res->count; k++)
        for (size_t i = 0; i < inv->card_count; i++)
            if (inv->cards[i].card.ordinal == res->ordinals[k]) {
                s->bans[i] = BAN_ALL;
                res->ordinals[n] = res->ordinals[k];
                res->cards[n++] = i;
                break;
            }
    res->count = n;
}

/* Holds without end become long ones: who has held longest is thought to hold longest yet. */
static void bound_hold(struct hold *h, int64_t now_us)
{
    if (h->kind == HOLD_JOB && h->until_boot_us == 0)
        h->until_boot_us = now_us + FAR_US + (now_us - h->since_boot_us);
}

static void bound_holds(struct shadow *sh, int64_t now_us)
{
    for (size_t i = 0; i < sh->inv.card_count; i++) {
        struct inventory_card *c = &sh->inv.cards[i];
        bound_hold(&c->hold, now_us);
        for (size_t k = 0; k < c->card.slice_count; k++)
            bound_hold(&c->slices[k].hold, now_us);
    }
}

/* How long the longest of the holders without a limit has been on this card. */
static int64_t oldest_age(const struct inventory_card *c, int64_t now_us)
{
    int64_t age = 0;
    for (size_t k = 0; k <= c->card.slice_count; k++) {
        const struct hold *h = k < c->card.slice_count ? &c->slices[k].hold : &c->hold;
        if (h->kind == HOLD_JOB && h->until_boot_us == 0 && now_us - h->since_boot_us > age)
            age = now_us - h->since_boot_us;
    }
    return age;
}

/* All cards but those that are reserved now. */
static void ban_others(const struct sched *s, const struct inventory *inv, enum card_ban *bans)
{
    for (size_t i = 0; i < inv->card_count; i++) {
        bans[i] = BAN_ALL;
        for (size_t k = 0; k < s->reservation.count; k++)
            if (s->reservation.ordinals[k] == inv->cards[i].card.ordinal)
                bans[i] = BAN_NOTHING;
    }
}

/*
 * Nobody can say when it would go. The cards that are kept already are kept
 * on while they would serve; else those whose holders are youngest.
 */
static size_t without_end(struct sched *s, const struct inventory *inv, const struct entry *e,
                          struct now now, size_t *cards)
{
    struct shadow sh;
    int64_t when;
    struct place_rules rules = reserve_rules(s, false);
    size_t n = 0;
    shadow_init(&sh, inv);
    bound_holds(&sh, now.boot_us);
    if (s->reservation.entry == e && s->reservation.count) {
        auto_free enum card_ban *bans = mem_new((inv->card_count + 1) * sizeof *bans);
        ban_others(s, inv, bans);
        rules.bans = bans;
        n = place_soonest(&sh.inv, &e->shape->question->request, &rules, now, cards, &when);
    }
    rules.bans = NULL;
    if (n == 0)
        n = place_soonest(&sh.inv, &e->shape->question->request, &rules, now, cards, &when);
    shadow_done(&sh);
    return n;
}

static void keep_cards(struct sched *s, const struct inventory *inv, const size_t *cards, size_t n)
{
    struct reservation *res = &s->reservation;
    ARRAY_ROOM(res->cards, res->alloc, n);
    ARRAY_ROOM(res->ordinals, res->ordinal_alloc, n);
    res->count = n;
    for (size_t i = 0; i < n; i++) {
        res->cards[i] = cards[i];
        res->ordinals[i] = inv->cards[cards[i]].card.ordinal;
    }
}

/* Is it the machine, of which those that run without a limit have too much? */
static bool lacks_node(struct sched *s, const struct inventory *inv, const struct entry *e)
{
    struct question *q = e->shape->question;
    question_look(s, inv, q);
    struct node_need least = node_least(s, q);
    return node_is_endless(s, &least);
}

bool reserve_for(struct sched *s, const struct inventory *inv, struct entry *e, struct now now)
{
    struct reservation *res = &s->reservation;
    struct place_rules rules = reserve_rules(s, false);
    auto_free size_t *cards = mem_new((inv->card_count + 1) * sizeof *cards);
    int64_t when;
    size_t n = place_soonest(inv, &e->shape->question->request, &rules, now, cards, &when);
    bool node = lacks_node(s, inv, e);
    n = n ? 0 : without_end(s, inv, e, now, cards); /* where it can be told, a booking says it */
    if (n == 0 && !node) {
        if (res->entry == e)
            reserve_clear(s);
        return false;
    }
    keep_cards(s, inv, cards, n);
    res->entry = e;
    res->short_us = node ? node_oldest_us(s, now.boot_us) : 0;
    for (size_t i = 0; i < n; i++) {
        int64_t age = oldest_age(&inv->cards[cards[i]], now.boot_us);
        res->short_us = age > res->short_us ? age : res->short_us;
    }
    if (res->short_us > SHORT_MAX_US)
        res->short_us = SHORT_MAX_US;
    reserve_look(s, inv);
    return true;
}

static bool is_reserved(const struct sched *s, const struct inventory *inv, const char *uuid)
{
    for (size_t i = 0; i < s->reservation.count; i++)
        if (strcmp(inv->cards[s->reservation.cards[i]].card.uuid, uuid) == 0)
            return true;
    return false;
}

/* Turning the mode of a reserved card would make it wait for another hold. */
static bool turns_reserved(const struct sched *s, const struct inventory *inv,
                           const struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->steps[i].kind <= STEP_RESET && is_reserved(s, inv, plan->steps[i].card_uuid))
            return true;
    return false;
}

bool reserve_allows(const struct sched *s, const struct inventory *inv, const struct plan *plan,
                    int64_t limit_us)
{
    return limit_us <= s->reservation.short_us && !turns_reserved(s, inv, plan);
}

bool sched_reservation(const struct sched *s, size_t i, struct sched_reservation *ret)
{
    const struct reservation *res = &s->reservation;
    if (i < s->bookings.count) {
        const struct booking *b = &s->bookings.list[i];
        *ret = (struct sched_reservation){ .job_id = b->entry->id,
                                           .when_us = b->from_us,
                                           .place = &b->place };
        return true;
    }
    if (i > s->bookings.count || !res->entry)
        return false;
    *ret = (struct sched_reservation){ .job_id = res->entry->id,
                                       .when_us = INT64_MAX,
                                       .cards = res->ordinals,
                                       .card_count = res->count };
    return true;
}

void sched_set_closed(struct sched *s, const struct sched_closed *list, size_t count)
{
    struct bookings *b = &s->bookings;
    free(b->closed);
    b->closed = count ? mem_dup(list, count * sizeof *list) : NULL;
    b->closed_count = count;
    b->stale = true;
}
