/*
 * Whose turn it is, against somebody who goes through all that wait: random
 * queues of users, pooled and layered accounts, classes, limits and weights,
 * on cards and on counted ones. Each time that a cycle asks line.c who is next, the
 * linker asks here as well (--wrap), and the two must name the same job.
 *
 *     DIVVY_TEST_SEED=N model_line    the same streams again
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "../unit/dice.h"
#include "../unit/server.h"
#include "sched/queue.h"

#define STREAMS 1500
#define EVENTS 60
#define JOBS_MAX 256
#define ACCOUNTS 6
#define USERS 5
#define CLASSES 3

struct entry *__real_line_next(struct sched *s, const struct inventory *inv, struct now now);
struct entry *__wrap_line_next(struct sched *s, const struct inventory *inv, struct now now);
struct entry *__real_line_first_of(struct sched *s, const struct inventory *inv,
                                   const struct question *q, int64_t limit_us, struct now now);
struct entry *__wrap_line_first_of(struct sched *s, const struct inventory *inv,
                                   const struct question *q, int64_t limit_us, struct now now);

static uint64_t asked, told, differ;
static const char *what_differs;

static void differs(const char *what)
{
    differ++;
    what_differs = what;
}

/* ---- who goes through all ----------------------------------------------------- */

struct candidate {
    struct entry *entry;
    struct turn turn;
    bool compared; /* by attained service, inside a leaf */
};

/* Those that ask this alone, of that limit at most, whatever was answered. */
struct asked_for {
    const struct question *question;
    int64_t limit_us;
};

static bool entry_may(const struct sched *s, const struct entry *e, const struct asked_for *f)
{
    if (f)
        return e->limit_us <= f->limit_us;
    enum answer answer = question_answer(s, e->shape->question);
    return answer == ANSWER_OPEN ||
           (answer == ANSWER_SHORT && e->limit_us <= e->shape->question->short_us);
}

/* The first in line below this node of those that may be tried. */
static struct entry *first_below(const struct sched *s, const struct asked_for *f, struct entry *t,
                                 struct entry *first)
{
    if (!t)
        return first;
    if (entry_may(s, t, f) && (!first || entry_before(t, first)))
        first = t;
    return first_below(s, f, t->right, first_below(s, f, t->left, first));
}

static struct candidate first_of_shape(struct sched *s, const struct inventory *inv,
                                       struct shape *sh, const struct asked_for *f, int64_t now_us)
{
    struct candidate c = { .entry = first_below(s, f, sh->root, NULL) };
    if (!c.entry || sh->limited == s->cycle)
        return (struct candidate){ .entry = NULL };
    question_look(s, inv, sh->question);
    if (sh->meter_count && meters_full(sh).meter)
        return (struct candidate){ .entry = NULL };
    c.turn = turn_of(s, c.entry, now_us);
    return c;
}

static bool inside_before(const struct candidate *a, const struct candidate *b)
{
    if (a->turn.tier != b->turn.tier)
        return a->turn.tier > b->turn.tier;
    if (a->entry->level != b->entry->level)
        return a->entry->level < b->entry->level;
    if (a->turn.points < b->turn.points || a->turn.points > b->turn.points)
        return a->turn.points > b->turn.points;
    return entry_before(a->entry, b->entry);
}

/* `by_id`: among those that ask the same, where two have the same place in line. */
static bool across_before(const struct candidate *a, const struct candidate *b, bool by_id)
{
    if (a->turn.tier != b->turn.tier)
        return a->turn.tier > b->turn.tier;
    if (a->turn.points < b->turn.points || a->turn.points > b->turn.points)
        return a->turn.points > b->turn.points;
    if (a->entry->order != b->entry->order)
        return a->entry->order < b->entry->order;
    if (by_id)
        return a->entry->id < b->entry->id;
    return a->entry->shape->leaf->index < b->entry->shape->leaf->index;
}

/* The best of a leaf; `f`: of those alone; NULL: of all that may be tried. */
static struct candidate first_of_leaf(struct sched *s, const struct inventory *inv,
                                      const struct leaf *l, const struct asked_for *f,
                                      int64_t now_us)
{
    struct candidate best = { .entry = NULL };
    for (struct shape *sh = l->shapes; sh; sh = sh->next) {
        struct candidate c = { .entry = NULL };
        if (!f || sh->question == f->question)
            c = first_of_shape(s, inv, sh, f, now_us);
        if (c.entry && (!best.entry || inside_before(&c, &best)))
            best = c;
    }
    return best;
}

/*
 * An account that goes by service may get a better candidate than it had, and
 * is not looked for before its turn: `mine` alone of those is compared.
 */
static bool is_compared(const struct leaf *l, const struct entry *mine)
{
    return l->account->inside != SCHED_LAS || !mine || mine->shape->leaf == l;
}

/* Of all leaves; `f`: as above; `mine`: NULL, or see is_compared. */
static struct entry *first_of_all(struct sched *s, const struct inventory *inv,
                                  const struct asked_for *f, const struct entry *mine,
                                  struct now now)
{
    struct candidate best = { .entry = NULL };
    for (size_t i = 0; i < s->leaf_count; i++) {
        struct candidate c = { .entry = NULL };
        if (is_compared(s->leaves[i], mine))
            c = first_of_leaf(s, inv, s->leaves[i], f, now.boot_us);
        if (c.entry && (!best.entry || across_before(&c, &best, f)))
            best = c;
    }
    return best.entry;
}

/* The tree as it stands must be what ranking it from nothing gives. */
static void check_ranks(const struct sched *s)
{
    size_t n = s->account_count + s->leaf_count;
    auto_free struct fairtree_node *fresh = mem_dup(s->tree, n * sizeof *fresh);
    for (size_t i = 0; i < s->leaf_count; i++) {
        const struct leaf *l = s->leaves[i];
        fresh[l->node].usage =
            l->used_card_us + (double)l->running_ppm / PPM * (double)s->policy.advance_us;
    }
    for (size_t i = 0; i < n; i++)
        fresh[i].rank = 0;
    fairtree_rank(fresh, n);
    for (size_t i = 0; i < n; i++)
        if (fresh[i].rank != s->tree[i].rank || fresh[i].level < s->tree[i].level ||
            fresh[i].level > s->tree[i].level)
            differs("ranks");
}

struct entry *__wrap_line_next(struct sched *s, const struct inventory *inv, struct now now)
{
    struct entry *got = __real_line_next(s, inv, now);
    bool cut_off = s->policy.strict && !got && s->passed_over;
    struct entry *want = cut_off ? NULL : first_of_all(s, inv, NULL, got, now);
    asked++;
    told += got != NULL;
    if (want != got)
        differs("who is next");
    if (got)
        check_ranks(s);
    return got;
}

struct entry *__wrap_line_first_of(struct sched *s, const struct inventory *inv,
                                   const struct question *q, int64_t limit_us, struct now now)
{
    struct entry *got = __real_line_first_of(s, inv, q, limit_us, now);
    asked++;
    struct asked_for f = { .question = q, .limit_us = limit_us };
    if (got != first_of_all(s, inv, &f, NULL, now))
        differs("who is the first of those that ask the same");
    check_ranks(s);
    return got;
}

/* ---- the world ---------------------------------------------------------------- */

enum phase { UNBORN = 0, WAITS, HELD, RUNS, OVER };

struct job {
    enum phase phase;
    int64_t limit_us, ends_us;
};

struct world {
    struct inventory inv;
    struct sched *queue;
    struct dice dice;
    struct now now;
    struct job jobs[JOBS_MAX];
    uint64_t last;
    uint32_t widest; /* whole cards asked for */
    bool ages;       /* age counts */
    uint64_t digest; /* of all that was decided */
};

static const char *const accounts[ACCOUNTS] = { "lab", "nlp", "vision", "guests", "sims", "las" };
static const int parents[ACCOUNTS] = { -1, 0, 0, -1, 3, -1 };
static const char *const classes[CLASSES] = { "normal", "urgent", "idle" };

static uint64_t roll(struct world *w, uint64_t n)
{
    return dice_below(&w->dice, n);
}

static void note(struct world *w, uint64_t v)
{
    w->digest = (w->digest ^ v) * UINT64_C(0x100000001b3);
}

static void roll_policy(struct world *w, struct sched_policy *p)
{
    *p = (struct sched_policy)SCHED_POLICY_DEFAULT;
    p->half_life_us = roll(w, 4) ? CLOCK_HOUR : 0;
    p->mode_hold_us = roll(w, 2) ? 0 : CLOCK_MINUTE;
    p->strict = roll(w, 8) == 0;
    p->reservations = (uint32_t)roll(w, 4);
    p->order.share = roll(w, 5) ? 1 : 0;
    p->order.age = roll(w, 3) ? 0 : 0.5;
    p->order.age_max_us = CLOCK_HOUR;
    p->order.size = roll(w, 3) ? 0 : roll(w, 2) ? 0.3 : -0.3;
    p->keep_ppm = roll(w, 4) ? 0 : 250000;
    p->keep_for_us = CLOCK_HOUR;
    p->preempt_las = roll(w, 2);
    p->preempt_shares = roll(w, 3) == 0;
}

static void roll_accounts(struct world *w)
{
    for (size_t i = 0; i < ACCOUNTS; i++) {
        struct limits all = LIMITS_NONE, each = LIMITS_NONE;
        struct sched_branch b = { .name = accounts[i],
                                  .weight = 1 + (double)roll(w, 3),
                                  .limits = &all,
                                  .user_limits = &each };
        b.parent = parents[i] < 0 ? NULL : accounts[parents[i]];
        b.inside = (enum sched_inside)roll(w, 3);
        if (i == ACCOUNTS - 1)
            b.inside = SCHED_LAS;
        if (roll(w, 3) == 0)
            all.running = 1 + roll(w, 4);
        if (roll(w, 3) == 0)
            each.compute_ppm = 500000 + roll(w, 1000000);
        sched_set_account(w->queue, &b);
    }
}

static void roll_classes(struct world *w)
{
    static char *const idle[] = { "idle", NULL };
    bool urgent_first = roll(w, 2);
    for (size_t i = 0; i < CLASSES; i++) {
        struct qos q;
        qos_init(&q, classes[i]);
        q.priority = i == 1 && urgent_first ? 5 : 0;
        q.preempt = i == 2 ? PREEMPT_REQUEUE : PREEMPT_NEVER;
        q.preempts = i == 1 ? (char **)idle : NULL; /* borrowed, and taken back below */
        sched_set_qos(w->queue, &q);
        q.preempts = NULL;
        qos_done(&q);
    }
}

static void world_init(struct world *w, uint64_t seed)
{
    struct sched_policy policy;
    *w = (struct world){ .dice = { .state = seed },
                         .now = { .boot_us = CLOCK_DAY, .wall_us = 9 * CLOCK_DAY } };
    roll_policy(w, &policy);
    w->ages = policy.order.age > 0;
    w->queue = sched_new(&policy);
    roll_accounts(w);
    if (roll(w, 2))
        roll_classes(w);
    uint64_t cards = 1 + roll(w, 3);
    w->widest = (uint32_t)cards;
    if (roll(w, 4) == 0) {
        w->widest = 8;
        w->inv.bulk = mem_new(sizeof *w->inv.bulk);
        *w->inv.bulk = (struct bulk){ .cards = 8, .free = 8 };
    } else {
        for (uint64_t i = 0; i < cards; i++)
            inventory_add(&w->inv, board_a100_80())->mode = roll(w, 4) ? MODE_AUTO : MODE_SLICES;
    }
}

static void world_done(struct world *w)
{
    inventory_done(&w->inv);
    sched_free(w->queue);
}

static struct request roll_request(struct world *w)
{
    static const char *const profiles[] = { "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb" };
    if (w->inv.bulk || roll(w, 4) == 0)
        return ask_cards(1 + (uint32_t)roll(w, w->widest));
    if (roll(w, 4) == 0)
        return (struct request){ .kind = REQUEST_NEED,
                                 .count = 1,
                                 .mem_bytes = (4 + roll(w, 70)) * GIB };
    return ask_slices(profiles[roll(w, 5)], 1 + (uint32_t)roll(w, 3) / 2);
}

static void submit(struct world *w)
{
    struct request r = roll_request(w);
    char user[8];
    unsigned int who = (unsigned int)roll(w, USERS);
    if (w->last + 1 >= JOBS_MAX)
        return;
    (void)snprintf(user, sizeof user, "u%u", who);
    struct sched_job job = { .id = ++w->last, .uid = 1000 + who, .user = user, .request = &r };
    job.account = accounts[roll(w, ACCOUNTS)];
    job.qos = classes[roll(w, 3) ? 0 : roll(w, CLASSES)];
    job.order = w->ages || roll(w, 6) ? 0 : 1 + roll(w, w->last); /* who is older is before */
    job.limit_us = roll(w, 4) ? (int64_t)(1 + roll(w, 90)) * CLOCK_MINUTE : 0;
    job.submit_us = w->now.boot_us;
    job.attached = roll(w, 5) == 0;
    job.attained_card_us = roll(w, 3) ? 0 : (double)roll(w, 12) * (double)CLOCK_HOUR;
    w->jobs[job.id] = (struct job){ .phase = WAITS, .limit_us = job.limit_us };
    w->jobs[job.id].ends_us = 1 + (int64_t)roll(w, 60) * CLOCK_MINUTE; /* takes so long */
    sched_add(w->queue, &job);
}

static void carry_out(struct world *w, const struct sched_decision *d)
{
    struct job *j = &w->jobs[d->job_id];
    struct bulk_hold h = { .job_id = d->job_id, .since_boot_us = w->now.boot_us };
    AUTO(text) struct text t = TEXT_INIT;
    place_add_text(&t, &d->place);
    note(w, d->job_id);
    for (const char *p = t.buf; p && *p; p++)
        note(w, (unsigned char)*p);
    assert_true(j->phase == WAITS);
    for (size_t i = 0; i < d->place.count; i++)
        h.cards += d->place.items[i].whole;
    h.until_boot_us = j->limit_us ? w->now.boot_us + j->limit_us : INT64_MAX;
    if (w->inv.bulk)
        assert_true(bulk_hold(w->inv.bulk, &h));
    else
        assert_null(server_apply(&w->inv, d, j->limit_us, w->now));
    j->phase = RUNS;
    j->ends_us += w->now.boot_us;
    sched_start(w->queue, d->job_id, &d->place, charge_dominant_ppm(&d->place), w->now.boot_us);
}

static void leave(struct world *w, uint64_t id, bool requeue)
{
    struct job *j = &w->jobs[id];
    if (w->inv.bulk)
        assert_true(bulk_end(w->inv.bulk, id));
    else
        server_end(&w->inv, id, w->now);
    j->phase = requeue ? WAITS : OVER;
    if (requeue)
        sched_requeue(w->queue, id, w->now.boot_us);
    else
        sched_end(w->queue, id, w->now.boot_us);
    if (requeue)
        j->ends_us = 1 + (int64_t)roll(w, 60) * CLOCK_MINUTE;
}

static void preempt(struct world *w)
{
    struct sched_preemption p;
    if (sched_preempt(w->queue, &w->inv, w->now, &p) <= 0)
        return;
    note(w, p.job_id);
    for (size_t i = 0; i < p.count; i++) {
        note(w, p.victims[i]);
        leave(w, p.victims[i], true);
    }
    sched_preemption_done(&p);
}

static void cycle(struct world *w)
{
    struct sched_decision d;
    for (uint64_t id = 1; id <= w->last; id++)
        if (w->jobs[id].phase == HELD && w->jobs[id].ends_us <= w->now.boot_us) {
            w->jobs[id].phase = WAITS;
            w->jobs[id].ends_us = CLOCK_MINUTE;
        }
    sched_cycle(w->queue, w->now);
    while (!differ && sched_next(w->queue, &w->inv, w->now, &d) > 0) {
        carry_out(w, &d);
        sched_decision_done(&d);
    }
}

static uint64_t pick(struct world *w, enum phase phase)
{
    uint64_t id = w->last ? 1 + roll(w, w->last) : 0;
    return id && w->jobs[id].phase == phase ? id : 0;
}

static void pass(struct world *w)
{
    int64_t us = (int64_t)roll(w, 20) * CLOCK_MINUTE;
    w->now.boot_us += us;
    w->now.wall_us += us;
    for (uint64_t id = 1; id <= w->last; id++)
        if (w->jobs[id].phase == RUNS && w->jobs[id].ends_us <= w->now.boot_us)
            leave(w, id, false);
}

static void happen(struct world *w)
{
    uint64_t id, kind = roll(w, 12);
    if (kind < 6)
        submit(w);
    else if (kind < 9)
        pass(w);
    else if (kind == 9 && (id = pick(w, WAITS))) {
        w->jobs[id] = (struct job){ .phase = HELD, .limit_us = w->jobs[id].limit_us };
        w->jobs[id].ends_us = w->now.boot_us + (int64_t)roll(w, 30) * CLOCK_MINUTE;
        sched_hold(w->queue, id, w->jobs[id].ends_us);
    } else if (kind == 10 && (id = pick(w, WAITS))) {
        w->jobs[id].phase = OVER;
        sched_remove(w->queue, id);
    } else if (kind == 11 && (id = pick(w, RUNS))) {
        leave(w, id, true);
    }
}

static uint64_t play(uint64_t seed)
{
    static struct world w;
    world_init(&w, seed);
    for (int i = 0; i < EVENTS && !differ; i++) {
        uint64_t many = 1 + roll(&w, 5);
        for (uint64_t k = 0; k < many; k++)
            happen(&w);
        cycle(&w);
        preempt(&w);
        cycle(&w);
    }
    uint64_t digest = w.digest;
    world_done(&w);
    return digest;
}

static void the_next_is_who_goes_first_of_all_that_may(void **state)
{
    (void)state;
    struct dice d = dice_new(20261130);
    uint64_t digest = 0;
    for (int i = 0; i < STREAMS; i++) {
        uint64_t seed = dice_roll(&d);
        digest = digest * 31 + play(seed);
        if (differ)
            fail_msg("stream %d differs: %s", i, what_differs);
    }
    printf("# asked %u times, %u had a next; schedules %08x\n", (unsigned int)asked,
           (unsigned int)told, (unsigned int)(digest ^ digest >> 32));
    assert_true(told > STREAMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_is_who_goes_first_of_all_that_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
