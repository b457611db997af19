/*
 * lock.h - one writer per card, over all daemons and commands of a machine.
 *
 * A lock is an flock(2) on DRIVER_ROOT/run/divvy-cards/CARD_UUID: below the
 * driver's root and not below Divvy's own, because two Divvys with different
 * roots still share the cards. The directory is apart from /run/divvy, which
 * service managers remove when a daemon stops. Files are 0600: who may not
 * write them could otherwise hold a lock for ever. They stay when unlocked.
 *
 *     AUTO(card_lock) struct card_lock l = CARD_LOCK_INIT;
 *     if (card_lock_take(&l, driver_root, card->uuid, "divvy layout apply", e) < 0)
 *         return …;    // -EBUSY: "gpu0 … is being changed by divvyd (pid 812)"
 *
 * A process that ends lets go of its locks. Children must not inherit them:
 * the descriptor is close-on-exec, and close_range in a fork closes it there
 * without letting go here.
 */
#ifndef DIVVY_APPLY_LOCK_H
#define DIVVY_APPLY_LOCK_H

#include "base/err.h"

struct card_lock {
    int fd;
};

#define CARD_LOCK_INIT                                                                             \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/*
 * Takes the lock or fails at once. `driver_root` NULL is DIVVY_DRIVER_ROOT, else
 * "/". `who` is written into the file, with the pid, for the one who comes second.
 *   -EBUSY   another process has it: named in the text
 *   -EACCES  the caller may not write there: an ordinary user on a machine
 *            where an administrator manages the cards
 */
int card_lock_take(struct card_lock *l, const char *driver_root, const char *card_uuid,
                   const char *who, struct err *e);
/* Lets go. */
void card_lock_done(struct card_lock *l);

#endif
