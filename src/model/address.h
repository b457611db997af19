/*
 * address.h - how a card or slice is called in commands, messages and logs.
 *
 *     gpu0                  a card, by ordinal
 *     gpu0/2g.20gb@4        a slice: profile and first memory unit
 *     gpu0/1c.3g.40gb@0.1   a smaller compute instance: its profile, the GPU
 *                           instance's first unit, the first compute slice in it
 */
#ifndef DIVVY_MODEL_ADDRESS_H
#define DIVVY_MODEL_ADDRESS_H

#include "base/text.h"
#include "model/card.h"

struct address {
    uint32_t ordinal;
    bool has_slice;
    char profile[PROFILE_NAME_SIZE]; /* as written, e.g. "2g.20gb" or "1c.3g.40gb" */
    uint32_t start;
    bool has_ci_start;
    uint32_t ci_start;
};

/* -EINVAL with a sentence that shows the right form. */
int address_parse(const char *s, struct address *ret, struct err *e);

/* Slice `s` of card `c`; a GPU instance without a compute instance is "gpu0/2g.20gb@4" too. */
void address_add(struct text *t, const struct card *c, const struct slice *s);
void address_add_place(struct text *t, uint32_t ordinal, const char *profile, uint32_t start);

/* The name of the profile of a slice; "profile 21" style when the board does not know it. */
void slice_add_profile(struct text *t, const struct card *c, const struct slice *s);

/* The slice of `c` that an address names, or NULL: another card's address names none. */
struct slice *address_find(const struct address *a, const struct card *c);

#endif
