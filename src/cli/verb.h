/*
 * verb.h - what all verbs of `divvy` share: how they begin, fail and end.
 *
 * A verb is one file with one function `int verb_…(struct session *, int argc,
 * char **argv)`, which parses its own options with argp, talks to the daemon,
 * prints, and returns an exit status. verbs.c holds the table.
 */
#ifndef DIVVY_CLI_VERB_H
#define DIVVY_CLI_VERB_H

#include <argp.h>

#include "cli/screen.h"
#include "client/client.h"

/* Exit statuses; the manual page lists the same. */
enum status {
    STATUS_OK = 0,
    STATUS_REFUSED = 1,   /* refused, or failed */
    STATUS_USAGE = 2,     /* options or arguments that cannot be */
    STATUS_NO_DAEMON = 3, /* divvyd does not answer */
    STATUS_NOT_FOUND = 4, /* no such job or card */
    STATUS_FORBIDDEN = 5, /* not for this user */
    STATUS_OURS = 125,    /* run, wait, submit --wait: Divvy failed, not the job */
};

struct session {
    char *root; /* --root; NULL: DIVVY_ROOT, else "/" */
    bool json;
    struct screen screen;
    const char *verb;
    int own_failure; /* STATUS_OURS: every failure of ours has this status; 0: by its kind */
    /*
     * The name of whoever calls, or NULL where he has none. NULL in front.c's
     * program, which asks no name service and hands over what needs one: to
     * `hand_over`, which prints why it failed, if it returns at all.
     */
    const char *(*caller_name)(void);
    int (*hand_over)(const struct session *s);
    char **argv; /* of main, for hand_over; NULL where that is */
};

/* Takes --root and --json in front of the verb; the index of what follows them. */
int session_globals(struct session *s, int argc, char **argv);
/* Called by another program's name: a link nvidia-mig-parted is that verb. */
bool session_is_mig_parted(int argc, char **argv);

typedef int (*verb_fn)(struct session *s, int argc, char **argv);

struct verb {
    const char *name;
    verb_fn run;
    const char *summary;
};

extern const struct verb verbs[]; /* ends with name NULL */

verb_fn verb_find(const char *name); /* NULL: there is none */
/* The verb that was meant, or NULL. */
const char *verb_nearest(const char *name);

/* How a verb is called. */
struct verb_words {
    const struct argp_option *options; /* its own; NULL: none */
    argp_parser_t parser;              /* of its own options and arguments; NULL: none */
    const char *args;                  /* "ID...", as argp has it; NULL: none */
    const char *doc;
    unsigned flags; /* ARGP_IN_ORDER, or 0 */
};

/*
 * Parses a verb's options: its own, and --root, --json, --help. `arg` goes to
 * the parser as state->input. On bad options prints and exits with
 * STATUS_USAGE (or own_failure). Parsers refuse with verb_refuse, never with
 * argp_error, which is silent here.
 */
void verb_parse(struct session *s, const struct verb_words *words, int argc, char **argv,
                void *arg);

/* For parsers: prints "divvy: text" and exits as bad options do. */
void verb_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* For parsers: a user's or an account's name of less than `size` bytes. */
void verb_take_name(char *ret, size_t size, const char *name);

/*
 * A list for these names came out empty: is one of them a slip? "" is none. Says so and
 * returns that status, else STATUS_OK; in doubt there is no slip.
 */
int verb_check_names(const struct session *s, struct client *c, const char *user,
                     const char *account);

/* Prints "divvy: text" to standard error and returns the status of that kind of failure. */
int verb_fail(const struct session *s, const struct err *e);
/* The same for failures that argp does not see. */
int verb_usage(const struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "divvy: text" for what is worth knowing and no failure. */
void verb_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Connects; on failure prints, and *ret_status is what to return. */
struct client *verb_connect(const struct session *s, int *ret_status);

/* Writes to standard output; STATUS_REFUSED when that fails (a full disk). */
int verb_print(const struct text *t);
int verb_print_json(json_t *j);

int verb_submit(struct session *s, int argc, char **argv);
int verb_run(struct session *s, int argc, char **argv);
int verb_queue(struct session *s, int argc, char **argv);
int verb_usage_of(struct session *s, int argc, char **argv);
int verb_history(struct session *s, int argc, char **argv);
int verb_show(struct session *s, int argc, char **argv);
int verb_logs(struct session *s, int argc, char **argv);
int verb_attach(struct session *s, int argc, char **argv);
int verb_cancel(struct session *s, int argc, char **argv);
int verb_hold(struct session *s, int argc, char **argv);
int verb_release(struct session *s, int argc, char **argv);
int verb_requeue(struct session *s, int argc, char **argv);
int verb_wait(struct session *s, int argc, char **argv);
int verb_shares(struct session *s, int argc, char **argv);
int verb_why(struct session *s, int argc, char **argv);
int verb_replay(struct session *s, int argc, char **argv);
int verb_gpus(struct session *s, int argc, char **argv);
int verb_layout(struct session *s, int argc, char **argv);
int verb_mig_parted(struct session *s, int argc, char **argv);
int verb_maintenance(struct session *s, int argc, char **argv);
int verb_slice(struct session *s, int argc, char **argv);
int verb_profiles(struct session *s, int argc, char **argv);
int verb_cdi(struct session *s, int argc, char **argv);
int verb_pool(struct session *s, int argc, char **argv);
int verb_mode(struct session *s, int argc, char **argv);
int verb_status(struct session *s, int argc, char **argv);
int verb_setup(struct session *s, int argc, char **argv);
int verb_help(struct session *s, int argc, char **argv);
int verb_version(struct session *s, int argc, char **argv);

#endif
