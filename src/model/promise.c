#include "model/promise.h"

static const int64_t sizes[PROMISE_SIZES] = { 10 * CLOCK_SECOND, CLOCK_MINUTE, 5 * CLOCK_MINUTE,
                                              15 * CLOCK_MINUTE, CLOCK_HOUR,   4 * CLOCK_HOUR,
                                              CLOCK_DAY,         INT64_MAX };

uint32_t promise_size(int64_t off_us)
{
    uint32_t i = 0;
    int64_t size = off_us < 0 ? -off_us : off_us;
    while (i < PROMISE_SIZES - 1 && size > sizes[i])
        i++;
    return i;
}

bool promise_is_late(int64_t off_us)
{
    return off_us > sizes[0];
}

void promises_add(struct promises *p, int64_t off_us)
{
    p->jobs[promise_size(off_us)]++;
    p->late += promise_is_late(off_us) ? 1 : 0;
    p->off_us += (double)(off_us < 0 ? -off_us : off_us);
}

uint64_t promises_count(const struct promises *p)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < PROMISE_SIZES; i++)
        n += p->jobs[i];
    return n;
}

double promises_mean_us(const struct promises *p)
{
    uint64_t n = promises_count(p);
    return n ? p->off_us / (double)n : 0;
}

int64_t promises_bound_us(const struct promises *p, uint32_t percent)
{
    uint64_t all = promises_count(p), n = 0;
    for (uint32_t i = 0; all && i < PROMISE_SIZES; i++) {
        n += p->jobs[i];
        if (n * 100 >= all * percent)
            return sizes[i];
    }
    return 0;
}
