#include "plan/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/address.h"
#include "plan/wanted.h"

static const char *const verdict_words[] = {
    "as wanted",   "to do",       "needs reboot", "busy",
    "needs reset", "unreachable", "impossible",   "invalid"
};
static const char *const fate_words[] = { "keep", "destroy", "create", "move away", "move here" };

const char *layout_verdict_word(enum layout_verdict v)
{
    return verdict_words[v];
}

const char *layout_fate_word(enum layout_fate f)
{
    return fate_words[f];
}

void layout_change_done(struct layout_change *ch)
{
    free(ch->lines);
    plan_done(&ch->steps);
    *ch = (struct layout_change)LAYOUT_CHANGE_INIT;
}

/* One card on its way to an answer. */
struct planning {
    const struct inventory_card *from;
    const struct card *card;
    const struct board *board;
    const struct layout_wish *wish;
    struct solve_gi have[SOLVE_MAX];
    size_t have_count;
    struct wanted want;
    struct solve_result found;
    struct layout_change *ret;
};

static void refuse(struct planning *p, enum layout_verdict v, const char *words)
{
    p->ret->verdict = v;
    (void)snprintf(p->ret->why, sizeof p->ret->why, "%s", words); /* a longer text is cut */
}

/* ---- what is there ---- */

static bool in_use(const struct inventory_card *c, size_t slice)
{
    return c->slices[slice].hold.kind != HOLD_NONE;
}

static void add_have(struct planning *p, size_t slice)
{
    const struct slice *s = &p->card->slices[slice];
    struct solve_gi *gi = p->have_count ? &p->have[p->have_count - 1] : NULL;
    const struct slice *last = gi ? &p->card->slices[gi->index] : NULL;
    if (!last || last->gi != s->gi || last->start != s->start) {
        if (p->have_count == SOLVE_MAX)
            return; /* no card has as many */
        gi = &p->have[p->have_count++];
        *gi = (struct solve_gi){ .profile = board_profile_by_id(p->board, s->profile_id),
                                 .start = s->start,
                                 .units = s->units,
                                 .index = slice };
    }
    if (s->ci == NOT_AN_INSTANCE || gi->ci_count == SOLVE_CIS)
        return;
    gi->cis[gi->ci_count++] =
        (struct solve_ci){ .id = s->ci_profile_id,
                           .slices = s->full && gi->profile ? gi->profile->slices : s->ci_slices,
                           .start = s->full ? 0 : s->ci_start,
                           .busy = in_use(p->from, slice),
                           .index = slice };
}

/* ---- who is in the way ---- */

static void add_holder(struct text *t, const struct inventory_card *c, const struct hold *h)
{
    if (h->kind == HOLD_JOB) {
        text_addf(t, " (#%" PRIu64 "%s%s)", h->job_id, h->user[0] ? " " : "", h->user);
        return;
    }
    text_addf(t, " (pid %d", (int)h->pid);
    for (size_t i = 0; i < c->card.process_count; i++)
        if (c->card.processes[i].pid == h->pid && c->card.processes[i].name[0]) {
            text_addf(t, " %s", c->card.processes[i].name);
            break;
        }
    text_add(t, ")");
}

static void add_blocker(struct text *t, const struct planning *p, size_t slice)
{
    text_add(t, t->len ? ", " : "");
    address_add(t, p->card, &p->card->slices[slice]);
    add_holder(t, p->from, &p->from->slices[slice].hold);
}

/* Everybody on the card: for a change of its mode. */
static bool add_everybody(struct text *t, const struct planning *p)
{
    if (p->from->hold.kind != HOLD_NONE) {
        text_addf(t, "gpu%u", p->card->ordinal);
        add_holder(t, p->from, &p->from->hold);
    }
    for (size_t i = 0; i < p->card->slice_count; i++)
        if (in_use(p->from, i))
            add_blocker(t, p, i);
    return t->len > 0;
}

static void blocked(struct planning *p, const struct text *who, const char *for_what)
{
    auto_free char *words = text_fmt("in use: %s; %s when that ends", who->buf, for_what);
    refuse(p, LAYOUT_BUSY, words);
}

/* ---- steps and lines ---- */

static struct layout_line *add_line(struct planning *p, enum layout_fate fate, size_t slice)
{
    struct layout_change *r = p->ret;
    ARRAY_ROOM(r->lines, r->line_alloc, r->line_count + 1);
    struct layout_line *l = &r->lines[r->line_count++];
    *l = (struct layout_line){ .fate = fate, .slice = slice, .ci_start = LAYOUT_ANYWHERE };
    if (slice == SIZE_MAX)
        return l;
    const struct slice *s = &p->card->slices[slice];
    AUTO(text) struct text name = TEXT_INIT;
    slice_add_profile(&name, p->card, s);
    (void)snprintf(l->profile, sizeof l->profile, "%s", name.buf);
    l->start = s->start;
    l->ci_start = s->ci == NOT_AN_INSTANCE || s->full ? LAYOUT_ANYWHERE : s->ci_start;
    l->busy = in_use(p->from, slice);
    return l;
}

static struct step *add_step(struct planning *p, enum step_kind kind, const struct profile *profile,
                             uint32_t start)
{
    struct step *s = plan_add(&p->ret->steps, kind, p->card);
    s->profile_id = profile->id;
    memcpy(s->profile, profile->name, sizeof s->profile);
    s->start = start;
    s->units = profile->units;
    return s;
}

static void destroy_ci(struct planning *p, const struct solve_gi *gi, size_t slice)
{
    const struct slice *s = &p->card->slices[slice];
    struct step *step = add_step(p, STEP_CI_DESTROY, gi->profile, gi->start);
    step->gi = s->gi;
    step->ci = s->ci;
    step->ci_profile_id = s->ci_profile_id;
    step->ci_start = s->ci_start;
    step->ci_slices = s->ci_slices;
    memcpy(step->uuid, s->uuid, sizeof step->uuid);
}

static void destroy_gi(struct planning *p, const struct solve_gi *gi)
{
    for (uint32_t i = 0; i < gi->ci_count; i++)
        destroy_ci(p, gi, gi->cis[i].index);
    add_step(p, STEP_GI_DESTROY, gi->profile, gi->start)->gi = p->card->slices[gi->index].gi;
}

static void gi_lines(struct planning *p, const struct solve_gi *gi, enum layout_fate fate)
{
    for (uint32_t i = 0; i < gi->ci_count; i++)
        (void)add_line(p, fate, gi->cis[i].index);
    if (!gi->ci_count)
        (void)add_line(p, fate, gi->index);
}

static void create_ci(struct planning *p, const struct solve_gi *gi, uint32_t start, uint32_t ci,
                      uint32_t ci_start, enum layout_fate fate, uint32_t gi_id)
{
    const struct solve_ci *want = &gi->cis[ci];
    bool part = want->slices < gi->profile->slices;
    const struct ci_profile *kind = part ? profile_ci_by_id(gi->profile, want->id) : NULL;
    struct step *s = add_step(p, STEP_CI_CREATE, gi->profile, start);
    s->gi = gi_id;
    s->ci_profile_id = want->id;
    s->ci_slices = want->slices;
    s->ci_start = ci_start;
    struct layout_line *l = add_line(p, fate, SIZE_MAX);
    AUTO(text) struct text name = TEXT_INIT;
    if (part && !kind)
        text_addf(&name, "%uc.", want->slices);
    text_add(&name, kind ? kind->name : gi->profile->name);
    (void)snprintf(l->profile, sizeof l->profile, "%s", name.buf);
    l->start = start;
    l->ci_start = part ? ci_start : LAYOUT_ANYWHERE;
    p->ret->created++;
}

/* What is in the way of nothing stays; inside what stays compute instances may change. */
static void destroy_all(struct planning *p)
{
    int away[BOARD_PROFILES_MAX] = { 0 };
    for (size_t w = 0; w < p->want.count; w++)
        away[p->want.gis[w].profile - p->board->profiles]++;
    for (size_t h = 0; h < p->have_count; h++)
        if (p->have[h].profile && p->found.kept[h] != SOLVE_MAX)
            away[p->have[h].profile - p->board->profiles]--;
    for (size_t h = 0; h < p->have_count; h++) {
        const struct solve_gi *gi = &p->have[h];
        if (!gi->profile) {
            gi_lines(p, gi, FATE_KEEP);
            continue;
        }
        if (p->found.kept[h] == SOLVE_MAX) {
            bool moves = away[gi->profile - p->board->profiles]-- > 0;
            destroy_gi(p, gi);
            gi_lines(p, gi, moves ? FATE_MOVE_AWAY : FATE_DESTROY);
            continue;
        }
        for (uint32_t i = 0; i < gi->ci_count; i++) {
            bool kept = p->found.ci_kept[h][i] != SOLVE_CIS;
            if (!kept)
                destroy_ci(p, gi, gi->cis[i].index);
            (void)add_line(p, kept ? FATE_KEEP : FATE_DESTROY, gi->cis[i].index);
            p->ret->kept += kept;
        }
    }
}

static size_t have_of(const struct planning *p, size_t want)
{
    for (size_t h = 0; h < p->have_count; h++)
        if (p->found.kept[h] == want)
            return h;
    return SOLVE_MAX;
}

static bool ci_there(const struct planning *p, size_t have, uint32_t ci)
{
    for (uint32_t i = 0; have != SOLVE_MAX && i < p->have[have].ci_count; i++)
        if (p->found.ci_kept[have][i] == ci)
            return true;
    return false;
}

/* How many of this profile moved away and were not made again yet. */
static uint32_t moved_away(const struct planning *p, const struct profile *profile)
{
    uint32_t n = 0;
    for (size_t h = 0; h < p->have_count; h++)
        for (size_t i = 0; i < p->ret->line_count; i++)
            n += p->have[h].profile == profile && p->ret->lines[i].fate == FATE_MOVE_AWAY &&
                 p->ret->lines[i].slice == p->have[h].index;
    return n;
}

static void create_gi(struct planning *p, size_t want, uint32_t *left_to_move)
{
    const struct solve_gi *gi = &p->want.gis[want];
    uint32_t start = p->found.starts[want];
    size_t have = have_of(p, want);
    uint32_t *left = &left_to_move[gi->profile - p->board->profiles];
    enum layout_fate fate = FATE_CREATE;
    if (have == SOLVE_MAX) {
        fate = *left > 0 ? FATE_MOVE_HERE : FATE_CREATE;
        *left -= *left > 0;
        (void)add_step(p, STEP_GI_CREATE, gi->profile, start);
    }
    uint32_t id = have == SOLVE_MAX ? NOT_AN_INSTANCE : p->card->slices[p->have[have].index].gi;
    for (uint32_t i = 0; i < gi->ci_count; i++)
        if (!ci_there(p, have, i))
            create_ci(p, gi, start, i, p->found.ci_starts[want][i], fate, id);
}

static void create_all(struct planning *p)
{
    uint32_t left[BOARD_PROFILES_MAX];
    for (uint32_t i = 0; i < p->board->profile_count; i++)
        left[i] = moved_away(p, &p->board->profiles[i]);
    for (uint32_t at = 0; at < BOARD_UNITS_MAX; at++)
        for (size_t w = 0; w < p->want.count; w++)
            if (p->found.starts[w] == at)
                create_gi(p, w, left);
}

static int by_place(const void *a, const void *b)
{
    const struct layout_line *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    uint32_t cx = x->ci_start == LAYOUT_ANYWHERE ? 0 : x->ci_start;
    uint32_t cy = y->ci_start == LAYOUT_ANYWHERE ? 0 : y->ci_start;
    if (cx != cy)
        return cx < cy ? -1 : 1;
    return x->slice < y->slice ? -1 : x->slice > y->slice; /* what goes before what comes */
}

/* ---- answers ---- */

static void finish(struct planning *p)
{
    struct layout_change *r = p->ret;
    if (r->line_count)
        qsort(r->lines, r->line_count, sizeof *r->lines, by_place);
    for (size_t i = 0; i < r->line_count; i++)
        r->destroyed += r->lines[i].fate == FATE_DESTROY || r->lines[i].fate == FATE_MOVE_AWAY;
    r->moved = p->found.moved;
    r->verdict = r->steps.count ? LAYOUT_TO_DO : LAYOUT_AS_WANTED;
}

/* The most of it that fits, without touching what is busy. */
static void offer_nearest(struct planning *p)
{
    struct solve_result r;
    uint32_t counts[BOARD_PROFILES_MAX] = { 0 };
    AUTO(text) struct text t = TEXT_INIT;
    solve(p->board, p->want.gis, p->want.count, p->have, p->have_count, true, &r);
    if (!r.found || r.busy_lost || r.left_out == p->want.count)
        return;
    for (size_t w = 0; w < p->want.count; w++)
        if (r.starts[w] != SOLVE_ANYWHERE)
            counts[p->want.gis[w].profile - p->board->profiles]++;
    wanted_add_list(&t, p->board, counts);
    (void)snprintf(p->ret->nearest, sizeof p->ret->nearest, "%s", t.buf);
}

/* Two wanted at places of their own that cover the same units. */
static bool add_overlap(const struct planning *p, struct text *t)
{
    for (size_t i = 0; i < p->want.count; i++)
        for (size_t k = 0; k < i; k++) {
            const struct solve_gi *a = &p->want.gis[k], *b = &p->want.gis[i];
            if (a->start == SOLVE_ANYWHERE || b->start == SOLVE_ANYWHERE ||
                a->start + a->units <= b->start || b->start + b->units <= a->start)
                continue;
            text_addf(t, ": %s@%u and %s@%u would have the same memory units", a->profile->name,
                      a->start, b->profile->name, b->start);
            return true;
        }
    return false;
}

/* One that is there, of a profile nobody knows here, so that nothing is ever done to it. */
static bool add_unknown(const struct planning *p, struct text *t)
{
    for (size_t h = 0; h < p->have_count; h++) {
        const struct solve_gi *g = &p->have[h];
        if (g->profile)
            continue;
        text_addf(t,
                  ": the slice at %u, of a profile that this version does not know, is left alone, "
                  "and beside it that does not fit",
                  g->start);
        return true;
    }
    return false;
}

static void refuse_impossible(struct planning *p)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    wanted_add_list(&t, p->board, p->want.asked);
    if (wanted_check_sums(p->board, &p->want, &e) < 0)
        text_addf(&t, ": %s", e.text);
    else if (!add_overlap(p, &t) && !add_unknown(p, &t))
        text_add(&t, ": the sums fit, and no arrangement of them does, since each profile begins "
                     "only at its own places");
    refuse(p, LAYOUT_IMPOSSIBLE, t.buf);
}

static bool sums_fit(const struct planning *p)
{
    return p->want.count < SOLVE_MAX && wanted_check_sums(p->board, &p->want, NULL) == 0;
}

static void refuse_busy(struct planning *p)
{
    AUTO(text) struct text who = TEXT_INIT;
    for (size_t h = 0; h < p->have_count; h++)
        for (uint32_t i = 0; i < p->have[h].ci_count; i++) {
            bool goes = p->found.kept[h] == SOLVE_MAX || p->found.ci_kept[h][i] == SOLVE_CIS;
            if (p->have[h].profile && p->have[h].cis[i].busy && goes)
                add_blocker(&who, p, p->have[h].cis[i].index);
        }
    blocked(p, &who, "possible");
    offer_nearest(p);
}

static void turn_on(struct planning *p)
{
    AUTO(text) struct text who = TEXT_INIT;
    bool on = p->card->mig_now && p->card->mig_pending;
    if (on)
        return;
    p->ret->turn = 1;
    (void)plan_add(&p->ret->steps, STEP_MIG_ON, p->card);
    if (!p->card->mig_now && add_everybody(&who, p))
        blocked(p, &who, "MIG can be turned on");
}

static void plan_slices(struct planning *p)
{
    struct err e = ERR_INIT;
    bool on = p->card->mig_now;
    for (size_t i = 0; on && i < p->card->slice_count; i++)
        add_have(p, i);
    int code = wanted_read(p->board, p->wish, &p->want, &e);
    (void)snprintf(p->ret->warning, sizeof p->ret->warning, "%s", p->want.warning);
    if (code < 0) {
        refuse(p, LAYOUT_INVALID, e.text);
        return;
    }
    if (sums_fit(p))
        solve(p->board, p->want.gis, p->want.count, p->have, p->have_count, false, &p->found);
    if (!p->found.found) {
        refuse_impossible(p);
        offer_nearest(p);
        return;
    }
    if (p->found.busy_lost) {
        refuse_busy(p);
        return;
    }
    turn_on(p);
    if (p->ret->verdict != LAYOUT_AS_WANTED)
        return;
    destroy_all(p);
    create_all(p);
    finish(p);
}

static void plan_whole(struct planning *p)
{
    AUTO(text) struct text who = TEXT_INIT;
    if (!p->card->mig_capable || (!p->card->mig_now && !p->card->mig_pending))
        return;
    p->ret->turn = 0;
    if (p->card->mig_now && add_everybody(&who, p)) {
        blocked(p, &who, "MIG can be turned off");
        return;
    }
    for (size_t i = 0; p->card->mig_now && i < p->card->slice_count; i++)
        add_have(p, i);
    for (size_t h = 0; h < p->have_count; h++) {
        if (!p->have[h].profile) {
            refuse(p, LAYOUT_INVALID,
                   "it has slices of a profile that this version does not know; they are left "
                   "alone, so MIG stays on");
            return;
        }
        destroy_gi(p, &p->have[h]);
        gi_lines(p, &p->have[h], FATE_DESTROY);
    }
    (void)plan_add(&p->ret->steps, STEP_MIG_OFF, p->card);
    finish(p);
}

/* What is in the way of looking at all. */
static bool refuse_card(struct planning *p, int mig)
{
    const struct card *c = p->card;
    if (c->health == CARD_RESET_REQUIRED) {
        refuse(p, LAYOUT_NEEDS_RESET,
               c->trouble[0] ? c->trouble : "the driver wants a reset of it before anything else");
    } else if (c->health != CARD_OK) {
        auto_free char *words = text_fmt("the card is %s%s%s", card_health_word(c->health),
                                         c->trouble[0] ? ": " : "", c->trouble);
        refuse(p, LAYOUT_UNREACHABLE, words);
    } else if (mig == 1 && !c->mig_capable) {
        auto_free char *words = text_fmt("%s cannot be cut (no MIG); mode: whole is what it can be",
                                         board_short_name(&c->board));
        refuse(p, LAYOUT_INVALID, words);
    } else if (mig == 1 && c->mig_now && !(c->known & KNOW_SLICES)) {
        refuse(p, LAYOUT_UNREACHABLE, "the driver does not list its slices");
    }
    return p->ret->verdict != LAYOUT_AS_WANTED;
}

void layout_plan(const struct inventory_card *c, const struct layout_wish *w,
                 struct layout_change *ret)
{
    auto_free struct planning *p = mem_new(sizeof *p);
    int mig = layout_wish_mig(w);
    *ret = (struct layout_change){ .turn = -1 };
    *p = (struct planning){
        .from = c, .card = &c->card, .board = &c->card.board, .wish = w, .ret = ret
    };
    if (mig < 0 || refuse_card(p, mig))
        return;
    if (mig == 0)
        plan_whole(p);
    else if (w->has_slices)
        plan_slices(p);
    else {
        turn_on(p);
        if (ret->verdict == LAYOUT_AS_WANTED)
            finish(p);
    }
    if (ret->verdict != LAYOUT_TO_DO)
        plan_done(&ret->steps);
}
