#include "cli/verb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/sbatch.h"
#include "cli/table.h"
#include "config/nearest.h"

/* Long sentences are broken to the width of a terminal, and go on below their first word. */
static void print_error(const char *words)
{
    AUTO(text) struct text out = TEXT_INIT;
    AUTO(table) struct table t = TABLE_INIT;
    struct screen s = { .width = screen_width(STDERR_FILENO) };
    s.width = s.width > 100 ? 100 : s.width; /* longer lines are hard to read */
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

#define KEY_ROOT 0x1001
#define KEY_JSON 0x1002
#define KEY_USAGE 0x1003

static const struct argp_option common_options[] = {
    { NULL, 0, NULL, 0, "Everywhere:", 90 },
    { "root", KEY_ROOT, "DIR", 0, "talk to the Divvy of this root (also: DIVVY_ROOT)", 90 },
    { "json", KEY_JSON, NULL, 0, "print JSON: all that is shown, and more", 90 },
    { "help", 'h', NULL, 0, "this text", 90 },
    { NULL, '?', NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 90 },
    { "usage", KEY_USAGE, NULL, 0, "the same in short", 90 },
    { 0 },
};

/* One parse: the verb's own parser and what it shares with all. */
struct parse {
    struct session *session;
    const struct argp *argp;
    const char *name; /* "divvy submit" */
    void *arg;
    argp_parser_t parser;
};

static const struct parse *current; /* for verb_refuse, which has argp's state alone */

static void help(const struct parse *p, unsigned flags)
{
    argp_help(p->argp, stdout, flags, (char *)p->name);
    exit(fflush(stdout) == 0 ? STATUS_OK : STATUS_REFUSED);
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    const struct parse *p = state->input;
    switch (key) {
    case KEY_ROOT:
        free(p->session->root);
        p->session->root = text_dup(arg);
        return 0;
    case KEY_JSON:
        p->session->json = true;
        return 0;
    case 'h':
        help(p, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
        return 0;
    case KEY_USAGE:
        help(p, ARGP_HELP_USAGE);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp common_argp = {
    common_options, parse_common, NULL, NULL, NULL, NULL, NULL
};

/* The option that a word begins with, in the verb's table or the common one. */
static const struct argp_option *find_option(const struct argp_option *table, const char *word)
{
    size_t len = strcspn(word + 2, "=");
    for (const struct argp_option *o = table; o && (o->name || o->key || o->doc); o++)
        if (word[1] == '-' ? o->name && strlen(o->name) == len && !strncmp(o->name, word + 2, len)
                           : o->key == word[1])
            return o;
    return NULL;
}

/* What was meant; NULL: nothing is near. Letters only of sbatch. */
static const char *nearest_option(const struct argp_option *own, const char *word)
{
    const char *names[96];
    size_t n = 0;
    bool letter = word[1] != '-';
    const char *slurms = sbatch_nearest(word);
    if (letter && !slurms)
        return NULL;
    auto_free char *given = text_fmt("%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (const struct argp_option *o = own; o && (o->name || o->key || o->doc); o++) {
        if (o->name && slurms && strcmp(o->name, slurms) == 0)
            return slurms;
        if (o->name && n < 90)
            names[n++] = o->name;
    }
    for (const struct argp_option *o = common_options; o->name || o->key || o->doc; o++)
        if (o->name)
            names[n++] = o->name;
    return letter ? NULL : nearest_name(given, names, n);
}

/* What was wrong with the word at which argp stopped. */
static int explain(const struct parse *p, const char *word)
{
    const struct session *s = p->session;
    if (word[0] != '-' || !word[1])
        return verb_usage(s, "'%.64s' is one argument too many; '%s --help' tells what it takes",
                          word, p->name);
    const struct argp_option *o = find_option(p->argp->options, word);
    if (!o)
        o = find_option(common_options, word);
    if (o && o->name)
        return verb_usage(s, "--%s %s", o->name, o->arg ? "needs a value" : "takes no value");
    const char *near = nearest_option(p->argp->options, word);
    if (near)
        return verb_usage(s, "there is no option '%.64s'; did you mean --%s?", word, near);
    return verb_usage(s, "there is no option '%.64s'; '%s --help' lists them", word, p->name);
}

/* argp hands one input to one parser; the verb's own gets the verb's. */
static error_t parse_verb(int key, char *arg, struct argp_state *state)
{
    struct parse *p = state->input;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = p;
        return 0;
    }
    if (key == ARGP_KEY_ERROR)
        exit(explain(p, state->argv[state->next - 1]));
    if (!p->parser)
        return ARGP_ERR_UNKNOWN;
    state->input = p->arg;
    error_t r = p->parser(key, arg, state);
    state->input = p;
    return r;
}

void verb_parse(struct session *s, const struct verb_words *words, int argc, char **argv, void *arg)
{
    static const struct argp_child children[] = { { &common_argp, 0, NULL, 0 }, { 0 } };
    struct argp argp = {
        words->options, parse_verb, words->args, words->doc, children, NULL, NULL
    };
    auto_free char *name = text_fmt("divvy %s", s->verb);
    struct parse p = { s, &argp, name, arg, words->parser };
    unsigned flags = words->flags | ARGP_NO_ERRS | ARGP_NO_HELP;
    int at = 0;
    current = &p;
    /* Its own messages and help would be in another tone, and know no nearest option. */
    error_t r = argp_parse(&argp, argc, argv, flags, &at, &p);
    if (r == 0 && at > 0 && at < argc)
        exit(explain(&p, argv[at]));
    current = NULL;
}

void verb_refuse(const char *fmt, ...)
{
    auto_free char *words = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&words, fmt, ap) < 0)
        abort(); /* out of memory: as in base/text.h */
    va_end(ap);
    exit(verb_usage(current->session, "%s", words));
}

void verb_take_name(char *ret, size_t size, const char *name)
{
    if (!*name) /* would stand for everybody's */
        verb_refuse("an empty name is nobody's; name somebody, or leave the option out");
    if (strlen(name) >= size)
        verb_refuse("'%.32s…' is too long for a name; at most %zu bytes work", name, size - 1);
    memcpy(ret, name, strlen(name) + 1);
}
