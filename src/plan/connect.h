/*
 * connect.h - which N of these cards are connected best?
 *
 * By the sum over all pairs: most NVLinks, then the shortest PCIe paths, then
 * the fewest pairs on different NUMA nodes; then by the cards' own cost; then by
 * what is torn from the cards that are left, so that one card is not taken out
 * of a bridged pair while a single one is free; then the first in the list. Exact up to CONNECT_EXACT cards; beyond that the set
 * is grown card by card from each possible first one.
 */
#ifndef DIVVY_PLAN_CONNECT_H
#define DIVVY_PLAN_CONNECT_H

#include "model/card.h"

#define CONNECT_EXACT 12u
#define CONNECT_MAX 64u

/*
 * Chooses `want` (at least 1) of `n` cards, at most CONNECT_MAX; `costs` has
 * one number each. `ret_chosen` gets their positions, ascending.
 */
void connect_choose(const struct card *const *cards, const uint32_t *costs, size_t n, size_t want,
                    size_t *ret_chosen);

#endif
