#include "replay/replay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/charge.h"
#include "plan/carry.h"
#include "replay/heap.h"

/* Boot time 0 means "not known" in an inventory; the virtual machine is a day old at the start. */
#define BOOT_US CLOCK_DAY

/* A job while it is in the queue or runs. */
struct running {
    int64_t left_us; /* of its work */
    int64_t since_us;
    uint64_t attempt;
};

struct world {
    const struct trace *trace;
    const struct replay_policy *policy;
    struct replay_result *result;
    struct sched *queue;
    struct inventory inv;
    struct running *running; /* one per job of the trace */
    struct heap ends;
    size_t next; /* job to be submitted */
    int64_t origin_us;
    struct now now;
};

void replay_result_done(struct replay_result *r)
{
    free(r->jobs);
    memset(r, 0, sizeof *r);
}

/* ---- jobs ------------------------------------------------------------------ */

static int64_t limit_of(const struct world *w, size_t job)
{
    int64_t asked = w->trace->jobs[job].limit_us;
    return asked ? asked : w->policy->default_time_us;
}

static const char *account_of(const struct world *w, size_t job)
{
    return w->policy->pooled ? "all" : w->trace->accounts.words[w->trace->jobs[job].account];
}

static void submit(struct world *w, size_t job)
{
    const struct trace_job *t = &w->trace->jobs[job];
    if (place_possible(&w->inv, &t->request, NULL, NULL) == PLACE_NEVER) {
        w->result->never++;
        return;
    }
    struct sched_job j = { .id = job + 1,
                           .uid = t->user,
                           .user = w->trace->users.words[t->user],
                           .account = account_of(w, job),
                           .qos = t->qos == UINT32_MAX ? NULL : w->trace->qos.words[t->qos],
                           .request = &t->request,
                           .mem_bytes = t->mem_bytes,
                           .cpu_milli = t->cpu_milli,
                           .limit_us = limit_of(w, job),
                           .attached = t->attached,
                           .submit_us = w->now.boot_us };
    if (sched_node_check(w->queue, &j, NULL) < 0) {
        w->result->never++;
        return;
    }
    w->running[job].left_us = t->run_us;
    sched_add(w->queue, &j);
}

static void start(struct world *w, const struct sched_decision *d)
{
    size_t job = (size_t)d->job_id - 1;
    struct running *run = &w->running[job];
    struct replay_job *r = &w->result->jobs[job];
    int64_t limit = limit_of(w, job);
    struct hold hold = { .kind = HOLD_JOB, .job_id = d->job_id, .since_boot_us = w->now.boot_us };
    hold.until_boot_us = limit ? w->now.boot_us + limit : 0;
    w->result->recuts += carry_job(&w->inv, &d->place, &d->plan, &hold);
    w->result->starts++;
    r->share_ppm = charge_dominant_ppm(&d->place);
    r->compute_ppm = charge_compute_ppm(&d->place);
    r->mem_ppm = charge_mem_ppm(&d->place);
    if (r->start_us < 0)
        r->start_us = w->now.wall_us;
    r->cut_short = limit && limit < run->left_us;
    run->since_us = w->now.boot_us;
    heap_put(&w->ends,
             (struct moment){ .at_us = w->now.boot_us + (r->cut_short ? limit : run->left_us),
                              .job = job,
                              .attempt = ++run->attempt });
    sched_start(w->queue, d->job_id, &d->place, r->share_ppm, w->now.boot_us);
}

static void end(struct world *w, const struct moment *m)
{
    struct replay_job *r = &w->result->jobs[m->job];
    carry_end(&w->inv, m->job + 1, w->now.boot_us);
    sched_end(w->queue, m->job + 1, w->now.boot_us);
    r->held_us += w->now.boot_us - w->running[m->job].since_us;
    r->end_us = w->now.wall_us;
}

/* ---- the clock ------------------------------------------------------------- */

static int64_t boot_of(const struct world *w, int64_t wall_us)
{
    return wall_us - w->origin_us + BOOT_US;
}

static bool outdated(const struct world *w, const struct moment *m)
{
    return m->attempt != w->running[m->job].attempt;
}

static int64_t next_end_us(struct world *w)
{
    while (w->ends.count && outdated(w, &w->ends.items[0]))
        (void)heap_take(&w->ends); /* of an attempt that was preempted */
    return w->ends.count ? w->ends.items[0].at_us : INT64_MAX;
}

static int64_t next_moment_us(struct world *w)
{
    int64_t at = next_end_us(w);
    if (w->next < w->trace->count) {
        int64_t submitted = boot_of(w, w->trace->jobs[w->next].submit_us);
        at = submitted < at ? submitted : at;
    }
    int64_t wake = sched_wake_us(w->queue, &w->inv, w->now);
    return wake < at && wake > w->now.boot_us ? wake : at;
}

static void happen(struct world *w, int64_t at_us)
{
    w->now.boot_us = at_us;
    w->now.wall_us = at_us - BOOT_US + w->origin_us;
    while (next_end_us(w) <= at_us) {
        struct moment m = heap_take(&w->ends);
        end(w, &m);
    }
    for (; w->next < w->trace->count && boot_of(w, w->trace->jobs[w->next].submit_us) <= at_us;
         w->next++)
        submit(w, w->next);
}

static void starts(struct world *w)
{
    struct sched_decision d;
    w->result->cycles++;
    sched_cycle(w->queue, w->now);
    while (sched_next(w->queue, &w->inv, w->now, &d) > 0) {
        start(w, &d);
        sched_decision_done(&d);
    }
}

/* Stopped at once, with its work kept; it goes back to its place in line. */
static void stop(struct world *w, size_t job)
{
    struct running *run = &w->running[job];
    int64_t ran = w->now.boot_us - run->since_us;
    carry_end(&w->inv, job + 1, w->now.boot_us);
    sched_requeue(w->queue, job + 1, w->now.boot_us);
    run->attempt++;
    run->left_us -= ran;
    w->result->jobs[job].held_us += ran;
    w->result->jobs[job].preempted++;
    w->result->preemptions++;
}

static void cycle(struct world *w)
{
    struct sched_preemption p;
    starts(w);
    while (sched_preempt(w->queue, &w->inv, w->now, &p) > 0) {
        for (size_t i = 0; i < p.count; i++)
            stop(w, (size_t)p.victims[i] - 1);
        sched_preemption_done(&p);
        starts(w);
    }
}

static void set_account(struct world *w, const char *name)
{
    struct sched_branch b = { .name = name, .weight = 1, .inside = w->policy->inside };
    sched_set_account(w->queue, &b);
}

static bool has_branch(const struct replay_policy *p, const char *name)
{
    for (size_t i = 0; i < p->branch_count; i++)
        if (strcmp(p->branches[i].name, name) == 0)
            return true;
    return false;
}

static void set_accounts(struct world *w)
{
    const struct replay_policy *p = w->policy;
    const struct trace_names *names = &w->trace->accounts;
    if (p->limits || p->user_limits)
        sched_set_limits(w->queue, p->limits, p->user_limits);
    for (size_t i = 0; i < p->qos_count; i++)
        sched_set_qos(w->queue, &p->qos[i]);
    for (size_t i = 0; i < p->branch_count; i++)
        sched_set_account(w->queue, &p->branches[i]);
    for (size_t i = 0; i < names->count && !p->pooled; i++)
        if (!has_branch(p, names->words[i]))
            set_account(w, names->words[i]);
    if (p->pooled)
        set_account(w, "all");
}

static void world_init(struct world *w, const struct trace *t, const struct inventory *inv,
                       const struct replay_policy *p, struct replay_result *r)
{
    *w = (struct world){ .trace = t, .policy = p, .result = r, .origin_us = t->jobs[0].submit_us };
    w->now = (struct now){ .boot_us = BOOT_US, .wall_us = w->origin_us };
    w->queue = sched_new(&p->sched);
    w->running = mem_new(t->count * sizeof *w->running);
    carry_copy(inv, &w->inv);
    set_accounts(w);
}

static void world_done(struct world *w)
{
    sched_free(w->queue);
    inventory_done(&w->inv);
    heap_done(&w->ends);
    free(w->running);
}

void replay_run(const struct trace *t, const struct inventory *inv, const struct replay_policy *p,
                struct replay_result *ret)
{
    struct world w;
    *ret = (struct replay_result){ .jobs = mem_new(t->count * sizeof *ret->jobs) };
    ret->cards = inv->bulk ? inv->bulk->cards : (uint32_t)inv->card_count;
    for (size_t i = 0; i < t->count; i++)
        ret->jobs[i].start_us = ret->jobs[i].end_us = -1;
    world_init(&w, t, inv, p, ret);
    for (int64_t at; (at = next_moment_us(&w)) < INT64_MAX;) {
        happen(&w, at);
        cycle(&w);
    }
    world_done(&w);
}
