/*
 * store.h - what must survive: one SQLite file, one writer.
 *
 * divvyd's loop is the only writer. It opens one transaction a turn, writes
 * what the turn decided, commits, and only then answers and acts:
 *
 *     store_begin(s, e);
 *     store_add_job(s, &submit, &spec, now, &id, e);    // jobs.h
 *     if (store_commit(s, e) < 0)
 *         …nothing of this turn happened: answer -ENOSPC to all of it
 *
 * Invariants
 *   - Committed is on the disk (WAL, synchronous=FULL), whatever is killed.
 *   - Every function that writes needs an open transaction (asserted).
 *   - When a write fails (-ENOSPC, -EIO), all of the transaction is rolled
 *     back at once. Until store_rollback, or the store_commit that reports it,
 *     every further write returns the same failure. After that the store is
 *     usable as before: a disk with room again is enough.
 *   - Reading needs no transaction and sees this turn's own writes.
 *   - Wrong arguments (a job that is not there) give -ENOENT and leave the
 *     transaction open and unchanged.
 *
 * Rows are handed to callbacks one at a time; their strings live until the
 * callback returns. A callback returns 0 to go on, anything else to stop,
 * which the walk returns (a negative one is a failure that set `e` itself).
 * A callback may read the store, and may write only to what is not walked.
 *
 *     DIR/divvy.db (-wal, -shm)   0600: environments may hold secrets
 *     DIR/divvy.lock              who has it open
 *     DIR/backup/                 the last three from before a migration
 *
 * The rows: jobs.h (jobs, attempts, specs), cards.h (cards, slices),
 * journal.h (steps of plans), usage.h (decayed usage), ledger.h (what was
 * handed out on each day, and the attempts that ended). Accounts and their
 * weights stand in divvy.yaml and nowhere else.
 */
#ifndef DIVVY_STORE_STORE_H
#define DIVVY_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

struct store;

/*
 * Opens or makes the store in DIR, which is made too where it is missing.
 * `boot_id` (clock_boot_id()) marks every boot time that is written.
 * Blocks: checks the whole file first, and migrates after a backup.
 *   -EBUSY   another process has it open; the sentence has its pid
 *   -EPROTO  written by a newer Divvy, or not a Divvy store at all
 *   -EILSEQ  damaged
 *   -ENOSPC, -EIO, -EACCES …  the file system's own
 * On failure nothing was changed, but for a lock file and, after a failed
 * migration, a backup. The lock belongs to the process, not to its children:
 * open after the last fork of a daemon, and once a process.
 */
int store_open(const char *dir, const char *boot_id, struct store **ret, struct err *e);

/* Rolls back what is open. NULL is fine. */
void store_close(struct store *s);
DEFINE_AUTO_PTR(struct store, store_close);

int store_begin(struct store *s, struct err *e);
/* Blocks for one fsync. On failure everything since store_begin is undone. */
int store_commit(struct store *s, struct err *e);
void store_rollback(struct store *s);      /* nothing open: does nothing */
bool store_is_open(const struct store *s); /* is a transaction open (or given up and not ended)? */

/* Small single facts, by name. `store_meta` gives NULL when there is none; the caller frees. */
int store_set_meta(struct store *s, const char *key, const char *value, struct err *e);
int store_meta(struct store *s, const char *key, char **ret, struct err *e);

/*
 * Forgets at most `max` jobs that ended before `before`, oldest first, with
 * their attempts and journals, environments that no job uses any more, and
 * slices gone before then. A job of this boot must be older by both clocks, so
 * that a wall clock that was set forward takes no job along. Returns the number
 * of jobs forgotten: fewer than `max` means that is all. To be called a few
 * rows at a time.
 */
int store_prune(struct store *s, struct now before, uint32_t max, struct err *e);

#endif
