/*
 * maintenance.h - cards that are given to an administrator for a while: for a
 * new driver, a reset, a screwdriver.
 *
 *     draining    the cards take no new jobs; those that run end in their time
 *     stopping    the services of divvy.yaml are stopped, one after the other
 *     waiting     who else has the cards open, computing or not, is named and
 *                 waited for; nobody is ended
 *     away        both children are gone: Divvy holds no card and no library
 *     returning   NVML is opened again; driver, library and fabric manager must
 *                 be of one version. Then card by card: is it well, its layout is
 *                 made again where it keeps one, and it takes jobs as soon as that
 *                 is seen, whatever the others do
 *     starting    the services are started again, last stopped first
 *
 * Where there is a fabric manager no card computes before it runs: there the
 * cards take jobs only when the services are started. A card that is not well or
 * does not get its layout back stays out: quarantined, with the reason, until
 * another `end` finds it well or it is put back into its pool by hand.
 *
 * Where it stands is in the store before
 * the next thing is begun, so a divvyd that is killed goes on from there: what
 * was under way is done once more, and stopping what is stopped is nothing.
 * While the driver is away no card starts a job, whichever was named; jobs that
 * run elsewhere run on.
 */
#ifndef DIVVY_DAEMON_MAINTENANCE_H
#define DIVVY_DAEMON_MAINTENANCE_H

#include "daemon/daemon.h"

enum maintenance_phase {
    MAINTENANCE_NONE = 0,
    MAINTENANCE_DRAINING,
    MAINTENANCE_STOPPING,
    MAINTENANCE_WAITING,
    MAINTENANCE_AWAY,
    MAINTENANCE_RETURNING,
    MAINTENANCE_STARTING,
};

/* A card that did not come back. */
struct out_card {
    char uuid[CARD_UUID_SIZE];
    char why[ERR_TEXT_MAX]; /* and what would bring it back */
};

struct maintenance {
    enum maintenance_phase phase;
    char *who;
    char **cards;         /* UUIDs; while they return, those that have not yet */
    struct out_card *out; /* of the last one */
    size_t out_count, out_alloc;
    uint64_t stopped;           /* services of the list that are stopped */
    bool ending;                /* end was asked before it was away */
    char trouble[ERR_TEXT_MAX]; /* why it does not go on; "" */
    int64_t again_us;           /* not tried before */
    /* WAITING */
    json_t *there; /* who was there at the last look, in words; NULL: nobody looked yet */
    bool closing;  /* nobody was: plans under way end, and no new ones begin */
    /* RETURNING */
    bool checked; /* the versions agree */
    bool fabric;  /* there is a fabric manager */
    /* The program that runs. */
    bool runs, asks_version;
    int output;
    sd_event_source *io;
    struct text said;
};

int maintenance_load(struct daemon *d, struct err *e);
void maintenance_done(struct daemon *d);
/* Is the driver left alone? Then no child may be started. */
bool maintenance_away(const struct daemon *d);
/* Is it open again and not known to be of one version? Then no card may be changed. */
bool maintenance_unchecked(const struct daemon *d);
/* Is the card under it? */
bool maintenance_has(const struct maintenance *m, const char *uuid);
void maintenance_save(struct daemon *d);
void maintenance_turn(struct daemon *d);
/* Says in the inventory what is reserved. */
void maintenance_mark(struct daemon *d);
/* The first snapshot after it: do the versions agree? */
void maintenance_snapshot(struct daemon *d, const struct snapshot *s);
/* There is no driver to be opened. */
void maintenance_no_driver(struct daemon *d, const struct err *why);

/* ---- maintenance_return.c ---- */

/*
 * Looks at the cards that are to come back. Those that are well are given back if `open`, those
 * that are not are left out. True: no card of it is still on its way.
 */
bool maintenance_return_cards(struct daemon *d, bool open);
/* Those that are out are to come back now. False: there are none. */
bool maintenance_again(struct maintenance *m);
void maintenance_add_out(struct maintenance *m, const char *uuid, const char *why);
/* What somebody has put back by hand is out no more. True: there was something. */
bool maintenance_forget_out(struct daemon *d);
/* New reference. */
json_t *maintenance_out_json(const struct daemon *d);

/* ---- for the API ---- */

void maintenance_op_change(void *ctx, struct api_request *req, const struct api_caller *who,
                           const struct maintenance_order *o);
json_t *maintenance_op_show(void *ctx);

#endif
