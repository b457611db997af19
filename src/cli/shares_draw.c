#include "cli/shares_draw.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "cli/table.h"

static void cell_who(struct table *t, const struct share_row *r)
{
    AUTO(text) struct text name = TEXT_INIT;
    for (uint32_t i = 0; i < r->depth; i++)
        text_add(&name, "  ");
    text_add(&name, r->user ? r->user : r->account);
    if (!r->user && r->inside && strcmp(r->inside, "users") != 0)
        text_addf(&name, " (%s)", r->inside);
    table_cell(t, name.buf);
}

static void draw_row(struct table *t, const struct share_row *r)
{
    cell_who(t, r);
    table_cellf(t, "%g", r->weight);
    table_cellf(t, "%.1f%%", 100 * r->share);
    table_cellf(t, "%.2f", r->used_card_us / (double)CLOCK_HOUR);
    table_cellf(t, "%.1f%%", 100 * r->usage);
    if (isfinite(r->level))
        table_cellf(t, "%.3f", r->level);
    else
        table_cell(t, "unused");
    if (r->rank)
        table_cellf(t, "%u", r->rank);
    else
        table_cell(t, NULL);
    table_cellf(t, "%u", r->running);
    table_cellf(t, "%u", r->pending);
}

void shares_draw(const struct share_view *v, const struct screen *s, struct text *ret)
{
    static const char *const titles[] = { "WEIGHT", "SHARE", "CARD-H",  "USED",
                                          "LEVEL",  "RANK",  "RUNNING", "WAITING" };
    AUTO(table) struct table t = TABLE_INIT;
    if (!v->count) {
        text_add(ret, "Nobody has used anything yet, and divvy.yaml names no accounts.\n");
        return;
    }
    table_column(&t, "ACCOUNT / USER", TABLE_CUT);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&t, titles[i], TABLE_RIGHT);
    for (size_t i = 0; i < v->count; i++)
        draw_row(&t, &v->rows[i]);
    table_draw(&t, s, ret);
}
