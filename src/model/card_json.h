/*
 * card_json.h - JSON forms of cards, snapshots and inventories.
 *
 * One form serves three readers: the messages between divvyd and its driver
 * children, `divvy gpus --json`, and the API. Sizes are bytes, times µs, and
 * what is not known is null. Readers accept fields that they do not know.
 */
#ifndef DIVVY_MODEL_CARD_JSON_H
#define DIVVY_MODEL_CARD_JSON_H

#include "model/fields.h"
#include "model/inventory.h"

/* New references; never NULL. */
json_t *card_to_json(const struct card *c);
json_t *snapshot_to_json(const struct snapshot *s);
json_t *inventory_to_json(const struct inventory *inv);

/* `ret` is filled only on success; then the caller ends it with its _done. -EINVAL. */
int card_from_json(json_t *j, struct card *ret, struct err *e);
int snapshot_from_json(json_t *j, struct snapshot *ret, struct err *e);
int inventory_from_json(json_t *j, struct inventory *ret, struct err *e);

#endif
