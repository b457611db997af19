#include "config/divvyd.h"

#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/text.h"

static const struct field_choice pools[] = { { "off", POOL_OFF },
                                             { "queue", POOL_QUEUE },
                                             { "slurm", POOL_SLURM },
                                             { "kubernetes", POOL_KUBERNETES },
                                             { NULL } };
static const struct field_choice modes[] = {
    { "whole", MODE_WHOLE }, { "slices", MODE_SLICES }, { "auto", MODE_AUTO }, { NULL }
};
static const struct field_choice isolations[] = {
    { "auto", GATE_AUTO }, { "require", GATE_REQUIRE }, { "none", GATE_NEVER }, { NULL }
};
static const struct field_choice launches[] = {
    { "auto", LAUNCH_AUTO }, { "systemd", LAUNCH_SYSTEMD }, { "direct", LAUNCH_DIRECT }, { NULL }
};
static const struct field_choice settings_words[] = { { "restore", false },
                                                      { "keep", true },
                                                      { NULL } };
static const struct field_choice switch_words[] = { { "off", false }, { "on", true }, { NULL } };
static const struct field_choice docker_words[] = {
    { "off", DOCKER_OFF }, { "on", DOCKER_ON }, { "pull", DOCKER_PULL }, { NULL }
};
static const struct field_choice shm_words[] = { { "remove", false }, { "keep", true }, { NULL } };
static const struct field_choice levels[] = { { "error", LOG_ERROR }, { "warn", LOG_WARN },
                                              { "note", LOG_NOTE },   { "info", LOG_INFO },
                                              { "trace", LOG_TRACE }, { NULL } };

void divvyd_config_init(struct divvyd_config *c)
{
    *c = (struct divvyd_config){
        .operators = text_dup("divvy"),
        .cdi = text_dup("off"),
        .docker_socket = text_dup("/run/docker.sock"),
        .isolation = GATE_AUTO,
        .task_limits = { .pids_max = CONFIG_PIDS_DEFAULT },
        .launch = LAUNCH_AUTO,
        .log_level = LOG_NOTE,
        .default_pool = POOL_OFF,
        .default_mode = MODE_AUTO,
        .mode_hold_us = 10 * CLOCK_MINUTE,
        .prolog_time_us = CLOCK_MINUTE,
        .idle = { .grace_us = 10 * CLOCK_MINUTE, .load_percent = 1, .cpu_percent = 5 },
        .event_time_us = CLOCK_MINUTE,
        .kill_wait_us = 30 * CLOCK_SECOND,
        .driver_timeout_us = 30 * CLOCK_SECOND,
        .slice_activity = true,
        .retention_us = 30 * CLOCK_DAY,
        .usage_retention_us = 400 * CLOCK_DAY,
        .half_life_us = 7 * CLOCK_DAY,
        .reservations = 8,
        .restore_time_us = 2 * CLOCK_MINUTE,
        .maintenance = { .command = text_dup("systemctl") },
    };
    shares_config_init(c);
}

void divvyd_config_done(struct divvyd_config *c)
{
    free(c->driver_root);
    free(c->nvml);
    free(c->cgroup_root);
    free(c->operators);
    free(c->cdi);
    free(c->docker_socket);
    free(c->prolog);
    free(c->event_hook);
    free(c->epilog);
    field_words_done(&c->idle.exempt);
    field_words_done(&c->maintenance.services);
    free(c->maintenance.command);
    for (size_t i = 0; i < c->card_count; i++)
        free(c->cards[i].which);
    free(c->cards);
    shares_config_done(c);
    *c = (struct divvyd_config){ .driver_root = NULL };
}

static const struct field card_fields[] = {
    { "pool", field_choice_word, offsetof(struct config_card, pool), .choices = pools },
    { "mode", field_choice_word, offsetof(struct config_card, mode), .choices = modes },
    { NULL },
};

static bool names_a_card(const char *s)
{
    return text_starts(s, "GPU-") || strchr(s, ':');
}

static int read_card(const struct yaml_node *n, struct divvyd_config *c, struct err *e)
{
    struct config_card card = { .pool = c->default_pool, .mode = c->default_mode };
    if (!names_a_card(n->key))
        return yaml_node_fail_key(n, e,
                                  "cards: '%.64s' is neither 'default', a UUID (GPU-...) nor a PCI "
                                  "address (0000:07:00.0); divvy gpus --json tells them",
                                  n->key);
    int r = field_read_map(n, card_fields, &card, e);
    if (r < 0)
        return r;
    card.which = text_dup(n->key);
    ARRAY_ROOM(c->cards, c->card_alloc, c->card_count + 1);
    c->cards[c->card_count++] = card;
    return 0;
}

/* "default" first, wherever it stands: the others begin from it. */
static int read_cards(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    struct divvyd_config *c = place;
    if (n->kind != YAML_IS_MAP)
        return yaml_node_fail(n, e, "cards must be a map of UUIDs, not %s",
                              yaml_node_kind_name(n->kind));
    const struct yaml_node *def = yaml_node_get(n, "default");
    struct config_card card = { .pool = c->default_pool, .mode = c->default_mode };
    int r = def && !yaml_node_is_null(def) ? field_read_map(def, card_fields, &card, e) : 0;
    c->default_pool = card.pool;
    c->default_mode = card.mode;
    for (const struct yaml_node *k = n->first; k && r >= 0; k = k->next)
        if (k != def)
            r = read_card(k, c, e);
    return r;
}

static int read_cdi(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    char **word = place;
    int r = field_string(n, f, place, e);
    if (r < 0 || strcmp(*word, "on") == 0 || strcmp(*word, "off") == 0)
        return r;
    size_t len = strlen(*word);
    if ((*word)[0] == '/' && len > strlen("/.json") && strcmp(*word + len - 5, ".json") == 0)
        return 0;
    return yaml_node_fail(n, e,
                          "cdi: '%.64s' is neither on, off nor an absolute path that ends with "
                          ".json",
                          *word);
}

/* A choice of two, into a bool. */
static int read_either(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    int value = 0;
    int r = field_choice_word(n, f, &value, e);
    if (r >= 0)
        *(bool *)place = value != 0;
    return r;
}

static const struct field_choice share_words[] = { { "auto", TASK_LIMIT_AUTO },
                                                   { "share", TASK_LIMIT_SHARE },
                                                   { "none", TASK_LIMIT_NONE },
                                                   { NULL } };
static const struct field_choice near_words[] = {
    { "auto", TASK_LIMIT_AUTO }, { "near", TASK_LIMIT_SHARE }, { "none", TASK_LIMIT_NONE }, { NULL }
};

/* "auto", "none" or a number. Its place is the whole of task_limits. */
static int read_pids(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    static const struct field number = { .max = 4194304, .min = 16 };
    struct config_task_limits *l = place;
    if (n->kind == YAML_IS_SCALAR &&
        (strcmp(n->text, "auto") == 0 || strcmp(n->text, "none") == 0)) {
        l->pids = strcmp(n->text, "none") == 0 ? TASK_LIMIT_NONE : TASK_LIMIT_AUTO;
        return 0;
    }
    (void)f;
    l->pids = TASK_LIMIT_SHARE;
    return field_u32(n, &number, &l->pids_max, e);
}

static const struct field task_limits_fields[] = {
    { "memory", field_choice_word, offsetof(struct config_task_limits, memory),
      .choices = share_words },
    { "cpu", field_choice_word, offsetof(struct config_task_limits, cpu), .choices = share_words },
    { "cpuset", field_choice_word, offsetof(struct config_task_limits, cpuset),
      .choices = near_words },
    { "pids", read_pids, 0 },
    { NULL },
};

/* "auto" and "off"; anything else is for the caller to read. */
static bool read_count(const struct yaml_node *n, int *ret)
{
    *ret = COUNT_SAID;
    if (n->kind == YAML_IS_SCALAR && strcmp(n->text, "auto") == 0)
        *ret = COUNT_AUTO;
    else if (n->kind == YAML_IS_SCALAR && strcmp(n->text, "off") == 0)
        *ret = COUNT_OFF;
    return *ret != COUNT_SAID;
}

static int read_node_cpus(const struct yaml_node *n, const struct field *f, void *place,
                          struct err *e)
{
    double cpus;
    struct config_node *node = place;
    (void)f;
    if (read_count(n, &node->cpus))
        return 0;
    if (yaml_node_double(n, 0, CONFIG_NODE_CPUS_MAX, &cpus, NULL) < 0 || cpus < 0.01)
        return yaml_node_fail(n, e, "cpus must be auto, off or a number of CPUs, 0.01 to %d",
                              CONFIG_NODE_CPUS_MAX);
    node->cpu_milli = (uint32_t)(cpus * 1000 + 0.5);
    return 0;
}

static int read_node_memory(const struct yaml_node *n, const struct field *f, void *place,
                            struct err *e)
{
    struct config_node *node = place;
    static const struct field size = { .max = INT64_MAX };
    (void)f;
    if (read_count(n, &node->memory))
        return 0;
    if (field_size(n, &size, &node->mem_bytes, NULL) < 0 || node->mem_bytes < JOB_MEM_MIN)
        return yaml_node_fail(n, e, "memory must be auto, off or a size of 1M or more, like 480G");
    return 0;
}

static const struct field node_fields[] = {
    { "cpus", read_node_cpus, 0 },
    { "memory", read_node_memory, 0 },
    { NULL },
};

static const struct field between_fields[] = {
    { "settings", read_either, offsetof(struct config_between, keep_settings),
      .choices = settings_words },
    { "shared_memory", read_either, offsetof(struct config_between, keep_shm),
      .choices = shm_words },
    { NULL },
};

static const struct field maintenance_fields[] = {
    { "services", field_list_words, offsetof(struct config_maintenance, services) },
    { "command", field_string, offsetof(struct config_maintenance, command) },
    { NULL },
};

static const struct field_choice then_words[] = {
    { "warn", IDLE_WARN }, { "end", IDLE_END }, { "requeue", IDLE_REQUEUE }, { NULL }
};

static const struct field idle_fields[] = {
    { "after", field_duration, offsetof(struct config_idle, after_us), .required = true },
    { "grace", field_duration, offsetof(struct config_idle, grace_us) },
    { "then", field_choice_word, offsetof(struct config_idle, then), .choices = then_words },
    { "load", field_u32, offsetof(struct config_idle, load_percent), .max = 99 },
    { "cpu", field_u32, offsetof(struct config_idle, cpu_percent), .max = 100 },
    { "exempt", field_list_words, offsetof(struct config_idle, exempt) },
    { NULL },
};

static int read_part(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    double part;
    if (yaml_node_double(n, 0, 1, &part, NULL) < 0 || part < 0.001 || part > 0.999)
        return yaml_node_fail(n, e, "part must be between 0 and 1, like 0.1 for a tenth");
    *(uint32_t *)place = (uint32_t)(part * PPM + 0.5);
    return 0;
}

static const struct field keep_fields[] = {
    { "part", read_part, offsetof(struct config_keep, part_ppm), .required = true },
    { "for", field_duration, offsetof(struct config_keep, for_us), .required = true },
    { NULL },
};

#define AT(member) offsetof(struct divvyd_config, member)
static const struct field config_fields[] = {
    { "driver_root", field_path, AT(driver_root) },
    { "nvml", field_path, AT(nvml) },
    { "cgroup_root", field_path, AT(cgroup_root) },
    { "cdi", read_cdi, AT(cdi) },
    { "docker", field_choice_word, AT(docker), .choices = docker_words },
    { "docker_socket", field_path, AT(docker_socket) },
    { "prolog", field_path, AT(prolog) },
    { "event_hook", field_path, AT(event_hook) },
    { "event_time", field_duration, AT(event_time_us) },
    { "epilog", field_path, AT(epilog) },
    { "prolog_time", field_duration, AT(prolog_time_us) },
    { "idle", field_map, AT(idle), .sub = idle_fields },
    { "keep", field_map, AT(keep), .sub = keep_fields },
    { "operators", field_string, AT(operators) },
    { "isolation", field_choice_word, AT(isolation), .choices = isolations },
    { "pam", read_either, AT(pam), .choices = switch_words },
    { "task_limits", field_map, AT(task_limits), .sub = task_limits_fields },
    { "node", field_map, AT(node), .sub = node_fields },
    { "between_owners", field_map, AT(between), .sub = between_fields },
    { "launch", field_choice_word, AT(launch), .choices = launches },
    { "log_level", field_choice_word, AT(log_level), .choices = levels },
    { "cards", read_cards, 0 },
    { "mode_hold", field_duration, AT(mode_hold_us) },
    { "default_time", field_duration, AT(default_time_us) },
    { "max_time", field_duration, AT(max_time_us) },
    { "kill_wait", field_duration, AT(kill_wait_us) },
    { "driver_timeout", field_duration, AT(driver_timeout_us) },
    { "slice_activity", field_bool, AT(slice_activity) },
    { "retention", field_duration, AT(retention_us) },
    { "usage_retention", field_duration, AT(usage_retention_us) },
    { "half_life", field_duration, AT(half_life_us) },
    { "reservations", field_u32, AT(reservations), .max = CONFIG_RESERVATIONS_MAX },
    { "restore_time", field_duration, AT(restore_time_us) },
    { "maintenance", field_map, AT(maintenance), .sub = maintenance_fields },
    { "accounts", shares_read_accounts, 0 },
    { "limits", shares_read_limits, AT(limits) },
    { "user_limits", shares_read_limits, AT(user_limits) },
    { "qos", shares_read_qos, 0 },
    { "default_qos", field_string, AT(default_qos) },
    { "order", shares_read_order, 0 },
    { "las", shares_read_las, 0 },
    { "preempt_las", read_either, AT(preempt_las), .choices = switch_words },
    { "preempt_shares", read_either, AT(preempt_shares), .choices = switch_words },
    { "charge", shares_read_charge, 0 },
    { NULL },
};

static int check_times(const struct yaml_node *root, const struct divvyd_config *c, struct err *e)
{
    if (c->max_time_us && c->default_time_us > c->max_time_us)
        return yaml_node_fail(yaml_node_get(root, "default_time"), e,
                              "default_time is longer than max_time");
    if (c->half_life_us <= 0)
        return yaml_node_fail(yaml_node_get(root, "half_life"), e, "half_life must be above 0");
    if (!c->reservations)
        return yaml_node_fail(yaml_node_get(root, "reservations"), e,
                              "reservations must be 1 or more: with none, whoever asks for much "
                              "would wait for ever");
    if (c->prolog_time_us <= 0 || c->prolog_time_us > CLOCK_DAY)
        return yaml_node_fail(yaml_node_get(root, "prolog_time"), e,
                              "prolog_time must be above 0 and at most 1d");
    if (c->event_time_us < CLOCK_SECOND || c->event_time_us > CLOCK_DAY)
        return yaml_node_fail(yaml_node_get(root, "event_time"), e,
                              "event_time must be 1s or more, and at most 1d");
    if (c->driver_timeout_us < CLOCK_SECOND)
        return yaml_node_fail(yaml_node_get(root, "driver_timeout"), e,
                              "driver_timeout must be 1s or more");
    return 0;
}

static int check_idle(const struct yaml_node *root, const struct divvyd_config *c, struct err *e)
{
    const struct yaml_node *n = yaml_node_get(root, "idle");
    if (!n || yaml_node_is_null(n))
        return 0;
    if (c->idle.after_us < CLOCK_SECOND)
        return yaml_node_fail(yaml_node_get(n, "after"), e, "idle: after must be 1s or more");
    for (size_t i = 0; i < c->idle.exempt.count; i++) {
        const char *name = c->idle.exempt.words[i];
        if (strcmp(name, QOS_DEFAULT) != 0 && !divvyd_config_qos(c, name))
            return yaml_node_fail(yaml_node_get(n, "exempt"), e,
                                  "exempt: there is no class '%.64s' in qos", name);
    }
    return 0;
}

static int read_root(const struct yaml_tree *t, struct divvyd_config *ret, struct err *e)
{
    struct divvyd_config c;
    divvyd_config_init(&c);
    int r = field_read_map(t->root, config_fields, &c, e);
    if (r >= 0)
        r = check_times(t->root, &c, e);
    if (r >= 0)
        r = check_idle(t->root, &c, e);
    if (r >= 0)
        r = shares_config_check(t->root, &c, e);
    if (r < 0) {
        divvyd_config_done(&c);
        return r;
    }
    *ret = c;
    return 0;
}

int divvyd_config_parse(const char *file, const char *text, size_t len, struct divvyd_config *ret,
                        struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_parse(file, text, len, &t, e);
    return r < 0 ? r : read_root(t, ret, e);
}

int divvyd_config_read(const char *path, struct divvyd_config *ret, struct err *e)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    int r = yaml_tree_read(path, &t, e);
    return r < 0 ? r : read_root(t, ret, e);
}

const struct config_account *divvyd_config_account(const struct divvyd_config *c, const char *name)
{
    for (size_t i = 0; i < c->account_count; i++)
        if (strcmp(c->accounts[i].name, name) == 0)
            return &c->accounts[i];
    return NULL;
}

const struct qos *divvyd_config_qos(const struct divvyd_config *c, const char *name)
{
    for (size_t i = 0; i < c->qos_count; i++)
        if (strcmp(c->qos[i].name, name) == 0)
            return &c->qos[i];
    return NULL;
}

double divvyd_config_charge(const struct divvyd_config *c, const struct board *b)
{
    for (size_t i = 0; i < c->charge_count; i++)
        if (strcasecmp(c->charges[i].board, b->name) == 0 ||
            strcasecmp(c->charges[i].board, board_short_name(b)) == 0)
            return c->charges[i].factor;
    return 1;
}
