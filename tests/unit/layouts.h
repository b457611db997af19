/*
 * layouts.h - wishes in one line, and cards after a plan, for tests.
 */
#ifndef DIVVY_TESTS_LAYOUTS_H
#define DIVVY_TESTS_LAYOUTS_H

#include "boards.h"
#include "config/board.h"
#include "config/layout.h"
#include "model/address.h"
#include "model/expect.h"
#include "plan/layout.h"

/* A card of boards/KEY.yaml, MIG on, nothing on it. */
static inline struct inventory_card *layouts_card(struct inventory *inv, const char *key)
{
    struct board *b = mem_new(sizeof *b);
    struct err e = ERR_INIT;
    if (board_find(key, b, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    struct inventory_card *c = inventory_add(inv, *b);
    free(b);
    card_turn(c, c->card.mig_capable);
    return c;
}

/* Plans "slices: WISH" for the card; the caller ends `ret`. */
static inline void layouts_plan(const struct inventory_card *c, const char *wish,
                                struct layout_change *ret)
{
    AUTO(layout) struct layout l = LAYOUT_INIT;
    struct err e = ERR_INIT;
    auto_free char *text = text_fmt("cards: [{card: gpu0, %s}]", wish);
    if (layout_parse("wish", text, strlen(text), &l, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        abort();
    }
    layout_plan(c, &l.wishes[0], ret);
}

/* "1g.10gb@6 2g.20gb@4": what the card holds, by start. Caller frees. */
static inline char *layouts_text(const struct card *c)
{
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < c->slice_count; i++) {
        AUTO(text) struct text a = TEXT_INIT;
        address_add(&a, c, &c->slices[i]);
        text_addf(&t, "%s%s", i ? " " : "", strchr(a.buf, '/') + 1);
    }
    return text_take(&t);
}

/* The card as the steps leave it; the caller ends it. */
static inline void layouts_after(const struct inventory_card *c, const struct plan *p,
                                 struct inventory_card *ret)
{
    uint32_t next = 200;
    *ret = *c;
    card_copy(&c->card, &ret->card);
    for (size_t i = 0; i < p->count; i++) {
        struct step s = p->steps[i];
        if (s.kind == STEP_GI_CREATE)
            s.gi = next++;
        for (size_t k = 0; s.kind == STEP_CI_CREATE && k < ret->card.slice_count; k++)
            if (ret->card.slices[k].start == s.start &&
                ret->card.slices[k].profile_id == s.profile_id)
                s.gi = ret->card.slices[k].gi;
        if (s.kind == STEP_CI_CREATE)
            s.ci = next++;
        card_expect(&ret->card, &s);
    }
    ret->slices = mem_new((ret->card.slice_count + 1) * sizeof *ret->slices);
}

static inline void layouts_after_done(struct inventory_card *c)
{
    card_done(&c->card);
    free(c->slices);
}

#endif
