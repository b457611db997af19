/*
 * refuse.h - one sentence for what cannot be, now or ever: the reason, and
 * what would work.
 */
#ifndef DIVVY_PLAN_REFUSE_H
#define DIVVY_PLAN_REFUSE_H

#include "plan/stock.h"

/*
 * Why this server can never serve the request; `served` of it it could. `s` is
 * made with the view `nobody` and untouched.
 */
void refuse_never(const struct stock *s, const struct request *r, uint32_t served, struct err *e);

/* Why not now: what holds the cards that could serve it. `s` is untouched. */
void refuse_later(const struct stock *s, const struct request *r, uint32_t served, struct err *e);

#endif
