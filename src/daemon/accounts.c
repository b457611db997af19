/* Who may charge whom, and what was used so far. */
#include "daemon/daemon.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/charge.h"

const char *intern(struct daemon *d, const char *word)
{
    char *known = map_get_name(&d->words, word ? word : "");
    if (!known) {
        known = text_dup(word ? word : "");
        map_put_name(&d->words, known, known);
    }
    return known;
}

#define NAME_US CLOCK_MINUTE

struct known_name {
    const char *name; /* interned */
    int64_t until_boot_us;
};

/* NULL: no such user, or the name service does not answer. */
static const char *look_up(struct daemon *d, uid_t uid)
{
    struct passwd pw;
    struct passwd *found = NULL;
    char buf[4096];
    bool there = getpwuid_r(uid, &pw, buf, sizeof buf, &found) == 0 && found;
    return there ? intern(d, found->pw_name) : NULL;
}

static struct known_name *known_name(struct daemon *d, uid_t uid)
{
    struct known_name *known = map_get(&d->user_names, uid);
    if (!known) {
        known = mem_new(sizeof *known);
        map_put(&d->user_names, uid, known);
    }
    return known;
}

/* The name service may be a file that is read anew, or another machine. */
const char *user_name(struct daemon *d, uid_t uid)
{
    char number[16];
    int64_t now_us = clock_now().boot_us;
    struct known_name *known = known_name(d, uid);
    if (!known->name || now_us >= known->until_boot_us)
        *known = (struct known_name){ look_up(d, uid), now_us + NAME_US };
    if (known->name)
        return known->name;
    (void)snprintf(number, sizeof number, "%u", uid); /* fits */
    return intern(d, number);
}

void accounts_done(struct daemon *d)
{
    struct known_name *known;
    for (size_t i = 0; (known = map_next(&d->user_names, &i));)
        free(known);
    map_done(&d->user_names);
}

/*
 * Rows come by account, then user, the account's own sum last. It is what an
 * account that is one leaf goes by; rows of users are from a time when they
 * had shares of their own, and are all it has where it has no sum yet.
 */
static int load_usage(const struct usage_row *row, void *arg)
{
    struct daemon *d = arg;
    struct now now = clock_now();
    bool pooled = sched_is_pooled(d->sched, row->account);
    int64_t as_of = now.boot_us - usage_age_us(row, now, clock_boot_id());
    double used = row->used_card_us;
    if (row->uid == USAGE_OF_ALL && !pooled)
        return 0;
    if (row->uid != USAGE_OF_ALL && pooled) {
        used = charge_decay(used, now.boot_us - as_of, d->config.half_life_us) +
               sched_usage(d->sched, row->account, row->uid, now);
        as_of = now.boot_us;
    }
    sched_set_usage(d->sched, row->account, row->uid, user_name(d, row->uid), used, as_of);
    return 0;
}

int accounts_usage_load(struct daemon *d, struct err *e)
{
    return store_each_usage(d->store, load_usage, d, e);
}

static bool has_word(const struct field_words *w, const char *word)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->words[i], word) == 0)
            return true;
    return false;
}

static bool in_group(const struct api_caller *who, const char *name)
{
    struct group gr;
    struct group *found = NULL;
    char buf[16384];
    if (getgrnam_r(name, &gr, buf, sizeof buf, &found) != 0 || !found)
        return false;
    if (who->gid == found->gr_gid)
        return true;
    for (size_t i = 0; i < who->group_count; i++)
        if (who->groups[i] == found->gr_gid)
            return true;
    return false;
}

static bool is_member(const struct config_account *a, const struct api_caller *who,
                      const char *user)
{
    if (has_word(&a->users, user))
        return true;
    for (size_t i = 0; i < a->groups.count; i++)
        if (in_group(who, a->groups.words[i]))
            return true;
    return false;
}

static const char *first_account(const struct daemon *d, const struct api_caller *who,
                                 const char *user)
{
    const char *everybody = NULL;
    for (size_t i = 0; i < d->config.account_count; i++) {
        const struct config_account *a = &d->config.accounts[i];
        if (is_member(a, who, user))
            return a->name;
        if (!everybody && has_word(&a->users, "*"))
            everybody = a->name;
    }
    return everybody;
}

static int named_account(struct daemon *d, const struct api_caller *who, const char *user,
                         const char *named, const char **ret, struct err *e)
{
    const struct config_account *a = divvyd_config_account(&d->config, named);
    if (!a && strcmp(named, user) != 0)
        return err_set(e, -ENOENT, "there is no account '%.64s'; divvy.yaml names the accounts",
                       named);
    if (a && !who->is_operator && !is_member(a, who, user) && !has_word(&a->users, "*"))
        return err_set(e, -EACCES, "%s is not in the account '%.64s'", user, named);
    *ret = intern(d, named);
    return 0;
}

static bool has_text(char *const *v, const char *word)
{
    for (; v && *v; v++)
        if (strcmp(*v, word) == 0)
            return true;
    return false;
}

static bool may_use(struct daemon *d, const struct qos *q, const struct api_caller *who,
                    const char *account)
{
    if (!q->accounts && !q->groups && !q->users)
        return true;
    if (who->is_operator || has_text(q->accounts, account) ||
        has_text(q->users, user_name(d, who->uid)))
        return true;
    for (char **g = q->groups; g && *g; g++)
        if (in_group(who, *g))
            return true;
    return false;
}

static void add_classes(struct daemon *d, const struct api_caller *who, const char *account,
                        struct text *t)
{
    size_t told = 0;
    if (!divvyd_config_qos(&d->config, QOS_DEFAULT))
        text_addf(t, "%s%s", told++ ? ", " : "", QOS_DEFAULT);
    for (size_t i = 0; i < d->config.qos_count; i++)
        if (may_use(d, &d->config.qos[i], who, account))
            text_addf(t, "%s%s", told++ ? ", " : "", d->config.qos[i].name);
    if (!told)
        text_add(t, "none");
}

int class_of(struct daemon *d, const struct api_caller *who, const char *account, const char *named,
             const char **ret, struct err *e)
{
    AUTO(text) struct text all = TEXT_INIT;
    const char *name = named && named[0] ? named : d->config.default_qos;
    const struct qos *q = divvyd_config_qos(&d->config, name);
    if ((q && may_use(d, q, who, account)) || (!q && strcmp(name, QOS_DEFAULT) == 0)) {
        *ret = intern(d, name);
        return 0;
    }
    add_classes(d, who, account, &all);
    if (!q)
        return err_set(e, -EINVAL, "there is no class '%.40s'; %s may use: %s", name,
                       user_name(d, who->uid), all.buf);
    return err_set(e, -EACCES, "%s may not use the class %s in %s; these work: %s",
                   user_name(d, who->uid), name, account, all.buf);
}

uint64_t charge_of(const struct daemon *d, const struct place *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        struct place one = { .items = &p->items[i], .count = 1 };
        const struct card_memory *c = cards_find(d, p->items[i].card_uuid);
        double factor = c ? divvyd_config_charge(&d->config, &c->last.board) : 1;
        sum += (double)charge_dominant_ppm(&one) * factor;
    }
    return (uint64_t)(sum + 0.5);
}

int account_of(struct daemon *d, const struct api_caller *who, const char *named, const char **ret,
               struct err *e)
{
    const char *user = user_name(d, who->uid);
    if (named && named[0])
        return named_account(d, who, user, named, ret, e);
    const char *first = first_account(d, who, user);
    if (!first && d->config.account_count && !who->is_operator)
        return err_set(e, -EACCES, "%s is in no account; ask the administrator to put you into one",
                       user);
    *ret = intern(d, first ? first : user);
    return 0;
}
