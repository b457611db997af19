/*
 * reboot.h - cards whose MIG mode waits for a reboot, and what is to be done on
 * them after it.
 *
 * Where no reset works (a virtual machine's card), a new MIG mode is stored by
 * the driver and becomes current with the next boot. What an apply has set
 * aside (struct apply) is kept in DIR/reboot.json: for each card its mode step
 * and the steps that follow. Whoever comes next, in this boot or after it, finds
 * it there: he need not ask for the reboot again, must not set the mode again,
 * and goes on with the rest once the mode is current. The mode is never turned
 * back for it.
 *
 *     reboot_load(dir, &r, e);
 *     switch (reboot_look(&r, card)) …
 *     reboot_rest(&r, card->uuid, &plan);   // after the boot: what is left to do
 *     reboot_drop(&r, card->uuid); reboot_save(dir, &r, e);
 */
#ifndef DIVVY_APPLY_REBOOT_H
#define DIVVY_APPLY_REBOOT_H

#include "apply/apply.h"
#include "plan/layout.h"

/* What became of a card that waits. */
enum reboot_state {
    REBOOT_NONE = 0, /* it is not among them */
    REBOOT_WAITS,    /* the mode is stored, and not current */
    REBOOT_DONE,     /* it is current: go on */
    REBOOT_LOST,     /* neither: somebody has turned it back, or the boot forgot it */
};

struct reboot {
    struct plan steps; /* as struct apply sets them aside */
};

#define REBOOT_INIT                                                                                \
    {                                                                                              \
        .steps = PLAN_INIT                                                                         \
    }

void reboot_done(struct reboot *r);

/* No file: empty. -EINVAL names the file, which is left for a person to look at. */
int reboot_load(const char *dir, struct reboot *ret, struct err *e);
/* Durable when it returns 0. An empty one removes the file. */
int reboot_save(const char *dir, const struct reboot *r, struct err *e);

/* Takes in what was set aside; of a card that is there already the newer counts. */
void reboot_add(struct reboot *r, const struct plan *aside);
/* Forgets a card. */
void reboot_drop(struct reboot *r, const char *card_uuid);

enum reboot_state reboot_look(const struct reboot *r, const struct card *now);

/*
 * Does this change only ask for the mode that is stored already and waits? Then it becomes
 * LAYOUT_NEEDS_REBOOT with `why`; its steps stay.
 */
bool reboot_mark(const struct reboot *r, const struct card *now, struct layout_change *ch);

/* Adds the steps of this card that follow its mode step to `ret`. */
void reboot_rest(const struct reboot *r, const char *card_uuid, struct plan *ret);

#endif
