/*
 * Random streams of submits, cancels, ends and maintenance windows against
 * sched/ and plan/ on a server of two to eight cards, with every step carried
 * out and checked.
 *
 *     DIVVY_TEST_SEED=N model_sched    the same streams again
 *
 * A stream that fails is shrunk to the fewest events that still fail, and told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../unit/dice.h"
#include "../unit/server.h"

#define STREAMS 250
#define EVENTS 70
#define JOBS_MAX 128
#define ACCOUNTS 3
#define WINDOWS 4

enum event_kind {
    EV_SUBMIT,
    EV_CANCEL,
    EV_REQUEUE,
    EV_HOLD,
    EV_PASS,
    EV_CLOSE,  /* a window is planned */
    EV_REOPEN, /* one is called off */
    EV_MOVE,   /* one begins and ends at another time */
};

struct event {
    enum event_kind kind;
    uint32_t account;
    struct request request;
    uint64_t mem_bytes; /* for each task; 0: not said */
    uint32_t cpu_milli;
    int64_t limit_us; /* of the job; 0: none */
    int64_t us;       /* how long the job runs, or how much time passes, or the hold; how far off
                         a window is, and then its length is the limit */
    uint32_t which;   /* job to cancel, requeue or hold, card or window, modulo those there are */
};

struct stream {
    uint64_t seed; /* of the server */
    struct event events[EVENTS];
    size_t count;
};

enum phase { UNBORN = 0, WAITS, HELD, RUNS, OVER };

struct job {
    enum phase phase;
    uint32_t account;
    uint64_t order;
    struct request request;
    uint64_t mem_bytes; /* said, for each task */
    uint32_t cpu_milli;
    struct sched_amount has; /* of the machine, while it runs */
    int64_t limit_us, runs_us, ends_us, promised_us, held_until_us;
    bool reserved; /* it had a reservation after the last cycle */
};

struct world {
    struct inventory inv;
    struct sched *queue;
    struct sched_policy policy;
    struct now now;
    struct job jobs[JOBS_MAX];
    uint64_t last_id, last_order;
    uint64_t digest; /* of all starts */
    const char *wrong;
    uint64_t wrong_id;
    struct sched_closed closed[WINDOWS];
    size_t closed_count;
    bool loud; /* tell what happens */
};

static const char *const account_names[ACCOUNTS] = { "alice", "bob", "carol" };

/* ---- streams ---------------------------------------------------------------- */

static struct request roll_request(struct dice *d)
{
    static const char *const profiles[] = { "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb" };
    uint64_t kind = dice_below(d, 11);
    if (kind == 10)
        return (struct request){ .kind = REQUEST_NOTHING };
    if (kind < 3)
        return ask_cards(1 + (uint32_t)dice_below(d, 3));
    if (kind < 5)
        return (struct request){ .kind = REQUEST_NEED,
                                 .count = 1 + (uint32_t)dice_below(d, 2),
                                 .mem_bytes = (4 + dice_below(d, 60)) * GIB };
    return ask_slices(profiles[dice_below(d, 5)], 1 + (uint32_t)dice_below(d, 3) / 2);
}

static struct event roll_event(struct dice *d, bool endless, bool windows)
{
    static const enum event_kind kinds[] = { EV_SUBMIT, EV_SUBMIT, EV_SUBMIT,  EV_SUBMIT, EV_PASS,
                                             EV_PASS,   EV_CANCEL, EV_REQUEUE, EV_HOLD,   EV_CLOSE,
                                             EV_CLOSE,  EV_REOPEN, EV_MOVE };
    struct event ev = { .kind = kinds[dice_below(d, windows ? 13 : 9)] };
    ev.account = (uint32_t)dice_below(d, ACCOUNTS);
    ev.request = roll_request(d);
    if (dice_below(d, 3) == 0)
        ev.mem_bytes = (1 + dice_below(d, 8)) * (dice_below(d, 4) ? 4 : 16) * GIB;
    if (dice_below(d, 3) == 0)
        ev.cpu_milli = 500 * (1 + (uint32_t)dice_below(d, 16));
    ev.limit_us = (int64_t)(1 + dice_below(d, 120)) * CLOCK_MINUTE;
    ev.us = ev.kind == EV_SUBMIT ? 1 + (int64_t)dice_below(d, (uint64_t)ev.limit_us)
                                 : (int64_t)dice_below(d, 40) * CLOCK_MINUTE;
    if (dice_below(d, 3) == 0)
        ev.us = ev.kind == EV_SUBMIT ? ev.limit_us : 0;
    if (endless && dice_below(d, 4) == 0)
        ev.limit_us = 0;
    ev.which = dice_u32(d);
    return ev;
}

static void roll_stream(uint64_t seed, struct stream *st)
{
    struct dice d = { .state = seed };
    *st = (struct stream){ .seed = seed, .count = EVENTS };
    bool endless = dice_bool(&d), windows = dice_bool(&d);
    for (size_t i = 0; i < EVENTS; i++)
        st->events[i] = roll_event(&d, endless, windows);
}

/* ---- the world --------------------------------------------------------------- */

static void world_init(struct world *w, uint64_t seed, bool loud)
{
    struct dice d = { .state = seed ^ 0x5eed };
    static const enum card_mode modes[] = { MODE_AUTO, MODE_AUTO, MODE_AUTO, MODE_SLICES,
                                            MODE_WHOLE };
    memset(w, 0, sizeof *w);
    w->loud = loud;
    w->policy = (struct sched_policy)SCHED_POLICY_DEFAULT;
    if (dice_bool(&d))
        w->policy.mode_hold_us = 0;
    if (dice_bool(&d))
        w->policy.reservations = 1 + (uint32_t)dice_below(&d, 12);
    if (dice_bool(&d))
        w->policy.node = (struct sched_node){ .mem_bytes = (32 + dice_below(&d, 200)) * GIB,
                                              .cpu_milli = dice_bool(&d) ? 16000 : 0,
                                              .mem_shares = dice_bool(&d),
                                              .cpu_shares = dice_bool(&d) };
    w->queue = sched_new(&w->policy);
    w->now = (struct now){ .boot_us = CLOCK_DAY, .wall_us = 100 * CLOCK_DAY };
    uint64_t cards = 2 + dice_below(&d, 7);
    for (uint64_t i = 0; i < cards; i++) {
        bool old = dice_below(&d, 6) == 0;
        struct inventory_card *c = inventory_add(&w->inv, old ? board_rtx4090() : board_a100_80());
        c->mode = old ? MODE_WHOLE : modes[dice_below(&d, 5)];
    }
}

static void world_done(struct world *w)
{
    inventory_done(&w->inv);
    sched_free(w->queue);
}

static void wrong(struct world *w, uint64_t id, const char *what)
{
    if (!w->wrong) {
        w->wrong = what;
        w->wrong_id = id;
    }
}

static void tell(const struct world *w, uint64_t id, const char *what, const char *more)
{
    if (w->loud)
        printf("#   %6.1f min  job %d %s %s\n",
               (double)(w->now.boot_us - CLOCK_DAY) / (double)CLOCK_MINUTE, (int)id, what, more);
}

/* As far as it is counted. */
static bool asks_same(const struct world *w, const struct job *a, const struct job *b)
{
    const struct sched_node *node = &w->policy.node;
    return request_same(&a->request, &b->request) &&
           (!node->mem_bytes || a->mem_bytes == b->mem_bytes) &&
           (!node->cpu_milli || a->cpu_milli == b->cpu_milli);
}

/* Of the whole machine; what is not counted is 0. */
static struct sched_amount amount_on(const struct world *w, const struct job *j,
                                     const struct place *p)
{
    const struct sched_node *node = &w->policy.node;
    uint32_t tasks = request_tasks(&j->request) ? request_tasks(&j->request) : 1;
    double mem = 0, cpu = 0, cards = (double)w->inv.card_count * PPM;
    for (size_t i = 0; i < p->count; i++) {
        mem += p->items[i].mem_ppm;
        cpu += p->items[i].compute_ppm;
    }
    struct sched_amount a = { .cpu_milli = (uint64_t)j->cpu_milli * tasks,
                              .mem_bytes = j->mem_bytes * tasks };
    if (!a.mem_bytes && node->mem_shares)
        a.mem_bytes = (uint64_t)((double)node->mem_bytes * mem / cards);
    if (!a.cpu_milli && node->cpu_shares)
        a.cpu_milli = (uint64_t)((double)node->cpu_milli * cpu / cards);
    return (struct sched_amount){ .cpu_milli = node->cpu_milli ? a.cpu_milli : 0,
                                  .mem_bytes = node->mem_bytes ? a.mem_bytes : 0 };
}

static struct sched_amount used(const struct world *w)
{
    struct sched_amount sum = { .cpu_milli = 0 };
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase == RUNS) {
            sum.cpu_milli += w->jobs[id].has.cpu_milli;
            sum.mem_bytes += w->jobs[id].has.mem_bytes;
        }
    return sum;
}

/* Beside all that run, and all for whom something is kept. */
static bool machine_has(const struct world *w, struct sched_amount n)
{
    struct sched_reservation r;
    struct sched_amount sum = used(w);
    uint64_t any_mem = n.mem_bytes, any_cpu = n.cpu_milli;
    for (size_t i = 0; sched_reservation(w->queue, i, &r); i++) {
        if (!r.place) /* who knows how much that will be */
            return !any_mem && !any_cpu;
        struct sched_amount kept = amount_on(w, &w->jobs[r.job_id], r.place);
        sum.cpu_milli += kept.cpu_milli;
        sum.mem_bytes += kept.mem_bytes;
    }
    return (!any_mem || sum.mem_bytes + any_mem <= w->policy.node.mem_bytes) &&
           (!any_cpu || sum.cpu_milli + any_cpu <= w->policy.node.cpu_milli);
}

/* But for what is rounded, once for each of them at most. */
static bool near(uint64_t a, uint64_t b)
{
    return a < b + JOBS_MAX && b < a + JOBS_MAX;
}

static void check_machine(struct world *w, uint64_t id)
{
    struct sched_amount mine = used(w), told = sched_node_used(w->queue, &w->inv);
    const struct sched_node *node = &w->policy.node;
    if (told.mem_bytes > node->mem_bytes || told.cpu_milli > node->cpu_milli)
        wrong(w, id, "makes those that run need more than the machine has");
    if (!near(told.mem_bytes, mine.mem_bytes) || !near(told.cpu_milli, mine.cpu_milli))
        wrong(w, id, "is counted for another part of the machine than its own");
}

static void check_order(struct world *w, uint64_t id)
{
    const struct job *j = &w->jobs[id];
    for (uint64_t k = 1; k <= w->last_id; k++) {
        const struct job *other = &w->jobs[k];
        bool as_short = j->limit_us == 0 || (other->limit_us && other->limit_us <= j->limit_us);
        if (other->phase == WAITS && other->order < j->order && other->account == j->account &&
            as_short && asks_same(w, other, j))
            wrong(w, id, "overtook an equal job of its account");
    }
}

static bool is_closed(const struct world *w, uint32_t card, int64_t limit_us)
{
    return server_is_closed(w->closed, w->closed_count, card, limit_us, w->now);
}

static void check_windows(struct world *w, const struct sched_decision *d)
{
    for (size_t i = 0; i < d->place.count; i++)
        if (is_closed(w, d->place.items[i].ordinal, w->jobs[d->job_id].limit_us))
            wrong(w, d->job_id, "started where it would still be in a maintenance window");
}

/* A promise is the request's: whose turn it is takes it over from an equal. */
static void pass_promises_on(struct world *w, const struct sched_decision *d)
{
    for (uint64_t id = 1; id <= w->last_id && !d->backfill; id++) {
        struct job *other = &w->jobs[id];
        if (id != d->job_id && other->phase == WAITS && asks_same(w, other, &w->jobs[d->job_id]))
            other->promised_us = 0;
    }
}

static void start(struct world *w, const struct sched_decision *d)
{
    struct job *j = &w->jobs[d->job_id];
    AUTO(text) struct text t = TEXT_INIT;
    place_add_text(&t, &d->place);
    tell(w, d->job_id, d->backfill ? "fills in on" : "starts on", t.buf);
    for (const char *p = t.buf; *p; p++)
        w->digest = (w->digest ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    w->digest = (w->digest ^ d->job_id ^ (uint64_t)w->now.boot_us) * UINT64_C(0x100000001b3);
    if (j->phase != WAITS)
        wrong(w, d->job_id, "started though it does not wait");
    if (j->promised_us && w->now.boot_us > j->promised_us)
        wrong(w, d->job_id, "started later than its reservation said");
    check_order(w, d->job_id);
    check_windows(w, d);
    pass_promises_on(w, d);
    const char *bad = server_apply(&w->inv, d, j->limit_us, w->now);
    if (bad)
        wrong(w, d->job_id, bad);
    j->phase = RUNS;
    j->ends_us = w->now.boot_us + j->runs_us;
    j->has = amount_on(w, j, &d->place);
    sched_start(w->queue, d->job_id, &d->place, charge_dominant_ppm(&d->place), w->now.boot_us);
    check_machine(w, d->job_id);
}

static void forget_promise(struct world *w, uint64_t id)
{
    w->jobs[id].promised_us = 0;
    w->jobs[id].reserved = false;
}

/* A reservation may come nearer, never go away. */
static void check_promise(struct world *w)
{
    struct sched_reservation r;
    bool has[JOBS_MAX] = { false };
    size_t count = 0;
    for (size_t i = 0; sched_reservation(w->queue, i, &r); i++) {
        struct job *j = &w->jobs[r.job_id];
        count++;
        has[r.job_id] = true;
        if (j->promised_us && r.when_us > j->promised_us)
            wrong(w, r.job_id, "has a reservation that moved to a later time");
        if (j->phase != WAITS)
            wrong(w, r.job_id, "has a reservation and does not wait");
        j->reserved = true;
        if (r.when_us != INT64_MAX)
            j->promised_us = r.when_us;
    }
    if (count > w->policy.reservations)
        wrong(w, 0, "there are more reservations than the policy says");
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].reserved && !has[id])
            forget_promise(w, id); /* gave it up: held, cancelled, or came second */
}

static bool could_start(struct world *w, const struct job *j)
{
    struct sched_reservation r;
    enum card_ban bans[8] = { BAN_NOTHING };
    struct place place;
    struct plan plan;
    for (size_t i = 0; sched_reservation(w->queue, i, &r); i++) {
        for (size_t k = 0; k < r.card_count; k++)
            bans[r.cards[k]] = BAN_ALL;
        for (size_t k = 0; r.place && k < r.place->count; k++)
            bans[r.place->items[k].ordinal] = BAN_ALL;
    }
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (is_closed(w, w->inv.cards[i].card.ordinal, j->limit_us))
            bans[i] = BAN_ALL;
    struct place_rules rules = { .bans = bans, .mode_hold_us = w->policy.mode_hold_us };
    if (place_request(&w->inv, &j->request, &rules, w->now, &place, &plan, NULL) != PLACE_NOW)
        return false;
    struct sched_amount needs = amount_on(w, j, &place);
    place_done(&place);
    plan_done(&plan);
    return machine_has(w, needs);
}

static void check_nothing_idles(struct world *w)
{
    size_t waiting = 0;
    for (uint64_t id = 1; id <= w->last_id; id++) {
        const struct job *j = &w->jobs[id];
        waiting += j->phase == WAITS || j->phase == HELD;
        if (j->phase == WAITS && could_start(w, j))
            wrong(w, id, "waits though it could start beside the reservation");
    }
    if (waiting != sched_pending(w->queue))
        wrong(w, 0, "the queue counts wrongly");
}

/* Whoever asks is told what is so: after a cycle nobody starts next, or would by what he has. */
static void check_reasons(struct world *w)
{
    for (uint64_t id = 1; id <= w->last_id; id++) {
        const struct job *j = &w->jobs[id];
        struct sched_explanation x;
        if (j->phase == UNBORN || j->phase == OVER)
            continue;
        sched_explain(w->queue, &w->inv, id, w->now, &x);
        if ((x.why == WHY_RUNNING) != (j->phase == RUNS) ||
            (x.why == WHY_HELD) != (j->phase == HELD))
            wrong(w, id, "is told another state than its own");
        if (j->phase == WAITS && (x.why == WHY_UNKNOWN || x.why == WHY_NEXT || !x.text[0]))
            wrong(w, id, "waits, and is not told why");
        if (x.why == WHY_NEXT || (j->limit_us && x.short_limit_us >= j->limit_us))
            tell(w, id, "is told:", x.text);
        if (x.why == WHY_DRAINING && (!x.reserved_for || x.reserved_for == id || x.text[0] == ' '))
            wrong(w, id, "is not told what is kept, and for whom");
        if (j->limit_us && x.short_limit_us >= j->limit_us)
            wrong(w, id, "would start now with the limit that it has");
    }
}

/* Within an account the first come goes first: reservations behind it begin anew. */
static void come_back(struct world *w, uint64_t id)
{
    struct job *j = &w->jobs[id];
    j->phase = WAITS;
    for (uint64_t k = 1; k <= w->last_id; k++)
        if (w->jobs[k].reserved && j->order < w->jobs[k].order && j->account == w->jobs[k].account)
            forget_promise(w, k);
}

static void release_due(struct world *w)
{
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase == HELD && w->jobs[id].held_until_us <= w->now.boot_us)
            come_back(w, id);
}

static void cycle(struct world *w)
{
    struct sched_decision d;
    w->inv.now = w->now;
    release_due(w);
    sched_cycle(w->queue, w->now);
    while (!w->wrong && sched_next(w->queue, &w->inv, w->now, &d) > 0) {
        start(w, &d);
        sched_decision_done(&d);
    }
    if (w->wrong)
        return;
    check_promise(w);
    check_nothing_idles(w);
    check_reasons(w);
}

/* ---- events ------------------------------------------------------------------ */

static void finish(struct world *w, uint64_t id, bool requeue)
{
    struct job *j = &w->jobs[id];
    tell(w, id, requeue ? "is requeued" : "ends", "");
    server_end(&w->inv, id, w->now);
    if (requeue)
        sched_requeue(w->queue, id, w->now.boot_us);
    else
        sched_end(w->queue, id, w->now.boot_us);
    j->phase = OVER;
    j->promised_us = 0;
    if (requeue)
        come_back(w, id);
}

/* The next moment at which something happens by itself; INT64_MAX: never. */
static int64_t next_moment(const struct world *w)
{
    int64_t next = sched_wake_us(w->queue, &w->inv, w->now);
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase == RUNS && w->jobs[id].ends_us < next)
            next = w->jobs[id].ends_us;
    for (size_t i = 0; i < w->closed_count; i++) /* whoever says them knows when they end */
        if (w->closed[i].until_us > w->now.boot_us && w->closed[i].until_us < next)
            next = w->closed[i].until_us;
    return next;
}

static void go_to(struct world *w, int64_t boot_us)
{
    w->now.wall_us += boot_us - w->now.boot_us;
    w->now.boot_us = boot_us;
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase == RUNS && w->jobs[id].ends_us <= boot_us)
            finish(w, id, false);
    cycle(w);
}

static void pass(struct world *w, int64_t us)
{
    int64_t until = w->now.boot_us + us;
    for (int64_t next; !w->wrong && (next = next_moment(w)) <= until;)
        go_to(w, next);
    if (!w->wrong)
        go_to(w, until);
}

/* Ids rise; only the one test that goes on for long sets old ones free. */
static uint64_t free_id(struct world *w)
{
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase == UNBORN)
            return id;
    assert_true(w->last_id + 1 < JOBS_MAX);
    return ++w->last_id;
}

static void submit(struct world *w, const struct event *ev)
{
    struct place_rules rules = { .mode_hold_us = w->policy.mode_hold_us };
    if (place_possible(&w->inv, &ev->request, &rules, NULL) == PLACE_NEVER)
        return;
    struct sched_job asks = { .request = &ev->request,
                              .mem_bytes = ev->mem_bytes,
                              .cpu_milli = ev->cpu_milli };
    if (sched_node_check(w->queue, &asks, NULL) < 0)
        return;
    uint64_t id = free_id(w);
    AUTO(text) struct text t = TEXT_INIT;
    w->jobs[id] = (struct job){ .phase = WAITS,
                                .order = ++w->last_order,
                                .account = ev->account,
                                .request = ev->request,
                                .mem_bytes = ev->mem_bytes,
                                .cpu_milli = ev->cpu_milli,
                                .limit_us = ev->limit_us,
                                .runs_us = ev->us };
    request_add(&t, &ev->request);
    text_addf(&t, " for %s, limit %.1f min, takes %.1f min", account_names[ev->account],
              (double)ev->limit_us / (double)CLOCK_MINUTE, (double)ev->us / (double)CLOCK_MINUTE);
    text_addf(&t, ", %g GiB, %g CPUs", (double)ev->mem_bytes / GIB, ev->cpu_milli / 1000.0);
    tell(w, id, "asks for", t.buf);
    struct sched_job job = { .id = id,
                             .order = w->last_order,
                             .account = account_names[ev->account],
                             .request = &w->jobs[id].request,
                             .mem_bytes = ev->mem_bytes,
                             .cpu_milli = ev->cpu_milli,
                             .limit_us = ev->limit_us };
    sched_add(w->queue, &job);
}

/* The n-th job of that phase, 0 when there is none. */
static uint64_t pick(const struct world *w, enum phase phase, uint32_t n)
{
    uint32_t count = 0;
    for (uint64_t id = 1; id <= w->last_id; id++)
        count += w->jobs[id].phase == phase;
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase == phase && n % count-- == 0)
            return id;
    return 0;
}

static void cancel(struct world *w, uint64_t id)
{
    if (!id)
        return;
    tell(w, id, "is cancelled", "");
    sched_remove(w->queue, id);
    w->jobs[id].phase = OVER;
}

static void hold(struct world *w, uint64_t id, int64_t us)
{
    if (!id)
        return;
    tell(w, id, "is held", "");
    w->jobs[id].phase = HELD;
    w->jobs[id].held_until_us = w->now.boot_us + us;
    w->jobs[id].promised_us = 0;
    sched_hold(w->queue, id, w->now.boot_us + us);
}

/* Those that are over are said no more. */
static void say_windows(struct world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->closed_count; i++)
        if (w->closed[i].until_us > w->now.boot_us)
            w->closed[n++] = w->closed[i];
    w->closed_count = n;
    sched_set_closed(w->queue, w->closed, n);
}

/* What a window takes, nobody can be promised: those that were begin anew. */
static void close_card(struct world *w, size_t at, uint32_t card, const struct event *ev)
{
    int64_t from_us = w->now.boot_us + ev->us;
    w->closed[at] = (struct sched_closed){ card, from_us, from_us + CLOCK_MINUTE + ev->limit_us };
    for (uint64_t id = 1; id <= w->last_id; id++)
        w->jobs[id].promised_us = 0;
    tell(w, card, "is the ordinal of a card that is closed", "");
}

static void change_windows(struct world *w, const struct event *ev)
{
    size_t n = w->closed_count, at = n ? ev->which % n : 0;
    if (ev->kind == EV_CLOSE && n < WINDOWS)
        close_card(w, w->closed_count++, ev->which % (uint32_t)w->inv.card_count, ev);
    else if (ev->kind == EV_MOVE && n)
        close_card(w, at, w->closed[at].ordinal, ev);
    else if (ev->kind == EV_REOPEN && n)
        w->closed[at] = w->closed[--w->closed_count];
    say_windows(w);
}

static void happen(struct world *w, const struct event *ev)
{
    uint64_t id;
    switch (ev->kind) {
    case EV_SUBMIT:
        submit(w, ev);
        break;
    case EV_CANCEL:
        cancel(w, pick(w, WAITS, ev->which));
        break;
    case EV_REQUEUE:
        id = pick(w, RUNS, ev->which);
        if (id)
            finish(w, id, true);
        break;
    case EV_HOLD:
        hold(w, pick(w, WAITS, ev->which), ev->us);
        break;
    case EV_PASS:
        pass(w, ev->us);
        return;
    case EV_CLOSE:
    case EV_REOPEN:
    case EV_MOVE:
        change_windows(w, ev);
        break;
    }
    cycle(w);
}

/* Nobody submits any more: everybody must get his turn, and the server be free again. */
static void drain(struct world *w)
{
    for (int64_t next; !w->wrong && (next = next_moment(w)) != INT64_MAX;)
        go_to(w, next);
    for (uint64_t id = 1; id <= w->last_id; id++)
        if (w->jobs[id].phase != OVER)
            wrong(w, id, "never had its turn");
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (!inventory_card_free(&w->inv.cards[i]))
            wrong(w, 0, "a card is held by nobody");
}

/* NULL, or what went wrong; gives the digest of the schedule. */
static const char *play(const struct stream *st, bool loud, uint64_t *ret_digest)
{
    static struct world w;
    world_init(&w, st->seed, loud);
    for (size_t i = 0; !w.wrong && i < st->count; i++)
        happen(&w, &st->events[i]);
    if (!w.wrong)
        drain(&w);
    if (w.wrong && loud)
        printf("#   job %d %s\n", (int)w.wrong_id, w.wrong);
    *ret_digest = w.digest;
    world_done(&w);
    return w.wrong;
}

/* Leaves out what can be left out, in halves, quarters … single events. */
static void shrink(struct stream *st)
{
    uint64_t digest;
    for (size_t size = st->count / 2; size; size /= 2)
        for (size_t at = 0; at + size <= st->count;) {
            struct stream less = *st;
            less.count -= size;
            memmove(&less.events[at], &less.events[at + size],
                    (less.count - at) * sizeof *less.events);
            if (play(&less, false, &digest))
                *st = less;
            else
                at += size;
        }
}

static void random_streams_keep_every_promise(void **state)
{
    (void)state;
    struct dice d = dice_new(20260101);
    for (int i = 0; i < STREAMS; i++) {
        struct stream st;
        uint64_t first, again;
        roll_stream(dice_roll(&d), &st);
        const char *bad = play(&st, false, &first);
        if (bad) {
            shrink(&st);
            bad = play(&st, true, &first);
            fail_msg("stream %d, shrunk to %zu events: a job %s", i, st.count, bad);
        }
        assert_null(play(&st, false, &again));
        assert_true(first == again);
    }
}

/*
 * A job of all cards behind a stream of small ones: it has its turn when the longest of them is
 * over, and its cards have turned; every second time no later than that after a window.
 */
static void a_wide_job_does_not_starve_behind_small_ones(void **state)
{
    (void)state;
    struct dice d = dice_new(7);
    static struct world w;
    const int64_t longest = 30 * CLOCK_MINUTE;
    for (int round = 0; round < 40; round++) {
        bool endless = dice_bool(&d);
        world_init(&w, dice_roll(&d), false);
        for (size_t i = 0; i < w.inv.card_count; i++)
            w.inv.cards[i].mode = w.inv.cards[i].card.mig_capable ? MODE_AUTO : MODE_WHOLE;
        struct event wide = { .request = ask_cards((uint32_t)w.inv.card_count),
                              .us = CLOCK_HOUR,
                              .limit_us = CLOCK_HOUR };
        uint64_t wide_id = 0;
        for (int i = 0; i < 100 && w.jobs[wide_id].phase != RUNS && !w.wrong; i++) {
            struct event small = { .account = 1,
                                   .request = ask_slices("1g.10gb", 1),
                                   .limit_us = endless ? 0 : longest,
                                   .us = 1 + (int64_t)dice_below(&d, (uint64_t)longest) };
            if (i == 10) {
                submit(&w, &wide);
                wide_id = w.last_id;
            }
            if (i == 20 && round % 2) {
                struct event close = { .kind = EV_CLOSE, .which = dice_u32(&d) };
                close.us = (int64_t)dice_below(&d, 60) * CLOCK_MINUTE;
                close.limit_us = (int64_t)dice_below(&d, 120) * CLOCK_MINUTE;
                happen(&w, &close);
            }
            submit(&w, &small);
            pass(&w, (int64_t)dice_below(&d, 3) * CLOCK_MINUTE);
        }
        if (!w.wrong && w.closed_count && w.closed[0].until_us > w.now.boot_us)
            pass(&w, w.closed[0].until_us - w.now.boot_us);
        if (!w.wrong)
            pass(&w, longest + w.policy.mode_hold_us);
        if (w.wrong)
            fail_msg("round %d: job %d %s", round, (int)w.wrong_id, w.wrong);
        assert_true(w.jobs[wide_id].phase == RUNS || w.jobs[wide_id].phase == OVER);
        world_done(&w);
    }
}

/* ---- shares ------------------------------------------------------------------ */

static const double weights[ACCOUNTS] = { 1, 2, 4 };

/* Each account has something waiting at any time: jobs of its own size, longer ones for the later. */
static void keep_waiting(struct world *w, struct dice *d)
{
    static const char *const profiles[ACCOUNTS] = { "3g.40gb", "1g.10gb", "2g.20gb" };
    uint32_t waiting[ACCOUNTS] = { 0 };
    for (uint64_t id = 1; id <= w->last_id; id++) {
        struct job *j = &w->jobs[id];
        waiting[j->account] += j->phase == WAITS;
        if (j->phase == OVER)
            j->phase = UNBORN;
    }
    for (uint32_t a = 0; a < ACCOUNTS; a++) {
        struct event ev = { .account = a, .request = ask_slices(profiles[a], 1) };
        ev.us = (int64_t)(1 + dice_below(d, 60 * (a + 1))) * CLOCK_MINUTE;
        ev.limit_us = ev.us;
        while (waiting[a]++ < 12)
            submit(w, &ev);
    }
}

static void add_held(struct world *w, double held[ACCOUNTS])
{
    for (int a = 0; a < ACCOUNTS; a++) {
        struct sched_account got;
        assert_true(sched_account(w->queue, account_names[a], w->now, &got));
        held[a] += (double)got.running_ppm;
    }
}

static void share_server(struct world *w, uint64_t seed)
{
    world_init(w, seed, false);
    w->policy.mode_hold_us = 0;
    sched_set_policy(w->queue, &w->policy, w->now);
    for (size_t i = 0; i < w->inv.card_count; i++)
        w->inv.cards[i].mode = w->inv.cards[i].card.mig_capable ? MODE_SLICES : MODE_WHOLE;
    for (int a = 0; a < ACCOUNTS; a++)
        sched_set_weight(w->queue, account_names[a], weights[a]);
}

/* What each gets of a full server is as its weight, whatever lengths and sizes its jobs have. */
static void a_full_server_is_shared_by_weight(void **state)
{
    (void)state;
    static struct world w;
    struct dice d = dice_new(11);
    double held[ACCOUNTS] = { 0 }, sum = 0;
    share_server(&w, dice_roll(&d));
    for (int i = 0; i < 1200 && !w.wrong; i++) {
        keep_waiting(&w, &d);
        pass(&w, 5 * CLOCK_MINUTE);
        if (i > 200)
            add_held(&w, held);
    }
    if (w.wrong)
        fail_msg("job %d %s", (int)w.wrong_id, w.wrong);
    for (int a = 0; a < ACCOUNTS; a++)
        sum += held[a];
    for (int a = 0; a < ACCOUNTS; a++) {
        double got = held[a] / sum, due = weights[a] / 7;
        printf("# %s: due %.3f of the server, got %.3f\n", account_names[a], due, got);
        assert_true(got > due * 0.9 && got < due * 1.1);
    }
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams_keep_every_promise),
        cmocka_unit_test(a_wide_job_does_not_starve_behind_small_ones),
        cmocka_unit_test(a_full_server_is_shared_by_weight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
