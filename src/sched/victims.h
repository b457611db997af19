/*
 * victims.h - inside sched/: the fewest of those who may be stopped, so that
 * one request fits.
 *
 * The candidates are numbered in the order in which they should go, 0 first.
 * Of all sets that do, the fewest; of those the one whose last member comes
 * first in that order, then the last but one, and so on: nobody goes while as
 * few could go without him. Exact, not a guess: tests compare it with all
 * subsets.
 *
 * What must be reached is told in two ways. Cards: how many tasks a card
 * serves depends only on who goes of those on it, so each card is asked once
 * for each such subset that is small enough, at most 2^VICTIMS_ON_CARD times, and
 * cards are put together from these numbers; who is on several cards counts
 * once. Sums: numbers that add up over whoever goes (counted cards, and the
 * machine's CPUs and memory). A last word (`fits`) is asked of each set that
 * reaches both, and may refuse it.
 *
 * Cost: at most VICTIMS_QUESTIONS questions (`serves` and `fits` together) and
 * VICTIMS_STEPS looks at the numbers. Who needs more is told so, and chooses in
 * another way.
 */
#ifndef DIVVY_SCHED_VICTIMS_H
#define DIVVY_SCHED_VICTIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VICTIMS_ON_CARD 8u
#define VICTIMS_QUESTIONS 4096u
#define VICTIMS_STEPS 4000u

struct victims_card {
    size_t count;               /* of the candidates, so many are on it */
    size_t on[VICTIMS_ON_CARD]; /* who; ascending */
};

/* Reached when what those give who go adds up to `need`. */
struct victims_sum {
    const uint64_t *gives; /* each candidate */
    uint64_t need;
};

/* Those of a group may lose so much together, if any of them goes who is under the cap. */
struct victims_caps {
    const size_t *group; /* each candidate's */
    const uint64_t *loses;
    const bool *under;
    const uint64_t *cap; /* each group's */
    size_t group_count;
};

struct victims {
    size_t count;  /* candidates */
    uint32_t want; /* tasks that the cards must serve; 0: cards do not matter */
    const struct victims_card *cards;
    size_t card_count;
    /* How many it serves, `want` at most, with those gone whose bits (in `on`) are set. */
    uint32_t (*serves)(void *arg, size_t card, uint32_t gone);
    const struct victims_sum *sums;
    size_t sum_count;
    struct victims_caps caps;                                    /* group_count 0: none */
    bool (*fits)(void *arg, const size_t *chosen, size_t count); /* NULL: no more to be said */
    void *arg;
};

enum victims_answer {
    VICTIMS_FOUND = 0,
    VICTIMS_NONE, /* not if all went that may */
    VICTIMS_DEAR, /* it was given up: more questions or steps than allowed */
};

/* One or more of them, descending; `ret` has room for all. That none need go was asked before. */
enum victims_answer victims_fewest(const struct victims *v, size_t *ret, size_t *ret_count);

#endif
