/*
 * table.h - columns that line up, whatever alphabet the cells are in.
 *
 *     AUTO(table) struct table t = TABLE_INIT;
 *     table_column(&t, "ID", 0);
 *     table_column(&t, "NAME", TABLE_CUT);
 *     table_column(&t, "WHERE / WHY", TABLE_WRAP);
 *     table_cell(&t, "41"), table_cell(&t, "train"), table_cell(&t, "gpu0/2g.20gb@0");
 *     table_draw(&t, &screen, &text);
 *
 * On a terminal what does not fit is cut ("…") in TABLE_CUT columns, then
 * wrapped at spaces in a TABLE_WRAP column, which must be the last. Elsewhere
 * every row is one line. Cells are copied; control characters
 * and broken UTF-8 become "?", so that no name can draw on the terminal.
 */
#ifndef DIVVY_CLI_TABLE_H
#define DIVVY_CLI_TABLE_H

#include "cli/screen.h"

#define TABLE_COLUMNS_MAX 16u

enum table_flags {
    TABLE_RIGHT = 1 << 0,    /* numbers */
    TABLE_CUT = 1 << 1,      /* may be shortened, down to 6 */
    TABLE_WRAP = 1 << 2,     /* may go on in the next line; last column only */
    TABLE_CUT_LATE = 1 << 3, /* as TABLE_CUT, where that is not enough */
};

struct table_cell {
    char *words;
    enum colour colour;
};

struct table {
    const char *titles[TABLE_COLUMNS_MAX]; /* borrowed */
    unsigned flags[TABLE_COLUMNS_MAX];
    size_t column_count;
    struct table_cell *cells; /* row by row */
    size_t cell_count, cell_alloc;
    bool untitled; /* no line of titles */
};

#define TABLE_INIT                                                                                 \
    {                                                                                              \
        .cells = NULL                                                                              \
    }

void table_done(struct table *t);
void table_column(struct table *t, const char *title, unsigned flags);
void table_cell(struct table *t, const char *s); /* NULL: "-" */
void table_tint(struct table *t, enum colour c); /* the cell just added */
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends titles and rows; an unfinished last row is filled with empty cells. */
void table_draw(const struct table *t, const struct screen *s, struct text *ret);

/* How many columns of a terminal `s` takes: wide East Asian signs 2, marks 0. */
size_t cells_wide(const char *s);
/* Appends s, cut with "…" to at most `wide` columns. */
void cells_add_cut(struct text *t, const char *s, size_t wide);
/* Appends n times `s`. */
void cells_add_times(struct text *t, const char *s, size_t n);
/* Appends s (NULL: nothing) as a cell of comma-separated values, quoted where it must be. */
void csv_add(struct text *t, const char *s);
/* Copy in which control characters and broken UTF-8 are "?". Caller frees. */
char *cells_clean(const char *s);

#endif
