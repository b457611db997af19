/*
 * maintenance_order.h - what POST /v1/maintenance asks for.
 */
#ifndef DIVVY_MODEL_MAINTENANCE_ORDER_H
#define DIVVY_MODEL_MAINTENANCE_ORDER_H

#include "model/fields.h"

#define MAINTENANCE_CARDS_MAX 64u

struct maintenance_order {
    bool begin; /* else: end */
    uint32_t gpus[MAINTENANCE_CARDS_MAX];
    size_t count; /* 0: all cards */
};

/* {"action": "begin", "gpus": [0, 1]} or {"action": "end"}, strictly. -EINVAL. */
int maintenance_order_from_json(json_t *j, struct maintenance_order *ret, struct err *e);

#endif
