#include "sim/mig.h"

#include <errno.h>
#include <string.h>

#include "nvml/nvml.h"

uint32_t mig_gi_id(const struct sim_board *b, struct sim_span span)
{
    uint32_t parts = b->units / span.size; /* 1, 2, 4 or 8 */
    return parts - 1 + span.start / span.size;
}

static bool overlap(struct sim_span a, struct sim_span b)
{
    return a.start < b.start + b.size && b.start < a.start + a.size;
}

static const struct sim_span *placement_at(const struct sim_profile *p, uint32_t start)
{
    for (uint32_t i = 0; i < p->placement_count; i++)
        if (p->placements[i].start == start)
            return &p->placements[i];
    return NULL;
}

/* What the instances of a card take together. */
struct taken {
    uint32_t slices;
    uint32_t instances; /* of the profile asked about */
    struct sim_engines engines;
};

static struct taken sum_taken(const struct sim_board *b, const struct sim_card *c,
                              const struct sim_profile *p)
{
    struct taken t = { 0 };
    for (uint32_t i = 0; i < SIM_GI_MAX; i++) {
        if (!c->gi[i].used)
            continue;
        const struct sim_profile *q = &b->profiles[c->gi[i].profile];
        t.slices += q->slices;
        t.instances += q == p;
        t.engines.decoder += q->engines.decoder;
        t.engines.encoder += q->engines.encoder;
        t.engines.jpeg += q->engines.jpeg;
        t.engines.ofa += q->engines.ofa;
    }
    return t;
}

/* Copy engines are shared out, not counted: 8 on a card whose slices name 7. */
static bool sums_allow(const struct sim_board *b, const struct taken *t,
                       const struct sim_profile *p)
{
    return t->instances < p->max_instances && t->slices + p->slices <= b->slices &&
           t->engines.decoder + p->engines.decoder <= b->engines.decoder &&
           t->engines.encoder + p->engines.encoder <= b->engines.encoder &&
           t->engines.jpeg + p->engines.jpeg <= b->engines.jpeg &&
           t->engines.ofa + p->engines.ofa <= b->engines.ofa;
}

static bool old_driver_forbids(const struct sim_board *b, const struct sim_card *c,
                               const struct sim_profile *p, uint32_t branch)
{
    if (branch >= 510 || b->slices != 7 || (p->slices != 3 && p->slices != 4))
        return false;
    for (uint32_t i = 0; i < SIM_GI_MAX; i++)
        if (c->gi[i].used && b->profiles[c->gi[i].profile].slices == 7 - p->slices)
            return true;
    return false;
}

bool mig_gi_fits(const struct sim_board *b, const struct sim_card *c, const struct sim_profile *p,
                 uint32_t start, uint32_t branch)
{
    const struct sim_span *span = placement_at(p, start);
    struct taken t = sum_taken(b, c, p);
    if (!span || !sums_allow(b, &t, p) || old_driver_forbids(b, c, p, branch))
        return false;
    for (uint32_t i = 0; i < SIM_GI_MAX; i++)
        if (c->gi[i].used && overlap(c->gi[i].span, *span))
            return false;
    return true;
}

/* Placements of one profile never overlap each other, so taking any is as good as another. */
uint32_t mig_gi_remaining(const struct sim_board *b, const struct sim_card *c,
                          const struct sim_profile *p, uint32_t branch)
{
    struct sim_card copy = *c;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->placement_count; i++) {
        struct sim_span span = p->placements[i];
        if (!mig_gi_fits(b, &copy, p, span.start, branch))
            continue;
        copy.gi[mig_gi_id(b, span)] =
            (struct sim_gi){ .used = true, .profile = (uint32_t)(p - b->profiles), .span = span };
        n++;
    }
    return n;
}

static uint32_t first_start(const struct sim_board *b, const struct sim_card *c,
                            const struct sim_profile *p, uint32_t branch)
{
    for (uint32_t i = 0; i < p->start_count; i++)
        if (mig_gi_fits(b, c, p, p->start_order[i], branch))
            return p->start_order[i];
    return MIG_ANYWHERE;
}

int mig_gi_create(struct sim_state *st, const struct sim_board *boards, uint32_t card,
                  uint32_t profile_id, uint32_t start, uint32_t *ret_gi)
{
    struct sim_card *c = &st->cards[card];
    const struct sim_board *b = &boards[c->board];
    const struct sim_profile *p = sim_board_profile(b, profile_id);
    if (!c->mig_current)
        return -EOPNOTSUPP;
    if (!p || (start != MIG_ANYWHERE && !placement_at(p, start)))
        return -EINVAL;
    if (start == MIG_ANYWHERE)
        start = first_start(b, c, p, sim_branch(st));
    if (start == MIG_ANYWHERE || !mig_gi_fits(b, c, p, start, sim_branch(st)))
        return -ENOSPC;
    struct sim_span span = *placement_at(p, start);
    uint32_t id = mig_gi_id(b, span);
    c->gi[id] = (struct sim_gi){ .used = true,
                                 .incarnation = ++c->last_incarnation,
                                 .profile = (uint32_t)(p - b->profiles),
                                 .span = span };
    sim_event_add(st, card, nvmlEventMigConfigChange, 0, id, SIM_NO_INSTANCE);
    *ret_gi = id;
    return 0;
}

int mig_gi_destroy(struct sim_state *st, uint32_t card, uint32_t gi, bool busy)
{
    struct sim_card *c = &st->cards[card];
    if (gi >= SIM_GI_MAX || !c->gi[gi].used)
        return -ENOENT;
    for (uint32_t i = 0; i < SIM_CI_MAX; i++)
        busy = busy || c->gi[gi].ci[i].used;
    if (busy)
        return -EBUSY;
    if (c->faults & SIM_FAULT_DESTROY_LIES)
        return 0;
    c->gi[gi] = (struct sim_gi){ 0 };
    sim_event_add(st, card, nvmlEventMigConfigChange, 0, gi, SIM_NO_INSTANCE);
    return 0;
}

/* Starts are multiples of the size; three slices lie in steps of four. */
uint32_t mig_ci_placements(const struct sim_profile *p, const struct sim_ci_profile *cp,
                           struct sim_span ret_spans[SIM_CI_MAX])
{
    uint32_t step = cp->slices == 3 ? 4 : cp->slices;
    uint32_t n = 0;
    for (uint32_t start = 0; n < SIM_CI_MAX && n < cp->max_instances; start += step) {
        if (start + cp->slices > p->slices)
            break;
        ret_spans[n++] = (struct sim_span){ .start = start, .size = cp->slices };
    }
    return n;
}

static bool ci_span_is_free(const struct sim_gi *g, struct sim_span span)
{
    for (uint32_t i = 0; i < SIM_CI_MAX; i++)
        if (g->ci[i].used && overlap(g->ci[i].span, span))
            return false;
    return true;
}

uint32_t mig_ci_remaining(const struct sim_profile *p, const struct sim_gi *g,
                          const struct sim_ci_profile *cp)
{
    struct sim_span spans[SIM_CI_MAX];
    uint32_t n = mig_ci_placements(p, cp, spans), free_ones = 0;
    for (uint32_t i = 0; i < n; i++)
        free_ones += ci_span_is_free(g, spans[i]);
    return free_ones;
}

/* 0 and the span; -EINVAL: `start` is no placement; -ENOSPC: taken. */
static int choose_ci_span(const struct sim_profile *p, const struct sim_gi *g,
                          const struct sim_ci_profile *cp, uint32_t start,
                          struct sim_span *ret_span)
{
    struct sim_span spans[SIM_CI_MAX];
    uint32_t n = mig_ci_placements(p, cp, spans);
    bool known = start == MIG_ANYWHERE;
    for (uint32_t i = 0; i < n; i++) {
        if (start != MIG_ANYWHERE && spans[i].start != start)
            continue;
        known = true;
        if (ci_span_is_free(g, spans[i])) {
            *ret_span = spans[i];
            return 0;
        }
    }
    return known ? -ENOSPC : -EINVAL;
}

int mig_ci_create(struct sim_state *st, const struct sim_board *boards, uint32_t card, uint32_t gi,
                  uint32_t ci_profile_id, uint32_t start, uint32_t *ret_ci)
{
    struct sim_card *c = &st->cards[card];
    if (gi >= SIM_GI_MAX || !c->gi[gi].used)
        return -ENOENT;
    struct sim_gi *g = &c->gi[gi];
    const struct sim_profile *p = &boards[c->board].profiles[g->profile];
    const struct sim_ci_profile *cp = sim_ci_profile(p, ci_profile_id);
    struct sim_span span;
    if (!cp)
        return -EINVAL;
    int rc = choose_ci_span(p, g, cp, start, &span);
    if (rc < 0)
        return rc;
    for (uint32_t id = 0; id < SIM_CI_MAX; id++) {
        if (g->ci[id].used)
            continue;
        g->ci[id] = (struct sim_ci){ .used = true,
                                     .incarnation = ++c->last_incarnation,
                                     .profile = (uint32_t)(cp - p->ci),
                                     .span = span };
        sim_event_add(st, card, nvmlEventMigConfigChange, 0, gi, id);
        *ret_ci = id;
        return 0;
    }
    return -ENOSPC;
}

int mig_ci_destroy(struct sim_state *st, uint32_t card, uint32_t gi, uint32_t ci, bool busy)
{
    struct sim_card *c = &st->cards[card];
    if (gi >= SIM_GI_MAX || ci >= SIM_CI_MAX || !c->gi[gi].used || !c->gi[gi].ci[ci].used)
        return -ENOENT;
    if (busy)
        return -EBUSY;
    if (c->faults & SIM_FAULT_DESTROY_LIES)
        return 0;
    c->gi[gi].ci[ci] = (struct sim_ci){ 0 };
    sim_event_add(st, card, nvmlEventMigConfigChange, 0, gi, ci);
    return 0;
}

bool mig_device_at(const struct sim_card *c, uint32_t index, uint32_t *ret_gi, uint32_t *ret_ci)
{
    for (uint32_t gi = 0; gi < SIM_GI_MAX; gi++)
        for (uint32_t ci = 0; c->gi[gi].used && ci < SIM_CI_MAX; ci++)
            if (c->gi[gi].ci[ci].used && index-- == 0) {
                *ret_gi = gi;
                *ret_ci = ci;
                return true;
            }
    return false;
}

uint32_t mig_device_index(const struct sim_card *c, uint32_t gi, uint32_t ci)
{
    uint32_t at_gi, at_ci;
    for (uint32_t i = 0; mig_device_at(c, i, &at_gi, &at_ci); i++)
        if (at_gi == gi && at_ci == ci)
            return i;
    return MIG_ANYWHERE;
}

const char *mig_device_profile(const struct sim_board *b, const struct sim_card *c, uint32_t gi,
                               uint32_t ci)
{
    const struct sim_gi *g = &c->gi[gi];
    return b->profiles[g->profile].ci[g->ci[ci].profile].name;
}
