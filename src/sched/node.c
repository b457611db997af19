#include "sched/node.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"
#include "sched/queue.h"

/* More than any machine has; sums of these stay in their type. */
#define MOST_BYTES (UINT64_C(1) << 50)
#define MOST_MILLI (UINT64_C(1) << 40)

/* All that run now, past their limits or not. */
#define NOW INT64_MIN

void node_done(struct node *n)
{
    free(n->ends);
}

void node_look(struct sched *s, const struct inventory *inv)
{
    s->node.cards = inv->bulk ? inv->bulk->cards : (uint32_t)inv->card_count;
}

/* ---- needs ------------------------------------------------------------------- */

void node_add(struct node_need *sum, const struct node_need *n)
{
    sum->cpu_milli += n->cpu_milli;
    sum->mem_bytes += n->mem_bytes;
    sum->cpu_ppm += n->cpu_ppm;
    sum->mem_ppm += n->mem_ppm;
}

void node_sub(struct node_need *sum, const struct node_need *n)
{
    sum->cpu_milli -= n->cpu_milli;
    sum->mem_bytes -= n->mem_bytes;
    sum->cpu_ppm -= n->cpu_ppm;
    sum->mem_ppm -= n->mem_ppm;
}

bool node_same(const struct node_need *a, const struct node_need *b)
{
    return a->cpu_milli == b->cpu_milli && a->mem_bytes == b->mem_bytes &&
           a->cpu_ppm == b->cpu_ppm && a->mem_ppm == b->mem_ppm;
}

static uint64_t times(uint64_t each, uint32_t tasks, uint64_t most)
{
    return each > most / tasks ? most : each * tasks;
}

struct node_need node_said(const struct sched *s, const struct sched_job *job)
{
    const struct sched_node *has = &s->policy.node;
    struct node_need n = { .cpu_milli = 0 };
    uint32_t tasks = request_tasks(job->request);
    tasks = tasks ? tasks : 1;
    if (has->cpu_milli)
        n.cpu_milli = times(job->cpu_milli, tasks, MOST_MILLI);
    if (has->mem_bytes)
        n.mem_bytes = times(job->mem_bytes, tasks, MOST_BYTES);
    return n;
}

static bool by_part(uint64_t has, bool shares, uint64_t said)
{
    return has && shares && !said;
}

struct node_need node_least(const struct sched *s, const struct question *q)
{
    const struct sched_node *has = &s->policy.node;
    struct node_need n = q->said;
    if (by_part(has->cpu_milli, has->cpu_shares, n.cpu_milli))
        n.cpu_ppm = q->need.compute_ppm;
    if (by_part(has->mem_bytes, has->mem_shares, n.mem_bytes))
        n.mem_ppm = q->need.mem_ppm;
    return n;
}

struct node_need node_on(const struct sched *s, const struct question *q, const struct place *p)
{
    const struct sched_node *has = &s->policy.node;
    struct node_need n = q->said;
    bool cpu = by_part(has->cpu_milli, has->cpu_shares, n.cpu_milli);
    bool mem = by_part(has->mem_bytes, has->mem_shares, n.mem_bytes);
    for (size_t i = 0; p && i < p->count; i++) {
        n.cpu_ppm += cpu ? p->items[i].compute_ppm : 0;
        n.mem_ppm += mem ? p->items[i].mem_ppm : 0;
    }
    return n;
}

uint64_t sched_node_part(uint64_t whole, uint64_t ppm, size_t cards)
{
    uint64_t all = (uint64_t)cards * PPM;
    if (!cards || ppm == all)
        return cards ? whole : 0;
    return (uint64_t)((double)whole * ((double)ppm / (double)all));
}

struct sched_amount node_amount(const struct sched *s, const struct node_need *n)
{
    const struct sched_node *has = &s->policy.node;
    return (struct sched_amount){
        .cpu_milli = n->cpu_milli + sched_node_part(has->cpu_milli, n->cpu_ppm, s->node.cards),
        .mem_bytes = n->mem_bytes + sched_node_part(has->mem_bytes, n->mem_ppm, s->node.cards),
    };
}

/* ---- room at a moment -------------------------------------------------------- */

static bool needs_cpu(const struct node_need *n)
{
    return n->cpu_milli || n->cpu_ppm;
}

static bool needs_mem(const struct node_need *n)
{
    return n->mem_bytes || n->mem_ppm;
}

static bool needs_any(const struct node_need *n)
{
    return needs_cpu(n) || needs_mem(n);
}

/* Beside what is used already; what it needs nothing of may be used up. */
static bool fits(const struct sched *s, const struct node_need *n, const struct node_need *used)
{
    struct node_need sum = *used;
    node_add(&sum, n);
    struct sched_amount a = node_amount(s, &sum);
    return (!needs_cpu(n) || a.cpu_milli <= s->policy.node.cpu_milli) &&
           (!needs_mem(n) || a.mem_bytes <= s->policy.node.mem_bytes);
}

bool node_meet(const struct node_need *a, const struct node_need *b)
{
    return (needs_cpu(a) && needs_cpu(b)) || (needs_mem(a) && needs_mem(b));
}

bool node_over(const struct sched *s, const struct node_need *n)
{
    struct node_need nobody = { .cpu_milli = 0 };
    return needs_any(n) && !fits(s, n, &nobody);
}

bool node_fits_now(const struct sched *s, const struct node_need *n)
{
    return !needs_any(n) || fits(s, n, &s->node.held);
}

struct node_need node_without_leaving(const struct sched *s)
{
    struct node_need used = s->node.held;
    for (const struct entry *v = s->runs; v; v = v->right)
        if (v->run->leaving)
            node_sub(&used, &v->run->need);
    return used;
}

bool node_fits_without_leaving(const struct sched *s, const struct node_need *n)
{
    if (!needs_any(n))
        return true;
    struct node_need used = node_without_leaving(s);
    return fits(s, n, &used);
}

static struct node_need kept_need(const struct sched *s)
{
    const struct entry *e = s->reservation.entry;
    return e ? node_least(s, e->shape->question) : (struct node_need){ .cpu_milli = 0 };
}

/*
 * With everybody who is here or is to come at once: then nobody need look at times. Parts alone fit
 * in wherever their cards do.
 */
static bool fits_beside_all(const struct sched *s, const struct node_need *n)
{
    struct node_need sum = s->node.held;
    if (!needs_any(n))
        return true;
    node_add(&sum, &s->node.booked);
    if (s->reservation.entry) {
        struct node_need kept = kept_need(s);
        node_add(&sum, &kept);
    }
    node_add(&sum, n);
    struct sched_amount a = node_amount(s, &sum);
    return (!needs_cpu(n) || !sum.cpu_milli || a.cpu_milli <= s->policy.node.cpu_milli) &&
           (!needs_mem(n) || !sum.mem_bytes || a.mem_bytes <= s->policy.node.mem_bytes);
}

/* ---- those that run, as time goes on ----------------------------------------- */

void node_started(struct sched *s, const struct entry *e)
{
    node_add(&s->node.held, &e->run->need);
    s->node.stale = true;
}

void node_ended(struct sched *s, const struct entry *e)
{
    node_sub(&s->node.held, &e->run->need);
    s->node.stale = true;
}

static int by_end(const void *a, const void *b)
{
    const struct node_end *x = a;
    const struct node_end *y = b;
    return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

static void list_ends(struct sched *s)
{
    struct node *n = &s->node;
    if (!n->stale)
        return;
    n->stale = false;
    n->end_count = 0;
    for (const struct entry *e = s->runs; e; e = e->right) {
        if (!needs_any(&e->run->need))
            continue;
        ARRAY_ROOM(n->ends, n->end_alloc, n->end_count + 1);
        n->ends[n->end_count++] =
            (struct node_end){ .at_us = e->run->leaving ? INT64_MIN : entry_ends_us(e),
                               .still = e->run->need };
    }
    if (n->end_count > 1)
        qsort(n->ends, n->end_count, sizeof *n->ends, by_end);
    for (size_t i = n->end_count; i-- > 1;)
        node_add(&n->ends[i - 1].still, &n->ends[i].still);
}

/* What those need that are still there after that moment. */
static struct node_need running_at(const struct sched *s, int64_t at_us)
{
    const struct node *n = &s->node;
    size_t low = 0, high = n->end_count;
    if (at_us == NOW)
        return n->held;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (n->ends[mid].at_us > at_us)
            high = mid;
        else
            low = mid + 1;
    }
    return low < n->end_count ? n->ends[low].still : (struct node_need){ .cpu_milli = 0 };
}

bool node_is_endless(struct sched *s, const struct node_need *n)
{
    if (!needs_any(n))
        return false;
    list_ends(s);
    struct node_need used = running_at(s, INT64_MAX - 1);
    return !fits(s, n, &used);
}

int64_t node_oldest_us(const struct sched *s, int64_t now_us)
{
    int64_t oldest = 0;
    for (const struct entry *e = s->runs; e; e = e->right)
        if (needs_any(&e->run->need) && e->limit_us == INT64_MAX &&
            now_us - e->run->since_us > oldest)
            oldest = now_us - e->run->since_us;
    return oldest;
}

size_t node_moment_count(struct sched *s, const struct node_need *n)
{
    if (fits_beside_all(s, n))
        return 0;
    list_ends(s);
    return s->node.end_count;
}

size_t node_moments(const struct sched *s, size_t count, int64_t *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (s->node.ends[i].at_us != INT64_MIN && s->node.ends[i].at_us != INT64_MAX)
            ret[n++] = s->node.ends[i].at_us;
    return n;
}

/* ---- beside those that are booked ---------------------------------------------- */

struct slot {
    int64_t from_us, until_us;
    const struct node_need *need;
};

static size_t slot_count(const struct sched *s)
{
    return s->bookings.count + s->planned_count;
}

/* False: that one does not count. */
static bool slot_at(const struct sched *s, const struct node_view *v, size_t i, struct slot *ret)
{
    if (i == v->without || i >= v->first)
        return false;
    if (i < s->bookings.count) {
        const struct booking *b = &s->bookings.list[i];
        *ret = (struct slot){ b->from_us, b->until_us, &b->need };
    } else {
        const struct planned *p = &s->planned[i - s->bookings.count];
        *ret = (struct slot){ p->from_us, p->until_us, &p->need };
    }
    return true;
}

/* `still_us`: those that run are those of that moment; NOW: all. */
static struct node_need used_at(const struct sched *s, const struct node_view *v, int64_t still_us,
                                int64_t at_us)
{
    struct slot slot;
    struct node_need used = running_at(s, still_us);
    for (size_t i = 0; i < slot_count(s); i++)
        if (slot_at(s, v, i, &slot) && slot.from_us <= at_us && at_us < slot.until_us)
            node_add(&used, slot.need);
    if (v->kept && s->reservation.entry) {
        struct node_need kept = kept_need(s);
        node_add(&used, &kept);
    }
    return used;
}

/* The first start after that moment for which it would leave too little; INT64_MAX: none. */
static int64_t next_conflict_us(const struct sched *s, const struct node_need *n,
                                const struct node_view *v, int64_t from_us)
{
    struct slot slot;
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < slot_count(s); i++) {
        if (!slot_at(s, v, i, &slot) || slot.from_us <= from_us || slot.from_us >= first)
            continue;
        struct node_need used = used_at(s, v, slot.from_us, slot.from_us);
        if (!fits(s, n, &used))
            first = slot.from_us;
    }
    return first;
}

static int64_t most_us(const struct sched *s, const struct node_need *n, const struct node_view *v,
                       int64_t now_us)
{
    struct node_need used = used_at(s, v, NOW, now_us);
    if (!fits(s, n, &used))
        return 0;
    int64_t at = next_conflict_us(s, n, v, now_us);
    return at == INT64_MAX ? INT64_MAX : at - now_us;
}

int64_t node_most_us(struct sched *s, const struct node_need *n, struct node_view v, struct now now)
{
    if (fits_beside_all(s, n))
        return INT64_MAX;
    list_ends(s);
    int64_t most = most_us(s, n, &v, now.boot_us);
    if (!v.kept || !s->reservation.entry)
        return most;
    v.kept = false; /* short ones may use what is kept for one of whom nobody knows */
    int64_t shorter = most_us(s, n, &v, now.boot_us);
    if (shorter > s->reservation.short_us)
        shorter = s->reservation.short_us;
    return shorter > most ? shorter : most;
}

bool node_fits_from(struct sched *s, const struct node_need *n, struct node_view v, int64_t at_us,
                    int64_t limit_us)
{
    if (fits_beside_all(s, n))
        return true;
    list_ends(s);
    struct node_need used = used_at(s, &v, at_us, at_us);
    if (!fits(s, n, &used))
        return false;
    int64_t at = next_conflict_us(s, n, &v, at_us);
    return at == INT64_MAX || at - at_us >= limit_us;
}

/* ---- what others ask ------------------------------------------------------------ */

struct sched_amount sched_node_used(struct sched *s, const struct inventory *inv)
{
    node_look(s, inv);
    return node_amount(s, &s->node.held);
}

bool sched_node_needs(struct sched *s, const struct inventory *inv, uint64_t id,
                      struct sched_amount *ret)
{
    const struct entry *e = entries_get(&s->entries, id);
    if (!e)
        return false;
    node_look(s, inv);
    question_look(s, inv, e->shape->question);
    struct node_need least = node_least(s, e->shape->question);
    *ret = node_amount(s, e->state == ENTRY_RUNNING ? &e->run->need : &least);
    return true;
}

static int refuse(const char *what, const struct text *has, const struct text *asks,
                  const struct text *each, uint32_t tasks, struct err *e)
{
    if (tasks <= 1)
        return err_set(e, -EINVAL, "this machine has %s for jobs, and this asks for %s with %s",
                       has->buf, asks->buf, what);
    return err_set(e, -EINVAL,
                   "this machine has %s for jobs, and this asks for %s: %u tasks with %s %s",
                   has->buf, asks->buf, tasks, what, each->buf);
}

static void add_cpus(struct text *t, uint64_t milli)
{
    text_addf(t, "%g CPU%s", (double)milli / 1000, milli == 1000 ? "" : "s");
}

static void add_memory(struct text *t, uint64_t bytes)
{
    text_add_size(t, bytes);
    text_add(t, " of memory");
}

int sched_node_check(const struct sched *s, const struct sched_job *job, struct err *e)
{
    const struct sched_node *node = &s->policy.node;
    AUTO(text) struct text has = TEXT_INIT, asks = TEXT_INIT, each = TEXT_INIT;
    struct node_need said = node_said(s, job);
    uint32_t tasks = request_tasks(job->request);
    if (said.mem_bytes > node->mem_bytes) {
        add_memory(&has, node->mem_bytes);
        text_add_size(&asks, said.mem_bytes);
        text_add_size(&each, job->mem_bytes);
        return refuse("--mem", &has, &asks, &each, tasks, e);
    }
    if (said.cpu_milli > node->cpu_milli) {
        add_cpus(&has, node->cpu_milli);
        text_addf(&asks, "%g", (double)said.cpu_milli / 1000);
        text_addf(&each, "%g", (double)job->cpu_milli / 1000);
        return refuse("--cpus", &has, &asks, &each, tasks, e);
    }
    return 0;
}
