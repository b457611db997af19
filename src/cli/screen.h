/*
 * screen.h - where output goes, and what may be done there.
 *
 * A terminal gets drawings, colour and lines of its width; anything else gets
 * plain columns that a script can split. Colour only adds to what the text
 * says; NO_COLOR and TERM=dumb switch it off.
 */
#ifndef DIVVY_CLI_SCREEN_H
#define DIVVY_CLI_SCREEN_H

#include "base/clock.h"
#include "base/text.h"

struct screen {
    bool tty;
    bool utf8; /* box drawing is possible */
    bool colour;
    unsigned width; /* columns; 0 without a terminal */
};

/* Columns of the terminal at `fd`, COLUMNS before all; 0: it is none. */
unsigned screen_width(int fd);

/* Standard output as it is. Needs setlocale(LC_CTYPE, ""). */
struct screen screen_of_stdout(void);

enum colour { COLOUR_NONE = 0, COLOUR_GOOD, COLOUR_WAIT, COLOUR_BAD, COLOUR_DIM, COLOUR_BOLD };

/* Appends s, in colour where the screen has it. */
void screen_add(const struct screen *s, struct text *t, enum colour c, const char *words);

/* "16:40" today, "Mon 16:40" within a week, "2026-11-30 16:40" else: local time. */
void when_add(struct text *t, int64_t wall_us, int64_t now_wall_us);
/* Since then, "2h13m"; "-" for 0. Never negative. */
void since_add(struct text *t, int64_t from_us, int64_t now_us);

#endif
