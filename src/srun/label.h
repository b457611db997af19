/*
 * label.h - `srun --label`: each line of a process with its number before it.
 *
 * The process writes into a pipe; what comes out goes on line by line, so that
 * lines of several processes never mix. The last line gets the end that it
 * lacks, and one of more than LABEL_LINE_MAX bytes is cut into several.
 *
 *     int into;
 *     label_open(&l, 3, 12, STDOUT_FILENO, &into, e);  // " 3: " before each
 *     … hand `into` to the process and close it; poll l.from …
 *     label_take(&l);                                  // whenever it is readable
 *     label_done(&l);                                  // the process has ended
 */
#ifndef DIVVY_SRUN_LABEL_H
#define DIVVY_SRUN_LABEL_H

#include <stdint.h>

#include "base/text.h"

#define LABEL_LINE_MAX 65536
#define LABEL_TAKE_MAX 65536 /* what a pipe holds */

struct label {
    int from, to; /* both owned; -1: none, or nothing more comes */
    uint32_t number, wide;
    struct text line; /* of which no end was seen yet */
    int failed;       /* 0, or why some of it could not be handed on: a negative errno */
};

#define LABEL_INIT                                                                                 \
    {                                                                                              \
        .from = -1, .to = -1, .line = TEXT_INIT                                                    \
    }

/* For process `number` of `count`, onto what `to` is. The caller closes *ret_into. */
int label_open(struct label *l, uint32_t number, uint32_t count, int to, int *ret_into,
               struct err *e);
/*
 * Hands on up to LABEL_TAKE_MAX bytes of what is there, so that whoever writes without end keeps
 * nobody from the others and from signals. Waits only for who reads it.
 */
void label_take(struct label *l);
/* All that is there by now, and the line without an end. What a child writes later is lost. */
void label_done(struct label *l);

#endif
