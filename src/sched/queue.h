/*
 * queue.h - inside sched/: accounts, shapes, questions, and the state of a cycle.
 *
 * A question is a request as plan/ is asked: shared by all accounts, asked at
 * most twice a cycle when the answer is no. Requests that come to the same
 * profiles on these boards have the same answer: plan/ is asked for one of them
 * (`refused` remembers it), and once all starts that may be kept are, one that
 * was tried speaks for the others. So a thousand sizes are asked about and tried
 * as often as the profiles there are. What remains of their number is a glance
 * at each shape of whose turn it is; and while more starts may be kept, each
 * size is tried, since it may be the one to get one.
 * What a job says of CPUs and memory is part of its question, and no matter to plan/. A
 * shape is one account's jobs with the same question. Both live as long as a job refers to them.
 */
#ifndef DIVVY_SCHED_QUEUE_H
#define DIVVY_SCHED_QUEUE_H

#include "base/pile.h"
#include "base/map.h"
#include "sched/booking.h"
#include "sched/entry.h"
#include "sched/fairtree.h"
#include "sched/meter.h"
#include "sched/node.h"
#include "sched/sched.h"
#include "sched/victims.h"

enum answer {
    ANSWER_OPEN = 0, /* not asked since the cycle began, or it fitted */
    ANSWER_SHORT,    /* fits for a while only: limits up to short_us may try */
    ANSWER_NO,
    ANSWER_NEVER,
};

/* What the least demanding way to serve a request takes, on the boards there are. */
struct need {
    uint64_t compute_ppm, mem_ppm, dominant_ppm; /* of one card, all its tasks together */
    uint32_t cards;                              /* whole ones */
};

struct question {
    struct request request;
    struct node_need said; /* of the machine beside */
    uint64_t hash;
    struct question *same_hash;     /* the next with it */
    struct question *next, *before; /* all of them */
    uint32_t shapes;                /* that ask it */
    struct pile waiting;            /* those of them with pending jobs, by their shortest limit */
    uint32_t booked;                /* of its jobs, those that have a booking */
    uint64_t undated; /* the cycle in which nobody could say when one more would start */
    uint64_t cycle;   /* in which `answer` was given */
    enum answer answer;
    int64_t short_us;
    uint64_t heard;  /* as s->spoken: `answer` is that of one who speaks for it; 0: its own */
    uint64_t boards; /* the boards for which `sense` was found out; 0: not yet */
    uint64_t sense;  /* what it comes to on them: the same for "18G" and "18.5G" */
    struct need need;
};

/* What a cycle looks at comes first: one line of the cache for most. */
struct shape {
    struct shape *next; /* of the leaf */
    struct question *question;
    struct class *class;
    struct entry *first;  /* its first in line; NULL: nothing pending */
    uint64_t first_order; /* its place */
    int64_t shortest_us;  /* the least limit of those pending; INT64_MAX: none */
    uint64_t limited;     /* the cycle in which a limit stopped it */
    uint32_t slot;        /* in question->waiting */
    uint32_t booked;      /* of its jobs, those that have a booking */
    uint32_t meter_count;
    struct leaf *leaf;
    struct meter **meters; /* what its jobs count against: see meter.h */
    struct entry *root;    /* pending */
    struct entry *within;  /* the first in line for limits from its own up to… NULL: not known */
    int64_t within_until_us; /* …this, without it */
    int64_t within_us;       /* its own */
    uint32_t jobs;           /* in any state */
};

/* What runs of a leaf, by attained service: so that most questions end before a search. */
struct levels {
    uint64_t ppm[SCHED_LAS_MAX + 1];
    uint64_t last_order[SCHED_LAS_MAX + 1]; /* the greatest place in line */
};

/* Who has a share of his own and jobs: a user in an account, or a whole account. */
struct leaf {
    struct account *account;
    char *user; /* NULL: everybody in the account */
    uid_t uid;
    uint32_t index; /* order of making, over all leaves */
    uint32_t node;  /* in the share tree */
    double weight;
    double used_card_us; /* as of stamp_us */
    int64_t stamp_us;
    uint64_t running_ppm;      /* as they are charged */
    uint64_t held_ppm;         /* of cards, by its running jobs */
    uint64_t leaving_ppm;      /* of it, by those that are told to go */
    double due;                /* its part of all cards; after take_stock (preempt.c) */
    struct levels levels;      /* after take_stock (preempt.c) */
    uint32_t running, pending; /* pending: held ones too */
    struct shape *shapes;
    struct entry *first; /* first in line over its shapes; NULL: nothing pending that is not held */
    uint64_t line;       /* the line that it stands in… */
    size_t at;           /* …and where it came in */
};

/* What decides of a job's turn, and no more: it is not read where its shape knows. */
struct stand {
    struct entry *entry; /* NULL: nobody, or not looked for yet */
    uint32_t tier, level;
    double points;
    uint64_t order;
};

struct place_in_line {
    struct leaf *leaf;
    struct stand best; /* of its candidates when it was last looked at, or what they could be */
};

struct account {
    char *name;
    struct account *parent; /* NULL: top */
    uint32_t index;         /* order of making */
    uint32_t depth, node;
    enum sched_inside inside;
    double weight;
    struct sched_user_share *user_shares; /* owned, with their names */
    size_t user_share_count;
    struct map leaves; /* by uid; one with key 0 where `inside` is not SCHED_USERS */
    struct fence fence;
};

/* A class of jobs; see model/qos.h. */
struct class
{
    char *name;
    uint32_t index, priority;
    bool set; /* somebody said what it is */
    double charge;
    uint64_t preempts;   /* bits: indices of classes whose running jobs it may push out */
    uint32_t height;     /* above the highest of those whose jobs go for its own; 0: none do */
    int preempt, signal; /* how its own jobs go: enum qos_preempt */
    int64_t grace_us;
    uint64_t held_ppm; /* after take_stock (preempt.c) */
    uint64_t cardless; /* jobs that run without cards; as the last */
    struct fence fence;
};

/* Cards that are kept for one of whom nobody can say when he starts; the others are bookings. */
struct reservation {
    struct entry *entry; /* NULL: nobody has one */
    int64_t short_us;    /* limits up to this may still use the cards */
    size_t *cards;       /* indices in the inventory of the cycle */
    uint32_t *ordinals;  /* the same cards, by what stays the same */
    size_t count, alloc, ordinal_alloc;
};

/* Counted cards that are kept for a job that waits. */
struct planned {
    int64_t from_us, until_us;
    uint32_t cards;
    struct node_need need;
};

struct sched {
    struct sched_policy policy;
    struct entries entries;
    struct map accounts_by_name;
    struct account **accounts; /* in order of making */
    size_t account_count, account_alloc;
    struct leaf **leaves; /* in order of making */
    size_t leaf_count, leaf_alloc;
    struct class **classes; /* the first is the one of jobs that name none */
    size_t class_count, class_alloc;
    struct fence fence;         /* of the whole server */
    struct fence keep;          /* around all that is neither short nor attached */
    struct fairtree_node *tree; /* accounts, parents first, then leaves */
    size_t tree_alloc;
    bool tree_stale; /* somebody came, or got another weight or parent */
    struct question *questions;
    size_t question_count;
    struct map questions_by_hash; /* the first with each */
    struct pile held;             /* by the time at which they are released */
    struct entry *runs;           /* list of running ones */
    size_t pending, running;

    uint64_t cycle;
    struct place_in_line *line; /* of this cycle: a heap, whose turn it is first */
    size_t line_count, line_alloc;
    uint64_t line_made;  /* lines so far */
    uint64_t line_cycle; /* in which one was made last */
    bool line_stale;     /* something started: the shares are others now */
    bool rank_stale;     /* and the tree was not ranked since */
    bool line_wide;      /* answers came since it was made: it holds more than can be tried */
    size_t line_vain;    /* looks since then at leaves that were not first after all */
    size_t cards;        /* of the inventory of this cycle */
    struct map refused;  /* of this cycle and reservation: what was not served, by sense */
    struct map speakers; /* and whose answer does for all that come to the same */
    uint64_t spoken;     /* counts how often that changed, from 1 */
    uint64_t boards;     /* of the inventory of this cycle; 0: not looked at yet */
    bool holder_asked;   /* in this cycle; of those with a booking too */
    bool passed_over;    /* somebody did not fit in this cycle */
    struct reservation reservation;
    struct bookings bookings;
    struct planned *planned; /* in this cycle (counted.c) */
    size_t planned_count, planned_alloc;
    struct entry *claim;    /* others are stopped for it: it goes first; NULL: nobody */
    uint64_t claim_planned; /* the cycle in which counted cards were kept for it last */
    int64_t crossing_us;    /* no running job passes a threshold of service before this */
    bool modes_stay;        /* whoever is chosen to go must make room without a turn of modes */
    bool stock_taken;       /* what leaves and classes hold is that of now */
    struct node node;
    enum card_ban *bans; /* reserved cards, for place/ */
    size_t ban_alloc;
};

/* ---- accounts, leaves, the tree (account.c) ---- */

struct account *account_get(struct sched *s, const char *name); /* made when it is not there */
/* The leaf that pays for this user's jobs in that account; made when it is not there. */
struct leaf *leaf_get(struct sched *s, struct account *a, uid_t uid, const char *user);
void leaf_settle(const struct sched *s, struct leaf *l, int64_t now_us);
/* Settles all, and ranks the tree by what they have used and what runs. */
void tree_rank(struct sched *s, int64_t now_us);
void account_free(struct account *a);
void leaf_free(struct leaf *l);

/* ---- classes (class.c) ---- */

struct class *class_get(struct sched *s, const char *name);        /* made when it is not there */
struct class *class_find(const struct sched *s, const char *name); /* NULL: there is none */
void class_free(struct class *c);

/* ---- whose turn it is (line.c) ---- */

/* What decides between jobs, in this order: tier, (level), points, order. */
struct turn {
    uint32_t tier;
    double factor, age, size; /* 0 to 1 each */
    double points;            /* their sum, weighted */
};
/* Somebody came, went or started, or time passed: another line, and other ranks. */
void line_changed(struct sched *s);
/* Ranks the tree, unless that was done since the shares changed; counts the cards. */
void line_rank(struct sched *s, const struct inventory *inv, struct now now);
/* After line_rank or tree_rank, and question_look for its question. */
struct turn turn_of(const struct sched *s, const struct entry *e, int64_t now_us);
/* By tier, attained service where they share, points, and place in line; as turn_of. */
bool line_before(const struct sched *s, struct entry *a, struct entry *b, int64_t now_us);
/* The first in line of those that can still be tried in this cycle; NULL: none. */
struct entry *line_next(struct sched *s, const struct inventory *inv, struct now now);
/* The first in line of those that ask the same, of that limit at most; NULL: none. */
struct entry *line_first_of(struct sched *s, const struct inventory *inv, const struct question *q,
                            int64_t limit_us, struct now now);
/* The first in line of all that have no booking; NULL: there is none to be had. */
struct entry *line_first_unbooked(struct sched *s, const struct inventory *inv, struct now now);

/* Its own, else that of one who speaks for it; then short_us is that one's too. */
enum answer question_answer(const struct sched *s, struct question *q);
void question_set(struct sched *s, struct question *q, enum answer answer, int64_t short_us);

/* Pending and not held: in and out of its shape's tree. */
void shape_put(struct entry *e);
void shape_take(struct entry *e);
/* The first in line with a limit of at most this; there is one. Remembers it. */
struct entry *shape_first_within(struct shape *sh, int64_t limit_us);

/* ---- questions to plan/, each sense once (ask.c) ---- */

void ask_forget(struct sched *s); /* a new cycle, or another reservation */
/*
 * Its answer does for all that come to the same, until it gets another or ask_forget. To be said
 * where no more starts can be kept (booking_room): then to try one of them would change nothing.
 */
void ask_speak(struct sched *s, const struct inventory *inv, struct question *q);
/* It does no more. */
void ask_hush(struct sched *s, const struct question *q);
/* Who speaks for it; NULL: nobody. */
const struct question *ask_speaker(const struct sched *s, const struct question *q);
/* Brings sense and need up to date with the boards of this inventory. */
void question_look(struct sched *s, const struct inventory *inv, struct question *q);
/* For a limit of that level (booking.h), and with cards that are kept or without. */
enum place_verdict ask_place(struct sched *s, const struct inventory *inv, struct question *q,
                             size_t level, bool with_bans, struct now now, struct place *ret_place,
                             struct plan *ret_plan);
/* Whether it fits, as if there were no reservations. */
enum place_verdict ask_alone(struct sched *s, const struct inventory *inv, struct question *q,
                             struct now now);
/* As booking_make, else reserve_for, for who has just been told that it does not fit. */
bool ask_reservation(struct sched *s, const struct inventory *inv, struct entry *e, struct now now);

/* ---- backfill on counted cards (counted.c) ---- */

/* How long so many may be used now, so that nothing planned starts later; 0: not at all. */
int64_t counted_most_us(const struct sched *s, const struct bulk *b, uint32_t cards,
                        int64_t now_us);
/* Plans the first start of one that cannot start now, while the policy allows more of them. */
void counted_plan(struct sched *s, const struct bulk *b, const struct entry *e, int64_t now_us);
/* Keeps what it needs beside those who go for it, in this cycle. */
void counted_claim(struct sched *s, const struct entry *e, int64_t now_us);
void counted_forget(struct sched *s); /* another cycle */

/* ---- words (why.c, why_node.c) ---- */

/* "16:40", and the day where that is far. */
void why_add_time(struct text *t, int64_t boot_us, struct now now);
/* "; with a time limit of at most 40 minutes it could start now", where that is of use. */
void why_add_sooner(struct text *t, int64_t limit_us);
/* Says what of the machine is lacking now; false: nothing. */
bool why_node_waits(struct sched *s, const struct inventory *inv, const struct entry *e,
                    struct now now, struct sched_explanation *x);
/* The same, or for whom it is kept: the whole reason. On that place; NULL: anywhere. */
bool why_node(struct sched *s, const struct inventory *inv, const struct entry *e,
              const struct place *place, struct now now, struct sched_explanation *x);

/* ---- who goes for whom (preempt.c) ---- */

/* It runs from now on, or ran up to now. */
void preempt_started(struct sched *s, struct entry *e);
void preempt_ended(struct sched *s, struct entry *e);
/* Running jobs get the level of attained service that they have reached. */
void preempt_settle(struct sched *s, int64_t now_us);
/* It is told to go, or is not after all. */
void preempt_mark(struct entry *v, bool leaving);
/* The cards without those that are told to go; inventory_done ends it. */
void preempt_without(const struct sched *s, const struct inventory *inv, struct now now,
                     struct inventory *ret);
/*
 * Would it fit with them gone, in no window that is closed and within all limits? And where; the
 * caller's. A card may turn its mode at once, else nobody would go for who needs the other one;
 * but not while modes_stay.
 */
bool preempt_place(struct sched *s, const struct inventory *inv, const struct entry *e,
                   struct now now, struct place *ret);
/* What it lacks of cards that are counted, with them gone. */
uint64_t preempt_lacks_ppm(const struct sched *s, const struct bulk *b, const struct entry *e);

/* Those that may go for one that waits, in the order in which they should. */
struct choice {
    struct entry **list;
    size_t count, alloc;
};
/* Leaves the fewest in `c` with which it fits; see victims.h. Changes nothing where none are found. */
enum victims_answer preempt_fewest(struct sched *s, const struct inventory *inv,
                                   const struct entry *e, const struct victims_caps *caps,
                                   struct now now, struct choice *c);

/* ---- reservations (reserve.c) ---- */

struct place_rules reserve_rules(const struct sched *s, bool with_bans);
/* Keeps cards for `e`, of whom nobody can say when he starts; false: none can be named. */
bool reserve_for(struct sched *s, const struct inventory *inv, struct entry *e, struct now now);
void reserve_clear(struct sched *s);
/* Finds the reserved cards again in an inventory that may have changed its order. */
void reserve_look(struct sched *s, const struct inventory *inv);
/* May a job of this limit take this place, or would the reservation suffer? */
bool reserve_allows(const struct sched *s, const struct inventory *inv, const struct plan *plan,
                    int64_t limit_us);

#endif
