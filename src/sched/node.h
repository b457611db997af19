/*
 * node.h - inside sched/: the machine's CPUs and memory, beside its cards.
 *
 * A job needs what it says for each of its tasks; where it says nothing and
 * tasks have their part of the machine by their part of the cards, that part.
 * The least that such a task is given in any case (daemon/limits.c) is not
 * counted, so that parts alone always add up to the machine at most. What all
 * that run need together never exceeds what the machine has.
 *
 * A start that is kept for a job (booking.h) keeps what it needs of this too.
 * While everybody who runs or is booked and one more fit in together, all of
 * it costs a comparison.
 */
#ifndef DIVVY_SCHED_NODE_H
#define DIVVY_SCHED_NODE_H

#include "plan/place.h"
#include "sched/sched.h"

struct entry;
struct question;

/* Of one job, all its tasks together; or of many. */
struct node_need {
    uint64_t cpu_milli, mem_bytes; /* said */
    uint64_t cpu_ppm, mem_ppm;     /* by part: of one card */
};

/* From some moment on it needs that no more. */
struct node_end {
    int64_t at_us;          /* INT64_MIN: was told to end; INT64_MAX: no limit */
    struct node_need still; /* of this one and all that end later */
};

struct node {
    struct node_need held;   /* by those that run */
    struct node_need booked; /* by those that have a start kept for them */
    uint32_t cards;          /* of the inventory that was looked at last */
    bool stale;              /* `ends` is not of now */
    struct node_end *ends;   /* ascending */
    size_t end_count, end_alloc;
};

/* Which of the bookings count. */
struct node_view {
    size_t without; /* this one does not */
    size_t first;   /* only so many of the first do */
    bool kept;      /* what is kept for one of whom nobody can say when he starts counts too */
};
#define NODE_VIEW_ALL                                                                              \
    (struct node_view)                                                                             \
    {                                                                                              \
        .without = SIZE_MAX, .first = SIZE_MAX, .kept = true                                       \
    }

void node_done(struct node *n);
/* Parts are of the cards of this inventory from now on. */
void node_look(struct sched *s, const struct inventory *inv);

void node_add(struct node_need *sum, const struct node_need *n);
void node_sub(struct node_need *sum, const struct node_need *n);
/* Is there something of which both need? */
bool node_meet(const struct node_need *a, const struct node_need *b);
bool node_same(const struct node_need *a, const struct node_need *b);

/* What a job says, as far as it is counted here. */
struct node_need node_said(const struct sched *s, const struct sched_job *job);
/* What a job with this question needs at least; after question_look. */
struct node_need node_least(const struct sched *s, const struct question *q);
/* And what it needs on that place; NULL: none. */
struct node_need node_on(const struct sched *s, const struct question *q, const struct place *p);

/* What it comes to on this machine, now that its cards are known. */
struct sched_amount node_amount(const struct sched *s, const struct node_need *n);
/* Is that more than there is, or than there would be with nobody here? */
bool node_over(const struct sched *s, const struct node_need *n);

/* It runs from now on; it ran up to now. */
void node_started(struct sched *s, const struct entry *e);
void node_ended(struct sched *s, const struct entry *e);

/* Is there room for one more beside all that run, and nobody else? */
bool node_fits_now(const struct sched *s, const struct node_need *n);
/* What is held when those that are told to go (run->leaving) are gone. */
struct node_need node_without_leaving(const struct sched *s);
/* As node_fits_now, then. */
bool node_fits_without_leaving(const struct sched *s, const struct node_need *n);
/* How long it may run from now on and be in nobody's way; INT64_MAX: for ever; 0: not at all. */
int64_t node_most_us(struct sched *s, const struct node_need *n, struct node_view v,
                     struct now now);
/* Is there room for it from that moment on for so long, if those that run keep their limits? */
bool node_fits_from(struct sched *s, const struct node_need *n, struct node_view v, int64_t at_us,
                    int64_t limit_us);
/* Nobody can say when there is room, because of those that run without a limit. */
bool node_is_endless(struct sched *s, const struct node_need *n);
/* How long the oldest of those has run; 0: there are none. */
int64_t node_oldest_us(const struct sched *s, int64_t now_us);

/*
 * Moments at which there may be room for it: how many there are at most, none
 * where it fits in with everybody; then those themselves, into `ret`.
 */
size_t node_moment_count(struct sched *s, const struct node_need *n);
size_t node_moments(const struct sched *s, size_t count, int64_t *ret);

#endif
