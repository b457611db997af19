/* The cards and who is on them, as victims.h has it. */
#include <stdlib.h>

#include "base/text.h"
#include "plan/carry.h"
#include "sched/queue.h"

struct asking {
    struct sched *s;
    const struct inventory *inv;
    const struct entry *e;
    struct now now;
    const struct choice *c;
    struct inventory copy; /* those are gone who are told to go */
    struct place_rules rules;
    struct place_kept *kept;
    enum card_ban *bans;
    struct victims_card *cards;
    struct victims_sum sums[3];
    uint64_t *gives[3];
    struct victims problem;
};

static bool fits_without(void *arg, const size_t *chosen, size_t count)
{
    const struct asking *a = arg;
    struct place place;
    for (size_t i = 0; i < count; i++)
        preempt_mark(a->c->list[chosen[i]], true);
    bool fits = preempt_place(a->s, a->inv, a->e, a->now, &place);
    for (size_t i = 0; i < count; i++)
        preempt_mark(a->c->list[chosen[i]], false);
    if (fits)
        place_done(&place);
    return fits;
}

/* ---- cards ------------------------------------------------------------------- */

/* The slices of a card, and after them the card itself. */
static struct hold *hold_at(struct inventory_card *c, size_t i)
{
    return i < c->card.slice_count ? &c->slices[i].hold : &c->hold;
}

static void set_gone(const struct asking *a, const struct victims_card *on, struct hold *h,
                     uint32_t gone)
{
    for (size_t i = 0; i < on->count; i++)
        if (h->job_id == a->c->list[on->on[i]]->id)
            h->kind = gone >> i & 1 ? HOLD_NONE : HOLD_JOB;
}

static uint32_t serves(void *arg, size_t card, uint32_t gone)
{
    struct asking *a = arg;
    struct inventory_card *c = &a->copy.cards[card];
    const struct request *r = &a->e->shape->question->request;
    for (size_t i = 0; i <= c->card.slice_count; i++)
        set_gone(a, &a->cards[card], hold_at(c, i), gone);
    a->bans[card] = BAN_NOTHING;
    uint32_t n = place_served(&a->copy, r, &a->rules, a->now);
    a->bans[card] = BAN_ALL;
    return n < r->count ? n : r->count;
}

static bool is_on(struct inventory_card *c, uint64_t job_id)
{
    for (size_t i = 0; i <= c->card.slice_count; i++)
        if (hold_at(c, i)->kind == HOLD_JOB && hold_at(c, i)->job_id == job_id)
            return true;
    return false;
}

/* False: more than can be told apart are on it. */
static bool list_on(const struct asking *a, struct inventory_card *c, struct victims_card *ret)
{
    for (size_t v = 0; v < a->c->count; v++) {
        if (!is_on(c, a->c->list[v]->id))
            continue;
        if (ret->count == VICTIMS_ON_CARD)
            return false;
        ret->on[ret->count++] = v;
    }
    for (size_t i = 0; i <= c->card.slice_count; i++)
        if (hold_at(c, i)->kind == HOLD_NONE)
            hold_at(c, i)->job_id = 0; /* of nobody who could come back */
    return true;
}

static bool begin_cards(struct asking *a)
{
    size_t n = a->inv->card_count;
    const struct place_kept *kept = booking_kept_closed(a->s, a->inv, a->e->limit_us, a->now);
    const struct request *r = &a->e->shape->question->request;
    bool told = true;
    preempt_without(a->s, a->inv, a->now, &a->copy);
    a->cards = mem_new((n + 1) * sizeof *a->cards);
    a->bans = mem_new((n + 1) * sizeof *a->bans);
    a->kept = kept && n ? mem_dup(kept, n * sizeof *kept) : NULL;
    a->rules = (struct place_rules){ .bans = a->bans, .kept = a->kept };
    a->rules.mode_hold_us = a->s->modes_stay ? a->s->policy.mode_hold_us : 0;
    for (size_t i = 0; i < n; i++) {
        told = told && list_on(a, &a->copy.cards[i], &a->cards[i]);
        a->bans[i] = BAN_ALL;
    }
    a->problem.want = r->kind == REQUEST_NOTHING ? 0 : r->count;
    a->problem.cards = a->cards;
    a->problem.card_count = n;
    a->problem.serves = serves;
    return told;
}

/* ---- what adds up --------------------------------------------------------------- */

/* Another sum; the caller fills in what each gives. */
static uint64_t *add_sum(struct asking *a, uint64_t need)
{
    size_t at = a->problem.sum_count++;
    a->gives[at] = mem_new((a->c->count + 1) * sizeof *a->gives[at]);
    a->sums[at] = (struct victims_sum){ .gives = a->gives[at], .need = need };
    a->problem.sums = a->sums;
    return a->gives[at];
}

static void count_cards(struct asking *a)
{
    uint64_t *gives = add_sum(a, preempt_lacks_ppm(a->s, a->inv->bulk, a->e));
    for (size_t i = 0; i < a->c->count; i++)
        gives[i] = a->c->list[i]->run->held_ppm;
}

/* What they need of the machine; parts are rounded, so each may give a little more than it says. */
static void count_machine(struct asking *a)
{
    const struct sched_node *has = &a->s->policy.node;
    struct node_need used = node_without_leaving(a->s);
    struct node_need least = node_least(a->s, a->e->shape->question);
    node_add(&used, &least);
    struct sched_amount sum = node_amount(a->s, &used), own = node_amount(a->s, &least);
    uint64_t *cpu = own.cpu_milli && sum.cpu_milli > has->cpu_milli
                        ? add_sum(a, sum.cpu_milli - has->cpu_milli)
                        : NULL;
    uint64_t *mem = own.mem_bytes && sum.mem_bytes > has->mem_bytes
                        ? add_sum(a, sum.mem_bytes - has->mem_bytes)
                        : NULL;
    for (size_t i = 0; i < a->c->count; i++) {
        struct sched_amount its = node_amount(a->s, &a->c->list[i]->run->need);
        if (cpu)
            cpu[i] = its.cpu_milli + 1;
        if (mem)
            mem[i] = its.mem_bytes + 1;
    }
}

static void end(struct asking *a)
{
    free(a->kept);
    free(a->bans);
    free(a->cards);
    for (size_t i = 0; i < a->problem.sum_count; i++)
        free(a->gives[i]);
    inventory_done(&a->copy);
}

enum victims_answer preempt_fewest(struct sched *s, const struct inventory *inv,
                                   const struct entry *e, const struct victims_caps *caps,
                                   struct now now, struct choice *c)
{
    struct asking a = { .s = s, .inv = inv, .e = e, .now = now, .c = c };
    auto_free size_t *chosen = mem_new((c->count + 1) * sizeof *chosen);
    size_t n = 0;
    a.problem.count = c->count;
    a.problem.caps = *caps;
    a.problem.fits = fits_without;
    a.problem.arg = &a;
    if (inv->bulk)
        count_cards(&a);
    count_machine(&a);
    bool told = inv->bulk || begin_cards(&a);
    enum victims_answer answer = told ? victims_fewest(&a.problem, chosen, &n) : VICTIMS_DEAR;
    end(&a);
    if (answer != VICTIMS_FOUND)
        return answer;
    /* who goes first has the lowest number, and is the last of them */
    for (size_t i = 0; i < n; i++)
        c->list[i] = c->list[chosen[n - 1 - i]];
    c->count = n;
    return VICTIMS_FOUND;
}
