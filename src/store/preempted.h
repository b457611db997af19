/*
 * preempted.h - attempts that were stopped so that other jobs could start.
 *
 * Invariant. A row is written in the transaction that stops its attempt, once
 * for each attempt, and goes with its job. The user of the job that it made
 * room for is kept as well: that job may be forgotten earlier.
 */
#ifndef DIVVY_STORE_PREEMPTED_H
#define DIVVY_STORE_PREEMPTED_H

#include "store/store.h"

struct preempted_row {
    uint32_t times;
    int64_t wall_us; /* of the last */
    uint64_t by;     /* the job that it made room for; 0: none was found */
    char user[33];   /* whose that was */
};

/* Told again for the same attempt, it stays what it was. */
int store_add_preempted(struct store *s, uint64_t id, uint32_t attempt, uint64_t by,
                        const char *user, int64_t wall_us, struct err *e);
/* All attempts of a job, or with `attempt` above 0 that one. times 0: none. */
int store_read_preempted(struct store *s, uint64_t id, uint32_t attempt, struct preempted_row *ret,
                         struct err *e);

#endif
