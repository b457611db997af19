/*
 * bench_acceptance [ARRIVALS] - how much of what is asked is accepted?
 *
 * A100-80GB, 100 cards, 8 and 1; requests for one slice of six profiles come
 * as a Poisson process at the rate where the memory units they offer equal the
 * capacity, and stay for exponential times of one mean for all. What does not
 * fit is refused; nothing is ever moved. 1.5 million arrivals, of which the
 * first tenth do not count. Printed is the share of the requested memory units
 * that was accepted, in percent, for each mix of profiles.
 *
 * Every rule has two halves: where on a card (once for each state of a card)
 * and on which card. `place_request` is what the scheduler does: the place on a
 * card is asked of it, the card is compared by occupancy_worth, and before the
 * table is printed it is run itself, on eight cards, against the same arrivals.
 *
 * What was tried, on 100 cards (uniform, small, big, bimodal; ± 0.2):
 *   fewest places lost, each counting 1               87.2  88.9  89.2  88.7
 *   places of larger profiles count by their units    90.9  91.9  90.5  89.8
 *   by units and each profile's share in the mix      90.9  88.9  90.4  89.6
 *   by units, as a share of what the card had         89.5  90.8  89.8  88.9
 *   by how scarce a profile's places are on all cards 91.0  91.9  90.5  89.7
 *   is there any place left for the profile           77.1  85.1  76.4  77.4
 *   by units, when some of those there will have left 89.9  91.5  89.9  89.7
 *   value of a state, policy iteration on one card    90.8  84.0  90.3  89.7
 *   by units, and 3 for each unit that can be filled  91.1  92.4  90.5  90.0
 *   the same, and ties to the card losing few places  88.2  89.8  89.5  89.3
 *   the same for the place on the card, too           91.2  92.4  90.5  90.0
 *   by u (u + 4), and 20 for each unit to be filled   91.2  92.3  90.4  89.8
 *   the same, ties by worth when one slice has gone   91.3  92.6  90.5  89.9
 *   the same, ties by worth when any of them may have 91.3  92.5  90.5  90.2
 * The last but one is what plan/occupancy.h and plan/search.c do; the last has
 * to look at every set of slices that may go. Any weight from 20 to 30 is as
 * good. By worth on the card, too, 24 of 113 orders of slices on an empty card
 * fail instead of 15. Weights of 8 and of 22 numbers about a card, found by
 * random search on the figure itself, came to 91.4 92.6 90.6 90.2: little is
 * left in comparing cards one by one. On one card all rules are nearly equal.
 *
 * Two rules that look at all cards together were tried, too. The value of the
 * whole server as a sum over its cards and over how many of them have a place
 * for each profile, learned from the losses that follow (least squares temporal
 * differences; 723 states of a card, or 80 numbers about it), came to 62 to 86 on
 * uniform: it knows too little of states that the rule it learned from avoids.
 * And a look ahead: each of the six best places is tried in up to 200 futures
 * of 250 arrivals, the same for all six, in which this rule goes on, and one
 * that loses plainly less is taken. Over 8,000 arrivals of the big mix that
 * accepted 0.1 more (90.9 beside 90.8), half a million times as slowly: little
 * is left in making a single choice better.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/unit/boards.h"
#include "plan/occupancy.h"
#include "plan/place.h"

#define KINDS 6
#define PLACES 18
#define STATES_MAX 1024
#define CARDS_MAX 100
#define NOWHERE (-1)

struct kind {
    const char *name;
    const char *order; /* starts as the driver picks them, one letter each: a is 0 */
};

static const struct kind kinds[KINDS] = { { "1g.10gb", "gefabcd" }, { "1g.20gb", "geac" },
                                          { "2g.20gb", "eac" },     { "3g.40gb", "ea" },
                                          { "4g.40gb", "a" },       { "7g.80gb", "a" } };

struct mix {
    const char *name;
    double shares[KINDS];
};

static const struct mix mixes[] = {
    { "uniform", { 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6 } },
    { "small", { .30, .25, .20, .10, .10, .05 } },
    { "big", { .05, .10, .10, .20, .25, .30 } },
    { "bimodal", { .30, .15, .05, .05, .15, .30 } },
};
#define MIXES (sizeof mixes / sizeof *mixes)

struct spot {
    const struct profile *profile;
    int kind;
    uint32_t start;
};

/* What is on a card, as a set of spots, and what follows when one is taken or left. */
struct state {
    uint32_t set;
    struct occupancy o;
    uint32_t used; /* memory units */
    int with[PLACES], without[PLACES];
};

static struct board board;
static struct spot spots[PLACES];
static struct state states[STATES_MAX];
static int state_count;

struct rule {
    const char *name;
    int spot[STATES_MAX][KINDS];     /* where on a card in this state; or NOWHERE */
    double merit[STATES_MAX][KINDS]; /* of that card among the others */
};

static uint64_t random_state;

static double draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return ((double)(random_state * 2685821657736338717u >> 11) + 0.5) / 9007199254740992.0;
}

static double draw_exponential(void)
{
    return -log(draw());
}

/* ---- the states of a card ---- */

static void list_spots(void)
{
    int n = 0;
    for (int k = 0; k < KINDS; k++) {
        const struct profile *p = board_profile_by_name(&board, kinds[k].name);
        for (uint32_t i = 0; i < p->start_count; i++)
            spots[n++] = (struct spot){ .profile = p, .kind = k, .start = p->starts[i] };
    }
    if (n != PLACES)
        abort();
}

static int state_of(uint32_t set)
{
    for (int i = 0; i < state_count; i++)
        if (states[i].set == set)
            return i;
    struct state *s = &states[state_count];
    if (state_count == STATES_MAX)
        abort();
    *s = (struct state){ .set = set };
    for (int i = 0; i < PLACES; i++)
        if (set >> i & 1) {
            occupancy_add(&s->o, &board, spots[i].profile, spots[i].start);
            s->used += spots[i].profile->units;
        }
    return state_count++;
}

static void list_states(void)
{
    (void)state_of(0); /* the first: nothing there */
    for (int i = 0; i < state_count; i++)
        for (int k = 0; k < PLACES; k++) {
            bool fits = occupancy_fits(&states[i].o, &board, spots[k].profile, spots[k].start);
            states[i].with[k] = fits ? state_of(states[i].set | 1u << k) : NOWHERE;
        }
    for (int i = 0; i < state_count; i++)
        for (int k = 0; k < PLACES; k++)
            states[i].without[k] =
                states[i].set >> k & 1 ? state_of(states[i].set & ~(1u << k)) : NOWHERE;
}

static int spot_at(int kind, uint32_t start)
{
    for (int i = 0; i < PLACES; i++)
        if (spots[i].kind == kind && spots[i].start == start)
            return i;
    return NOWHERE;
}

/* ---- the rules ---- */

static int spot_of_driver(const struct state *s, int kind)
{
    for (const char *at = kinds[kind].order; *at; at++) {
        int spot = spot_at(kind, (uint32_t)(*at - 'a'));
        if (s->with[spot] != NOWHERE)
            return spot;
    }
    return NOWHERE;
}

static double units_of_places(const struct occupancy *o)
{
    double units = 0;
    for (int i = 0; i < PLACES; i++)
        if (occupancy_fits(o, &board, spots[i].profile, spots[i].start))
            units += spots[i].profile->units;
    return units;
}

static int spot_of_least_lost(const struct state *s, int kind)
{
    int best = NOWHERE;
    double most = -1;
    for (int i = 0; i < PLACES; i++) {
        if (spots[i].kind != kind || s->with[i] == NOWHERE)
            continue;
        double left = units_of_places(&states[s->with[i]].o);
        if (left > most) {
            most = left;
            best = i;
        }
    }
    return best;
}

/* The inventory of one card in this state, everything busy. */
static void fill_card(struct inventory_card *c, const struct state *s)
{
    card_turn(c, true);
    for (int i = 0; i < PLACES; i++)
        if (s->set >> i & 1)
            (void)card_cut(c, spots[i].profile->name, spots[i].start, 1);
}

/* The card and spot that place_request gives; NOWHERE. */
static int ask_place(const struct inventory *inv, int kind, uint32_t *ret_card)
{
    struct request r = { .kind = REQUEST_SLICES, .count = 1 };
    struct now now = { .boot_us = CLOCK_HOUR };
    struct place place;
    struct plan plan;
    (void)snprintf(r.profile, sizeof r.profile, "%s", kinds[kind].name);
    if (place_request(inv, &r, NULL, now, &place, &plan, NULL) != PLACE_NOW)
        return NOWHERE;
    int spot = spot_at(kind, place.items[0].start);
    *ret_card = place.items[0].ordinal;
    place_done(&place);
    plan_done(&plan);
    return spot;
}

static int spot_of_place_request(const struct state *s, int kind)
{
    struct inventory inv = { .cards = NULL };
    uint32_t card;
    fill_card(inventory_add(&inv, board), s);
    int spot = ask_place(&inv, kind, &card);
    inventory_done(&inv);
    return spot;
}

typedef int spot_fn(const struct state *s, int kind);
typedef double merit_fn(const struct state *before, const struct state *after);

static double merit_none(const struct state *before, const struct state *after)
{
    (void)before;
    (void)after;
    return 0;
}

static double merit_full(const struct state *before, const struct state *after)
{
    (void)after;
    return before->used + before->o.slices;
}

static double merit_capability(const struct state *before, const struct state *after)
{
    return units_of_places(&after->o) - units_of_places(&before->o);
}

/* Sixteen times the mean of its worth now, five times, and when any one slice has gone. */
static uint32_t worth_later(const struct state *s)
{
    uint32_t sum = 5 * occupancy_worth(&s->o, &board), n = 5;
    for (int i = 0; i < PLACES; i++)
        if (s->without[i] != NOWHERE) {
            sum += occupancy_worth(&states[s->without[i]].o, &board);
            n++;
        }
    return 16 * sum / n;
}

static double merit_worth(const struct state *before, const struct state *after)
{
    double now = (double)occupancy_worth(&after->o, &board) - occupancy_worth(&before->o, &board);
    return 1e6 * now + (double)worth_later(after) - worth_later(before);
}

static void fill_rule(struct rule *r, const char *name, spot_fn *where, merit_fn *merit)
{
    r->name = name;
    for (int i = 0; i < state_count; i++)
        for (int k = 0; k < KINDS; k++) {
            int spot = r->spot[i][k] = where(&states[i], k);
            if (spot != NOWHERE)
                r->merit[i][k] = merit(&states[i], &states[states[i].with[spot]]);
        }
}

/* ---- the simulation ---- */

struct departure {
    double at;
    int card, spot;
};

/* A heap, the soonest first. */
struct departures {
    struct departure list[CARDS_MAX * 8];
    int count;
};

static void push(struct departures *d, struct departure x)
{
    int i = d->count++;
    for (; i && d->list[(i - 1) / 2].at > x.at; i = (i - 1) / 2)
        d->list[i] = d->list[(i - 1) / 2];
    d->list[i] = x;
}

static struct departure pop(struct departures *d)
{
    struct departure first = d->list[0], x = d->list[--d->count];
    int i = 0;
    for (int c = 1; c < d->count; i = c, c = 2 * i + 1) {
        c += c + 1 < d->count && d->list[c + 1].at < d->list[c].at;
        if (d->list[c].at >= x.at)
            break;
        d->list[i] = d->list[c];
    }
    d->list[i] = x;
    return first;
}

struct world {
    int cards[CARDS_MAX]; /* their states */
    int count;
    struct departures leaving;
    double now;
};

static double mean_units(const struct mix *m)
{
    double mean = 0;
    for (int k = 0; k < KINDS; k++)
        mean += m->shares[k] * board_profile_by_name(&board, kinds[k].name)->units;
    return mean;
}

static int draw_kind(const struct mix *m)
{
    double u = draw();
    int k = 0;
    for (; k < KINDS - 1 && u >= m->shares[k]; k++)
        u -= m->shares[k];
    return k;
}

static int best_card(const struct world *w, const struct rule *r, int kind)
{
    int best = NOWHERE;
    for (int i = 0; i < w->count; i++) {
        int s = w->cards[i];
        if (r->spot[s][kind] != NOWHERE &&
            (best == NOWHERE || r->merit[s][kind] > r->merit[w->cards[best]][kind]))
            best = i;
    }
    return best;
}

/* What place_request says, which must be the card and spot of the rule. */
static void check_place(const struct world *w, const struct rule *r, int kind)
{
    struct inventory inv = { .cards = NULL };
    uint32_t card = 0;
    for (int i = 0; i < w->count; i++)
        fill_card(inventory_add(&inv, board), &states[w->cards[i]]);
    int spot = ask_place(&inv, kind, &card);
    int expected = best_card(w, r, kind);
    bool same = expected == NOWHERE
                    ? spot == NOWHERE
                    : (int)card == expected && spot == r->spot[w->cards[expected]][kind];
    inventory_done(&inv);
    if (same)
        return;
    (void)fprintf(stderr, "bench: place_request puts %s elsewhere than the rule\n",
                  kinds[kind].name);
    exit(1);
}

/* One arrival, after the departures before it. Returns the card, or NOWHERE. */
static int arrive(struct world *w, const struct rule *r, int kind, double interval)
{
    w->now += interval;
    while (w->leaving.count && w->leaving.list[0].at <= w->now) {
        struct departure d = pop(&w->leaving);
        w->cards[d.card] = states[w->cards[d.card]].without[d.spot];
    }
    int card = best_card(w, r, kind);
    double stay = draw_exponential(); /* drawn in any case: all rules see the same arrivals */
    if (card == NOWHERE)
        return NOWHERE;
    int spot = r->spot[w->cards[card]][kind];
    w->cards[card] = states[w->cards[card]].with[spot];
    push(&w->leaving, (struct departure){ w->now + stay, card, spot });
    return card;
}

static double simulate(int cards, const struct mix *m, const struct rule *r, long arrivals)
{
    static struct world w;
    double rate = 8.0 * cards / mean_units(m), asked = 0, accepted = 0;
    w = (struct world){ .count = cards };
    random_state = 88172645463325252u;
    for (long n = 0; n < arrivals; n++) {
        double interval = draw_exponential() / rate;
        int kind = draw_kind(m);
        double units = board_profile_by_name(&board, kinds[kind].name)->units;
        int card = arrive(&w, r, kind, interval);
        if (n < arrivals / 10)
            continue;
        asked += units;
        accepted += card == NOWHERE ? 0 : units;
    }
    return 100 * accepted / asked;
}

/* The daemon's own function, on eight cards and arrivals of its own. */
static void check_rule(const struct rule *r, long arrivals)
{
    static struct world w;
    const struct mix *m = &mixes[0];
    w = (struct world){ .count = 8 };
    random_state = 42;
    for (long n = 0; n < arrivals; n++) {
        int kind = draw_kind(m);
        (void)arrive(&w, r, kind, draw_exponential() * mean_units(m) / 64);
        check_place(&w, r, draw_kind(m));
    }
    printf("place_request agreed with its row %ld times on 8 cards\n", arrivals);
}

/*
 * Kaufman-Roberts: the occupation of `cards` × 8 units when everything is repacked at every
 * arrival, and starts and compute slices are no matter.
 */
static double bound(int cards, const struct mix *m)
{
    static double q[8 * CARDS_MAX + 1];
    int capacity = 8 * cards;
    double rate = capacity / mean_units(m), total = 0, accepted = 0;
    for (int n = 0; n <= capacity; n++) {
        q[n] = n == 0;
        for (int k = 0; n && k < KINDS; k++) {
            int units = (int)board_profile_by_name(&board, kinds[k].name)->units;
            if (units <= n)
                q[n] += rate * m->shares[k] * units * q[n - units] / n;
        }
        total += q[n];
    }
    for (int k = 0; k < KINDS; k++) {
        int units = (int)board_profile_by_name(&board, kinds[k].name)->units;
        for (int n = 0; n + units <= capacity; n++)
            accepted += q[n] / total * rate * m->shares[k] * units;
    }
    return 100 * accepted / capacity;
}

static void print_row(const char *name, int cards, const struct rule *r, long arrivals)
{
    printf("  %-40s", name);
    for (size_t m = 0; m < MIXES; m++) {
        printf(" %8.2f", r ? simulate(cards, &mixes[m], r, arrivals) : bound(cards, &mixes[m]));
        (void)fflush(stdout);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    static const int sizes[] = { 100, 8, 1 };
    static struct rule rules[4];
    long arrivals = argc > 1 ? strtol(argv[1], NULL, 10) : 1500000;
    if (arrivals < 10) {
        (void)fprintf(stderr, "usage: bench_acceptance [ARRIVALS], at least 10\n");
        return 2;
    }
    board = board_a100_80();
    list_spots();
    list_states();
    fill_rule(&rules[0], "first card, the driver's place", spot_of_driver, merit_none);
    fill_rule(&rules[1], "fullest card, the driver's place", spot_of_driver, merit_full);
    fill_rule(&rules[2], "least lost capability", spot_of_least_lost, merit_capability);
    fill_rule(&rules[3], "place_request", spot_of_place_request, merit_worth);
    check_rule(&rules[3], 2000);
    for (size_t i = 0; i < 3; i++) {
        printf("%3d A100-80GB, %% of units accepted       ", sizes[i]);
        for (size_t m = 0; m < MIXES; m++)
            printf(" %8s", mixes[m].name);
        printf("\n");
        for (size_t k = 0; k < 4; k++)
            print_row(rules[k].name, sizes[i], &rules[k], arrivals);
        print_row("bound: repack at every arrival", sizes[i], NULL, arrivals);
    }
    return 0;
}
