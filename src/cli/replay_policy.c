#include "cli/replay.h"

#include <stdlib.h>
#include <string.h>

static void add_branch(struct variant *v, size_t i)
{
    static const enum sched_inside insides[] = {
        [INSIDE_USERS] = SCHED_USERS, [INSIDE_FIFO] = SCHED_FIFO, [INSIDE_LAS] = SCHED_LAS
    };
    const struct config_account *a = &v->config.accounts[i];
    struct sched_user_share *users = mem_new((a->user_share_count + 1) * sizeof *users);
    for (size_t k = 0; k < a->user_share_count; k++)
        users[k] = (struct sched_user_share){ .user = a->user_shares[k].user,
                                              .weight = a->user_shares[k].share };
    v->user_shares[i] = users;
    v->branches[i] = (struct sched_branch){ .name = a->name,
                                            .parent = a->parent,
                                            .weight = a->share,
                                            .inside = insides[a->inside],
                                            .users = users,
                                            .user_count = a->user_share_count,
                                            .limits = &a->limits,
                                            .user_limits = &a->user_limits };
}

static void set_policy(struct variant *v)
{
    const struct divvyd_config *c = &v->config;
    struct sched_policy p = SCHED_POLICY_DEFAULT;
    p.half_life_us = c->half_life_us;
    p.mode_hold_us = c->mode_hold_us;
    p.order = (struct sched_order){ .share = c->order.share,
                                    .age = c->order.age,
                                    .size = c->order.size,
                                    .age_max_us = c->order.age_max_us };
    p.keep_ppm = c->keep.part_ppm;
    p.keep_for_us = c->keep.for_us;
    p.las_count = (uint32_t)c->las_count;
    for (size_t i = 0; i < c->las_count && i < SCHED_LAS_MAX; i++)
        p.las_us[i] = c->las_us[i];
    v->policy = (struct replay_policy){ .sched = p,
                                        .default_time_us = c->default_time_us,
                                        .branches = v->branches,
                                        .branch_count = c->account_count,
                                        .qos = c->qos,
                                        .qos_count = c->qos_count,
                                        .limits = &c->limits,
                                        .user_limits = &c->user_limits };
}

int variant_init(struct variant *v, const char *path, struct err *e)
{
    *v = (struct variant){ .name = NULL };
    divvyd_config_init(&v->config);
    if (path) {
        struct divvyd_config read;
        int r = divvyd_config_read(path, &read, e);
        divvyd_config_done(&v->config);
        if (r < 0)
            return r;
        v->config = read;
    }
    v->name = text_dup(path ? path : "defaults");
    v->branches = mem_new((v->config.account_count + 1) * sizeof *v->branches);
    v->user_shares = mem_new((v->config.account_count + 1) * sizeof(struct sched_user_share *));
    for (size_t i = 0; i < v->config.account_count; i++)
        add_branch(v, i);
    set_policy(v);
    return 0;
}

void variant_done(struct variant *v)
{
    for (size_t i = 0; v->user_shares && i < v->config.account_count; i++)
        free(v->user_shares[i]);
    if (v->branches)
        divvyd_config_done(&v->config);
    free(v->user_shares);
    free(v->branches);
    free(v->name);
    replay_figures_done(&v->figures);
}
