/*
 * server.h - a server of cards in memory on which decisions are carried out,
 * with every step checked: nothing busy is cut, nothing is held twice.
 */
#ifndef DIVVY_TESTS_SERVER_H
#define DIVVY_TESTS_SERVER_H

#include <stdlib.h>

#include "boards.h"
#include "model/charge.h"
#include "sched/sched.h"

static inline void server_remove_slice(struct inventory_card *c, size_t at)
{
    size_t after = c->card.slice_count - at - 1;
    memmove(&c->card.slices[at], &c->card.slices[at + 1], after * sizeof *c->card.slices);
    memmove(&c->slices[at], &c->slices[at + 1], after * sizeof *c->slices);
    c->card.slice_count--;
}

static inline size_t server_slice_at(const struct inventory_card *c, uint32_t start)
{
    for (size_t i = 0; i < c->card.slice_count; i++)
        if (c->card.slices[i].start == start)
            return i;
    return SIZE_MAX;
}

static inline bool server_overlaps(const struct inventory_card *c, uint32_t start, uint32_t units)
{
    for (size_t i = 0; i < c->card.slice_count; i++) {
        const struct slice *s = &c->card.slices[i];
        if (s->start < start + units && start < s->start + s->units)
            return true;
    }
    return false;
}

/* NULL: carried out; else what is wrong with the step. */
static inline const char *server_step(struct inventory_card *c, const struct step *step)
{
    size_t at = server_slice_at(c, step->start);
    switch (step->kind) {
    case STEP_MIG_ON:
    case STEP_MIG_OFF:
        if (!inventory_card_free(c) || c->card.slice_count)
            return "turns the mode of a card in use";
        if (c->card.mig_now == (step->kind == STEP_MIG_ON))
            return "turns a mode that is there already";
        card_turn(c, step->kind == STEP_MIG_ON);
        return NULL;
    case STEP_GI_DESTROY:
        if (at == SIZE_MAX || c->slices[at].hold.kind != HOLD_NONE)
            return "destroys what is busy or not there";
        server_remove_slice(c, at);
        return NULL;
    case STEP_GI_CREATE:
        if (!c->card.mig_now || server_overlaps(c, step->start, step->units))
            return "cuts where something is";
        (void)card_cut(c, step->profile, step->start, 0);
        return NULL;
    case STEP_CI_DESTROY:
        return at == SIZE_MAX || c->slices[at].hold.kind != HOLD_NONE ? "destroys what is busy"
                                                                      : NULL;
    case STEP_MIG_STORE:
    case STEP_RESET:
    case STEP_CI_CREATE:
        break;
    }
    return NULL;
}

static inline const char *server_hold(struct inventory_card *c, const struct placed *item,
                                      const struct hold *hold)
{
    size_t at = item->whole ? 0 : server_slice_at(c, item->start);
    if (item->whole && (!inventory_card_free(c) || c->card.mig_now))
        return "takes a whole card that is in use";
    if (!item->whole && (at == SIZE_MAX || c->slices[at].hold.kind != HOLD_NONE ||
                         c->card.slices[at].profile_id != item->profile_id))
        return "takes a slice that is busy or not there";
    *(item->whole ? &c->hold : &c->slices[at].hold) = *hold;
    c->idle_since_boot_us = 0;
    return NULL;
}

/* NULL: carried out, and its holds are in the inventory; else what is wrong with it. */
static inline const char *server_apply(struct inventory *inv, const struct sched_decision *d,
                                       int64_t limit_us, struct now now)
{
    struct hold hold = { .kind = HOLD_JOB, .job_id = d->job_id, .since_boot_us = now.boot_us };
    hold.until_boot_us = limit_us ? now.boot_us + limit_us : 0;
    memcpy(hold.user, "carol", 6);
    const char *wrong = NULL;
    for (size_t i = 0; !wrong && i < d->plan.count; i++) {
        struct inventory_card *c = inventory_uuid(inv, d->plan.steps[i].card_uuid);
        wrong = c ? server_step(c, &d->plan.steps[i]) : "step on a card that is not there";
    }
    for (size_t i = 0; !wrong && i < d->place.count; i++) {
        struct inventory_card *c = inventory_uuid(inv, d->place.items[i].card_uuid);
        wrong = c ? server_hold(c, &d->place.items[i], &hold) : "place on a card that is not there";
    }
    return wrong;
}

static inline void server_end(struct inventory *inv, uint64_t job_id, struct now now)
{
    for (size_t i = 0; i < inv->card_count; i++) {
        struct inventory_card *c = &inv->cards[i];
        bool was_free = inventory_card_free(c);
        if (c->hold.job_id == job_id)
            c->hold = (struct hold){ .kind = HOLD_NONE };
        for (size_t k = 0; k < c->card.slice_count; k++)
            if (c->slices[k].hold.job_id == job_id)
                c->slices[k].hold = (struct hold){ .kind = HOLD_NONE };
        if (!was_free && inventory_card_free(c))
            c->idle_since_boot_us = now.boot_us;
    }
}

/* Has an administrator the card while a job of that limit (0: none), started now, would be on it? */
static inline bool server_is_closed(const struct sched_closed *closed, size_t count, uint32_t card,
                                    int64_t limit_us, struct now now)
{
    for (size_t i = 0; i < count; i++) {
        const struct sched_closed *c = &closed[i];
        if (c->ordinal == card && c->until_us > now.boot_us &&
            (!limit_us || c->from_us < now.boot_us + limit_us))
            return true;
    }
    return false;
}

static inline struct request ask_cards(uint32_t n)
{
    return (struct request){ .kind = REQUEST_CARDS, .count = n };
}

static inline struct request ask_slices(const char *profile, uint32_t n)
{
    struct request r = { .kind = REQUEST_SLICES, .count = n };
    snprintf(r.profile, sizeof r.profile, "%s", profile);
    return r;
}

#endif
