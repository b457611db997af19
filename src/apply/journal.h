/*
 * journal.h - a file that knows how far an apply got.
 *
 * For changes without a daemon: one JSON object a line, appended and synced,
 * the plan first, then each step before it is begun and what came of it. After
 * a crash the lines are played through the same state machine. A last line
 * that was cut short is as if it had not been written. The file is removed
 * when the apply is over. divvyd finishes a journal that it finds.
 *
 *     journal_open(dir, &j, e); journal_plan(j, &a, e); … apply_run(&a, d, j, e)
 */
#ifndef DIVVY_APPLY_JOURNAL_H
#define DIVVY_APPLY_JOURNAL_H

#include "apply/apply.h"

struct journal;

/*
 * Creates DIR/apply.journal, readable by its owner, and takes the room on disk
 * that its lines will need, to the end or back, so that a full disk is found
 * out before the first step. -EEXIST: an earlier one waits to be finished. On
 * failure nothing of it is left.
 */
int journal_create(const char *dir, const struct apply *a, struct journal **ret, struct err *e);

/*
 * Opens the one that is there and plays it into `ret_apply` (the caller's, to
 * be ended by apply_done), ready for apply_recover. -ENOENT: none. -EINVAL: not
 * readable; the text names the file, which is left for a person to look at.
 */
int journal_resume(const char *dir, struct apply *ret_apply, struct journal **ret, struct err *e);

/* Durable when they return 0. */
int journal_begin(struct journal *j, const struct step *s, struct err *e);
int journal_result(struct journal *j, int code, const struct step *done, const char *text,
                   struct err *e);

/* Over: removes the file. Frees `j`, also on failure. */
int journal_finish(struct journal *j, struct err *e);
/* Keeps the file for the next start. NULL is fine. */
void journal_close(struct journal *j);

#endif
