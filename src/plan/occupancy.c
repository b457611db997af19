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

void occupancy_add_all(struct occupancy *o, const struct occupancy *more)
{
    o->units |= more->units;
    o->slices += more->slices;
    o->decoders += more->decoders;
    o->encoders += more->encoders;
    o->jpegs += more->jpegs;
    o->ofas += more->ofas;
    for (size_t i = 0; i < BOARD_PROFILES_MAX; i++)
        o->instances[i] = (uint8_t)(o->instances[i] + more->instances[i]);
}

static uint32_t most_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

void occupancy_widen(struct occupancy *o, const struct occupancy *other)
{
    o->units |= other->units;
    o->slices = most_of(o->slices, other->slices);
    o->decoders = most_of(o->decoders, other->decoders);
    o->encoders = most_of(o->encoders, other->encoders);
    o->jpegs = most_of(o->jpegs, other->jpegs);
    o->ofas = most_of(o->ofas, other->ofas);
    for (size_t i = 0; i < BOARD_PROFILES_MAX; i++)
        o->instances[i] = (uint8_t)most_of(o->instances[i], other->instances[i]);
}

static uint32_t beyond(uint32_t a, uint32_t b)
{
    return a > b ? a - b : 0;
}

void occupancy_lessen(struct occupancy *o, const struct occupancy *less)
{
    o->slices = beyond(o->slices, less->slices);
    o->decoders = beyond(o->decoders, less->decoders);
    o->encoders = beyond(o->encoders, less->encoders);
    o->jpegs = beyond(o->jpegs, less->jpegs);
    o->ofas = beyond(o->ofas, less->ofas);
    for (size_t i = 0; i < BOARD_PROFILES_MAX; i++)
        o->instances[i] = (uint8_t)beyond(o->instances[i], less->instances[i]);
}

/* What is left of each sum; UINT32_MAX where the board tells no limit. */
struct left {
    uint32_t slices, decoders, encoders, jpegs, ofas;
};

static uint32_t rest(uint32_t used, uint32_t limit)
{
    if (!limit)
        return UINT32_MAX;
    return used < limit ? limit - used : 0;
}

static struct left sums_left(const struct occupancy *o, const struct board *b)
{
    return (struct left){ .slices = rest(o->slices, b->slices),
                          .decoders = rest(o->decoders, b->decoders),
                          .encoders = rest(o->encoders, b->encoders),
                          .jpegs = rest(o->jpegs, b->jpegs),
                          .ofas = rest(o->ofas, b->ofas) };
}

static bool sums_fit(const struct left *left, const struct occupancy *o, const struct board *b,
                     const struct profile *p)
{
    return p->slices <= left->slices && p->decoders <= left->decoders &&
           p->encoders <= left->encoders && p->jpegs <= left->jpegs && p->ofas <= left->ofas &&
           (!p->max || o->instances[p - b->profiles] < p->max);
}

bool occupancy_fits(const struct occupancy *o, const struct board *b, const struct profile *p,
                    uint32_t start)
{
    struct left left = sums_left(o, b);
    return profile_starts_at(p, start) && !(o->units & occupancy_mask(p, start)) &&
           sums_fit(&left, o, b, p);
}

uint32_t occupancy_room(const struct occupancy *o, const struct board *b)
{
    struct left left = sums_left(o, b);
    uint32_t room = 0;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        if (!sums_fit(&left, o, b, p))
            continue;
        uint32_t run = occupancy_mask(p, 0);
        for (uint32_t k = 0; k < p->start_count; k++)
            room += !(o->units & run << p->starts[k]);
    }
    return room;
}

#define SLICES 8u /* compute slices that are told apart */

/* Every place that is free and needs 1 to 8 compute slices, by where it begins. */
struct places {
    uint32_t counts[BOARD_UNITS_MAX];
    struct {
        uint8_t units, slices;
    } lists[BOARD_UNITS_MAX][BOARD_PROFILES_MAX];
};

static void add_place(struct places *f, const struct profile *p, uint32_t start)
{
    if (!p->slices || p->slices > SLICES)
        return; /* no board has such a profile */
    uint32_t n = f->counts[start];
    f->lists[start][n].units = (uint8_t)p->units;
    f->lists[start][n].slices = (uint8_t)p->slices;
    f->counts[start]++;
}

/* Returns what they are worth, summed over the profiles, and lists them. */
static uint32_t list_places(const struct occupancy *o, const struct board *b, struct places *ret)
{
    struct left left = sums_left(o, b);
    uint32_t worth = 0;
    memset(ret->counts, 0, sizeof ret->counts);
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        if (!sums_fit(&left, o, b, p))
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
 * The most units that can be filled from some unit on, plus FILLED: a byte for each number of
 * compute slices that are left, from 1 (the lowest byte) to 8. All eight at once, since this is
 * most of what it costs to place a request.
 */
typedef uint64_t filled;

#define EACH UINT64_C(0x0101010101010101)
#define FILLED 0x40u
#define TOPS (EACH << 7)

/* The greater of each pair of bytes; none has its top bit set. */
static filled greater(filled a, filled b)
{
    uint64_t tops = ((a | TOPS) - b) & TOPS; /* set where a is not less */
    uint64_t mask = (tops >> 7) * 0xff;
    return (a & mask) | (b & ~mask);
}

/* What a place fills with that behind it; bytes of too few slices are less than FILLED. */
static filled fill_place(uint32_t units, uint32_t slices, filled after)
{
    uint64_t exact = (uint64_t)FILLED << (8 * (slices - 1));
    uint64_t more = slices < SLICES ? after << (8 * slices) : 0;
    return (exact | more) + EACH * units;
}

static uint32_t fill(const struct places *f, uint32_t units, uint32_t slices)
{
    filled rows[BOARD_UNITS_MAX + 1];
    rows[units] = EACH * FILLED;
    for (uint32_t start = units; start-- > 0;) {
        rows[start] = rows[start + 1];
        for (uint32_t i = 0; i < f->counts[start]; i++) {
            uint32_t size = f->lists[start][i].units;
            filled with = fill_place(size, f->lists[start][i].slices, rows[start + size]);
            rows[start] = greater(rows[start], with);
        }
    }
    uint32_t byte = (slices < SLICES ? slices : SLICES) - 1;
    return slices ? (uint32_t)(rows[0] >> (8 * byte) & 0xff) - FILLED : 0;
}

uint32_t occupancy_fill(const struct occupancy *o, const struct board *b)
{
    struct places free;
    return list_places(o, b, &free) ? fill(&free, b->units, rest(o->slices, b->slices)) : 0;
}

uint32_t occupancy_worth(const struct occupancy *o, const struct board *b)
{
    struct places free;
    uint32_t worth = list_places(o, b, &free);
    return worth ? worth + WORTH_FILL * fill(&free, b->units, rest(o->slices, b->slices)) : 0;
}
