/*
 * option_line.h - options of a job from one line of words, as a script has them.
 */
#ifndef DIVVY_TESTS_OPTION_LINE_H
#define DIVVY_TESTS_OPTION_LINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options.h"

/* Options given as a line of words, each "--name=value" or "-Xvalue", in line 3 of train.sh. */
static inline int parse_line(const char *line, struct job_options *ret, struct err *e)
{
    static char words_of_test[1024]; /* values stay borrowed from it until the next call */
    char *words[32];
    unsigned lines[32];
    size_t n = 0;
    assert_true(strlen(line) < sizeof words_of_test);
    memcpy(words_of_test, line, strlen(line) + 1);
    char *save = NULL;
    for (char *w = strtok_r(words_of_test, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        lines[n] = 3;
        words[n++] = w;
    }
    return job_option_words("train.sh", words, lines, n, ret, e);
}

#endif
