/*
 * profiles_draw.h - how a board can be cut, as a table. Pure.
 */
#ifndef DIVVY_CLI_PROFILES_DRAW_H
#define DIVVY_CLI_PROFILES_DRAW_H

#include "cli/screen.h"
#include "model/inventory.h"

/* `cards`: those of this board, for the column of what is free now; count 0: no such column. */
void profiles_draw(const struct board *b, const struct inventory_card *const *cards, size_t count,
                   const struct screen *s, struct text *ret);

/*
 * How many slices of a profile, which is one of the card's own board, jobs
 * could be given on it now: beside what somebody has, with all of the card's
 * engines counted, and with idle slices gone where Divvy made them. Of cards
 * that jobs may not cut, only the idle slices that are there. 0 on a card of
 * another pool than the queue's, or that takes nothing now. Without a daemon
 * nobody knows pools: then what the card has room for.
 */
uint32_t profiles_free(const struct inventory_card *c, const struct profile *p);

#endif
