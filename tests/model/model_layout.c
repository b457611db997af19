/*
 * Random cards and wishes against a brute-force oracle that knows nothing of
 * the solver: every choice of starts is tried, and counted by hand. The answer
 * must be as good as the best of them in every number; its steps must lead to
 * the wish, touch nothing that is held, and leave nothing to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../unit/dice.h"
#include "../unit/layouts.h"
#include "plan/occupancy.h"

#define ROUNDS 6000
#define WANTS_MAX 6

struct want {
    uint32_t profile; /* position on the board */
    uint32_t start;   /* or LAYOUT_ANYWHERE */
};

struct oracle {
    const struct inventory_card *card;
    const struct want *wants;
    size_t count;
    uint32_t starts[WANTS_MAX];
    bool possible;
    uint32_t best[4]; /* busy lost, idle destroyed, moved, room missing */
};

static bool kept(const struct oracle *o, const struct slice *s)
{
    for (size_t w = 0; w < o->count; w++)
        if (o->card->card.board.profiles[o->wants[w].profile].id == s->profile_id &&
            o->starts[w] == s->start)
            return true;
    return false;
}

static bool is_there(const struct card *c, uint32_t id, uint32_t start)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].profile_id == id && c->slices[i].start == start)
            return true;
    return false;
}

static void count(struct oracle *o)
{
    const struct board *b = &o->card->card.board;
    const struct card *c = &o->card->card;
    uint32_t cost[4] = { 0 };
    struct occupancy all = { 0 };
    for (size_t w = 0; w < o->count; w++) {
        if (!occupancy_fits(&all, b, &b->profiles[o->wants[w].profile], o->starts[w]))
            return;
        occupancy_add(&all, b, &b->profiles[o->wants[w].profile], o->starts[w]);
    }
    for (size_t i = 0; i < c->slice_count; i++)
        if (!kept(o, &c->slices[i]))
            cost[o->card->slices[i].hold.kind == HOLD_NONE]++;
    for (uint32_t p = 0; p < b->profile_count; p++) {
        uint32_t gone = 0, made = 0;
        for (size_t i = 0; i < c->slice_count; i++)
            gone += c->slices[i].profile_id == b->profiles[p].id && !kept(o, &c->slices[i]);
        for (size_t w = 0; w < o->count; w++)
            made += o->wants[w].profile == p && !is_there(c, b->profiles[p].id, o->starts[w]);
        cost[2] += gone < made ? gone : made;
    }
    cost[3] = 1000 - occupancy_room(&all, b);
    bool less = !o->possible;
    for (size_t i = 0; !less && i < 4 && cost[i] <= o->best[i]; i++)
        less = cost[i] < o->best[i];
    if (less)
        memcpy(o->best, cost, sizeof cost);
    o->possible = true;
}

static void try_all(struct oracle *o, size_t w)
{
    if (w == o->count) {
        count(o);
        return;
    }
    const struct profile *p = &o->card->card.board.profiles[o->wants[w].profile];
    for (uint32_t k = 0; k < p->start_count; k++)
        if (o->wants[w].start == LAYOUT_ANYWHERE || o->wants[w].start == p->starts[k]) {
            o->starts[w] = p->starts[k];
            try_all(o, w + 1);
        }
}

static void random_card(struct dice *d, struct inventory_card *c)
{
    const struct board *b = &c->card.board;
    struct occupancy o = { 0 };
    for (uint64_t n = dice_below(d, 8); n > 0; n--) {
        const struct profile *p = &b->profiles[dice_below(d, b->profile_count)];
        uint32_t start = p->starts[dice_below(d, p->start_count)];
        if (!occupancy_fits(&o, b, p, start))
            continue;
        occupancy_add(&o, b, p, start);
        (void)card_cut(c, p->name, start, dice_below(d, 4) == 0 ? 7 : 0);
    }
}

/* Half of the wishes have something of what is there, or hardly any would be possible. */
static size_t random_wish(struct dice *d, const struct inventory_card *c, struct want *ret)
{
    const struct board *b = &c->card.board;
    size_t n = dice_below(d, WANTS_MAX + 1);
    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct want){ (uint32_t)dice_below(d, b->profile_count), LAYOUT_ANYWHERE };
        const struct slice *like = c->card.slice_count && dice_bool(d)
                                       ? &c->card.slices[dice_below(d, c->card.slice_count)]
                                       : NULL;
        if (like)
            ret[i].profile = (uint32_t)(board_profile_by_id(b, like->profile_id) - b->profiles);
        const struct profile *p = &b->profiles[ret[i].profile];
        if (dice_below(d, 4) == 0)
            ret[i].start = p->starts[dice_below(d, p->start_count)];
    }
    return n;
}

static char *wish_text(const struct board *b, const struct want *wants, size_t n)
{
    struct text t = TEXT_INIT;
    text_add(&t, "slices: [");
    for (size_t i = 0; i < n; i++) {
        text_addf(&t, "%s%s", i ? ", " : "", b->profiles[wants[i].profile].name);
        if (wants[i].start != LAYOUT_ANYWHERE)
            text_addf(&t, "@%u", wants[i].start);
    }
    text_add(&t, "]");
    return text_take(&t);
}

static void check_after(const struct inventory_card *c, const struct layout_change *ch,
                        const char *wish, size_t wanted)
{
    struct inventory_card after;
    layouts_after(c, &ch->steps, &after);
    assert_int_equal(after.card.slice_count, wanted);
    for (size_t i = 0; i < c->card.slice_count; i++) {
        if (c->slices[i].hold.kind == HOLD_NONE)
            continue;
        bool same = false;
        for (size_t k = 0; k < after.card.slice_count; k++)
            same = same ||
                   memcmp(&after.card.slices[k], &c->card.slices[i], sizeof c->card.slices[i]) == 0;
        assert_true(same);
    }
    AUTO(layout_change) struct layout_change again = LAYOUT_CHANGE_INIT;
    layouts_plan(&after, wish, &again);
    assert_int_equal(again.verdict, LAYOUT_AS_WANTED);
    layouts_after_done(&after);
}

static uint32_t room_after(const struct inventory_card *c, const struct layout_change *ch)
{
    struct inventory_card after;
    struct occupancy o = { 0 };
    const struct board *b = &c->card.board;
    layouts_after(c, &ch->steps, &after);
    for (size_t i = 0; i < after.card.slice_count; i++) {
        const struct profile *p = board_profile_by_id(b, after.card.slices[i].profile_id);
        assert_true(occupancy_fits(&o, b, p, after.card.slices[i].start));
        occupancy_add(&o, b, p, after.card.slices[i].start);
    }
    layouts_after_done(&after);
    return occupancy_room(&o, b);
}

static void round_of(struct dice *d, const char *board, size_t *ret_seen)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    struct want wants[WANTS_MAX];
    struct inventory_card *c = layouts_card(&inv, board);
    random_card(d, c);
    struct oracle o = { .card = c, .wants = wants, .count = random_wish(d, c, wants) };
    try_all(&o, 0);
    auto_free char *wish = wish_text(&c->card.board, wants, o.count);
    layouts_plan(c, wish, &ch);
    enum layout_verdict expected = !o.possible ? LAYOUT_IMPOSSIBLE
                                   : o.best[0] ? LAYOUT_BUSY
                                               : ch.verdict;
    if (ch.verdict != expected || (o.possible && !o.best[0] && ch.verdict > LAYOUT_TO_DO)) {
        auto_free char *was = layouts_text(&c->card);
        fail_msg("%s with %s: %s is %s: %s", board, was, wish, layout_verdict_word(ch.verdict),
                 ch.why);
    }
    ret_seen[ch.verdict]++;
    if (ch.verdict > LAYOUT_TO_DO)
        return;
    assert_int_equal(ch.destroyed, o.best[1]);
    assert_int_equal(ch.moved, o.best[2]);
    assert_int_equal(room_after(c, &ch), 1000 - o.best[3]);
    check_after(c, &ch, wish, o.count);
}

/* Of all boards there are. */
static struct field_words cut_boards(void)
{
    struct field_words all = { .words = NULL };
    size_t n = 0;
    assert_int_equal(board_keys(&all, NULL), 0);
    for (size_t i = 0; i < all.count; i++) {
        auto_free struct board *b = mem_new(sizeof *b);
        assert_int_equal(board_find(all.words[i], b, NULL), 0);
        char *word = all.words[i];
        all.words[i] = all.words[n];
        all.words[n] = word;
        n += b->profile_count != 0;
    }
    assert_true(n > 10);
    for (size_t i = n; i < all.count; i++)
        free(all.words[i]);
    all.count = n;
    return all;
}

static void every_answer_is_as_good_as_the_best(void **state)
{
    (void)state;
    AUTO(field_words) struct field_words boards = cut_boards();
    struct dice d = dice_new(7);
    size_t seen[LAYOUT_INVALID + 1] = { 0 };
    for (int i = 0; i < ROUNDS; i++)
        round_of(&d, boards.words[dice_below(&d, boards.count)], seen);
    printf("# %zu as wanted, %zu to do, %zu busy, %zu impossible\n", seen[LAYOUT_AS_WANTED],
           seen[LAYOUT_TO_DO], seen[LAYOUT_BUSY], seen[LAYOUT_IMPOSSIBLE]);
    assert_true(seen[LAYOUT_TO_DO] > 100 && seen[LAYOUT_BUSY] > 100 &&
                seen[LAYOUT_IMPOSSIBLE] > 100 && seen[LAYOUT_AS_WANTED] > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_answer_is_as_good_as_the_best) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
