#include "sched/victims.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define SUBSETS (1u << VICTIMS_ON_CARD)
#define WEIGHT 720720u /* of one candidate; divided among the cards that it is on */
#define NEVER UINT64_MAX

struct gift {
    uint64_t gives;
    size_t who;
};

struct search {
    const struct victims *v;
    size_t *chosen; /* descending */
    size_t count;
    bool *gone;       /* each candidate: is it among them? */
    uint64_t *weight; /* each candidate's on one card: see least_cost */
    uint64_t *loses;  /* each group's, of the chosen */
    size_t *under;    /* each group's: how many of the chosen are under the cap */
    uint16_t *memo;   /* each card and subset: 1 + tasks; 0: not asked */
    uint64_t *costs;  /* of so many tasks, on the cards up to here; want + 1, as the next two */
    uint64_t *merged;
    uint64_t *here;      /* on one card */
    struct gift **gifts; /* each sum's, of all candidates */
    uint32_t questions, steps;
    bool dear;
};

/* ---- sums --------------------------------------------------------------------- */

/* Who gives most, first. */
static int by_gift(const void *x, const void *y)
{
    const struct gift *a = x, *b = y;
    if (a->gives != b->gives)
        return a->gives > b->gives ? -1 : 1;
    return a->who < b->who ? -1 : a->who > b->who;
}

static struct gift *list_gifts(const uint64_t *gives, size_t count)
{
    struct gift *list = mem_new((count + 1) * sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct gift){ gives[i], i };
    if (count > 1)
        qsort(list, count, sizeof *list, by_gift);
    return list;
}

/* What `more` of the first `prefix` give at most. */
static uint64_t most_of(const struct search *s, size_t sum, size_t prefix, size_t more)
{
    uint64_t most = 0;
    for (size_t i = 0; more && i < s->v->count; i++)
        if (s->gifts[sum][i].who < prefix) {
            most += s->gifts[sum][i].gives;
            more--;
        }
    return most;
}

static bool sums_can(const struct search *s, size_t prefix, size_t more)
{
    for (size_t i = 0; i < s->v->sum_count; i++) {
        const struct victims_sum *sum = &s->v->sums[i];
        uint64_t have = most_of(s, i, prefix, more);
        for (size_t k = 0; k < s->count; k++)
            have += sum->gives[s->chosen[k]];
        if (have < sum->need)
            return false;
    }
    return true;
}

/* ---- cards -------------------------------------------------------------------- */

static bool may_ask(struct search *s)
{
    s->dear = s->dear || s->questions == VICTIMS_QUESTIONS;
    s->questions += !s->dear;
    return !s->dear;
}

static uint32_t serves(struct search *s, size_t card, uint32_t subset)
{
    uint16_t *known = &s->memo[card * SUBSETS + subset];
    if (!*known && may_ask(s))
        *known = (uint16_t)(1 + s->v->serves(s->v->arg, card, subset));
    return *known ? *known - 1u : 0; /* given up: no matter what */
}

static uint64_t weight_of(const struct search *s, const struct victims_card *c, uint32_t subset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->count; i++)
        sum += subset >> i & 1 ? s->weight[c->on[i]] : 0;
    return sum;
}

static void offer(uint64_t *least, uint64_t cost)
{
    if (cost < *least)
        *least = cost;
}

/* The least that it takes for the card to serve so many; of the first `prefix`, and `more` of them. */
static void list_costs(struct search *s, size_t card, size_t prefix, size_t more)
{
    const struct victims_card *c = &s->v->cards[card];
    uint32_t fixed = 0, open = 0, m = 0;
    for (uint32_t t = 0; t <= s->v->want; t++)
        s->here[t] = NEVER;
    for (size_t i = 0; i < c->count; i++) {
        fixed |= (uint32_t)s->gone[c->on[i]] << i;
        open |= (uint32_t)(c->on[i] < prefix) << i;
    }
    do {
        if ((size_t)__builtin_popcount(m) <= more)
            offer(&s->here[serves(s, card, fixed | m)], weight_of(s, c, m));
        m = (m - open) & open;
    } while (m);
}

static void add_card(struct search *s)
{
    uint32_t want = s->v->want;
    for (uint32_t t = 0; t <= want; t++)
        s->merged[t] = NEVER;
    for (uint32_t here = 0; here <= want; here++)
        for (uint32_t t = 0; s->here[here] != NEVER && t <= want; t++)
            if (s->costs[t] != NEVER)
                offer(&s->merged[t + here < want ? t + here : want], s->costs[t] + s->here[here]);
    memcpy(s->costs, s->merged, (want + 1) * sizeof *s->costs);
}

/*
 * What the cards need at least, each for itself: who is on several of them pays a part on each,
 * so that all that he pays is never more than one.
 */
static uint64_t least_cost(struct search *s, size_t prefix, size_t more)
{
    uint32_t want = s->v->want;
    for (uint32_t t = 0; t <= want; t++)
        s->costs[t] = t ? NEVER : 0;
    for (size_t i = 0; i < s->v->card_count && s->costs[want]; i++) {
        list_costs(s, i, prefix, more);
        add_card(s);
    }
    return s->costs[want];
}

/* ---- the search ----------------------------------------------------------------- */

/* Not ruled out: with so many more of the first `prefix` it is enough. */
static bool can(struct search *s, size_t prefix, size_t more)
{
    s->dear = s->dear || s->steps == VICTIMS_STEPS;
    if (s->dear)
        return false;
    s->steps++;
    if (!sums_can(s, prefix, more))
        return false;
    return !s->v->want || least_cost(s, prefix, more) <= (uint64_t)more * WEIGHT;
}

static bool add(struct search *s, size_t who)
{
    const struct victims_caps *caps = &s->v->caps;
    if (caps->group_count) {
        size_t g = caps->group[who];
        if ((s->under[g] || caps->under[who]) && s->loses[g] + caps->loses[who] > caps->cap[g])
            return false;
        s->loses[g] += caps->loses[who];
        s->under[g] += caps->under[who];
    }
    s->gone[who] = true;
    s->chosen[s->count++] = who;
    return true;
}

static void take_back(struct search *s)
{
    const struct victims_caps *caps = &s->v->caps;
    size_t who = s->chosen[--s->count];
    s->gone[who] = false;
    if (caps->group_count) {
        s->loses[caps->group[who]] -= caps->loses[who];
        s->under[caps->group[who]] -= caps->under[who];
    }
}

/* The shortest beginning of the list that `more` could come from; `prefix` is one. */
static size_t shortest(struct search *s, size_t prefix, size_t more)
{
    size_t low = more, high = prefix;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (can(s, mid, more))
            high = mid;
        else
            low = mid + 1;
    }
    return high;
}

static bool is_it(struct search *s)
{
    if (!can(s, 0, 0))
        return false;
    return !s->v->fits || (may_ask(s) && s->v->fits(s->v->arg, s->chosen, s->count));
}

/* NOLINTNEXTLINE(misc-no-recursion): one level for each that goes */
static bool search(struct search *s, size_t prefix, size_t more)
{
    if (!more)
        return is_it(s);
    if (!can(s, prefix, more))
        return false;
    for (size_t last = shortest(s, prefix, more) - 1; last < prefix && !s->dear; last++) {
        if (!add(s, last))
            continue;
        if (search(s, last, more - 1))
            return true;
        take_back(s);
    }
    return false;
}

static bool begin(struct search *s)
{
    const struct victims *v = s->v;
    size_t n = v->count + 1;
    s->gone = mem_new(n * sizeof *s->gone);
    s->weight = mem_new(n * sizeof *s->weight);
    s->gifts = mem_new((v->sum_count + 1) * sizeof *s->gifts);
    for (size_t i = 0; i < v->sum_count; i++)
        s->gifts[i] = list_gifts(v->sums[i].gives, v->count);
    s->loses = mem_new((v->caps.group_count + 1) * sizeof *s->loses);
    s->under = mem_new((v->caps.group_count + 1) * sizeof *s->under);
    s->memo = mem_new((v->card_count * SUBSETS + 1) * sizeof *s->memo);
    s->costs = mem_new((v->want + 1) * sizeof *s->costs);
    s->merged = mem_new((v->want + 1) * sizeof *s->merged);
    s->here = mem_new((v->want + 1) * sizeof *s->here);
    for (size_t i = 0; i < v->card_count; i++)
        for (size_t k = 0; k < v->cards[i].count; k++)
            s->weight[v->cards[i].on[k]]++;
    for (size_t i = 0; i < v->count; i++)
        s->weight[i] = s->weight[i] ? WEIGHT / s->weight[i] : 0;
    return v->count > 0;
}

static void end(struct search *s)
{
    free(s->gone);
    free(s->weight);
    for (size_t i = 0; i < s->v->sum_count; i++)
        free(s->gifts[i]);
    free(s->gifts);
    free(s->loses);
    free(s->under);
    free(s->memo);
    free(s->costs);
    free(s->merged);
    free(s->here);
}

enum victims_answer victims_fewest(const struct victims *v, size_t *ret, size_t *ret_count)
{
    struct search s = { .v = v, .chosen = ret };
    bool found = false;
    bool any = begin(&s);
    for (size_t k = 1; any && !found && !s.dear && k <= v->count; k++)
        found = search(&s, v->count, k);
    end(&s);
    if (found)
        *ret_count = s.count;
    return found ? VICTIMS_FOUND : s.dear ? VICTIMS_DEAR : VICTIMS_NONE;
}
