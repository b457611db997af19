/*
 * layout.h - layout files into struct layout. layout(5) describes them:
 *
 *     cards:
 *       - card: gpu0
 *         slices: {1g.10gb: 3, 3g.40gb: 1}
 *       - card: [gpu1, GPU-5d5b…, "0000:07:00.0"]
 *         slices: [2g.20gb@0, 2g.20gb@2, 1c.3g.40gb@4.0]
 *       - card: a30
 *         mode: whole
 *
 * What can be known without a board is checked here: forms, counts, one card
 * named twice. What a board has is not.
 */
#ifndef DIVVY_CONFIG_LAYOUT_H
#define DIVVY_CONFIG_LAYOUT_H

#include "config/yaml.h"
#include "model/fields.h"
#include "model/layout.h"

/* -ENOENT, -EINVAL with file:line:column, -EFBIG. The caller ends `ret` with layout_done. */
int layout_read(const char *path, struct layout *ret, struct err *e);

/* The same from text; `file` names it in messages. */
int layout_parse(const char *file, const char *text, size_t len, struct layout *ret, struct err *e);

/* The same from a tree that was read. */
int layout_from_tree(const struct yaml_tree *t, struct layout *ret, struct err *e);

/* The layouts of one file: one, or one for each label of a mig-parted file. */
struct layout_list {
    struct layout *layouts;
    size_t count, alloc;
};

#define LAYOUT_LIST_INIT                                                                           \
    {                                                                                              \
        .layouts = NULL                                                                            \
    }

void layout_list_done(struct layout_list *l);
/* A new empty one at the end; valid until the next addition. */
struct layout *layout_list_add(struct layout_list *l);

/*
 * Reads a layout file or, told by its first keys, a mig-parted file. "-" is
 * standard input. Codes as layout_read; the caller ends `ret`.
 */
int layout_list_read(const char *path, struct layout_list *ret, struct err *e);
int layout_list_parse(const char *file, const char *text, size_t len, struct layout_list *ret,
                      struct err *e);

/* "2g.20gb", "2g.20gb@4" or "1c.3g.40gb@4.0" of a node; count 1. */
int layout_read_piece(const struct yaml_node *n, const char *word, struct layout_piece *ret,
                      struct err *e);

/* The same from a word alone; -EINVAL without a place. */
int layout_piece_parse(const char *word, struct layout_piece *ret, struct err *e);

/*
 * Appends the file that asks for what the cards are now, in exact placements.
 * Cards that do not answer and profiles that are not known are left out.
 * `uuids`: with what each slice is, so that whoever restores it can tell what
 * has changed.
 */
void layout_add_export(struct text *t, const struct inventory *inv, bool uuids);

/* How one card of it is written. */
struct layout_writing {
    size_t without;   /* this slice of the card is left out; SIZE_MAX: none */
    const char *with; /* and this one added, "2g.20gb@4"; NULL: none */
    bool uuids;
};

/* Appends the wish for one card, to stand below "cards:". */
void layout_add_card(struct text *t, const struct inventory_card *c,
                     const struct layout_writing *how);

/* The same as JSON, which is a layout file, too. New reference. */
json_t *layout_export_json(const struct inventory *inv);

#endif
