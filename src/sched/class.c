#include <stdlib.h>
#include <string.h>

#include "sched/queue.h"

struct class *class_find(const struct sched *s, const char *name)
{
    for (size_t i = 0; i < s->class_count; i++)
        if (strcmp(s->classes[i]->name, name) == 0)
            return s->classes[i];
    return NULL;
}

struct class *class_get(struct sched *s, const char *name)
{
    struct class *c = class_find(s, name);
    if (c)
        return c;
    c = mem_new(sizeof *c);
    *c = (struct class){ .name = text_dup(name),
                         .index = (uint32_t)s->class_count,
                         .charge = 1,
                         .preempt = PREEMPT_NEVER };
    auto_free char *fence = text_fmt("class %s", name);
    fence_init(&c->fence, fence);
    ARRAY_ROOM(s->classes, s->class_alloc, s->class_count + 1);
    s->classes[s->class_count++] = c;
    return c;
}

void class_free(struct class *c)
{
    fence_done(&c->fence);
    free(c->name);
    free(c);
}

static uint32_t height_of(const struct sched *s, const struct class *c)
{
    uint32_t height = 0;
    for (size_t i = 0; i < s->class_count; i++) {
        const struct class *below = s->classes[i];
        bool goes = c->preempts >> i & 1 && below->preempt != PREEMPT_NEVER;
        if (goes && below->height >= height)
            height = below->height + 1;
    }
    return height;
}

/* As often as the longest chain may need; where classes go in a circle, it ends all the same. */
static void find_heights(struct sched *s)
{
    bool changed = true;
    for (size_t i = 0; i < s->class_count; i++)
        s->classes[i]->height = 0;
    for (size_t round = 0; changed && round < s->class_count; round++) {
        changed = false;
        for (size_t i = 0; i < s->class_count; i++) {
            uint32_t height = height_of(s, s->classes[i]);
            changed = changed || height != s->classes[i]->height;
            s->classes[i]->height = height;
        }
    }
}

void sched_set_qos(struct sched *s, const struct qos *q)
{
    struct class *c = class_get(s, q->name);
    c->set = true;
    c->priority = q->priority;
    c->charge = q->charge > 0 ? q->charge : 0;
    c->preempt = q->preempt;
    c->signal = q->signal;
    c->grace_us = q->grace_us;
    c->preempts = 0;
    for (char **w = q->preempts; w && *w; w++) {
        uint32_t other = class_get(s, *w)->index;
        c->preempts |= other < QOS_MAX ? UINT64_C(1) << other : 0;
    }
    find_heights(s);
    fence_set(&c->fence, &q->limits, &q->user_limits);
}
