#include "plan/earliest.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plan/moments.h"
#include "plan/search.h"

struct look {
    const struct inventory *inv;
    const struct request *request;
    struct place_rules rules;
    const struct place_ahead *ahead;
};

/* NULL for `ret`: only whether it fits. */
static bool fits_at(const struct look *l, int64_t at_us, bool beside_others, struct place *ret)
{
    struct place_rules rules = l->rules;
    struct now then = { .boot_us = at_us };
    struct plan plan;
    AUTO(stock) struct stock s = STOCK_INIT;
    rules.kept = beside_others ? l->ahead->kept(l->ahead->arg, at_us) : NULL;
    stock_init(&s, l->inv, &rules, then, (struct stock_view){ .at_boot_us = at_us });
    if (search_take(&s, l->request) != search_wanted(l->request))
        return false;
    if (ret) {
        stock_write(&s, ret, &plan);
        plan_done(&plan); /* by then there will be other steps */
    }
    return true;
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Those of use, ascending, each once. */
static void all_moments(struct moments *m, const struct place_ahead *a, struct now now)
{
    size_t n = 0;
    ARRAY_ROOM(m->list, m->alloc, m->count + a->also_count);
    for (size_t i = 0; i < a->also_count; i++)
        if (a->also[i] > now.boot_us)
            m->list[m->count++] = a->also[i];
    qsort(m->list, m->count, sizeof *m->list, by_time);
    for (size_t i = 0; i < m->count && m->list[i] < a->before_us; i++)
        if (n == 0 || m->list[i] != m->list[n - 1])
            m->list[n++] = m->list[i];
    m->count = n;
}

/* The first at which it would fit without the others; m->count: at none. What fits stays so. */
static size_t first_alone(const struct look *l, const struct moments *m)
{
    size_t low = 0, high = m->count;
    if (!m->count || !fits_at(l, m->list[m->count - 1], false, NULL))
        return m->count;
    for (high--; low < high;) {
        size_t mid = low + (high - low) / 2;
        if (fits_at(l, m->list[mid], false, NULL))
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static bool room_at(const struct place_ahead *a, int64_t at_us, const struct place *p)
{
    return !a->room || a->room(a->arg, at_us, p);
}

/* Beside the others, and with room for it besides. */
static bool goes_at(const struct look *l, int64_t at_us, struct place *ret)
{
    if (!room_at(l->ahead, at_us, NULL) || !fits_at(l, at_us, true, ret))
        return false;
    if (room_at(l->ahead, at_us, ret))
        return true;
    place_done(ret);
    return false;
}

bool place_earliest(const struct inventory *inv, const struct request *r,
                    const struct place_rules *rules, struct now now, const struct place_ahead *a,
                    struct place *ret_place, int64_t *ret_when_boot_us)
{
    struct look l = { .inv = inv, .request = r, .rules = *rules, .ahead = a };
    AUTO(moments) struct moments m = moments_list(inv, rules->mode_hold_us, now);
    all_moments(&m, a, now);
    for (size_t i = first_alone(&l, &m); i < m.count; i++)
        if (goes_at(&l, m.list[i], ret_place)) {
            *ret_when_boot_us = m.list[i] == now.boot_us + 1 ? now.boot_us : m.list[i];
            return true;
        }
    return false;
}
