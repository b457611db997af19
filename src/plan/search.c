#include "plan/search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plan/connect.h"

#define LATER_NOW 5u
#define LATER_SCALE 16u
#define LATER_MAX (UINT32_C(1) << 30)

enum way { WAY_REUSE = 0, WAY_COMPLETE, WAY_CREATE, WAY_DESTROY, WAY_TURN };

/* One thing that could be taken; fields from `dominant` on are its merit, smaller is better. */
struct choice {
    struct stock_card *card;       /* NULL: nothing yet */
    const struct profile *profile; /* NULL: the whole card */
    size_t piece;
    uint32_t destroy; /* bits of pieces */
    uint32_t dominant;
    uint32_t fit;
    enum way way;
    uint32_t destroyed;
    uint32_t worth;     /* occupancy_worth lost; 0 while places of one card are compared */
    uint32_t later;     /* see lost_later; only of cards that lose as much */
    uint32_t lost;      /* places lost, occupancy_room; 0 while cards are compared */
    uint32_t lost_idle; /* the same when idle pieces count as taken */
    uint32_t ordinal;
    uint32_t start;
};

uint32_t search_wanted(const struct request *r)
{
    return r->kind == REQUEST_NOTHING ? 0 : r->count;
}

static bool better(const struct choice *a, const struct choice *b)
{
    const uint32_t ka[] = { a->dominant, a->fit,  a->way,       a->destroyed, a->worth,
                            a->later,    a->lost, a->lost_idle, a->ordinal,   a->start };
    const uint32_t kb[] = { b->dominant, b->fit,  b->way,       b->destroyed, b->worth,
                            b->later,    b->lost, b->lost_idle, b->ordinal,   b->start };
    for (size_t i = 0; i < sizeof ka / sizeof *ka; i++)
        if (ka[i] != kb[i])
            return ka[i] < kb[i];
    return false;
}

static void offer(struct choice *best, const struct choice *c)
{
    if (!best->card || better(c, best))
        *best = *c;
}

static uint32_t room_left(const struct stock_card *c, const struct occupancy *o,
                          const struct profile *p, uint32_t start)
{
    struct occupancy with = *o;
    occupancy_add(&with, c->board, p, start);
    return occupancy_room(&with, c->board);
}

/* What others will have beside it, from some moment on, leaves nothing for it? */
static bool is_kept(const struct stock_card *c, const struct stock_piece *p)
{
    if (c->kept_units & occupancy_mask(p->profile, p->start))
        return true;
    return c->keeps_more && !p->kept && !occupancy_fits(&c->busy, c->board, p->profile, p->start);
}

static void offer_pieces(struct choice *best, struct choice base)
{
    struct stock_card *c = base.card;
    for (size_t i = 0; i < c->piece_count; i++) {
        const struct stock_piece *p = &c->pieces[i];
        if (p->state != PIECE_IDLE || p->profile != base.profile || p->count != 1 || is_kept(c, p))
            continue;
        const struct slice *s = &c->from->card.slices[p->first];
        bool bare = slice_is_bare(s);
        if ((bare && c->no_cuts) || (!bare && !s->full))
            continue;
        base.piece = i;
        base.way = bare ? WAY_COMPLETE : WAY_REUSE;
        base.start = p->start;
        base.lost = p->kept ? 0 : c->room - room_left(c, &c->busy, p->profile, p->start);
        offer(best, &base);
    }
}

static struct occupancy without(const struct stock_card *c, uint32_t destroy)
{
    struct occupancy o = c->all;
    for (size_t i = 0; i < c->piece_count; i++)
        if (destroy >> i & 1)
            occupancy_remove(&o, c->board, c->pieces[i].profile, c->pieces[i].start);
    return o;
}

static bool may_go(const struct stock_piece *p)
{
    return p->state == PIECE_IDLE && !p->kept;
}

static uint32_t idle_pieces(const struct stock_card *c)
{
    uint32_t idle = 0;
    for (size_t i = 0; i < c->piece_count; i++)
        if (may_go(&c->pieces[i]))
            idle |= UINT32_C(1) << i;
    return idle;
}

/* Idle pieces that lie where the new one would. */
static uint32_t in_the_way(const struct stock_card *c, uint32_t units)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < c->piece_count; i++)
        if (may_go(&c->pieces[i]) &&
            (occupancy_mask(c->pieces[i].profile, c->pieces[i].start) & units))
            bits |= UINT32_C(1) << i;
    return bits;
}

/*
 * The fewest idle pieces to destroy so that the profile fits at `start`: those in its way, and,
 * where sums (compute slices, engines) are short, the subset of the others that is smallest and
 * leaves the most room. Exact: there are at most a dozen others, so all subsets are tried.
 */
static bool fewest_to_destroy(const struct choice *c, uint32_t start, uint32_t *ret_destroy)
{
    const struct stock_card *card = c->card;
    uint32_t forced = in_the_way(card, occupancy_mask(c->profile, start));
    uint32_t others = idle_pieces(card) & ~forced;
    uint32_t best = UINT32_MAX;
    uint32_t best_room = 0;
    uint32_t subset = 0;
    do {
        bool smaller =
            best == UINT32_MAX || __builtin_popcount(subset | forced) <= __builtin_popcount(best);
        struct occupancy o = without(card, subset | forced);
        if (smaller && occupancy_fits(&o, card->board, c->profile, start)) {
            uint32_t room = subset ? room_left(card, &o, c->profile, start) : 0;
            bool fewer = best == UINT32_MAX ||
                         __builtin_popcount(subset | forced) < __builtin_popcount(best);
            if (fewer || room > best_room) {
                best = subset | forced;
                best_room = room;
            }
            if (subset == 0)
                break; /* nothing beyond what is in the way */
        }
        subset = (subset - others) & others;
    } while (subset);
    *ret_destroy = best;
    return best != UINT32_MAX;
}

static void offer_new(struct choice *best, struct choice base)
{
    struct stock_card *c = base.card;
    const struct profile *p = base.profile;
    if (c->no_cuts || (!c->mig && !c->may_turn))
        return;
    bool idle = memcmp(&c->all, &c->busy, sizeof c->all) != 0;
    uint32_t room_all = idle ? occupancy_room(&c->all, c->board) : c->room;
    for (uint32_t k = 0; k < p->start_count; k++) {
        base.start = p->starts[k];
        if (!occupancy_fits(&c->busy, c->board, p, base.start) ||
            !fewest_to_destroy(&base, base.start, &base.destroy))
            continue;
        struct occupancy o = without(c, base.destroy);
        base.destroyed = (uint32_t)__builtin_popcount(base.destroy);
        base.way = !c->mig ? WAY_TURN : base.destroy ? WAY_DESTROY : WAY_CREATE;
        base.lost = c->room - room_left(c, &c->busy, p, base.start);
        base.lost_idle = BOARD_PROFILES_MAX * BOARD_UNITS_MAX +
                         (idle ? room_all - room_left(c, &o, p, base.start) : base.lost);
        offer(best, &base);
    }
}

static bool whole_choice(struct stock_card *c, struct choice *ret)
{
    if (c->closed || c->held || c->used || c->no_whole || !c->free || !stock_card_gives_whole(c))
        return false;
    if (c->mig && !c->may_turn)
        return false;
    *ret = (struct choice){ .card = c,
                            .dominant = PPM,
                            .way = c->mig ? WAY_TURN : WAY_REUSE,
                            .destroyed = (uint32_t)c->piece_count,
                            .ordinal = c->from->card.ordinal };
    return true;
}

/* A new instance cannot be better than one of the same fit that is there. */
static bool reused(const struct choice *best, const struct choice *base)
{
    return best->card && best->dominant == base->dominant && best->fit == base->fit &&
           best->way == WAY_REUSE;
}

/*
 * A need that a part of some card is enough for does not take a whole one just
 * because that is to be had sooner: it would keep far more than it asked for.
 * Cards that are kept for somebody count: else keeping one would let more go.
 */
static bool parts_are_enough(const struct stock *s, const struct request *r)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    for (size_t i = 0; r->kind == REQUEST_NEED && i < s->card_count; i++) {
        const struct stock_card *c = &s->cards[i];
        bool there = c->closed != STOCK_OTHER_POOL && c->closed != STOCK_UNHEALTHY &&
                     c->closed != STOCK_QUARANTINED;
        if (there && stock_card_gives_slices(c) && request_fits(r, c->board, fits) &&
            fits[0].dominant_ppm < PPM)
            return true;
    }
    return false;
}

static uint32_t worth_lost(const struct choice *c)
{
    const struct stock_card *card = c->card;
    struct occupancy with = card->busy;
    if (!c->profile || (c->way <= WAY_COMPLETE && card->pieces[c->piece].kept))
        return 0;
    occupancy_add(&with, card->board, c->profile, c->start);
    return occupancy_worth(&card->busy, card->board) - occupancy_worth(&with, card->board);
}

/* `o` is what may not be touched of the card, and perhaps a piece more. */
static uint32_t worth_later(const struct stock_card *c, const struct occupancy *o,
                            const struct choice *more)
{
    uint32_t sum = LATER_NOW * occupancy_worth(o, c->board);
    uint32_t n = LATER_NOW;
    for (size_t i = 0; i < c->piece_count; i++) {
        const struct stock_piece *p = &c->pieces[i];
        if (!p->profile || p->kept || (p->state != PIECE_BUSY && p->state != PIECE_TAKEN))
            continue;
        struct occupancy left = *o;
        occupancy_remove(&left, c->board, p->profile, p->start);
        sum += occupancy_worth(&left, c->board);
        n++;
    }
    if (more) {
        sum += occupancy_worth(&c->busy, c->board);
        n++;
    }
    return LATER_SCALE * sum / n;
}

/*
 * What the card loses of its worth on an average of now, counted five times, and of when one of
 * its slices has gone: of two cards that lose as much now, one may get back more.
 */
static uint32_t lost_later(const struct choice *c)
{
    const struct stock_card *card = c->card;
    assert(card);
    struct occupancy with = card->busy;
    occupancy_add(&with, card->board, c->profile, c->start);
    return LATER_MAX + worth_later(card, &card->busy, NULL) - worth_later(card, &with, c);
}

static bool same_pieces(const struct stock_card *a, const struct stock_card *b)
{
    bool same = a->piece_count == b->piece_count && strcmp(a->board->name, b->board->name) == 0;
    for (size_t i = 0; same && i < a->piece_count; i++) {
        const struct stock_piece *p = &a->pieces[i], *q = &b->pieces[i];
        same = p->profile && q->profile && p->profile->id == q->profile->id &&
               p->start == q->start && p->state == q->state && p->kept == q->kept;
    }
    return same;
}

static bool equal_so_far(const struct choice *a, const struct choice *b)
{
    return a->card && a->dominant == b->dominant && a->fit == b->fit && a->way == b->way &&
           a->destroyed == b->destroyed && a->worth == b->worth;
}

/* Looks further where two cards are equal so far. It is dear, and seldom needed. */
static void look_later(struct choice *best, struct choice *here)
{
    if (!here->worth || !equal_so_far(best, here))
        return;
    if (same_pieces(best->card, here->card)) {
        here->later = best->later;
        return;
    }
    if (!best->later)
        best->later = lost_later(best);
    here->later = lost_later(here);
}

/* The best place of a profile on one card, by room; and that one against other cards', by worth. */
static void offer_profile(struct choice *best, const struct choice *base)
{
    struct choice here = { .card = NULL };
    if (base->card->mig)
        offer_pieces(&here, *base);
    if (!reused(best, base) && !reused(&here, base))
        offer_new(&here, *base);
    if (!here.card)
        return;
    here.worth = worth_lost(&here);
    here.lost = here.lost_idle = 0; /* fewer places of another kind are no merit of a card */
    look_later(best, &here);
    offer(best, &here);
}

static void offer_card(struct choice *best, struct stock_card *c, const struct request *r,
                       bool parts_only)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    if (c->closed || c->held || (r->spread && c->used))
        return;
    size_t n = request_fits(r, c->board, fits);
    size_t rank = 0;
    for (size_t i = 0; i < n; i++) {
        if (best->card && fits[i].dominant_ppm > best->dominant)
            return;
        if (fits[i].dominant_ppm < PPM || fits[rank].dominant_ppm < PPM)
            rank = i; /* all of a card is all of a card, in one piece or as a slice */
        struct choice whole;
        if (fits[i].profile && !c->no_slices && stock_card_gives_slices(c)) {
            struct choice base = { .card = c,
                                   .profile = fits[i].profile,
                                   .dominant = fits[i].dominant_ppm,
                                   .fit = (uint32_t)rank,
                                   .ordinal = c->from->card.ordinal };
            offer_profile(best, &base);
        } else if (!fits[i].profile && !parts_only && whole_choice(c, &whole)) {
            whole.fit = (uint32_t)rank;
            offer(best, &whole);
        }
    }
}

static void take(struct stock *s, const struct choice *c, uint32_t task)
{
    if (!c->profile)
        stock_take_whole(s, c->card, task);
    else if (c->way <= WAY_COMPLETE)
        stock_take_piece(s, c->card, c->piece, task);
    else
        stock_take_new(s, c->card, c->profile, c->start, c->destroy, task);
}

static uint32_t take_tasks(struct stock *s, const struct request *r)
{
    bool parts_only = parts_are_enough(s, r);
    for (uint32_t task = 0; task < r->count; task++) {
        struct choice best = { .card = NULL };
        for (size_t i = 0; i < s->card_count; i++)
            offer_card(&best, &s->cards[i], r, parts_only);
        if (!best.card)
            return task;
        take(s, &best, task);
    }
    return r->count;
}

static int by_merit(const void *a, const void *b)
{
    return better(a, b) ? -1 : better(b, a);
}

static int by_ordinal(const void *a, const void *b)
{
    const struct choice *x = a;
    const struct choice *y = b;
    uint32_t first = x->card->from->card.ordinal;
    uint32_t second = y->card->from->card.ordinal;
    return first < second ? -1 : first > second;
}

/* In their own order: a job's first device is its lowest card. */
static void take_whole_cards(struct stock *s, struct choice *picked, size_t n)
{
    qsort(picked, n, sizeof *picked, by_ordinal);
    for (size_t i = 0; i < n; i++)
        stock_take_whole(s, picked[i].card, 0);
}

/* The list is in order of merit; of equally good sets the first is taken. */
static void take_best_connected(struct stock *s, const struct choice *list, size_t n, size_t want)
{
    const struct card *cards[CONNECT_MAX] = { NULL };
    uint32_t costs[CONNECT_MAX] = { 0 };
    size_t chosen[CONNECT_MAX];
    if (n > CONNECT_MAX)
        n = CONNECT_MAX;
    for (size_t i = 0; i < n; i++) {
        cards[i] = &list[i].card->from->card;
        costs[i] = 1000 * (uint32_t)list[i].way + list[i].destroyed;
    }
    connect_choose(cards, costs, n, want, chosen);
    auto_free struct choice *picked = mem_new(want * sizeof *picked);
    for (size_t i = 0; i < want; i++)
        picked[i] = list[chosen[i]];
    take_whole_cards(s, picked, want);
}

static uint32_t take_cards(struct stock *s, const struct request *r)
{
    auto_free struct choice *list = mem_new((s->card_count + 1) * sizeof *list);
    size_t n = 0;
    for (size_t i = 0; i < s->card_count; i++)
        n += whole_choice(&s->cards[i], &list[n]);
    if (n < r->count)
        return (uint32_t)n;
    qsort(list, n, sizeof *list, by_merit);
    if (r->count < n && r->count <= CONNECT_MAX) {
        take_best_connected(s, list, n, r->count);
        return r->count;
    }
    take_whole_cards(s, list, r->count);
    return r->count;
}

/* One card, where a slice that is all of it is as good: whatever changes the least. */
static uint32_t take_card_or_7g(struct stock *s, const struct request *r)
{
    struct choice best = { .card = NULL };
    for (size_t i = 0; i < s->card_count; i++) {
        struct choice one = { .card = NULL };
        offer_card(&one, &s->cards[i], r, false);
        struct choice whole;
        if (whole_choice(&s->cards[i], &whole) && (!one.card || whole.way < one.way))
            one = whole;
        one.fit = 0;
        one.dominant = 0;
        if (one.card)
            offer(&best, &one);
    }
    if (!best.card)
        return 0;
    take(s, &best, 0);
    return 1;
}

uint32_t search_take(struct stock *s, const struct request *r)
{
    if (r->kind == REQUEST_NOTHING)
        return 0;
    if (r->kind != REQUEST_CARDS)
        return take_tasks(s, r);
    return r->or_7g && r->count == 1 ? take_card_or_7g(s, r) : take_cards(s, r);
}
