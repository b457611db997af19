/*
 * sched.h - who goes next, and where. Pure: no I/O, no clock, no chance; the
 * same calls give the same schedule, in divvyd as in a replay.
 *
 * It holds pending and running jobs in memory, about 100 bytes each; the
 * inventory (what the cards are and who holds them) is the caller's and is
 * handed in. A cycle:
 *
 *     sched_cycle(s, now);
 *     while (sched_next(s, &inv, now, &d) > 0) {
 *         …commit the attempt, put its holds into inv…
 *         sched_start(s, d.job_id, &d.place, charge_dominant_ppm(&d.place), now);
 *         sched_decision_done(&d);
 *     }
 *
 * Shares. Accounts form a tree; its leaves are the users in an account, or the
 * account as one (enum sched_inside). A leaf pays for its running jobs: their
 * share of a card, times what the card costs, times what the class costs, per
 * time, decaying by the half-life. Fair Tree (fairtree.h) ranks the leaves by
 * what they and all above them have used, and by what runs now × advance. That
 * is done anew after every start, so leaves of equal shares take turns job by
 * job.
 *
 * Order of two jobs that wait:
 *   1. tier: the priority of the class, higher first;
 *   2. points, more first:
 *          share × factor + age × min(waited / age_max, 1) + size × (part of all cards)
 *      where factor is (leaves - rank + 1) / leaves, 1 for whoever is first;
 *   3. place in line (`order`, else the id).
 * Inside a leaf the factor is the same for all. In accounts with SCHED_LAS the
 * job that has passed fewer thresholds of attained service goes before points.
 *
 * Limits. A job that would exceed a limit of its user, of an account above it,
 * of its class or of the server is passed over: it gets no reservation and
 * stands in nobody's way.
 *
 * The machine. Beside its place a job needs CPUs and memory: what it says for
 * each of its tasks, else its part by its part of the cards. It starts only
 * when what all that run need and its own is no more than the machine has. Whoever
 * finds no room there is blocked as one who finds no card.
 *
 * Blocked jobs. The first jobs in that order that do not fit, one for each
 * request, get reservations: a time and an exact place, the first at which it
 * fits for as long as its limit lets it run, beside those who were there
 * before it (booking.h). It keeps that until it starts or leaves the queue, whatever
 * comes later, so it cannot starve; while limits are kept it only comes nearer.
 * It passes to a job that asks for the same and whose turn it
 * is by now, and only a job of its own leaf that comes back to a place ahead of
 * it (a requeue), one of a higher tier, or a limit that stops it takes it away.
 * Whoever would be on a reserved place must end, by his limit, before the
 * reserved time; a job without a limit never does.
 * Everything else goes on around them.
 *
 * When those who hold the cards have no limits, nobody can say when they
 * free. One reservation then has no time, and keeps cards: those whose
 * holders are youngest: who has held long is likely to hold on. What is idle
 * on them is used only with limits of at most the age of their oldest holder,
 * and an hour at most, so the wait at most doubles and no server idles behind
 * a service that runs for weeks.
 *
 * Cost. Jobs are held per account and request (a shape). In one cycle place/
 * is asked once for each different request that does not fit, a few times where
 * it would fit for a while, once or twice for each reservation and
 * each start, however many jobs wait: inside a shape a tree
 * answers "the first in line whose limit is at most X", and each request knows
 * its shapes by their shortest limit, so that whoever has nothing left to try is
 * not looked at. Jobs that are held cost nothing before their time.
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
#include "model/qos.h"
#include "plan/place.h"

struct sched;

#define SCHED_LAS_MAX 8
#define SCHED_RESERVATIONS_MAX 64

/* Weights of what makes points; see above. */
struct sched_order {
    double share, age, size;
    int64_t age_max_us; /* above 0 where age weighs anything */
};
/* All weights 0: first come, first served over all accounts. */

/* What the machine has for jobs beside its cards. */
struct sched_node {
    uint64_t cpu_milli, mem_bytes; /* 1000: one CPU; 0: not counted */
    bool cpu_shares, mem_shares;   /* who says nothing needs his part, by his part of the cards */
};

struct sched_policy {
    int64_t half_life_us;  /* of usage; 0: no decay */
    int64_t advance_us;    /* what a running job counts for beyond what it has used */
    int64_t mode_hold_us;  /* an auto card changes its MIG mode only when idle this long */
    uint32_t reservations; /* so many of those that wait are never delayed by who is behind them,
                              the first of each request; at most SCHED_RESERVATIONS_MAX */
    bool strict;           /* nobody passes the first that does not fit */
    struct sched_order order;
    int64_t las_us[SCHED_LAS_MAX]; /* rising thresholds of attained service, card·µs */
    uint32_t las_count;
    bool preempt_las;    /* inside an account with SCHED_LAS: who had more goes for who had less */
    bool preempt_shares; /* between accounts: jobs of a larger share go for a smaller one */
    /* Fixed by sched_new: */
    uint32_t keep_ppm;   /* this part of all cards is kept for short and attached jobs */
    int64_t keep_for_us; /* short: of at most this limit */
    struct sched_node node;
};

/* 7 days, 1 minute, 10 minutes; shares alone decide; 1 and 10 card-hours. */
#define SCHED_POLICY_DEFAULT                                                                       \
    {                                                                                              \
        .half_life_us = 7 * CLOCK_DAY, .advance_us = CLOCK_MINUTE,                                 \
        .mode_hold_us = 10 * CLOCK_MINUTE, .order = { .share = 1, .age_max_us = 7 * CLOCK_DAY },   \
        .reservations = 8, .las_us = { CLOCK_HOUR, 10 * CLOCK_HOUR }, .las_count = 2               \
    }

struct sched *sched_new(const struct sched_policy *policy);
void sched_free(struct sched *s);
DEFINE_AUTO_PTR(struct sched, sched_free);
void sched_set_policy(struct sched *s, const struct sched_policy *policy, struct now now);

/* ---- accounts ------------------------------------------------------------------------------ */

/* Who inside an account has a share of his own, and how its jobs go among themselves. */
enum sched_inside {
    SCHED_USERS = 0, /* each user; his jobs first come, first served */
    SCHED_FIFO,      /* nobody: the account is one leaf, first come, first served */
    SCHED_LAS,       /* nobody; the job that has had least service goes first */
};

struct sched_user_share {
    const char *user;
    double weight;
};

struct sched_branch {
    const char *name;
    const char *parent; /* NULL: none. Made when it is not there; the caller makes no rings. */
    double weight;      /* against its siblings, 0 or more */
    enum sched_inside inside;
    const struct sched_user_share *users; /* weights other than 1 */
    size_t user_count;
    const struct limits *limits;      /* of all its jobs and those of accounts below; NULL: none */
    const struct limits *user_limits; /* of each user's; NULL: none */
};

/*
 * Says what an account is, before it has jobs (asserted). Accounts nobody set
 * come into being by their first job or usage: at the top, of weight 1.
 */
void sched_set_account(struct sched *s, const struct sched_branch *b);
/* Its weight alone, at any time. */
void sched_set_weight(struct sched *s, const char *account, double weight);
/* Limits of the whole server, before any job; each may be NULL. */
void sched_set_limits(struct sched *s, const struct limits *all, const struct limits *each_user);
/*
 * A class of jobs, before it has any. Classes that nobody set come into being
 * by their first job, with priority 0. "normal" is what a job without a class is in.
 * What it pushes out (qos.h) is looked up by name: set those classes first or later.
 */
void sched_set_qos(struct sched *s, const struct qos *q);

/*
 * Usage (card·µs) of a user in an account as it stood at boot time `as_of_us`;
 * replaces what was counted. In accounts that are one leaf the user does not
 * matter, and it is the account's.
 */
void sched_set_usage(struct sched *s, const char *account, uid_t uid, const char *user,
                     double used_card_us, int64_t as_of_us);
/* What whoever pays for this user's jobs there has used, settled up to now; 0: nobody there. */
double sched_usage(struct sched *s, const char *account, uid_t uid, struct now now);
/* Is the account one leaf, with a usage of its own? */
bool sched_is_pooled(const struct sched *s, const char *account);

/* A node of the share tree. */
struct sched_account {
    const char *name;   /* of the account; borrowed, as all */
    const char *parent; /* NULL: top */
    const char *user;   /* a user in it; NULL: the account itself */
    uid_t uid;          /* of that user */
    enum sched_inside inside;
    double weight;
    double used_card_us;  /* decayed and settled up to `now`; of an account: all below it */
    uint64_t running_ppm; /* of a card as charged, summed over its running jobs */
    uint32_t running, pending;
    double norm_shares, norm_usage; /* its part of its siblings' shares and usage, 0 to 1 */
    double level;                   /* level fairness; INFINITY: nothing used */
    double factor;                  /* 0 to 1; of an account: its best leaf's */
    uint32_t rank;                  /* of all leaves, 1 goes first; 0: none below it */
};
typedef void (*sched_account_fn)(const struct sched_account *a, void *arg);
/* All nodes, each account followed by its users and the accounts below it. Settles usage up to now. */
void sched_each_account(struct sched *s, struct now now, sched_account_fn fn, void *arg);
/* One account; false: no such account. */
bool sched_account(struct sched *s, const char *account, struct now now, struct sched_account *ret);

/* ---- jobs ---------------------------------------------------------------------------------- */

struct sched_job {
    uint64_t id;
    uint64_t order; /* place in line within the account; 0: the id */
    uid_t uid;
    const char *user;              /* his name, for people; NULL: the number will do */
    const char *account;           /* copied once per account */
    const char *qos;               /* class; NULL: "normal" */
    const struct request *request; /* copied once per shape; passed request_check */
    int64_t limit_us;              /* 0: none */
    int64_t submit_us;             /* boot time; its age and the submit rate count from then */
    double attained_card_us;       /* service of attempts that are over */
    bool attached;                 /* somebody sits before it: see keep_ppm */
    uint32_t tasks;                /* of sched_admit: handed in together; 0: one */
    uint64_t mem_bytes;            /* of the machine, for each of its own tasks; 0: not said */
    uint32_t cpu_milli;            /* the same */
};

/*
 * May this job be handed in now? Limits on handing in (jobs that wait, rate,
 * wall time), and limits on running that it could never keep: -EDQUOT and a
 * sentence with the limit, its value, its present use and when it frees up.
 * Needs the boards of `inv`. Changes nothing.
 */
int sched_admit(struct sched *s, const struct inventory *inv, const struct sched_job *job,
                struct now now, struct err *e);

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
 * A pending job runs from now on, holds `place` (copied; NULL: nothing that
 * limits count) and pays `share_ppm` of a card, times what its class costs.
 * After sched_next, and at the start of a daemon for what runs already (then
 * `since` is when it began, or the stamp of the usage that was loaded, if
 * that is later). Asserted: the job is known and pending.
 */
void sched_start(struct sched *s, uint64_t id, const struct place *place, uint64_t share_ppm,
                 int64_t since_us);
/* It holds nothing any more: pays up to `at_us` and is forgotten. Unknown ids do nothing. */
void sched_end(struct sched *s, uint64_t id, int64_t at_us);
/*
 * It holds nothing any more and is pending again, at its old place; what it
 * had is added to its attained service.
 */
void sched_requeue(struct sched *s, uint64_t id, int64_t at_us);
/* Service so far, this attempt's too: dominant share × time, card·µs, not decayed. 0: not here. */
double sched_attained(const struct sched *s, uint64_t id, int64_t now_us);

size_t sched_pending(const struct sched *s);
size_t sched_running(const struct sched *s);
/* Bytes of memory held for jobs, shapes and accounts: for bench/ and the status. */
size_t sched_bytes(const struct sched *s);

/* CPUs and memory of the machine. */
struct sched_amount {
    uint64_t cpu_milli, mem_bytes;
};
/* What this many ppm of one card are of `whole`, where so many cards share it. */
uint64_t sched_node_part(uint64_t whole, uint64_t ppm, size_t cards);
/* Does it say more than the machine has? -EINVAL and a sentence. sched_admit asks this too. */
int sched_node_check(const struct sched *s, const struct sched_job *job, struct err *e);
/* What those that run need together; of what sched_policy says that there is. */
struct sched_amount sched_node_used(struct sched *s, const struct inventory *inv);
/* What a job needs: where it runs, else at least. False: it is not known here. */
bool sched_node_needs(struct sched *s, const struct inventory *inv, uint64_t id,
                      struct sched_amount *ret);

/* An administrator has the card in that time: nobody runs on it then who was not there before. */
struct sched_closed {
    uint32_t ordinal;
    int64_t from_us, until_us; /* boot time */
};
/* Replaces all that were said before; the list is copied. */
void sched_set_closed(struct sched *s, const struct sched_closed *list, size_t count);

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
 * Who should be stopped, so that one that waits can start? To be asked when
 * sched_next says that nobody can start. 1 and `ret` filled, which the caller
 * ends: he sees to it that the victims stop, and calls sched_requeue or
 * sched_end for each when it holds nothing any more. Until the one they go for
 * has started, nobody else is chosen, and it goes before all others: what they
 * leave is kept for it from then on, whatever their limits say. Should the
 * place be lost meanwhile (a card fails, a window comes), the choice is void
 * and it waits as the others do. Its place takes the first reservation, and the
 * last is given up where they would be too many: so sched_next, asked again in
 * the same cycle, may start somebody who fits beside that place. 0: nobody.
 *
 * Who may go. A job goes for another because its class says so (qos.h), because
 * it had more service (preempt_las), or because its account has the larger share
 * and keeps, without all who go of it, no less of its due than the other then has
 * (preempt_shares): so nobody is stopped in a circle. The last two hold among
 * classes of one priority that stand as high, where a class stands above those
 * that it pushes out. Jobs of a class that was set and is never pushed out stay
 * in any case. Of those without cards only a class pushes anybody out, and only
 * of CPUs or memory of the machine that are needed: they have no share of a card.
 *
 * Who goes. The fewest jobs with whom gone the whole request fits: on cards
 * that no window closes within its limit, and within all limits, counting what
 * the victims free of them. A card may turn its MIG mode for it; where it waits
 * for that alone, only those go who spare it the wait. The order in which they
 * should go is: lower tier; then more thresholds of attained service
 * passed; then began last (the least work is lost); then last in line. Of as
 * few, those whose last in that order comes soonest, then the last but one, and
 * so on: no job of a higher tier goes where as many of lower ones would do.
 *
 * Exact up to 8 candidates on a card and within the bounds of victims.h; beyond
 * them candidates are taken in that order until it fits, and then each is let
 * stay, the last first, without whom it fits as well: none can be left out, but
 * fewer others might have done.
 */
struct sched_preemption {
    uint64_t job_id; /* who is to start */
    uint64_t *victims;
    size_t count, alloc;
};
void sched_preemption_done(struct sched_preemption *p);
int sched_preempt(struct sched *s, const struct inventory *inv, struct now now,
                  struct sched_preemption *ret);

/* A running job was told to end, for whatever reason: nobody else need go for what it holds. */
void sched_leaving(struct sched *s, uint64_t id);

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
    WHY_RESERVED, /* among the first that do not fit: a start is kept for it, or cards are */
    WHY_DRAINING, /* fits, but would still be there when a start is kept for another */
    WHY_CLOSED,   /* fits, but would still be there when an administrator has the cards */
    WHY_NO_ROOM,  /* does not fit, and is not among the first */
    WHY_HELD,     /* sched_hold */
    WHY_NEVER,    /* no card here can serve it as things are (a card was lost, left the pool …) */
    WHY_LIMIT,    /* a limit of its user, its account, its class or the server stops it */
};

#define SCHED_WHY_CARDS 16

struct sched_explanation {
    enum sched_why why;
    const char *account; /* borrowed from sched, as `user` and `qos` */
    const char *user;    /* whose share decides; NULL: the account's as one */
    const char *qos;
    enum sched_inside inside;
    uint32_t ahead;                   /* jobs that share with it and are before it */
    uint32_t rank, leaves;            /* of its share: 1 goes first, of so many */
    double account_level, user_level; /* level fairness; INFINITY: nothing used */
    uint32_t tier;                    /* priority of its class */
    double factor, age, size;         /* 0 to 1 each; points is their weighted sum */
    double points;
    struct sched_order order; /* the weights */
    uint32_t level;           /* SCHED_LAS: thresholds of attained service it has passed */
    double attained_card_us;
    enum limit_kind limit;    /* WHY_LIMIT */
    int64_t limit_frees_us;   /* WHY_LIMIT: room by then at the latest; 0: not known */
    uint64_t reserved_for;    /* whose reservation is in the way, else the first; 0: nobody's */
    int64_t expected_boot_us; /* WHY_RESERVED: the start that is kept for it; 0: not known */
    const struct place *expected_place; /* and where; borrowed; NULL: not known */
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

/*
 * Two that wait and may be tried: does `a` go before `b` by the order, as shares are now,
 * whatever they ask for? Right after sched_explain, which ranks the shares.
 */
bool sched_goes_before(const struct sched *s, uint64_t a, uint64_t b, struct now now);

/* A start that is kept for a job; all borrowed, until something changes. */
struct sched_reservation {
    uint64_t job_id;
    int64_t when_us;           /* INT64_MAX: nobody can say, and then cards are kept */
    const struct place *place; /* NULL: cards are kept */
    const uint32_t *cards;     /* their ordinals */
    size_t card_count;
};
/* The i-th, as of the last cycle; false: there are no more. None on counted cards. */
bool sched_reservation(const struct sched *s, size_t i, struct sched_reservation *ret);

#endif
