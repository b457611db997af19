#include "model/charge.h"

#include <math.h>

uint64_t charge_dominant_ppm(const struct place *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        const struct placed *item = &p->items[i];
        sum += item->compute_ppm > item->mem_ppm ? item->compute_ppm : item->mem_ppm;
    }
    return sum;
}

uint64_t charge_compute_ppm(const struct place *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += p->items[i].compute_ppm;
    return sum;
}

uint64_t charge_mem_ppm(const struct place *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += p->items[i].mem_ppm;
    return sum;
}

double charge_decay(double usage_card_us, int64_t elapsed_us, int64_t half_life_us)
{
    if (half_life_us <= 0 || elapsed_us <= 0)
        return usage_card_us;
    return usage_card_us * exp2(-(double)elapsed_us / (double)half_life_us);
}
