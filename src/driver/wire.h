/*
 * wire.h - how skips, events and snapshots are written into messages. Both
 * sides of driver/child.h include it; nobody else.
 */
#ifndef DIVVY_DRIVER_WIRE_H
#define DIVVY_DRIVER_WIRE_H

#include "driver/driver.h"
#include "driver/message.h"

#define WIRE_SKIPS_MAX 256u

json_t *skips_to_json(const struct driver_skip *skip, size_t n);
/* Array of *ret_count, caller frees. -EPROTO. */
int skips_from_json(json_t *j, struct driver_skip **ret, size_t *ret_count, struct err *e);

void event_put(json_t *j, const struct driver_event *ev);
int event_from_json(json_t *j, struct driver_event *ret, struct err *e);

json_t *restore_to_json(const struct driver_restore *r);
int restore_from_json(json_t *j, struct driver_restore *ret, struct err *e);

#endif
