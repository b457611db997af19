/* What a layout changes, card by card, as a screen and as JSON. */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "cli/gpus_draw.h"
#include "cli/layout.h"
#include "cli/table.h"
#include "model/card_json.h"

const char *layout_user_name(uid_t uid, void *arg)
{
    (void)arg; /* the system knows */
    const struct passwd *user = getpwuid(uid);
    return user ? user->pw_name : NULL;
}

/* "2g.20gb@4", "1c.3g.40gb@4.0" */
static void add_place(struct text *t, const struct layout_line *l)
{
    text_addf(t, "%s@%u", l->profile, l->start);
    if (l->ci_start != LAYOUT_ANYWHERE)
        text_addf(t, ".%u", l->ci_start);
}

/* How many lines from here on are made alike: they are drawn as one. */
static size_t run_of(const struct layout_change *ch, size_t i)
{
    size_t n = 1;
    while (i + n < ch->line_count && ch->lines[i].fate == FATE_CREATE &&
           ch->lines[i + n].fate == FATE_CREATE &&
           strcmp(ch->lines[i + n].profile, ch->lines[i].profile) == 0)
        n++;
    return n;
}

struct drawing {
    const struct layout_work *work;
    const struct inventory_card *card;
    const struct screen *screen;
    struct table *table;
    bool named; /* the card's name stands already */
};

static void row(struct drawing *d, const char *what, enum colour c, const char *rest)
{
    if (d->named)
        table_cell(d->table, "");
    else
        table_cellf(d->table, "gpu%u", d->card->card.ordinal);
    d->named = true;
    table_cell(d->table, what);
    table_tint(d->table, c);
    table_cell(d->table, rest);
}

static void draw_lines(struct drawing *d, const struct layout_change *ch)
{
    static const enum colour colours[] = { COLOUR_DIM, COLOUR_BAD, COLOUR_GOOD, COLOUR_WAIT,
                                           COLOUR_WAIT };
    struct gpus_look look = { .screen = d->screen, .user_name = layout_user_name };
    for (size_t i = 0; i < ch->line_count;) {
        const struct layout_line *l = &ch->lines[i];
        AUTO(text) struct text t = TEXT_INIT;
        size_t n = run_of(ch, i);
        add_place(&t, l);
        if (n > 1) {
            text_add(&t, n > 2 ? " … " : ", ");
            add_place(&t, &ch->lines[i + n - 1]);
        }
        if (n > 2)
            text_addf(&t, "  (%zu)", n);
        if (l->slice != SIZE_MAX) {
            text_add(&t, "  ");
            gpus_add_hold(&t, &d->work->inv, d->card, &d->card->slices[l->slice].hold, &look);
        }
        row(d, layout_fate_word(l->fate), colours[l->fate], t.buf);
        i += n;
    }
}

static void draw_turn(struct drawing *d, const struct layout_change *ch)
{
    if (ch->turn < 0)
        return;
    bool reset = d->card->card.board.activation == MIG_BY_RESET;
    row(d, ch->turn ? "MIG on" : "MIG off", COLOUR_WAIT,
        reset ? "the driver resets this card for it" : "no reset needed");
}

static void draw_refusal(struct drawing *d, const struct layout_change *ch)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, ch->why);
    if (ch->nearest[0])
        text_addf(&t, ". What fits: %s", ch->nearest);
    bool passes = ch->verdict == LAYOUT_BUSY || ch->verdict == LAYOUT_NEEDS_REBOOT;
    row(d, ch->verdict == LAYOUT_BUSY ? "wait" : layout_verdict_word(ch->verdict),
        passes ? COLOUR_WAIT : COLOUR_BAD, t.buf);
}

/* Who is on it, one a line, and what else holds it. */
static void draw_holders(struct drawing *d, const struct holders *h)
{
    AUTO(text) struct text notes = TEXT_INIT;
    for (size_t i = 0; i < h->count; i++) {
        AUTO(text) struct text t = TEXT_INIT;
        holder_add_text(&t, &h->list[i], layout_user_name, NULL);
        row(d, "on it", COLOUR_WAIT, t.buf);
    }
    holders_add_notes(&notes, h);
    if (notes.len)
        row(d, "note", COLOUR_DIM, notes.buf);
}

static void draw_card(struct drawing *d, const struct layout_change *ch)
{
    const struct holders *h = d->work->holders ? &d->work->holders[ch - d->work->changes] : NULL;
    d->named = false;
    if (ch->warning[0])
        row(d, "note", COLOUR_WAIT, ch->warning);
    if (ch->verdict == LAYOUT_AS_WANTED)
        row(d, "as wanted", COLOUR_GOOD, "");
    if (ch->verdict > LAYOUT_TO_DO)
        draw_refusal(d, ch);
    else
        draw_turn(d, ch);
    if (h)
        draw_holders(d, h);
    if (ch->verdict == LAYOUT_TO_DO)
        draw_lines(d, ch);
}

static void draw_sum(const struct layout_work *w, struct text *ret)
{
    size_t cards = 0, steps = 0, ready = 0;
    AUTO(text) struct text names = TEXT_INIT;
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct layout_change *ch = &w->changes[i];
        if (!w->wishes[i])
            continue;
        cards++;
        steps += ch->steps.count;
        if (ch->verdict == LAYOUT_TO_DO)
            text_addf(&names, "%sgpu%u", ready++ ? ", " : "", w->inv.cards[i].card.ordinal);
    }
    text_addf(ret, "%zu card%s, %zu step%s", cards, cards == 1 ? "" : "s", steps,
              steps == 1 ? "" : "s");
    int status = layout_work_status(w);
    bool never = status == LAYOUT_STATUS_INVALID || status == LAYOUT_STATUS_IMPOSSIBLE;
    text_addf(ret, "%s\n", steps && !never ? ", nothing that runs is touched." : ".");
    if (never)
        text_add(ret, "Nothing of it is applied while a card cannot be as wished.\n");
    if (status == LAYOUT_STATUS_BUSY && ready)
        text_addf(ret, "Now: %s. The rest when it is free: divvy layout apply --wait\n", names.buf);
}

void layout_draw(const struct layout_work *w, const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = { .untitled = true };
    struct drawing d = { .work = w, .screen = s, .table = &t };
    table_column(&t, "GPU", 0);
    table_column(&t, "WHAT", 0);
    table_column(&t, "SLICE", TABLE_WRAP);
    for (size_t i = 0; i < w->inv.card_count; i++) {
        d.card = &w->inv.cards[i];
        if (w->wishes[i])
            draw_card(&d, &w->changes[i]);
    }
    table_draw(&t, s, ret);
    draw_sum(w, ret);
}

static json_t *lines_json(const struct inventory_card *c, const struct layout_change *ch)
{
    json_t *list = json_array();
    for (size_t i = 0; i < ch->line_count; i++) {
        const struct layout_line *l = &ch->lines[i];
        AUTO(text) struct text t = TEXT_INIT;
        text_addf(&t, "gpu%u/", c->card.ordinal);
        add_place(&t, l);
        json_t *j = json_object();
        json_put_text(j, "fate", layout_fate_word(l->fate));
        json_put_text(j, "address", t.buf);
        if (l->slice != SIZE_MAX)
            json_put_text(j, "uuid", c->card.slices[l->slice].uuid);
        (void)json_array_append_new(list, j); /* out of memory: a short list */
    }
    return list;
}

json_t *layout_json(const struct layout_work *w)
{
    json_t *list = json_array();
    json_t *j = json_object();
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct layout_change *ch = &w->changes[i];
        if (!w->wishes[i])
            continue;
        json_t *card = json_object();
        json_put_u64(card, "gpu", w->inv.cards[i].card.ordinal);
        json_put_text(card, "uuid", w->inv.cards[i].card.uuid);
        json_put_text(card, "verdict", layout_verdict_word(ch->verdict));
        json_put_text(card, "why", ch->why[0] ? ch->why : NULL);
        json_put_text(card, "nearest", ch->nearest[0] ? ch->nearest : NULL);
        json_put_text(card, "warning", ch->warning[0] ? ch->warning : NULL);
        json_put_text(card, "mig", ch->turn < 0 ? NULL : ch->turn ? "on" : "off");
        json_put_u64(card, "kept", ch->kept);
        json_put_u64(card, "destroyed", ch->destroyed);
        json_put_u64(card, "moved", ch->moved);
        json_put_u64(card, "created", ch->created);
        json_put(card, "slices", lines_json(&w->inv.cards[i], ch));
        json_put(card, "steps", plan_to_json(&ch->steps));
        if (w->holders)
            json_put(card, "holders", holders_json(&w->holders[i], layout_user_name, NULL));
        (void)json_array_append_new(list, card); /* out of memory: a short list */
    }
    json_put(j, "cards", list);
    return j;
}
