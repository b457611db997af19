/*
 * bench_planning - what planning costs, and that no order of creation fails.
 *
 * 1. All 113 orders in which sets of 1g, 2g, 3g, 4g and 7g can be wished on an
 *    empty A100: as a layout, one by one where place_request puts them, and one
 *    by one where the driver would.
 * 2. place_request on eight A100-80GB that are full to different degrees, with
 *    everything busy, and with half of the slices idle.
 * 3. The plan of eight cards at once, for the wish and the card that take
 *    longest of many random ones.
 *
 * Each time is the least of 25, of a plan of 5, of the same question, since
 * others use the machine as well: the worst is the worst question.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../tests/unit/dice.h"
#include "../tests/unit/layouts.h"
#include "plan/occupancy.h"
#include "plan/place.h"

#define REPEAT_PLACE 25
#define REPEAT_PLAN 5

static double us_now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

typedef void work_fn(void *arg);

static double us_of(work_fn *work, void *arg, int repeat)
{
    double least = 0;
    for (int i = 0; i < repeat; i++) {
        double begun = us_now();
        work(arg);
        double took = us_now() - begun;
        least = i && least < took ? least : took;
    }
    return least;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *what, double *took, size_t n)
{
    qsort(took, n, sizeof *took, by_size);
    printf("%-46s %8.1f us median %8.1f us at 99 %% %8.1f us worst of %zu\n", what, took[n / 2],
           took[n * 99 / 100], took[n - 1], n);
}

/* ---- one request on eight cards ---- */

struct placing {
    struct inventory inv;
    struct request request;
};

static void place_one(void *arg)
{
    struct placing *p = arg;
    struct now now = { .boot_us = CLOCK_HOUR };
    struct place place;
    struct plan plan;
    if (place_request(&p->inv, &p->request, NULL, now, &place, &plan, NULL) != PLACE_NOW)
        return;
    place_done(&place);
    plan_done(&plan);
}

/* Up to `tries` slices where they happen to fit; one in `idle` is idle, none where that is 0. */
static void fill_at_random(struct dice *d, struct inventory_card *c, uint64_t tries, uint64_t idle)
{
    const struct board *b = &c->card.board;
    struct occupancy o = { 0 };
    for (; tries > 0; tries--) {
        const struct profile *p = &b->profiles[dice_below(d, b->profile_count)];
        uint32_t start = p->starts[dice_below(d, p->start_count)];
        if (!occupancy_fits(&o, b, p, start))
            continue;
        occupancy_add(&o, b, p, start);
        (void)card_cut(c, p->name, start, idle && dice_below(d, idle) == 0 ? 0 : 7);
    }
}

static void placing_times(const char *what, uint64_t idle)
{
    static const char *const profiles[] = { "1g.10gb", "1g.20gb", "2g.20gb",
                                            "3g.40gb", "4g.40gb", "7g.80gb" };
    static double took[600];
    struct dice d = { .state = 8 };
    for (size_t i = 0; i < 600; i++) {
        struct placing p = { .request = { .kind = REQUEST_SLICES, .count = 1 } };
        for (int k = 0; k < 8; k++) {
            struct inventory_card *c = inventory_add(&p.inv, board_a100_80());
            card_turn(c, true);
            fill_at_random(&d, c, dice_below(&d, 10), idle);
        }
        (void)snprintf(p.request.profile, sizeof p.request.profile, "%s", profiles[i % 6]);
        took[i] = us_of(place_one, &p, REPEAT_PLACE);
        inventory_done(&p.inv);
    }
    print_times(what, took, 600);
}

/* ---- the hardest plan ---- */

struct hard {
    struct inventory inv;
    struct layout layout; /* one wish */
    size_t cards;
};

static void plan_cards(void *arg)
{
    struct hard *h = arg;
    for (size_t i = 0; i < h->cards; i++) {
        AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
        layout_plan(&h->inv.cards[0], &h->layout.wishes[0], &ch);
    }
}

/* Half of the wishes are counted against what fits an empty card, or few would be possible. */
static char *wish_at_random(struct dice *d, const struct board *b)
{
    struct text t = TEXT_INIT;
    struct occupancy o = { 0 };
    bool fitting = dice_bool(d);
    text_add(&t, "slices: [");
    for (uint64_t tries = 1 + dice_below(d, 24), n = 0; tries > 0 && n < b->units; tries--) {
        const struct profile *p = &b->profiles[dice_below(d, b->profile_count)];
        uint32_t start = p->starts[dice_below(d, p->start_count)];
        if (fitting && !occupancy_fits(&o, b, p, start))
            continue;
        if (fitting)
            occupancy_add(&o, b, p, start);
        text_addf(&t, "%s%s", n++ ? ", " : "", p->name);
    }
    text_add(&t, "]");
    return text_take(&t);
}

static void hard_begin(struct hard *h, struct dice *d, const char *board, char **ret_wish)
{
    struct err e = ERR_INIT;
    *h = (struct hard){ .cards = 1 };
    struct inventory_card *c = layouts_card(&h->inv, board);
    fill_at_random(d, c, dice_below(d, 16), 2);
    *ret_wish = wish_at_random(d, &c->card.board);
    auto_free char *text = text_fmt("cards: [{card: gpu0, %s}]", *ret_wish);
    if (layout_parse("wish", text, strlen(text), &h->layout, &e) < 0) {
        (void)fprintf(stderr, "bench: %s\n", e.text);
        exit(1);
    }
}

static void hard_done(struct hard *h)
{
    inventory_done(&h->inv);
    layout_done(&h->layout);
}

static void hardest_of(const char *board)
{
    double most = 0;
    uint64_t seed = 0;
    auto_free char *wish = NULL;
    struct hard h;
    for (uint64_t i = 1; i <= 1500; i++) {
        struct dice d = { .state = i };
        auto_free char *said = NULL;
        hard_begin(&h, &d, board, &said);
        double took = us_of(plan_cards, &h, REPEAT_PLAN);
        seed = took > most ? i : seed;
        most = took > most ? took : most;
        hard_done(&h);
    }
    struct dice d = { .state = seed };
    hard_begin(&h, &d, board, &wish);
    auto_free char *there = layouts_text(&h.inv.cards[0].card);
    h.cards = 8;
    printf("%-16s 8 cards %8.3f ms   %s on %s\n", board, us_of(plan_cards, &h, REPEAT_PLAN) / 1e3,
           wish, *there ? there : "nothing");
    (void)fflush(stdout);
    hard_done(&h);
}

/* ---- orders on an empty A100 ---- */

static const char *const five[] = { "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb" };
static const char *const driver_orders[] = { "gefabcd", "eac", "ea", "a", "a" };

struct orders {
    size_t order[8], depth, count, layout_fails, place_fails, driver_fails;
};

static bool whole_wish(const struct orders *o)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    AUTO(text) struct text wish = TEXT_INIT;
    card_turn(inventory_add(&inv, board_a100_80()), true);
    for (size_t i = 0; i < o->depth; i++)
        text_addf(&wish, "%s%s", i ? ", " : "slices: [", five[o->order[i]]);
    text_add(&wish, "]");
    layouts_plan(&inv.cards[0], wish.buf, &ch);
    return ch.verdict == LAYOUT_TO_DO;
}

static bool one_by_one(const struct orders *o)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct now now = { .boot_us = CLOCK_HOUR };
    card_turn(inventory_add(&inv, board_a100_80()), true);
    for (size_t i = 0; i < o->depth; i++) {
        struct request r = { .kind = REQUEST_SLICES, .count = 1 };
        struct place place;
        struct plan plan;
        (void)snprintf(r.profile, sizeof r.profile, "%s", five[o->order[i]]);
        if (place_request(&inv, &r, NULL, now, &place, &plan, NULL) != PLACE_NOW)
            return false;
        (void)card_cut(&inv.cards[0], r.profile, place.items[0].start, i + 1);
        place_done(&place);
        plan_done(&plan);
    }
    return true;
}

static bool by_the_driver(const struct orders *o)
{
    struct board b = board_a100_80();
    struct occupancy there = { 0 };
    for (size_t i = 0; i < o->depth; i++) {
        const struct profile *p = board_profile_by_name(&b, five[o->order[i]]);
        const char *at = driver_orders[o->order[i]];
        while (*at && !occupancy_fits(&there, &b, p, (uint32_t)(*at - 'a')))
            at++;
        if (!*at)
            return false;
        occupancy_add(&there, &b, p, (uint32_t)(*at - 'a'));
    }
    return true;
}

/* Could the set be there at all? Trying every start, since the planner is what is measured. */
static bool holds(const struct orders *o, const struct board *b, const struct occupancy *there,
                  size_t from)
{
    if (from == o->depth)
        return true;
    const struct profile *p = board_profile_by_name(b, five[o->order[from]]);
    for (uint32_t k = 0; k < p->start_count; k++) {
        struct occupancy with = *there;
        if (!occupancy_fits(there, b, p, p->starts[k]))
            continue;
        occupancy_add(&with, b, p, p->starts[k]);
        if (holds(o, b, &with, from + 1))
            return true;
    }
    return false;
}

static void all_orders(struct orders *o, const struct board *b)
{
    const struct occupancy empty = { 0 };
    for (size_t i = 0; i < 5; i++) {
        o->order[o->depth++] = i;
        if (holds(o, b, &empty, 0)) {
            o->count++;
            o->layout_fails += !whole_wish(o);
            o->place_fails += !one_by_one(o);
            o->driver_fails += !by_the_driver(o);
            all_orders(o, b);
        }
        o->depth--;
    }
}

int main(void)
{
    static const char *const boards[] = { "a100-80gb", "h100-80gb-sxm", "b200-180gb", "a30",
                                          "rtx-pro-6000" };
    struct orders o = { .depth = 0 };
    struct board b = board_a100_80();
    all_orders(&o, &b);
    printf("%zu orders on an empty A100: as a layout %zu fail; one by one, place_request %zu, "
           "the driver %zu\n",
           o.count, o.layout_fails, o.place_fails, o.driver_fails);
    placing_times("place_request, 8 cards, all that is there busy", 0);
    placing_times("place_request, 8 cards, half of it idle", 2);
    for (size_t i = 0; i < sizeof boards / sizeof *boards; i++)
        hardest_of(boards[i]);
    return 0;
}
