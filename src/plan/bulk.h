/*
 * bulk.h - inside plan/: the questions of place.h about cards that are only
 * counted (model/bulk.h).
 */
#ifndef DIVVY_PLAN_BULK_H
#define DIVVY_PLAN_BULK_H

#include "model/bulk.h"
#include "plan/place.h"

/* As place_possible; slices and needs are never had of cards without geometry. */
enum place_verdict bulk_possible(const struct bulk *b, const struct request *r, struct err *e);
/* As place_request, with an empty plan. */
enum place_verdict bulk_request(const struct bulk *b, const struct request *r,
                                struct place *ret_place, struct plan *ret_plan, struct err *e);

#endif
