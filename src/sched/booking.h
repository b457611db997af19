/*
 * booking.h - inside sched/: starts that are kept for those who wait.
 *
 * A booking is a job, a place and a time. The first that do not fit get one,
 * one for each request, as many as the policy says. Nobody else is put where
 * a booking would find him still there by his limit; so a booking can only
 * come nearer. Where a limit was not kept, a card went away, or an
 * administrator takes cards for a while, those that this concerns are booked
 * anew, the first of them first.
 *
 * Also here: the times at which an administrator has a card.
 *
 * What a start now would be in the way of depends on its limit, and only on
 * which bookings begin before that: so limits fall into few levels, and a
 * request is asked about once for each level. Level 0 are the shortest.
 *
 * An auto card turns its MIG mode only after it was idle for a while, so a
 * booking in the one mode keeps those of the other away that much longer.
 */
#ifndef DIVVY_SCHED_BOOKING_H
#define DIVVY_SCHED_BOOKING_H

#include "plan/place.h"
#include "sched/node.h"
#include "sched/sched.h"

struct entry;
struct question;

struct booking {
    struct entry *entry;
    struct place place;        /* owned */
    struct node_need need;     /* of the machine, on that place */
    int64_t from_us, until_us; /* until: INT64_MAX without a limit */
};

struct bookings {
    struct booking list[SCHED_RESERVATIONS_MAX]; /* who was booked first is before the others */
    size_t count;
    struct sched_closed *closed; /* owned */
    size_t closed_count;
    bool dropped; /* one went since answers were given: there may be room that was not seen */
    bool moved;   /* the same: one has another place or time */
    size_t next;  /* whose turn it is to be looked at for a sooner start, and how many of */
    size_t looks; /* them in this cycle: it costs much, and nothing is lost meanwhile */
    /* Levels. */
    bool stale;
    int64_t *steps; /* ascending, after now: whoever ends later than steps[k] has level k + 1 */
    size_t step_count, step_alloc;
    struct place_kept *levels; /* card_count for each */
    bool *made;                /* this level is filled in */
    size_t level_alloc, made_alloc;
    struct place_kept *scratch;
    size_t scratch_alloc;
};

void bookings_done(struct bookings *b);

/* The level of a start now with that limit. */
size_t booking_level(struct sched *s, const struct inventory *inv, int64_t limit_us,
                     struct now now);
/* The longest limit of a level; INT64_MAX: the last level. */
int64_t booking_level_us(const struct sched *s, size_t level, struct now now);
/* What is kept of each card from a start now; NULL: nothing. Valid until something changes. */
const struct place_kept *booking_kept(struct sched *s, const struct inventory *inv, size_t level,
                                      struct now now);
/* The same for who has booking `at`: what the others keep of it, or only those before it. */
const struct place_kept *booking_kept_from(struct sched *s, const struct inventory *inv, size_t at,
                                           bool only_before, struct now now);

/* What an administrator has of it while a job of that limit, started now, would be there. */
const struct place_kept *booking_kept_closed(struct sched *s, const struct inventory *inv,
                                             int64_t limit_us, struct now now);

/* May there be one more, for that job? NULL: for one that has none. */
bool booking_room(const struct sched *s, const struct entry *e);
/*
 * The first moment and a place for it; false: nobody can say when. Asserted: it has none, and
 * there is room. Cards that were kept for it are not any more.
 */
bool booking_make(struct sched *s, const struct inventory *inv, struct entry *e, struct now now);
/*
 * One for whom others are stopped: from now on, there, before all others, whom it pushes back. Who
 * is told to go does not count as being there. False: it has just that one.
 */
bool booking_claim(struct sched *s, struct entry *e, const struct place *place, struct now now);
/* Does it go sooner by now? Looks at BOOKING_LOOKS of them in a cycle, in turn. */
#define BOOKING_LOOKS 2u
void booking_improve(struct sched *s, const struct inventory *inv, size_t at, struct now now);
void booking_drop(struct sched *s, size_t at);
void booking_drop_of(struct sched *s, const struct entry *e); /* where it has one */
/* Its booking; SIZE_MAX: it has none. */
size_t booking_of(const struct sched *s, const struct entry *e);
size_t booking_of_question(const struct sched *s, const struct question *q);
/*
 * Another that asks the same, with no longer limit, takes it over; and gives up its own in
 * exchange, where it has one.
 */
void booking_hand_over(struct sched *s, const struct inventory *inv, size_t at, struct entry *e,
                       struct now now);
/* Books those anew whose place will not be free, or whose time has passed. */
void bookings_tend(struct sched *s, const struct inventory *inv, struct now now);
/* Who is in the way of a start now with that limit first, of those that keep `cards` or of all;
 * SIZE_MAX: no booking. */
size_t booking_in_the_way(const struct sched *s, int64_t limit_us, bool cards, struct now now);

#endif
