/*
 * limits.h - how much an account, a user or a class of jobs may have.
 *
 * Some limits are about what runs at the same time (a job waits for them),
 * some about handing in (a job is refused). Each is LIMIT_NONE where nothing
 * is limited; 0 means none at all.
 *
 *     struct limits l = LIMITS_NONE;
 *     l.cards = 4;
 */
#ifndef DIVVY_MODEL_LIMITS_H
#define DIVVY_MODEL_LIMITS_H

#include "base/clock.h"
#include "model/board.h"

#define LIMIT_NONE UINT64_MAX
#define LIMIT_SLICES_MAX 16u

/* Which of them; the first ones are waited for. */
enum limit_kind {
    LIMIT_COMPUTE = 0,
    LIMIT_MEMORY,
    LIMIT_CARDS,
    LIMIT_SLICES,
    LIMIT_RUNNING,
    LIMIT_PENDING, /* from here on: a refusal */
    LIMIT_SUBMITS,
    LIMIT_TIME,
    LIMIT_KINDS,
};

struct limit_slices {
    char profile[PROFILE_NAME_SIZE];
    uint32_t max;
};

struct limits {
    uint64_t compute_ppm, mem_ppm; /* of one card, summed over all running jobs */
    uint64_t cards;                /* whole cards held by running jobs */
    uint64_t running;              /* jobs that hold something, or run without a GPU */
    uint64_t pending;              /* jobs that wait, held ones too */
    uint64_t submits;              /* so many at once, and then one each submits_per_us / submits */
    int64_t submits_per_us;        /* above 0 where submits is limited */
    int64_t time_us;               /* wall time of each job; 0: no limit */
    struct limit_slices slices[LIMIT_SLICES_MAX];
    uint32_t slice_count;
};

#define LIMITS_NONE                                                                                \
    {                                                                                              \
        .compute_ppm = LIMIT_NONE, .mem_ppm = LIMIT_NONE, .cards = LIMIT_NONE,                     \
        .running = LIMIT_NONE, .pending = LIMIT_NONE, .submits = LIMIT_NONE                        \
    }

/* Is anything limited? */
bool limits_any(const struct limits *l);

#endif
