#include "sched/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define BLOCK 256 /* entries that are asked of malloc at a time */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

bool entry_before(const struct entry *a, const struct entry *b)
{
    if (a->level != b->level)
        return a->level < b->level;
    return a->order != b->order ? a->order < b->order : a->id < b->id;
}

int64_t entry_ends_us(const struct entry *e)
{
    int64_t since_us = e->run->since_us;
    return e->limit_us < INT64_MAX - since_us ? since_us + e->limit_us : INT64_MAX;
}

static bool above(const struct entry *a, const struct entry *b)
{
    uint64_t x = mix(a->id), y = mix(b->id);
    return x != y ? x > y : a->id > b->id;
}

static int64_t shortest(const struct entry *t)
{
    return t ? t->shortest_us : INT64_MAX;
}

static struct entry *update(struct entry *t)
{
    int64_t least = t->limit_us;
    if (shortest(t->left) < least)
        least = shortest(t->left);
    if (shortest(t->right) < least)
        least = shortest(t->right);
    t->shortest_us = least;
    t->size = 1 + tree_size(t->left) + tree_size(t->right);
    return t;
}

/* All before `e` to the left, the others to the right. */
static void split(struct entry *t, const struct entry *e, struct entry **left, struct entry **right)
{
    if (!t) {
        *left = *right = NULL;
    } else if (entry_before(t, e)) {
        split(t->right, e, &t->right, right);
        *left = update(t);
    } else {
        split(t->left, e, left, &t->left);
        *right = update(t);
    }
}

static struct entry *merge(struct entry *left, struct entry *right)
{
    if (!left || !right)
        return left ? left : right;
    if (above(left, right)) {
        left->right = merge(left->right, right);
        return update(left);
    }
    right->left = merge(left, right->left);
    return update(right);
}

struct entry *tree_insert(struct entry *root, struct entry *e)
{
    if (!root || above(e, root)) {
        split(root, e, &e->left, &e->right);
        return update(e);
    }
    if (entry_before(e, root))
        root->left = tree_insert(root->left, e);
    else
        root->right = tree_insert(root->right, e);
    return update(root);
}

struct entry *tree_remove(struct entry *root, struct entry *e)
{
    if (root == e) {
        root = merge(e->left, e->right);
        e->left = e->right = NULL;
        return root;
    }
    if (entry_before(e, root))
        root->left = tree_remove(root->left, e);
    else
        root->right = tree_remove(root->right, e);
    return update(root);
}

struct entry *tree_first(struct entry *root)
{
    while (root && root->left)
        root = root->left;
    return root;
}

static void least(int64_t *us, int64_t other_us)
{
    if (other_us < *us)
        *us = other_us;
}

struct entry *tree_first_within(struct entry *root, int64_t limit_us, int64_t *ret_until_us)
{
    int64_t before_us = INT64_MAX;
    while (shortest(root) <= limit_us && root) {
        if (shortest(root->left) <= limit_us && root->left) {
            root = root->left;
            continue;
        }
        least(&before_us, shortest(root->left));
        if (root->limit_us <= limit_us) {
            *ret_until_us = before_us;
            return root;
        }
        least(&before_us, root->limit_us);
        root = root->right;
    }
    return NULL;
}

struct entry *tree_at(struct entry *root, uint32_t before)
{
    while (root) {
        uint32_t left = tree_size(root->left);
        if (before == left)
            return root;
        if (before > left) {
            before -= left + 1;
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return NULL;
}

uint32_t tree_before(const struct entry *root, const struct entry *e)
{
    uint32_t n = 0;
    while (root) {
        if (entry_before(root, e)) {
            n += 1 + tree_size(root->left);
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return n;
}

/* ---- the table ------------------------------------------------------------- */

void entries_done(struct entries *t)
{
    for (size_t i = 0; i < t->block_count; i++)
        free(t->blocks[i]);
    free(t->blocks);
    free(t->buckets);
    memset(t, 0, sizeof *t);
}

static struct entry **bucket(const struct entries *t, uint64_t id)
{
    return &t->buckets[mix(id) & (t->bucket_count - 1)];
}

struct entry *entries_get(const struct entries *t, uint64_t id)
{
    struct entry *e = t->bucket_count ? *bucket(t, id) : NULL;
    while (e && e->id != id)
        e = e->next;
    return e;
}

static void grow_buckets(struct entries *t)
{
    struct entries old = *t;
    t->bucket_count = old.bucket_count ? old.bucket_count * 2 : 64;
    t->buckets = mem_new(t->bucket_count * sizeof(struct entry *));
    for (size_t i = 0; i < old.bucket_count; i++)
        for (struct entry *e = old.buckets[i], *next; e; e = next) {
            struct entry **to = bucket(t, e->id);
            next = e->next;
            e->next = *to;
            *to = e;
        }
    free(old.buckets);
}

static void add_block(struct entries *t)
{
    struct entry *block = mem_new(BLOCK * sizeof *block);
    ARRAY_ROOM(t->blocks, t->block_alloc, t->block_count + 1);
    t->blocks[t->block_count++] = block;
    for (size_t i = BLOCK; i-- > 0;) {
        block[i].next = t->free;
        t->free = &block[i];
    }
}

struct entry *entries_add(struct entries *t, uint64_t id)
{
    if (t->count == 2 * t->bucket_count) /* two in a bucket are found as soon */
        grow_buckets(t);
    if (!t->free)
        add_block(t);
    struct entry *e = t->free;
    struct entry **at = bucket(t, id);
    t->free = e->next;
    *e = (struct entry){ .id = id, .next = *at };
    *at = e;
    t->count++;
    return e;
}

void entries_drop(struct entries *t, struct entry *e)
{
    struct entry **at = bucket(t, e->id);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    e->next = t->free;
    t->free = e;
    t->count--;
}

size_t entries_bytes(const struct entries *t)
{
    return t->bucket_count * sizeof *t->buckets + t->block_count * BLOCK * sizeof(struct entry) +
           t->block_alloc * sizeof *t->blocks;
}
