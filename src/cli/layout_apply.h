/*
 * layout_apply.h - changing cards without a daemon: what `divvy layout apply`
 * and `divvy mig-parted` share.
 *
 *     AUTO(applying) struct applying a = { .session = s, .call = c, .who = "…" };
 *     … no divvyd answers; a.work: its list and layout are chosen …
 *     status = applying_open(&a);          // driver, locks, what was cut short; then a look
 *     … a.work.changes …
 *     status = applying_carry_out(&a, &plan, &aside);
 *     status = applying_look(&a);          // what came of it
 *
 * All of them print what is wrong, and return an exit status.
 */
#ifndef DIVVY_CLI_LAYOUT_APPLY_H
#define DIVVY_CLI_LAYOUT_APPLY_H

#include "apply/lock.h"
#include "cli/layout.h"

/* Everything that is open while cards are changed. */
struct applying {
    struct session *session;
    const struct layout_call *call;
    const char *who; /* for the locks */
    enum apply_resets resets;
    apply_before_fn before; /* NULL: none; called with before_arg */
    void *before_arg;
    struct layout_work work;
    struct driver *driver;
    char *root;
    char *state;          /* where the journal lies */
    struct reboot reboot; /* cards that wait for one */
    struct card_lock *locks;
    size_t lock_count;
    bool settled;   /* slice create, destroy: the wish is made, whatever comes of the cards */
    size_t changed; /* cards that were done */
};

void applying_done(struct applying *a);

/*
 * Opens the driver, takes the locks of all cards, finishes a change that was cut short, and goes
 * on with cards that have waited for a reboot. Afterwards `work` is planned on what is there.
 */
int applying_open(struct applying *a);

/* A new snapshot, and a new plan on it. */
int applying_look(struct applying *a);

/* Does it with a journal, all or nothing. `ret_aside`: cards that were set aside instead. */
int applying_carry_out(struct applying *a, const struct plan *p, size_t *ret_aside);

/* Cards whose reboot has come and that the wish does not name: does the rest on them. */
int applying_go_on(struct applying *a);

#endif
