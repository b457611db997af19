/*
 * gpus_draw.h - the cards as a picture, or as columns. Pure.
 *
 * On a terminal each card is a line, and below it its slices, drawn to scale
 * at their true place among the card's memory units, with their holders.
 * Elsewhere each card and each slice is one row of columns. What is not known
 * is "n/a"; a card in trouble says why and never hides the others.
 */
#ifndef DIVVY_CLI_GPUS_DRAW_H
#define DIVVY_CLI_GPUS_DRAW_H

#include "cli/screen.h"
#include "model/inventory.h"

struct gpus_look {
    const struct screen *screen;
    bool details; /* UUIDs, bus ids and memory of each slice as well */
    /* Name of a user, borrowed until the next call; NULL: unknown, shown as a number. */
    const char *(*user_name)(uid_t uid, void *arg);
    void *user_arg;
};

void gpus_draw(const struct inventory *inv, const struct gpus_look *look, struct text *ret);

/* "whole" or "slices" as it is now; "n/a" for a card that is lost. */
const char *gpus_sharing_word(const struct card *c);

/* Who has it: "#41 alice serve 2h13m", "idle", "pid 8121 python3 (dave) is not a Divvy job". */
void gpus_add_hold(struct text *t, const struct inventory *inv, const struct inventory_card *c,
                   const struct hold *h, const struct gpus_look *look);

#endif
