/*
 * promise.h - how far expected starts were off.
 *
 * A job whose start was announced and that then started was told the truth, or
 * was told something too early or too late by so much. Kept as counts by size,
 * so that the sums of years take a few numbers.
 *
 *     promises_add(&p, started_us - expected_us);
 *     promises_bound_us(&p, 90);   nine in ten were off by no more than that
 */
#ifndef DIVVY_MODEL_PROMISE_H
#define DIVVY_MODEL_PROMISE_H

#include <stdbool.h>

#include "base/clock.h"

#define PROMISE_SIZES 8u

struct promises {
    uint64_t
        jobs[PROMISE_SIZES]; /* off by at most 10 s, 1 min, 5 min, 15 min, 1 h, 4 h, 1 d; more */
    uint64_t late;           /* of them, that began more than 10 s after what was said */
    double off_us;           /* summed, whichever way */
};

/* Above 0: it began later than was said. */
void promises_add(struct promises *p, int64_t off_us);
/* The index in `jobs` of one that was off by so much. */
uint32_t promise_size(int64_t off_us);
bool promise_is_late(int64_t off_us);
uint64_t promises_count(const struct promises *p);
double promises_mean_us(const struct promises *p); /* 0 without any */
/*
 * The least of the sizes that at least so many percent kept to. INT64_MAX: it
 * is above the last of them. 0: there are none.
 */
int64_t promises_bound_us(const struct promises *p, uint32_t percent);

#endif
