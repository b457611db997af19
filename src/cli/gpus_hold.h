/*
 * gpus_hold.h - the words for who has a card or a slice. Inside gpus_draw.
 */
#ifndef DIVVY_CLI_GPUS_HOLD_H
#define DIVVY_CLI_GPUS_HOLD_H

#include "cli/gpus_draw.h"

/* From most words to fewest. */
enum hold_words {
    HOLD_WORDS_ALL = 0, /* #57 bob train-7b 41m   pid 8121 python3 (dave) is not a Divvy job */
    HOLD_WORDS_TIME,    /* #57 bob 41m */
    HOLD_WORDS_USER,    /* #57 bob                pid 8121 */
    HOLD_WORDS_LEAST,   /* #57                    in use */
};

void hold_add(struct text *t, const struct inventory *inv, const struct inventory_card *c,
              const struct hold *h, const struct gpus_look *look, enum hold_words words);

/*
 * The most words that take at most `wide` columns; nothing when none do. False
 * when the reader cannot tell from them whose it is.
 */
bool hold_add_fitting(struct text *t, const struct inventory *inv, const struct inventory_card *c,
                      const struct hold *h, const struct gpus_look *look, size_t wide);

#endif
