#include "plan/stock.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool hold_counts(const struct hold *h, struct stock_view view)
{
    if (h->kind == HOLD_NONE || view.nobody)
        return false;
    return h->kind != HOLD_JOB || !h->until_boot_us || h->until_boot_us > view.at_boot_us;
}

/* When the last of those who are gone in this view left; 0: not known. */
static int64_t idle_since(const struct inventory_card *c, struct stock_view view)
{
    int64_t since = c->idle_since_boot_us;
    if (c->hold.kind == HOLD_JOB && c->hold.until_boot_us <= view.at_boot_us)
        since = c->hold.until_boot_us > since ? c->hold.until_boot_us : since;
    for (size_t i = 0; i < c->card.slice_count; i++) {
        const struct hold *h = &c->slices[i].hold;
        if (h->kind == HOLD_JOB && h->until_boot_us > since && h->until_boot_us <= view.at_boot_us)
            since = h->until_boot_us;
    }
    return since;
}

static enum stock_closed closed_for(const struct inventory_card *c, const struct place_rules *rules,
                                    enum card_ban ban, struct stock_view view)
{
    if (c->pool != POOL_QUEUE && !(rules && rules->slices_of_all))
        return STOCK_OTHER_POOL;
    if (view.nobody)
        return STOCK_OPEN;
    if (c->card.health != CARD_OK)
        return STOCK_UNHEALTHY;
    if (c->quarantined)
        return STOCK_QUARANTINED;
    if (ban == BAN_ALL || c->reserved[0])
        return STOCK_BANNED;
    if (c->card.mig_now != c->card.mig_pending && !c->no_turn)
        return STOCK_MODE_PENDING;
    return STOCK_OPEN;
}

static void account_piece(struct stock_card *c, const struct stock_piece *p, bool busy)
{
    struct occupancy *both[2] = { &c->all, busy ? &c->busy : NULL };
    for (int i = 0; i < 2; i++) {
        if (both[i] && p->profile)
            occupancy_add(both[i], c->board, p->profile, p->start);
        else if (both[i])
            occupancy_add_units(both[i], p->start, p->units);
    }
}

/*
 * Slices of one GPU instance lie side by side in the card's list. Planned ones have no id yet, so
 * it is the first unit that tells them apart.
 */
static size_t add_piece(struct stock_card *c, size_t first, struct stock_view view)
{
    const struct card *card = &c->from->card;
    const struct slice *s = &card->slices[first];
    struct stock_piece p = { .profile = board_profile_by_id(c->board, s->profile_id),
                             .start = s->start,
                             .units = s->units,
                             .first = first };
    bool busy = c->held || !p.profile;
    for (size_t i = first; i < card->slice_count && card->slices[i].start == s->start; i++) {
        busy = busy || hold_counts(&c->from->slices[i].hold, view);
        busy = busy || (c->from->slices[i].leaving && !view.nobody);
        p.kept = p.kept || c->from->slices[i].adopted;
        p.count++;
    }
    p.state = busy ? PIECE_BUSY : PIECE_IDLE;
    if (c->piece_count < STOCK_PIECES_MAX / 2)
        c->pieces[c->piece_count++] = p;
    account_piece(c, &p, busy || p.kept);
    c->keeps = c->keeps || p.kept;
    c->free = c->free && !busy;
    return first + p.count;
}

static bool may_turn(const struct stock_card *c, const struct place_rules *rules, struct now now,
                     struct stock_view view)
{
    const struct inventory_card *from = c->from;
    if (!c->free || c->keeps || c->no_cuts || !from->card.mig_capable)
        return false;
    if (from->no_turn && !view.nobody)
        return false;
    if (from->mode != MODE_AUTO)
        return (from->mode == MODE_SLICES) != c->mig; /* towards the only mode it may have */
    int64_t hold = rules ? rules->mode_hold_us : 0;
    int64_t since = idle_since(from, view);
    return view.nobody || hold == 0 || (since && now.boot_us - since >= hold);
}

static void keep(struct stock_card *c, const struct place_kept *k)
{
    c->no_whole = k->whole;
    c->no_slices = k->slices;
    c->kept_units = k->more.units;
    c->keeps_more = k->more.units || k->more.slices;
    occupancy_add_all(&c->busy, &k->more);
    occupancy_add_all(&c->all, &k->more);
}

static void open_card(struct stock_card *c, const struct inventory *inv, size_t index,
                      const struct place_rules *rules, struct now now, struct stock_view view)
{
    enum card_ban ban = rules && rules->bans && !view.nobody ? rules->bans[index] : BAN_NOTHING;
    c->from = &inv->cards[index];
    c->board = &c->from->card.board;
    c->index = index;
    c->closed = closed_for(c->from, rules, ban, view);
    c->no_cuts = ban == BAN_NEW_CUTS || c->from->laid_out || (c->from->no_cuts && !view.nobody);
    c->mig = c->from->card.mig_now;
    c->held = hold_counts(&c->from->hold, view);
    c->free = !c->held;
    for (size_t i = 0; c->mig && i < c->from->card.slice_count;)
        i = add_piece(c, i, view);
    if (rules && rules->kept && !view.nobody)
        keep(c, &rules->kept[index]);
    c->may_turn = may_turn(c, rules, now, view);
    c->room = occupancy_room(&c->busy, c->board);
}

void stock_init(struct stock *s, const struct inventory *inv, const struct place_rules *rules,
                struct now now, struct stock_view view)
{
    *s = (struct stock){ .card_count = inv->card_count };
    s->cards = mem_new(inv->card_count * sizeof *s->cards);
    for (size_t i = 0; i < inv->card_count; i++)
        open_card(&s->cards[i], inv, i, rules, now, view);
}

void stock_done(struct stock *s)
{
    free(s->cards);
    free(s->takings);
    *s = (struct stock){ .cards = NULL };
}

bool slice_is_bare(const struct slice *s)
{
    return s->ci == NOT_AN_INSTANCE && s->ci_slices == 0;
}

bool stock_card_gives_whole(const struct stock_card *c)
{
    return c->from->mode != MODE_SLICES;
}

bool stock_card_gives_slices(const struct stock_card *c)
{
    return c->from->mode != MODE_WHOLE && c->from->card.mig_capable && c->board->profile_count;
}

static void add_taking(struct stock *s, struct stock_taking t)
{
    ARRAY_ROOM(s->takings, s->taking_alloc, s->taking_count + 1);
    s->takings[s->taking_count++] = t;
    t.card->used = true;
    t.card->free = false;
}

void stock_take_whole(struct stock *s, struct stock_card *c, uint32_t task)
{
    if (c->mig) {
        c->turn = TURN_OFF;
        c->mig = false;
    }
    for (size_t i = 0; i < c->piece_count; i++)
        c->pieces[i].state = PIECE_DESTROYED;
    c->held = true;
    add_taking(s, (struct stock_taking){ .card = c, .whole = true, .task = task });
}

void stock_take_piece(struct stock *s, struct stock_card *c, size_t piece, uint32_t task)
{
    struct stock_piece *p = &c->pieces[piece];
    p->state = PIECE_TAKEN;
    if (!p->kept)
        occupancy_add(&c->busy, c->board, p->profile, p->start);
    c->room = occupancy_room(&c->busy, c->board);
    add_taking(s, (struct stock_taking){ .card = c, .piece = piece, .task = task });
}

void stock_take_new(struct stock *s, struct stock_card *c, const struct profile *p, uint32_t start,
                    uint32_t destroy, uint32_t task)
{
    for (size_t i = 0; i < c->piece_count; i++) {
        if (!(destroy >> i & 1))
            continue;
        c->pieces[i].state = PIECE_DESTROYED;
        occupancy_remove(&c->all, c->board, c->pieces[i].profile, c->pieces[i].start);
    }
    if (!c->mig) {
        c->turn = TURN_ON;
        c->mig = true;
    }
    size_t piece = c->piece_count++;
    c->pieces[piece] = (struct stock_piece){
        .profile = p, .start = start, .units = p->units, .state = PIECE_IDLE
    };
    occupancy_add(&c->all, c->board, p, start);
    stock_take_piece(s, c, piece, task);
}

static void fill_step(struct step *step, const struct stock_piece *p)
{
    step->profile_id = p->profile->id;
    memcpy(step->profile, p->profile->name, sizeof step->profile);
    step->start = p->start;
    step->units = p->units;
}

static void write_destroy(const struct stock_card *c, const struct stock_piece *p,
                          struct plan *plan)
{
    const struct card *card = &c->from->card;
    for (size_t i = p->first; i < p->first + p->count; i++) {
        const struct slice *s = &card->slices[i];
        if (s->ci == NOT_AN_INSTANCE)
            continue;
        struct step *step = plan_add(plan, STEP_CI_DESTROY, card);
        fill_step(step, p);
        step->gi = s->gi;
        step->ci = s->ci;
        step->ci_profile_id = s->ci_profile_id;
        step->ci_start = s->ci_start;
        step->ci_slices = s->ci_slices;
        memcpy(step->uuid, s->uuid, sizeof step->uuid);
    }
    struct step *step = plan_add(plan, STEP_GI_DESTROY, card);
    fill_step(step, p);
    step->gi = card->slices[p->first].gi;
}

static void write_create(const struct stock_card *c, const struct stock_piece *p, struct plan *plan)
{
    const struct card *card = &c->from->card;
    const struct ci_profile *ci = profile_full_ci(p->profile);
    bool made = p->count == 0;
    if (!made && !slice_is_bare(&card->slices[p->first]))
        return; /* reused as it is */
    if (made)
        fill_step(plan_add(plan, STEP_GI_CREATE, card), p);
    struct step *step = plan_add(plan, STEP_CI_CREATE, card);
    fill_step(step, p);
    step->gi = made ? NOT_AN_INSTANCE : card->slices[p->first].gi;
    step->ci_profile_id = ci ? ci->id : 0;
    step->ci_slices = ci ? ci->slices : 0;
}

static void write_card(const struct stock_card *c, struct plan *plan)
{
    for (size_t i = 0; i < c->piece_count; i++)
        if (c->pieces[i].state == PIECE_DESTROYED)
            write_destroy(c, &c->pieces[i], plan);
    if (c->turn != TURN_NOT)
        (void)plan_add(plan, c->turn == TURN_ON ? STEP_MIG_ON : STEP_MIG_OFF, &c->from->card);
    for (size_t i = 0; i < c->piece_count; i++)
        if (c->pieces[i].state == PIECE_TAKEN)
            write_create(c, &c->pieces[i], plan);
}

static void write_slice(const struct stock_taking *t, struct placed *item)
{
    const struct inventory_card *from = t->card->from;
    const struct stock_piece *p = &t->card->pieces[t->piece];
    item->profile_id = p->profile->id;
    memcpy(item->profile, p->profile->name, sizeof item->profile);
    item->start = p->start;
    item->units = p->units;
    item->compute_ppm = profile_compute_ppm(t->card->board, p->profile);
    item->mem_ppm = profile_mem_ppm(t->card->board, p->profile);
    if (!p->count || slice_is_bare(&from->card.slices[p->first]))
        return;
    item->gi = from->card.slices[p->first].gi;
    item->ci = from->card.slices[p->first].ci;
    item->generation = from->slices[p->first].generation;
    memcpy(item->uuid, from->card.slices[p->first].uuid, sizeof item->uuid);
}

static void write_taking(const struct stock_taking *t, struct place *place)
{
    const struct card *card = &t->card->from->card;
    struct placed *item = place_add(place);
    memcpy(item->card_uuid, card->uuid, sizeof item->card_uuid);
    item->ordinal = card->ordinal;
    item->task = t->task;
    item->whole = t->whole;
    item->gi = NOT_AN_INSTANCE;
    item->ci = NOT_AN_INSTANCE;
    if (!t->whole) {
        write_slice(t, item);
        return;
    }
    memcpy(item->uuid, card->uuid, sizeof item->uuid);
    item->compute_ppm = PPM;
    item->mem_ppm = PPM;
}

void stock_write(const struct stock *s, struct place *ret_place, struct plan *ret_plan)
{
    *ret_place = (struct place){ .items = NULL };
    *ret_plan = (struct plan)PLAN_INIT;
    for (size_t i = 0; i < s->taking_count; i++)
        write_taking(&s->takings[i], ret_place);
    for (size_t i = 0; i < s->card_count; i++)
        write_card(&s->cards[i], ret_plan);
}
