/* The share tree, told. */
#include "daemon/daemon.h"

struct telling {
    struct daemon *daemon;
    struct share_view *view;
};

static uint32_t depth_of(const struct divvyd_config *c, const char *account)
{
    uint32_t depth = 0;
    const struct config_account *a = divvyd_config_account(c, account);
    for (; a && a->parent; a = divvyd_config_account(c, a->parent))
        depth++;
    return depth;
}

static void tell(const struct sched_account *a, void *arg)
{
    static const char *const insides[] = {
        [SCHED_USERS] = "users", [SCHED_FIFO] = "fifo", [SCHED_LAS] = "las"
    };
    struct telling *t = arg;
    uint32_t depth = depth_of(&t->daemon->config, a->name);
    *share_view_add(t->view) = (struct share_row){ .account = a->name,
                                                   .parent = a->parent,
                                                   .user = a->user,
                                                   .inside = insides[a->inside],
                                                   .depth = depth + (a->user ? 1 : 0),
                                                   .weight = a->weight,
                                                   .share = a->norm_shares,
                                                   .used_card_us = a->used_card_us,
                                                   .usage = a->norm_usage,
                                                   .level = a->level,
                                                   .factor = a->factor,
                                                   .rank = a->rank,
                                                   .running_ppm = a->running_ppm,
                                                   .running = a->running,
                                                   .pending = a->pending };
}

void shares_view(struct daemon *d, struct share_view *ret)
{
    struct telling t = { .daemon = d, .view = ret };
    *ret = (struct share_view){ .half_life_us = d->config.half_life_us };
    sched_each_account(d->sched, clock_now(), tell, &t);
}
