#include "daemon/check.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/board.h"

static void say(struct text *t, const char *where, const char *what, const char *word)
{
    text_addf(t, "%s: there is no %s %s here\n", where, what, word);
}

/* Who has no name is called by his number. */
static void check_user(const char *where, const char *name, struct text *t)
{
    bool number = name[strspn(name, "0123456789")] == '\0';
    if (strcmp(name, "*") != 0 && !number && !getpwnam(name))
        say(t, where, "user", name);
}

static void check_group(const char *where, const char *name, struct text *t)
{
    if (!getgrnam(name))
        say(t, where, "group", name);
}

static void check_program(const char *where, const char *path, struct text *t)
{
    if (path && access(path, X_OK) < 0)
        text_addf(t, "%s: %s cannot be run: %s\n", where, path, strerror(errno));
}

/* Cards that no file describes tell their profiles themselves, so this is a doubt, not a fault. */
static bool any_board_has(const char *profile)
{
    struct field_words keys = { .count = 0 };
    struct board b;
    bool found = board_keys(&keys, NULL) < 0;
    for (size_t i = 0; i < keys.count && !found; i++)
        found = board_find(keys.words[i], &b, NULL) >= 0 && board_profile_by_name(&b, profile);
    field_words_done(&keys);
    return found;
}

static void check_limits(const char *where, const struct limits *l, struct text *t)
{
    for (uint32_t i = 0; i < l->slice_count; i++)
        if (!any_board_has(l->slices[i].profile))
            text_addf(t, "%s: no known board has the profile %s\n", where, l->slices[i].profile);
}

static void check_account(const struct config_account *a, struct text *t)
{
    auto_free char *where = text_fmt("accounts: %s", a->name);
    for (size_t i = 0; i < a->users.count; i++)
        check_user(where, a->users.words[i], t);
    for (size_t i = 0; i < a->groups.count; i++)
        check_group(where, a->groups.words[i], t);
    for (size_t i = 0; i < a->user_share_count; i++)
        check_user(where, a->user_shares[i].user, t);
    check_limits(where, &a->limits, t);
    check_limits(where, &a->user_limits, t);
}

static void check_class(const struct qos *q, struct text *t)
{
    auto_free char *where = text_fmt("qos: %s", q->name);
    for (char **w = q->users; w && *w; w++)
        check_user(where, *w, t);
    for (char **w = q->groups; w && *w; w++)
        check_group(where, *w, t);
    check_limits(where, &q->limits, t);
    check_limits(where, &q->user_limits, t);
}

void check_machine(const struct divvyd_config *c, struct text *ret)
{
    for (size_t i = 0; i < c->account_count; i++)
        check_account(&c->accounts[i], ret);
    for (size_t i = 0; i < c->qos_count; i++)
        check_class(&c->qos[i], ret);
    check_limits("limits", &c->limits, ret);
    check_limits("user_limits", &c->user_limits, ret);
    check_program("prolog", c->prolog, ret);
    check_program("epilog", c->epilog, ret);
    check_program("event_hook", c->event_hook, ret);
}

int check_main(const char *path)
{
    struct err e = ERR_INIT;
    struct divvyd_config c;
    AUTO(text) struct text said = TEXT_INIT;
    if (divvyd_config_read(path, &c, &e) < 0) {
        log_line(LOG_ERROR, "%s", e.text);
        return EXIT_FAILURE;
    }
    check_machine(&c, &said);
    divvyd_config_done(&c);
    int n = printf("%s%s%s can be used\n", said.len ? said.buf : "", said.len ? "otherwise " : "",
                   path);
    return n < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
