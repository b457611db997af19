#include "sim/board.h"

#include <errno.h>
#include <string.h>

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void fill_engines(struct sim_board *b)
{
    struct sim_engines max = { 0 };
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct sim_engines *g = &b->profiles[i].engines;
        max.copy = larger(max.copy, g->copy);
        max.decoder = larger(max.decoder, g->decoder);
        max.encoder = larger(max.encoder, g->encoder);
        max.jpeg = larger(max.jpeg, g->jpeg);
        max.ofa = larger(max.ofa, g->ofa);
    }
    struct sim_engines *t = &b->engines;
    t->copy = t->copy ? t->copy : max.copy;
    t->decoder = t->decoder ? t->decoder : max.decoder;
    t->encoder = t->encoder ? t->encoder : max.encoder;
    t->jpeg = t->jpeg ? t->jpeg : max.jpeg;
    t->ofa = t->ofa ? t->ofa : max.ofa;
}

static void fill_start_order(struct sim_profile *p)
{
    if (p->start_count > 0)
        return;
    p->start_count = p->placement_count;
    for (uint32_t i = 0; i < p->placement_count; i++)
        p->start_order[i] = p->placements[p->placement_count - 1 - i].start;
}

static bool has_start(const struct sim_profile *p, uint32_t start)
{
    for (uint32_t i = 0; i < p->placement_count; i++)
        if (p->placements[i].start == start)
            return true;
    return false;
}

/* A whole, a half, a quarter or an eighth: instance ids are made from that. */
static bool span_is_sound(const struct sim_board *b, struct sim_span s)
{
    if (s.size == 0 || s.size > b->units || b->units % s.size != 0)
        return false;
    uint32_t parts = b->units / s.size;
    return parts <= 8 && (parts & (parts - 1)) == 0 && s.start % s.size == 0 &&
           s.start <= b->units - s.size;
}

static int check_ci_profiles(const struct sim_board *b, const struct sim_profile *p, struct err *e)
{
    if (p->ci_count == 0 || p->ci_count > SIM_CI_PROFILES_MAX)
        return err_set(e, -EINVAL, "board %s: %s has %u compute instance profiles, not 1 to %d",
                       b->key, p->name, p->ci_count, SIM_CI_PROFILES_MAX);
    for (uint32_t i = 0; i < p->ci_count; i++) {
        const struct sim_ci_profile *c = &p->ci[i];
        if (c->slices == 0 || c->slices > p->slices || c->max_instances == 0)
            return err_set(e, -EINVAL,
                           "board %s: compute instance profile %s of %s needs 1 to %u slices and "
                           "at least one instance",
                           b->key, c->name, p->name, p->slices);
    }
    return 0;
}

static int check_profile(const struct sim_board *b, struct sim_profile *p, struct err *e)
{
    if (p->name[0] == '\0' || p->slices == 0 || p->slices > b->slices || p->memory_mib == 0 ||
        p->max_instances == 0)
        return err_set(e, -EINVAL,
                       "board %s: profile \"%s\" needs a name, slices (1 to %u), memory and a "
                       "number of instances",
                       b->key, p->name, b->slices);
    if (p->placement_count == 0 || p->placement_count > SIM_PLACEMENTS_MAX ||
        p->start_count > SIM_PLACEMENTS_MAX)
        return err_set(e, -EINVAL, "board %s: %s has %u placements, not 1 to %d", b->key, p->name,
                       p->placement_count, SIM_PLACEMENTS_MAX);
    for (uint32_t i = 0; i < p->placement_count; i++)
        if (!span_is_sound(b, p->placements[i]))
            return err_set(
                e, -EINVAL, "board %s: placement %u:%u of %s is no even part of %u memory units",
                b->key, p->placements[i].start, p->placements[i].size, p->name, b->units);
    for (uint32_t i = 0; i < p->start_count; i++)
        if (!has_start(p, p->start_order[i]))
            return err_set(e, -EINVAL, "board %s: %s starts by default at %u, no placement of it",
                           b->key, p->name, p->start_order[i]);
    fill_start_order(p);
    return check_ci_profiles(b, p, e);
}

int sim_board_check(struct sim_board *b, struct err *e)
{
    if (b->key[0] == '\0' || b->name[0] == '\0' || b->memory_mib == 0 ||
        b->reserved_mib >= b->memory_mib)
        return err_set(e, -EINVAL, "board \"%s\" needs a key, a name and memory", b->key);
    if (b->profile_count > SIM_PROFILES_MAX)
        return err_set(e, -EINVAL, "board %s has %u profiles; %d fit", b->key, b->profile_count,
                       SIM_PROFILES_MAX);
    bool mig = b->mig_enable != SIM_MIG_NONE;
    if (mig != (b->profile_count > 0) || (mig && (b->units == 0 || b->units > SIM_UNITS_MAX)))
        return err_set(e, -EINVAL,
                       "board %s: profiles, 1 to %d memory units and mig_enable go together",
                       b->key, SIM_UNITS_MAX);
    for (uint32_t i = 0; i < b->profile_count; i++) {
        int rc = check_profile(b, &b->profiles[i], e);
        if (rc < 0)
            return rc;
    }
    fill_engines(b);
    return 0;
}

const struct sim_profile *sim_board_profile(const struct sim_board *b, uint32_t id)
{
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].id == id)
            return &b->profiles[i];
    return NULL;
}

const struct sim_profile *sim_board_profile_at(const struct sim_board *b, uint32_t index)
{
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].index == index)
            return &b->profiles[i];
    return NULL;
}

const struct sim_profile *sim_board_profile_named(const struct sim_board *b, const char *name)
{
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (strcmp(b->profiles[i].name, name) == 0)
            return &b->profiles[i];
    return NULL;
}

const struct sim_ci_profile *sim_ci_profile(const struct sim_profile *p, uint32_t id)
{
    for (uint32_t i = 0; i < p->ci_count; i++)
        if (p->ci[i].id == id)
            return &p->ci[i];
    return NULL;
}

const struct sim_ci_profile *sim_ci_profile_at(const struct sim_profile *p, uint32_t index)
{
    for (uint32_t i = 0; i < p->ci_count; i++)
        if (p->ci[i].index == index)
            return &p->ci[i];
    return NULL;
}
