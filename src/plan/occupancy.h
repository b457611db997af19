/*
 * occupancy.h - what of a card is taken, and what would still fit.
 *
 * Memory units are a bit mask (bit n: unit n); compute slices and media
 * engines are sums with a limit each; a profile has a number of instances of
 * its own. Engines that the board does not tell are no limit; copy engines are
 * shared out by the driver and never one.
 *
 *     struct occupancy o = { 0 };
 *     occupancy_add(&o, b, p, 4);
 *     if (occupancy_fits(&o, b, q, 0)) …
 *
 * Pure and small: the searches copy it by value.
 */
#ifndef DIVVY_PLAN_OCCUPANCY_H
#define DIVVY_PLAN_OCCUPANCY_H

#include "model/board.h"

struct occupancy {
    uint32_t units; /* bit mask */
    uint32_t slices, decoders, encoders, jpegs, ofas;
    uint8_t instances[BOARD_PROFILES_MAX]; /* by position in board->profiles */
};

/* The units that `p` covers when it begins at `start`. */
uint32_t occupancy_mask(const struct profile *p, uint32_t start);

/* `p` must be one of b->profiles. */
void occupancy_add(struct occupancy *o, const struct board *b, const struct profile *p,
                   uint32_t start);
void occupancy_remove(struct occupancy *o, const struct board *b, const struct profile *p,
                      uint32_t start);

/* All units and sums of `more` on top. */
void occupancy_add_all(struct occupancy *o, const struct occupancy *more);
/* The units of both, and of each sum the greater. */
void occupancy_widen(struct occupancy *o, const struct occupancy *other);
/* Takes the sums of `less` away, none below 0; units stay. */
void occupancy_lessen(struct occupancy *o, const struct occupancy *less);

/* An instance of a profile that the board does not know: its units alone. */
void occupancy_add_units(struct occupancy *o, uint32_t start, uint32_t units);

/* Could one more `p` be made at `start`? False too when it may not begin there. */
bool occupancy_fits(const struct occupancy *o, const struct board *b, const struct profile *p,
                    uint32_t start);

/* In how many places could one more instance be made, summed over the board's profiles? */
uint32_t occupancy_room(const struct occupancy *o, const struct board *b);

/*
 * What the card is still worth to those who may come. Every place where one
 * more instance of u memory units could be made counts u × (u + 4), summed over
 * the board's profiles, so that room for a large one is worth more than the
 * same room in small pieces; and every unit of occupancy_fill counts WORTH_FILL,
 * since a free unit that nothing can use any more is as good as taken. Of
 * several cards the one that loses the least of it takes the next instance.
 * What else was tried, and what each accepts, stands in bench/acceptance.c.
 */
uint32_t occupancy_worth(const struct occupancy *o, const struct board *b);

/*
 * How many of the free units could be filled at most, by any set of instances?
 * Starts, memory units and compute slices are looked at; engines and numbers
 * of instances only for one instance at a time, so it may be a little more
 * than is possible.
 */
uint32_t occupancy_fill(const struct occupancy *o, const struct board *b);

#define WORTH_FILL 20u

#endif
