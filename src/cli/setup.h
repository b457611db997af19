/*
 * setup.h - what `divvy setup` makes of a fresh machine.
 *
 * A setup is a list of things that ought to be there. Each is looked at, made
 * where it is missing (never changed where it is there), and told in one line:
 * that makes it the same to call it once or twice, and a dry run is the same
 * list with nothing made. What fails ends it; the lines so far tell how far it
 * came.
 */
#ifndef DIVVY_CLI_SETUP_H
#define DIVVY_CLI_SETUP_H

#include "base/text.h"
#include "cli/verb.h"

enum setup_state {
    SETUP_DONE,  /* made now; in a dry run: would be made */
    SETUP_THERE, /* was there */
    SETUP_SKIP,  /* cannot be, or need not be, here */
};

struct setup_line {
    enum setup_state state;
    char *thing; /* "group divvy" */
    char *note;  /* "" or more about it */
};

struct setup {
    char *root; /* "/" or a root for a trial */
    bool whole; /* root is "/" */
    bool dry;
    char **groups; /* --group */
    struct setup_line *lines;
    size_t count, alloc;
};

/* Adds a line. */
void setup_tell(struct setup *s, enum setup_state state, const char *thing, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Are they groups of this machine? -ENOENT names the one that is not. */
int setup_check_groups(char *const *groups, struct err *e);

/* ROOT/etc/divvy/divvy.yaml: each group an account, every card in pool off. */
int setup_config(struct setup *s, struct err *e);
/* The file's text. Caller frees. */
char *setup_config_text(char *const *groups);

/* Units, where no package brought them. */
int setup_units(struct setup *s, struct err *e);

/* Runs a program to its end. Negative when it cannot be run or does not end with 0. */
int setup_run(char *const argv[], struct err *e);

#endif
