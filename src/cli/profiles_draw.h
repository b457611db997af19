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
 * How many slices of a profile could be had on a card now without touching what
 * somebody has: idle slices may go. 0 while the card cannot be cut now, or
 * takes nothing.
 */
uint32_t profiles_free(const struct inventory_card *c, const struct profile *p);

#endif
