#include "cli/names.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/verb.h"
#include "config/nearest.h"

#define TOLD_MAX 8 /* names in a sentence */

/* Names of the tree's accounts or users, each once. Borrowed; the list is the caller's. */
static const char **collect(const struct share_view *tree, bool users, size_t *ret_count)
{
    const char **names = mem_new((tree->count + 1) * sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct share_row *row = &tree->rows[i];
        const char *name = users ? row->user : row->user ? NULL : row->account;
        bool again = !name;
        for (size_t k = 0; k < n && !again; k++)
            again = strcmp(names[k], name) == 0;
        if (!again)
            names[n++] = name;
    }
    *ret_count = n;
    return names;
}

static bool is_user_here(const char *name)
{
    char *end = NULL;
    (void)strtoul(name, &end, 10); /* a user without a name goes by his number */
    return *end == '\0' || getpwnam(name);
}

static int refuse(const char *what, const char *given, const char **names, size_t count,
                  struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    const char *near = nearest_name(given, names, count);
    if (near)
        text_addf(&t, "; did you mean %s?", near);
    for (size_t i = 0; !near && i < count && i < TOLD_MAX; i++)
        text_addf(&t, "%s%s", i ? ", " : "; there are ", names[i]);
    if (!near && count > TOLD_MAX)
        text_add(&t, " and others (divvy shares)");
    return err_set(e, -ENOENT, "there is no %s '%.64s' here%s", what, given, t.buf);
}

static int check(const struct share_view *tree, bool users, const char *given, struct err *e)
{
    size_t count = 0;
    if (!given[0] || is_user_here(given)) /* an account of his own comes with his first job */
        return 0;
    auto_free const char **names = collect(tree, users, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], given) == 0)
            return 0;
    return refuse(users ? "user" : "account", given, names, count, e);
}

int names_check(const struct share_view *tree, const char *user, const char *account, struct err *e)
{
    int r = check(tree, true, user, e);
    return r < 0 ? r : check(tree, false, account, e);
}

int verb_check_names(const struct session *s, struct client *c, const char *user,
                     const char *account)
{
    struct err e = ERR_INIT;
    struct share_view tree = { .rows = NULL };
    if ((!user[0] && !account[0]) || client_shares(c, &tree, NULL) < 0)
        return STATUS_OK;
    int r = names_check(&tree, user, account, &e);
    share_view_done(&tree);
    return r < 0 ? verb_fail(s, &e) : STATUS_OK;
}
