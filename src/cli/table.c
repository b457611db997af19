#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define GAP 2u     /* columns between columns */
#define CUT_MIN 6u /* no cell is cut shorter */
#define WRAP_MIN 16u

void table_done(struct table *t)
{
    for (size_t i = 0; i < t->cell_count; i++)
        free(t->cells[i].words);
    free(t->cells);
    *t = (struct table)TABLE_INIT;
}

void table_column(struct table *t, const char *title, unsigned flags)
{
    if (t->column_count == TABLE_COLUMNS_MAX)
        abort(); /* our own bug: tables are written by hand */
    t->titles[t->column_count] = title;
    t->flags[t->column_count++] = flags;
}

void table_cell(struct table *t, const char *s)
{
    ARRAY_ROOM(t->cells, t->cell_alloc, t->cell_count + 1);
    t->cells[t->cell_count++] = (struct table_cell){ .words = cells_clean(s ? s : "-") };
}

void table_tint(struct table *t, enum colour c)
{
    t->cells[t->cell_count - 1].colour = c;
}

void table_cellf(struct table *t, const char *fmt, ...)
{
    auto_free char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort(); /* out of memory: as in base/text.h */
    va_end(ap);
    table_cell(t, s);
}

static void measure(const struct table *t, size_t widths[TABLE_COLUMNS_MAX])
{
    for (size_t c = 0; c < t->column_count; c++)
        widths[c] = t->untitled ? 0 : cells_wide(t->titles[c]);
    for (size_t i = 0; i < t->cell_count; i++) {
        size_t wide = cells_wide(t->cells[i].words);
        size_t c = i % t->column_count;
        widths[c] = wide > widths[c] ? wide : widths[c];
    }
}

static size_t total(const struct table *t, const size_t widths[TABLE_COLUMNS_MAX])
{
    size_t sum = t->column_count ? (t->column_count - 1) * GAP : 0;
    for (size_t c = 0; c < t->column_count; c++)
        sum += widths[c];
    return sum;
}

static void cut(const struct table *t, unsigned flag, size_t width,
                size_t widths[TABLE_COLUMNS_MAX])
{
    while (total(t, widths) > width) {
        size_t widest = TABLE_COLUMNS_MAX;
        for (size_t c = 0; c < t->column_count; c++)
            if (t->flags[c] & flag && widths[c] > CUT_MIN &&
                (widest == TABLE_COLUMNS_MAX || widths[c] > widths[widest]))
                widest = c;
        if (widest == TABLE_COLUMNS_MAX)
            return;
        widths[widest]--;
    }
}

/* Takes columns away where that hurts least: wrapped text first, then the widest cut column. */
static void shrink(const struct table *t, size_t width, size_t widths[TABLE_COLUMNS_MAX])
{
    size_t last = t->column_count - 1;
    size_t sum = total(t, widths);
    if (sum > width && t->flags[last] & TABLE_WRAP) {
        size_t rest = sum - widths[last];
        size_t wrapped = width > rest + WRAP_MIN ? width - rest : WRAP_MIN;
        widths[last] = wrapped < widths[last] ? wrapped : widths[last];
    }
    cut(t, TABLE_CUT, width, widths);
    cut(t, TABLE_CUT_LATE, width, widths);
}

/* Bytes of `s` that fit in `wide` columns when it is broken at a space; at least one word. */
static size_t line_bytes(const char *s, size_t wide)
{
    size_t best = 0;
    for (size_t i = 0;; i++) {
        if (s[i] != ' ' && s[i] != '\0')
            continue;
        AUTO(text) struct text piece = TEXT_INIT;
        text_addn(&piece, s, i);
        if (best && cells_wide(piece.buf) > wide)
            return best;
        best = i;
        if (!s[i])
            return best;
    }
}

static void add_wrapped(struct text *ret, const char *s, size_t indent, size_t wide)
{
    for (;;) {
        size_t n = line_bytes(s, wide);
        text_addn(ret, s, n);
        s += n;
        s += strspn(s, " ");
        if (!*s)
            return;
        text_add(ret, "\n");
        cells_add_times(ret, " ", indent);
    }
}

/* One row on its way into the text. */
struct row {
    const struct table *table;
    const struct screen *screen;
    const size_t *widths;
    bool wraps;
    struct text *ret;
};

static void add_cell(const struct row *r, size_t c, const struct table_cell *cell, size_t indent)
{
    const struct table *t = r->table;
    AUTO(text) struct text words = TEXT_INIT;
    bool last = c + 1 == t->column_count;
    size_t wide = cells_wide(cell->words);
    size_t pad = wide < r->widths[c] ? r->widths[c] - wide : 0;
    if (t->flags[c] & TABLE_RIGHT)
        cells_add_times(r->ret, " ", pad);
    if (last && t->flags[c] & TABLE_WRAP && r->wraps)
        add_wrapped(&words, cell->words, indent, r->widths[c]);
    else if (t->flags[c] & (TABLE_CUT | TABLE_CUT_LATE))
        cells_add_cut(&words, cell->words, r->widths[c]);
    else
        text_add(&words, cell->words);
    screen_add(r->screen, r->ret, cell->colour, words.buf);
    if (!(t->flags[c] & TABLE_RIGHT) && !last)
        cells_add_times(r->ret, " ", pad);
    if (!last)
        cells_add_times(r->ret, " ", GAP);
}

static void add_row(const struct row *r, const struct table_cell *cells, size_t count)
{
    size_t indent = 0;
    for (size_t c = 0; c < r->table->column_count; c++) {
        struct table_cell empty = { .words = (char *)"" };
        add_cell(r, c, c < count ? &cells[c] : &empty, indent);
        indent += r->widths[c] + GAP;
    }
    /* A row whose last cells are empty ends with its last letter. */
    while (r->ret->len && r->ret->buf[r->ret->len - 1] == ' ')
        r->ret->buf[--r->ret->len] = '\0';
    text_add(r->ret, "\n");
}

void table_draw(const struct table *t, const struct screen *s, struct text *ret)
{
    size_t widths[TABLE_COLUMNS_MAX] = { 0 };
    struct row row = {
        .table = t, .screen = s, .widths = widths, .wraps = s->width > 0, .ret = ret
    };
    if (!t->column_count)
        return;
    measure(t, widths);
    if (s->width)
        shrink(t, s->width, widths);
    if (!t->untitled) {
        struct table_cell titles[TABLE_COLUMNS_MAX];
        for (size_t c = 0; c < t->column_count; c++)
            titles[c] = (struct table_cell){ .words = (char *)t->titles[c] };
        add_row(&row, titles, t->column_count);
    }
    for (size_t i = 0; i < t->cell_count; i += t->column_count)
        add_row(&row, t->cells + i, t->cell_count - i);
}

void csv_add(struct text *t, const char *s)
{
    if (!s || !strpbrk(s, ",\"\n\r")) {
        text_add(t, s ? s : "");
        return;
    }
    text_add(t, "\"");
    for (; *s; s++) {
        if (*s == '"')
            text_add(t, "\"");
        text_addn(t, s, 1);
    }
    text_add(t, "\"");
}
