/*
 * apply.h - carry out a plan, or leave things as they were.
 *
 * struct apply is a plan on its way: a state machine that says which step is
 * next and is told what came of it. It does nothing itself. When a step fails
 * it walks back, undoing what was done in reverse order, and ends as APPLY_BACK
 * to where things were; only when that fails too is it APPLY_STUCK.
 *
 *     apply_init(&a, &plan);
 *     while ((s = apply_next(&a))) {
 *         store_commit(about to do s);            // journal before
 *         apply_begin(&a);
 *         code = driver_step(d, s, &done, &err);  // or by the `act` child
 *         apply_result(&a, code, &done, err.text);
 *         store_commit(what came of it);          // journal after
 *     }
 *
 * Durability is the caller's: either keep apply_to_json(&a) in a transaction at
 * both commits (the daemon), or use the file journal (apply/journal.h). After a
 * crash: apply_from_json, then apply_recover with a fresh snapshot, then go on
 * with the same loop: starting and recovering are one path.
 *
 * A reboot or a reload of the driver takes all instances away, and on some cards
 * MIG with them, in the middle of a plan too. So an instance to be destroyed that is
 * gone already is a step done. Undoing asks only that things are as before: one to
 * be made again that is there counts as undone, and so does one that cannot be there
 * any more, since MIG is off or the GPU instance around it was taken away. A step that
 * failed with -EIO (the driver said one thing and did another) is undone too, as if
 * it had been done. Of a MIG mode both are undone, the current one and the one that
 * is stored for the next reset: a card that waited for another mode before waits for
 * it again, and what was only stored is never made current by an undo.
 *
 * A mode change that stays pending (-EAGAIN) is no failure: the machine puts a
 * STEP_RESET of that card next, by itself. Where no reset works (-ENOTSUP: a
 * virtual machine), or none is wanted now, the rest of that card's steps can be
 * set aside (`resets`) for after a reboot, and the other cards go on:
 * apply/reboot.h keeps what was set aside. Before it hands out a mode or reset
 * step whoever else holds NVML must let go of it (driver_child_ask_release).
 */
#ifndef DIVVY_APPLY_APPLY_H
#define DIVVY_APPLY_APPLY_H

#include "driver/driver.h"
#include "plan/plan.h"

enum apply_state {
    APPLY_GOING = 0,   /* apply_next has a step towards the wanted layout */
    APPLY_BACK,        /* one failed: apply_next has steps that undo */
    APPLY_DONE,        /* all done */
    APPLY_ROLLED_BACK, /* one failed; the earlier layout is there again */
    APPLY_STUCK,       /* one failed, and not everything could be undone: `stuck` says what */
};

/* What to do with a mode that waits for a reset. */
enum apply_resets {
    APPLY_RESET_MUST = 0, /* reset; that none works is a failure like any other */
    APPLY_RESET_OR_ASIDE, /* reset; where none works, the card is set aside */
    APPLY_RESET_NEVER,    /* somebody else does it later: the card is set aside */
};

struct apply {
    enum apply_state state;
    enum apply_resets resets; /* set between apply_init and the journal */
    struct plan plan;         /* what was asked; steps before `at` are done, with gi, ci and uuid */
    size_t at;                /* of plan, while going: the next one */
    struct plan back;         /* what undoes it, first to be done first */
    size_t back_at;
    bool under_way;             /* the present step was begun and nothing came of it yet */
    struct step reset;          /* while reset_next */
    bool reset_next;            /* the present mode step is stored and waits for its reset */
    int code;                   /* of the step that failed; 0 */
    bool reset_failed;          /* that step was the reset that a mode waits for */
    char failure[ERR_TEXT_MAX]; /* which step, and why */
    char stuck[ERR_TEXT_MAX];   /* what could not be undone, and why */
    struct plan aside;          /* of each card that was set aside: its mode step, which is stored,
                    and the steps that follow it */
    char reboot[ERR_TEXT_MAX];  /* why, of the last of them; "" for none */
};

/* Copies the plan. An empty plan is APPLY_DONE at once. */
void apply_init(struct apply *a, const struct plan *p);
void apply_done(struct apply *a);

/* The step to carry out now; NULL when it is over (see `state`). Valid until the next call. */
const struct step *apply_next(const struct apply *a);

/* The step of apply_next is about to be carried out. */
void apply_begin(struct apply *a);

/*
 * What came of the step of apply_next: driver_step's code, the step as done
 * (may be NULL on failure), and the words of a failure (may be NULL).
 */
void apply_result(struct apply *a, int code, const struct step *done, const char *text);

/*
 * Stops here and walks back, as if the next step had failed with -ECANCELED:
 * for a job that was cancelled while its slices are cut. No step may be under
 * way. Nothing when it is already over or going back.
 */
void apply_cancel(struct apply *a, const char *why);

/* Does the present or a later step need every other NVML client of this card to be gone? */
bool apply_needs_release(const struct step *s);

/* Is any step of it still to be done on this card? */
bool apply_touches(const struct apply *a, const char *card_uuid);

/*
 * After a crash, or when an answer was lost: was the step that is under way
 * done? Looks at the hardware and feeds apply_result; afterwards no step is
 * under way. Does nothing when none was. -ENODEV when the card is not in the
 * snapshot or not answering, -ESTALE when the hardware is neither as before
 * the step nor as after it (somebody else cut the card): then it is fed as a
 * failure, and what was done by this plan alone is undone.
 */
int apply_recover(struct apply *a, const struct snapshot *now, struct err *e);

/*
 * Was this step done, to judge by the card now? 1 (and `ret_done` filled), 0
 * when things are as before it, -ESTALE when neither.
 */
int apply_step_happened(const struct step *s, const struct card *now, struct step *ret_done);

/* New reference; all of it but nothing that points elsewhere. */
json_t *apply_to_json(const struct apply *a);
int apply_from_json(json_t *j, struct apply *ret, struct err *e);

/* "going", "going back", "done", "rolled back", "stuck". */
const char *apply_state_word(enum apply_state s);

struct journal;

/*
 * All of it at once, through a driver in this process, for use without a
 * daemon: each step journaled before and after (`j` may be NULL). 0 when done;
 * the failed step's code with `failure` when rolled back; -ENOTRECOVERABLE
 * with `stuck` when stuck. Blocks.
 */
int apply_run(struct apply *a, struct driver *d, struct journal *j, struct err *e);

/*
 * Called when a step towards the wanted layout was journaled as begun, before it is carried out.
 * A negative code is as if the step itself had failed so.
 */
typedef int (*apply_before_fn)(const struct apply *a, const struct step *s, void *arg,
                               struct err *e);
/* The same with such a function; NULL: none. */
int apply_run_with(struct apply *a, struct driver *d, struct journal *j, apply_before_fn before,
                   void *arg, struct err *e);

#endif
