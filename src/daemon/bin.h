/*
 * bin.h - folders of attempts that are over, until there is time to remove them.
 *
 * Removing a folder costs more than all else that divvyd does at the end of a
 * short job, and nobody waits for it. So the folder loses its name at once, with
 * which it means nothing to anybody any more, and is removed when no attempt
 * has ended for a second; or, where they never cease to end, when BIN_MAX later
 * ones are there. What a killed divvyd left is taken up by the next one's sweep.
 */
#ifndef DIVVY_DAEMON_BIN_H
#define DIVVY_DAEMON_BIN_H

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"

#define BIN_MAX 2000 /* about 16 KiB of disk each */

/* The attempt is over for good: what else there may be of it goes, too. */
typedef void (*bin_last_fn)(void *user, uint64_t job_id, uint32_t attempt);

struct bin {
    const char *jobs; /* the folder above; borrowed */
    bin_last_fn last;
    void *user;
    char **names;           /* a ring of BIN_MAX, owned; NULL until the first */
    size_t first, count;    /* the oldest, and how many */
    sd_event_source *timer; /* NULL: closed, and everything is removed at once */
};

/* `last` is called before a folder is removed. */
int bin_open(struct bin *b, sd_event *event, const char *jobs, bin_last_fn last, void *user,
             struct err *e);
/* What is in it stays on disk. */
void bin_close(struct bin *b);

/* The name of a folder below `jobs`, of jobdir_put_away or jobdir_scan. Takes it. */
void bin_add(struct bin *b, char *take_name);

#endif
