/*
 * sched.h - who goes next, and where. Pure: no I/O, no clock, no chance; the
 * same calls give the same schedule, in divvyd as in a replay.
 *
 * It holds pending and running jobs in memory, about 90 bytes each; the
 * inventory (what the cards are and who holds them) is the caller's and is
 * handed in. A cycle:
 *
 *     sched_cycle(s, now);
 *     while (sched_next(s, &inv, now, &d) > 0) {
 *         …commit the attempt, put its holds into inv…
 *         sched_start(s, d.job_id, charge_dominant_ppm(&d.place), now);
 *         sched_decision_done(&d);
 *     }
 *
 * Order
 *   - Between accounts: least (decayed usage + running share × advance) per
 *     weight first. The advance makes accounts of equal usage take turns job
 *     by job, because a job that has just started counts at once.
 *   - Within an account: first come, first served (by `order`).
 *
 * Blocked jobs. The first job in that order that does not fit gets a
 * reservation: the cards that free soonest and serve it. It keeps the
 * reservation until it starts or leaves the queue, whatever comes later, so
 * it cannot starve; only a job of its own account that comes back to a place
 * ahead of it (a requeue) takes it over. Jobs on the reserved cards must end,
 * by their limits, before the reserved time; a job without a limit never does.
 * Everything else goes on around them.
 *
 * When those who hold the cards have no limits, nobody can say when they
 * free. The reservation then has no time, and its cards are those whose
 * holders are youngest: who has held long is likely to hold on. What is idle
 * on them is used only with limits of at most the age of their oldest holder,
 * and an hour at most, so the wait at most doubles and no server idles behind
 * a service that runs for weeks.
 *
 * Cost. Jobs are held per account and request (a shape). In one cycle place/
 * is asked at most twice for each different request that does not fit, plus
 * once or twice for each start, however many jobs wait: inside a shape a tree
 * answers "the first in line whose limit is at most X".
 *
 * Usage is settled exactly: a running job adds its share of a card per time,
 * decaying as it adds, and how often it is settled makes no difference.
 * All times are CLOCK_BOOTTIME µs of this boot, except where `now` is whole,
 * which is for words like "until 16:40".
 *
 * A default time limit is the business of who accepts jobs (it is written
 * into the job, and kept); here 0 means without end.
 */
#ifndef DIVVY_SCHED_SCHED_H
#define DIVVY_SCHED_SCHED_H

#include "base/cleanup.h"
#include "plan/place.h"

struct sched;

struct sched_policy {
    int64_t half_life_us; /* of usage; 0: no decay */
    int64_t advance_us;   /* what a running job counts for beyond what it has used */
    int64_t mode_hold_us; /* an auto card changes its MIG mode only when idle this long */
    bool one_line;        /* first come, first served over all accounts: shares do not matter */
    bool strict;          /* nobody passes the first that does not fit */
};

/* 7 days, 1 minute, 10 minutes. */
#define SCHED_POLICY_DEFAULT                                                                       \
    {                                                                                              \
        .half_life_us = 7 * CLOCK_DAY, .advance_us = CLOCK_MINUTE,                                 \
        .mode_hold_us = 10 * CLOCK_MINUTE                                                          \
    }

struct sched *sched_new(const struct sched_policy *policy);
void sched_free(struct sched *s);
DEFINE_AUTO_PTR(struct sched, sched_free);
void sched_set_policy(struct sched *s, const struct sched_policy *policy, struct now now);

/* ---- accounts ------------------------------------------------------------------------------ */

/*
 * Sets an account's weight (above 0; 1 for accounts never named). Accounts
 * come into being by this, by sched_set_usage, or by their first job.
 */
void sched_set_weight(struct sched *s, const char *account, double weight);
/* Usage (card·µs) as it stood at boot time `as_of_us`; replaces what was counted. */
void sched_set_usage(struct sched *s, const char *account, double used_card_us, int64_t as_of_us);

struct sched_account {
    const char *name; /* borrowed */
    double weight;
    double used_card_us;  /* decayed and settled up to `now` */
    uint64_t running_ppm; /* of a card, summed over its running jobs */
    uint32_t running, pending;
    uint32_t rank; /* 1: goes first; 0: has nothing pending */
};
typedef void (*sched_account_fn)(const struct sched_account *a, void *arg);
/* All accounts, in the order in which they were made. Settles usage up to now. */
void sched_each_account(struct sched *s, struct now now, sched_account_fn fn, void *arg);
/* One of them; false: no such account. */
bool sched_account(struct sched *s, const char *account, struct now now, struct sched_account *ret);

/* ---- jobs ---------------------------------------------------------------------------------- */

struct sched_job {
    uint64_t id;
    uint64_t order; /* place in line within the account; 0: the id */
    uid_t uid;
    const char *account;           /* copied once per account */
    const struct request *request; /* copied once per shape; passed request_check */
    int64_t limit_us;              /* 0: none */
};

/* The job is pending. The id must not be known here (asserted). */
void sched_add(struct sched *s, const struct sched_job *job);
/* It left: cancelled while pending, or not to be scheduled any more. Unknown ids do nothing. */
void sched_remove(struct sched *s, uint64_t id);

/*
 * A pending job keeps its place in line but is not looked at before boot time
 * `until_us` (INT64_MAX: until sched_release). For begin times, user holds,
 * and to back off after slices could not be cut. Gives up its reservation.
 */
void sched_hold(struct sched *s, uint64_t id, int64_t until_us);
void sched_release(struct sched *s, uint64_t id);

/*
 * A pending job runs from now on and its account pays `share_ppm` of a card.
 * After sched_next, and at the start of a daemon for what runs already (then
 * `since` is when it began, or the stamp of the usage that was loaded, if
 * that is later). Asserted: the job is known and pending.
 */
void sched_start(struct sched *s, uint64_t id, uint64_t share_ppm, int64_t since_us);
/* It holds nothing any more: pays up to `at_us` and is forgotten. Unknown ids do nothing. */
void sched_end(struct sched *s, uint64_t id, int64_t at_us);
/* It holds nothing any more and is pending again, at its old place. */
void sched_requeue(struct sched *s, uint64_t id, int64_t at_us);

size_t sched_pending(const struct sched *s);
size_t sched_running(const struct sched *s);
/* Bytes of memory held for jobs, shapes and accounts: for bench/ and the status. */
size_t sched_bytes(const struct sched *s);

/* ---- a cycle ------------------------------------------------------------------------------- */

/* One start. */
struct sched_decision {
    uint64_t job_id;
    struct place place;
    struct plan plan; /* empty: nothing is to be cut */
    bool backfill;    /* it goes before others that wait longer, and delays none of them */
};
void sched_decision_done(struct sched_decision *d);

/* Begins a cycle: forgets what did not fit, and takes in holds that are over. */
void sched_cycle(struct sched *s, struct now now);

/*
 * The next start of this cycle: 1 and `ret` filled, which the caller ends; or
 * 0: nobody (more) can start. Before the next call the caller must have put
 * the decision's holds (with until_boot_us) into `inv` and called sched_start;
 * or, where it could not be started, sched_hold or sched_remove. Between
 * sched_cycle and the last sched_next nothing may free up in `inv`.
 */
int sched_next(struct sched *s, const struct inventory *inv, struct now now,
               struct sched_decision *ret);

/*
 * When another cycle is worth while although nothing happened: a hold that
 * ends, a card that may change its mode then. Boot time; INT64_MAX: never.
 */
int64_t sched_wake_us(const struct sched *s, const struct inventory *inv, struct now now);

/* ---- why ----------------------------------------------------------------------------------- */

enum sched_why {
    WHY_UNKNOWN = 0, /* no such job here */
    WHY_RUNNING,
    WHY_NEXT,     /* fits: starts with the next cycle */
    WHY_RESERVED, /* the first that does not fit: cards are kept for it */
    WHY_DRAINING, /* fits, but on cards kept for another, which it would delay */
    WHY_NO_ROOM,  /* does not fit, and is not the first */
    WHY_HELD,     /* sched_hold */
    WHY_NEVER,    /* no card here can serve it as things are (a card was lost, left the pool …) */
};

#define SCHED_WHY_CARDS 16

struct sched_explanation {
    enum sched_why why;
    const char *account;      /* borrowed from sched */
    uint32_t ahead;           /* jobs of its account that are before it */
    uint32_t account_rank;    /* 1: its account goes first */
    uint32_t accounts;        /* that have something pending */
    uint64_t reserved_for;    /* the job that holds the reservation; 0: nobody */
    int64_t expected_boot_us; /* WHY_RESERVED: the start that is kept for it; 0: not known */
    int64_t earliest_boot_us; /* no earlier than this, if nobody were ahead; 0: not known */
    int64_t short_limit_us;   /* with a limit of at most this it would start now; 0: no such */
    int64_t held_until_us;    /* WHY_HELD; INT64_MAX: until released */
    uint32_t card_count;      /* WHY_RESERVED, WHY_NO_ROOM: the cards it waits for */
    uint32_t cards[SCHED_WHY_CARDS]; /* ordinals */
    char text
        [320]; /* "waits for 2 whole cards: gpu1 until 16:40 (#58 carol); gpu0 is draining for it" */
};

/*
 * Why is this job where it is? Asks place/ afresh, so it tells what would
 * happen now; the reservation is that of the last cycle. Changes nothing.
 * Costs two or three questions to place/: for jobs that are looked at, not for all.
 */
void sched_explain(struct sched *s, const struct inventory *inv, uint64_t id, struct now now,
                   struct sched_explanation *ret);

/* The job with the reservation; 0: nobody. Its cards (indices of the last cycle's inventory). */
uint64_t sched_reserved(const struct sched *s, int64_t *ret_when_us, const size_t **ret_cards,
                        size_t *ret_count);

#endif
