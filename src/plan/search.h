/*
 * search.h - the best thing to take, for each task of a request.
 *
 * One task after the other takes the best of what there is, by, in this order:
 * the smaller fit (dominant share, then the order of request_fits); reuse
 * before create before destroy before turning a card's MIG mode; fewer idle
 * pieces destroyed; on one card, the place that leaves the most room
 * (occupancy_room); of several cards, the one that loses the least of its worth
 * (occupancy_worth), and of equal ones the one that loses the least when one of
 * its slices has gone; the lower ordinal and start. Several whole cards are chosen together, the best
 * connected ones first, then with the fewest mode changes and destroyed pieces.
 */
#ifndef DIVVY_PLAN_SEARCH_H
#define DIVVY_PLAN_SEARCH_H

#include "plan/stock.h"

/*
 * Takes for the whole request. Returns how many tasks (cards for whole cards)
 * were served; fewer than search_wanted means that not all fit, and then the
 * stock is of no further use.
 */
uint32_t search_take(struct stock *s, const struct request *r);
uint32_t search_wanted(const struct request *r);

#endif
