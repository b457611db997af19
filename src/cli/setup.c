#include "cli/setup.h"

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define OPERATORS "divvy"

static const char doc[] =
    "Makes a machine ready for Divvy: group, folders, units and a first divvy.yaml, each only "
    "where it is missing. No card is touched: all are in pool off until 'divvy pool' says "
    "otherwise. With --root DIR everything lands below DIR, for a trial.";

static const struct argp_option options[] = {
    { "group", 'g', "NAME", 0, "an account for this Unix group (may be given again)", 1 },
    { "dry-run", 'n', NULL, 0, "only tell what would be done", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct setup *s = state->input;
    switch (key) {
    case 'g':
        if (!arg[0] || strlen(arg) > 32)
            verb_refuse("--group '%.40s': a group's name has 1 to 32 characters", arg);
        for (size_t i = 0; s->groups && s->groups[i]; i++)
            if (strcmp(s->groups[i], arg) == 0)
                return 0;
        strv_add(&s->groups, arg);
        return 0;
    case 'n':
        s->dry = true;
        return 0;
    case ARGP_KEY_ARG:
        verb_refuse("'%.32s' is one argument too many; groups are named by --group", arg);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void setup_tell(struct setup *s, enum setup_state state, const char *thing, const char *fmt, ...)
{
    char *note = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&note, fmt, ap) < 0)
        abort(); /* out of memory: as in base/text.h */
    va_end(ap);
    ARRAY_ROOM(s->lines, s->alloc, s->count + 1);
    s->lines[s->count++] =
        (struct setup_line){ .state = state, .thing = text_dup(thing), .note = note };
}

static void setup_done(struct setup *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->lines[i].thing);
        free(s->lines[i].note);
    }
    free(s->lines);
    free(s->root);
    strv_free(s->groups);
}

/* ---- asking ---- */

/* Has members of its own: not the private group of one user, nor one of the system. */
static bool is_for_people(const struct group *g)
{
    return g->gr_gid >= 1000 && g->gr_gid < 60000 && g->gr_mem && g->gr_mem[0];
}

static void list_groups(struct text *t)
{
    const struct group *g;
    setgrent();
    while ((g = getgrent()))
        if (is_for_people(g))
            text_addf(t, " %s", g->gr_name);
    endgrent();
}

/* Only at a terminal, and only when there is something to choose. */
static void ask_groups(struct setup *s)
{
    AUTO(text) struct text found = TEXT_INIT;
    auto_free char *line = NULL;
    size_t size = 0;
    auto_free char *file = file_under(s->root, "/etc/divvy/divvy.yaml");
    if (s->groups || isatty(STDIN_FILENO) != 1 || access(file, F_OK) == 0)
        return;
    list_groups(&found);
    if (!found.len)
        return;
    (void)fprintf(stderr,
                  "Unix groups with members:%s\n"
                  "Which of them share the GPUs, each as one account? (names, or nothing: every "
                  "user is an account of his own)\n> ",
                  found.buf);
    if (getline(&line, &size, stdin) < 0)
        return;
    char *rest = line;
    for (char *word; (word = strsep(&rest, " ,\t\n"));)
        if (word[0])
            strv_add(&s->groups, word);
}

/* ---- the list ---- */

static int make_group(struct setup *s, struct err *e)
{
    char *const add[] = { (char *)"groupadd", (char *)"--system", (char *)OPERATORS, NULL };
    if (!s->whole) {
        setup_tell(s, SETUP_SKIP, "group " OPERATORS, "a trial changes no groups of the machine");
        return 0;
    }
    if (getgrnam(OPERATORS)) {
        setup_tell(s, SETUP_THERE, "group " OPERATORS, "%s", "");
        return 0;
    }
    int r = s->dry ? 0 : setup_run(add, e);
    if (r == 0)
        setup_tell(s, SETUP_DONE, "group " OPERATORS, "its members act on all jobs and cards");
    return r;
}

static int make_folders(struct setup *s, struct err *e)
{
    static const struct {
        const char *path;
        mode_t mode;
    } folders[] = { { "/etc/divvy", 0755 },
                    { "/var/lib/divvy", 0755 },
                    { "/var/lib/divvy/jobs", 0700 } };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        auto_free char *path = file_under(s->root, folders[i].path);
        bool there = access(path, F_OK) == 0;
        int r = there || s->dry ? 0 : file_mkdirs(path, folders[i].mode, e);
        if (r < 0)
            return r;
        setup_tell(s, there ? SETUP_THERE : SETUP_DONE, path, "%s", "");
    }
    return 0;
}

static int carry_out(struct setup *s, struct err *e)
{
    if (s->whole && !s->dry && geteuid() != 0)
        return err_set(e, -EPERM,
                       "setup changes this machine and needs root: sudo divvy setup; or look first "
                       "with --dry-run, or try it with --root DIR");
    ask_groups(s);
    int r = setup_check_groups(s->groups, e);
    if (r == 0)
        r = make_group(s, e);
    if (r == 0)
        r = make_folders(s, e);
    if (r == 0)
        r = setup_config(s, e);
    return r < 0 ? r : setup_units(s, e);
}

/* ---- telling ---- */

static const char *state_word(const struct setup *s, enum setup_state state)
{
    return state == SETUP_THERE  ? "there"
           : state == SETUP_SKIP ? "left out"
           : s->dry              ? "would make"
                                 : "made";
}

/* For a shell: as it is where that is one word, else in quotes. */
static void add_shell(struct text *t, const char *word)
{
    if (!word[strspn(word,
                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+")]) {
        text_add(t, word);
        return;
    }
    text_add(t, "'");
    for (; *word; word++)
        text_addf(t, *word == '\'' ? "'\\''" : "%c", *word);
    text_add(t, "'");
}

/* A block of lines that is pasted goes on only when it answers. */
static void next_start(char ***ret)
{
    strv_add(ret, "divvyd &");
    strv_add(ret, "divvy status --wait 10s");
}

static void next_root(const char *root, char ***ret)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "export DIVVY_ROOT=");
    add_shell(&t, root);
    strv_add(ret, t.buf);
    next_start(ret);
}

static void next_steps(const struct setup *s, char ***ret)
{
    bool units = s->whole && access("/run/systemd/system", F_OK) == 0;
    if (units)
        strv_add(ret, "systemctl enable --now divvyd");
    else if (s->whole)
        next_start(ret);
    else
        next_root(s->root, ret);
    strv_add(ret, "divvy gpus              the cards; all are in pool off: watched, not touched");
    strv_add(ret, "divvy pool gpu0 queue   hand a card to the queue");
    strv_add(ret, "divvy mode gpu0 slices  and say what it may become: whole, slices or auto");
    if (s->whole)
        strv_add(ret, "usermod -aG " OPERATORS " NAME  who may act on all jobs and cards");
}

static int print_text(const struct setup *s, char *const *next)
{
    AUTO(text) struct text t = TEXT_INIT;
    for (size_t i = 0; i < s->count; i++) {
        const struct setup_line *l = &s->lines[i];
        text_addf(&t, "%-10s  %s%s%s\n", state_word(s, l->state), l->thing, l->note[0] ? ": " : "",
                  l->note);
    }
    if (next)
        text_add(&t, s->dry ? "\nNothing was changed. Next:\n" : "\nNext:\n");
    for (; next && *next; next++)
        text_addf(&t, "  %s\n", *next);
    return verb_print(&t);
}

static int print_json(const struct setup *s, char *const *next)
{
    auto_json json_t *j = json_object();
    json_t *lines = json_array();
    json_t *steps = json_array();
    for (size_t i = 0; i < s->count; i++) {
        json_t *line = json_object();
        json_put_text(line, "thing", s->lines[i].thing);
        json_put_text(line, "state", state_word(s, s->lines[i].state));
        json_put_text(line, "note", s->lines[i].note);
        (void)json_array_append_new(lines, line); /* no memory: shorter */
    }
    for (; next && *next; next++)
        (void)json_array_append_new(steps, json_string(*next)); /* as above */
    json_put(j, "lines", lines);
    json_put(j, "next", steps);
    return verb_print_json(j);
}

static char *root_of(const struct session *session)
{
    const char *env = getenv("DIVVY_ROOT");
    const char *root = session->root ? session->root : env && env[0] ? env : "/";
    size_t len = strlen(root);
    while (len > 1 && root[len - 1] == '/')
        len--;
    return text_fmt("%.*s", (int)len, root);
}

int verb_setup(struct session *session, int argc, char **argv)
{
    struct setup s = { .root = NULL };
    struct err e = ERR_INIT;
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    verb_parse(session, &words, argc, argv, &s);
    s.root = root_of(session);
    s.whole = text_same(s.root, "/");
    char **next = NULL;
    int r = carry_out(&s, &e);
    if (r == 0)
        next_steps(&s, &next);
    int status = STATUS_OK;
    if (session->json && r == 0)
        status = print_json(&s, next);
    else if (!session->json && (r == 0 || s.count))
        status = print_text(&s, next);
    if (r < 0)
        status = verb_fail(session, &e);
    strv_free(next);
    setup_done(&s);
    return status;
}
