/*
 * journal.h - the steps of every plan, before and after they were taken.
 *
 * A plan belongs to an attempt, or to somebody's change of a layout (job_id
 * 0, `who` says whose). Its steps are committed as PLANNED; each is committed
 * as SENT before it is sent, and as DONE or FAILED when the answer came; a
 * step taken back is UNDONE. The plan stays open until nothing is left to do.
 * After a crash the open plans tell what to look at: a SENT step may or may
 * not have happened, and the hardware tells which.
 *
 * A step is opaque here: JSON text (model/step.h writes and reads it).
 */
#ifndef DIVVY_STORE_JOURNAL_H
#define DIVVY_STORE_JOURNAL_H

#include "store/store.h"

enum journal_state {
    JOURNAL_PLANNED = 0,
    JOURNAL_SENT,
    JOURNAL_DONE,
    JOURNAL_FAILED,
    JOURNAL_UNDONE,
};
const char *journal_state_word(enum journal_state st);

/* A step with its plan. Strings borrowed for the callback. */
struct journal_row {
    uint64_t plan_id;
    uint64_t job_id; /* 0: a layout */
    uint32_t attempt;
    const char *who; /* user who asked for the layout; "" for a job's */
    int64_t made_wall_us;
    uint32_t seq; /* from 0, the order of the plan */
    enum journal_state state;
    const char *step; /* JSON; once DONE with what came of it */
    const char *note; /* why it failed; "" */
};

typedef int (*store_journal_fn)(const struct journal_row *row, void *arg);

/* At least one step (-EINVAL). Plan ids rise and are never used again. */
int store_add_plan(struct store *s, uint64_t job_id, uint32_t attempt, const char *who,
                   const char *const *steps, size_t count, struct now now, uint64_t *ret_plan_id,
                   struct err *e);
/* `step` NULL keeps the text that is there, `note` NULL the note. -ENOENT. */
int store_set_step(struct store *s, uint64_t plan_id, uint32_t seq, enum journal_state state,
                   const char *step, const char *note, struct err *e);
/* Nothing is left to do for it. -ENOENT. */
int store_close_plan(struct store *s, uint64_t plan_id, struct now now, struct err *e);

/* Steps of all open plans, by plan and order. */
int store_each_open_step(struct store *s, store_journal_fn fn, void *arg, struct err *e);
/* Steps of one job's plans, open or not, for `divvy show`. */
int store_each_job_step(struct store *s, uint64_t job_id, store_journal_fn fn, void *arg,
                        struct err *e);

#endif
