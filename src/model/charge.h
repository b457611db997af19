/*
 * charge.h - what using a part of a card costs.
 *
 * A charge is the dominant share of what was held, in ppm of a card, times
 * the time it was held, in µs. A single attempt's is kept as an exact integer
 * in ppm·µs: a card for an hour is 3.6e15, so 63 bits hold 2,500 card-hours,
 * more than one attempt may run; sums over attempts, which also decay, are
 * doubles in card·µs.
 */
#ifndef DIVVY_MODEL_CHARGE_H
#define DIVVY_MODEL_CHARGE_H

#include "model/job.h"

/* The larger of compute and memory part, summed over what was placed. ppm of a card. */
uint64_t charge_dominant_ppm(const struct place *p);
uint64_t charge_compute_ppm(const struct place *p);
uint64_t charge_mem_ppm(const struct place *p);

/*
 * Usage after decay: usage × 2^(-elapsed / half_life). Both in µs; half_life 0
 * means no decay; a negative elapsed (a clock that was set back) counts as 0,
 * so usage never grows by it. Unit of usage: card·µs, as double.
 */
double charge_decay(double usage_card_us, int64_t elapsed_us, int64_t half_life_us);

#endif
