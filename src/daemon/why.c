/* Why a job waits, told term by term. */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* "first of alice's in nlp", "3 ahead in sims" */
static void add_line(struct text *t, const struct sched_explanation *x)
{
    if (x->ahead)
        text_addf(t, "%u ahead", x->ahead);
    else
        text_add(t, "first");
    if (x->user)
        text_addf(t, " of %s's", x->user);
    text_addf(t, " in %s", x->account);
}

static void why_share(const struct sched_explanation *x, struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_addf(&t, "%s has level fairness %.4g", x->account, x->account_level);
    if (x->user)
        text_addf(&t, ", %s in it %.4g", x->user, x->user_level);
    text_addf(&t, "; number %u of %u", x->rank, x->leaves);
    why_view_add(v, "share", "%s", t.buf);
}

/* Terms that weigh nothing are left out. */
static void why_points(const struct sched_explanation *x, struct why_view *v)
{
    const struct sched_order *o = &x->order;
    AUTO(text) struct text t = TEXT_INIT;
    const struct term {
        const char *what;
        double weight, value;
    } terms[] = { { "share", o->share, x->factor },
                  { "age", o->age, x->age },
                  { "size", o->size, x->size } };
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        if (terms[i].weight > 0 || terms[i].weight < 0)
            text_addf(&t, "%s%s %.4g x %.4f", t.len ? " + " : "", terms[i].what, terms[i].weight,
                      terms[i].value);
    why_view_add(v, "points", "%.4f%s%s", x->points, t.len ? " = " : "", t.len ? t.buf : "");
}

static void why_order(const struct sched_explanation *x, struct why_view *v)
{
    AUTO(text) struct text line = TEXT_INIT;
    add_line(&line, x);
    why_view_add(v, "order", "%s", line.buf);
    why_view_add(v, "class", "%s, tier %u", x->qos, x->tier);
    why_share(x, v);
    why_points(x, v);
    if (x->inside != SCHED_LAS)
        return;
    AUTO(text) struct text had = TEXT_INIT;
    text_add_duration(&had, (int64_t)x->attained_card_us);
    why_view_add(v, "service", "has had %s of a card: queue %u", had.buf, x->level + 1);
}

#define AHEAD_TOLD 3u

static void add_waiting(struct text *t, const struct job *j)
{
    text_addf(t, "#%" PRIu64 " (%s, %s, ", j->id, j->user, j->name);
    request_add(t, &j->request);
    text_add(t, ")");
}

/* The first of those that share with `j` and go before it, in their order. */
static size_t first_ahead(const struct daemon *d, const struct job *j,
                          const struct job *ret[AHEAD_TOLD])
{
    size_t n = 0;
    const struct job *other;
    for (size_t i = 0; (other = map_next(&d->jobs, &i));) {
        if (other->state != JOB_PENDING || !sched_goes_before(d->sched, other->id, j->id))
            continue;
        size_t at = n;
        while (at > 0 && sched_goes_before(d->sched, other->id, ret[at - 1]->id))
            at--;
        n += n < AHEAD_TOLD;
        for (size_t k = n - 1; k > at; k--)
            ret[k] = ret[k - 1];
        if (at < AHEAD_TOLD)
            ret[at] = other;
    }
    return n;
}

static void why_ahead(const struct daemon *d, const struct job *j,
                      const struct sched_explanation *x, struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    const struct job *ahead[AHEAD_TOLD];
    size_t n = first_ahead(d, j, ahead);
    for (size_t i = 0; i < n; i++) {
        text_add(&t, i ? ", " : "");
        add_waiting(&t, ahead[i]);
    }
    if (n && x->ahead > n)
        text_addf(&t, " and %zu more", x->ahead - n);
    if (n)
        why_view_add(v, "ahead", "%s", t.buf);
    const struct job *holder = x->reserved_for != j->id ? jobs_find(d, x->reserved_for) : NULL;
    if (!holder)
        return;
    text_clear(&t);
    add_waiting(&t, holder);
    why_view_add(v, "kept for", "%s has been promised a start, which nobody may delay", t.buf);
}

static void why_sooner(const struct sched_explanation *x, struct why_view *v)
{
    if (x->short_limit_us <= 0)
        return;
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "--time of at most ");
    text_add_duration(&t, x->short_limit_us);
    text_add(&t, " (now, before others that wait)");
    strv_add(&v->sooner, t.buf);
}

static void why_start(const struct sched_explanation *x, struct now now, struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (!x->expected_boot_us || !x->expected_place)
        return;
    int64_t in_us = x->expected_boot_us > now.boot_us ? x->expected_boot_us - now.boot_us : 0;
    text_add(&t, "in ");
    text_add_duration(&t, in_us);
    text_add(&t, " at the latest, if those who hold it keep to their limits, on ");
    place_add_text(&t, x->expected_place);
    why_view_add(v, "start", "%s", t.buf);
}

void why_pending(struct daemon *d, const struct job *j, struct why_view *v)
{
    struct sched_explanation x;
    struct now now = clock_now();
    sched_explain(d->sched, &d->inventory, j->id, now, &x);
    AUTO(text) struct text asks = TEXT_INIT;
    auto_free char *blocked = waits_words(j);
    request_add(&asks, &j->request);
    auto_free char *summary = text_fmt("#%" PRIu64 " %s", j->id,
                                       blocked     ? blocked
                                       : x.text[0] ? x.text
                                                   : "waits for its turn");
    v->summary = answers_keep(d, 5, summary);
    why_view_add(v, "asks", "%s", asks.buf);
    why_start(&x, now, v);
    why_order(&x, v);
    why_ahead(d, j, &x, v);
    if (j->reason && j->reason[0])
        why_view_add(v, "last try", "%s", j->reason);
    why_cards(d, now, v);
    why_sooner(&x, v);
}
