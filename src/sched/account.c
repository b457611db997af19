#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/charge.h"
#include "sched/queue.h"

/* What each is due is another part now. */
static void tree_changed(struct sched *s)
{
    s->tree_stale = true;
    s->stock_taken = false;
}

struct account *account_get(struct sched *s, const char *name)
{
    struct account *a = map_get_name(&s->accounts_by_name, name);
    if (a)
        return a;
    a = mem_new(sizeof *a);
    a->name = text_dup(name);
    a->index = (uint32_t)s->account_count;
    a->weight = 1;
    fence_init(&a->fence, name);
    ARRAY_ROOM(s->accounts, s->account_alloc, s->account_count + 1);
    s->accounts[s->account_count++] = a;
    map_put_name(&s->accounts_by_name, a->name, a);
    tree_changed(s);
    return a;
}

static void drop_user_shares(struct account *a)
{
    for (size_t i = 0; i < a->user_share_count; i++)
        free((char *)a->user_shares[i].user);
    free(a->user_shares);
    a->user_shares = NULL;
    a->user_share_count = 0;
}

void account_free(struct account *a)
{
    drop_user_shares(a);
    map_done(&a->leaves);
    fence_done(&a->fence);
    free(a->name);
    free(a);
}

static double share_of(const struct account *a, const char *user)
{
    for (size_t i = 0; i < a->user_share_count; i++)
        if (strcmp(a->user_shares[i].user, user) == 0)
            return a->user_shares[i].weight;
    return 1;
}

static char *name_of(uid_t uid, const char *user)
{
    return user && *user ? text_dup(user) : text_fmt("%u", uid);
}

struct leaf *leaf_get(struct sched *s, struct account *a, uid_t uid, const char *user)
{
    bool by_user = a->inside == SCHED_USERS;
    uint64_t key = by_user ? (uint64_t)uid + 1 : 0;
    struct leaf *l = map_get(&a->leaves, key);
    if (l)
        return l;
    l = mem_new(sizeof *l);
    l->account = a;
    l->uid = by_user ? uid : 0;
    l->user = by_user ? name_of(uid, user) : NULL;
    l->index = (uint32_t)s->leaf_count;
    l->weight = by_user ? share_of(a, l->user) : 1;
    l->stamp_us = INT64_MIN;
    ARRAY_ROOM(s->leaves, s->leaf_alloc, s->leaf_count + 1);
    s->leaves[s->leaf_count++] = l;
    map_put(&a->leaves, key, l);
    tree_changed(s);
    return l;
}

void leaf_free(struct leaf *l)
{
    for (struct shape *sh = l->shapes, *next; sh; sh = next) {
        next = sh->next;
        free(sh->meters);
        free(sh);
    }
    free(l->user);
    free(l);
}

void sched_set_account(struct sched *s, const struct sched_branch *b)
{
    struct account *a = account_get(s, b->name);
    drop_user_shares(a);
    a->parent = b->parent ? account_get(s, b->parent) : NULL;
    a->weight = b->weight > 0 ? b->weight : 0;
    a->inside = b->inside;
    a->user_shares = mem_new((b->user_count + 1) * sizeof *a->user_shares);
    for (size_t i = 0; i < b->user_count; i++)
        a->user_shares[a->user_share_count++] =
            (struct sched_user_share){ .user = text_dup(b->users[i].user),
                                       .weight = b->users[i].weight };
    fence_set(&a->fence, b->limits, b->user_limits);
    tree_changed(s);
}

void sched_set_weight(struct sched *s, const char *account, double weight)
{
    account_get(s, account)->weight = weight > 0 ? weight : 0;
    tree_changed(s);
}

void sched_set_limits(struct sched *s, const struct limits *all, const struct limits *each_user)
{
    fence_set(&s->fence, all, each_user);
}

/* ---- usage ----------------------------------------------------------------- */

/* What a share of `ppm` adds up to in that time, each moment's part decayed to its end. */
static double held(uint64_t ppm, int64_t elapsed_us, int64_t half_life_us)
{
    double share = (double)ppm / PPM;
    double elapsed = (double)elapsed_us;
    if (half_life_us <= 0)
        return share * elapsed;
    double rate = M_LN2 / (double)half_life_us;
    return share * -expm1(-elapsed * rate) / rate;
}

void leaf_settle(const struct sched *s, struct leaf *l, int64_t now_us)
{
    if (l->stamp_us == INT64_MIN)
        l->stamp_us = now_us;
    int64_t elapsed = now_us - l->stamp_us;
    if (elapsed <= 0)
        return;
    l->used_card_us = charge_decay(l->used_card_us, elapsed, s->policy.half_life_us);
    if (l->running_ppm)
        l->used_card_us += held(l->running_ppm, elapsed, s->policy.half_life_us);
    l->stamp_us = now_us;
}

void sched_set_usage(struct sched *s, const char *account, uid_t uid, const char *user,
                     double used_card_us, int64_t as_of_us)
{
    struct leaf *l = leaf_get(s, account_get(s, account), uid, user);
    l->used_card_us = used_card_us > 0 ? used_card_us : 0;
    l->stamp_us = as_of_us;
}

double sched_usage(struct sched *s, const char *account, uid_t uid, struct now now)
{
    struct account *a = map_get_name(&s->accounts_by_name, account);
    uint64_t key = a && a->inside == SCHED_USERS ? (uint64_t)uid + 1 : 0;
    struct leaf *l = a ? map_get(&a->leaves, key) : NULL;
    if (!l)
        return 0;
    leaf_settle(s, l, now.boot_us);
    return l->used_card_us;
}

bool sched_is_pooled(const struct sched *s, const char *account)
{
    const struct account *a = map_get_name(&s->accounts_by_name, account);
    return a && a->inside != SCHED_USERS;
}

/* ---- the tree -------------------------------------------------------------- */

static uint32_t depth_of(const struct account *a)
{
    uint32_t depth = 0;
    for (; a->parent; a = a->parent)
        depth++;
    return depth;
}

static int by_depth(const void *a, const void *b)
{
    const struct account *x = *(struct account *const *)a;
    const struct account *y = *(struct account *const *)b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void plant(struct sched *s)
{
    size_t n = 0;
    ARRAY_ROOM(s->tree, s->tree_alloc, s->account_count + s->leaf_count + 1);
    for (size_t i = 0; i < s->account_count; i++)
        s->accounts[i]->depth = depth_of(s->accounts[i]);
    if (s->account_count)
        qsort(s->accounts, s->account_count, sizeof *s->accounts, by_depth);
    for (size_t i = 0; i < s->account_count; i++) {
        struct account *a = s->accounts[i];
        a->node = (uint32_t)n;
        s->tree[n++] = (struct fairtree_node){ .parent = a->parent ? a->parent->node : FAIRTREE_TOP,
                                               .shares = a->weight };
    }
    for (size_t i = 0; i < s->leaf_count; i++) {
        struct leaf *l = s->leaves[i];
        l->node = (uint32_t)n;
        s->tree[n++] =
            (struct fairtree_node){ .parent = l->account->node, .leaf = true, .shares = l->weight };
    }
    s->tree_stale = false;
}

void tree_rank(struct sched *s, int64_t now_us)
{
    if (s->tree_stale)
        plant(s);
    for (size_t i = 0; i < s->leaf_count; i++) {
        struct leaf *l = s->leaves[i];
        leaf_settle(s, l, now_us);
        s->tree[l->node].usage =
            l->used_card_us + (double)l->running_ppm / PPM * (double)s->policy.advance_us;
    }
    fairtree_rank(s->tree, s->account_count + s->leaf_count);
}

static struct sched_account facts(const struct sched *s, const struct account *a)
{
    const struct fairtree_node *n = &s->tree[a->node];
    return (struct sched_account){
        .name = a->name,
        .parent = a->parent ? a->parent->name : NULL,
        .inside = a->inside,
        .weight = a->weight,
        .norm_shares = n->norm_shares,
        .norm_usage = n->norm_usage,
        .level = n->level,
        .rank = n->rank,
        .factor = n->rank ? (double)(s->leaf_count - n->rank + 1) / (double)s->leaf_count : 0,
    };
}

static void add_leaf(struct sched_account *f, const struct leaf *l)
{
    f->used_card_us += l->used_card_us;
    f->running_ppm += l->running_ppm;
    f->running += l->running;
    f->pending += l->pending;
}

static bool is_below(const struct account *a, const struct account *top)
{
    while (a && a != top)
        a = a->parent;
    return a;
}

static struct sched_account account_facts(const struct sched *s, const struct account *a)
{
    struct sched_account f = facts(s, a);
    for (size_t i = 0; i < s->leaf_count; i++)
        if (is_below(s->leaves[i]->account, a))
            add_leaf(&f, s->leaves[i]);
    return f;
}

static struct sched_account leaf_facts(const struct sched *s, const struct leaf *l)
{
    const struct fairtree_node *n = &s->tree[l->node];
    struct sched_account f = facts(s, l->account);
    f.user = l->user;
    f.uid = l->uid;
    f.weight = l->weight;
    f.norm_shares = n->norm_shares;
    f.norm_usage = n->norm_usage;
    f.level = n->level;
    f.rank = n->rank;
    f.factor = n->factor;
    add_leaf(&f, l);
    return f;
}

static void tell_below(struct sched *s, const struct account *top, sched_account_fn fn, void *arg)
{
    for (size_t i = 0; i < s->leaf_count; i++)
        if (top && s->leaves[i]->account == top && s->leaves[i]->user) {
            struct sched_account f = leaf_facts(s, s->leaves[i]);
            fn(&f, arg);
        }
    for (size_t i = 0; i < s->account_count; i++)
        if (s->accounts[i]->parent == top) {
            struct sched_account f = account_facts(s, s->accounts[i]);
            fn(&f, arg);
            tell_below(s, s->accounts[i], fn, arg);
        }
}

void sched_each_account(struct sched *s, struct now now, sched_account_fn fn, void *arg)
{
    tree_rank(s, now.boot_us);
    tell_below(s, NULL, fn, arg);
}

bool sched_account(struct sched *s, const char *account, struct now now, struct sched_account *ret)
{
    const struct account *a = map_get_name(&s->accounts_by_name, account);
    if (!a)
        return false;
    tree_rank(s, now.boot_us);
    *ret = account_facts(s, a);
    return true;
}
