#include "config/mig_hooks.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/mig_parted.h"
#include "config/nearest.h"

#define HOOKS_MAX 64u
#define WORDS_MAX 256u

static const char *const point_words[MIG_HOOK_POINTS] = { "apply-start", "pre-apply-mode",
                                                          "pre-apply-config", "apply-exit" };

const char *mig_hook_word(enum mig_hook_point p)
{
    return point_words[p];
}

void mig_hooks_done(struct mig_hooks *h)
{
    for (int p = 0; p < MIG_HOOK_POINTS; p++) {
        for (size_t i = 0; i < h->count[p]; i++) {
            free(h->list[p][i].workdir);
            free(h->list[p][i].command);
            field_words_done(&h->list[p][i].args);
            field_words_done(&h->list[p][i].envs);
        }
        free(h->list[p]);
    }
    *h = (struct mig_hooks)MIG_HOOKS_INIT;
}

static void add_word(struct field_words *w, char *take_word)
{
    ARRAY_ROOM(w->words, w->alloc, w->count + 1);
    w->words[w->count++] = take_word;
}

/* Scripts stand here: newlines and the like are allowed. */
static int read_args(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct field_words *words = place;
    int r = 0;
    (void)f; /* nothing of it is needed */
    if (n->kind != YAML_IS_LIST)
        return yaml_node_fail(n, e, "args must be a list: [\"-c\", \"true\"]");
    if (n->count > WORDS_MAX)
        return yaml_node_fail(n, e, "more than %u arguments", WORDS_MAX);
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next) {
        const char *word;
        r = yaml_node_text(c, &word, e);
        if (r == 0)
            add_word(words, text_dup(word));
    }
    return r;
}

static int read_envs(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct field_words *words = place;
    int r = 0;
    (void)f; /* nothing of it is needed */
    if (n->kind != YAML_IS_MAP)
        return yaml_node_fail(n, e, "envs must be a map of names and values");
    if (n->count > WORDS_MAX)
        return yaml_node_fail(n, e, "more than %u variables", WORDS_MAX);
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next) {
        const char *word;
        if (!c->key[0] || strchr(c->key, '='))
            return yaml_node_fail_key(c, e, "'%.64s' is no name of a variable", c->key);
        r = yaml_node_text(c, &word, e);
        if (r == 0)
            add_word(words, text_fmt("%s=%s", c->key, word));
    }
    return r;
}

static int read_command(const struct yaml_node *n, const struct field *f, void *place,
                        struct err *e)
{
    char **command = place;
    const char *word;
    (void)f; /* nothing of it is needed */
    int r = yaml_node_text(n, &word, e);
    if (r == 0 && !word[0])
        return yaml_node_fail(n, e, "command is empty");
    if (r == 0) {
        free(*command);
        *command = text_dup(word);
    }
    return r;
}

static const struct field hook_fields[] = {
    { "workdir", field_string, offsetof(struct mig_hook, workdir) },
    { "command", read_command, offsetof(struct mig_hook, command), .required = true },
    { "args", read_args, offsetof(struct mig_hook, args) },
    { "envs", read_envs, offsetof(struct mig_hook, envs) },
    { NULL },
};

static int find_point(const struct yaml_node *n, int *ret, struct err *e)
{
    for (int p = 0; p < MIG_HOOK_POINTS; p++)
        if (strcmp(n->key, point_words[p]) == 0) {
            *ret = p;
            return 0;
        }
    const char *near = nearest_name(n->key, point_words, MIG_HOOK_POINTS);
    return yaml_node_fail_key(n, e, "no hook is called '%.64s'; %s%s%s", n->key,
                              near ? "did you mean " : "there are ",
                              near ? near
                                   : "apply-start, pre-apply-mode, pre-apply-config and "
                                     "apply-exit",
                              near ? "?" : "");
}

static int read_point(const struct yaml_node *n, struct mig_hooks *h, struct err *e)
{
    int p = 0;
    int r = find_point(n, &p, e);
    if (r < 0 || yaml_node_is_null(n))
        return r;
    if (n->kind != YAML_IS_LIST)
        return yaml_node_fail(n, e, "%s must be a list of commands", n->key);
    if (n->count > HOOKS_MAX)
        return yaml_node_fail(n, e, "more than %u commands", HOOKS_MAX);
    h->list[p] = mem_new((n->count + 1) * sizeof *h->list[p]);
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = field_read_map(c, hook_fields, &h->list[p][h->count[p]++], e);
    return r;
}

static int read_points(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    int r = 0;
    (void)f; /* all of them are filled */
    if (n->kind != YAML_IS_MAP)
        return yaml_node_fail(n, e, "hooks must be a map of lists");
    for (const struct yaml_node *c = n->first; r == 0 && c; c = c->next)
        r = read_point(c, place, e);
    return r;
}

static const struct field file_fields[] = {
    { "version", mig_parted_read_version, 0 },
    { "hooks", read_points, 0 },
    { NULL },
};

static int from_tree(const struct yaml_tree *t, struct mig_hooks *ret, struct err *e)
{
    AUTO(mig_hooks) struct mig_hooks h = MIG_HOOKS_INIT;
    int r = field_read_map(t->root, file_fields, &h, e);
    if (r < 0)
        return r;
    *ret = h;
    h = (struct mig_hooks)MIG_HOOKS_INIT;
    return 0;
}

int mig_hooks_read(const char *path, struct mig_hooks *ret, struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_read(path, &t, e);
    return r < 0 ? r : from_tree(t, ret, e);
}

int mig_hooks_parse(const char *file, const char *text, size_t len, struct mig_hooks *ret,
                    struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_parse(file, text, len, &t, e);
    return r < 0 ? r : from_tree(t, ret, e);
}
