#include "plan/occupancy.h"

#include <string.h>

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
        uint32_t run = occupancy_mask(p, 0);
        for (uint32_t k = 0; k < p->start_count; k++)
            room += !(o->units & run << p->starts[k]);
    }
    return room;
}

#define SLICES_MAX 16u

/* Every place that is free, by where it begins. */
struct places {
    uint32_t counts[BOARD_UNITS_MAX];
    struct {
        uint8_t units, slices;
    } lists[BOARD_UNITS_MAX][BOARD_PROFILES_MAX];
};

static void add_place(struct places *f, const struct profile *p, uint32_t start)
{
    uint32_t n = f->counts[start];
    for (uint32_t i = 0; i < n; i++)
        if (f->lists[start][i].units == p->units && f->lists[start][i].slices == p->slices)
            return; /* "+me" and the like: the same as without */
    f->lists[start][n].units = (uint8_t)p->units;
    f->lists[start][n].slices = (uint8_t)p->slices;
    f->counts[start]++;
}

/* Returns what they are worth, summed over the profiles, and lists them. */
static uint32_t list_places(const struct occupancy *o, const struct board *b, struct places *ret)
{
    uint32_t worth = 0;
    memset(ret->counts, 0, sizeof ret->counts);
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        if (!sums_fit(o, b, p))
            continue;
        uint32_t run = occupancy_mask(p, 0);
        for (uint32_t k = 0; k < p->start_count; k++) {
            if (o->units & run << p->starts[k])
                continue;
            worth += p->units * (p->units + 4);
            add_place(ret, p, p->starts[k]);
        }
    }
    return worth;
}

/*
 * The most units from `start` on, for every number of compute slices that are left, given the same
 * for the units after it.
 */
static void fill_from(const struct places *f, uint32_t start, uint32_t left,
                      uint8_t (*most)[SLICES_MAX + 1])
{
    memcpy(most[start], most[start + 1], sizeof *most);
    for (uint32_t i = 0; i < f->counts[start]; i++) {
        uint32_t units = f->lists[start][i].units, slices = f->lists[start][i].slices;
        const uint8_t *after = most[start + units];
        for (uint32_t s = slices; s <= left; s++)
            if (units + after[s - slices] > most[start][s])
                most[start][s] = (uint8_t)(units + after[s - slices]);
    }
}

static uint32_t slices_left(const struct occupancy *o, const struct board *b)
{
    if (!b->slices)
        return SLICES_MAX; /* not told: no limit */
    uint32_t left = o->slices < b->slices ? b->slices - o->slices : 0;
    return left < SLICES_MAX ? left : SLICES_MAX;
}

static uint32_t fill(const struct places *f, uint32_t units, uint32_t left)
{
    uint8_t most[BOARD_UNITS_MAX + 1][SLICES_MAX + 1];
    memset(most[units], 0, sizeof *most);
    for (uint32_t start = units; start-- > 0;)
        fill_from(f, start, left, most);
    return most[0][left];
}

uint32_t occupancy_fill(const struct occupancy *o, const struct board *b)
{
    struct places free;
    return list_places(o, b, &free) ? fill(&free, b->units, slices_left(o, b)) : 0;
}

uint32_t occupancy_worth(const struct occupancy *o, const struct board *b)
{
    struct places free;
    uint32_t worth = list_places(o, b, &free);
    return worth ? worth + WORTH_FILL * fill(&free, b->units, slices_left(o, b)) : 0;
}
