#include "config/shares.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/divvyd.h"
#include "config/nearest.h"

#define SHARE_MAX 1000000.0
#define USER_PENDING 20000 /* so many jobs of one user wait where nothing else is said */
#define CARDS_MAX 100000.0 /* of one server, and some */

static const struct field_choice insides[] = {
    { "users", INSIDE_USERS }, { "fifo", INSIDE_FIFO }, { "las", INSIDE_LAS }, { NULL }
};

void shares_config_init(struct divvyd_config *c)
{
    c->limits = c->user_limits = (struct limits)LIMITS_NONE;
    c->user_limits.pending = USER_PENDING;
    c->default_qos = text_dup(QOS_DEFAULT);
    c->order = (struct config_order){ .share = 1, .age_max_us = 7 * CLOCK_DAY };
    c->las_us[0] = CLOCK_HOUR;
    c->las_us[1] = 10 * CLOCK_HOUR;
    c->las_count = 2;
}

static void account_done(struct config_account *a)
{
    free(a->name);
    free(a->parent);
    field_words_done(&a->users);
    field_words_done(&a->groups);
    for (size_t i = 0; i < a->user_share_count; i++)
        free(a->user_shares[i].user);
    free(a->user_shares);
}

void shares_config_done(struct divvyd_config *c)
{
    for (size_t i = 0; i < c->account_count; i++)
        account_done(&c->accounts[i]);
    free(c->accounts);
    for (size_t i = 0; i < c->qos_count; i++)
        qos_done(&c->qos[i]);
    free(c->qos);
    for (size_t i = 0; i < c->charge_count; i++)
        free(c->charges[i].board);
    free(c->charges);
    free(c->default_qos);
}

static int need_map(const struct yaml_node *n, const char *what, struct err *e)
{
    if (n->kind == YAML_IS_MAP)
        return 0;
    return yaml_node_fail(n, e, "%s must be a map of names, not %s", what,
                          yaml_node_kind_name(n->kind));
}

/* ---- limits ---------------------------------------------------------------- */

/* A number of cards, "2.5", as ppm of one. */
static int read_cards_worth(const struct yaml_node *n, const struct field *f, void *place,
                            struct err *e)
{
    (void)f;
    double x;
    int r = yaml_node_double(n, 0, CARDS_MAX, &x, e);
    if (r == 0)
        *(uint64_t *)place = (uint64_t)(x * PPM + 0.5);
    return r;
}

static int read_slices(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct limits *l = place;
    int r = need_map(n, "slices", e);
    if (r == 0 && n->count > LIMIT_SLICES_MAX)
        return yaml_node_fail(n, e, "slices: more than %u profiles", LIMIT_SLICES_MAX);
    l->slice_count = 0;
    for (const struct yaml_node *k = n->first; k && r >= 0; k = k->next) {
        uint64_t max = 0;
        size_t len = strlen(k->key);
        if (len >= PROFILE_NAME_SIZE || !strchr(k->key, 'g') || strspn(k->key, "0123456789") == 0)
            return yaml_node_fail_key(k, e, "slices: '%.64s' is no profile, like 1g.10gb", k->key);
        r = yaml_node_u64(k, 0, UINT32_MAX, &max, e);
        struct limit_slices *s = &l->slices[l->slice_count++];
        memcpy(s->profile, k->key, len + 1);
        s->max = (uint32_t)max;
    }
    return r;
}

/* "60/h": so many in that time. */
static int read_rate(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    static const char *const units[] = { "s", "m", "h", "d" };
    struct limits *l = place;
    const char *text;
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    auto_free char *count = text_dup(text);
    char *slash = strchr(count, '/');
    if (slash) {
        *slash++ = '\0';
        bool bare = false;
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            bare = bare || strcmp(slash, units[i]) == 0;
        auto_free char *time = text_fmt("%s%s", bare ? "1" : "", slash);
        if (text_parse_u64(count, 1, 1000000, "jobs", &l->submits, NULL) == 0 &&
            text_parse_duration(time, "time", &l->submits_per_us, NULL) == 0 &&
            l->submits_per_us > 0)
            return 0;
    }
    return yaml_node_fail(n, e, "submits: '%.64s' is no rate; write it like 60/h, 5/s or 100/30m",
                          text);
}

#define AT(member) offsetof(struct limits, member)
static const struct field limit_fields[] = {
    { "compute", read_cards_worth, AT(compute_ppm) },
    { "memory", read_cards_worth, AT(mem_ppm) },
    { "cards", field_u64, AT(cards), .max = UINT32_MAX },
    { "slices", read_slices, 0 },
    { "running", field_u64, AT(running), .max = UINT32_MAX },
    { "pending", field_u64, AT(pending), .max = UINT32_MAX },
    { "submits", read_rate, 0 },
    { "max_time", field_duration, AT(time_us) },
    { NULL },
};
#undef AT

int shares_read_limits(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    return field_read_map(n, limit_fields, place, e);
}

/* ---- accounts -------------------------------------------------------------- */

static int read_share(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    return yaml_node_double(n, 0, SHARE_MAX, place, e);
}

static int read_user_shares(const struct yaml_node *n, const struct field *f, void *place,
                            struct err *e)
{
    (void)f;
    struct config_account *a = place;
    int r = need_map(n, "user_shares", e);
    for (const struct yaml_node *k = n->first; k && r >= 0; k = k->next) {
        ARRAY_ROOM(a->user_shares, a->user_share_alloc, a->user_share_count + 1);
        struct config_user_share *u = &a->user_shares[a->user_share_count++];
        *u = (struct config_user_share){ .user = text_dup(k->key) };
        r = yaml_node_double(k, 0, SHARE_MAX, &u->share, e);
    }
    return r;
}

#define AT(member) offsetof(struct config_account, member)
static const struct field account_fields[] = {
    { "users", field_list_words, AT(users) },
    { "groups", field_list_words, AT(groups) },
    { "share", read_share, AT(share) },
    { "parent", field_string, AT(parent) },
    { "user_shares", read_user_shares, 0 },
    { "inside", field_choice_word, AT(inside), .choices = insides },
    { "limits", shares_read_limits, AT(limits) },
    { "user_limits", shares_read_limits, AT(user_limits) },
    { NULL },
};
#undef AT

static int read_account(const struct yaml_node *n, struct divvyd_config *c, struct err *e)
{
    if (!qos_is_name(n->key))
        return yaml_node_fail_key(n, e,
                                  "accounts: '%.64s' cannot be a name; up to %u letters, digits, "
                                  "'.', '_' and '-' can",
                                  n->key, CONFIG_NAME_MAX);
    ARRAY_ROOM(c->accounts, c->account_alloc, c->account_count + 1);
    struct config_account *a = &c->accounts[c->account_count++];
    *a = (struct config_account){
        .name = text_dup(n->key), .share = 1, .limits = LIMITS_NONE, .user_limits = LIMITS_NONE
    };
    return yaml_node_is_null(n) ? 0 : field_read_map(n, account_fields, a, e);
}

int shares_read_accounts(const struct yaml_node *n, const struct field *f, void *place,
                         struct err *e)
{
    (void)f;
    int r = need_map(n, "accounts", e);
    if (r == 0 && n->count > CONFIG_ACCOUNTS_MAX)
        return yaml_node_fail(n, e, "accounts: %zu are more than %u", n->count,
                              CONFIG_ACCOUNTS_MAX);
    for (const struct yaml_node *k = n->first; k && r >= 0; k = k->next)
        r = read_account(k, place, e);
    return r;
}

/* ---- classes --------------------------------------------------------------- */

static int read_strv(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    struct field_words w = { .words = NULL };
    int r = field_list_words(n, f, &w, e);
    for (size_t i = 0; i < w.count && r >= 0; i++)
        strv_add(place, w.words[i]);
    field_words_done(&w);
    return r;
}

static int read_preempt(const struct yaml_node *n, const struct field *f, void *place,
                        struct err *e)
{
    (void)f;
    struct qos *q = place;
    struct err why = ERR_INIT;
    const char *text;
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    if (qos_preempt_parse(text, &q->preempt, &q->signal, &why) < 0)
        return yaml_node_fail(n, e, "preempt: %s", why.text);
    return 0;
}

static int read_grace(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    int64_t us;
    int r = field_duration(n, f, &us, e);
    if (r < 0)
        return r;
    if (us > QOS_GRACE_MAX_US)
        return yaml_node_fail(n, e, "grace: others wait for its cards meanwhile; 1d at most");
    *(int64_t *)place = us;
    return 0;
}

static int read_factor(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    return yaml_node_double(n, 0, 1000, place, e);
}

#define AT(member) offsetof(struct qos, member)
static const struct field qos_fields[] = {
    { "priority", field_u32, AT(priority), .max = 1000000 },
    { "charge", read_factor, AT(charge) },
    { "limits", shares_read_limits, AT(limits) },
    { "user_limits", shares_read_limits, AT(user_limits) },
    { "preempts", read_strv, AT(preempts) },
    { "preempt", read_preempt, 0 },
    { "grace", read_grace, AT(grace_us) },
    { "accounts", read_strv, AT(accounts) },
    { "groups", read_strv, AT(groups) },
    { "users", read_strv, AT(users) },
    { NULL },
};
#undef AT

static int read_class(const struct yaml_node *n, struct divvyd_config *c, struct err *e)
{
    if (!qos_is_name(n->key))
        return yaml_node_fail_key(n, e,
                                  "qos: '%.64s' cannot be a name; up to %u letters, digits, '.', "
                                  "'_' and '-' can",
                                  n->key, QOS_NAME_MAX);
    ARRAY_ROOM(c->qos, c->qos_alloc, c->qos_count + 1);
    struct qos *q = &c->qos[c->qos_count++];
    qos_init(q, n->key);
    return yaml_node_is_null(n) ? 0 : field_read_map(n, qos_fields, q, e);
}

int shares_read_qos(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    int r = need_map(n, "qos", e);
    if (r == 0 && n->count >= QOS_MAX)
        return yaml_node_fail(n, e, "qos: %zu classes are more than %u", n->count, QOS_MAX - 1);
    for (const struct yaml_node *k = n->first; k && r >= 0; k = k->next)
        r = read_class(k, place, e);
    return r;
}

/* ---- order, charge --------------------------------------------------------- */

static int read_weight(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    return yaml_node_double(n, f->min ? -SHARE_MAX : 0, SHARE_MAX, place, e);
}

#define AT(member) offsetof(struct config_order, member)
static const struct field order_fields[] = {
    { "share", read_weight, AT(share) },           { "age", read_weight, AT(age) },
    { "size", read_weight, AT(size), .min = 1 }, /* may be below 0 */
    { "age_max", field_duration, AT(age_max_us) }, { NULL },
};
#undef AT

int shares_read_order(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct divvyd_config *c = place;
    int r = field_read_map(n, order_fields, &c->order, e);
    if (r == 0 && c->order.age_max_us <= 0)
        return yaml_node_fail(n, e, "order: age_max must be above 0");
    return r;
}

int shares_read_las(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct divvyd_config *c = place;
    if (n->kind != YAML_IS_LIST || n->count < 1 || n->count > CONFIG_LAS_MAX)
        return yaml_node_fail(n, e, "las must be a list of 1 to %u rising times, like [1h, 10h]",
                              CONFIG_LAS_MAX);
    c->las_count = 0;
    for (const struct yaml_node *k = n->first; k; k = k->next) {
        int64_t us;
        int r = yaml_node_duration(k, &us, e);
        if (r < 0)
            return r;
        if (us <= (c->las_count ? c->las_us[c->las_count - 1] : 0))
            return yaml_node_fail(k, e, "las: the times must rise, each above the one before");
        c->las_us[c->las_count++] = us;
    }
    return 0;
}

int shares_read_charge(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct divvyd_config *c = place;
    int r = need_map(n, "charge", e);
    for (const struct yaml_node *k = n->first; k && r >= 0; k = k->next) {
        ARRAY_ROOM(c->charges, c->charge_alloc, c->charge_count + 1);
        struct config_charge *w = &c->charges[c->charge_count++];
        *w = (struct config_charge){ .board = text_dup(k->key) };
        r = yaml_node_double(k, 0, 1000, &w->factor, e);
    }
    return r;
}

/* ---- the whole ------------------------------------------------------------- */

static const struct yaml_node *find(const struct yaml_node *root, const char *map, const char *name,
                                    const char *key)
{
    const struct yaml_node *n = yaml_node_get(root, map);
    n = n ? yaml_node_get(n, name) : NULL;
    return n && key ? yaml_node_get(n, key) : n;
}

static int check_parent(const struct yaml_node *root, const struct divvyd_config *c,
                        const struct config_account *a, struct err *e)
{
    const struct config_account *up = a;
    for (uint32_t depth = 0; up->parent; depth++) {
        const struct yaml_node *at = find(root, "accounts", up->name, "parent");
        const char *name = up->parent;
        up = divvyd_config_account(c, name);
        if (!up)
            return yaml_node_fail(at, e, "parent: there is no account '%.64s'", name);
        if (up == a)
            return yaml_node_fail(at, e, "parent: %s would be above itself", a->name);
        if (depth >= CONFIG_DEPTH_MAX)
            return yaml_node_fail(at, e, "parent: more than %u accounts below each other",
                                  CONFIG_DEPTH_MAX);
    }
    return 0;
}

/* An account below which others stand could not say in which order its own jobs go with theirs. */
static int check_inside(const struct yaml_node *root, const struct divvyd_config *c,
                        const struct config_account *a, struct err *e)
{
    const struct config_account *up = a->parent ? divvyd_config_account(c, a->parent) : NULL;
    if (!up || up->inside == INSIDE_USERS)
        return 0;
    return yaml_node_fail(find(root, "accounts", up->name, "inside"), e,
                          "inside: %s has accounts below it (%s), which share as users do; leave "
                          "this out",
                          up->name, a->name);
}

static bool class_known(const struct divvyd_config *c, const char *name)
{
    return strcmp(name, QOS_DEFAULT) == 0 || divvyd_config_qos(c, name);
}

/* Does it push out that one, or one that does, and so on? */
static bool reaches(const struct divvyd_config *c, const struct qos *from, const struct qos *to)
{
    const struct qos *reached[QOS_MAX + 1] = { from };
    size_t count = 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < c->qos_count; k++) {
            const struct qos *q = &c->qos[k];
            size_t known = 0;
            if (!qos_may_preempt(reached[i], q))
                continue;
            if (q == to)
                return true;
            while (known < count && reached[known] != q)
                known++;
            if (known == count && count <= QOS_MAX)
                reached[count++] = q;
        }
    return false;
}

static int check_words(const struct yaml_node *root, const struct divvyd_config *c,
                       const struct qos *q, struct err *e)
{
    for (char **w = q->preempts; w && *w; w++) {
        const struct yaml_node *at = find(root, "qos", q->name, "preempts");
        if (!class_known(c, *w))
            return yaml_node_fail(at, e, "preempts: there is no class '%.64s' in qos", *w);
        if (strcmp(*w, q->name) == 0)
            return yaml_node_fail(at, e, "preempts: %s cannot push out its own jobs", q->name);
        const struct qos *other = divvyd_config_qos(c, *w);
        if (other && qos_may_preempt(q, other) && reaches(c, other, q))
            return yaml_node_fail(
                at, e,
                "preempts: %s pushes out %s, which in turn pushes out %s, so "
                "neither would ever end; take one of them out of the other's list",
                q->name, other->name, q->name);
    }
    for (char **w = q->accounts; w && *w; w++)
        if (!divvyd_config_account(c, *w))
            return yaml_node_fail(find(root, "qos", q->name, "accounts"), e,
                                  "accounts: there is no account '%.64s'", *w);
    return 0;
}

int shares_config_check(const struct yaml_node *root, const struct divvyd_config *c, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < c->account_count && r >= 0; i++) {
        r = check_parent(root, c, &c->accounts[i], e);
        if (r >= 0)
            r = check_inside(root, c, &c->accounts[i], e);
    }
    for (size_t i = 0; i < c->qos_count && r >= 0; i++)
        r = check_words(root, c, &c->qos[i], e);
    if (r >= 0 && !class_known(c, c->default_qos))
        return yaml_node_fail(yaml_node_get(root, "default_qos"), e,
                              "default_qos: there is no class '%.64s' in qos", c->default_qos);
    return r;
}
