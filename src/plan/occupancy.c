#include "plan/occupancy.h"

uint32_t occupancy_mask(const struct profile *p, uint32_t start)
{
    return ((UINT32_C(1) << p->units) - 1) << start;
}

void occupancy_add(struct occupancy *o, const struct board *b, const struct profile *p,
                   uint32_t start)
{
    o->units |= occupancy_mask(p, start);
    o->slices += p->slices;
    o->decoders += p->decoders;
    o->encoders += p->encoders;
    o->jpegs += p->jpegs;
    o->ofas += p->ofas;
    o->instances[p - b->profiles]++;
}

void occupancy_remove(struct occupancy *o, const struct board *b, const struct profile *p,
                      uint32_t start)
{
    o->units &= ~occupancy_mask(p, start);
    o->slices -= p->slices;
    o->decoders -= p->decoders;
    o->encoders -= p->encoders;
    o->jpegs -= p->jpegs;
    o->ofas -= p->ofas;
    o->instances[p - b->profiles]--;
}

void occupancy_add_units(struct occupancy *o, uint32_t start, uint32_t units)
{
    o->units |= ((UINT32_C(1) << units) - 1) << start;
}

static bool within(uint32_t used, uint32_t more, uint32_t limit)
{
    return !limit || !more || used + more <= limit;
}

static bool sums_fit(const struct occupancy *o, const struct board *b, const struct profile *p)
{
    return within(o->slices, p->slices, b->slices) &&
           within(o->decoders, p->decoders, b->decoders) &&
           within(o->encoders, p->encoders, b->encoders) && within(o->jpegs, p->jpegs, b->jpegs) &&
           within(o->ofas, p->ofas, b->ofas) && within(o->instances[p - b->profiles], 1, p->max);
}

bool occupancy_fits(const struct occupancy *o, const struct board *b, const struct profile *p,
                    uint32_t start)
{
    return profile_starts_at(p, start) && !(o->units & occupancy_mask(p, start)) &&
           sums_fit(o, b, p);
}

uint32_t occupancy_room(const struct occupancy *o, const struct board *b)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        if (!sums_fit(o, b, p))
            continue;
        for (uint32_t k = 0; k < p->start_count; k++)
            room += !(o->units & occupancy_mask(p, p->starts[k]));
    }
    return room;
}
