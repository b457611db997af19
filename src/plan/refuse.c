#include "plan/refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define NAMED_MAX 4 /* cards, holders or boards that one sentence names */

static bool same_geometry(const struct board *a, const struct board *b)
{
    if (strcmp(a->name, b->name) != 0 || a->profile_count != b->profile_count)
        return false;
    for (uint32_t i = 0; i < a->profile_count; i++)
        if (strcmp(a->profiles[i].name, b->profiles[i].name) != 0)
            return false;
    return true;
}

/* Is the board of card `i` one that no open card before it has? */
static bool first_of_board(const struct stock *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!s->cards[k].closed && same_geometry(s->cards[k].board, s->cards[i].board))
            return false;
    return true;
}

static void add_boards(struct text *t, const struct stock *s)
{
    int named = 0;
    for (size_t i = 0; i < s->card_count && named < NAMED_MAX; i++) {
        if (s->cards[i].closed || !first_of_board(s, i))
            continue;
        auto_free char *sentence = board_profiles_sentence(s->cards[i].board);
        text_addf(t, "%s%s", named++ ? "; " : " ", sentence);
    }
    text_add(t, ".");
}

static bool board_serves(const struct stock_card *c, const struct request *r)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    return request_fits(r, c->board, fits) > 0;
}

/* Can the card give anything that serves one task: fits, in a mode that gives it? */
static bool card_serves(const struct stock_card *c, const struct request *r)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    size_t n = request_fits(r, c->board, fits);
    for (size_t i = 0; i < n; i++)
        if (fits[i].profile ? stock_card_gives_slices(c) : stock_card_gives_whole(c))
            return true;
    return false;
}

/* "2g.20gb" into 2 and 20; false when it is written otherwise. */
static bool profile_numbers(const char *name, unsigned int *ret_slices, unsigned int *ret_gb)
{
    return sscanf(name, "%2ug.%4ugb", ret_slices, ret_gb) == 2;
}

/* "2g" */
static bool slices_alone(const char *name, unsigned int *ret_slices)
{
    int end = 0;
    return sscanf(name, "%2ug%n", ret_slices, &end) == 1 && end > 0 && !name[end];
}

static unsigned int apart(unsigned int a, unsigned int b)
{
    return a > b ? a - b : b - a;
}

/* The profile most like the one asked, over all open cards; NULL: nothing to compare with. */
static const struct profile *nearest(const struct stock *s, const char *asked, unsigned int *ret_gb)
{
    const struct profile *best = NULL;
    unsigned int slices, best_apart = UINT32_MAX;
    *ret_gb = 0;
    if (!profile_numbers(asked, &slices, ret_gb) && !slices_alone(asked, &slices))
        return NULL;
    for (size_t i = 0; i < s->card_count; i++) {
        const struct board *b = s->cards[i].board;
        for (uint32_t k = 0; !s->cards[i].closed && k < b->profile_count; k++) {
            unsigned int has_slices, has_gb;
            if (!profile_numbers(b->profiles[k].name, &has_slices, &has_gb))
                continue;
            unsigned int d = 1000 * apart(slices, has_slices) + apart(*ret_gb, has_gb);
            if (d < best_apart) {
                best_apart = d;
                best = &b->profiles[k];
            }
        }
    }
    return best;
}

static void refuse_profile(const struct stock *s, const struct request *r, struct text *t)
{
    unsigned int gb;
    const struct profile *p = nearest(s, r->profile, &gb);
    text_addf(t, "no card here has %s.", r->profile);
    add_boards(t, s);
    if (p && gb)
        text_addf(t, " Nearest: --slice %s (or say what you need: --gpu-mem %uG).", p->name, gb);
    else if (p)
        text_addf(t, " Nearest: --slice %s.", p->name);
}

static void refuse_need(const struct stock *s, const struct request *r, struct text *t)
{
    const struct stock_card *largest = NULL;
    for (size_t i = 0; i < s->card_count; i++)
        if (!s->cards[i].closed &&
            (!largest || s->cards[i].board->mem_bytes > largest->board->mem_bytes))
            largest = &s->cards[i];
    text_add(t, "no card here has ");
    struct request one = *r;
    one.count = 1;
    request_add(t, &one);
    text_addf(t, ": the largest is gpu%u, %s with ", largest->from->card.ordinal,
              board_short_name(largest->board));
    text_add_size(t, largest->board->mem_bytes);
    text_add(t, ". Tasks cannot share memory of several cards; more cards for one task is --gpus");
}

static void add_cards(struct text *t, const struct stock *s, const struct request *r)
{
    int named = 0;
    for (size_t i = 0; i < s->card_count; i++) {
        if (s->cards[i].closed || !board_serves(&s->cards[i], r))
            continue;
        if (named++ == NAMED_MAX)
            break;
        text_addf(t, "%sgpu%u", named > 1 ? ", " : "", s->cards[i].from->card.ordinal);
    }
}

/* The first of them; there is one. */
static uint32_t first_card(const struct stock *s, const struct request *r)
{
    size_t i = 0;
    while (i + 1 < s->card_count && (s->cards[i].closed || !board_serves(&s->cards[i], r)))
        i++;
    return s->cards[i].from->card.ordinal;
}

/* Boards would do, but the administrator's modes do not. */
static void refuse_mode(const struct stock *s, const struct request *r, struct text *t)
{
    request_add(t, r);
    text_addf(t, " could come from ");
    add_cards(t, s, r);
    text_addf(t,
              ", but only %s are given there; an operator can change that: divvy mode gpu%u auto",
              r->kind == REQUEST_CARDS ? "slices" : "whole cards", first_card(s, r));
}

/* Slices that were there before Divvy stay, and so may be what is in the way for ever. */
static void add_kept(struct text *t, const struct stock *s, const struct request *r)
{
    for (size_t i = 0; i < s->card_count; i++) {
        const struct stock_card *c = &s->cards[i];
        if (c->closed || !(c->keeps || c->from->laid_out) || !card_serves(c, r))
            continue;
        if (c->from->laid_out) {
            text_addf(t,
                      ". gpu%u keeps the slices of its layout; an operator can change that: divvy "
                      "layout apply",
                      c->from->card.ordinal);
            return;
        }
        text_addf(t,
                  ". gpu%u has slices that Divvy found and keeps until an operator destroys them",
                  c->from->card.ordinal);
        return;
    }
}

static void refuse_count(const struct stock *s, const struct request *r, uint32_t served,
                         struct text *t)
{
    if (r->kind == REQUEST_CARDS) {
        text_addf(t, "this server gives %u whole card%s to jobs, not %u", served,
                  served == 1 ? "" : "s", r->count);
        text_add(t, "; slices do not make up for cards: nothing joins them");
        return;
    }
    struct request one = *r;
    one.count = 1;
    text_addf(t, "this server has room for %u x ", served);
    request_add(t, &one);
    text_add(t, " at a time (");
    add_cards(t, s, r);
    text_addf(t, "), not %u; ask for fewer%s", r->count,
              r->spread ? ", or without --spread: it wants each task on another card" : "");
}

void refuse_never(const struct stock *s, const struct request *r, uint32_t served, struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    size_t open = 0, boards = 0, serving = 0;
    for (size_t i = 0; i < s->card_count; i++) {
        const struct stock_card *c = &s->cards[i];
        open += !c->closed;
        boards += !c->closed && board_serves(c, r);
        serving += !c->closed && card_serves(c, r);
    }
    if (!s->card_count)
        text_add(&t, "this server has no NVIDIA card");
    else if (!open)
        text_add(&t, "no card of this server is given to jobs yet; an operator can change that: "
                     "divvy pool gpu0 queue");
    else if (!boards && r->kind == REQUEST_SLICES)
        refuse_profile(s, r, &t);
    else if (!boards)
        refuse_need(s, r, &t);
    else if (!serving && r->kind == REQUEST_CARDS && r->count > open)
        text_addf(&t, "this server has %zu card%s for jobs, not %u", open, open == 1 ? "" : "s",
                  r->count);
    else if (!serving)
        refuse_mode(s, r, &t);
    else
        refuse_count(s, r, served, &t);
    if (serving)
        add_kept(&t, s, r);
    err_set(e, -EINVAL, "%s", t.buf);
}

static void add_holder(struct text *t, const struct hold *h)
{
    if (h->kind == HOLD_JOB)
        text_addf(t, "#%llu (%s)", (unsigned long long)h->job_id, h->user);
    else
        text_addf(t, "pid %d (%s), which is no Divvy job", (int)h->pid, h->name);
}

static bool same_holder(const struct hold *a, const struct hold *b)
{
    return a->kind == b->kind && (a->kind == HOLD_JOB ? a->job_id == b->job_id : a->pid == b->pid);
}

static void add_slice_holders(struct text *t, const struct inventory_card *c)
{
    int named = 0;
    for (size_t i = 0; i < c->card.slice_count; i++) {
        const struct hold *h = &c->slices[i].hold;
        bool said = h->kind == HOLD_NONE;
        for (size_t k = 0; k < i && !said; k++)
            said = same_holder(h, &c->slices[k].hold);
        if (said)
            continue;
        if (named == NAMED_MAX) {
            text_add(t, " …");
            break;
        }
        text_add(t, named++ ? ", " : "used by ");
        add_holder(t, h);
    }
}

static void add_state(struct text *t, const struct stock_card *c)
{
    const struct inventory_card *from = c->from;
    text_addf(t, "gpu%u is ", from->card.ordinal);
    if (c->closed == STOCK_UNHEALTHY)
        text_add(t, card_health_word(from->card.health));
    else if (c->closed == STOCK_QUARANTINED)
        text_addf(t, "in quarantine: %s", from->quarantine);
    else if (c->closed == STOCK_BANNED && from->reserved[0])
        text_addf(t, "reserved: %s", from->reserved);
    else if (c->closed == STOCK_BANNED)
        text_add(t, "kept for a job that waits longer");
    else if (c->closed == STOCK_MODE_PENDING)
        text_add(t, "waiting for a reset that changes its MIG mode");
    else if (c->held) {
        text_add(t, "held by ");
        add_holder(t, &from->hold);
    } else if (!c->free)
        add_slice_holders(t, from);
    else if (from->laid_out)
        text_add(t, "keeping the slices of its layout");
    else if (c->no_cuts)
        text_add(t, "not to be cut now");
    else if (from->no_turn)
        text_addf(t, "free, but its MIG mode stays %s until this machine is rebooted",
                  c->mig ? "on" : "off");
    else
        text_addf(t, "free, but its MIG mode stays %s until it was empty for a while",
                  c->mig ? "on" : "off");
}

void refuse_later(const struct stock *s, const struct request *r, uint32_t served, struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    int named = 0;
    text_add(&t, "waits for ");
    request_add(&t, r);
    if (served)
        text_addf(&t, " (%u free now)", served);
    for (size_t i = 0; i < s->card_count; i++) {
        const struct stock_card *c = &s->cards[i];
        if (c->closed == STOCK_OTHER_POOL || !card_serves(c, r))
            continue;
        if (served && c->free && !c->closed)
            continue;
        if (named == NAMED_MAX) {
            text_add(&t, "; …");
            break;
        }
        text_add(&t, named++ ? "; " : ": ");
        add_state(&t, c);
    }
    err_set(e, -EAGAIN, "%s", t.buf);
}
