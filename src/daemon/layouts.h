/*
 * layouts.h - layouts that operators ask for, and those that cards keep.
 *
 * One change of layouts is under way at a time: an order of an operator (POST
 * /v1/layout), cards that get back what they are to keep, or what a command
 * without a daemon began and did not finish (apply/journal.h). All three are a
 * struct cut without a job: journaled in the store, carried out by `act`, read
 * back, undone in reverse when a step fails, gone on with after a crash.
 *
 * Invariants
 *   - An order is in the store before it is answered, until it is over.
 *   - A card that a change is about takes no new job: layouts_mark says so in
 *     the inventory. A card that an order waits for takes none on what must go.
 *   - Every card that is changed is locked (apply/lock.h), whatever its pool.
 *   - A card that is as wanted sees no step.
 *
 * layout_reboots.c: where no reset works, as in a virtual machine, the mode is
 * stored, the change ends, and goes on by itself when a reboot has come.
 * layout_orders.c: what operators ask for. layout_journal.c: what a command left.
 * keeps.c: a card whose mode is `slices` with a layout of its own keeps it: it
 * stands in the store with ids of profiles and UUIDs of slices, and is looked
 * for at a start, and when the driver or the card had been away.
 */
#ifndef DIVVY_DAEMON_LAYOUTS_H
#define DIVVY_DAEMON_LAYOUTS_H

#include "apply/journal.h"
#include "apply/reboot.h"
#include "config/layout.h"
#include "daemon/daemon.h"
#include "driver/holders.h"
#include "plan/layout.h"

enum layout_work { FOR_ORDER = 0, FOR_KEEPS, FOR_JOURNAL, FOR_REBOOT };

/* A card whose new MIG mode is stored and becomes current with a reboot. */
struct waiting_card {
    char uuid[CARD_UUID_SIZE];
    char *who;      /* asked for it; NULL: nobody, or a command without a daemon */
    uint64_t order; /* by this order; 0: by none */
    bool for_job;   /* a job's slices asked for it: till then the card serves as it is */
    /* Of the wish: what the card is to remember when it is done. */
    bool has_mode, has_slices;
    enum card_mode mode;
};

struct layouts {
    struct cut cut;        /* the change that is under way */
    enum layout_work work; /* what it is for */
    bool look;             /* things may have changed for an order or a keep */
    int64_t asked_boot_us; /* the last order is looked at with a snapshot later than this */
    /* The last order. */
    uint64_t id; /* 0: there was none */
    struct layout_order order;
    char *who;
    enum layout_outcome outcome;
    char reason[ERR_TEXT_MAX]; /* "" */
    uint64_t changed;          /* cards that are done */
    struct layout_list list;
    const struct layout *chosen; /* of `list`; NULL when the order is over */
    json_t *cards;               /* what the last look said of each */
    /* Cards that keep a layout. */
    bool started;         /* the first snapshot was looked at */
    bool driver_was_gone; /* since the last snapshot */
    /* A command's journal. */
    bool journal_sought;
    struct journal *journal; /* in this turn's transaction; its file goes after the commit */
    /* Cards that wait for a reboot. */
    struct reboot reboots; /* their steps */
    struct waiting_card *waiting;
    size_t waiting_count, waiting_alloc;
    bool reboots_taken;      /* a command's file, in this turn's transaction */
    bool reboots_unreadable; /* it is there, and left for a person to look at */
};

int layouts_load(struct daemon *d, struct err *e);
void layouts_done(struct daemon *d);

/* Never NULL between load and done. */
struct cut *layouts_cut(const struct daemon *d);
/* Is a change about this card, so that its lock stays? */
bool layouts_need(const struct daemon *d, const char *card_uuid);
/* Takes the next step of orders and keeps; before jobs are scheduled, and before the commit. */
void layouts_turn(struct daemon *d);
/* The turn is on disk. */
void layouts_committed(struct daemon *d);
/* `cut` is over. */
void layouts_cut_over(struct daemon *d);
/* Says in the inventory what changes and what waits. */
void layouts_mark(struct daemon *d);
/* A snapshot was taken into the picture; no step was looked up yet. */
void layouts_snapshot(struct daemon *d);

/* The card will take nobody new: says why. */
void layouts_reserve(struct inventory_card *c, const char *why);

/* ---- one card, for all files ---- */

/* Its board with what its file knows beside the driver. */
void layouts_know_board(struct daemon *d, struct inventory_card *c);
/*
 * As layout_plan; somebody else's lock and a job's cut under way are LAYOUT_BUSY,
 * and what waits for a reboot already is LAYOUT_NEEDS_REBOOT, its steps kept.
 * Takes the card's lock when there is something to do.
 */
void layouts_plan_card(struct daemon *d, struct inventory_card *c, const struct layout_wish *w,
                       struct layout_change *ret);

/* ---- layout_orders.c ---- */

/* The last order, from the store. */
int orders_load(struct daemon *d, struct err *e);
/* Forgets it, in memory. */
void orders_forget(struct layouts *l);
bool orders_open(const struct layouts *l);
/*
 * Is the picture younger than the open one? Before that a process which came
 * meanwhile would be found out only in the middle of the change, and one that
 * left would be in the way.
 */
bool orders_see(const struct daemon *d);
/* The next step of the open one. */
void orders_turn(struct daemon *d);
/* `over` was for an order; of its cards so many wait for a reboot. */
void orders_cut_over(struct daemon *d, const struct cut *over, size_t aside);
/* Says in the inventory what the open one waits for. */
void orders_mark(struct daemon *d);
/* What the last order wishes of this card; NULL: nothing, or it is over. Valid until it is. */
const struct layout_wish *orders_wish(const struct daemon *d, const char *uuid);
/* One more card of that order was gone on with after a reboot; `last`: none of it waits any more. */
void orders_rebooted(struct daemon *d, uint64_t order, const char *failure, bool last);

/* ---- layout_journal.c ---- */

/* In the place of a user's name in the journal. */
#define LAYOUTS_WHO_JOURNAL "divvyd: a change that was cut short"
/* Looks once for what a command began, when the cards' locks can be had. */
void journal_seek(struct daemon *d);
void journal_cut_over(const struct apply *a);
/* Takes the locks of all cards. False: a command that runs has one. */
bool journal_all_locked(struct daemon *d);

/* ---- layout_reboots.c ---- */

int reboots_load(struct daemon *d, struct err *e);
void reboots_done(struct layouts *l);
/* Does this card wait? Then nothing is looked for on it, and nobody turns its mode for a job. */
bool reboots_has(const struct daemon *d, const char *uuid);
void reboots_forget(struct daemon *d, const char *uuid);
/* These cards wait; the newest wish for a card counts. `wish` may be NULL. */
void reboots_keep(struct daemon *d, const struct plan *steps, const char *who,
                  const struct layout_wish *wish, uint64_t order);
/* The same for what the plan of a job has set aside: the modes alone, its slices are sought anew. */
void reboots_keep_for_job(struct daemon *d, const struct plan *aside);
/* What a change that is done has set aside is kept. How many cards. */
size_t reboots_take(struct daemon *d, const struct apply *a, enum layout_work work);
/* The steps of one card whose reboot has come. Empty: there is none. */
void reboots_plan(struct daemon *d, struct plan *ret);
void reboots_cut_over(struct daemon *d, const struct apply *a);
/* Takes over what a command has set aside, when the cards' locks can be had. */
void reboots_seek(struct daemon *d);
void reboots_committed(struct daemon *d);
void reboots_mark(struct daemon *d);
/* New reference. */
json_t *reboots_json(const struct daemon *d);

/* ---- keeps.c ---- */

/* The card is as `w` wants it: remembers its mode, and its slices if it is to keep them. */
int keeps_take(struct daemon *d, struct card_memory *m, const struct layout_wish *w, struct err *e);
/* `layout` NULL: it keeps none any more. */
int keeps_set(struct daemon *d, struct card_memory *m, const char *layout, struct err *e);
/* Which cards may have lost what they keep? */
void keeps_snapshot(struct daemon *d);
/* Steps that give it back to one card. Empty: nothing to do now. */
void keeps_plan(struct daemon *d, struct plan *ret);
void keeps_cut_over(struct daemon *d, const struct apply *a);
/* What cards keep, as JSON. New reference. */
json_t *keeps_json(const struct daemon *d);

/* ---- for the API ---- */
void layouts_op_change(void *ctx, struct api_request *req, const struct api_caller *who,
                       struct layout_order *take_order);
void layouts_op_stop(void *ctx, struct api_request *req, const struct api_caller *who);
json_t *layouts_op_show(void *ctx);

#endif
