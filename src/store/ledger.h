/*
 * ledger.h - attempts that ended, and what was handed out on each day; kept
 * long after the jobs themselves are forgotten.
 *
 * Both are written in the transaction that ends the attempt, so a day's sum is
 * the sum of the attempts that the history shows, whatever is killed. A day
 * has one row per user, account, profile and card: a year of a busy server is
 * some ten thousand rows, and a question about a month reads a few hundred.
 */
#ifndef DIVVY_STORE_LEDGER_H
#define DIVVY_STORE_LEDGER_H

#include "model/job.h"
#include "model/ledger.h"
#include "store/store.h"

/* An attempt that ended. Strings borrowed. */
struct history_row {
    uint64_t job_id;
    uint32_t attempt;
    uid_t uid;
    const char *user, *account, *qos, *name; /* qos "": none */
    struct request request;
    struct place place;
    int64_t limit_us;   /* 0: none */
    bool attached;      /* a `divvy run` */
    uint64_t mem_bytes; /* of the machine, for each task: as it was asked for; 0: it was not */
    uint32_t cpu_milli;
    int64_t submit_wall_us, started_wall_us, ended_wall_us;
    enum job_state outcome; /* JOB_PENDING: went back to the queue */
    uint64_t preempted_by;  /* the job that it made room for; 0: it did not */
    struct held held;
};

typedef int (*store_history_fn)(const struct history_row *row, void *arg);

int store_add_history(struct store *s, const struct history_row *row, struct err *e);

struct history_query {
    int64_t from_wall_us, to_wall_us; /* ended in [from, to) */
    const char *user, *account;       /* NULL: any */
    uint64_t after;                   /* the next page: greater `seq` than this; 0: the first */
    uint32_t limit;
};

/* In the order in which they ended. `*ret_seq` is the last row's, for the next page. */
int store_each_history(struct store *s, const struct history_query *q, store_history_fn fn,
                       void *arg, uint64_t *ret_seq, struct err *e);

/* What one place of a day is about. */
struct ledger_place {
    int32_t day;
    const char *user, *account, *profile, *card; /* "2g.20gb" or "whole"; "gpu0" */
};

/* Adds to that day's row. */
int store_book(struct store *s, const struct ledger_place *where, const struct held *h,
               struct err *e);
/* Adds the days [l->from_day, l->to_day) to `l`, by l->by. */
int store_read_ledger(struct store *s, struct ledger *l, struct err *e);

/* Forgets history and days before this one, at most `max` rows of each. The number of rows. */
int store_prune_ledger(struct store *s, int32_t before_day, uint32_t max, struct err *e);

#endif
