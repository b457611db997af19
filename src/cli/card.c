/* `divvy pool` and `divvy mode`: who may hand a card out, and what it may become. */
#include <string.h>

#include "cli/cards.h"
#include "cli/gpus_draw.h"
#include "cli/table.h"

struct card_call {
    char *words[256];
    size_t count;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct card_call *c = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (c->count == sizeof c->words / sizeof *c->words)
        verb_refuse("too many cards; 'all' means every one");
    c->words[c->count++] = arg;
    return 0;
}

static int show(const struct session *s, const struct inventory *inv)
{
    AUTO(table) struct table t = TABLE_INIT;
    AUTO(text) struct text out = TEXT_INIT;
    if (s->json) {
        auto_json json_t *j = json_object();
        for (size_t i = 0; i < inv->card_count; i++) {
            auto_free char *name = text_fmt("gpu%u", inv->cards[i].card.ordinal);
            json_t *card = json_object();
            bool known = inv->cards[i].owners_known;
            json_put_text(card, "pool", known ? card_pool_word(inv->cards[i].pool) : NULL);
            json_put_text(card, "mode", known ? card_mode_word(inv->cards[i].mode) : NULL);
            json_put(j, name, card);
        }
        return verb_print_json(j);
    }
    table_column(&t, "GPU", 0);
    table_column(&t, "CARD", TABLE_CUT);
    table_column(&t, "POOL", 0);
    table_column(&t, "MODE", 0);
    table_column(&t, "NOW", 0);
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct inventory_card *c = &inv->cards[i];
        table_cellf(&t, "gpu%u", c->card.ordinal);
        table_cell(&t, board_short_name(&c->card.board));
        /* Without a daemon nobody knows. */
        table_cell(&t, c->owners_known ? card_pool_word(c->pool) : "n/a");
        table_cell(&t, c->owners_known ? card_mode_word(c->mode) : "n/a");
        table_cell(&t, gpus_sharing_word(&c->card));
    }
    table_draw(&t, &s->screen, &out);
    return verb_print(&out);
}

static int change_one(const struct session *s, struct client *c, uint32_t ordinal, bool is_pool,
                      const char *word)
{
    struct err e = ERR_INIT;
    auto_free char *note = NULL;
    if (client_set_card(c, ordinal, is_pool ? word : NULL, is_pool ? NULL : word, &note, &e) < 0)
        return verb_fail(s, &e);
    if (note)
        verb_note("gpu%u: %s", ordinal, note);
    return STATUS_OK;
}

static int change_all(const struct session *s, struct client *c, bool is_pool, const char *word)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    struct err e = ERR_INIT;
    if (client_inventory(c, &inv, &e) < 0)
        return verb_fail(s, &e);
    int status = STATUS_OK;
    for (size_t i = 0; i < inv.card_count; i++) {
        int one = change_one(s, c, inv.cards[i].card.ordinal, is_pool, word);
        status = status == STATUS_OK ? one : status;
    }
    return status;
}

/* "gpu0,gpu1" is two cards; "" is none, and not nothing to do. */
static bool are_cards(const struct session *s, const char *cards)
{
    auto_free char *copy = text_dup(cards);
    char *save = NULL;
    char *w = strtok_r(copy, ",", &save);
    uint32_t ordinal = 0;
    bool good = strcmp(cards, "all") == 0;
    if (!w)
        return cards_parse(s, cards, &ordinal);
    for (; w && !good; w = strtok_r(NULL, ",", &save))
        if (!cards_parse(s, w, &ordinal))
            return false;
    return true;
}

/* Of a word that are_cards. */
static int change_word(const struct session *s, struct client *c, const char *cards, bool is_pool,
                       const char *word)
{
    auto_free char *copy = text_dup(cards);
    char *save = NULL;
    int status = STATUS_OK;
    if (strcmp(cards, "all") == 0)
        return change_all(s, c, is_pool, word);
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        uint32_t ordinal = 0;
        (void)cards_parse(s, w, &ordinal); /* as it did before */
        int one = change_one(s, c, ordinal, is_pool, word);
        status = status == STATUS_OK ? one : status;
    }
    return status;
}

static bool is_word(bool is_pool, const char *word)
{
    enum card_pool pool;
    enum card_mode mode;
    return (is_pool ? card_pool_parse(word, &pool, NULL) : card_mode_parse(word, &mode, NULL)) >= 0;
}

static int check_word(const struct session *s, bool is_pool, const char *word)
{
    struct err e = ERR_INIT;
    enum card_pool pool;
    enum card_mode mode;
    int r = is_pool ? card_pool_parse(word, &pool, &e) : card_mode_parse(word, &mode, &e);
    return r < 0 ? verb_usage(s, "%s", e.text) : STATUS_OK;
}

static int verb_card(struct session *s, int argc, char **argv, bool is_pool, const char *args,
                     const char *doc)
{
    struct card_call call = { .count = 0 };
    int status = STATUS_OK;
    struct verb_words words = { .parser = parse, .args = args, .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    if (!call.count) {
        AUTO(inventory) struct inventory inv = { .cards = NULL };
        status = cards_now(s, &inv);
        return status == STATUS_OK ? show(s, &inv) : status;
    }
    if (call.count == 1 && is_word(is_pool, call.words[0]))
        return verb_usage(s, "which card? divvy %s gpu0 %s", s->verb, call.words[0]);
    if (call.count == 1)
        return verb_usage(s, "which %s? divvy %s %s %s", s->verb, s->verb, call.words[0],
                          is_pool ? "queue|slurm|kubernetes|off" : "whole|slices|auto");
    const char *word = call.words[--call.count];
    status = check_word(s, is_pool, word);
    for (size_t i = 0; status == STATUS_OK && i < call.count; i++)
        if (!are_cards(s, call.words[i]))
            status = STATUS_USAGE;
    if (status != STATUS_OK)
        return status;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    for (size_t i = 0; c && i < call.count; i++) {
        int one = change_word(s, c, call.words[i], is_pool, word);
        status = status == STATUS_OK ? one : status;
    }
    return status;
}

int verb_pool(struct session *s, int argc, char **argv)
{
    return verb_card(
        s, argc, argv, true, "\nCARD... queue|slurm|kubernetes|off",
        "Who may hand out a card: Divvy's queue, Slurm, Kubernetes, or nobody (off: "
        "watched, not touched). Without arguments: as it is.\vFor operators. Jobs that "
        "run stay; what changes is who may start the next one.\n\n"
        "  divvy pool gpu0,gpu1 queue\n  divvy pool all off");
}

int verb_mode(struct session *s, int argc, char **argv)
{
    return verb_card(
        s, argc, argv, false, "\nCARD... whole|slices|auto",
        "What a card may become: whole, slices, or auto (as jobs need it). Without "
        "arguments: as it is.\vFor operators. Only auto cards change their MIG mode for "
        "a job, and only when nobody has had them for a while (mode_hold).\n\n"
        "  divvy mode gpu0 auto");
}
