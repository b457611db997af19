/*
 * queue.h - inside sched/: accounts, shapes, questions, and the state of a cycle.
 *
 * A question is a request as plan/ is asked: shared by all accounts, asked at
 * most twice a cycle when the answer is no. Requests that come to the same
 * profiles on these boards have the same answer (`refused` remembers it), so
 * that a thousand different sizes cost no more than the profiles there are. A
 * shape is one account's jobs with
 * the same question. Both live as long as a job refers to them.
 */
#ifndef DIVVY_SCHED_QUEUE_H
#define DIVVY_SCHED_QUEUE_H

#include "base/map.h"
#include "sched/entry.h"
#include "sched/sched.h"

enum answer {
    ANSWER_OPEN = 0, /* not asked since the cycle began, or it fitted */
    ANSWER_SHORT,    /* fits on reserved cards only: limits up to short_us may try */
    ANSWER_NO,
    ANSWER_NEVER,
};

struct question {
    struct request request;
    uint64_t hash;
    struct question *next; /* all of them */
    uint32_t shapes;       /* that ask it */
    uint64_t cycle;        /* in which `answer` was given */
    enum answer answer;
    int64_t short_us;
    uint64_t boards; /* the boards for which `sense` was found out; 0: not yet */
    uint64_t sense;  /* what it comes to on them: the same for "18G" and "18.5G" */
};

struct shape {
    struct account *account;
    struct question *question;
    struct shape *next;  /* of the account */
    struct entry *root;  /* pending */
    struct entry *first; /* its first in line; NULL: nothing pending */
    uint32_t jobs;       /* in any state */
};

struct account {
    char *name;
    size_t index; /* order of making */
    double weight;
    double used_card_us; /* as of stamp_us */
    int64_t stamp_us;
    uint64_t running_ppm;
    uint32_t running, pending; /* pending: held ones too */
    struct shape *shapes;
    struct entry *first; /* first in line over its shapes; NULL: nothing pending that is not held */
    double key;          /* when the line was last made: less goes first */
    uint32_t rank;       /* in that line, from 1; 0: nothing pending */
};

struct reservation {
    struct entry *entry; /* NULL: nobody has one */
    int64_t when_us;     /* INT64_MAX: not known */
    int64_t short_us;    /* when it is not known: limits up to this may still use the cards */
    size_t *cards;       /* indices in the inventory of the cycle */
    uint32_t *ordinals;  /* the same cards, by what stays the same */
    size_t count, alloc, ordinal_alloc;
};

struct sched {
    struct sched_policy policy;
    struct table entries;
    struct map accounts_by_name;
    struct account **accounts; /* in order of making */
    size_t account_count, account_alloc;
    struct question *questions;
    size_t question_count;
    struct entry *held; /* list of held ones */
    size_t pending, running;

    uint64_t cycle;
    struct account **line; /* of this cycle, by key; those before `at` can start nothing more */
    size_t line_count, at;
    size_t closed;      /* questions that are answered with no in this cycle */
    struct map refused; /* of this cycle and reservation: what was not served, by sense */
    uint64_t boards;    /* of the inventory of this cycle; 0: not looked at yet */
    bool holder_asked;  /* in this cycle */
    bool passed_over;   /* somebody did not fit in this cycle */
    struct reservation reservation;
    enum card_ban *bans; /* reserved cards, for place/ */
    size_t ban_alloc;
};

struct account *account_get(struct sched *s, const char *name); /* made when it is not there */
void account_settle(const struct sched *s, struct account *a, int64_t now_us);
double account_key(const struct sched *s, const struct account *a);
/* Those with something pending, sorted, all usage settled. The caller frees. */
struct account **account_line(struct sched *s, int64_t now_us, size_t *ret_count);
/* Does `a` go before `b`? By key, then by who waits longer. */
bool account_before(const struct account *a, const struct account *b);

enum answer question_answer(const struct sched *s, const struct question *q);
void question_set(struct sched *s, struct question *q, enum answer answer, int64_t short_us);

/* Pending and not held: in and out of its shape's tree. */
void shape_put(struct entry *e);
void shape_take(struct entry *e);

/* ---- questions to plan/, each sense once (ask.c) ---- */

void ask_forget(struct sched *s); /* a new cycle, or another reservation */
enum place_verdict ask_place(struct sched *s, const struct inventory *inv, struct question *q,
                             bool with_bans, struct now now, struct place *ret_place,
                             struct plan *ret_plan);
/* As reserve_for, for who has just been told that it does not fit. */
bool ask_reservation(struct sched *s, const struct inventory *inv, struct entry *e, struct now now);

/* ---- reservations (reserve.c) ---- */

struct place_rules reserve_rules(const struct sched *s, bool with_bans);
/* Keeps the cards that free soonest for `e`; false: none can be named. */
bool reserve_for(struct sched *s, const struct inventory *inv, struct entry *e, struct now now);
void reserve_clear(struct sched *s);
/* Finds the reserved cards again in an inventory that may have changed its order. */
void reserve_look(struct sched *s, const struct inventory *inv);
/* The longest limit that may still use reserved cards now; 0: none may. */
int64_t reserve_short_us(const struct sched *s, struct now now);
/* May a job of this limit take this place, or would the reservation suffer? */
bool reserve_allows(struct sched *s, const struct inventory *inv, const struct place *place,
                    const struct plan *plan, int64_t limit_us, struct now now);

#endif
