#include "sched/sched.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/charge.h"
#include "sched/queue.h"

struct sched *sched_new(const struct sched_policy *policy)
{
    struct sched *s = mem_new(sizeof *s);
    s->policy = *policy;
    s->crossing_us = INT64_MAX;
    fence_init(&s->fence, "this server");
    keep_init(s);
    (void)class_get(s, QOS_DEFAULT); /* the first */
    return s;
}

static void run_free(struct run *r)
{
    place_done(&r->place);
    free(r);
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    for (struct entry *e = s->runs; e; e = e->right)
        run_free(e->run);
    for (size_t i = 0; i < s->leaf_count; i++)
        leaf_free(s->leaves[i]);
    for (size_t i = 0; i < s->account_count; i++)
        account_free(s->accounts[i]);
    for (size_t i = 0; i < s->class_count; i++)
        class_free(s->classes[i]);
    fence_done(&s->fence);
    fence_done(&s->keep);
    for (struct question *q = s->questions, *next; q; q = next) {
        next = q->next;
        pile_done(&q->waiting);
        free(q);
    }
    entries_done(&s->entries);
    pile_done(&s->held);
    map_done(&s->accounts_by_name);
    map_done(&s->questions_by_hash);
    map_done(&s->refused);
    map_done(&s->speakers);
    free(s->accounts);
    free(s->leaves);
    free(s->classes);
    free(s->tree);
    free(s->line);
    bookings_done(&s->bookings);
    free(s->reservation.cards);
    free(s->reservation.ordinals);
    free(s->bans);
    free(s->planned);
    node_done(&s->node);
    free(s);
}

void sched_set_policy(struct sched *s, const struct sched_policy *policy, struct now now)
{
    for (size_t i = 0; i < s->leaf_count; i++)
        leaf_settle(s, s->leaves[i], now.boot_us); /* the past, by the old half-life */
    struct sched_policy old = s->policy;
    s->policy = *policy;
    s->policy.keep_ppm = old.keep_ppm; /* shapes know whether it concerns them */
    s->policy.keep_for_us = old.keep_for_us;
    s->policy.node = old.node; /* questions know what is counted of them */
}

/* ---- shapes ---------------------------------------------------------------- */

enum answer question_answer(const struct sched *s, struct question *q)
{
    if (q->cycle == s->cycle && (!q->heard || q->heard == s->spoken))
        return q->answer;
    const struct question *other = ask_speaker(s, q);
    if (!other)
        return ANSWER_OPEN;
    q->cycle = s->cycle;
    q->heard = s->spoken;
    q->answer = other->answer;
    q->short_us = other->short_us;
    return q->answer;
}

void question_set(struct sched *s, struct question *q, enum answer answer, int64_t short_us)
{
    ask_hush(s, q);
    q->cycle = s->cycle;
    q->heard = 0;
    q->answer = answer;
    q->short_us = short_us;
    s->line_wide = true;
}

static uint64_t question_hash(const struct request *r, const struct node_need *said)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    return (request_hash(r) * odd ^ said->cpu_milli) * odd ^ said->mem_bytes;
}

static void question_link(struct sched *s, struct question *q, struct question *same_hash)
{
    q->same_hash = same_hash;
    map_put(&s->questions_by_hash, q->hash, q);
    q->next = s->questions;
    if (q->next)
        q->next->before = q;
    s->questions = q;
    s->question_count++;
}

static void question_unlink(struct sched *s, struct question *q)
{
    struct question *first = map_remove(&s->questions_by_hash, q->hash);
    struct question **at = &first;
    while (*at != q)
        at = &(*at)->same_hash;
    *at = q->same_hash;
    if (first)
        map_put(&s->questions_by_hash, q->hash, first);
    if (q->next)
        q->next->before = q->before;
    if (q->before)
        q->before->next = q->next;
    else
        s->questions = q->next;
    s->question_count--;
}

static struct question *question_get(struct sched *s, const struct request *r,
                                     const struct node_need *said)
{
    uint64_t hash = question_hash(r, said);
    struct question *first = map_get(&s->questions_by_hash, hash);
    for (struct question *q = first; q; q = q->same_hash)
        if (request_same(&q->request, r) && node_same(&q->said, said))
            return q;
    struct question *q = mem_new(sizeof *q);
    q->request = *r;
    q->said = *said;
    q->hash = hash;
    question_link(s, q, first);
    return q;
}

static void question_drop(struct sched *s, struct question *q)
{
    if (--q->shapes > 0)
        return;
    question_unlink(s, q);
    ask_hush(s, q);
    pile_done(&q->waiting);
    free(q);
}

/* Jobs of several users are told apart where limits tell them apart. */
static bool shape_same(const struct shape *sh, const struct question *q, const struct class *c,
                       struct meter **meters, uint32_t count)
{
    return sh->question == q && sh->class == c && sh->meter_count == count &&
           (!count || memcmp(sh->meters, meters, count * sizeof(struct meter *)) == 0);
}

static struct shape *shape_get(struct sched *s, struct leaf *l, const struct sched_job *job)
{
    struct class *c = class_get(s, job->qos && *job->qos ? job->qos : QOS_DEFAULT);
    uint32_t count;
    auto_free struct meter **meters = meters_find(s, l->account, c, job, &count);
    struct node_need said = node_said(s, job);
    struct question *q = question_get(s, job->request, &said);
    for (struct shape *sh = q->shapes ? l->shapes : NULL; sh; sh = sh->next)
        if (shape_same(sh, q, c, meters, count))
            return sh;
    struct shape *sh = mem_new(sizeof *sh);
    sh->leaf = l;
    sh->class = c;
    sh->meters = take_ptr(meters);
    sh->meter_count = count;
    sh->question = q;
    q->shapes++;
    sh->next = l->shapes;
    l->shapes = sh;
    return sh;
}

static void shape_drop(struct sched *s, struct shape *sh)
{
    struct shape **at = &sh->leaf->shapes;
    if (--sh->jobs > 0)
        return;
    while (*at != sh)
        at = &(*at)->next;
    *at = sh->next;
    question_drop(s, sh->question);
    free(sh->meters);
    free(sh);
}

/* Tells its question who waits now. */
static void shape_waits(struct shape *sh)
{
    struct pile *waiting = &sh->question->waiting;
    sh->within = NULL;
    sh->shortest_us = sh->root ? sh->root->shortest_us : INT64_MAX;
    if (!sh->root)
        pile_take(waiting, &sh->slot);
    else
        pile_put(waiting, sh->shortest_us, sh, &sh->slot);
}

static void set_first(struct shape *sh, struct entry *e)
{
    sh->first = e;
    sh->first_order = e ? e->order : 0;
}

void shape_put(struct entry *e)
{
    struct shape *sh = e->shape;
    struct leaf *l = sh->leaf;
    e->state = ENTRY_PENDING;
    e->left = e->right = NULL;
    sh->root = tree_insert(sh->root, e);
    shape_waits(sh);
    if (!sh->first || entry_before(e, sh->first))
        set_first(sh, e);
    if (!l->first || entry_before(e, l->first))
        l->first = e;
}

static struct entry *find_first(const struct leaf *l)
{
    struct entry *first = NULL;
    for (const struct shape *sh = l->shapes; sh; sh = sh->next)
        if (sh->first && (!first || entry_before(sh->first, first)))
            first = sh->first;
    return first;
}

void shape_take(struct entry *e)
{
    struct shape *sh = e->shape;
    sh->root = tree_remove(sh->root, e);
    shape_waits(sh);
    if (sh->first == e)
        set_first(sh, tree_first(sh->root));
    if (sh->leaf->first == e)
        sh->leaf->first = find_first(sh->leaf);
}

struct entry *shape_first_within(struct shape *sh, int64_t limit_us)
{
    if (sh->within && sh->within_us <= limit_us && limit_us < sh->within_until_us)
        return sh->within;
    sh->within = tree_first_within(sh->root, limit_us, &sh->within_until_us);
    sh->within_us = sh->within->limit_us;
    return sh->within;
}

/* ---- held ones --------------------------------------------------------------- */

static void held_put(struct sched *s, struct entry *e, int64_t until_us)
{
    e->state = ENTRY_HELD;
    e->held_until_us = until_us;
    e->slot = 0;
    pile_put(&s->held, until_us, e, &e->slot);
}

static void held_take(struct sched *s, struct entry *e)
{
    pile_take(&s->held, &e->slot);
}

/* Out of wherever it is pending. */
static void take_pending(struct sched *s, struct entry *e)
{
    if (s->reservation.entry == e)
        reserve_clear(s);
    booking_drop_of(s, e);
    if (s->claim == e)
        s->claim = NULL;
    if (e->state == ENTRY_HELD)
        held_take(s, e);
    else
        shape_take(e);
}

/* ---- jobs ------------------------------------------------------------------ */

/* Goes it before the reservation, whatever the shares are? */
static bool is_ahead(const struct entry *e, const struct entry *holder)
{
    const struct shape *a = e->shape, *b = holder->shape;
    if (a->class->priority != b->class->priority)
        return a->class->priority > b->class->priority;
    return a->leaf == b->leaf && entry_before(e, holder);
}

static void put_in_line(struct sched *s, struct entry *e)
{
    const struct entry *holder = s->reservation.entry;
    if (holder && is_ahead(e, holder))
        reserve_clear(s);
    for (size_t i = s->bookings.count; i-- > 0;)
        if (is_ahead(e, s->bookings.list[i].entry))
            booking_drop(s, i);
    shape_put(e);
    line_changed(s);
}

/* ---- running ones ---------------------------------------------------------- */

static void run_put(struct sched *s, struct entry *e, struct run *r)
{
    e->state = ENTRY_RUNNING;
    e->run = r;
    e->left = NULL;
    e->right = s->runs;
    if (s->runs)
        s->runs->left = e;
    s->runs = e;
}

static void run_take(struct sched *s, struct entry *e)
{
    if (e->left)
        e->left->right = e->right;
    else
        s->runs = e->right;
    if (e->right)
        e->right->left = e->left;
    run_free(e->run);
    e->run = NULL;
}

static double attained(const struct entry *e, int64_t now_us)
{
    if (e->state != ENTRY_RUNNING || now_us <= e->run->since_us)
        return e->attained_card_us;
    return e->attained_card_us +
           (double)e->run->held_ppm / PPM * (double)(now_us - e->run->since_us);
}

double sched_attained(const struct sched *s, uint64_t id, int64_t now_us)
{
    const struct entry *e = entries_get(&s->entries, id);
    return e ? attained(e, now_us) : 0;
}

static uint16_t level_of(const struct sched *s, const struct entry *e)
{
    uint16_t level = 0;
    if (e->shape->leaf->account->inside == SCHED_LAS)
        while (level < s->policy.las_count &&
               e->attained_card_us >= (double)s->policy.las_us[level])
            level++;
    return level;
}

void sched_add(struct sched *s, const struct sched_job *job)
{
    assert(job->id && !entries_get(&s->entries, job->id));
    struct account *a = account_get(s, job->account);
    struct leaf *l = leaf_get(s, a, job->uid, job->user);
    struct entry *e = entries_add(&s->entries, job->id);
    e->order = job->order ? job->order : job->id;
    e->limit_us = job->limit_us > 0 ? job->limit_us : INT64_MAX;
    e->submit_us = job->submit_us;
    e->attained_card_us = job->attained_card_us;
    e->shape = shape_get(s, l, job);
    e->shape->jobs++;
    e->level = level_of(s, e);
    meters_submitted(e->shape, job->submit_us);
    meters_wait(e->shape, 1);
    l->pending++;
    s->pending++;
    put_in_line(s, e);
}

static void forget(struct sched *s, struct entry *e)
{
    shape_drop(s, e->shape);
    entries_drop(&s->entries, e);
}

static void stop_running(struct sched *s, struct entry *e, int64_t at_us)
{
    struct leaf *l = e->shape->leaf;
    leaf_settle(s, l, at_us);
    e->attained_card_us = attained(e, at_us);
    preempt_ended(s, e);
    meters_give(e->shape, &e->run->place);
    node_ended(s, e);
    l->running_ppm -= e->run->share_ppm;
    l->running--;
    s->running--;
    run_take(s, e);
    line_changed(s);
}

static void leave_pending(struct sched *s, struct entry *e)
{
    take_pending(s, e);
    meters_wait(e->shape, -1);
    e->shape->leaf->pending--;
    s->pending--;
}

void sched_remove(struct sched *s, uint64_t id)
{
    struct entry *e = entries_get(&s->entries, id);
    if (!e || e->state == ENTRY_RUNNING)
        return;
    leave_pending(s, e);
    forget(s, e);
}

void sched_hold(struct sched *s, uint64_t id, int64_t until_us)
{
    struct entry *e = entries_get(&s->entries, id);
    if (!e || e->state == ENTRY_RUNNING)
        return;
    take_pending(s, e);
    held_put(s, e, until_us);
}

void sched_release(struct sched *s, uint64_t id)
{
    struct entry *e = entries_get(&s->entries, id);
    if (!e || e->state != ENTRY_HELD)
        return;
    held_take(s, e);
    put_in_line(s, e);
}

void sched_start(struct sched *s, uint64_t id, const struct place *place, uint64_t share_ppm,
                 int64_t since_us)
{
    struct entry *e = entries_get(&s->entries, id);
    assert(e && e->state != ENTRY_RUNNING);
    struct leaf *l = e->shape->leaf;
    struct run *r = mem_new(sizeof *r);
    leave_pending(s, e);
    leaf_settle(s, l, since_us);
    if (place)
        place_copy(place, &r->place);
    r->held_ppm = place ? charge_dominant_ppm(place) : share_ppm;
    r->share_ppm = (uint64_t)((double)share_ppm * e->shape->class->charge + 0.5);
    r->since_us = since_us;
    r->need = node_on(s, e->shape->question, place);
    run_put(s, e, r);
    node_started(s, e);
    meters_take(e->shape, &r->place);
    l->running_ppm += r->share_ppm;
    l->held_ppm += r->held_ppm;
    preempt_started(s, e);
    l->running++;
    s->running++;
    line_changed(s);
}

void sched_end(struct sched *s, uint64_t id, int64_t at_us)
{
    struct entry *e = entries_get(&s->entries, id);
    if (!e || e->state != ENTRY_RUNNING)
        return;
    stop_running(s, e, at_us);
    forget(s, e);
}

void sched_requeue(struct sched *s, uint64_t id, int64_t at_us)
{
    struct entry *e = entries_get(&s->entries, id);
    if (!e || e->state != ENTRY_RUNNING)
        return;
    stop_running(s, e, at_us);
    e->level = level_of(s, e);
    meters_wait(e->shape, 1);
    e->shape->leaf->pending++;
    s->pending++;
    put_in_line(s, e);
}

size_t sched_pending(const struct sched *s)
{
    return s->pending;
}

size_t sched_running(const struct sched *s)
{
    return s->running;
}

/* ---- handing in ------------------------------------------------------------ */

static int refuse(struct sched *s, const struct excess *x, int64_t frees_us, struct now now,
                  struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    excess_add(&t, x);
    if (x->kind == LIMIT_SUBMITS) {
        text_add(&t, "; the next one in ");
        text_add_limit(&t, frees_us - now.boot_us + CLOCK_SECOND);
    } else if (x->kind == LIMIT_PENDING) {
        text_add(&t, "; some have to start or be cancelled first");
    } else if (x->kind == LIMIT_TIME) {
        text_add(&t, " at most; say how long it needs with --time");
    } else {
        text_add(&t, ": it could never start");
        if (x->meter == &s->keep.meter) {
            text_add(&t, " but as one of those, with --time of at most ");
            text_add_limit(&t, s->policy.keep_for_us);
        }
    }
    return err_set(e, -EDQUOT, "%s", t.buf);
}

int sched_admit(struct sched *s, const struct inventory *inv, const struct sched_job *job,
                struct now now, struct err *e)
{
    struct question q = { .request = *job->request };
    struct shape sh = { .question = &q };
    struct account *a = map_get_name(&s->accounts_by_name, job->account);
    struct class *c = class_find(s, job->qos && *job->qos ? job->qos : QOS_DEFAULT);
    auto_free struct meter **meters = meters_find(s, a, c, job, &sh.meter_count);
    int64_t frees_us = INT64_MAX;
    sh.meters = meters;
    int r = sched_node_check(s, job, e);
    if (r < 0)
        return r;
    question_look(s, inv, &q);
    keep_look(s, inv, true);
    struct excess x =
        meters_refuse(&sh, job->limit_us, job->tasks ? job->tasks : 1, now.boot_us, &frees_us);
    if (!x.meter)
        x = meters_never(&sh);
    return x.meter ? refuse(s, &x, frees_us, now, e) : 0;
}

size_t sched_bytes(const struct sched *s)
{
    size_t bytes = sizeof *s + entries_bytes(&s->entries) + s->running * sizeof(struct run);
    for (size_t i = 0; i < s->account_count; i++)
        bytes += sizeof(struct account) + strlen(s->accounts[i]->name) + 1;
    for (size_t i = 0; i < s->leaf_count; i++) {
        bytes += sizeof(struct leaf);
        for (const struct shape *sh = s->leaves[i]->shapes; sh; sh = sh->next)
            bytes += sizeof *sh + sh->meter_count * sizeof(struct meter *);
    }
    for (const struct question *q = s->questions; q; q = q->next)
        bytes += sizeof *q + q->waiting.alloc * sizeof *q->waiting.items;
    bytes += s->questions_by_hash.alloc * sizeof *s->questions_by_hash.entries;
    bytes += s->tree_alloc * sizeof *s->tree + s->line_alloc * sizeof *s->line;
    bytes += s->held.alloc * sizeof *s->held.items + s->node.end_alloc * sizeof *s->node.ends;
    return bytes + s->accounts_by_name.alloc * sizeof *s->accounts_by_name.entries;
}
