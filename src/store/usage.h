/*
 * usage.h - what accounts and their users have used, decayed up to a stamp.
 *
 * Usage is card·µs (one whole card for one microsecond is 1), decayed by the
 * half-life up to the stamp. Between two times of one boot the boot clock
 * says how long to decay; over a reboot the wall clock does, never backwards.
 */
#ifndef DIVVY_STORE_USAGE_H
#define DIVVY_STORE_USAGE_H

#include <sys/types.h>

#include "store/store.h"

#define USAGE_OF_ALL ((uid_t)-1) /* the account's own sum, not one user's */

struct usage_row {
    const char *account; /* borrowed for the callback */
    uid_t uid;           /* USAGE_OF_ALL, or one user in that account */
    double used_card_us;
    struct now stamp;
    char boot_id[BOOT_ID_SIZE]; /* of stamp.boot_us */
};

typedef int (*store_usage_fn)(const struct usage_row *row, void *arg);

/* Replaces. `used_card_us` is finite and not negative. */
int store_set_usage(struct store *s, const char *account, uid_t uid, double used_card_us,
                    struct now stamp, struct err *e);
int store_each_usage(struct store *s, store_usage_fn fn, void *arg, struct err *e);

/*
 * Time from the row's stamp to now, µs, at least 0: by the boot clock when
 * `boot_id` is the row's, else by the wall clock.
 */
int64_t usage_age_us(const struct usage_row *row, struct now now, const char *boot_id);

#endif
