/*
 * holders.h - what running jobs hold, where no daemon says so.
 *
 * A job outlives its daemon, and may hold a slice that no process of it has
 * opened yet. Its folder tells.
 */
#ifndef DIVVY_CLI_HOLDERS_H
#define DIVVY_CLI_HOLDERS_H

#include "model/inventory.h"

/*
 * Marks the slices and cards of all attempts below ROOT/var/lib/divvy/jobs that
 * have not ended as held by these jobs. No such folder: nobody. A folder that
 * cannot be read is an error: what it holds is not known.
 */
int holders_mark(const char *root, struct inventory *inv, struct err *e);

#endif
