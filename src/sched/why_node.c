/* Words for those whom the machine's CPUs or memory keep waiting. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "sched/queue.h"

/* Of memory, or else of CPUs. */
struct part {
    bool memory;
    uint64_t has, used, asks;
};

static uint64_t amount(const struct sched *s, const struct part *p, const struct node_need *n)
{
    struct sched_amount a = node_amount(s, n);
    return p->memory ? a.mem_bytes : a.cpu_milli;
}

/* The first of both that is too small for it now; false: neither. */
static bool too_small(const struct sched *s, const struct node_need *n, struct part *ret)
{
    for (int memory = 1; memory >= 0; memory--) {
        struct part p = { .memory = memory };
        p.has = memory ? s->policy.node.mem_bytes : s->policy.node.cpu_milli;
        p.used = amount(s, &p, &s->node.held);
        p.asks = amount(s, &p, n);
        *ret = p;
        if (p.asks && p.used + p.asks > p.has)
            return true;
    }
    return false;
}

static void add_amount(struct text *t, const struct part *p, uint64_t n)
{
    if (p->memory)
        text_add_size(t, n);
    else
        text_addf(t, "%g", (double)n / 1000);
}

/* ---- who has it ---------------------------------------------------------------- */

struct giver {
    int64_t at_us; /* INT64_MAX: no limit */
    uint64_t amount;
    const struct entry *entry;
};

static int by_end(const void *a, const void *b)
{
    const struct giver *x = a;
    const struct giver *y = b;
    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    return x->entry->id < y->entry->id ? -1 : x->entry->id > y->entry->id;
}

/* The one with whose end there is room, if all keep their limits. */
static struct giver last_giver(const struct sched *s, const struct part *p)
{
    struct giver last = { .entry = NULL };
    auto_free struct giver *list = mem_new((s->running + 1) * sizeof *list);
    uint64_t used = p->used;
    size_t n = 0;
    for (const struct entry *e = s->runs; e; e = e->right) {
        uint64_t has = amount(s, p, &e->run->need);
        if (has)
            list[n++] = (struct giver){ .at_us = entry_ends_us(e), .amount = has, .entry = e };
    }
    if (n > 1)
        qsort(list, n, sizeof *list, by_end);
    for (size_t i = 0; i < n && used + p->asks > p->has; i++) {
        last = list[i];
        used -= last.amount < used ? last.amount : used;
    }
    return last;
}

/* In accounts that are one leaf, only the holds on cards know whose it is. */
static const char *user_of(const struct inventory *inv, const struct entry *e)
{
    if (e->shape->leaf->user)
        return e->shape->leaf->user;
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct inventory_card *c = &inv->cards[i];
        for (size_t k = 0; k <= c->card.slice_count; k++) {
            const struct hold *h = k < c->card.slice_count ? &c->slices[k].hold : &c->hold;
            if (h->kind == HOLD_JOB && h->job_id == e->id)
                return h->user;
        }
    }
    return "";
}

static void add_giver(struct text *t, const struct inventory *inv, const struct part *p,
                      const struct giver *g, struct now now)
{
    const char *user = user_of(inv, g->entry);
    text_addf(t, "; #%" PRIu64, g->entry->id);
    if (user[0])
        text_addf(t, " (%s)", user);
    text_add(t, " has ");
    add_amount(t, p, g->amount);
    if (g->at_us == INT64_MAX) {
        text_add(t, " without a time limit");
    } else if (g->at_us <= now.boot_us || g->entry->run->leaving) {
        text_add(t, " and ends any moment now");
    } else {
        text_add(t, " until ");
        why_add_time(t, g->at_us, now);
    }
}

static void tell_too_small(const struct sched *s, const struct inventory *inv, const struct part *p,
                           struct now now, struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct giver g = last_giver(s, p);
    text_add(&t, "waits for ");
    add_amount(&t, p, p->asks);
    text_add(&t, p->memory ? " of the machine's memory: " : " of the machine's CPUs: ");
    if (p->used >= p->has)
        text_add(&t, "none");
    else
        add_amount(&t, p, p->has - p->used);
    text_add(&t, " of ");
    add_amount(&t, p, p->has);
    text_add(&t, p->memory || p->used + 1000 >= p->has ? " is free" : " are free");
    if (g.entry)
        add_giver(&t, inv, p, &g, now);
    if (!x->earliest_boot_us && g.entry && g.at_us < INT64_MAX)
        x->earliest_boot_us = g.at_us > now.boot_us ? g.at_us : now.boot_us;
    (void)snprintf(x->text, sizeof x->text, "%s", t.buf); /* cut when too long */
}

static void tell_over(const struct sched *s, const struct node_need *n, struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct sched_amount a = node_amount(s, n);
    struct part p = { .memory = a.mem_bytes > s->policy.node.mem_bytes };
    text_add(&t, "asks for ");
    add_amount(&t, &p, p.memory ? a.mem_bytes : a.cpu_milli);
    text_add(&t, p.memory ? " of memory, and this machine has " : " CPUs, and this machine has ");
    add_amount(&t, &p, p.memory ? s->policy.node.mem_bytes : s->policy.node.cpu_milli);
    text_add(&t, " for jobs");
    (void)snprintf(x->text, sizeof x->text, "%s", t.buf); /* it fits */
}

/* Whose start would come too late if it began now. */
static uint64_t in_the_way(const struct sched *s, int64_t limit_us, struct now now)
{
    size_t at = booking_in_the_way(s, limit_us, false, now);
    const struct entry *e = at != SIZE_MAX ? s->bookings.list[at].entry : s->reservation.entry;
    return e ? e->id : 0;
}

static void tell_kept(const struct sched *s, const struct entry *e, int64_t most_us, struct now now,
                      struct sched_explanation *x)
{
    AUTO(text) struct text t = TEXT_INIT;
    x->why = WHY_DRAINING;
    x->short_limit_us = most_us;
    x->reserved_for = in_the_way(s, e->limit_us, now);
    text_addf(&t, "the machine has room for it now, but that is kept for #%" PRIu64,
              x->reserved_for);
    why_add_sooner(&t, most_us);
    (void)snprintf(x->text, sizeof x->text, "%s", t.buf); /* it fits */
}

static bool tell_waits(const struct sched *s, const struct inventory *inv,
                       const struct node_need *need, struct now now, struct sched_explanation *x)
{
    struct part p;
    if (!too_small(s, need, &p))
        return false;
    tell_too_small(s, inv, &p, now, x);
    return true;
}

bool why_node_waits(struct sched *s, const struct inventory *inv, const struct entry *e,
                    struct now now, struct sched_explanation *x)
{
    struct node_need least = node_least(s, e->shape->question);
    return tell_waits(s, inv, &least, now, x);
}

bool why_node(struct sched *s, const struct inventory *inv, const struct entry *e,
              const struct place *place, struct now now, struct sched_explanation *x)
{
    const struct question *q = e->shape->question;
    struct node_need least = node_least(s, q);
    struct node_need need = place ? node_on(s, q, place) : least;
    if (node_over(s, &least)) {
        x->why = WHY_NEVER;
        tell_over(s, &least, x);
        return true;
    }
    if (tell_waits(s, inv, &need, now, x)) {
        x->why = WHY_NO_ROOM;
        return true;
    }
    int64_t most = node_most_us(s, &need, NODE_VIEW_ALL, now);
    if (most < e->limit_us)
        tell_kept(s, e, most, now, x);
    return most < e->limit_us;
}
