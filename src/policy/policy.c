#include "policy/policy.h"

#include <stdlib.h>

static struct sched_node node_of(const struct divvyd_config *c)
{
    const struct config_node *n = &c->node;
    return (struct sched_node){ .cpu_milli = n->cpus == COUNT_SAID ? n->cpu_milli : 0,
                                .mem_bytes = n->memory == COUNT_SAID ? n->mem_bytes : 0,
                                .cpu_shares = c->task_limits.cpu != TASK_LIMIT_NONE,
                                .mem_shares = c->task_limits.memory != TASK_LIMIT_NONE };
}

struct sched_policy policy_of(const struct divvyd_config *c)
{
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    p.half_life_us = c->half_life_us;
    p.mode_hold_us = c->mode_hold_us;
    p.reservations = c->reservations;
    p.order = (struct sched_order){ .share = c->order.share,
                                    .age = c->order.age,
                                    .size = c->order.size,
                                    .age_max_us = c->order.age_max_us };
    p.keep_ppm = c->keep.part_ppm;
    p.keep_for_us = c->keep.for_us;
    p.node = node_of(c);
    p.preempt_las = c->preempt_las;
    p.preempt_shares = c->preempt_shares;
    p.las_count = (uint32_t)c->las_count;
    for (size_t i = 0; i < c->las_count && i < SCHED_LAS_MAX; i++)
        p.las_us[i] = c->las_us[i];
    return p;
}

static struct sched_branch branch_of(const struct config_account *a)
{
    static const enum sched_inside insides[] = {
        [INSIDE_USERS] = SCHED_USERS, [INSIDE_FIFO] = SCHED_FIFO, [INSIDE_LAS] = SCHED_LAS
    };
    struct sched_user_share *users = mem_new((a->user_share_count + 1) * sizeof *users);
    for (size_t i = 0; i < a->user_share_count; i++)
        users[i] = (struct sched_user_share){ .user = a->user_shares[i].user,
                                              .weight = a->user_shares[i].share };
    return (struct sched_branch){ .name = a->name,
                                  .parent = a->parent,
                                  .weight = a->share,
                                  .inside = insides[a->inside],
                                  .users = users,
                                  .user_count = a->user_share_count,
                                  .limits = &a->limits,
                                  .user_limits = &a->user_limits };
}

void policy_branches_init(struct policy_branches *b, const struct divvyd_config *c)
{
    b->count = c->account_count;
    b->list = mem_new((b->count + 1) * sizeof *b->list);
    for (size_t i = 0; i < b->count; i++)
        b->list[i] = branch_of(&c->accounts[i]);
}

void policy_branches_done(struct policy_branches *b)
{
    for (size_t i = 0; i < b->count; i++)
        free((struct sched_user_share *)b->list[i].users); /* made above; others only look */
    free(b->list);
    *b = (struct policy_branches){ .count = 0 };
}

void policy_load(struct sched *s, const struct divvyd_config *c)
{
    struct policy_branches b;
    policy_branches_init(&b, c);
    sched_set_limits(s, &c->limits, &c->user_limits);
    for (size_t i = 0; i < b.count; i++)
        sched_set_account(s, &b.list[i]);
    for (size_t i = 0; i < c->qos_count; i++)
        sched_set_qos(s, &c->qos[i]);
    policy_branches_done(&b);
}
