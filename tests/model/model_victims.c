/*
 * Random servers full of jobs, and one that may push others out: those chosen
 * are, of all sets that the rules allow, the ones that trying every set gives;
 * what they leave is kept for whom they go for; and what is in a window is not
 * counted on. Some have no cards, and in half of the servers the CPUs and the
 * memory of the machine are counted.
 *
 *     DIVVY_TEST_SEED=N model_victims    the same servers again
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../unit/dice.h"
#include "../unit/server.h"
#include "plan/carry.h"
#include "sched/node.h"
#include "sched/sched.h"
#include "sched/victims.h"

#define SERVERS 3000
#define JOBS 40
#define MOST 12 /* candidates; of more, not every set is tried */
#define ACCOUNTS 3

enum phase { UNBORN = 0, WAITS, RUNS, OVER };

struct job {
    enum phase phase;
    int class, account;
    struct request request;
    uint64_t mem_bytes; /* said, for each task */
    uint32_t cpu_milli;
    struct node_need has; /* of the machine, while it runs */
    int64_t limit_us, since_us;
    uint64_t held_ppm;
};

struct world {
    struct inventory inv;
    struct sched *queue;
    struct sched_policy policy;
    struct now now;
    struct job jobs[JOBS + 1];
    uint64_t last;
    struct sched_closed closed[2];
    size_t closed_count;
    bool shares; /* accounts push each other out, not classes */
    const char *wrong;
};

static const char *const accounts[ACCOUNTS] = { "alice", "bob", "carol" };
static const char *const classes[] = { "spare", "cheap", "kept", "urgent" };
static const uint32_t tiers[] = { 0, 1, 0, 10 };
enum { SPARE = 0, CHEAP, KEPT, URGENT };

/* What one choice asked. */
static size_t questions;

uint32_t __real_place_served(const struct inventory *inv, const struct request *r,
                             const struct place_rules *rules, struct now now);
uint32_t __wrap_place_served(const struct inventory *inv, const struct request *r,
                             const struct place_rules *rules, struct now now);
uint32_t __wrap_place_served(const struct inventory *inv, const struct request *r,
                             const struct place_rules *rules, struct now now)
{
    questions++;
    return __real_place_served(inv, r, rules, now);
}

/* ---- the world ------------------------------------------------------------------ */

static void set_class(struct world *w, int at)
{
    struct qos q;
    char *pushes[] = { text_dup("spare"), text_dup("cheap"), NULL };
    qos_init(&q, classes[at]);
    q.priority = tiers[at];
    q.preempt = at == SPARE || at == CHEAP ? PREEMPT_REQUEUE : PREEMPT_NEVER;
    q.preempts = at == URGENT ? pushes : NULL;
    sched_set_qos(w->queue, &q);
    q.preempts = NULL;
    free(pushes[0]);
    free(pushes[1]);
    qos_done(&q);
}

static void add_cards(struct world *w, struct dice *d)
{
    static const enum card_mode modes[] = { MODE_AUTO, MODE_AUTO, MODE_SLICES, MODE_WHOLE };
    uint64_t kind = dice_below(d, 4); /* all alike, or of each something */
    for (uint64_t i = 2 + dice_below(d, 3); i > 0; i--) {
        uint64_t board = kind < 2 ? 0 : dice_below(d, 4);
        struct inventory_card *c = inventory_add(&w->inv, board == 3   ? board_rtx4090()
                                                          : board == 2 ? board_a30()
                                                                       : board_a100_80());
        c->mode = board == 3 ? MODE_WHOLE : modes[dice_below(d, 4)];
    }
}

/* In half of all servers the machine matters, too. */
static struct sched_node roll_machine(struct dice *d)
{
    struct sched_node n = { .mem_bytes = 64 * GIB, .cpu_milli = 16000 };
    if (dice_bool(d))
        return (struct sched_node){ .mem_bytes = 0 };
    n.mem_shares = dice_bool(d);
    n.cpu_shares = dice_bool(d);
    return n;
}

static void world_init(struct world *w, struct dice *d)
{
    memset(w, 0, sizeof *w);
    w->now = (struct now){ .boot_us = CLOCK_DAY, .wall_us = 100 * CLOCK_DAY };
    w->policy = (struct sched_policy)SCHED_POLICY_DEFAULT;
    w->policy.reservations = (uint32_t)dice_below(d, 4);
    w->shares = dice_below(d, 3) == 0;
    w->policy.preempt_shares = w->shares;
    if (dice_bool(d))
        w->policy.mode_hold_us = 0;
    w->policy.node = roll_machine(d);
    w->queue = sched_new(&w->policy);
    for (size_t i = 0; i < ACCOUNTS; i++) {
        struct sched_branch b = { .name = accounts[i], .inside = SCHED_FIFO };
        b.weight = (double)(1 + dice_below(d, 3));
        sched_set_account(w->queue, &b);
    }
    for (int i = SPARE; i <= URGENT; i++)
        set_class(w, i);
    add_cards(w, d);
}

static void world_done(struct world *w)
{
    inventory_done(&w->inv);
    sched_free(w->queue);
}

static bool is_closed(const struct world *w, uint32_t card, int64_t limit_us)
{
    return server_is_closed(w->closed, w->closed_count, card, limit_us, w->now);
}

/* ---- the machine ------------------------------------------------------------------- */

static struct node_need need_on(const struct world *w, const struct job *j, const struct place *p)
{
    const struct sched_node *node = &w->policy.node;
    uint64_t tasks = request_tasks(&j->request) ? request_tasks(&j->request) : 1;
    struct node_need n = { .cpu_milli = j->cpu_milli * tasks, .mem_bytes = j->mem_bytes * tasks };
    for (size_t i = 0; i < p->count; i++) {
        n.cpu_ppm += node->cpu_shares && !n.cpu_milli ? p->items[i].compute_ppm : 0;
        n.mem_ppm += node->mem_shares && !n.mem_bytes ? p->items[i].mem_ppm : 0;
    }
    return n;
}

/* What it needs nothing of may be used up. */
static bool machine_has(const struct world *w, const struct node_need *used,
                        const struct node_need *n)
{
    const struct sched_node *has = &w->policy.node;
    struct node_need sum = *used;
    node_add(&sum, n);
    uint64_t cpu = sum.cpu_milli + sched_node_part(has->cpu_milli, sum.cpu_ppm, w->inv.card_count);
    uint64_t mem = sum.mem_bytes + sched_node_part(has->mem_bytes, sum.mem_ppm, w->inv.card_count);
    return (!has->cpu_milli || !(n->cpu_milli || n->cpu_ppm) || cpu <= has->cpu_milli) &&
           (!has->mem_bytes || !(n->mem_bytes || n->mem_ppm) || mem <= has->mem_bytes);
}

static struct node_need used(const struct world *w)
{
    struct node_need sum = { .cpu_milli = 0 };
    for (uint64_t id = 1; id <= w->last; id++)
        if (w->jobs[id].phase == RUNS)
            node_add(&sum, &w->jobs[id].has);
    return sum;
}

static void start(struct world *w, const struct sched_decision *d)
{
    struct node_need others = used(w);
    struct job *j = &w->jobs[d->job_id];
    const char *bad = server_apply(&w->inv, d, j->limit_us, w->now);
    for (size_t i = 0; i < d->place.count; i++)
        if (is_closed(w, d->place.items[i].ordinal, j->limit_us))
            bad = "starts on a card that a window closes within its limit";
    j->has = need_on(w, j, &d->place);
    if (!machine_has(w, &others, &j->has))
        bad = "starts where the machine has no room for it";
    if (bad)
        w->wrong = bad;
    j->phase = RUNS;
    j->since_us = w->now.boot_us;
    j->held_ppm = charge_dominant_ppm(&d->place);
    sched_start(w->queue, d->job_id, &d->place, j->held_ppm, w->now.boot_us);
}

/* Goes on with the cycle. */
static void go_on(struct world *w)
{
    struct sched_decision d;
    while (!w->wrong && sched_next(w->queue, &w->inv, w->now, &d) > 0) {
        start(w, &d);
        sched_decision_done(&d);
    }
}

static void cycle(struct world *w)
{
    w->inv.now = w->now;
    sched_cycle(w->queue, w->now);
    go_on(w);
}

static void pass(struct world *w, int64_t us)
{
    w->now.boot_us += us;
    w->now.wall_us += us;
}

/* Pushed out: it is back in the queue. */
static void stop(struct world *w, uint64_t id)
{
    server_end(&w->inv, id, w->now);
    sched_requeue(w->queue, id, w->now.boot_us);
    w->jobs[id].phase = WAITS;
}

static void finish(struct world *w, uint64_t id)
{
    server_end(&w->inv, id, w->now);
    sched_end(w->queue, id, w->now.boot_us);
    w->jobs[id].phase = OVER;
}

static struct request roll_request(struct dice *d)
{
    static const char *const profiles[] = { "1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb",
                                            "4g.40gb", "7g.80gb", "1g.6gb",  "2g.12gb" };
    uint64_t kind = dice_below(d, 9);
    if (kind == 8)
        return (struct request){ .kind = REQUEST_NOTHING, .count = 1 };
    if (kind < 2)
        return ask_cards(1 + (uint32_t)dice_below(d, 2));
    if (kind < 3)
        return (struct request){ .kind = REQUEST_NEED,
                                 .count = 1 + (uint32_t)dice_below(d, 2),
                                 .mem_bytes = (4 + dice_below(d, 60)) * GIB };
    struct request r = ask_slices(profiles[dice_below(d, 8)], 1 + (uint32_t)dice_below(d, 4) / 2);
    r.spread = r.count > 1 && dice_below(d, 4) == 0;
    return r;
}

static uint64_t submit(struct world *w, struct dice *d, int class)
{
    struct request r = roll_request(d);
    struct place_rules rules = { .mode_hold_us = 0 };
    if (w->last == JOBS || place_possible(&w->inv, &r, &rules, NULL) == PLACE_NEVER)
        return 0;
    struct job *j = &w->jobs[++w->last];
    *j = (struct job){ .phase = WAITS, .class = class, .request = r };
    j->account = (int)dice_below(d, ACCOUNTS);
    j->limit_us = dice_bool(d) ? (int64_t)(1 + dice_below(d, 600)) * CLOCK_MINUTE : 0;
    if (dice_bool(d))
        j->mem_bytes = (1 + dice_below(d, 24)) * GIB;
    if (dice_bool(d))
        j->cpu_milli = 500 * (1 + (uint32_t)dice_below(d, 12));
    struct sched_job job = { .id = w->last,
                             .account = accounts[j->account],
                             .qos = w->shares ? NULL : classes[class],
                             .request = &j->request,
                             .limit_us = j->limit_us,
                             .mem_bytes = j->mem_bytes,
                             .cpu_milli = j->cpu_milli,
                             .submit_us = w->now.boot_us };
    sched_add(w->queue, &job);
    return w->last;
}

static uint64_t running(const struct world *w, uint64_t n)
{
    uint64_t count = 0;
    for (uint64_t id = 1; id <= w->last; id++)
        count += w->jobs[id].phase == RUNS;
    for (uint64_t id = 1; count && id <= w->last; id++)
        if (w->jobs[id].phase == RUNS && n % count-- == 0)
            return id;
    return 0;
}

/* A server in use. */
static void fill(struct world *w, struct dice *d)
{
    for (uint64_t i = 6 + dice_below(d, 14); i > 0 && !w->wrong; i--) {
        (void)submit(w, d, (int)dice_below(d, 3));
        cycle(w);
        pass(w, dice_bool(d) ? CLOCK_MINUTE : 0);
        uint64_t id = dice_below(d, 4) ? 0 : running(w, dice_below(d, JOBS));
        if (id)
            finish(w, id);
    }
    cycle(w);
}

static void roll_windows(struct world *w, struct dice *d)
{
    w->closed_count = dice_below(d, 3);
    for (size_t i = 0; i < w->closed_count; i++) {
        struct sched_closed *c = &w->closed[i];
        c->ordinal = (uint32_t)dice_below(d, w->inv.card_count);
        c->from_us = w->now.boot_us + (int64_t)dice_below(d, 300) * CLOCK_MINUTE;
        c->until_us = c->from_us + (int64_t)(1 + dice_below(d, 120)) * CLOCK_MINUTE;
    }
    sched_set_closed(w->queue, w->closed, w->closed_count);
}

/* ---- by trying every set ------------------------------------------------------------ */

static uint64_t candidates[JOBS];
static size_t candidate_count;

static int by_going(const void *x, const void *y, const struct world *w)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    const struct job *ja = &w->jobs[a], *jb = &w->jobs[b];
    uint32_t ta = w->shares ? 0 : tiers[ja->class], tb = w->shares ? 0 : tiers[jb->class];
    if (ta != tb)
        return ta < tb ? -1 : 1;
    if (ja->since_us != jb->since_us)
        return ja->since_us > jb->since_us ? -1 : 1;
    return a > b ? -1 : 1; /* their places in line are their ids */
}

static struct sched_account of(struct world *w, int account)
{
    struct sched_account a;
    assert_true(sched_account(w->queue, accounts[account], w->now, &a));
    return a;
}

static double held_of(const struct world *w, int account)
{
    uint64_t sum = 0;
    for (uint64_t id = 1; id <= w->last; id++)
        if (w->jobs[id].phase == RUNS && w->jobs[id].account == account)
            sum += w->jobs[id].held_ppm;
    return (double)sum;
}

/* The least of a card that it could take, on any board here. */
static double need_of(const struct world *w, const struct request *r)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    uint64_t least = UINT64_MAX;
    if (r->kind == REQUEST_NOTHING)
        return 0;
    if (r->kind == REQUEST_CARDS)
        return (double)r->count * PPM;
    for (size_t i = 0; i < w->inv.card_count; i++)
        for (size_t n = request_fits(r, &w->inv.cards[i].card.board, fits), k = 0; k < n; k++)
            least = fits[k].dominant_ppm < least ? fits[k].dominant_ppm : least;
    return (double)(least * r->count);
}

/* With these gone, do the shares of who loses and who gains not change places? */
static bool shares_allow(struct world *w, uint64_t id, uint32_t set)
{
    const struct job *j = &w->jobs[id];
    double after =
        (held_of(w, j->account) + need_of(w, &j->request)) / of(w, j->account).norm_shares;
    double loses[ACCOUNTS] = { 0 };
    for (size_t i = 0; i < candidate_count; i++)
        if (set >> i & 1)
            loses[w->jobs[candidates[i]].account] += (double)w->jobs[candidates[i]].held_ppm;
    for (int a = 0; a < ACCOUNTS; a++)
        if (loses[a] > 0 && (a == j->account || of(w, a).rank <= of(w, j->account).rank ||
                             (held_of(w, a) - loses[a]) / of(w, a).norm_shares < after))
            return false;
    return true;
}

static bool allowed(struct world *w, uint64_t id, uint32_t set)
{
    for (size_t i = 0; !w->shares && i < candidate_count; i++)
        if (set >> i & 1 && w->jobs[candidates[i]].class != SPARE &&
            w->jobs[candidates[i]].class != CHEAP)
            return false;
    return w->shares ? shares_allow(w, id, set) : w->jobs[id].class == URGENT;
}

static bool fits_without(struct world *w, uint64_t id, uint32_t set)
{
    AUTO(inventory) struct inventory copy = { .cards = NULL };
    enum card_ban bans[8] = { BAN_NOTHING };
    struct place_rules rules = { .bans = bans };
    struct place place;
    struct plan plan;
    struct node_need others = used(w);
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (is_closed(w, w->inv.cards[i].card.ordinal, w->jobs[id].limit_us))
            bans[i] = BAN_ALL;
    carry_copy(&w->inv, &copy);
    for (size_t i = 0; i < candidate_count; i++)
        if (set >> i & 1) {
            carry_end(&copy, candidates[i], w->now.boot_us);
            node_sub(&others, &w->jobs[candidates[i]].has);
        }
    if (place_request(&copy, &w->jobs[id].request, &rules, w->now, &place, &plan, NULL) !=
        PLACE_NOW)
        return false;
    struct node_need need = need_on(w, &w->jobs[id], &place);
    place_done(&place);
    plan_done(&plan);
    return machine_has(w, &others, &need);
}

/* Those that may go alone, in the order in which they should. */
static void list_candidates(struct world *w, uint64_t id)
{
    candidate_count = 0;
    for (uint64_t v = 1; v <= w->last; v++) {
        if (w->jobs[v].phase != RUNS || (w->shares && !w->jobs[v].held_ppm))
            continue;
        candidates[candidate_count++] = v;
        size_t last = candidate_count - 1;
        for (size_t i = last; i > 0 && by_going(&candidates[i], &candidates[i - 1], w) < 0; i--) {
            uint64_t swap = candidates[i];
            candidates[i] = candidates[i - 1];
            candidates[i - 1] = swap;
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < candidate_count; i++) {
        uint64_t v = candidates[i], kept = candidates[0];
        size_t count = candidate_count;
        candidates[0] = v;
        candidate_count = 1;
        bool may = allowed(w, id, 1);
        candidates[0] = kept;
        candidate_count = count;
        if (may)
            candidates[n++] = v;
    }
    candidate_count = n;
}

/* 0: none does. Of as few the lowest number: who should go last counts most. */
static uint32_t fewest(struct world *w, uint64_t id)
{
    for (int size = 1; size <= (int)candidate_count; size++)
        for (uint32_t set = 1; set < 1u << candidate_count; set++)
            if (__builtin_popcount(set) == size && allowed(w, id, set) && fits_without(w, id, set))
                return set;
    return 0;
}

/* ---- one server ------------------------------------------------------------------------ */

/* What there was to be seen, over all servers. */
static struct {
    size_t choices, of_several, in_vain, most_questions, second_starts;
    size_t kept; /* it would have fitted, but for what is kept for others or is to turn */
    size_t cardless, for_cardless; /* who went without cards; for whom */
} seen;

static void compare(struct world *w, const struct sched_preemption *p, uint32_t best)
{
    uint32_t got = 0;
    for (size_t k = 0; k < p->count; k++)
        for (size_t i = 0; i < candidate_count; i++)
            if (candidates[i] == p->victims[k])
                got |= 1u << i;
    if (__builtin_popcount(got) != (int)p->count)
        w->wrong = "somebody goes whom the rules forbid";
    else if (fits_without(w, p->job_id, 0)) /* it is kept for others, or has not turned yet */
        seen.kept++;
    else if (__builtin_popcount(got) != __builtin_popcount(best))
        w->wrong = "more go than need be";
    else if (got != best)
        w->wrong = "of as few, others should go";
    for (size_t k = 0; k < p->count; k++)
        seen.cardless += !w->jobs[p->victims[k]].held_ppm;
    seen.for_cardless += w->jobs[p->job_id].request.kind == REQUEST_NOTHING;
    seen.choices++;
    seen.of_several += p->count > 1;
}

/*
 * They leave, one after the other, while others come who would like the room; one that was there
 * before may end by itself. At the end it starts, at the latest when its card may turn.
 */
static void carry_out(struct world *w, struct dice *d, const struct sched_preemption *p)
{
    uint64_t before = w->last;
    go_on(w); /* the same cycle, asked once more */
    for (size_t i = 0; i < p->count && !w->wrong; i++) {
        if (!w->closed_count)
            pass(w, (int64_t)dice_below(d, 2) * CLOCK_MINUTE);
        (void)submit(w, d, SPARE);
        (void)submit(w, d, KEPT);
        cycle(w);
        for (uint64_t id = before + 1; id <= w->last; id++)
            seen.second_starts += w->jobs[id].phase == RUNS;
        stop(w, p->victims[i]);
        if (w->jobs[p->job_id].phase == RUNS)
            return;
    }
    cycle(w);
    if (w->jobs[p->job_id].phase != RUNS && w->policy.mode_hold_us) {
        pass(w, w->policy.mode_hold_us);
        cycle(w);
    }
    if (!w->wrong && w->jobs[p->job_id].phase != RUNS &&
        !(w->closed_count && w->policy.mode_hold_us)) /* then the window may have come nearer */
        w->wrong = "does not start when those have gone that were to go for it";
}

static uint64_t first_urgent(const struct world *w)
{
    for (uint64_t id = 1; id <= w->last; id++)
        if (w->jobs[id].phase == WAITS && w->jobs[id].class == URGENT)
            return id;
    return 0;
}

static void ask(struct world *w, struct dice *d)
{
    struct sched_preemption p = { .job_id = 0 };
    questions = 0;
    int found = sched_preempt(w->queue, &w->inv, w->now, &p);
    seen.most_questions = questions > seen.most_questions ? questions : seen.most_questions;
    uint64_t id = found ? p.job_id : w->shares ? 0 : first_urgent(w);
    list_candidates(w, id ? id : 1);
    if (id && candidate_count <= MOST) {
        uint32_t best = fewest(w, id);
        if (found)
            compare(w, &p, best);
        else if (best && !fits_without(w, id, 0))
            w->wrong = "waits though there are some who could go for it";
        seen.in_vain += !found;
    }
    if (found && !w->wrong)
        carry_out(w, d, &p);
    sched_preemption_done(&p);
}

static const char *play(uint64_t seed)
{
    static struct world w;
    struct dice d = { .state = seed };
    world_init(&w, &d);
    fill(&w, &d);
    if (dice_below(&d, 3) == 0)
        roll_windows(&w, &d);
    for (int i = 0; i < 3 && !w.wrong; i++) {
        (void)submit(&w, &d, URGENT);
        cycle(&w);
        if (!w.wrong)
            ask(&w, &d);
    }
    world_done(&w);
    return w.wrong;
}

static void those_go_that_trying_every_set_gives(void **state)
{
    (void)state;
    struct dice d = dice_new(20261201);
    for (int i = 0; i < SERVERS; i++) {
        uint64_t seed = dice_roll(&d);
        const char *bad = play(seed);
        if (bad)
            fail_msg("server %d: a job %s", i, bad);
    }
    printf("# %zu choices, %zu of several jobs; %zu times nobody could go; at most %zu questions\n",
           seen.choices, seen.of_several, seen.in_vain, seen.most_questions);
    assert_true(seen.choices > 200 && seen.of_several > 40 && seen.in_vain > 40);
    printf("# %zu times it would have fitted but for what was kept or was to turn\n", seen.kept);
    printf("# %zu without cards went; %zu times for one without cards\n", seen.cardless,
           seen.for_cardless);
    assert_true(seen.cardless > 20 && seen.for_cardless > 20);
    assert_true(seen.second_starts > 0);
    assert_true(seen.most_questions <= VICTIMS_QUESTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_go_that_trying_every_set_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
