/*
 * dice.h - random numbers that come again: the seed is printed, and
 * DIVVY_TEST_SEED=N sets another one.
 *
 *     struct dice d = dice_new(1);
 *     uint64_t side = dice_below(&d, 6);
 */
#ifndef DIVVY_TESTS_DICE_H
#define DIVVY_TESTS_DICE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct dice {
    uint64_t state;
};

static inline struct dice dice_new(uint64_t seed)
{
    const char *set = getenv("DIVVY_TEST_SEED");
    if (set)
        seed = strtoull(set, NULL, 10);
    printf("# seed %" PRIu64 "\n", seed);
    return (struct dice){ .state = seed };
}

/* splitmix64 */
static inline uint64_t dice_roll(struct dice *d)
{
    uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t dice_below(struct dice *d, uint64_t n)
{
    return dice_roll(d) % n;
}

static inline uint32_t dice_u32(struct dice *d)
{
    return (uint32_t)dice_roll(d);
}

static inline bool dice_bool(struct dice *d)
{
    return dice_roll(d) & 1;
}

/* A text of 0 to size - 1 bytes, letters of one and of two bytes. */
static inline void dice_text(struct dice *d, char *buf, size_t size)
{
    static const char *const letters[] = { "a", "B", "7", ".", "-", " ", "\"", "\\", "/", "ü" };
    size_t want = dice_below(d, size);
    size_t len = 0;
    while (len + 2 <= want) {
        const char *s = letters[dice_below(d, 10)];
        while (*s)
            buf[len++] = *s++;
    }
    buf[len] = '\0';
}

#endif
