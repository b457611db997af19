/*
 * board_known.h - the board files of this version, read when it was built.
 *
 * A command that looks at every board would read twenty files each time, and
 * that they are YAML is most of what it costs. So the build reads them once
 * (board_table.c) and keeps what came out beside the text that it came from: a
 * file whose text is the same means the same. Any other text, an
 * administrator's own board or a changed one, is read as ever; the files say
 * what counts, this only says it sooner.
 */
#ifndef DIVVY_CONFIG_BOARD_KNOWN_H
#define DIVVY_CONFIG_BOARD_KNOWN_H

#include <stddef.h>

#include "model/board.h"

/* Bytes of a struct board from `at` on; all others are 0. */
struct board_run {
    uint32_t at, len;
    const char *bytes;
};

struct board_known {
    const char *text; /* of the file */
    size_t len;
    const struct board_run *runs;
    size_t run_count;
};

/* Made by the build; ends with one that has no text. */
extern const struct board_known board_table[];

/* Fills `ret` and says true when this very text is a file of this version. */
bool board_known(const char *text, size_t len, struct board *ret);

#endif
