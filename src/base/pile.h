/*
 * pile.h - things that go by a number, the least on top; each knows its place.
 *
 * A thing has a slot, a number of its own that begins as 0 (it is in no pile)
 * and that the pile keeps. So it can be given another number, or be taken out,
 * wherever it stands. Things are borrowed.
 *
 *     AUTO(pile) struct pile h = PILE_INIT;
 *     pile_put(&h, job->until_us, job, &job->slot);
 *     struct job *soonest = pile_first(&h);
 *     pile_take(&h, &soonest->slot);
 *
 * Equal numbers go in any order, the same one for the same calls.
 */
#ifndef DIVVY_BASE_PILE_H
#define DIVVY_BASE_PILE_H

#include <stddef.h>
#include <stdint.h>

struct pile_item {
    int64_t key;
    void *of;
    uint32_t *slot; /* its index + 1 */
};

struct pile {
    struct pile_item *items;
    size_t count, alloc;
};

#define PILE_INIT                                                                                  \
    {                                                                                              \
        .items = NULL, .count = 0, .alloc = 0                                                      \
    }

void pile_done(struct pile *h);

/* In it, or in it with another number. O(log n). */
void pile_put(struct pile *h, int64_t key, void *of, uint32_t *slot);
/* Out of it; one that is in no pile stays out. O(log n). */
void pile_take(struct pile *h, uint32_t *slot);
void *pile_first(const struct pile *h);       /* NULL: empty */
int64_t pile_first_key(const struct pile *h); /* INT64_MAX: empty */

/*
 * Those with a number of at most `most`, in no order, at a cost of how many
 * they are: for (size_t i = 0; (v = pile_within(&h, most, &i)); ). The pile
 * must not change meanwhile.
 */
void *pile_within(const struct pile *h, int64_t most, size_t *i);

#endif
