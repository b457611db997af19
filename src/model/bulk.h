/*
 * bulk.h - many cards of which only the number counts.
 *
 * A replay on 512 cards without topology has no use for 512 geometries. An
 * inventory may carry a bulk instead of listing cards: so many are there, so
 * many are free, and who holds how many until when. plan/ answers questions
 * about whole cards from it at the price of a comparison. A server's own
 * inventory never has one.
 *
 *     struct bulk b = { .cards = 512, .free = 512 };
 *     bulk_hold(&b, &(struct bulk_hold){ .job_id = 7, .cards = 4, .until_boot_us = t });
 *     bulk_end(&b, 7);
 *
 * Invariant: `free` and the cards of all holds add up to `cards`; holds stand
 * in the order in which they end, those without a limit last.
 */
#ifndef DIVVY_MODEL_BULK_H
#define DIVVY_MODEL_BULK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BULK_CARDS_MAX 100000u

struct bulk_hold {
    uint64_t job_id;
    uint32_t cards;
    int64_t since_boot_us;
    int64_t until_boot_us; /* its time limit; INT64_MAX: none */
};

struct bulk {
    uint32_t cards, free;
    struct bulk_hold *holds;
    size_t count, alloc;
};

void bulk_done(struct bulk *b);
/* Deep copy; `ret` need not be initialised. */
void bulk_copy(const struct bulk *b, struct bulk *ret);
/* False, and nothing changed: so many are not free. */
bool bulk_hold(struct bulk *b, const struct bulk_hold *h);
/* Gives back what the job holds; false: it holds nothing. */
bool bulk_end(struct bulk *b, uint64_t job_id);
/* How many are free at that moment if all end at their limits. */
uint32_t bulk_free_at(const struct bulk *b, int64_t boot_us);
/*
 * The first moment, not before `now_us`, at which so many are free; INT64_MAX:
 * those without a limit are in the way, or there are not so many cards.
 */
int64_t bulk_soonest_us(const struct bulk *b, uint32_t cards, int64_t now_us);

#endif
