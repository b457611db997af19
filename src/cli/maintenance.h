/*
 * maintenance.h - what `divvy status` tells of maintenance beside `divvy maintenance`.
 */
#ifndef DIVVY_CLI_MAINTENANCE_H
#define DIVVY_CLI_MAINTENANCE_H

#include "cli/verb.h"

/* A line for each card of GET /v1/maintenance that did not come back, and what would bring it. */
void maintenance_add_out(struct text *t, json_t *out);
/* What GET /v1/maintenance answered, in lines; nothing when none is under way and no card is out. */
void maintenance_add_state(struct text *t, json_t *j);

#endif
