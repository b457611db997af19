/*
 * script.h - the options that a job script carries in its first lines.
 *
 *     #!/bin/sh
 *     #DIVVY --slice 2g.20gb --time 2h
 *     #DIVVY --name "my run"      # quotes and comments as in a shell
 *     python3 train.py            <- reading stops here
 *
 * Only lines that begin with "#DIVVY" and a blank count ("##DIVVY" switches
 * one off), and only before the first line that is neither empty nor a
 * comment. Words are split as a shell would: 'single' and "double" quotes,
 * backslash, and # begins a comment. Nothing is expanded: a $ or ` that a
 * shell would act on is refused rather than passed on unseen.
 *
 *     AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
 *     r = script_parse("train.sh", text, len, &o, e);
 *     // o.argv is {"--slice", "2g.20gb", ..., NULL}; o.lines[i] tells where each stood
 */
#ifndef DIVVY_CONFIG_SCRIPT_H
#define DIVVY_CONFIG_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define SCRIPT_BYTES_MAX (1024u * 1024u)
#define SCRIPT_WORDS_MAX 1024u

struct script_options {
    char **argv;  /* the words, then NULL; argv itself is NULL when there are none */
    size_t count; /* words, without the NULL */
    size_t alloc;
    unsigned *lines; /* count of them: the line of each word, from 1 */
    size_t lines_alloc;
    bool interpreter;   /* the first line is "#!..." */
    unsigned late_line; /* the first #DIVVY line that came too late to count; 0: none */
};

#define SCRIPT_OPTIONS_INIT                                                                        \
    {                                                                                              \
        .argv = NULL, .lines = NULL                                                                \
    }

void script_options_done(struct script_options *o);

/*
 * Reads the options out of a script's text. -EINVAL with file:line:column for
 * an open quote, a trailing backslash, a $ or `, a NUL byte or more than
 * SCRIPT_WORDS_MAX words; -EFBIG above SCRIPT_BYTES_MAX. `ret` must be
 * initialised, is filled on success only, and is script_options_done's.
 */
int script_parse(const char *file, const char *text, size_t len, struct script_options *ret,
                 struct err *e);

/* The words of one line, as behind #DIVVY; `line` is its number in messages. */
int script_words(const char *file, unsigned line, const char *text, size_t len,
                 struct script_options *ret, struct err *e);

/* The same of a script's #SBATCH lines; cli/sbatch.h makes options of ours of them. */
int script_parse_sbatch(const char *file, const char *text, size_t len, struct script_options *ret,
                        struct err *e);

#endif
