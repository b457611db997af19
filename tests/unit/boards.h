/*
 * boards.h - boards and inventories for tests, with the values of real cards.
 */
#ifndef DIVVY_TESTS_BOARDS_H
#define DIVVY_TESTS_BOARDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/inventory.h"

#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

struct profile_row {
    const char *name;
    uint32_t id, index, slices, units;
    uint64_t mem_mib;
    uint32_t decoders, jpegs, ofas, max;
    const char *starts; /* one letter each: a is 0 */
};

static const struct profile_row a100_80_rows[] = {
    { "1g.10gb", 19, 0, 1, 1, 9728, 0, 0, 0, 7, "abcdefg" },
    { "1g.10gb+me", 20, 7, 1, 1, 9728, 1, 1, 1, 1, "abcdefg" },
    { "1g.20gb", 15, 9, 1, 2, 19968, 1, 0, 0, 4, "aceg" },
    { "2g.20gb", 14, 1, 2, 2, 19968, 1, 0, 0, 3, "ace" },
    { "3g.40gb", 9, 2, 3, 4, 40192, 2, 0, 0, 2, "ae" },
    { "4g.40gb", 5, 3, 4, 4, 40192, 2, 0, 0, 1, "a" },
    { "7g.80gb", 0, 4, 7, 8, 80896, 5, 1, 1, 1, "a" },
};

static const struct profile_row a30_rows[] = {
    { "1g.6gb", 14, 0, 1, 1, 5952, 0, 0, 0, 4, "abcd" },
    { "1g.6gb+me", 21, 7, 1, 1, 5952, 1, 1, 1, 1, "abcd" },
    { "2g.12gb", 5, 1, 2, 2, 11968, 2, 0, 0, 2, "ac" },
    { "2g.12gb+me", 6, 8, 2, 2, 11968, 2, 1, 1, 1, "ac" },
    { "4g.24gb", 0, 3, 4, 4, 24000, 4, 1, 1, 1, "a" },
};

static inline void board_add_row(struct board *b, const struct profile_row *r)
{
    struct profile *p = &b->profiles[b->profile_count++];
    *p = (struct profile){ .id = r->id,
                           .index = r->index,
                           .slices = r->slices,
                           .units = r->units,
                           .mem_bytes = r->mem_mib * MIB,
                           .decoders = r->decoders,
                           .jpegs = r->jpegs,
                           .ofas = r->ofas,
                           .max = r->max };
    snprintf(p->name, sizeof p->name, "%s", r->name);
    for (const char *s = r->starts; *s; s++)
        p->starts[p->start_count++] = (uint8_t)(*s - 'a');
    p->cis[p->ci_count++] = (struct ci_profile){
        .id = r->index % 5, .index = r->index % 5, .slices = r->slices, .max = 1
    };
}

static inline struct board board_of(const char *name, enum mig_activation activation,
                                    uint64_t mem_gib, uint32_t units, uint32_t slices,
                                    const struct profile_row *rows, size_t n)
{
    struct board b = {
        .activation = activation, .units = units, .slices = slices, .mem_bytes = mem_gib * GIB
    };
    snprintf(b.name, sizeof b.name, "%s", name);
    for (size_t i = 0; i < n; i++)
        board_add_row(&b, &rows[i]);
    if (n) {
        b.decoders = rows[n - 1].decoders;
        b.jpegs = rows[n - 1].jpegs;
        b.ofas = rows[n - 1].ofas;
    }
    return b;
}

static inline struct board board_a100_80(void)
{
    return board_of("NVIDIA A100-SXM4-80GB", MIG_BY_RESET, 80, 8, 7, a100_80_rows, 7);
}

static inline struct board board_a30(void)
{
    return board_of("NVIDIA A30", MIG_BY_RESET, 24, 4, 4, a30_rows, 5);
}

static inline struct board board_rtx4090(void)
{
    return board_of("NVIDIA GeForce RTX 4090", MIG_NONE, 24, 0, 0, NULL, 0);
}

/* A healthy card of pool queue in mode auto, MIG off, empty since boot + 1 µs. */
static inline struct inventory_card *inventory_add(struct inventory *inv, struct board b)
{
    struct inventory_card *cards = mem_new((inv->card_count + 1) * sizeof *cards);
    if (inv->card_count)
        if (inv->card_count)
            memcpy(cards, inv->cards, inv->card_count * sizeof *cards);
    free(inv->cards);
    inv->cards = cards;
    struct inventory_card *c = &cards[inv->card_count];
    c->pool = POOL_QUEUE;
    c->mode = MODE_AUTO;
    c->owners_known = true;
    c->idle_since_boot_us = 1;
    c->card.board = b;
    c->card.mig_capable = b.activation != MIG_NONE;
    c->card.mem_total_bytes = b.mem_bytes;
    c->card.ordinal = (uint32_t)inv->card_count;
    c->card.minor = c->card.ordinal;
    snprintf(c->card.uuid, sizeof c->card.uuid, "GPU-%08u-0000-0000-0000-000000000000",
             c->card.ordinal);
    inv->card_count++;
    return c;
}

static inline void card_turn(struct inventory_card *c, bool on)
{
    c->card.mig_now = c->card.mig_pending = on;
    c->card.known |= KNOW_SLICES;
}

/* A slice with its one compute instance; job 0 is idle. Kept in order of starts. */
static inline struct inventory_slice *card_cut(struct inventory_card *c, const char *profile,
                                               uint32_t start, uint64_t job)
{
    const struct profile *p = board_profile_by_name(&c->card.board, profile);
    card_turn(c, true);
    (void)card_add_slice(&c->card);
    struct inventory_slice *more = mem_new(c->card.slice_count * sizeof *more);
    size_t at = 0;
    while (at + 1 < c->card.slice_count && c->card.slices[at].start < start)
        at++;
    size_t after = c->card.slice_count - 1 - at;
    memmove(&c->card.slices[at + 1], &c->card.slices[at], after * sizeof *c->card.slices);
    if (c->slices) {
        memcpy(more, c->slices, at * sizeof *more);
        memcpy(more + at + 1, c->slices + at, after * sizeof *more);
    }
    free(c->slices);
    c->slices = more;
    struct slice *s = &c->card.slices[at];
    *s = (struct slice){ .gi = 20 * p->units + start,
                         .ci = 0,
                         .profile_id = p->id,
                         .start = start,
                         .units = p->units,
                         .ci_profile_id = p->cis[0].id,
                         .ci_slices = p->slices,
                         .full = true };
    snprintf(s->uuid, sizeof s->uuid, "MIG-%u-%u-%u", c->card.ordinal, s->gi, s->ci);
    more[at] = (struct inventory_slice){ .generation = 100 + start };
    if (job) {
        more[at].hold = (struct hold){ .kind = HOLD_JOB, .job_id = job, .user = "alice" };
        c->idle_since_boot_us = 0;
    }
    return &more[at];
}

static inline void card_hold(struct inventory_card *c, uint64_t job, int64_t until_boot_us)
{
    c->hold = (struct hold){
        .kind = HOLD_JOB, .job_id = job, .user = "carol", .until_boot_us = until_boot_us
    };
    c->idle_since_boot_us = 0;
}

#endif
