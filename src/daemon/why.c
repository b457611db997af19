/* Why a job waits, told term by term. */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static void add_level(struct text *t, double level)
{
    if (isinf(level))
        text_add(t, "(nothing used)");
    else
        text_addf(t, "%.4g", level);
}

static void why_share(const struct sched_explanation *x, struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_addf(&t, "%s has level fairness ", x->account);
    add_level(&t, x->account_level);
    if (x->user) {
        text_addf(&t, ", %s in it ", x->user);
        add_level(&t, x->user_level);
    }
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

static void why_terms(const struct sched_explanation *x, struct why_view *v)
{
    why_view_add(v, "class", "%s, tier %u", x->qos, x->tier);
    why_share(x, v);
    why_points(x, v);
    if (x->inside != SCHED_LAS)
        return;
    AUTO(text) struct text had = TEXT_INIT;
    text_add_duration(&had, (int64_t)x->attained_card_us);
    why_view_add(v, "service", "has had %s of a card: queue %u", had.buf, x->level + 1);
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
    text_add(&t, "about ");
    waits_add_moment(&t, now.wall_us + in_us, now.wall_us);
    text_add(&t, ", in ");
    text_add_duration(&t, in_us);
    text_add(&t, " at the latest, if those who run keep to their limits, on ");
    place_add_text(&t, x->expected_place);
    why_view_add(v, "start", "%s", t.buf);
}

/* "#62 waits for ..." as one sentence, and others behind a colon. */
static char *summary_of(const struct job *j, const char *words)
{
    bool sentence = text_starts(words, "waits ") || text_starts(words, "asks ");
    return text_fmt("#%" PRIu64 " %s%s", j->id, sentence ? "" : "waits: ", words);
}

static void why_place(struct daemon *d, const struct job *j, const struct sched_explanation *x,
                      const char *blocked, struct now now, struct why_view *v)
{
    if (blocked)
        why_view_add(v, "order", "not in line as long as that is so");
    else
        why_line(d, j, x, now, v);
    why_terms(x, v);
}

/* What became of it before. */
static void why_before(struct daemon *d, const struct job *j, struct now now, struct why_view *v)
{
    struct job_view view = { .attempt = j->attempts };
    const struct job_preempted *p = &view.preempted;
    AUTO(text) struct text t = TEXT_INIT;
    preempt_show(d, j->id, &view);
    if (p->times > 1)
        text_addf(&t, "%u times, the last ", p->times);
    if (p->times) {
        text_add(&t, "at ");
        waits_add_moment(&t, p->wall_us, now.wall_us);
        text_add(&t, " for ");
        job_preempted_add_by(&t, p);
        why_view_add(v, "preempted", "%s", t.buf);
    }
    if (j->reason && j->reason[0] && !text_starts(j->reason, "preempted for "))
        why_view_add(v, "last try", "%s", j->reason);
}

void why_pending(struct daemon *d, const struct job *j, struct why_view *v)
{
    struct sched_explanation x;
    struct now now = clock_now();
    sched_explain(d->sched, &d->inventory, j->id, now, &x);
    AUTO(text) struct text asks = TEXT_INIT;
    auto_free char *blocked = waits_words(j);
    auto_free char *late = blocked ? NULL : waits_too_late(j, &x, now);
    request_add(&asks, &j->request);
    auto_free char *summary = summary_of(j, blocked     ? blocked
                                            : late      ? late
                                            : x.text[0] ? x.text
                                                        : "waits for its turn");
    v->summary = answers_keep(d, 5, summary);
    why_view_add(v, "asks", "%s", asks.buf);
    if (!late)
        why_start(&x, now, v);
    why_place(d, j, &x, blocked, now, v);
    why_before(d, j, now, v);
    why_cards(d, now, v);
    why_sooner(&x, v);
}
