/*
 * bench_philly [FILE] - the jobs of Microsoft's Philly cluster on 512 cards,
 * policy beside policy.
 *
 * FILE, or what DIVVY_PHILLY names, is a plain trace (replay/trace.h): submit
 * time, duration, cards, virtual cluster. Built with
 * `ninja -C BUILD bench/bench_philly`. Seconds are the processor's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "replay/figures.h"

#define CARDS 512

static double seconds_now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* cannot fail for this clock */
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print(const char *name, const struct replay_figures *f, double took)
{
    printf("%-44s %9.0f %9.0f %8.1f %8.1f %6.3f %6.3f %8llu %6.1f s\n", name, f->completion_mean_s,
           f->wait_mean_s, f->slowdown_mean, f->worst_slowdown, f->jain, f->compute,
           (unsigned long long)f->preemptions, took);
    (void)fflush(stdout);
}

static void run(const struct trace *t, const char *name, const struct replay_policy *policy)
{
    struct bulk bulk = { .cards = CARDS, .free = CARDS };
    struct inventory inv = { .bulk = &bulk };
    AUTO(replay_result) struct replay_result res = REPLAY_RESULT_INIT;
    AUTO(replay_figures) struct replay_figures f = REPLAY_FIGURES_INIT;
    double begun = seconds_now();
    replay_run(t, &inv, policy, &res);
    replay_figures(t, &res, &f);
    print(name, &f, seconds_now() - begun);
}

static struct replay_policy plain(void)
{
    struct replay_policy p = { .sched = SCHED_POLICY_DEFAULT };
    return p;
}

/* ---- what nobody can know ---------------------------------------------------- */

/* All that wait or run, the least time left first; the first that fit run. */
struct oracle {
    struct {
        size_t job;
        int64_t left_us;
        bool runs;
    } * list;
    size_t count, alloc;
    int64_t now_us;
    double completion_s;
};

static void oracle_add(struct oracle *o, const struct trace *t, size_t job)
{
    if (t->jobs[job].request.count > CARDS)
        return;
    ARRAY_ROOM(o->list, o->alloc, o->count + 1);
    size_t at = o->count++;
    for (; at > 0 && o->list[at - 1].left_us > t->jobs[job].run_us; at--)
        o->list[at] = o->list[at - 1];
    o->list[at].job = job;
    o->list[at].left_us = t->jobs[job].run_us;
    o->list[at].runs = false;
}

/* What runs comes nearer to its end, and so past what does not. */
static void oracle_pass(struct oracle *o, const struct trace *t, int64_t at_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < o->count; i++) {
        __typeof__(*o->list) one = o->list[i];
        one.left_us -= one.runs ? at_us - o->now_us : 0;
        if (one.left_us <= 0) {
            o->completion_s += (double)(at_us - t->jobs[one.job].submit_us) / 1e6;
            continue;
        }
        size_t k = kept++;
        for (; k > 0 && o->list[k - 1].left_us > one.left_us; k--)
            o->list[k] = o->list[k - 1];
        o->list[k] = one;
    }
    o->count = kept;
    o->now_us = at_us;
}

/* Chooses who runs; the moment at which the first of them ends. */
static int64_t oracle_choose(struct oracle *o, const struct trace *t)
{
    uint32_t free_cards = CARDS;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < o->count; i++) {
        uint32_t need = t->jobs[o->list[i].job].request.count;
        o->list[i].runs = need <= free_cards;
        if (!o->list[i].runs)
            continue;
        free_cards -= need;
        first = o->now_us + o->list[i].left_us < first ? o->now_us + o->list[i].left_us : first;
    }
    return first;
}

/* Shortest remaining time with perfect knowledge and free preemption: a bound for means. */
static void oracle(const struct trace *t)
{
    struct oracle o = { .now_us = t->count ? t->jobs[0].submit_us : 0 };
    double begun = seconds_now();
    for (size_t next = 0; next < t->count || o.count;) {
        int64_t end = oracle_choose(&o, t);
        bool comes = next < t->count && t->jobs[next].submit_us <= end;
        oracle_pass(&o, t, comes ? t->jobs[next].submit_us : end);
        for (; next < t->count && t->jobs[next].submit_us <= o.now_us; next++)
            oracle_add(&o, t, next);
    }
    printf("%-44s %9.0f %64.1f s\n", "shortest remaining time, by an oracle",
           o.completion_s / (double)t->count, seconds_now() - begun);
    free(o.list);
}

static void all(const struct trace *t)
{
    struct replay_policy p = plain();
    p.sched.order.share = 0;
    p.inside = SCHED_FIFO;
    p.pooled = true;
    p.sched.strict = true;
    run(t, "first come, first served, strictly", &p);
    p.sched.strict = false;
    run(t, "what does not fit is skipped", &p);
    p.inside = SCHED_LAS;
    p.sched.preempt_las = true;
    run(t, "las over all, preemption", &p);
    p = plain();
    p.inside = SCHED_FIFO;
    run(t, "fair between accounts, fifo inside, skipping", &p);
    p.sched.preempt_shares = true;
    run(t, "fair, fifo inside, preemption", &p);
    p.sched.preempt_shares = false;
    p.inside = SCHED_LAS;
    run(t, "fair between accounts, las inside, skipping", &p);
    p.sched.preempt_las = true;
    run(t, "fair, las inside, preemption inside", &p);
    p.sched.preempt_shares = true;
    run(t, "fair, las inside, preemption", &p);
    p.sched.half_life_us = CLOCK_DAY;
    run(t, "the same, half-life a day", &p);
}

/* ---- who waits --------------------------------------------------------------- */

#define HOUR_US (3600 * INT64_C(1000000))

struct change {
    int64_t at_us;
    int cards, waiting;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

/* Cards that are idle while somebody waits, on the average. Without preemption. */
static double idle_cards(const struct trace *t, const struct replay_result *res)
{
    struct change *list = mem_new((3 * t->count + 1) * sizeof *list);
    size_t n = 0;
    double idle = 0, time = 0;
    for (size_t i = 0; i < t->count; i++) {
        int cards = (int)t->jobs[i].request.count;
        int64_t at = res->jobs[i].start_us;
        if (at < 0)
            continue;
        list[n++] = (struct change){ t->jobs[i].submit_us, 0, 1 };
        list[n++] = (struct change){ at, cards, -1 };
        list[n++] = (struct change){ at + t->jobs[i].run_us, -cards, 0 };
    }
    qsort(list, n, sizeof *list, by_time);
    int used = 0, waiting = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        used += list[i].cards;
        waiting += list[i].waiting;
        double lasts = (double)(list[i + 1].at_us - list[i].at_us);
        idle += waiting > 0 ? lasts * (CARDS - used) : 0;
        time += waiting > 0 ? lasts : 0;
    }
    free(list);
    return time > 0 ? idle / time : 0;
}

static double mean_wait_s(const struct trace *t, const struct replay_result *res, uint32_t least,
                          uint32_t most, bool longer)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        uint32_t cards = t->jobs[i].request.count;
        if (cards < least || cards > most || res->jobs[i].start_us < 0 ||
            (t->jobs[i].run_us > HOUR_US) != longer)
            continue;
        sum += (double)(res->jobs[i].start_us - t->jobs[i].submit_us) / 1e6;
        n++;
    }
    return n ? sum / (double)n : 0;
}

/* Where backfill differs from skipping: docs/queueing.md. */
static void who_waits(const struct trace *t, const char *name, const struct replay_policy *policy)
{
    struct bulk bulk = { .cards = CARDS, .free = CARDS };
    struct inventory inv = { .bulk = &bulk };
    AUTO(replay_result) struct replay_result res = REPLAY_RESULT_INIT;
    replay_run(t, &inv, policy, &res);
    printf("%-44s %5.1f cards idle; waits: 1 card %.0f and longer %.0f, above 8 %.0f and longer "
           "%.0f\n",
           name, idle_cards(t, &res), mean_wait_s(t, &res, 1, 1, false),
           mean_wait_s(t, &res, 1, 1, true), mean_wait_s(t, &res, 9, CARDS, false),
           mean_wait_s(t, &res, 9, CARDS, true));
}

static void waits(struct trace *t)
{
    struct replay_policy p = plain();
    p.sched.order.share = 0;
    p.inside = SCHED_FIFO;
    p.pooled = true;
    who_waits(t, "what does not fit is skipped", &p);
    p.sched.strict = true;
    who_waits(t, "strictly", &p);
    p.sched.strict = false;
    p.sched.reservations = 1;
    for (int most = 1; most <= 4; most += 3) {
        trace_guess_limits(t, most, 1);
        who_waits(t, most == 1 ? "1 reservation, limits x 1" : "1 reservation, limits x 1 to 4",
                  &p);
    }
}

/* People guess limits on the safe side; what nobody stops has to wait for somebody's end. */
static void backfill(struct trace *t)
{
    struct replay_policy p = plain();
    trace_guess_limits(t, 4, 1);
    p.inside = SCHED_FIFO;
    p.pooled = true;
    p.sched.order.share = 0;
    p.sched.reservations = 1;
    run(t, "one line, 1 reservation, limits x 1 to 4", &p);
    p.sched.reservations = 8;
    run(t, "one line, 8 reservations, limits x 1 to 4", &p);
    p = plain();
    p.inside = SCHED_FIFO;
    run(t, "fair, fifo inside, 8 reservations", &p);
    p.inside = SCHED_LAS;
    run(t, "fair, las inside, 8 reservations", &p);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : getenv("DIVVY_PHILLY");
    struct err e = ERR_INIT;
    auto_free char *text = NULL;
    size_t len;
    AUTO(trace) struct trace t = TRACE_INIT;
    if (!path) {
        puts("bench_philly: no trace; name one, or set DIVVY_PHILLY");
        return 77;
    }
    if (file_read(AT_FDCWD, path, TRACE_BYTES_MAX, &text, &len, &e) < 0 ||
        trace_parse(path, text, len, &t, &e) < 0) {
        (void)fprintf(stderr, "bench_philly: %s\n", e.text);
        return 1;
    }
    printf("%zu jobs of %zu accounts on %d cards\n", t.count, t.accounts.count, CARDS);
    printf("%-44s %9s %9s %8s %8s %6s %6s %8s\n", "", "completed", "waited", "slowdown", "worst",
           "Jain", "busy", "preempt");
    oracle(&t);
    all(&t);
    waits(&t);
    backfill(&t);
    return 0;
}
