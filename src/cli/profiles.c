#include <string.h>

#include "cli/cards.h"
#include "cli/profiles_draw.h"
#include "config/board.h"
#include "model/board_json.h"

struct profiles_call {
    const char *board; /* --board */
    const char *card;
};

static const char doc[] =
    "How a card can be cut: its profiles, where each may begin, and how many are free now.\vFREE "
    "counts what jobs could be given now, beside what somebody has; cards that are not in the "
    "queue's pool give nothing. --board tells the same of a board that is not here, from its "
    "file.\n\n"
    "  divvy profiles gpu0\n  divvy profiles --board h100-80gb-sxm";

static const struct argp_option options[] = {
    { "board", 'b', "NAME", 0, "of this board, without hardware", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct profiles_call *c = state->input;
    if (key == 'b') {
        c->board = arg;
        return 0;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (c->card)
        verb_refuse("one card at a time, not '%s' as well", arg);
    c->card = arg;
    return 0;
}

static int print_board(const struct session *s, const char *key)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    auto_free struct board *b = mem_new(sizeof *b);
    if (board_find(key, b, &e) < 0)
        return verb_fail(s, &e);
    if (s->json) {
        auto_json json_t *j = board_to_json(b);
        return verb_print_json(j);
    }
    text_addf(&t, "%s (board file %s)\n", b->name, b->key);
    profiles_draw(b, NULL, 0, &s->screen, &t);
    return verb_print(&t);
}

/* Cards of the same model and driver are told of together. */
static bool same_board(const struct board *a, const struct board *b)
{
    return strcmp(a->name, b->name) == 0 && a->profile_count == b->profile_count;
}

static bool told_before(const struct inventory_card *const *cards, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (same_board(&cards[k]->card.board, &cards[i]->card.board))
            return true;
    return false;
}

static void draw_model(const struct session *s, const struct inventory_card *const *cards,
                       size_t count, size_t first, struct text *ret)
{
    auto_free const struct inventory_card **same = mem_new((count + 1) * sizeof *same);
    size_t n = 0;
    for (size_t i = first; i < count; i++)
        if (same_board(&cards[first]->card.board, &cards[i]->card.board))
            same[n++] = cards[i];
    text_addf(ret, "%s%s (", first ? "\n" : "", board_short_name(&cards[first]->card.board));
    for (size_t i = 0; i < n; i++)
        text_addf(ret, "%sgpu%u", i ? ", " : "", same[i]->card.ordinal);
    text_add(ret, ")\n");
    const struct card *c = &cards[first]->card;
    if (!c->board.profile_count && c->mig_capable)
        text_add(ret, "n/a: this driver tells the profiles only while MIG is on\n");
    else
        profiles_draw(&c->board, same, n, &s->screen, ret);
}

static json_t *model_json(const struct inventory_card *c)
{
    json_t *j = json_object();
    json_t *free_now = json_object();
    json_put_u64(j, "gpu", c->card.ordinal);
    json_put(j, "board", board_to_json(&c->card.board));
    for (uint32_t i = 0; i < c->card.board.profile_count; i++)
        json_put_u64(free_now, c->card.board.profiles[i].name,
                     profiles_free(c, &c->card.board.profiles[i]));
    json_put(j, "free", free_now);
    return j;
}

static int print_cards(const struct session *s, const struct inventory_card *const *cards,
                       size_t count)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (s->json) {
        auto_json json_t *j = json_object();
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++)
            (void)json_array_append_new(list,
                                        model_json(cards[i])); /* out of memory: a short list */
        json_put(j, "cards", list);
        return verb_print_json(j);
    }
    for (size_t i = 0; i < count; i++)
        if (!told_before(cards, i))
            draw_model(s, cards, count, i, &t);
    if (!count)
        text_add(&t, "There is no NVIDIA card here.\n");
    return verb_print(&t);
}

int verb_profiles(struct session *s, int argc, char **argv)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct profiles_call call = { .board = NULL };
    uint32_t ordinal = 0;
    struct verb_words words = { .options = options, .parser = parse, .args = "[CARD]", .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    if (call.board && call.card)
        return verb_usage(s, "either a card or --board; %s is here, %s need not be", call.card,
                          call.board);
    if (call.board)
        return print_board(s, call.board);
    if (call.card && !cards_parse(s, call.card, &ordinal))
        return STATUS_USAGE;
    int status = cards_now(s, &inv);
    if (status != STATUS_OK)
        return status;
    auto_free const struct inventory_card **cards = mem_new((inv.card_count + 1) * sizeof *cards);
    size_t n = 0;
    for (size_t i = 0; i < inv.card_count; i++)
        if (!call.card || inv.cards[i].card.ordinal == ordinal)
            cards[n++] = &inv.cards[i];
    if (call.card && !n) {
        auto_free char *all = cards_sentence(&inv);
        verb_note("there is no gpu%u here; there is %s", ordinal, all);
        return STATUS_NOT_FOUND;
    }
    return print_cards(s, cards, n);
}
