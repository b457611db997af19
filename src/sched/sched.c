#include "sched/sched.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sched/queue.h"

struct sched *sched_new(const struct sched_policy *policy)
{
    struct sched *s = mem_new(sizeof *s);
    s->policy = *policy;
    return s;
}

static void free_account(struct account *a)
{
    for (struct shape *sh = a->shapes, *next; sh; sh = next) {
        next = sh->next;
        free(sh);
    }
    free(a->name);
    free(a);
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->account_count; i++)
        free_account(s->accounts[i]);
    for (struct question *q = s->questions, *next; q; q = next) {
        next = q->next;
        free(q);
    }
    table_done(&s->entries);
    map_done(&s->accounts_by_name);
    map_done(&s->refused);
    free(s->accounts);
    free(s->line);
    free(s->reservation.cards);
    free(s->reservation.ordinals);
    free(s->bans);
    free(s);
}

void sched_set_policy(struct sched *s, const struct sched_policy *policy, struct now now)
{
    for (size_t i = 0; i < s->account_count; i++)
        account_settle(s, s->accounts[i], now.boot_us); /* the past, by the old half-life */
    s->policy = *policy;
}

/* ---- shapes ---------------------------------------------------------------- */

enum answer question_answer(const struct sched *s, const struct question *q)
{
    return q->cycle == s->cycle ? q->answer : ANSWER_OPEN;
}

static bool question_closed(const struct sched *s, const struct question *q)
{
    return question_answer(s, q) >= ANSWER_NO;
}

void question_set(struct sched *s, struct question *q, enum answer answer, int64_t short_us)
{
    s->closed -= question_closed(s, q);
    q->cycle = s->cycle;
    q->answer = answer;
    q->short_us = short_us;
    s->closed += question_closed(s, q);
}

static struct question *question_get(struct sched *s, const struct request *r)
{
    uint64_t hash = request_hash(r);
    for (struct question *q = s->questions; q; q = q->next)
        if (q->hash == hash && request_same(&q->request, r))
            return q;
    struct question *q = mem_new(sizeof *q);
    q->request = *r;
    q->hash = hash;
    q->next = s->questions;
    s->questions = q;
    s->question_count++;
    return q;
}

static void question_drop(struct sched *s, struct question *q)
{
    struct question **at = &s->questions;
    if (--q->shapes > 0)
        return;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    s->question_count--;
    if (question_closed(s, q))
        s->closed--;
    free(q);
}

static struct shape *shape_get(struct sched *s, struct account *a, const struct request *r)
{
    for (struct shape *sh = a->shapes; sh; sh = sh->next)
        if (request_same(&sh->question->request, r))
            return sh;
    struct shape *sh = mem_new(sizeof *sh);
    sh->account = a;
    sh->question = question_get(s, r);
    sh->question->shapes++;
    sh->next = a->shapes;
    a->shapes = sh;
    return sh;
}

static void shape_drop(struct sched *s, struct shape *sh)
{
    struct shape **at = &sh->account->shapes;
    if (--sh->jobs > 0)
        return;
    while (*at != sh)
        at = &(*at)->next;
    *at = sh->next;
    question_drop(s, sh->question);
    free(sh);
}

void shape_put(struct entry *e)
{
    struct shape *sh = e->shape;
    struct account *a = sh->account;
    e->state = ENTRY_PENDING;
    e->left = e->right = NULL;
    sh->root = tree_insert(sh->root, e);
    if (!sh->first || entry_before(e, sh->first))
        sh->first = e;
    if (!a->first || entry_before(e, a->first))
        a->first = e;
}

static struct entry *find_first(const struct account *a)
{
    struct entry *first = NULL;
    for (const struct shape *sh = a->shapes; sh; sh = sh->next)
        if (sh->first && (!first || entry_before(sh->first, first)))
            first = sh->first;
    return first;
}

void shape_take(struct entry *e)
{
    struct shape *sh = e->shape;
    sh->root = tree_remove(sh->root, e);
    if (sh->first == e)
        sh->first = tree_first(sh->root);
    if (sh->account->first == e)
        sh->account->first = find_first(sh->account);
}

/* ---- held ones --------------------------------------------------------------- */

static void held_put(struct sched *s, struct entry *e, int64_t until_us)
{
    e->state = ENTRY_HELD;
    e->held_until_us = until_us;
    e->left = NULL;
    e->right = s->held;
    if (s->held)
        s->held->left = e;
    s->held = e;
}

static void held_take(struct sched *s, struct entry *e)
{
    if (e->left)
        e->left->right = e->right;
    else
        s->held = e->right;
    if (e->right)
        e->right->left = e->left;
}

/* Out of wherever it is pending. */
static void take_pending(struct sched *s, struct entry *e)
{
    if (s->reservation.entry == e)
        reserve_clear(s);
    if (e->state == ENTRY_HELD)
        held_take(s, e);
    else
        shape_take(e);
}

/* ---- jobs ------------------------------------------------------------------ */

/* Who comes back to a place ahead of the reservation, in the same account, is first again. */
static void put_in_line(struct sched *s, struct entry *e)
{
    const struct entry *holder = s->reservation.entry;
    if (holder && holder->shape->account == e->shape->account && entry_before(e, holder))
        reserve_clear(s);
    shape_put(e);
}

void sched_add(struct sched *s, const struct sched_job *job)
{
    assert(job->id && !table_get(&s->entries, job->id));
    struct account *a = account_get(s, job->account);
    struct entry *e = table_add(&s->entries, job->id);
    e->order = job->order ? job->order : job->id;
    e->limit_us = job->limit_us > 0 ? job->limit_us : INT64_MAX;
    e->uid = job->uid;
    e->shape = shape_get(s, a, job->request);
    e->shape->jobs++;
    a->pending++;
    s->pending++;
    put_in_line(s, e);
}

static void forget(struct sched *s, struct entry *e)
{
    shape_drop(s, e->shape);
    table_drop(&s->entries, e);
}

static void stop_running(struct sched *s, struct entry *e, int64_t at_us)
{
    struct account *a = e->shape->account;
    account_settle(s, a, at_us);
    a->running_ppm -= e->share_ppm;
    a->running--;
    s->running--;
}

static void leave_pending(struct sched *s, struct entry *e)
{
    take_pending(s, e);
    e->shape->account->pending--;
    s->pending--;
}

void sched_remove(struct sched *s, uint64_t id)
{
    struct entry *e = table_get(&s->entries, id);
    if (!e || e->state == ENTRY_RUNNING)
        return;
    leave_pending(s, e);
    forget(s, e);
}

void sched_hold(struct sched *s, uint64_t id, int64_t until_us)
{
    struct entry *e = table_get(&s->entries, id);
    if (!e || e->state == ENTRY_RUNNING)
        return;
    take_pending(s, e);
    held_put(s, e, until_us);
}

void sched_release(struct sched *s, uint64_t id)
{
    struct entry *e = table_get(&s->entries, id);
    if (!e || e->state != ENTRY_HELD)
        return;
    held_take(s, e);
    put_in_line(s, e);
}

void sched_start(struct sched *s, uint64_t id, uint64_t share_ppm, int64_t since_us)
{
    struct entry *e = table_get(&s->entries, id);
    assert(e && e->state != ENTRY_RUNNING && share_ppm <= UINT32_MAX);
    struct account *a = e->shape->account;
    leave_pending(s, e);
    account_settle(s, a, since_us);
    e->state = ENTRY_RUNNING;
    e->share_ppm = (uint32_t)share_ppm;
    a->running_ppm += share_ppm;
    a->running++;
    s->running++;
    a->key = account_key(s, a);
}

void sched_end(struct sched *s, uint64_t id, int64_t at_us)
{
    struct entry *e = table_get(&s->entries, id);
    if (!e || e->state != ENTRY_RUNNING)
        return;
    stop_running(s, e, at_us);
    forget(s, e);
}

void sched_requeue(struct sched *s, uint64_t id, int64_t at_us)
{
    struct entry *e = table_get(&s->entries, id);
    if (!e || e->state != ENTRY_RUNNING)
        return;
    stop_running(s, e, at_us);
    e->shape->account->pending++;
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

size_t sched_bytes(const struct sched *s)
{
    size_t bytes = sizeof *s + table_bytes(&s->entries);
    for (size_t i = 0; i < s->account_count; i++) {
        bytes += sizeof(struct account) + strlen(s->accounts[i]->name) + 1;
        for (const struct shape *sh = s->accounts[i]->shapes; sh; sh = sh->next)
            bytes += sizeof *sh;
    }
    for (const struct question *q = s->questions; q; q = q->next)
        bytes += sizeof *q;
    return bytes + s->accounts_by_name.alloc * sizeof *s->accounts_by_name.entries;
}
