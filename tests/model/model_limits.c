/*
 * Random accounts, classes and limits, random streams of jobs: no limit is
 * exceeded at any instant, as counted here from what runs; and when nothing
 * more is handed in, everything that was taken runs to its end.
 *
 *     DIVVY_TEST_SEED=N model_limits    the same streams again
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "../unit/dice.h"
#include "../unit/server.h"

#define STREAMS 120
#define JOBS 120
#define ACCOUNTS 5
#define USERS 3
#define CLASSES 2

/* A set of limits, whose jobs they are about, and what was counted. */
struct guard {
    struct limits limits;
    int account, class; /* -1: any */
    bool by_user;
};

struct job {
    bool runs, over;
    bool is_long; /* and so it leaves alone what is kept for others */
    int account, user, class;
    struct place place;
    int64_t limit_us, ends_us;
};

struct world {
    struct inventory inv;
    struct sched *queue;
    struct now now;
    struct guard guards[2 * (ACCOUNTS + CLASSES + 1)];
    size_t guard_count;
    struct job jobs[JOBS + 1];
    uint64_t last, refused, waited;
    uint64_t keep_ppm;
};

static const char *const account_names[ACCOUNTS] = { "lab", "nlp", "vision", "guests", "sims" };
static const int parents[ACCOUNTS] = { -1, 0, 0, -1, 3 };
static const char *const class_names[CLASSES] = { "normal", "urgent" };
static const char *const users[USERS] = { "alice", "bob", "carol" };

static void roll_limits(struct dice *d, struct limits *l)
{
    *l = (struct limits)LIMITS_NONE;
    if (dice_below(d, 3))
        return;
    switch (dice_below(d, 5)) {
    case 0:
        l->cards = 1 + dice_below(d, 3);
        break;
    case 1:
        l->compute_ppm = 300000 + dice_below(d, 2000000);
        break;
    case 2:
        l->mem_ppm = 300000 + dice_below(d, 2000000);
        break;
    case 3:
        l->running = 1 + dice_below(d, 4);
        break;
    default:
        l->slices[l->slice_count++] = (struct limit_slices){ "1g.10gb", 1 + dice_u32(d) % 4 };
        l->slices[l->slice_count++] = (struct limit_slices){ "2g.20gb", 1 };
        break;
    }
}

static const struct limits *guard(struct world *w, struct dice *d, int account, int class,
                                  bool by_user)
{
    struct guard *g = &w->guards[w->guard_count++];
    *g = (struct guard){ .account = account, .class = class, .by_user = by_user };
    roll_limits(d, &g->limits);
    return &g->limits;
}

static void roll_tree(struct world *w, struct dice *d)
{
    static const enum sched_inside leaf[] = { SCHED_USERS, SCHED_FIFO, SCHED_LAS };
    for (int i = 0; i < ACCOUNTS; i++) {
        struct sched_branch b = { .name = account_names[i],
                                  .parent = parents[i] < 0 ? NULL : account_names[parents[i]],
                                  .weight = 1 + (double)dice_below(d, 5),
                                  .inside =
                                      i == 0 || i == 3 ? SCHED_USERS : leaf[dice_below(d, 3)] };
        b.limits = guard(w, d, i, -1, false);
        b.user_limits = guard(w, d, i, -1, true);
        sched_set_account(w->queue, &b);
    }
    for (int i = 0; i < CLASSES; i++) {
        struct qos q;
        qos_init(&q, class_names[i]);
        q.priority = (uint32_t)i;
        q.limits = *guard(w, d, -1, i, false);
        q.user_limits = *guard(w, d, -1, i, true);
        sched_set_qos(w->queue, &q);
        qos_done(&q);
    }
    const struct limits *all = guard(w, d, -1, -1, false);
    sched_set_limits(w->queue, all, guard(w, d, -1, -1, true));
}

static bool is_below(int account, int top)
{
    while (account >= 0 && account != top)
        account = parents[account];
    return account >= 0;
}

static bool concerns(const struct guard *g, const struct job *j, int user)
{
    return j->runs && (!g->by_user || j->user == user) &&
           (g->account < 0 || is_below(j->account, g->account)) &&
           (g->class < 0 || j->class == g->class);
}

static uint64_t slices_of(const struct job *j, const char *profile)
{
    uint64_t n = 0;
    for (size_t i = 0; i < j->place.count; i++)
        n += !j->place.items[i].whole && strcmp(j->place.items[i].profile, profile) == 0;
    return n;
}

static void check_guard(const struct world *w, const struct guard *g, int user)
{
    uint64_t cards = 0, compute = 0, mem = 0, running = 0, slices[LIMIT_SLICES_MAX] = { 0 };
    for (uint64_t id = 1; id <= w->last; id++) {
        const struct job *j = &w->jobs[id];
        if (!concerns(g, j, user))
            continue;
        running++;
        compute += charge_compute_ppm(&j->place);
        mem += charge_mem_ppm(&j->place);
        for (size_t i = 0; i < j->place.count; i++)
            cards += j->place.items[i].whole;
        for (uint32_t k = 0; k < g->limits.slice_count; k++)
            slices[k] += slices_of(j, g->limits.slices[k].profile);
    }
    assert_true(cards <= g->limits.cards);
    assert_true(compute <= g->limits.compute_ppm);
    assert_true(mem <= g->limits.mem_ppm);
    assert_true(running <= g->limits.running);
    for (uint32_t k = 0; k < g->limits.slice_count; k++)
        assert_true(slices[k] <= g->limits.slices[k].max);
}

static void check_keep(const struct world *w)
{
    uint64_t compute = 0, mem = 0, most = w->inv.card_count * (PPM - w->keep_ppm);
    for (uint64_t id = 1; id <= w->last; id++) {
        const struct job *j = &w->jobs[id];
        compute += j->runs && j->is_long ? charge_compute_ppm(&j->place) : 0;
        mem += j->runs && j->is_long ? charge_mem_ppm(&j->place) : 0;
    }
    assert_true(!w->keep_ppm || (compute <= most && mem <= most));
}

static void check_limits(const struct world *w)
{
    check_keep(w);
    for (size_t i = 0; i < w->guard_count; i++)
        for (int user = 0; user < (w->guards[i].by_user ? USERS : 1); user++)
            check_guard(w, &w->guards[i], user);
}

static void cycle(struct world *w, struct dice *d)
{
    struct sched_decision s;
    w->inv.now = w->now;
    sched_cycle(w->queue, w->now);
    while (sched_next(w->queue, &w->inv, w->now, &s) > 0) {
        struct job *j = &w->jobs[s.job_id];
        const char *wrong = server_apply(&w->inv, &s, j->limit_us, w->now);
        if (wrong)
            fail_msg("job %d %s", (int)s.job_id, wrong);
        assert_false(j->runs || j->over);
        j->runs = true;
        uint64_t minutes = (uint64_t)(j->limit_us / CLOCK_MINUTE);
        j->ends_us = w->now.boot_us + (1 + (int64_t)dice_below(d, minutes)) * CLOCK_MINUTE;
        place_copy(&s.place, &j->place);
        sched_start(w->queue, s.job_id, &s.place, charge_dominant_ppm(&s.place), w->now.boot_us);
        check_limits(w);
        sched_decision_done(&s);
    }
}

static struct request roll_request(struct dice *d)
{
    static const char *const profiles[] = { "1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb" };
    switch (dice_below(d, 4)) {
    case 0:
        return ask_cards(1 + (uint32_t)dice_below(d, 3));
    case 1:
        return (struct request){ .kind = REQUEST_NEED,
                                 .count = 1,
                                 .mem_bytes = (4 + dice_below(d, 60)) * GIB };
    default:
        return ask_slices(profiles[dice_below(d, 4)], 1 + (uint32_t)dice_below(d, 3));
    }
}

static void submit(struct world *w, struct dice *d)
{
    struct request r = roll_request(d);
    struct job *j = &w->jobs[w->last + 1];
    *j = (struct job){ .account = (int)dice_below(d, ACCOUNTS),
                       .user = (int)dice_below(d, USERS),
                       .class = (int)dice_below(d, CLASSES),
                       .limit_us = (dice_bool(d) ? 30 : 120) * CLOCK_MINUTE };
    struct sched_job s = { .id = w->last + 1,
                           .uid = (uid_t)(1000 + j->user),
                           .user = users[j->user],
                           .account = account_names[j->account],
                           .qos = class_names[j->class],
                           .request = &r,
                           .limit_us = j->limit_us,
                           .attached = dice_below(d, 4) == 0,
                           .submit_us = w->now.boot_us };
    j->is_long = !s.attached && j->limit_us > CLOCK_HOUR;
    struct place_rules rules = { .mode_hold_us = 0 };
    if (place_possible(&w->inv, &r, &rules, NULL) == PLACE_NEVER ||
        sched_admit(w->queue, &w->inv, &s, w->now, NULL) < 0) {
        w->refused++;
        return;
    }
    sched_add(w->queue, &s);
    w->last++;
}

/* To the next end; false: nothing runs. */
static bool next_end(struct world *w, struct dice *d)
{
    uint64_t first = 0;
    for (uint64_t id = 1; id <= w->last; id++)
        if (w->jobs[id].runs && (!first || w->jobs[id].ends_us < w->jobs[first].ends_us))
            first = id;
    if (!first)
        return false;
    struct job *j = &w->jobs[first];
    w->now.wall_us += j->ends_us - w->now.boot_us;
    w->now.boot_us = j->ends_us;
    server_end(&w->inv, first, w->now);
    bool again = dice_below(d, 8) == 0;
    j->runs = false;
    j->over = !again;
    place_done(&j->place);
    if (again)
        sched_requeue(w->queue, first, w->now.boot_us);
    else
        sched_end(w->queue, first, w->now.boot_us);
    cycle(w, d);
    return true;
}

/* Who waits for a limit is told one that is used up, and by whom. */
static void check_reasons(struct world *w)
{
    for (uint64_t id = 1; id <= w->last; id++) {
        struct sched_explanation x;
        if (w->jobs[id].runs || w->jobs[id].over)
            continue;
        sched_explain(w->queue, &w->inv, id, w->now, &x);
        w->waited += x.why == WHY_LIMIT;
        /* 0: what frees up need not be what the limit is about; now: its time is over */
        if (x.limit_frees_us)
            assert_true(x.limit_frees_us >= w->now.boot_us);
    }
}

static uint64_t run(uint64_t seed)
{
    struct dice d = { .state = seed };
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    policy.mode_hold_us = 0;
    policy.order.age = dice_bool(&d) ? 0 : 0.5;
    w->keep_ppm = dice_bool(&d) ? 0 : 50000 + dice_below(&d, 450000);
    policy.keep_ppm = (uint32_t)w->keep_ppm;
    policy.keep_for_us = CLOCK_HOUR;
    w->queue = sched_new(&policy);
    w->now = (struct now){ .boot_us = CLOCK_DAY, .wall_us = 100 * CLOCK_DAY };
    for (int i = 0; i < 4; i++)
        (void)inventory_add(&w->inv, i < 3 ? board_a100_80() : board_a30());
    roll_tree(w, &d);
    while (w->last < JOBS && w->refused < 10 * JOBS) {
        submit(w, &d);
        cycle(w, &d);
        if (dice_below(&d, 3) == 0)
            (void)next_end(w, &d);
    }
    check_reasons(w);
    while (next_end(w, &d))
        ;
    if (sched_pending(w->queue))
        fail_msg("seed %llu: %zu jobs never start", (unsigned long long)seed,
                 sched_pending(w->queue));
    uint64_t waited = w->waited;
    sched_free(w->queue);
    inventory_done(&w->inv);
    free(w);
    return waited;
}

static uint64_t first_seed(void)
{
    const char *s = getenv("DIVVY_TEST_SEED");
    return s ? strtoull(s, NULL, 10) : 20260101;
}

static void no_limit_is_exceeded_and_nobody_waits_for_ever(void **state)
{
    (void)state;
    uint64_t seed = first_seed(), waited = 0;
    printf("# seed %llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < STREAMS; i++)
        waited += run(seed + i);
    assert_true(waited > STREAMS); /* else the limits were too wide to prove anything */
}

/*
 * A user who has used least waits, whatever he asks for and however many jobs
 * of others wait, at most as long as one job may run for each reservation that
 * was made before he came, and one more for those on the place that is then kept for him.
 */
static void who_used_least_waits_for_those_with_reservations_at_most(void **state)
{
    (void)state;
    struct dice d = { .state = first_seed() };
    for (int round = 0; round < 80; round++) {
        struct sched_policy policy = SCHED_POLICY_DEFAULT;
        struct world *w = calloc(1, sizeof *w);
        assert_non_null(w);
        policy.mode_hold_us = 0;
        policy.reservations = 1 + (uint32_t)dice_below(&d, 8);
        w->queue = sched_new(&policy);
        w->now = (struct now){ .boot_us = CLOCK_DAY, .wall_us = 100 * CLOCK_DAY };
        for (int i = 0; i < 4; i++)
            (void)inventory_add(&w->inv, board_a100_80());
        while (w->last < JOBS - 1)
            submit(w, &d);
        cycle(w, &d);
        for (int i = 0; i < 20; i++)
            (void)next_end(w, &d);
        struct request r = roll_request(&d);
        struct sched_job late = { .id = ++w->last,
                                  .uid = 2000,
                                  .user = "erin",
                                  .account = "newcomers",
                                  .request = &r,
                                  .limit_us = CLOCK_HOUR };
        w->jobs[late.id].limit_us = late.limit_us;
        int64_t since = w->now.boot_us;
        sched_add(w->queue, &late);
        cycle(w, &d);
        while (!w->jobs[late.id].runs && next_end(w, &d))
            ;
        assert_true(w->jobs[late.id].runs);
        assert_true(w->now.boot_us - since <= 2 * (policy.reservations + 1) * CLOCK_HOUR);
        for (uint64_t id = 1; id <= w->last; id++)
            place_done(&w->jobs[id].place);
        sched_free(w->queue);
        inventory_done(&w->inv);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit_is_exceeded_and_nobody_waits_for_ever),
        cmocka_unit_test(who_used_least_waits_for_those_with_reservations_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
