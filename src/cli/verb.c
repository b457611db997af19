#include "cli/verb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/table.h"

#define KEY_ROOT 0x1001
#define KEY_JSON 0x1002

static const struct argp_option common_options[] = {
    { NULL, 0, NULL, 0, "Everywhere:", 90 },
    { "root", KEY_ROOT, "DIR", 0, "talk to the Divvy of this root (also: DIVVY_ROOT)", 90 },
    { "json", KEY_JSON, NULL, 0, "print JSON: all that is shown, and more", 90 },
    { 0 },
};

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    struct session *s = state->input;
    switch (key) {
    case KEY_ROOT:
        free(s->root);
        s->root = text_dup(arg);
        return 0;
    case KEY_JSON:
        s->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp common_argp = {
    common_options, parse_common, NULL, NULL, NULL, NULL, NULL
};

/* argp hands one input to one parser: this pair tells the child and the verb's own apart. */
struct inputs {
    struct session *session;
    void *arg;
    argp_parser_t parser;
};

static error_t parse_verb(int key, char *arg, struct argp_state *state)
{
    struct inputs *in = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = in->session;
        return 0;
    }
    if (!in->parser)
        return ARGP_ERR_UNKNOWN;
    state->input = in->arg;
    error_t r = in->parser(key, arg, state);
    state->input = in;
    return r;
}

void verb_parse(struct session *s, const struct argp_option *options, argp_parser_t parser,
                const char *args, const char *doc, int argc, char **argv, unsigned flags, void *arg)
{
    static const struct argp_child children[] = { { &common_argp, 0, NULL, 0 }, { 0 } };
    struct argp argp = { options, parse_verb, args, doc, children, NULL, NULL };
    struct inputs in = { s, arg, parser };
    auto_free char *name = text_fmt("divvy %s", s->verb);
    char *first = argv[0];
    argv[0] = name;
    argp_err_exit_status = s->own_failure ? s->own_failure : STATUS_USAGE;
    (void)argp_parse(&argp, argc, argv, flags, NULL, &in); /* exits where it fails */
    argv[0] = first;
}

/* Long sentences are broken to the width of a terminal, and go on below their first word. */
static void print_error(const char *words)
{
    AUTO(text) struct text out = TEXT_INIT;
    AUTO(table) struct table t = TABLE_INIT;
    struct screen s = { .width = isatty(STDERR_FILENO) == 1 ? 100 : 0 };
    t.untitled = true;
    table_column(&t, "", 0);
    table_column(&t, "", TABLE_WRAP);
    table_cell(&t, "divvy");
    table_cell(&t, words);
    table_draw(&t, &s, &out);
    out.buf[strlen("divvy")] = ':'; /* the first column of the gap */
    (void)fputs(out.buf, stderr);   /* nowhere else to say it */
}

static int failure_status(int code)
{
    switch (code) {
    case -EHOSTDOWN:
        return STATUS_NO_DAEMON;
    case -ENOENT:
        return STATUS_NOT_FOUND;
    case -EACCES:
    case -EPERM:
        return STATUS_FORBIDDEN;
    default:
        return STATUS_REFUSED;
    }
}

int verb_fail(const struct session *s, const struct err *e)
{
    print_error(e->text);
    return s->own_failure ? s->own_failure : failure_status(e->code);
}

int verb_usage(const struct session *s, const char *fmt, ...)
{
    auto_free char *words = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&words, fmt, ap) < 0)
        abort(); /* out of memory: as in base/text.h */
    va_end(ap);
    print_error(words);
    return s->own_failure ? s->own_failure : STATUS_USAGE;
}

void verb_note(const char *fmt, ...)
{
    auto_free char *words = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&words, fmt, ap) < 0)
        abort(); /* out of memory: as in base/text.h */
    va_end(ap);
    print_error(words);
}

struct client *verb_connect(const struct session *s, int *ret_status)
{
    struct client *c = NULL;
    struct err e = ERR_INIT;
    if (client_open(s->root, &c, &e) < 0)
        *ret_status = verb_fail(s, &e);
    return c;
}

int verb_print(const struct text *t)
{
    if (fwrite(t->buf, 1, t->len, stdout) == t->len && fflush(stdout) == 0)
        return STATUS_OK;
    if (errno != EPIPE)
        verb_note("cannot write to standard output: %s", strerror(errno));
    return STATUS_REFUSED;
}

int verb_print_json(json_t *j)
{
    AUTO(text) struct text t = TEXT_INIT;
    auto_free char *s = json_dumps(j, JSON_INDENT(2));
    text_add(&t, s ? s : "null");
    text_add(&t, "\n");
    return verb_print(&t);
}
