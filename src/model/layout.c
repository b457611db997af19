#include "model/layout.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/address.h"

void layout_done(struct layout *l)
{
    for (size_t i = 0; i < l->wish_count; i++) {
        free(l->wishes[i].claims);
        free(l->wishes[i].pieces);
        free(l->wishes[i].devices);
    }
    free(l->wishes);
    free(l->file);
    free(l->label);
    *l = (struct layout)LAYOUT_INIT;
}

struct layout_wish *layout_add_wish(struct layout *l)
{
    ARRAY_ROOM(l->wishes, l->wish_alloc, l->wish_count + 1);
    return &l->wishes[l->wish_count++];
}

struct layout_claim *layout_add_claim(struct layout_wish *w)
{
    ARRAY_ROOM(w->claims, w->claim_alloc, w->claim_count + 1);
    return &w->claims[w->claim_count++];
}

struct layout_piece *layout_add_piece(struct layout_wish *w)
{
    ARRAY_ROOM(w->pieces, w->piece_alloc, w->piece_count + 1);
    return &w->pieces[w->piece_count++];
}

void layout_add_device(struct layout_wish *w, uint32_t id)
{
    ARRAY_ROOM(w->devices, w->device_alloc, w->device_count + 1);
    w->devices[w->device_count++] = id;
}

/* A PCI address: domain (may be missing), bus, device, function (may be missing). */
static bool parse_bus(const char *word, unsigned ret[4])
{
    int used = 0;
    ret[3] = 0;
    if (strspn(word, "0123456789abcdefABCDEF:.") != strlen(word))
        return false;
    if (sscanf(word, "%8x:%2x:%2x%n", &ret[0], &ret[1], &ret[2], &used) != 3) {
        ret[0] = 0;
        used = 0;
        if (sscanf(word, "%2x:%2x%n", &ret[1], &ret[2], &used) != 2)
            return false;
    }
    if (!word[used])
        return true;
    int more = 0;
    return sscanf(word + used, ".%1x%n", &ret[3], &more) == 1 && !word[used + more];
}

static bool is_number(const char *word)
{
    return word[0] && strspn(word, "0123456789") == strlen(word);
}

int layout_claim_parse(const char *word, struct layout_claim *ret, struct err *e)
{
    struct layout_claim c = { .line = ret->line, .column = ret->column };
    struct address a;
    unsigned bus[4];
    uint64_t n = 0;
    if (!word[0] || strlen(word) >= sizeof c.word || !text_is_printable(word))
        return err_set(e, -EINVAL,
                       "'%.64s' names no card; write gpu0, a UUID, a PCI address, a board as in "
                       "a100-80gb, or all",
                       word);
    memcpy(c.word, word, strlen(word) + 1);
    if (strcmp(word, "all") == 0) {
        c.kind = CLAIM_ALL;
    } else if (is_number(word)) {
        int r = text_parse_u64(word, 0, 99999, "card", &n, e);
        if (r < 0)
            return r;
        c.kind = CLAIM_ORDINAL;
        c.ordinal = (uint32_t)n;
    } else if (address_parse(word, &a, NULL) == 0) {
        if (a.has_slice)
            return err_set(e, -EINVAL, "'%s' is a slice; a wish is for a card: gpu%u", word,
                           a.ordinal);
        c.kind = CLAIM_ORDINAL;
        c.ordinal = a.ordinal;
    } else if (strncasecmp(word, "GPU-", 4) == 0) {
        c.kind = CLAIM_UUID;
    } else {
        c.kind = parse_bus(word, bus) ? CLAIM_BUS : CLAIM_BOARD;
    }
    *ret = c;
    return 0;
}

static bool same_bus(const char *a, const char *b)
{
    unsigned x[4], y[4];
    return parse_bus(a, x) && parse_bus(b, y) && memcmp(x, y, sizeof x) == 0;
}

static bool is_board(const char *word, const struct board *b)
{
    return (b->key[0] && strcasecmp(word, b->key) == 0) || strcasecmp(word, b->name) == 0 ||
           strcasecmp(word, board_short_name(b)) == 0;
}

bool layout_claim_covers(const struct layout_claim *claim, const struct card *c)
{
    switch (claim->kind) {
    case CLAIM_ALL:
        return true;
    case CLAIM_ORDINAL:
        return c->ordinal == claim->ordinal;
    case CLAIM_UUID:
        return strcasecmp(c->uuid, claim->word) == 0;
    case CLAIM_BUS:
        return same_bus(c->bus_id, claim->word);
    case CLAIM_BOARD:
        return is_board(claim->word, &c->board);
    }
    return false;
}

int layout_wish_mig(const struct layout_wish *w)
{
    if (w->has_mode && w->mode == MODE_WHOLE)
        return 0;
    if (w->has_slices || (w->has_mode && w->mode == MODE_SLICES))
        return 1;
    return -1;
}

bool layout_wish_is_for(const struct layout_wish *w, const struct board *b)
{
    if (!w->device_count)
        return true;
    for (size_t i = 0; i < w->device_count; i++) {
        if (w->devices[i] == b->pci_device_id)
            return true;
        for (uint32_t k = 0; k < b->also_count; k++)
            if (w->devices[i] == b->also_pci[k])
                return true;
    }
    return false;
}

static const struct layout_claim *claim_on(const struct layout_wish *w, const struct card *c)
{
    if (!layout_wish_is_for(w, &c->board))
        return NULL;
    for (size_t i = 0; i < w->claim_count; i++) {
        bool cannot = w->claims[i].kind == CLAIM_ALL && !c->mig_capable && layout_wish_mig(w) == 1;
        if (!cannot && layout_claim_covers(&w->claims[i], c))
            return &w->claims[i];
    }
    return NULL;
}

static int check_here(const struct layout *l, const struct layout_claim *claim,
                      const struct inventory *inv, struct err *e)
{
    if (claim->kind == CLAIM_ALL || claim->kind == CLAIM_BOARD)
        return 0;
    for (size_t i = 0; i < inv->card_count; i++)
        if (layout_claim_covers(claim, &inv->cards[i].card))
            return 0;
    AUTO(text) struct text all = TEXT_INIT;
    for (size_t i = 0; i < inv->card_count; i++)
        text_addf(&all, "%sgpu%u", i ? ", " : "", inv->cards[i].card.ordinal);
    return err_set(e, -EINVAL, "%s:%u:%u: there is no card %s here; there is %s", l->file,
                   claim->line, claim->column, claim->word, all.len ? all.buf : "none");
}

static int assign_card(const struct layout *l, const struct card *c,
                       const struct layout_wish **ret_wish, struct err *e)
{
    const struct layout_claim *first = NULL;
    *ret_wish = NULL;
    for (size_t i = 0; i < l->wish_count; i++) {
        const struct layout_claim *claim = claim_on(&l->wishes[i], c);
        if (!claim)
            continue;
        if (first && !l->last_wins)
            return err_set(e, -EINVAL,
                           "%s:%u:%u: gpu%u has a wish already, in line %u; one card, one wish",
                           l->file, claim->line, claim->column, c->ordinal, first->line);
        first = claim;
        *ret_wish = &l->wishes[i];
    }
    return 0;
}

int layout_assign(const struct layout *l, const struct inventory *inv,
                  const struct layout_wish **ret_wishes, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < l->wish_count; i++)
        for (size_t k = 0; r == 0 && !l->wishes[i].device_count && k < l->wishes[i].claim_count;
             k++)
            r = check_here(l, &l->wishes[i].claims[k], inv, e);
    for (size_t i = 0; r == 0 && i < inv->card_count; i++)
        r = assign_card(l, &inv->cards[i].card, &ret_wishes[i], e);
    return r;
}
