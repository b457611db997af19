/*
 * sim_boards.h - boards of real cards for tests of the simulated driver.
 */
#ifndef DIVVY_TESTS_SIM_BOARDS_H
#define DIVVY_TESTS_SIM_BOARDS_H

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine.h"

struct sim_row {
    const char *name;
    uint32_t id, index, slices, units, memory_mib, sm;
    uint32_t decoder, encoder, jpeg, ofa, max;
    uint32_t last;     /* highest start; starts are multiples of `units` up to it */
    const char *order; /* default starts, one digit each; NULL: the board says none */
};

static const struct sim_row a100_rows[] = {
    { "1g.10gb", 19, 0, 1, 1, 9728, 14, 0, 0, 0, 0, 7, 6, "6450123" },
    { "1g.10gb+me", 20, 7, 1, 1, 9728, 14, 1, 0, 1, 1, 1, 6, "6450123" },
    { "1g.20gb", 15, 9, 1, 2, 19968, 14, 1, 0, 0, 0, 4, 6, NULL },
    { "2g.20gb", 14, 1, 2, 2, 19968, 28, 1, 0, 0, 0, 3, 4, "402" },
    { "3g.40gb", 9, 2, 3, 4, 40192, 42, 2, 0, 0, 0, 2, 4, "40" },
    { "4g.40gb", 5, 3, 4, 4, 40192, 56, 2, 0, 0, 0, 1, 0, "0" },
    { "7g.80gb", 0, 4, 7, 8, 80896, 98, 5, 0, 1, 1, 1, 0, "0" },
};

static const struct sim_row a30_rows[] = {
    { "1g.6gb", 14, 0, 1, 1, 5952, 14, 0, 0, 0, 0, 4, 3, NULL },
    { "1g.6gb+me", 21, 7, 1, 1, 5952, 14, 1, 0, 1, 1, 1, 3, NULL },
    { "2g.12gb", 5, 1, 2, 2, 11968, 28, 2, 0, 0, 0, 2, 2, NULL },
    { "4g.24gb", 0, 3, 4, 4, 24000, 56, 4, 0, 1, 1, 1, 0, NULL },
};

static const struct sim_row rtx_pro_6000_rows[] = {
    { "1g.24gb", 14, 0, 1, 3, 24192, 46, 1, 1, 1, 0, 4, 9, NULL },
    { "1g.24gb+me.all", 65, 15, 1, 3, 24192, 46, 4, 4, 4, 1, 1, 9, NULL },
    { "1g.24gb-me", 67, 13, 1, 3, 24192, 46, 0, 0, 0, 0, 4, 9, NULL },
    { "2g.48gb", 5, 1, 2, 6, 48512, 94, 2, 2, 2, 0, 2, 6, NULL },
    { "4g.96gb", 0, 3, 4, 12, 97280, 188, 4, 4, 4, 1, 1, 0, NULL },
};

/* Compute instance profiles as NVML numbers them: 1, 2, 3, 4 and 7 slices are 0 to 4. */
static inline void sim_test_cis(struct sim_profile *p)
{
    static const uint32_t sizes[] = { 1, 2, 3, 4, 7 };
    for (uint32_t i = 0; i < 5 && sizes[i] <= p->slices; i++) {
        if (sizes[i] == 4 && p->slices == 3)
            continue;
        struct sim_ci_profile *c = &p->ci[p->ci_count++];
        *c = (struct sim_ci_profile){ .id = i,
                                      .index = i,
                                      .slices = sizes[i],
                                      .sm = p->sm / p->slices * sizes[i],
                                      .max_instances = p->slices / sizes[i],
                                      .is_default = sizes[i] == p->slices };
        if (c->is_default)
            (void)snprintf(c->name, sizeof c->name, "%s", p->name);
        else
            (void)snprintf(c->name, sizeof c->name, "%uc.%s", sizes[i], p->name);
    }
}

static inline void sim_test_profile(struct sim_profile *p, const struct sim_row *r)
{
    *p = (struct sim_profile){ .id = r->id,
                               .index = r->index,
                               .slices = r->slices,
                               .memory_mib = r->memory_mib,
                               .sm = r->sm,
                               .engines = { .copy = r->slices,
                                            .decoder = r->decoder,
                                            .encoder = r->encoder,
                                            .jpeg = r->jpeg,
                                            .ofa = r->ofa },
                               .max_instances = r->max };
    (void)snprintf(p->name, sizeof p->name, "%s", r->name);
    for (uint32_t s = 0; s <= r->last; s += r->units)
        p->placements[p->placement_count++] = (struct sim_span){ s, r->units };
    for (const char *o = r->order; o && *o; o++)
        p->start_order[p->start_count++] = (uint32_t)(*o - '0');
    sim_test_cis(p);
}

static inline struct sim_board sim_test_board(const char *key, const struct sim_row *rows, size_t n,
                                              uint32_t units, uint32_t slices,
                                              enum sim_mig_enable enable)
{
    struct sim_board b = { .arch = enable == SIM_MIG_GPU_RESET ? 7 : 9,
                           .cc_major = 8,
                           .memory_mib = 81920,
                           .reserved_mib = 640,
                           .sm = 108,
                           .units = units,
                           .slices = slices,
                           .mig_enable = enable,
                           .ecc = true,
                           .passive = true,
                           .power_idle_mw = 60000,
                           .power_limit_mw = 400000,
                           .temp_slowdown_c = 89,
                           .profile_count = (uint32_t)n };
    (void)snprintf(b.key, sizeof b.key, "%s", key);
    (void)snprintf(b.name, sizeof b.name, "NVIDIA %s", key);
    for (size_t i = 0; i < n; i++)
        sim_test_profile(&b.profiles[i], &rows[i]);
    int rc = sim_board_check(&b, NULL);
    assert(rc == 0);
    (void)rc;
    return b;
}

#define SIM_ROWS(rows) rows, sizeof(rows) / sizeof(rows)[0]

static inline struct sim_board sim_a100(void)
{
    return sim_test_board("A100", SIM_ROWS(a100_rows), 8, 7, SIM_MIG_GPU_RESET);
}

/* Hopper's rules on the same geometry. */
static inline struct sim_board sim_hopper(void)
{
    return sim_test_board("H100", SIM_ROWS(a100_rows), 8, 7, SIM_MIG_IMMEDIATE);
}

static inline struct sim_board sim_a30(void)
{
    return sim_test_board("A30", SIM_ROWS(a30_rows), 4, 4, SIM_MIG_GPU_RESET);
}

static inline struct sim_board sim_rtx_pro_6000(void)
{
    return sim_test_board("RTX", SIM_ROWS(rtx_pro_6000_rows), 12, 4, SIM_MIG_IMMEDIATE);
}

#endif
