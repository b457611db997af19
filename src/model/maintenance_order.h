/*
 * maintenance_order.h - what POST /v1/maintenance asks for.
 */
#ifndef DIVVY_MODEL_MAINTENANCE_ORDER_H
#define DIVVY_MODEL_MAINTENANCE_ORDER_H

#include "model/fields.h"

#define MAINTENANCE_CARDS_MAX 64u

#define MAINTENANCE_REASON_MAX 200u

enum maintenance_action {
    MAINTENANCE_END = 0,
    MAINTENANCE_BEGIN,
    MAINTENANCE_PLAN,   /* cards are to be free from a time on, until another */
    MAINTENANCE_CANCEL, /* of a plan */
};

struct maintenance_order {
    enum maintenance_action action;
    int64_t from_wall_us, until_wall_us;     /* PLAN */
    char reason[MAINTENANCE_REASON_MAX + 1]; /* PLAN; "": none */
    uint64_t id;                             /* CANCEL */
    uint32_t gpus[MAINTENANCE_CARDS_MAX];
    size_t count; /* 0: all cards */
};

/*
 * {"action": "begin", "gpus": [0, 1]}, {"action": "end"}, {"action": "plan",
 * "from_wall_us": …, "until_wall_us": …, "gpus": [0], "reason": "…"} or
 * {"action": "cancel", "id": 3}, strictly. -EINVAL.
 */
int maintenance_order_from_json(json_t *j, struct maintenance_order *ret, struct err *e);

#endif
