/*
 * names.h - was a user or account named that there is?
 */
#ifndef DIVVY_CLI_NAMES_H
#define DIVVY_CLI_NAMES_H

#include "model/share_view.h"

/*
 * For a list that came out empty: a name that stands in no share tree, and
 * which no user of this machine has, is a slip. Either may be "". -ENOENT and a
 * sentence with the nearest name, or those there are.
 */
int names_check(const struct share_view *tree, const char *user, const char *account,
                struct err *e);

#endif
