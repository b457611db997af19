/* `divvy layout`: what the cards should be, from a file. */
#include "cli/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/cards.h"
#include "cli/table.h"
#include "config/board.h"
#include "model/address.h"

static const char doc[] =
    "What the cards should be, from a file: layout(5).\v"
    "  check FILE    is it possible? Without hardware: on --board, else on every\n"
    "                board known\n"
    "  plan FILE     what would change, and whom it waits for; changes nothing\n"
    "  apply FILE    change it: as a whole, or not at all\n"
    "  export        the file that asks for what is there now\n"
    "  save [WHERE]  the same to a file, or under a name (default: boot)\n"
    "  restore [WHERE]  make the cards that again, in the same places\n"
    "  status        the change that divvyd has, and what cards keep\n"
    "  stop          call it off: what was done of it is undone\n\n"
    "  divvy layout check lab.yaml --board a100-80gb:2\n"
    "  divvy layout plan lab.yaml\n\n"
    "Files of mig-parted are understood; --label chooses one of their layouts.\n"
    "Exit status: 0 done or as wanted, 10 differs, 11 invalid, 12 impossible, 13 busy,\n"
    "14 needs a reset, 15 partly done.";

static const struct argp_option options[] = {
    { "board", 'b', "NAME[:N]", 0, "check: for so many cards of this board, without hardware", 1 },
    { "label", 'l', "LABEL", 0, "which layout of a mig-parted file", 1 },
    { "wait", 'w', NULL, 0, "apply: wait for cards that are in use", 1 },
    { "yes", 'y', NULL, 0, "apply: do not ask", 1 },
    { "allow-move-idle", 'm', NULL, 0, "apply: idle slices may be made again elsewhere", 1 },
    { 0 },
};

static void take_argument(struct layout_call *c, char *arg)
{
    if (!c->word)
        c->word = arg;
    else if (!c->file)
        c->file = arg;
    else
        verb_refuse("one file at a time, not '%s' as well", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct layout_call *c = state->input;
    switch (key) {
    case 'b':
        if (c->board_count == sizeof c->boards / sizeof *c->boards)
            verb_refuse("more boards than a server has");
        c->boards[c->board_count++] = arg;
        return 0;
    case 'l':
        c->label = arg;
        return 0;
    case 'w':
        c->wait = true;
        return 0;
    case 'y':
        c->yes = true;
        return 0;
    case 'm':
        c->move_idle = true;
        return 0;
    case ARGP_KEY_ARG:
        take_argument(c, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- a file and the cards ---- */

static void forget_changes(struct layout_work *w)
{
    for (size_t i = 0; w->changes && i < w->inv.card_count; i++)
        layout_change_done(&w->changes[i]);
    for (size_t i = 0; w->holders && i < w->inv.card_count; i++)
        holders_done(&w->holders[i]);
    free(w->holders);
    free(w->changes);
    free(w->wishes);
    w->holders = NULL;
    w->changes = NULL;
    w->wishes = NULL;
}

void layout_work_forget(struct layout_work *w)
{
    forget_changes(w);
    inventory_done(&w->inv);
}

void layout_work_done(struct layout_work *w)
{
    layout_work_forget(w);
    layout_list_done(&w->list);
    free(w->text);
    w->text = NULL;
}

static int fail_file(const struct session *s, const struct err *e)
{
    (void)verb_fail(s, e); /* its status is for requests */
    return e->code == -ENOENT ? STATUS_NOT_FOUND : LAYOUT_STATUS_INVALID;
}

int layout_work_choose(struct layout_work *w, const struct session *s,
                       const struct layout_call *call)
{
    AUTO(text) struct text all = TEXT_INIT;
    for (size_t i = 0; i < w->list.count; i++) {
        const struct layout *l = &w->list.layouts[i];
        if (call->label ? text_same(l->label, call->label) : w->list.count == 1) {
            w->layout = l;
            return STATUS_OK;
        }
        text_addf(&all, "%s%s", i ? ", " : "", l->label ? l->label : "one without a label");
    }
    if (call->label)
        return verb_usage(s, "%s has no layout '%.64s'; it has %s", call->file, call->label,
                          all.buf);
    return verb_usage(s, "%s has several layouts; choose one with --label: %s", call->file,
                      all.buf);
}

int layout_work_read(struct layout_work *w, const struct session *s, const struct layout_call *call)
{
    struct err e = ERR_INIT;
    size_t len = 0;
    if (!call->file)
        return verb_usage(s, "say which file: divvy layout %s FILE", call->word);
    bool input = strcmp(call->file, "-") == 0;
    const char *name = input ? "standard input" : call->file;
    if (file_read(AT_FDCWD, input ? "/dev/stdin" : call->file, YAML_BYTES_MAX, &w->text, &len, &e) <
            0 ||
        layout_list_parse(name, w->text, len, &w->list, &e) < 0)
        return fail_file(s, &e);
    return STATUS_OK;
}

static int find_slice(const struct inventory *inv, const char *word,
                      const struct inventory_card **ret_card, struct layout_writing *ret,
                      struct err *e)
{
    struct address a;
    int r = address_parse(word, &a, e);
    if (r < 0)
        return r;
    const struct inventory_card *c = inventory_card(inv, a.ordinal);
    const struct slice *slice = c && a.has_slice ? address_find(&a, &c->card) : NULL;
    if (!slice)
        return err_set(e, -ENOENT, "there is no slice %.64s; divvy gpus shows what there is", word);
    *ret_card = c;
    ret->without = (size_t)(slice - c->card.slices);
    return 0;
}

static int find_place(const struct inventory *inv, const char *word,
                      const struct inventory_card **ret_card, struct layout_writing *ret,
                      struct err *e)
{
    struct address a;
    struct layout_piece piece;
    const char *slash = strchr(word, '/');
    auto_free char *card = text_fmt("%.*s", slash ? (int)(slash - word) : 0, word);
    int r = address_parse(card, &a, e);
    if (r == 0)
        r = layout_piece_parse(slash + 1, &piece, e);
    if (r < 0)
        return r;
    *ret_card = inventory_card(inv, a.ordinal);
    ret->with = slash + 1;
    return *ret_card ? 0
                     : err_set(e, -ENOENT, "there is no gpu%u here; divvy gpus shows what there is",
                               a.ordinal);
}

int layout_work_slice(struct layout_work *w, const struct session *s,
                      const struct layout_call *call)
{
    struct err e = ERR_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    const struct inventory_card *c = NULL;
    struct layout_writing how = { .without = SIZE_MAX };
    int r = call->make ? find_place(&w->inv, call->make, &c, &how, &e)
                       : find_slice(&w->inv, call->unmake, &c, &how, &e);
    if (r < 0)
        return verb_fail(s, &e);
    text_add(&t, "cards:\n");
    layout_add_card(&t, c, &how);
    layout_list_done(&w->list);
    if (layout_list_parse("the slice", t.buf, t.len, &w->list, &e) < 0)
        return fail_file(s, &e);
    w->layout = &w->list.layouts[0];
    return STATUS_OK;
}

static bool covers_one(const struct layout_claim *claim, const struct inventory *inv)
{
    for (size_t i = 0; i < inv->card_count; i++)
        if (layout_claim_covers(claim, &inv->cards[i].card))
            return true;
    return false;
}

/* By key or by name, of any board file. */
static bool is_known_board(const struct layout_claim *claim)
{
    AUTO(field_words) struct field_words keys = { .words = NULL };
    auto_free struct card *c = mem_new(sizeof *c);
    bool known = board_keys(&keys, NULL) < 0; /* nobody can say */
    for (size_t i = 0; !known && i < keys.count; i++)
        known = board_find(keys.words[i], &c->board, NULL) == 0 && layout_claim_covers(claim, c);
    return known;
}

/* A board that is not here is no error; a name that is a slip would do nothing in silence. */
static void tell_unknown_boards(struct layout_work *w)
{
    const struct layout *l = w->layout;
    for (size_t i = 0; !w->boards_told && i < l->wish_count; i++)
        for (size_t k = 0; k < l->wishes[i].claim_count; k++) {
            const struct layout_claim *c = &l->wishes[i].claims[k];
            if (c->kind == CLAIM_BOARD && !covers_one(c, &w->inv) && !is_known_board(c))
                verb_note("%s:%u:%u: no card here is '%s', and no board of that name is known; "
                          "this does nothing",
                          l->file, c->line, c->column, c->word);
        }
    w->boards_told = true;
}

int layout_work_plan(struct layout_work *w, const struct session *s)
{
    struct err e = ERR_INIT;
    forget_changes(w);
    layout_know_boards(&w->inv);
    w->wishes = mem_new((w->inv.card_count + 1) * sizeof *w->wishes);
    w->changes = mem_new((w->inv.card_count + 1) * sizeof *w->changes);
    if (layout_assign(w->layout, &w->inv, w->wishes, &e) < 0)
        return fail_file(s, &e);
    tell_unknown_boards(w);
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (w->wishes[i])
            layout_plan(&w->inv.cards[i], w->wishes[i], &w->changes[i]);
    return STATUS_OK;
}

enum layout_verdict layout_work_worst(const struct layout_work *w)
{
    enum layout_verdict worst = LAYOUT_AS_WANTED;
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (w->wishes[i] && w->changes[i].verdict > worst)
            worst = w->changes[i].verdict;
    return worst;
}

int layout_work_status(const struct layout_work *w)
{
    static const int statuses[] = {
        STATUS_OK,           LAYOUT_STATUS_DIFFERS, LAYOUT_STATUS_RESET,      LAYOUT_STATUS_BUSY,
        LAYOUT_STATUS_RESET, STATUS_REFUSED,        LAYOUT_STATUS_IMPOSSIBLE, LAYOUT_STATUS_INVALID
    };
    return statuses[layout_work_worst(w)];
}

/* What a driver does not tell; what it tells stays. */
void layout_know_boards(struct inventory *inv)
{
    auto_free struct board *b = mem_new(sizeof *b);
    for (size_t i = 0; i < inv->card_count; i++) {
        struct board *own = &inv->cards[i].card.board;
        if (!own->key[0] && board_find_device(own->name, own->pci_device_id, b, NULL) == 0)
            board_know(own, b);
    }
}

/* ---- check ---- */

/* Room for so many cards more; each is some 17 KiB, so not one by one. */
static void make_room(struct inventory *inv, size_t more)
{
    struct inventory_card *cards = mem_new((inv->card_count + more) * sizeof *cards);
    if (inv->card_count)
        memcpy(cards, inv->cards, inv->card_count * sizeof *cards);
    free(inv->cards);
    inv->cards = cards;
}

static void add_card(struct inventory *inv, const struct board *b)
{
    struct inventory_card *c = &inv->cards[inv->card_count];
    c->card.board = *b;
    c->card.ordinal = (uint32_t)inv->card_count++;
    c->card.mig_capable = b->activation != MIG_NONE;
    c->card.mig_now = c->card.mig_pending = c->card.mig_capable;
    c->card.known = KNOW_SLICES;
    c->slices = mem_new(1);
}

/* "a100-80gb:2" */
static int add_boards(const struct session *s, const char *word, struct inventory *inv)
{
    struct err e = ERR_INIT;
    uint64_t n = 1;
    auto_free char *key = text_dup(word);
    auto_free struct board *b = mem_new(sizeof *b);
    char *colon = strchr(key, ':');
    if (colon)
        *colon = '\0';
    if (colon && text_parse_u64(colon + 1, 1, 64, "the number of cards", &n, &e) < 0)
        return verb_usage(s, "%s", e.text);
    if (board_find(key, b, &e) < 0)
        return verb_usage(s, "%s", e.text);
    make_room(inv, n);
    for (; n > 0; n--)
        add_card(inv, b);
    return STATUS_OK;
}

/* On the boards that were named: the screen of plan, on empty cards. */
static int check_boards(struct layout_work *w, const struct session *s,
                        const struct layout_call *call)
{
    AUTO(text) struct text t = TEXT_INIT;
    int status = layout_work_choose(w, s, call);
    for (size_t i = 0; status == STATUS_OK && i < call->board_count; i++)
        status = add_boards(s, call->boards[i], &w->inv);
    if (status == STATUS_OK)
        status = layout_work_plan(w, s);
    if (status != STATUS_OK)
        return status;
    status = layout_work_status(w);
    if (status == LAYOUT_STATUS_DIFFERS)
        status = STATUS_OK; /* on empty cards everything is to be done */
    if (s->json) {
        auto_json json_t *j = layout_json(w);
        int printed = verb_print_json(j);
        return printed == STATUS_OK ? status : printed;
    }
    layout_draw(w, &s->screen, &t);
    int printed = verb_print(&t);
    return printed == STATUS_OK ? status : printed;
}

/* One wish on every board that it may be for. */
struct everywhere {
    struct text fits, not_there; /* boards; the reason where it comes nearest */
    enum layout_verdict best;
    size_t tried;
};

static bool may_be_for(const struct layout_wish *w, const struct card *c)
{
    bool may = false;
    for (size_t i = 0; i < w->claim_count; i++)
        may = may || w->claims[i].kind != CLAIM_BOARD || layout_claim_covers(&w->claims[i], c);
    return may && layout_wish_is_for(w, &c->board);
}

static bool has_profiles(const struct layout_wish *w, const struct board *b)
{
    bool other, all = true;
    for (size_t i = 0; all && i < w->piece_count; i++)
        all = layout_find_profile(b, w->pieces[i].profile, &other) != NULL;
    return all;
}

static void try_board(const struct layout_wish *w, const struct inventory_card *c,
                      struct everywhere *ret)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    if (!may_be_for(w, &c->card))
        return;
    ret->tried++;
    if (ret->not_there.len && !has_profiles(w, &c->card.board))
        return; /* one such reason is enough; most boards are told apart by their profiles */
    layout_plan(c, w, &ch);
    if (ch.verdict <= LAYOUT_TO_DO)
        text_addf(&ret->fits, "%s%s", ret->fits.len ? ", " : "", c->card.board.key);
    else if (ch.verdict < ret->best || !ret->not_there.len) {
        text_clear(&ret->not_there);
        text_addf(&ret->not_there, "%s: %s", c->card.board.key, ch.why);
    }
    if (ch.verdict < ret->best)
        ret->best = ch.verdict;
}

/* An empty card of every board that is known. */
static int add_all_boards(struct inventory *inv, struct err *e)
{
    AUTO(field_words) struct field_words keys = { .words = NULL };
    auto_free struct board *b = mem_new(sizeof *b);
    int r = board_keys(&keys, e);
    if (r == 0)
        make_room(inv, keys.count);
    for (size_t i = 0; r == 0 && i < keys.count; i++)
        if (board_find(keys.words[i], b, NULL) == 0)
            add_card(inv, b);
    return r;
}

static enum layout_verdict check_wish(const struct layout *l, const struct layout_wish *w,
                                      const struct inventory *known, struct table *t, json_t *list)
{
    struct everywhere all = { TEXT_INIT, TEXT_INIT, LAYOUT_INVALID, 0 };
    for (size_t i = 0; i < known->card_count; i++)
        try_board(w, &known->cards[i], &all);
    if (all.best == LAYOUT_INVALID && all.tried > 1) {
        text_clear(&all.not_there);
        text_add(&all.not_there, "no board that is known here has such slices");
    }
    const char *words = all.fits.len        ? all.fits.buf
                        : all.not_there.len ? all.not_there.buf
                                            : "no board of that name or id is known";
    table_cell(t, l->label ? l->label : l->file);
    table_cellf(t, "line %u", w->line);
    table_cell(t, all.fits.len ? "fits" : "fits no board");
    table_tint(t, all.fits.len ? COLOUR_GOOD : COLOUR_BAD);
    table_cell(t, words);
    json_t *j = json_object();
    json_put_text(j, "label", l->label);
    json_put_u64(j, "line", w->line);
    json_put_text(j, "verdict", all.fits.len ? "possible" : layout_verdict_word(all.best));
    json_put_text(j, all.fits.len ? "boards" : "why", words);
    (void)json_array_append_new(list, j); /* out of memory: a short list */
    text_done(&all.fits);
    text_done(&all.not_there);
    return all.best;
}

static int check_everywhere(const struct layout_work *w, const struct session *s,
                            const struct layout_call *call)
{
    AUTO(inventory) struct inventory known = { .cards = NULL };
    AUTO(table) struct table table = { .untitled = true };
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    auto_json json_t *j = json_object();
    json_t *list = json_array();
    enum layout_verdict worst = LAYOUT_AS_WANTED;
    json_put(j, "wishes", list);
    if (add_all_boards(&known, &e) < 0)
        return verb_fail(s, &e);
    table_column(&table, "LAYOUT", 0);
    table_column(&table, "WISH", 0);
    table_column(&table, "", 0);
    table_column(&table, "BOARDS", TABLE_WRAP);
    for (size_t i = 0; i < w->list.count; i++)
        for (size_t k = 0; k < w->list.layouts[i].wish_count; k++) {
            const struct layout *l = &w->list.layouts[i];
            if (call->label && !text_same(l->label, call->label))
                continue;
            enum layout_verdict v = check_wish(l, &l->wishes[k], &known, &table, list);
            worst = v > worst ? v : worst;
        }
    table_draw(&table, &s->screen, &t);
    int status = s->json ? verb_print_json(j) : verb_print(&t);
    if (status != STATUS_OK || worst <= LAYOUT_TO_DO)
        return status;
    return worst == LAYOUT_IMPOSSIBLE ? LAYOUT_STATUS_IMPOSSIBLE : LAYOUT_STATUS_INVALID;
}

static int check(struct session *s, const struct layout_call *call)
{
    AUTO(layout_work) struct layout_work w = { .list = LAYOUT_LIST_INIT };
    int status = layout_work_read(&w, s, call);
    if (status != STATUS_OK)
        return status;
    return call->board_count ? check_boards(&w, s, call) : check_everywhere(&w, s, call);
}

/* ---- plan, export ---- */

static int plan(struct session *s, const struct layout_call *call)
{
    AUTO(layout_work) struct layout_work w = { .list = LAYOUT_LIST_INIT };
    AUTO(text) struct text t = TEXT_INIT;
    int status = layout_work_read(&w, s, call);
    if (status == STATUS_OK)
        status = layout_work_choose(&w, s, call);
    if (status == STATUS_OK)
        status = cards_look(s, &w.inv);
    if (status == STATUS_OK)
        status = layout_work_plan(&w, s);
    if (status != STATUS_OK)
        return status;
    layout_work_find_reboots(&w, s);
    layout_work_find_holders(&w);
    if (s->json) {
        auto_json json_t *j = layout_json(&w);
        status = verb_print_json(j);
    } else {
        layout_draw(&w, &s->screen, &t);
        status = verb_print(&t);
    }
    return status == STATUS_OK ? layout_work_status(&w) : status;
}

static int export_now(struct session *s, const struct layout_call *call)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    if (call->file)
        return verb_usage(s, "export reads no file; it prints one: divvy layout export > %s",
                          call->file);
    int status = cards_look(s, &inv);
    if (status != STATUS_OK)
        return status;
    if (!s->json) {
        layout_add_export(&t, &inv, false);
        return verb_print(&t);
    }
    auto_json json_t *j = layout_export_json(&inv);
    return verb_print_json(j);
}

static const struct {
    const char *word;
    int (*run)(struct session *s, const struct layout_call *call);
} words[] = {
    { "check", check },
    { "plan", plan },
    { "apply", layout_apply },
    { "export", export_now },
    { "save", layout_save },
    { "restore", layout_restore },
    { "status", layout_show_change },
    { "stop", layout_stop_change },
};

int verb_layout(struct session *s, int argc, char **argv)
{
    struct layout_call call = { .word = NULL };
    struct verb_words verb = { .options = options,
                               .parser = parse,
                               .args = "check|plan|apply|export|save|restore|status|stop [FILE]",
                               .doc = doc };
    verb_parse(s, &verb, argc, argv, &call);
    for (size_t i = 0; call.word && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, call.word) == 0)
            return words[i].run(s, &call);
    if (!call.word)
        return verb_usage(s, "say what: divvy layout check, plan, apply, export, save, restore, "
                             "status or stop");
    return verb_usage(s,
                      "there is no 'layout %.32s'; there is check, plan, apply, export, save, "
                      "restore, status and stop",
                      call.word);
}
