/*
 * geometry.h - three boards as their cards tell them: seven slices in eight
 * units, four in four, four in twelve. Numbers as nvidia-smi mig -lgip and
 * -lgipp print them; independent of boards/ and its reader.
 *
 *     struct board *b = board_a100_80gb();
 *     ...
 *     free(b);
 */
#ifndef DIVVY_TESTS_GEOMETRY_H
#define DIVVY_TESTS_GEOMETRY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "model/board.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

struct geometry_row {
    const char *name;
    uint32_t id, index, slices, units, mem_mib, jpegs, ofas, max;
    const char *starts; /* a digit each */
};

/* Compute instances of 1, 2, 3, 4 and 7 slices have ids 0 to 4 on every board. */
static inline void geometry_add_cis(struct profile *p)
{
    static const uint32_t sizes[] = { 1, 2, 3, 4, 7 };
    for (uint32_t i = 0; i < 5 && sizes[i] <= p->slices; i++) {
        struct ci_profile *ci = &p->cis[p->ci_count++];
        *ci = (struct ci_profile){ .id = i, .index = i, .slices = sizes[i] };
        ci->max = p->slices / sizes[i];
        AUTO(text) struct text name = TEXT_INIT;
        if (sizes[i] < p->slices)
            text_addf(&name, "%uc.", sizes[i]);
        text_add(&name, p->name);
        memcpy(ci->name, name.buf, name.len + 1); /* fits */
    }
}

static inline void geometry_add(struct board *b, const struct geometry_row *row)
{
    struct profile *p = &b->profiles[b->profile_count++];
    (void)snprintf(p->name, sizeof p->name, "%s", row->name); /* fits */
    p->id = row->id;
    p->index = row->index;
    p->slices = row->slices;
    p->units = row->units;
    p->mem_bytes = row->mem_mib * MIB;
    p->jpegs = row->jpegs;
    p->ofas = row->ofas;
    p->max = row->max;
    for (const char *s = row->starts; *s; s++)
        p->starts[p->start_count++] = (uint8_t)(*s - '0');
    geometry_add_cis(p);
}

/* Heap, zeroed but for what is given; the caller frees. */
static inline struct board *geometry_new(const char *name, uint32_t slices, uint32_t units,
                                         uint64_t mem_mib, const struct geometry_row *rows,
                                         size_t n)
{
    struct board *b = mem_new(sizeof *b);
    (void)snprintf(b->name, sizeof b->name, "%s", name); /* fits */
    b->activation = MIG_BY_RESET;
    b->slices = slices;
    b->units = units;
    b->mem_bytes = mem_mib * MIB;
    for (size_t i = 0; i < n; i++)
        geometry_add(b, &rows[i]);
    return b;
}

static inline struct board *board_a100_80gb(void)
{
    static const struct geometry_row rows[] = {
        { "1g.10gb", 19, 0, 1, 1, 9728, 0, 0, 7, "0123456" },
        { "1g.10gb+me", 20, 7, 1, 1, 9728, 1, 1, 1, "0123456" },
        { "1g.20gb", 15, 9, 1, 2, 19968, 0, 0, 4, "0246" },
        { "2g.20gb", 14, 1, 2, 2, 19968, 0, 0, 3, "024" },
        { "3g.40gb", 9, 2, 3, 4, 40192, 0, 0, 2, "04" },
        { "4g.40gb", 5, 3, 4, 4, 40192, 0, 0, 1, "0" },
        { "7g.80gb", 0, 4, 7, 8, 80896, 1, 1, 1, "0" },
    };
    return geometry_new("NVIDIA A100-SXM4-80GB", 7, 8, 81920, rows, 7);
}

static inline struct board *board_a30(void)
{
    static const struct geometry_row rows[] = {
        { "1g.6gb", 14, 0, 1, 1, 5952, 0, 0, 4, "0123" },
        { "1g.6gb+me", 21, 7, 1, 1, 5952, 1, 1, 1, "0123" },
        { "2g.12gb", 5, 1, 2, 2, 11968, 0, 0, 2, "02" },
        { "2g.12gb+me", 6, 8, 2, 2, 11968, 1, 1, 1, "02" },
        { "4g.24gb", 0, 3, 4, 4, 24000, 1, 1, 1, "0" },
    };
    return geometry_new("NVIDIA A30", 4, 4, 24576, rows, 5);
}

static inline struct board *board_rtx_pro_6000(void)
{
    static const struct geometry_row rows[] = {
        { "1g.24gb", 14, 0, 1, 3, 24192, 1, 0, 4, "0369" },
        { "1g.24gb+me", 21, 7, 1, 3, 24192, 1, 1, 1, "0369" },
        { "1g.24gb+gfx", 47, 10, 1, 3, 24192, 1, 0, 4, "0369" },
        { "1g.24gb+me.all", 65, 15, 1, 3, 24192, 4, 1, 1, "0369" },
        { "1g.24gb-me", 67, 13, 1, 3, 24192, 0, 0, 4, "0369" },
        { "2g.48gb", 5, 1, 2, 6, 48512, 2, 0, 2, "06" },
        { "2g.48gb+gfx", 35, 11, 2, 6, 48512, 2, 0, 2, "06" },
        { "2g.48gb+me.all", 64, 16, 2, 6, 48512, 4, 1, 1, "06" },
        { "2g.48gb-me", 66, 14, 2, 6, 48512, 0, 0, 2, "06" },
        { "4g.96gb", 0, 3, 4, 12, 97280, 4, 1, 1, "0" },
        { "4g.96gb+gfx", 32, 12, 4, 12, 97280, 4, 1, 1, "0" },
    };
    return geometry_new("NVIDIA RTX PRO 6000 Blackwell Server Edition", 4, 12, 97887, rows, 11);
}

#endif
