#include "plan/wanted.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "2c.3g.40gb+me": compute slices (0: all), slices, GB and the suffix. */
struct spelling {
    uint32_t ci_slices, slices, gb;
    const char *rest;
};

static bool scan(const char **p, char unit, uint32_t *ret)
{
    uint32_t n = 0;
    const char *end = *p;
    for (; *end >= '0' && *end <= '9' && n <= 9999; end++)
        n = 10 * n + (uint32_t)(*end - '0');
    if (end == *p || tolower((unsigned char)*end) != unit || n > 9999)
        return false;
    *ret = n;
    *p = end + 1;
    return true;
}

static bool spell(const char *word, struct spelling *ret)
{
    struct spelling s = { .ci_slices = 0 };
    const char *p = strncasecmp(word, "MIG ", 4) == 0 ? word + 4 : word;
    if (scan(&p, 'c', &s.ci_slices) && *p++ != '.')
        return false;
    if (!scan(&p, 'g', &s.slices) || *p++ != '.' || !scan(&p, 'g', &s.gb) ||
        tolower((unsigned char)*p++) != 'b')
        return false;
    s.rest = p;
    *ret = s;
    return true;
}

/*
 * Rounded another way, or before a board was for sale: 7g.79gb is 7g.80gb, 3g.95gb and 7g.189gb
 * are a GB200's 3g.93gb and 7g.186gb; 1g.5gb is not 1g.6gb.
 */
static bool same_size(uint32_t a, uint32_t b)
{
    uint32_t most = a > b ? a : b;
    uint32_t apart = a > b ? a - b : b - a;
    return 40 * apart <= most || (apart <= 1 && 10 * apart <= most);
}

const struct profile *layout_find_profile(const struct board *b, const char *word, bool *ret_other)
{
    struct spelling s, own;
    *ret_other = false;
    const struct profile *p = board_profile_by_name(b, word);
    if (p || !spell(word, &s))
        return p;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        if (!spell(b->profiles[i].name, &own) || own.slices != s.slices ||
            strcasecmp(own.rest, s.rest) != 0)
            continue;
        if (own.gb == s.gb) {
            p = &b->profiles[i];
            break;
        }
        if (!p && same_size(own.gb, s.gb))
            p = &b->profiles[i];
    }
    *ret_other = p && spell(p->name, &own) && own.gb != s.gb;
    return p;
}

/*
 * The id of a compute instance of so many slices, fewer than all. Drivers tell them only of a GPU
 * instance that is there; until then it is the ids that all boards share.
 */
static bool find_ci(const struct profile *p, uint32_t slices, uint32_t *ret_id)
{
    for (uint32_t i = 0; i < p->ci_count; i++)
        if (p->cis[i].slices == slices) {
            *ret_id = p->cis[i].id;
            return true;
        }
    if (p->ci_count > 1 || slices > 2)
        return false;
    *ret_id = slices - 1;
    return slices > 0;
}

/* One piece of the wish, understood. */
struct reading {
    const struct board *board;
    const struct layout_piece *piece;
    const struct profile *profile;
    struct solve_ci ci;
    struct wanted *ret;
};

static int no_profile(const struct reading *r, struct err *e)
{
    auto_free char *all = board_profiles_sentence(r->board);
    const struct profile *near = NULL;
    struct spelling s, own;
    if (!r->board->profile_count)
        return err_set(e, -EINVAL, "%s", all);
    for (uint32_t i = 0; spell(r->piece->profile, &s) && i < r->board->profile_count; i++) {
        const struct profile *p = &r->board->profiles[i];
        if (spell(p->name, &own) && own.slices == s.slices && strcasecmp(own.rest, s.rest) == 0 &&
            (!near || p->units < near->units))
            near = p;
    }
    return err_set(e, -EINVAL, "this card has no %s; %s%s%s", r->piece->profile, all,
                   near ? ". Nearest: " : "", near ? near->name : "");
}

static void warn(struct reading *r)
{
    struct wanted *w = r->ret;
    size_t len = strlen(w->warning);
    (void)snprintf(w->warning + len, sizeof w->warning - len, "%s%s is called %s here",
                   len ? "; " : "", r->piece->profile, r->profile->name); /* a longer one is cut */
}

static int understand(struct reading *r, struct err *e)
{
    struct spelling s = { .ci_slices = 0 };
    bool other;
    r->profile = layout_find_profile(r->board, r->piece->profile, &other);
    if (!r->profile)
        return no_profile(r, e);
    if (other)
        warn(r);
    const struct profile *p = r->profile;
    (void)spell(r->piece->profile, &s); /* an odd name of the board's own has no parts */
    if (s.ci_slices >= p->slices)
        s.ci_slices = s.ci_slices == p->slices ? 0 : s.ci_slices;
    const struct ci_profile *full = profile_full_ci(p);
    uint32_t id = full ? full->id : 0;
    if (s.ci_slices && !find_ci(p, s.ci_slices, &id))
        return err_set(e, -EINVAL, "%s cannot hold a compute instance of %u slices", p->name,
                       s.ci_slices);
    r->ci = (struct solve_ci){ .id = id,
                               .slices = s.ci_slices ? s.ci_slices : p->slices,
                               .start = s.ci_slices ? r->piece->ci_start : 0 };
    return 0;
}

static int check_place(const struct reading *r, struct err *e)
{
    const struct profile *p = r->profile;
    AUTO(text) struct text all = TEXT_INIT;
    bool part = r->ci.slices < p->slices;
    if (r->piece->ci_start != LAYOUT_ANYWHERE && !part && r->piece->ci_start != 0)
        return err_set(e, -EINVAL, "%s takes all of its GPU instance and begins at .0", p->name);
    if (r->piece->start == LAYOUT_ANYWHERE)
        return 0;
    if (part && r->piece->ci_start != LAYOUT_ANYWHERE &&
        !solve_ci_starts_at(p, r->ci.slices, r->piece->ci_start))
        return err_set(e, -EINVAL, "%s cannot begin at compute slice %u of its GPU instance",
                       r->piece->profile, r->piece->ci_start);
    if (profile_starts_at(p, r->piece->start))
        return 0;
    for (uint32_t i = 0; i < p->start_count; i++)
        text_addf(&all, "%s%u", i ? (i + 1 == p->start_count ? " or " : ", ") : "", p->starts[i]);
    return err_set(e, -EINVAL, "%s cannot begin at %u; it begins at %s", p->name, r->piece->start,
                   all.buf);
}

static uint32_t slices_used(const struct solve_gi *gi)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < gi->ci_count; i++)
        used += gi->cis[i].slices;
    return used;
}

/* Can this compute instance join those that are wanted in `gi`? Tried, since starts are coarse. */
static bool may_join(const struct reading *r, const struct solve_gi *gi)
{
    struct solve_gi with = *gi;
    struct solve_result result;
    if (gi->profile != r->profile || gi->start != r->piece->start || gi->ci_count == SOLVE_CIS ||
        slices_used(gi) + r->ci.slices > r->profile->slices)
        return false;
    with.start = r->profile->starts[0];
    with.cis[with.ci_count++] = r->ci;
    solve(r->board, &with, 1, NULL, 0, false, &result);
    return result.found;
}

static void add_gi(struct reading *r)
{
    struct wanted *w = r->ret;
    w->asked[r->profile - r->board->profiles]++;
    if (w->count == SOLVE_MAX)
        return; /* the sums are beyond any board */
    struct solve_gi *gi = &w->gis[w->count++];
    *gi = (struct solve_gi){
        .profile = r->profile, .start = r->piece->start, .units = r->profile->units, .ci_count = 1
    };
    gi->cis[0] = r->ci;
}

static int add_part(struct reading *r, struct err *e)
{
    for (size_t i = 0; i < r->ret->count; i++)
        if (may_join(r, &r->ret->gis[i])) {
            struct solve_gi *gi = &r->ret->gis[i];
            gi->cis[gi->ci_count++] = r->ci;
            return 0;
        }
    for (size_t i = 0; r->piece->start != LAYOUT_ANYWHERE && i < r->ret->count; i++)
        if (r->ret->gis[i].profile == r->profile && r->ret->gis[i].start == r->piece->start)
            return err_set(e, -EINVAL, "the compute instances of %s@%u do not fit into it together",
                           r->profile->name, r->piece->start);
    add_gi(r);
    return 0;
}

static int add_piece(struct reading *r, struct err *e)
{
    int code = check_place(r, e);
    for (uint32_t n = 0; code == 0 && n < r->piece->count; n++) {
        if (r->ci.slices < r->profile->slices)
            code = add_part(r, e);
        else
            add_gi(r);
    }
    return code;
}

/* Placed before free ones and large before small, so that parts are packed alike in any order. */
static int by_packing(const void *a, const void *b)
{
    const struct reading *x = a, *y = b;
    bool free_x = x->piece->start == LAYOUT_ANYWHERE, free_y = y->piece->start == LAYOUT_ANYWHERE;
    if (free_x != free_y)
        return free_x - free_y;
    if (x->profile != y->profile)
        return x->profile < y->profile ? -1 : 1;
    if (x->piece->start != y->piece->start)
        return x->piece->start < y->piece->start ? -1 : 1;
    if (x->ci.slices != y->ci.slices)
        return x->ci.slices > y->ci.slices ? -1 : 1;
    return (x->ci.start > y->ci.start) - (x->ci.start < y->ci.start);
}

int wanted_read(const struct board *b, const struct layout_wish *w, struct wanted *ret,
                struct err *e)
{
    auto_free struct reading *list = mem_new((w->piece_count + 1) * sizeof *list);
    int code = 0;
    *ret = (struct wanted){ .count = 0 };
    for (size_t i = 0; code == 0 && i < w->piece_count; i++) {
        list[i] = (struct reading){ .board = b, .piece = &w->pieces[i], .ret = ret };
        code = understand(&list[i], e);
    }
    if (code == 0)
        qsort(list, w->piece_count, sizeof *list, by_packing);
    for (size_t i = 0; code == 0 && i < w->piece_count; i++)
        code = add_piece(&list[i], e);
    return code;
}

static int beyond(struct err *e, const char *what, uint64_t needs, uint32_t has)
{
    return err_set(e, -ENOSPC, "needs %llu of %u %s", (unsigned long long)needs, has, what);
}

int wanted_check_sums(const struct board *b, const struct wanted *w, struct err *e)
{
    uint64_t units = 0, slices = 0, decoders = 0, encoders = 0, jpegs = 0, ofas = 0;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        units += (uint64_t)w->asked[i] * p->units;
        slices += (uint64_t)w->asked[i] * p->slices;
        decoders += (uint64_t)w->asked[i] * p->decoders;
        encoders += (uint64_t)w->asked[i] * p->encoders;
        jpegs += (uint64_t)w->asked[i] * p->jpegs;
        ofas += (uint64_t)w->asked[i] * p->ofas;
    }
    if (units > b->units)
        return beyond(e, "memory units", units, b->units);
    if (b->slices && slices > b->slices)
        return beyond(e, "compute slices", slices, b->slices);
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].max && w->asked[i] > b->profiles[i].max)
            return err_set(e, -ENOSPC, "needs %u %s, and a card holds at most %u", w->asked[i],
                           b->profiles[i].name, b->profiles[i].max);
    if (b->decoders && decoders > b->decoders)
        return beyond(e, "decoders", decoders, b->decoders);
    if (b->encoders && encoders > b->encoders)
        return beyond(e, "encoders", encoders, b->encoders);
    if (b->jpegs && jpegs > b->jpegs)
        return beyond(e, "JPEG engines", jpegs, b->jpegs);
    if (b->ofas && ofas > b->ofas)
        return beyond(e, "OFA engines", ofas, b->ofas);
    return 0;
}

void wanted_add_list(struct text *t, const struct board *b, const uint32_t *counts)
{
    size_t n = 0;
    for (uint32_t units = BOARD_UNITS_MAX; units > 0; units--)
        for (uint32_t i = 0; i < b->profile_count; i++) {
            if (!counts[i] || b->profiles[i].units != units)
                continue;
            if (counts[i] > 1)
                text_addf(t, "%s%u×%s", n++ ? " + " : "", counts[i], b->profiles[i].name);
            else
                text_addf(t, "%s%s", n++ ? " + " : "", b->profiles[i].name);
        }
    if (!n)
        text_add(t, "nothing");
}
