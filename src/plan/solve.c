#include "plan/solve.h"

#include <stdlib.h>
#include <string.h>

/* Smaller is better, first field first. */
enum { COST_BUSY, COST_LEFT_UNITS, COST_LEFT, COST_DESTROYED, COST_MOVED, COST_ROOM, COSTS };

/* How a wanted instance sits in one that is there. */
struct inside {
    bool fits; /* its compute instances find places */
    uint32_t busy_lost, destroyed;
    uint32_t starts[SOLVE_CIS];
    uint32_t kept[SOLVE_CIS];
};

struct solving {
    const struct board *board;
    const struct solve_gi *wants, *have;
    size_t want_count, have_count;
    bool leave_out;
    uint32_t starts[SOLVE_MAX];
    uint32_t left_units, left;
    uint32_t best[COSTS];
    struct inside inside[SOLVE_MAX][SOLVE_MAX + 1]; /* [wanted][there]; the last: in a new one */
    struct solve_result *ret;
};

/* ---- compute instances inside one GPU instance ---- */

struct seating {
    const struct solve_gi *want, *have; /* have NULL: a new one */
    uint32_t taken;                     /* compute slices, a bit mask */
    uint32_t starts[SOLVE_CIS];
    struct inside *best;
};

bool solve_ci_starts_at(const struct profile *p, uint32_t slices, uint32_t start)
{
    uint32_t step = slices == 3 ? 4 : slices; /* three slices lie in steps of four */
    return slices && start % step == 0 && start + slices <= p->slices;
}

static bool same_ci(const struct solve_gi *gi, const struct solve_ci *want,
                    const struct solve_ci *have)
{
    return want->slices == have->slices &&
           (want->id == have->id || want->slices == gi->profile->slices);
}

static void seat_compare(struct seating *s)
{
    struct inside now = { .fits = true };
    memcpy(now.starts, s->starts, sizeof now.starts);
    for (size_t h = 0; s->have && h < s->have->ci_count; h++) {
        const struct solve_ci *ci = &s->have->cis[h];
        now.kept[h] = SOLVE_CIS;
        for (uint32_t w = 0; w < s->want->ci_count; w++)
            if (s->starts[w] == ci->start && same_ci(s->want, &s->want->cis[w], ci))
                now.kept[h] = w;
        bool lost = now.kept[h] == SOLVE_CIS;
        now.busy_lost += lost && ci->busy;
        now.destroyed += lost && !ci->busy;
    }
    struct inside *best = s->best;
    if (!best->fits || now.busy_lost < best->busy_lost ||
        (now.busy_lost == best->busy_lost && now.destroyed < best->destroyed))
        *best = now;
}

static void seat(struct seating *s, uint32_t i)
{
    if (i == s->want->ci_count) {
        seat_compare(s);
        return;
    }
    const struct solve_ci *ci = &s->want->cis[i];
    uint32_t mask = (UINT32_C(1) << ci->slices) - 1;
    const struct solve_ci *before = i ? &ci[-1] : NULL;
    bool twin = before && before->slices == ci->slices && before->id == ci->id &&
                before->start == ci->start;
    for (uint32_t at = twin ? s->starts[i - 1] + 1 : 0; at < s->want->profile->slices; at++) {
        if ((ci->start != SOLVE_ANYWHERE && ci->start != at) || (s->taken & mask << at) ||
            !solve_ci_starts_at(s->want->profile, ci->slices, at))
            continue;
        s->taken |= mask << at;
        s->starts[i] = at;
        seat(s, i + 1);
        s->taken &= ~(mask << at);
    }
}

static void seat_all(struct solving *s)
{
    for (size_t w = 0; w < s->want_count; w++)
        for (size_t h = 0; h <= s->have_count; h++) {
            const struct solve_gi *have = h < s->have_count ? &s->have[h] : NULL;
            if (have && have->profile != s->wants[w].profile)
                continue;
            struct seating seating = { .want = &s->wants[w],
                                       .have = have,
                                       .best = &s->inside[w][have ? h : SOLVE_MAX] };
            seat(&seating, 0);
        }
}

/* ---- GPU instances on the card ---- */

static size_t find_have(const struct solving *s, size_t want)
{
    for (size_t h = 0; h < s->have_count; h++)
        if (s->have[h].profile == s->wants[want].profile && s->have[h].start == s->starts[want])
            return h;
    return SOLVE_MAX;
}

/* Instances that go, and are wanted elsewhere. */
static uint32_t count_moved(const struct solving *s, const uint32_t *kept)
{
    int balance[BOARD_PROFILES_MAX] = { 0 }; /* gone ones less those left to be made */
    uint32_t moved = 0;
    for (size_t h = 0; h < s->have_count; h++)
        if (s->have[h].profile && kept[h] == SOLVE_MAX)
            balance[s->have[h].profile - s->board->profiles]++;
    for (size_t w = 0; w < s->want_count; w++) {
        int *left = &balance[s->wants[w].profile - s->board->profiles];
        if (s->starts[w] != SOLVE_ANYWHERE && find_have(s, w) == SOLVE_MAX && *left > 0) {
            moved++;
            (*left)--;
        }
    }
    return moved;
}

static void lose(const struct solve_gi *gi, uint32_t *cost)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < gi->ci_count; i++)
        busy += gi->cis[i].busy;
    cost[COST_BUSY] += busy;
    cost[COST_DESTROYED] += gi->ci_count ? gi->ci_count - busy : 1;
}

static bool cheaper(const uint32_t *a, const uint32_t *b)
{
    for (size_t i = 0; i < COSTS; i++)
        if (a[i] != b[i])
            return a[i] < b[i];
    return false;
}

static void keep_best(struct solving *s, const uint32_t *cost, const uint32_t *kept)
{
    struct solve_result *r = s->ret;
    memcpy(s->best, cost, sizeof s->best);
    *r = (struct solve_result){ .found = true,
                                .left_out = s->left,
                                .busy_lost = cost[COST_BUSY],
                                .destroyed = cost[COST_DESTROYED],
                                .moved = cost[COST_MOVED] };
    memcpy(r->starts, s->starts, sizeof r->starts);
    memcpy(r->kept, kept, sizeof r->kept);
    for (size_t w = 0; w < s->want_count; w++) {
        size_t h = find_have(s, w);
        memcpy(r->ci_starts[w], s->inside[w][h].starts, sizeof r->ci_starts[w]);
        if (h != SOLVE_MAX)
            memcpy(r->ci_kept[h], s->inside[w][h].kept, sizeof r->ci_kept[h]);
    }
}

static void compare(struct solving *s, const struct occupancy *o)
{
    uint32_t cost[COSTS] = { [COST_LEFT_UNITS] = s->left_units, [COST_LEFT] = s->left };
    uint32_t kept[SOLVE_MAX];
    for (size_t h = 0; h < SOLVE_MAX; h++)
        kept[h] = SOLVE_MAX;
    for (size_t w = 0; w < s->want_count; w++) {
        size_t h = s->starts[w] == SOLVE_ANYWHERE ? SOLVE_MAX : find_have(s, w);
        if (h == SOLVE_MAX)
            continue;
        kept[h] = (uint32_t)w;
        cost[COST_BUSY] += s->inside[w][h].busy_lost;
        cost[COST_DESTROYED] += s->inside[w][h].destroyed;
    }
    for (size_t h = 0; h < s->have_count; h++)
        if (s->have[h].profile && kept[h] == SOLVE_MAX)
            lose(&s->have[h], cost);
    cost[COST_MOVED] = count_moved(s, kept);
    cost[COST_ROOM] = s->ret->found && !cheaper(cost, s->best) &&
                              memcmp(cost, s->best, COST_ROOM * sizeof *cost) != 0
                          ? 0 /* worse in any case */
                          : BOARD_PROFILES_MAX * BOARD_UNITS_MAX - occupancy_room(o, s->board);
    if (!s->ret->found || cheaper(cost, s->best))
        keep_best(s, cost, kept);
}

static bool same_want(const struct solve_gi *a, const struct solve_gi *b)
{
    if (a->profile != b->profile || a->start != b->start || a->ci_count != b->ci_count)
        return false;
    for (uint32_t i = 0; i < a->ci_count; i++)
        if (a->cis[i].id != b->cis[i].id || a->cis[i].slices != b->cis[i].slices ||
            a->cis[i].start != b->cis[i].start)
            return false;
    return true;
}

static void descend(struct solving *s, size_t i, const struct occupancy *o)
{
    if (i == s->want_count) {
        compare(s, o);
        return;
    }
    const struct solve_gi *w = &s->wants[i];
    bool twin = i > 0 && same_want(w, &s->wants[i - 1]);
    bool open = !twin || s->starts[i - 1] != SOLVE_ANYWHERE;
    for (uint32_t k = 0; open && k < w->profile->start_count; k++) {
        uint32_t start = w->profile->starts[k];
        if ((twin && start <= s->starts[i - 1]) ||
            (w->start != SOLVE_ANYWHERE && w->start != start) ||
            !occupancy_fits(o, s->board, w->profile, start))
            continue;
        s->starts[i] = start;
        if (!s->inside[i][SOLVE_MAX].fits)
            continue;
        struct occupancy with = *o;
        occupancy_add(&with, s->board, w->profile, start);
        descend(s, i + 1, &with);
    }
    if (!s->leave_out || (s->ret->found && !s->best[COST_BUSY] &&
                          s->left_units + w->profile->units > s->best[COST_LEFT_UNITS]))
        return;
    s->starts[i] = SOLVE_ANYWHERE;
    s->left_units += w->profile->units;
    s->left++;
    descend(s, i + 1, o);
    s->left_units -= w->profile->units;
    s->left--;
}

static int by_number(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

/* The hardest to place first; equal ones side by side, with their compute instances in order. */
static int by_size(const void *a, const void *b)
{
    const struct solve_gi *x = a, *y = b;
    int r = by_number(x->start == SOLVE_ANYWHERE, y->start == SOLVE_ANYWHERE);
    if (r == 0)
        r = by_number(y->profile->units, x->profile->units);
    if (r == 0)
        r = by_number(y->profile->slices, x->profile->slices);
    if (r == 0)
        r = by_number(x->profile->id, y->profile->id);
    if (r == 0)
        r = by_number(x->start, y->start);
    if (r == 0)
        r = by_number(x->ci_count, y->ci_count);
    for (uint32_t i = 0; r == 0 && i < x->ci_count; i++) {
        r = by_number(y->cis[i].slices, x->cis[i].slices);
        if (r == 0)
            r = by_number(x->cis[i].id, y->cis[i].id);
        if (r == 0)
            r = by_number(x->cis[i].start, y->cis[i].start);
    }
    return r;
}

static int by_ci(const void *a, const void *b)
{
    const struct solve_ci *x = a, *y = b;
    int r = by_number(x->start == SOLVE_ANYWHERE, y->start == SOLVE_ANYWHERE);
    if (r == 0)
        r = by_number(y->slices, x->slices);
    if (r == 0)
        r = by_number(x->id, y->id);
    return r ? r : by_number(x->start, y->start);
}

void solve(const struct board *b, struct solve_gi *wants, size_t want_count,
           const struct solve_gi *have, size_t have_count, bool leave_out, struct solve_result *ret)
{
    struct solving *s = calloc(1, sizeof *s);
    struct occupancy o = { 0 };
    if (!s)
        abort(); /* out of memory: as in base/text.h */
    for (size_t w = 0; w < want_count; w++)
        qsort(wants[w].cis, wants[w].ci_count, sizeof *wants[w].cis, by_ci);
    qsort(wants, want_count, sizeof *wants, by_size);
    *s = (struct solving){ .board = b,
                           .wants = wants,
                           .want_count = want_count,
                           .have = have,
                           .have_count = have_count,
                           .leave_out = leave_out,
                           .ret = ret };
    *ret = (struct solve_result){ .found = false };
    for (size_t h = 0; h < have_count; h++)
        if (!have[h].profile)
            occupancy_add_units(&o, have[h].start, have[h].units);
    seat_all(s);
    descend(s, 0, &o);
    free(s);
}
