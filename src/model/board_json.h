/*
 * board_json.h - the JSON form of a board: a GPU model and what it can be cut into.
 *
 * It stands in that of a card (model/card_json.h), in `divvy profiles --json`, and in
 * the messages between divvyd and its driver children. Sizes are bytes; null is what a
 * driver does not tell. Readers accept fields that they do not know.
 */
#ifndef DIVVY_MODEL_BOARD_JSON_H
#define DIVVY_MODEL_BOARD_JSON_H

#include "model/board.h"
#include "model/fields.h"

/* New reference; never NULL. */
json_t *board_to_json(const struct board *b);

/* `ret` is filled only on success. -EINVAL. */
int board_from_json(json_t *j, struct board *ret, struct err *e);

#endif
