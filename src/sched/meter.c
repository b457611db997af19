#include "sched/meter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/charge.h"
#include "sched/queue.h"

/* ---- fences ---------------------------------------------------------------- */

void fence_init(struct fence *f, const char *name)
{
    *f = (struct fence){ .name = text_dup(name), .all = LIMITS_NONE, .each_user = LIMITS_NONE };
    f->meter = (struct meter){ .limits = &f->all, .fence = f->name };
}

static void drop_users(struct fence *f)
{
    struct meter *m;
    for (size_t i = 0; (m = map_next(&f->users, &i));) {
        free(m->user);
        free(m);
    }
    map_done(&f->users);
}

void fence_done(struct fence *f)
{
    drop_users(f);
    free(f->name);
}

void fence_set(struct fence *f, const struct limits *all, const struct limits *each_user)
{
    f->all = all ? *all : (struct limits)LIMITS_NONE;
    f->each_user = each_user ? *each_user : (struct limits)LIMITS_NONE;
}

static struct meter *user_meter(struct fence *f, uid_t uid, const char *user)
{
    struct meter *m = map_get(&f->users, (uint64_t)uid + 1);
    if (m)
        return m;
    m = mem_new(sizeof *m);
    *m = (struct meter){ .limits = &f->each_user, .fence = f->name };
    m->user = user && *user ? text_dup(user) : text_fmt("%u", uid);
    map_put(&f->users, (uint64_t)uid + 1, m);
    return m;
}

void keep_init(struct sched *s)
{
    AUTO(text) struct text name = TEXT_INIT;
    text_add(&name, "everything over ");
    text_add_limit(&name, s->policy.keep_for_us);
    text_add(&name, " (the rest is kept for shorter and attached jobs)");
    fence_init(&s->keep, name.buf);
}

static bool takes_jobs(const struct inventory_card *c, bool all)
{
    return c->pool == POOL_QUEUE && (all || (c->card.health == CARD_OK && !c->quarantined));
}

void keep_look(struct sched *s, const struct inventory *inv, bool all)
{
    uint64_t cards = inv->bulk ? inv->bulk->cards : 0;
    if (!s->policy.keep_ppm)
        return;
    for (size_t i = 0; i < inv->card_count; i++)
        cards += takes_jobs(&inv->cards[i], all);
    s->keep.all.compute_ppm = s->keep.all.mem_ppm = cards * (PPM - s->policy.keep_ppm);
}

struct found {
    struct meter **meters;
    uint32_t count;
    size_t alloc;
};

static void add(struct found *f, struct meter *m)
{
    ARRAY_ROOM(f->meters, f->alloc, f->count + 1);
    f->meters[f->count++] = m;
}

static void find_in(struct found *found, struct fence *f, uid_t uid, const char *user)
{
    if (limits_any(&f->all))
        add(found, &f->meter);
    if (limits_any(&f->each_user))
        add(found, user_meter(f, uid, user));
}

static bool is_long(const struct sched *s, const struct sched_job *job)
{
    return s->policy.keep_ppm && !job->attached &&
           (job->limit_us <= 0 || job->limit_us > s->policy.keep_for_us);
}

struct meter **meters_find(struct sched *s, struct account *a, struct class *c,
                           const struct sched_job *job, uint32_t *ret_count)
{
    struct found found = { .meters = NULL };
    for (; a; a = a->parent)
        find_in(&found, &a->fence, job->uid, job->user);
    if (c)
        find_in(&found, &c->fence, job->uid, job->user);
    find_in(&found, &s->fence, job->uid, job->user);
    if (is_long(s, job)) /* the last: what else stops a job is told first */
        add(&found, &s->keep.meter);
    *ret_count = found.count;
    return found.meters;
}

bool meters_by_user(const struct sched *s, const struct account *a, const struct class *c)
{
    bool by_user = limits_any(&s->fence.each_user) || limits_any(&c->fence.each_user);
    for (; a && !by_user; a = a->parent)
        by_user = limits_any(&a->fence.each_user);
    return by_user;
}

/* ---- what a job takes ------------------------------------------------------ */

/* The least it will take, or, with a place, just what it takes. */
struct take {
    uint64_t compute_ppm, mem_ppm, cards;
    const struct request *request; /* NULL: `place` tells the slices */
    const struct place *place;
};

static struct take take_of_place(const struct place *p)
{
    struct take t = { .compute_ppm = charge_compute_ppm(p),
                      .mem_ppm = charge_mem_ppm(p),
                      .place = p };
    for (size_t i = 0; i < p->count; i++)
        t.cards += p->items[i].whole;
    return t;
}

static struct take take_of_need(const struct question *q)
{
    return (struct take){ .compute_ppm = q->need.compute_ppm,
                          .mem_ppm = q->need.mem_ppm,
                          .cards = q->need.cards,
                          .request = &q->request };
}

static uint64_t slices_of(const struct take *t, const char *profile)
{
    uint64_t n = 0;
    if (t->request)
        return t->request->kind == REQUEST_SLICES &&
                       profile_name_matches(profile, t->request->profile)
                   ? t->request->count
                   : 0;
    for (size_t i = 0; i < t->place->count; i++)
        n += !t->place->items[i].whole && profile_name_matches(t->place->items[i].profile, profile);
    return n;
}

static bool over(struct excess *x, const struct meter *m, enum limit_kind kind, uint64_t used,
                 uint64_t asks, uint64_t max)
{
    if (max == LIMIT_NONE || asks == 0 || used + asks <= max)
        return false;
    *x = (struct excess){ .meter = m, .kind = kind, .used = used, .asks = asks, .max = max };
    return true;
}

/* With `empty`, as if nothing else ran. */
static bool check(const struct meter *m, const struct take *t, bool empty, struct excess *x)
{
    const struct limits *l = m->limits;
    if (over(x, m, LIMIT_RUNNING, empty ? 0 : m->running, 1, l->running) ||
        over(x, m, LIMIT_CARDS, empty ? 0 : m->cards, t->cards, l->cards) ||
        over(x, m, LIMIT_COMPUTE, empty ? 0 : m->compute_ppm, t->compute_ppm, l->compute_ppm) ||
        over(x, m, LIMIT_MEMORY, empty ? 0 : m->mem_ppm, t->mem_ppm, l->mem_ppm))
        return true;
    for (uint32_t i = 0; i < l->slice_count; i++)
        if (over(x, m, LIMIT_SLICES, empty ? 0 : m->slices[i], slices_of(t, l->slices[i].profile),
                 l->slices[i].max)) {
            x->slice = i;
            return true;
        }
    return false;
}

static struct excess check_all(const struct shape *sh, const struct take *t, bool empty)
{
    struct excess x = { .meter = NULL };
    for (uint32_t i = 0; i < sh->meter_count; i++)
        if (check(sh->meters[i], t, empty, &x))
            break;
    return x;
}

struct excess meters_full(const struct shape *sh)
{
    struct take t = take_of_need(sh->question);
    return check_all(sh, &t, false);
}

struct excess meters_over(const struct shape *sh, const struct place *p)
{
    struct take t = take_of_place(p);
    return check_all(sh, &t, false);
}

struct excess meters_never(const struct shape *sh)
{
    struct take t = take_of_need(sh->question);
    return check_all(sh, &t, true);
}

static bool within(uint64_t asks, uint32_t jobs, uint64_t max)
{
    return max == LIMIT_NONE || asks * jobs <= max;
}

static bool allows(const struct limits *l, const struct take *t, uint32_t jobs)
{
    bool all = within(1, jobs, l->running) && within(t->cards, jobs, l->cards) &&
               within(t->compute_ppm, jobs, l->compute_ppm) && within(t->mem_ppm, jobs, l->mem_ppm);
    for (uint32_t i = 0; i < l->slice_count; i++)
        all = all && within(slices_of(t, l->slices[i].profile), jobs, l->slices[i].max);
    return all;
}

bool meters_allow(const struct shape *sh, uint32_t jobs)
{
    struct take t = take_of_need(sh->question);
    for (uint32_t i = 0; i < sh->meter_count; i++)
        if (!allows(sh->meters[i]->limits, &t, jobs))
            return false;
    return true;
}

/* ---- counting -------------------------------------------------------------- */

void meters_take(const struct shape *sh, const struct place *p)
{
    struct take t = take_of_place(p);
    for (uint32_t i = 0; i < sh->meter_count; i++) {
        struct meter *m = sh->meters[i];
        m->running++;
        m->cards += t.cards;
        m->compute_ppm += t.compute_ppm;
        m->mem_ppm += t.mem_ppm;
        for (uint32_t k = 0; k < m->limits->slice_count; k++)
            m->slices[k] += slices_of(&t, m->limits->slices[k].profile);
    }
}

void meters_give(const struct shape *sh, const struct place *p)
{
    struct take t = take_of_place(p);
    for (uint32_t i = 0; i < sh->meter_count; i++) {
        struct meter *m = sh->meters[i];
        m->running--;
        m->cards -= t.cards;
        m->compute_ppm -= t.compute_ppm;
        m->mem_ppm -= t.mem_ppm;
        for (uint32_t k = 0; k < m->limits->slice_count; k++)
            m->slices[k] -= slices_of(&t, m->limits->slices[k].profile);
    }
}

void meters_wait(const struct shape *sh, int jobs)
{
    for (uint32_t i = 0; i < sh->meter_count; i++)
        sh->meters[i]->pending += (uint64_t)jobs; /* wraps, as it should */
}

static int64_t submit_each_us(const struct limits *l)
{
    int64_t each = l->submits == LIMIT_NONE ? 0 : l->submits_per_us / (int64_t)l->submits;
    return each > 0 ? each : 1;
}

void meters_submitted(const struct shape *sh, int64_t at_us)
{
    for (uint32_t i = 0; i < sh->meter_count; i++) {
        struct meter *m = sh->meters[i];
        if (m->limits->submits == LIMIT_NONE)
            continue;
        int64_t from = m->submits_until_us > at_us ? m->submits_until_us : at_us;
        m->submits_until_us = from + submit_each_us(m->limits);
    }
}

static bool refuse(const struct meter *m, int64_t limit_us, uint32_t jobs, int64_t now_us,
                   struct excess *x, int64_t *ret_frees_us)
{
    const struct limits *l = m->limits;
    if (over(x, m, LIMIT_PENDING, m->pending, jobs, l->pending))
        return true;
    if (l->time_us > 0 && (limit_us <= 0 || limit_us > l->time_us)) {
        *x = (struct excess){ .meter = m,
                              .kind = LIMIT_TIME,
                              .asks = (uint64_t)(limit_us > 0 ? limit_us : 0),
                              .max = (uint64_t)l->time_us };
        return true;
    }
    int64_t each = submit_each_us(l);
    int64_t ahead = m->submits_until_us > now_us ? m->submits_until_us - now_us : 0;
    if (l->submits == LIMIT_NONE || ahead + each <= each * (int64_t)l->submits)
        return false;
    *x = (struct excess){
        .meter = m, .kind = LIMIT_SUBMITS, .used = l->submits, .asks = 1, .max = l->submits
    };
    *ret_frees_us = now_us + ahead + each - each * (int64_t)l->submits;
    return true;
}

struct excess meters_refuse(const struct shape *sh, int64_t limit_us, uint32_t jobs, int64_t now_us,
                            int64_t *ret_frees_us)
{
    struct excess x = { .meter = NULL };
    *ret_frees_us = INT64_MAX;
    for (uint32_t i = 0; i < sh->meter_count; i++)
        if (refuse(sh->meters[i], limit_us, jobs, now_us, &x, ret_frees_us))
            break;
    return x;
}

/* ---- telling --------------------------------------------------------------- */

struct giver {
    int64_t ends_us;
    uint64_t job, amount;
};

static int by_end(const void *a, const void *b)
{
    const struct giver *x = a;
    const struct giver *y = b;
    if (x->ends_us != y->ends_us)
        return x->ends_us < y->ends_us ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static uint64_t gives(const struct entry *e, const struct excess *x)
{
    const struct shape *sh = e->shape;
    struct take t = take_of_place(&e->run->place);
    uint32_t i = 0;
    while (i < sh->meter_count && sh->meters[i] != x->meter)
        i++;
    if (i == sh->meter_count)
        return 0;
    switch (x->kind) {
    case LIMIT_COMPUTE:
        return t.compute_ppm;
    case LIMIT_MEMORY:
        return t.mem_ppm;
    case LIMIT_CARDS:
        return t.cards;
    case LIMIT_SLICES:
        return slices_of(&t, x->meter->limits->slices[x->slice].profile);
    case LIMIT_RUNNING:
        return 1;
    default:
        return 0;
    }
}

int64_t excess_ends_us(const struct sched *s, const struct excess *x, uint64_t *ret_job)
{
    auto_free struct giver *givers = mem_new((s->running + 1) * sizeof *givers);
    size_t n = 0;
    for (const struct entry *e = s->runs; e; e = e->right) {
        uint64_t amount = gives(e, x);
        if (amount)
            givers[n++] =
                (struct giver){ .ends_us = entry_ends_us(e), .job = e->id, .amount = amount };
    }
    qsort(givers, n, sizeof *givers, by_end);
    uint64_t used = x->used;
    for (size_t i = 0; i < n; i++) {
        used -= givers[i].amount < used ? givers[i].amount : used;
        if (used + x->asks <= x->max) {
            *ret_job = givers[i].job;
            return givers[i].ends_us;
        }
    }
    *ret_job = 0;
    return INT64_MAX;
}

static void add_who(struct text *t, const struct meter *m)
{
    bool server = strcmp(m->fence, "this server") == 0;
    if (!m->user)
        text_add(t, m->fence);
    else
        text_addf(t, "%s %s %s", m->user, server ? "on" : "in", m->fence);
}

static void add_worth(struct text *t, const struct excess *x, const char *of)
{
    text_addf(t, " may have the %s of %.4g cards at a time, has %.4g, and this asks for %.4g", of,
              (double)x->max / PPM, (double)x->used / PPM, (double)x->asks / PPM);
}

void excess_add(struct text *t, const struct excess *x)
{
    const struct limits *l = x->meter->limits;
    add_who(t, x->meter);
    switch (x->kind) {
    case LIMIT_COMPUTE:
        add_worth(t, x, "compute");
        break;
    case LIMIT_MEMORY:
        add_worth(t, x, "memory");
        break;
    case LIMIT_CARDS:
        text_addf(t,
                  " may have %" PRIu64 " whole card%s at a time, has %" PRIu64
                  ", and this asks for %" PRIu64,
                  x->max, x->max == 1 ? "" : "s", x->used, x->asks);
        break;
    case LIMIT_SLICES:
        text_addf(t,
                  " may have %" PRIu64 " slice%s %s at a time, has %" PRIu64
                  ", and this asks for %" PRIu64,
                  x->max, x->max == 1 ? "" : "s", l->slices[x->slice].profile, x->used, x->asks);
        break;
    case LIMIT_RUNNING:
        text_addf(t, " may run %" PRIu64 " job%s at a time and runs %" PRIu64, x->max,
                  x->max == 1 ? "" : "s", x->used);
        break;
    case LIMIT_PENDING:
        text_addf(t, " may have %" PRIu64 " job%s waiting and has %" PRIu64, x->max,
                  x->max == 1 ? "" : "s", x->used);
        break;
    case LIMIT_SUBMITS:
        text_addf(t, " may hand in %" PRIu64 " jobs in ", x->max);
        text_add_limit(t, l->submits_per_us);
        text_addf(t, " and has handed in %" PRIu64, x->used);
        break;
    case LIMIT_TIME:
        text_add(t, " may run a job for ");
        text_add_limit(t, l->time_us);
        break;
    case LIMIT_KINDS:
        break;
    }
}
