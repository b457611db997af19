#include "cli/replay.h"

#include <stdlib.h>
#include <string.h>

static void set_policy(struct variant *v)
{
    const struct divvyd_config *c = &v->config;
    v->policy = (struct replay_policy){ .sched = policy_of(c),
                                        .default_time_us = c->default_time_us,
                                        .branches = v->branches.list,
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
    policy_branches_init(&v->branches, &v->config);
    set_policy(v);
    return 0;
}

void variant_done(struct variant *v)
{
    if (v->branches.list)
        divvyd_config_done(&v->config);
    policy_branches_done(&v->branches);
    free(v->name);
    replay_figures_done(&v->figures);
}
