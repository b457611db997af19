#include "config/layout.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "config/field.h"
#include "config/mig_parted.h"
#include "model/address.h"

#define PIECE_FORMS "write 2g.20gb, 2g.20gb@4 or 1c.3g.40gb@4.0"

static bool is_profile(const char *word, size_t len)
{
    bool letter = false;
    for (size_t i = 0; i < len; i++) {
        letter = letter || isalpha((unsigned char)word[i]);
        if (!isalnum((unsigned char)word[i]) && !strchr(".+-, ", word[i]))
            return false;
    }
    return len && len < PROFILE_NAME_SIZE && isalnum((unsigned char)word[0]) && letter;
}

/* "@4" or "@4.0"; false for anything else. */
static bool parse_at(const char *at, struct layout_piece *p)
{
    uint64_t n;
    auto_free char *start = text_dup(at + 1);
    char *dot = strchr(start, '.');
    if (dot) {
        *dot = '\0';
        if (text_parse_u64(dot + 1, 0, BOARD_UNITS_MAX - 1, "slice", &n, NULL) < 0)
            return false;
        p->ci_start = (uint32_t)n;
    }
    if (text_parse_u64(start, 0, BOARD_UNITS_MAX - 1, "unit", &n, NULL) < 0)
        return false;
    p->start = (uint32_t)n;
    return true;
}

int layout_piece_parse(const char *word, struct layout_piece *ret, struct err *e)
{
    struct layout_piece p = { .count = 1, .start = LAYOUT_ANYWHERE, .ci_start = LAYOUT_ANYWHERE };
    const char *at = strchr(word, '@');
    size_t len = at ? (size_t)(at - word) : strlen(word);
    if (!is_profile(word, len) || (at && !parse_at(at, &p)))
        return err_set(e, -EINVAL, "'%.64s' is no slice; " PIECE_FORMS, word);
    memcpy(p.profile, word, len);
    *ret = p;
    return 0;
}

int layout_read_piece(const struct yaml_node *n, const char *word, struct layout_piece *ret,
                      struct err *e)
{
    struct err why = ERR_INIT;
    if (layout_piece_parse(word, ret, &why) < 0)
        return yaml_node_fail(n, e, "%s", why.text);
    ret->line = n->key ? n->key_line : n->line;
    ret->column = n->key ? n->key_column : n->column;
    return 0;
}

static int check_room(const struct yaml_node *n, const struct layout_wish *w, struct err *e)
{
    if (w->piece_count < LAYOUT_PIECES_MAX)
        return 0;
    return yaml_node_fail(n, e, "more slices than any card has; at most %u fit here",
                          LAYOUT_PIECES_MAX);
}

/* "1g.10gb: 3" */
static int read_counted(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    struct layout_piece p;
    uint64_t count;
    int r = layout_read_piece(n, n->key ? n->key : "", &p, e);
    if (r == 0)
        r = check_room(n, w, e);
    if (r == 0)
        r = yaml_node_u64(n, 0, LAYOUT_COUNT_MAX, &count, e);
    if (r < 0)
        return r;
    p.count = (uint32_t)count;
    if (p.start != LAYOUT_ANYWHERE && p.count > 1)
        return yaml_node_fail(n, e, "%s can be there once, not %u times", n->key, p.count);
    if (p.count)
        *layout_add_piece(w) = p;
    return 0;
}

static int read_listed(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    struct layout_piece p;
    const char *word;
    if (n->kind == YAML_IS_MAP) {
        int r = 0;
        for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
            r = read_counted(c, w, e);
        return r;
    }
    int r = yaml_node_text(n, &word, e);
    if (r == 0)
        r = layout_read_piece(n, word, &p, e);
    if (r == 0)
        r = check_room(n, w, e);
    if (r == 0)
        *layout_add_piece(w) = p;
    return r;
}

static int read_slices(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct layout_wish *w = place;
    int r = 0;
    (void)f; /* the whole wish is filled */
    w->has_slices = true;
    if (n->kind == YAML_IS_SCALAR)
        return yaml_node_fail(
            n, e, "slices must be a map (1g.10gb: 3) or a list ([2g.20gb@0, 2g.20gb@2])");
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = n->kind == YAML_IS_MAP ? read_counted(c, w, e) : read_listed(c, w, e);
    return r;
}

static int read_claim(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    struct layout_claim claim = { .line = n->line, .column = n->column };
    struct err why = ERR_INIT;
    const char *word;
    int r = yaml_node_text(n, &word, e);
    if (r < 0)
        return r;
    if (layout_claim_parse(word, &claim, &why) < 0)
        return yaml_node_fail(n, e, "%s", why.text);
    *layout_add_claim(w) = claim;
    return 0;
}

static int read_claims(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f; /* the whole wish is filled */
    if (n->kind == YAML_IS_MAP)
        return yaml_node_fail(n, e, "card must be a card or a list of cards, not a map");
    if (n->kind == YAML_IS_SCALAR)
        return read_claim(n, place, e);
    int r = n->first ? 0 : yaml_node_fail(n, e, "card must name at least one card");
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = read_claim(c, place, e);
    return r;
}

static int read_mode(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct layout_wish *w = place;
    struct err why = ERR_INIT;
    const char *word;
    (void)f; /* the whole wish is filled */
    int r = yaml_node_text(n, &word, e);
    if (r < 0)
        return r;
    if (card_mode_parse(word, &w->mode, &why) < 0)
        return yaml_node_fail(n, e, "%s", why.text);
    w->has_mode = true;
    return 0;
}

/* Looked at when the slices are read, wherever it stands. */
static int read_uuids(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f, (void)place;
    return n->kind == YAML_IS_LIST
               ? 0
               : yaml_node_fail(n, e, "uuids must be a list, one for each of the slices");
}

/* What each slice was when the file was saved. */
static int take_uuids(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    if (!n)
        return 0;
    if (n->count != w->piece_count)
        return yaml_node_fail(n, e, "%zu uuids for %zu slices; one for each", n->count,
                              w->piece_count);
    size_t i = 0;
    for (const struct yaml_node *c = n->first; c; c = c->next, i++) {
        const char *word = NULL;
        int r = yaml_node_text(c, &word, e);
        if (r < 0)
            return r;
        if (strlen(word) >= sizeof w->pieces[i].uuid)
            return yaml_node_fail(c, e, "'%.64s…' is too long for a UUID", word);
        memcpy(w->pieces[i].uuid, word, strlen(word) + 1);
    }
    return 0;
}

static const struct field wish_fields[] = {
    { "card", read_claims, 0, .required = true },
    { "mode", read_mode, 0 },
    { "slices", read_slices, 0 },
    { "uuids", read_uuids, 0 },
    { NULL },
};

static int read_wish(const struct yaml_node *n, struct layout_wish *w, struct err *e)
{
    w->line = n->line;
    w->column = n->column;
    int r = field_read_map(n, wish_fields, w, e);
    if (r < 0)
        return r;
    if (!w->has_mode && !w->has_slices)
        return yaml_node_fail(n, e, "this asks for nothing; say slices:, or mode: whole");
    if (w->has_mode && w->mode == MODE_WHOLE && w->piece_count)
        return yaml_node_fail(yaml_node_get(n, "slices"), e,
                              "a whole card has no slices; leave them out, or say mode: slices");
    return take_uuids(yaml_node_get(n, "uuids"), w, e);
}

/* What is said twice in the file itself; two names of one card show only on the cards. */
static int check_claims(const struct layout *l, struct err *e)
{
    for (size_t i = 0; i < l->wish_count; i++)
        for (size_t k = 0; k < l->wishes[i].claim_count; k++) {
            const struct layout_claim *a = &l->wishes[i].claims[k];
            for (size_t m = 0; m <= i; m++)
                for (size_t o = 0; o < (m == i ? k : l->wishes[m].claim_count); o++) {
                    const struct layout_claim *b = &l->wishes[m].claims[o];
                    bool same = a->kind == CLAIM_ORDINAL ? a->ordinal == b->ordinal
                                                         : strcmp(a->word, b->word) == 0;
                    if (a->kind == b->kind && same)
                        return err_set(
                            e, -EINVAL,
                            "%s:%u:%u: %s has a wish already, in line %u; one card, one wish",
                            l->file, a->line, a->column, a->word, b->line);
                }
        }
    return 0;
}

static int read_cards(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct layout *l = place;
    int r = 0;
    (void)f; /* the whole layout is filled */
    if (n->kind != YAML_IS_LIST)
        return yaml_node_fail(n, e, "cards must be a list: '- card: gpu0' and so on");
    if (n->count > LAYOUT_WISHES_MAX)
        return yaml_node_fail(n, e, "more than %u wishes in one file", LAYOUT_WISHES_MAX);
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = read_wish(c, layout_add_wish(l), e);
    return r;
}

static const struct field layout_fields[] = {
    { "cards", read_cards, 0, .required = true },
    { NULL },
};

int layout_from_tree(const struct yaml_tree *t, struct layout *ret, struct err *e)
{
    AUTO(layout) struct layout l = LAYOUT_INIT;
    l.file = text_dup(t->file);
    int r = field_read_map(t->root, layout_fields, &l, e);
    if (r == 0)
        r = check_claims(&l, e);
    if (r < 0)
        return r;
    *ret = l;
    l = (struct layout)LAYOUT_INIT;
    return 0;
}

int layout_parse(const char *file, const char *text, size_t len, struct layout *ret, struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_parse(file, text, len, &t, e);
    return r < 0 ? r : layout_from_tree(t, ret, e);
}

int layout_read(const char *path, struct layout *ret, struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_read(path, &t, e);
    return r < 0 ? r : layout_from_tree(t, ret, e);
}

void layout_list_done(struct layout_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        layout_done(&l->layouts[i]);
    free(l->layouts);
    *l = (struct layout_list)LAYOUT_LIST_INIT;
}

struct layout *layout_list_add(struct layout_list *l)
{
    ARRAY_ROOM(l->layouts, l->alloc, l->count + 1);
    l->layouts[l->count] = (struct layout)LAYOUT_INIT;
    return &l->layouts[l->count++];
}

static int list_from_tree(const struct yaml_tree *t, struct layout_list *ret, struct err *e)
{
    struct layout l = LAYOUT_INIT;
    if (t->root->kind == YAML_IS_MAP &&
        (yaml_node_get(t->root, "mig-configs") || yaml_node_get(t->root, "version")))
        return mig_parted_from_tree(t, ret, e);
    int r = layout_from_tree(t, &l, e);
    if (r == 0)
        *layout_list_add(ret) = l;
    return r;
}

int layout_list_parse(const char *file, const char *text, size_t len, struct layout_list *ret,
                      struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_parse(file, text, len, &t, e);
    return r < 0 ? r : list_from_tree(t, ret, e);
}

int layout_list_read(const char *path, struct layout_list *ret, struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    bool input = strcmp(path, "-") == 0;
    int r = 0;
    if (input) {
        auto_free char *data = NULL;
        size_t len;
        r = file_read(AT_FDCWD, "/dev/stdin", YAML_BYTES_MAX, &data, &len, e);
        return r < 0 ? r : layout_list_parse("standard input", data, len, ret, e);
    }
    r = yaml_tree_read(path, &t, e);
    return r < 0 ? r : list_from_tree(t, ret, e);
}

static bool is_exported(const struct card *c)
{
    return c->health == CARD_OK && (c->uuid[0] || c->bus_id[0]);
}

/* "2g.20gb@4"; false for what no file can ask for. */
static bool add_slice(struct text *t, const struct card *c, const struct slice *s)
{
    AUTO(text) struct text address = TEXT_INIT;
    if (!board_profile_by_id(&c->board, s->profile_id))
        return false;
    address_add(&address, c, s);
    text_add(t, strchr(address.buf, '/') + 1);
    return true;
}

/* What is to be written: jobs may have changed what a card is now, not what it may become. */
static const char *mode_word(const struct inventory_card *c, bool cut)
{
    if (c->owners_known && c->mode == MODE_AUTO)
        return card_mode_word(MODE_AUTO);
    return card_mode_word(cut ? MODE_SLICES : MODE_WHOLE);
}

/* One line for each slice: what it is, or its UUID. */
static void add_lines(struct text *t, const struct inventory_card *c,
                      const struct layout_writing *how, bool uuids)
{
    for (size_t k = 0; k < c->card.slice_count; k++) {
        AUTO(text) struct text slice = TEXT_INIT;
        if (k == how->without || !add_slice(&slice, &c->card, &c->card.slices[k]))
            continue;
        text_addf(t, uuids ? "      - \"%s\"\n" : "      - %s\n",
                  uuids ? c->card.slices[k].uuid : slice.buf);
    }
}

void layout_add_card(struct text *t, const struct inventory_card *c,
                     const struct layout_writing *how)
{
    AUTO(text) struct text slices = TEXT_INIT;
    bool cut = c->card.mig_now || how->with;
    text_addf(t, "  - card: %s # gpu%u, %s\n", c->card.uuid[0] ? c->card.uuid : c->card.bus_id,
              c->card.ordinal, board_short_name(&c->card.board));
    text_addf(t, "    mode: %s\n", mode_word(c, cut));
    if (!cut)
        return;
    add_lines(&slices, c, how, false);
    if (how->with)
        text_addf(&slices, "      - %s\n", how->with);
    text_addf(t, "    slices:%s\n%s", slices.len ? "" : " []", slices.buf);
    if (!how->uuids || !slices.len)
        return;
    text_add(t, "    uuids: # as they were\n");
    add_lines(t, c, how, true);
}

void layout_add_export(struct text *t, const struct inventory *inv, bool uuids)
{
    const struct layout_writing how = { .without = SIZE_MAX, .uuids = uuids };
    text_add(t, inv->card_count ? "cards:\n" : "cards: []\n");
    for (size_t i = 0; i < inv->card_count; i++)
        if (is_exported(&inv->cards[i].card))
            layout_add_card(t, &inv->cards[i], &how);
}

json_t *layout_export_json(const struct inventory *inv)
{
    json_t *j = json_object();
    json_t *cards = json_array();
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct card *c = &inv->cards[i].card;
        if (!is_exported(c))
            continue;
        json_t *card = json_object();
        json_t *slices = json_array();
        json_put_text(card, "card", c->uuid[0] ? c->uuid : c->bus_id);
        json_put_text(card, "mode", mode_word(&inv->cards[i], c->mig_now));
        for (size_t k = 0; k < c->slice_count; k++) {
            AUTO(text) struct text slice = TEXT_INIT;
            if (add_slice(&slice, c, &c->slices[k]))
                (void)json_array_append_new(slices, json_string(slice.buf)); /* a short list */
        }
        if (c->mig_now)
            json_put(card, "slices", slices);
        else
            json_decref(slices);
        (void)json_array_append_new(cards, card); /* out of memory: a short list */
    }
    json_put(j, "cards", cards);
    return j;
}
