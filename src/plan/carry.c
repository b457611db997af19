#include "plan/carry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static size_t slice_at(const struct inventory_card *c, uint32_t start)
{
    for (size_t i = 0; i < c->card.slice_count; i++)
        if (c->card.slices[i].start == start)
            return i;
    return SIZE_MAX;
}

/* A GPU instance with all that is in it. */
static void remove_slices(struct inventory_card *c, uint32_t start, uint32_t units)
{
    size_t n = 0;
    for (size_t i = 0; i < c->card.slice_count; i++) {
        if (c->card.slices[i].start == start && c->card.slices[i].units == units)
            continue;
        c->card.slices[n] = c->card.slices[i];
        c->slices[n++] = c->slices[i];
    }
    c->card.slice_count = n;
}

static uint32_t free_gi(const struct card *c)
{
    uint32_t gi = 1;
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].gi >= gi)
            gi = c->slices[i].gi + 1;
    return gi;
}

static void add_slice(struct inventory_card *c, const struct step *step)
{
    const struct profile *p = board_profile_by_id(&c->card.board, step->profile_id);
    const struct ci_profile *ci = p ? profile_full_ci(p) : NULL;
    uint32_t gi = free_gi(&c->card);
    size_t n = c->card.slice_count, at = 0;
    struct inventory_slice *slices = mem_new((n + 1) * sizeof *slices);
    (void)card_add_slice(&c->card); /* room at the end; filled below */
    while (at < n && c->card.slices[at].start < step->start)
        at++;
    memmove(&c->card.slices[at + 1], &c->card.slices[at], (n - at) * sizeof *c->card.slices);
    if (n) {
        memcpy(slices, c->slices, at * sizeof *slices);
        memcpy(slices + at + 1, c->slices + at, (n - at) * sizeof *slices);
    }
    free(c->slices);
    c->slices = slices;
    c->card.slices[at] = (struct slice){ .gi = gi,
                                         .profile_id = step->profile_id,
                                         .start = step->start,
                                         .units = step->units,
                                         .ci_profile_id = ci ? ci->id : 0,
                                         .ci_slices = p ? p->slices : 0,
                                         .full = true };
}

static void turn(struct inventory_card *c, bool on)
{
    c->card.mig_now = c->card.mig_pending = on;
    if (on)
        c->card.known |= KNOW_SLICES;
}

/* Compute instances come and go with their GPU instance. */
static uint32_t carry_step(struct inventory *inv, const struct step *step)
{
    struct inventory_card *c = inventory_uuid(inv, step->card_uuid);
    assert(c);
    switch (step->kind) {
    case STEP_MIG_ON:
    case STEP_MIG_OFF:
        assert(inventory_card_free(c));
        turn(c, step->kind == STEP_MIG_ON);
        return 1;
    case STEP_GI_DESTROY:
        remove_slices(c, step->start, step->units);
        return 1;
    case STEP_GI_CREATE:
        add_slice(c, step);
        return 1;
    case STEP_MIG_STORE:
    case STEP_RESET:
    case STEP_CI_DESTROY:
    case STEP_CI_CREATE:
        break;
    }
    return 0;
}

uint32_t carry_steps(struct inventory *inv, const struct plan *plan)
{
    uint32_t n = 0;
    for (size_t i = 0; i < plan->count; i++)
        n += carry_step(inv, &plan->steps[i]);
    return n;
}

static void carry_hold(struct inventory *inv, const struct placed *item, const struct hold *hold)
{
    struct inventory_card *c = inventory_uuid(inv, item->card_uuid);
    assert(c);
    size_t at = item->whole ? 0 : slice_at(c, item->start);
    struct hold *to = item->whole ? &c->hold : &c->slices[at].hold;
    assert(at != SIZE_MAX && to->kind == HOLD_NONE);
    *to = *hold;
    c->idle_since_boot_us = 0;
}

uint32_t carry_job(struct inventory *inv, const struct place *place, const struct plan *plan,
                   const struct hold *hold)
{
    if (inv->bulk) {
        struct bulk_hold h = { .job_id = hold->job_id,
                               .cards = (uint32_t)place->count,
                               .since_boot_us = hold->since_boot_us,
                               .until_boot_us =
                                   hold->until_boot_us ? hold->until_boot_us : INT64_MAX };
        bool held = place->count == 0 || bulk_hold(inv->bulk, &h);
        assert(held);
        (void)held; /* read by the assertion alone */
        return 0;
    }
    uint32_t n = carry_steps(inv, plan);
    for (size_t i = 0; i < place->count; i++)
        carry_hold(inv, &place->items[i], hold);
    return n;
}

static void end_hold(struct hold *h, uint64_t job_id)
{
    if (h->kind == HOLD_JOB && h->job_id == job_id)
        *h = (struct hold){ .kind = HOLD_NONE };
}

void carry_end(struct inventory *inv, uint64_t job_id, int64_t now_us)
{
    if (inv->bulk)
        (void)bulk_end(inv->bulk, job_id); /* a job without cards holds none */
    for (size_t i = 0; i < inv->card_count; i++) {
        struct inventory_card *c = &inv->cards[i];
        bool was_free = inventory_card_free(c);
        end_hold(&c->hold, job_id);
        for (size_t k = 0; k < c->card.slice_count; k++)
            end_hold(&c->slices[k].hold, job_id);
        if (!was_free && inventory_card_free(c))
            c->idle_since_boot_us = now_us;
    }
}

static void copy_card(struct inventory_card *c)
{
    size_t n = c->card.slice_count;
    struct slice *slices = NULL;
    c->card.slice_alloc = 0;
    ARRAY_ROOM(slices, c->card.slice_alloc, n + 1);
    if (n)
        memcpy(slices, c->card.slices, n * sizeof *slices);
    c->card.slices = slices;
    c->card.processes = NULL;
    c->card.process_count = c->card.process_alloc = 0;
    c->slices = n ? mem_dup(c->slices, n * sizeof *c->slices) : NULL;
}

void carry_copy(const struct inventory *inv, struct inventory *ret)
{
    struct inventory copy = *inv;
    copy.cards = mem_dup(inv->cards, inv->card_count * sizeof *inv->cards);
    for (size_t i = 0; i < inv->card_count; i++)
        copy_card(&copy.cards[i]);
    if (inv->bulk) {
        copy.bulk = mem_new(sizeof *copy.bulk);
        bulk_copy(inv->bulk, copy.bulk);
    }
    *ret = copy;
}
