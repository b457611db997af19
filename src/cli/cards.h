/*
 * cards.h - the cards as they are now: from the daemon, or from the driver
 * itself where no daemon answers.
 */
#ifndef DIVVY_CLI_CARDS_H
#define DIVVY_CLI_CARDS_H

#include "cli/verb.h"
#include "driver/driver.h"

/*
 * Fills `ret` (inventory_done). Without a daemon owners are unknown, and
 * standard error says so. On failure prints, and returns the exit status.
 */
int cards_now(const struct session *s, struct inventory *ret);
/* The same once a daemon has asked the driver anew: for what is compared with a file, or kept in one. */
int cards_look(const struct session *s, struct inventory *ret);

/* The driver itself, with board files for what it does not tell. Codes as driver_open. */
int cards_open_driver(struct driver **ret, struct err *e);

/* "gpu0" or "0"; prints and returns false for anything else. */
bool cards_parse(const struct session *s, const char *word, uint32_t *ret_ordinal);

/* "gpu0, gpu1 and gpu2", or "none". Caller frees. */
char *cards_sentence(const struct inventory *inv);

#endif
