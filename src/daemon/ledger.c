/* What was handed out: booked when an attempt ends, summed when somebody asks. */
#include "daemon/daemon.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/charge.h"
#include "store/preempted.h"

typedef int (*book_fn)(const struct ledger_place *where, const struct held *h, void *arg,
                       struct err *e);

/* What one part of an attempt is booked as, over all of its time. */
struct part {
    const struct job *job;
    const struct placed *item;
    int64_t from_wall_us, to_wall_us;
    struct held all;
    bool ended; /* parts are counted when they come back */
};

static struct held share_of_time(const struct held *all, double part)
{
    return (struct held){ .asked = all->asked * part,
                          .held = all->held * part,
                          .compute = all->compute * part,
                          .mem = all->mem * part,
                          .seen = all->seen * part,
                          .idle = all->idle * part,
                          .measured = all->measured * part,
                          .busy = all->busy * part };
}

static int book_days(const struct part *p, book_fn book, void *arg, struct err *e)
{
    char card[16];
    struct ledger_place where = { .user = p->job->user,
                                  .account = p->job->account,
                                  .profile = p->item->whole ? "whole" : p->item->profile,
                                  .card = card };
    double all = (double)(p->to_wall_us - p->from_wall_us);
    int32_t last = day_of(p->to_wall_us);
    int r = 0;
    (void)snprintf(card, sizeof card, "gpu%u", p->item->ordinal); /* it fits */
    for (int32_t day = day_of(p->from_wall_us); r == 0 && day && day <= last; day = day_next(day)) {
        int64_t from = day_begin(day), to = day_begin(day_next(day));
        from = from > p->from_wall_us ? from : p->from_wall_us;
        to = to < p->to_wall_us ? to : p->to_wall_us;
        struct held h = share_of_time(&p->all, all > 0 ? (double)(to - from) / all : 1);
        h.parts = p->ended && day == last;
        where.day = day;
        r = book(&where, &h, arg, e);
    }
    return r;
}

/* A job without a limit asked for what it took. */
static struct held held_by(const struct job *j, const struct placed *item, int64_t span_us,
                           double all_ppm)
{
    const struct attempt *a = j->attempt;
    uint32_t ppm = item->compute_ppm > item->mem_ppm ? item->compute_ppm : item->mem_ppm;
    double share = ppm / 1e6;
    double part = all_ppm > 0 ? ppm / all_ppm : 0;
    return (struct held){ .asked = share * (double)(j->limit_us ? j->limit_us : span_us),
                          .held = share * (double)span_us,
                          .compute = item->compute_ppm / 1e6 * (double)span_us,
                          .mem = item->mem_ppm / 1e6 * (double)span_us,
                          .seen = a->seen_card_us * part,
                          .idle = a->idle_card_us * part,
                          .measured = a->measured_card_us * part,
                          .busy = a->busy_card_us * part };
}

/* Books every part of the job's attempt, which began when it started and ends now. */
static int book_attempt(const struct job *j, bool ended, struct now now, book_fn book, void *arg,
                        struct held *ret_sum, struct err *e)
{
    const struct attempt *a = j->attempt;
    int64_t end = ended && a->exit.ended_boot_us ? a->exit.ended_boot_us : now.boot_us;
    int64_t span = end > a->started_boot_us ? end - a->started_boot_us : 0;
    int64_t to = now.wall_us - (now.boot_us - end);
    double ppm = (double)charge_dominant_ppm(&a->place);
    int r = 0;
    *ret_sum = (struct held){ .parts = a->place.count };
    for (size_t i = 0; r == 0 && i < a->place.count; i++) {
        const struct placed *item = &a->place.items[i];
        struct part p = { .job = j,
                          .item = item,
                          .from_wall_us = to - span,
                          .to_wall_us = to,
                          .all = held_by(j, item, span, ppm),
                          .ended = ended };
        held_add(ret_sum, &p.all);
        r = book_days(&p, book, arg, e);
    }
    return r;
}

static int book_in_store(const struct ledger_place *where, const struct held *h, void *arg,
                         struct err *e)
{
    return store_book(arg, where, h, e);
}

int ledger_end(struct job *j, enum job_state outcome, struct now now, struct err *e)
{
    const struct attempt *a = j->attempt;
    if (!a->started_boot_us)
        return 0; /* it held nothing that anybody could use */
    struct history_row row = { .job_id = j->id,
                               .attempt = a->number,
                               .uid = j->uid,
                               .user = j->user,
                               .account = j->account,
                               .qos = j->qos,
                               .name = j->name,
                               .request = j->request,
                               .place = a->place,
                               .limit_us = j->limit_us,
                               .attached = j->attached,
                               .mem_bytes = j->mem_bytes,
                               .cpu_milli = j->cpu_milli,
                               .submit_wall_us = j->submit_wall_us,
                               .started_wall_us = a->started_wall_us,
                               .ended_wall_us = now.wall_us,
                               .outcome = outcome };
    if (a->exit.ended_boot_us)
        row.ended_wall_us -= now.boot_us - a->exit.ended_boot_us;
    struct preempted_row gone = { .times = 0 };
    if (store_read_preempted(j->daemon->store, j->id, a->number, &gone, e) == 0)
        row.preempted_by = gone.by;
    int r = book_attempt(j, true, now, book_in_store, j->daemon->store, &row.held, e);
    return r < 0 ? r : store_add_history(j->daemon->store, &row, e);
}

/* ---- asking ---- */

static int book_in_ledger(const struct ledger_place *where, const struct held *h, void *arg,
                          struct err *e)
{
    struct ledger *l = arg;
    const char *const keys[] = { [LEDGER_BY_USER] = where->user,
                                 [LEDGER_BY_ACCOUNT] = where->account,
                                 [LEDGER_BY_PROFILE] = where->profile,
                                 [LEDGER_BY_CARD] = where->card };
    (void)e; /* cannot fail */
    if (where->day >= l->from_day && where->day < l->to_day)
        ledger_book(l, keys[l->by], h);
    return 0;
}

int ledger_sum(struct daemon *d, struct ledger *ret, struct err *e)
{
    struct now now = clock_now();
    struct held sum;
    int r = store_read_ledger(d->store, ret, e);
    for (size_t i = 0; r == 0 && i < d->active_count; i++)
        if (d->active[i]->attempt->started_boot_us)
            r = book_attempt(d->active[i], false, now, book_in_ledger, ret, &sum, e);
    ledger_sort(ret);
    return r;
}

struct history_list {
    struct api_jobs *out;
    uint64_t seq;
};

static int list_row(const struct history_row *row, void *arg)
{
    struct history_list *l = arg;
    bool again = row->outcome == JOB_PENDING;
    struct job_preempted gone = { .times = row->preempted_by != 0,
                                  .wall_us = row->ended_wall_us,
                                  .by = row->preempted_by };
    auto_free char *why =
        row->preempted_by ? text_fmt("preempted for #%" PRIu64, row->preempted_by) : NULL;
    struct job_view v = { .id = row->job_id,
                          .uid = row->uid,
                          .user = row->user,
                          .account = row->account,
                          .name = row->name,
                          .state = row->outcome,
                          .reason = why     ? why
                                    : again ? "it went back to the queue"
                                            : NULL,
                          .preempted = gone,
                          .request = row->request,
                          .place = row->place,
                          .attempt = row->attempt,
                          .tasks = request_tasks(&row->request),
                          .limit_us = row->limit_us,
                          .attached = row->attached,
                          .mem_bytes = row->mem_bytes,
                          .cpu_milli = row->cpu_milli,
                          .submit_wall_us = row->submit_wall_us,
                          .start_wall_us = row->started_wall_us,
                          .end_wall_us = row->ended_wall_us,
                          .enforced = -1 };
    return api_history_add(l->out, &v, row->qos[0] ? row->qos : NULL, &row->held, l->seq) ? 0 : 1;
}

int ledger_history(struct daemon *d, const struct history_filter *f, struct api_jobs *out,
                   struct err *e)
{
    struct history_list l = { .out = out };
    struct history_query q = { .from_wall_us = f->from_wall_us,
                               .to_wall_us = f->to_wall_us,
                               .user = f->user[0] ? f->user : NULL,
                               .account = f->account[0] ? f->account : NULL,
                               .after = f->after,
                               .limit = f->limit + 1 }; /* one more tells whether there is a page */
    int r = store_each_history(d->store, &q, list_row, &l, &l.seq, e);
    return r < 0 ? r : 0;
}
