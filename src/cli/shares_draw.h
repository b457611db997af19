/* shares_draw.h - the share tree as a table. */
#ifndef DIVVY_CLI_SHARES_DRAW_H
#define DIVVY_CLI_SHARES_DRAW_H

#include "cli/screen.h"
#include "model/share_view.h"

void shares_draw(const struct share_view *v, const struct screen *s, struct text *ret);

#endif
