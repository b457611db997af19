/*
 * maintenance.h - cards that are given to an administrator for a while: for a
 * new driver, a reset, a screwdriver.
 *
 *     draining    the cards take no new jobs; those that run end in their time
 *     stopping    the services of divvy.yaml are stopped, one after the other
 *     away        both children are gone: Divvy holds no card and no library
 *     returning   NVML is opened again; driver, library and fabric manager must
 *                 be of one version, and layouts that are kept are made again
 *     starting    the services are started again, last stopped first
 *
 * After that the cards take jobs again. Where it stands is in the store before
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
    MAINTENANCE_AWAY,
    MAINTENANCE_RETURNING,
    MAINTENANCE_STARTING,
};

struct maintenance {
    enum maintenance_phase phase;
    char *who;
    char **cards;               /* UUIDs */
    uint64_t stopped;           /* services of the list that are stopped */
    bool ending;                /* end was asked before it was away */
    char trouble[ERR_TEXT_MAX]; /* why it does not go on; "" */
    int64_t again_us;           /* not tried before */
    /* RETURNING */
    bool checked; /* the versions agree */
    /* The program that runs. */
    bool runs, asks_version;
    int out;
    sd_event_source *io;
    struct text said;
};

int maintenance_load(struct daemon *d, struct err *e);
void maintenance_done(struct daemon *d);
/* Is the driver left alone? Then no child may be started. */
bool maintenance_away(const struct daemon *d);
void maintenance_turn(struct daemon *d);
/* Says in the inventory what is reserved. */
void maintenance_mark(struct daemon *d);
/* The first snapshot after it: do the versions agree? */
void maintenance_snapshot(struct daemon *d, const struct snapshot *s);
/* There is no driver to be opened. */
void maintenance_no_driver(struct daemon *d, const struct err *why);

void maintenance_op_change(void *ctx, struct api_request *req, const struct api_caller *who,
                           const struct maintenance_order *o);
json_t *maintenance_op_show(void *ctx);

#endif
