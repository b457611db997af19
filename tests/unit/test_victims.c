#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dice.h"
#include "sched/victims.h"

#define MOST 12
#define CARDS 5
#define TASKS 3

/* A problem, and by what its questions are answered. */
struct world {
    struct victims v;
    struct victims_card cards[CARDS];
    uint32_t served[CARDS][1u << VICTIMS_ON_CARD];
    uint64_t gives[2][MOST], loses[MOST], cap[3];
    size_t group[MOST];
    bool under[MOST];
    struct victims_sum sums[2];
    uint32_t refuses; /* one of these at least must go; 0: that does not matter */
    size_t asked, judged;
};

static uint32_t serves(void *arg, size_t card, uint32_t gone)
{
    struct world *w = arg;
    uint32_t tasks = w->served[card][gone];
    w->asked++;
    return tasks < w->v.want ? tasks : w->v.want;
}

/* One of `refuses` at least must go. */
static bool fits(void *arg, const size_t *chosen, size_t count)
{
    struct world *w = arg;
    w->judged++;
    for (size_t i = 0; i < count; i++)
        if (w->refuses >> chosen[i] & 1)
            return true;
    return !w->refuses;
}

/* ---- by trying all ------------------------------------------------------------ */

static bool caps_hold(const struct world *w, uint32_t set)
{
    uint64_t sum[3] = { 0 };
    bool under[3] = { false };
    for (size_t i = 0; w->v.caps.group_count && i < w->v.count; i++)
        if (set >> i & 1) {
            sum[w->group[i]] += w->loses[i];
            under[w->group[i]] = under[w->group[i]] || w->under[i];
        }
    for (size_t g = 0; g < w->v.caps.group_count; g++)
        if (under[g] && sum[g] > w->cap[g])
            return false;
    return true;
}

static uint32_t tasks_without(const struct world *w, uint32_t set)
{
    uint32_t tasks = 0;
    for (size_t c = 0; c < w->v.card_count; c++) {
        uint32_t gone = 0;
        for (size_t i = 0; i < w->cards[c].count; i++)
            gone |= (set >> w->cards[c].on[i] & 1) << i;
        tasks += w->served[c][gone];
    }
    return tasks;
}

static bool does(const struct world *w, uint32_t set)
{
    if (!caps_hold(w, set) || (w->v.want && tasks_without(w, set) < w->v.want))
        return false;
    for (size_t k = 0; k < w->v.sum_count; k++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < w->v.count; i++)
            sum += set >> i & 1 ? w->gives[k][i] : 0;
        if (sum < w->sums[k].need)
            return false;
    }
    return !w->v.fits || !w->refuses || (set & w->refuses);
}

/* Sets of as many stand in the order of their numbers: the last to go counts most. */
static uint32_t fewest_of_all(const struct world *w)
{
    uint32_t best = 0;
    for (uint32_t set = 1; set < 1u << w->v.count; set++)
        if (does(w, set) && (!best || __builtin_popcount(set) < __builtin_popcount(best)))
            best = set;
    return best;
}

/* ---- problems ------------------------------------------------------------------ */

/* What more go can only serve more. */
static void roll_served(struct world *w, struct dice *d, size_t card)
{
    uint32_t *served = w->served[card];
    served[0] = dice_below(d, 4) == 0;
    for (uint32_t set = 1; set < 1u << w->cards[card].count; set++) {
        served[set] = (uint32_t)(dice_below(d, 3) == 0 ? dice_below(d, TASKS + 1) : 0);
        for (size_t i = 0; i < w->cards[card].count; i++)
            if (set >> i & 1 && served[set & ~(1u << i)] > served[set])
                served[set] = served[set & ~(1u << i)];
    }
}

static void roll_cards(struct world *w, struct dice *d)
{
    w->v.want = 1 + (uint32_t)dice_below(d, 2 * TASKS);
    w->v.card_count = 1 + dice_below(d, CARDS);
    w->v.cards = w->cards;
    w->v.serves = serves;
    for (size_t i = 0; i < w->v.count; i++)
        for (uint64_t on = 1 + dice_below(d, 3) / 2; on > 0; on--) { /* some are on two */
            struct victims_card *c = &w->cards[dice_below(d, w->v.card_count)];
            if (c->count < VICTIMS_ON_CARD && (!c->count || c->on[c->count - 1] != i))
                c->on[c->count++] = i;
        }
    for (size_t c = 0; c < w->v.card_count; c++)
        roll_served(w, d, c);
}

static void roll_sums(struct world *w, struct dice *d)
{
    w->v.sums = w->sums;
    w->v.sum_count = 1 + dice_below(d, 2);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < w->v.count; i++)
            w->gives[k][i] = 1 + dice_below(d, 8);
        w->sums[k] = (struct victims_sum){ w->gives[k], 1 + dice_below(d, 24) };
    }
}

static void roll_caps(struct world *w, struct dice *d)
{
    for (size_t i = 0; i < w->v.count; i++) {
        w->group[i] = dice_below(d, 3);
        w->loses[i] = 1 + dice_below(d, 8);
        w->under[i] = dice_below(d, 4) > 0;
    }
    for (size_t g = 0; g < 3; g++)
        w->cap[g] = dice_below(d, 20);
    w->v.caps = (struct victims_caps){ w->group, w->loses, w->under, w->cap, 3 };
}

static void roll(struct world *w, uint64_t seed)
{
    struct dice d = { .state = seed };
    memset(w, 0, sizeof *w);
    w->v.count = 1 + dice_below(&d, MOST);
    w->v.arg = w;
    uint64_t kind = dice_below(&d, 3);
    if (kind < 2)
        roll_cards(w, &d);
    if (kind > 0)
        roll_sums(w, &d);
    if (dice_below(&d, 3) == 0)
        roll_caps(w, &d);
    if (dice_below(&d, 3) == 0) {
        w->v.fits = fits;
        w->refuses = dice_u32(&d) & dice_u32(&d) & ((1u << w->v.count) - 1);
    }
}

static uint32_t bits_of(const size_t *list, size_t count)
{
    uint32_t set = 0;
    for (size_t i = 0; i < count; i++)
        set |= 1u << list[i];
    return set;
}

static void what_is_chosen_is_what_trying_all_gives(void **state)
{
    (void)state;
    struct dice d = dice_new(20261130);
    size_t found = 0, none = 0;
    for (int i = 0; i < 6000; i++) {
        static struct world w;
        size_t chosen[MOST + 1], count = 0;
        uint64_t seed = dice_roll(&d);
        roll(&w, seed);
        uint32_t best = fewest_of_all(&w);
        if (does(&w, 0)) /* that is asked before */
            continue;
        enum victims_answer a = victims_fewest(&w.v, chosen, &count);
        if (a != (best ? VICTIMS_FOUND : VICTIMS_NONE))
            fail_msg("problem %d: says %d, and the best is %#x", i, (int)a, best);
        if (best && bits_of(chosen, count) != best)
            fail_msg("problem %d: chose %#x, and the best is %#x", i, bits_of(chosen, count), best);
        for (size_t k = 0; best && k + 1 < count; k++)
            assert_true(chosen[k] > chosen[k + 1]);
        found += best != 0;
        none += !best;
        assert_true(w.asked <= w.v.card_count << VICTIMS_ON_CARD);
    }
    assert_true(found > 1500 && none > 100);
}

/* Full cards of seven slices each; as many next to each other are asked for. */
static void full_cards(struct world *w, uint32_t slices)
{
    memset(w, 0, sizeof *w);
    w->v.arg = w;
    w->v.want = 1;
    w->v.cards = w->cards;
    w->v.serves = serves;
    w->v.card_count = CARDS;
    w->v.count = CARDS * 7;
    for (size_t i = 0; i < w->v.count; i++)
        w->cards[i / 7].on[w->cards[i / 7].count++] = i;
    for (size_t c = 0; c < CARDS; c++)
        for (uint32_t set = 0; set < 1u << 7; set++)
            w->served[c][set] = (uint32_t)__builtin_popcount(set) >= slices;
}

static void small_sets_cost_few_questions(void **state)
{
    (void)state;
    static const size_t most[] = { 0, 8, 29, 64, 99, 120, 127, 128 }; /* subsets that small, of 7 */
    size_t chosen[CARDS * 7 + 1], count;
    for (uint32_t slices = 1; slices <= 7; slices++) {
        static struct world w;
        full_cards(&w, slices);
        assert_int_equal(victims_fewest(&w.v, chosen, &count), VICTIMS_FOUND);
        assert_int_equal(count, slices);
        assert_int_equal(chosen[0], slices - 1);
        assert_true(w.asked <= CARDS * most[slices]);
    }
}

static void what_is_too_dear_is_given_up(void **state)
{
    (void)state;
    static struct world w;
    static uint64_t gives[40];
    static struct victims_sum sum = { gives, 20 * 1000 };
    size_t chosen[41], count;
    memset(&w, 0, sizeof w);
    w.v = (struct victims){ .count = 40, .sums = &sum, .sum_count = 1, .fits = fits, .arg = &w };
    for (size_t i = 0; i < 40; i++)
        gives[i] = 1000;
    w.refuses = UINT32_C(1) << 31; /* the last but eight: most sets of twenty are without it */
    assert_int_equal(victims_fewest(&w.v, chosen, &count), VICTIMS_DEAR);
    assert_true(w.judged <= VICTIMS_QUESTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_chosen_is_what_trying_all_gives),
        cmocka_unit_test(small_sets_cost_few_questions),
        cmocka_unit_test(what_is_too_dear_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
