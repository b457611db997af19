/* divvy.yaml as `divvy setup` begins it. */
#include "cli/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "config/divvyd.h"

static const char head[] =
    "# Divvy on this machine. divvy.yaml(5) explains every key and tells its default;\n"
    "# lines behind a # are examples. After a change: divvyd --check, and systemctl\n"
    "# restart divvyd (jobs run on).\n"
    "\n"
    "# A card that is seen for the first time is watched and not touched. Afterwards\n"
    "# 'divvy pool gpu0 queue' and 'divvy mode gpu0 slices' decide.\n"
    "cards:\n"
    "  default: {pool: off, mode: auto}\n"
    "\n"
    "# An empty card in mode auto may change its MIG mode for a job after so long.\n"
    "#mode_hold: 10m\n"
    "\n"
    "# The limit of a job that names none, and the longest that may be asked. Without\n"
    "# these lines there is neither.\n"
    "#default_time: 1h\n"
    "#max_time: 7d\n"
    "\n"
    "# Members of this Unix group may act on all jobs and cards.\n"
    "#operators: divvy\n"
    "\n"
    "# auto: jobs are kept from each other's devices as far as the machine allows;\n"
    "# require: without that, divvyd does not start.\n"
    "#isolation: auto\n"
    "\n"
    "# Who shares with whom. The account that has used least of its share goes first.\n";

static const char no_accounts[] = "# Without accounts every user is an account of his own.\n"
                                  "#accounts:\n"
                                  "#  nlp:    {groups: [nlp-lab], share: 2}\n"
                                  "#  vision: {users: [alice, bob], limits: {cards: 4}}\n"
                                  "#  guests: {users: [\"*\"]}\n";

/* JSON's rules for a quoted word are YAML's, too. */
static void add_quoted(struct text *t, const char *word)
{
    auto_json json_t *j = json_string(word);
    auto_free char *quoted = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
    text_add(t, quoted ? quoted : "\"\"");
}

char *setup_config_text(char *const *groups)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, head);
    if (!groups || !groups[0]) {
        text_add(&t, no_accounts);
        return text_take(&t);
    }
    text_add(&t, "accounts:\n");
    for (; *groups; groups++) {
        text_add(&t, "  ");
        add_quoted(&t, *groups);
        text_add(&t, ": {groups: [");
        add_quoted(&t, *groups);
        text_add(&t, "], share: 1}\n");
    }
    return text_take(&t);
}

int setup_check_groups(char *const *groups, struct err *e)
{
    for (; groups && *groups; groups++)
        if (!getgrnam(*groups))
            return err_set(e, -ENOENT,
                           "there is no Unix group '%.64s' on this machine; 'getent group' lists "
                           "those that there are",
                           *groups);
    return 0;
}

static int write_config(const struct setup *s, const char *dir, const char *file, struct err *e)
{
    auto_free char *text = setup_config_text(s->groups);
    struct divvyd_config c;
    /* What the daemon would refuse is not written. */
    int r = divvyd_config_parse(file, text, strlen(text), &c, e);
    if (r < 0)
        return r;
    divvyd_config_done(&c);
    if (s->dry)
        return 0;
    auto_close int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open %s", dir);
    return file_replace(fd, "divvy.yaml", text, strlen(text), 0644, e);
}

/* Whose accounts the file lacks; it is its owner's to change. */
static void tell_missing(struct setup *s, const char *file, const struct divvyd_config *c)
{
    AUTO(text) struct text missing = TEXT_INIT;
    for (size_t i = 0; s->groups && s->groups[i]; i++)
        if (!divvyd_config_account(c, s->groups[i]))
            text_addf(&missing, "%s%s", missing.len ? ", " : "", s->groups[i]);
    if (missing.len)
        setup_tell(s, SETUP_THERE, file,
                   "it is yours and was left alone; it has no account for %s: add one under "
                   "accounts:",
                   missing.buf);
    else
        setup_tell(s, SETUP_THERE, file, "%s", "");
}

int setup_config(struct setup *s, struct err *e)
{
    auto_free char *dir = file_under(s->root, "/etc/divvy");
    auto_free char *file = file_under(s->root, "/etc/divvy/divvy.yaml");
    struct divvyd_config c;
    int r = divvyd_config_read(file, &c, e);
    if (r == 0) {
        tell_missing(s, file, &c);
        divvyd_config_done(&c);
        return 0;
    }
    if (r == -ENOENT)
        r = write_config(s, dir, file, e);
    if (r == 0)
        setup_tell(s, SETUP_DONE, file, "%zu account%s, every card in pool off",
                   strv_count(s->groups), strv_count(s->groups) == 1 ? "" : "s");
    return r;
}
