#include "model/card_json.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "model/address.h"
#include "model/board_json.h"

static json_t *slice_to_json(const struct card *c, const struct slice *s)
{
    AUTO(text) struct text address = TEXT_INIT;
    AUTO(text) struct text profile = TEXT_INIT;
    json_t *j = json_object();
    address_add(&address, c, s);
    slice_add_profile(&profile, c, s);
    json_put_text(j, "address", address.buf);
    json_put_text(j, "profile", profile.buf);
    json_put_u64(j, "profile_id", s->profile_id);
    json_put_u64(j, "gi", s->gi);
    json_put(j, "ci", s->ci == NOT_AN_INSTANCE ? json_null() : json_integer(s->ci));
    json_put_u64(j, "start", s->start);
    json_put_u64(j, "units", s->units);
    json_put_u64(j, "ci_profile_id", s->ci_profile_id);
    json_put_u64(j, "ci_start", s->ci_start);
    json_put_u64(j, "ci_slices", s->ci_slices);
    json_put_bool(j, "full", s->full);
    json_put_text(j, "uuid", s->uuid);
    json_put_u64(j, "mem_total_bytes", s->mem_known ? s->mem_total_bytes : UINT64_MAX);
    json_put_u64(j, "mem_used_bytes", s->mem_known ? s->mem_used_bytes : UINT64_MAX);
    json_put_u64(j, "load_percent", s->load_known ? s->load_percent : UINT64_MAX);
    json_put_u64(j, "load_since_boot_us",
                 s->load_known ? (uint64_t)s->load_since_boot_us : UINT64_MAX);
    return j;
}

/* Both figures or none: half of the pair would show the other as 0. */
static bool read_memory(struct fields *f, uint64_t *ret_total, uint64_t *ret_used)
{
    uint64_t total = fields_u64(f, "mem_total_bytes", FIELD_OPTIONAL, 0, INT64_MAX, UINT64_MAX);
    uint64_t used = fields_u64(f, "mem_used_bytes", FIELD_OPTIONAL, 0, INT64_MAX, UINT64_MAX);
    if (total == UINT64_MAX || used == UINT64_MAX)
        return false;
    *ret_total = total;
    *ret_used = used;
    return true;
}

static void read_load(struct fields *f, struct slice *s)
{
    uint64_t load = fields_u64(f, "load_percent", FIELD_OPTIONAL, 0, 100, UINT64_MAX);
    int64_t since = fields_i64(f, "load_since_boot_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    s->load_known = load != UINT64_MAX;
    s->load_percent = s->load_known ? (uint32_t)load : 0;
    s->load_since_boot_us = s->load_known ? since : 0;
}

static int slice_from_json(json_t *j, struct slice *s, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "slice", e);
    s->profile_id = fields_u32(&f, "profile_id");
    s->gi = (uint32_t)fields_u64(&f, "gi", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    s->ci = (uint32_t)fields_u64(&f, "ci", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    s->start = (uint32_t)fields_u64(&f, "start", FIELD_REQUIRED, 0, BOARD_UNITS_MAX, 0);
    s->units = (uint32_t)fields_u64(&f, "units", FIELD_REQUIRED, 0, BOARD_UNITS_MAX, 0);
    s->ci_profile_id = fields_u32(&f, "ci_profile_id");
    s->ci_start = fields_u32(&f, "ci_start");
    s->ci_slices = fields_u32(&f, "ci_slices");
    s->full = fields_bool(&f, "full", false);
    fields_copy(&f, "uuid", FIELD_OPTIONAL, s->uuid, sizeof s->uuid);
    s->mem_known = read_memory(&f, &s->mem_total_bytes, &s->mem_used_bytes);
    read_load(&f, s);
    return fields_close(&f, FIELDS_OPEN);
}

static json_t *process_to_json(const struct gpu_process *p)
{
    json_t *j = json_object();
    json_put_i64(j, "pid", p->pid);
    json_put(j, "uid", p->uid == (uid_t)-1 ? json_null() : json_integer(p->uid));
    json_put_u64(j, "start_ticks", p->start_ticks);
    json_put_u64(j, "mem_bytes", p->mem_bytes);
    json_put(j, "gi", p->gi == NOT_AN_INSTANCE ? json_null() : json_integer(p->gi));
    json_put(j, "ci", p->ci == NOT_AN_INSTANCE ? json_null() : json_integer(p->ci));
    json_put_bool(j, "graphics", p->graphics);
    json_put_text(j, "name", p->name);
    return j;
}

static int process_from_json(json_t *j, struct gpu_process *p, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "process", e);
    p->pid = (pid_t)fields_i64(&f, "pid", FIELD_REQUIRED, 0, INT32_MAX, 0);
    p->uid = (uid_t)fields_u64(&f, "uid", FIELD_OPTIONAL, 0, UINT32_MAX, (uid_t)-1);
    p->start_ticks = fields_u64(&f, "start_ticks", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    p->mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, UINT64_MAX);
    p->gi = (uint32_t)fields_u64(&f, "gi", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    p->ci = (uint32_t)fields_u64(&f, "ci", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    p->graphics = fields_bool(&f, "graphics", false);
    fields_copy(&f, "name", FIELD_OPTIONAL, p->name, sizeof p->name);
    return fields_close(&f, FIELDS_OPEN);
}

/* Readings: null in JSON while their `known` bit is not set. */
static const struct reading {
    const char *key;
    unsigned int bit;
    size_t offset;
} readings[] = {
    { "temperature_c", KNOW_TEMPERATURE, offsetof(struct card, temperature_c) },
    { "power_mw", KNOW_POWER, offsetof(struct card, power_mw) },
    { "power_limit_mw", KNOW_POWER_LIMIT, offsetof(struct card, power_limit_mw) },
    { "load_percent", KNOW_LOAD, offsetof(struct card, load_percent) },
    { "compute_mode", KNOW_COMPUTE_MODE, offsetof(struct card, settings.compute_mode) },
    { "app_sm_mhz", KNOW_APP_CLOCKS, offsetof(struct card, settings.app_sm_mhz) },
    { "app_mem_mhz", KNOW_APP_CLOCKS, offsetof(struct card, settings.app_mem_mhz) },
};

static void put_readings(json_t *j, const struct card *c)
{
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        const uint32_t *value = (const uint32_t *)((const char *)c + readings[i].offset);
        json_put_u64(j, readings[i].key, c->known & readings[i].bit ? *value : UINT64_MAX);
    }
    json_put_u64(j, "mem_total_bytes", c->known & KNOW_MEMORY ? c->mem_total_bytes : UINT64_MAX);
    json_put_u64(j, "mem_used_bytes", c->known & KNOW_MEMORY ? c->mem_used_bytes : UINT64_MAX);
    json_put(j, "numa_node", c->known & KNOW_NUMA ? json_integer(c->numa_node) : json_null());
}

static void read_readings(struct fields *f, struct card *c)
{
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        uint64_t n = fields_u64(f, readings[i].key, FIELD_OPTIONAL, 0, UINT32_MAX, UINT64_MAX);
        if (n == UINT64_MAX)
            continue;
        *(uint32_t *)((char *)c + readings[i].offset) = (uint32_t)n;
        c->known |= readings[i].bit;
    }
    if (read_memory(f, &c->mem_total_bytes, &c->mem_used_bytes))
        c->known |= KNOW_MEMORY;
    /* -1, too, is none: so the kernel writes it */
    c->numa_node = (int32_t)fields_i64(f, "numa_node", FIELD_OPTIONAL, -1, INT32_MAX, -1);
    if (c->numa_node >= 0)
        c->known |= KNOW_NUMA;
}

static json_t *peers_to_json(const struct card *c)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->peer_count; i++) {
        json_t *j = json_object();
        json_put_text(j, "bus_id", c->peers[i].bus_id);
        json_put_u64(j, "nvlinks", c->peers[i].nvlinks);
        json_put_u64(j, "path", c->peers[i].path);
        json_add(list, j);
    }
    return list;
}

static int peers_from_json(json_t *list, struct card *c, struct err *e)
{
    for (size_t i = 0; list && i < json_array_size(list); i++) {
        struct fields f;
        struct card_peer *p = &c->peers[c->peer_count];
        fields_open(&f, json_array_get(list, i), "peer", e);
        fields_copy(&f, "bus_id", FIELD_REQUIRED, p->bus_id, sizeof p->bus_id);
        p->nvlinks = fields_u32(&f, "nvlinks");
        p->path = (uint32_t)fields_u64(&f, "path", FIELD_OPTIONAL, 0, CARD_PATH_FARTHEST,
                                       CARD_PATH_FARTHEST);
        int code = fields_close(&f, FIELDS_OPEN);
        if (code < 0)
            return code;
        c->peer_count++;
    }
    return 0;
}

json_t *card_to_json(const struct card *c)
{
    json_t *j = json_object();
    json_put_u64(j, "gpu", c->ordinal);
    json_put_text(j, "uuid", c->uuid);
    json_put_text(j, "bus_id", c->bus_id);
    json_put_u64(j, "index", c->index);
    json_put(j, "minor", c->minor == UINT32_MAX ? json_null() : json_integer(c->minor));
    json_put_text(j, "health", card_health_word(c->health));
    json_put_text(j, "trouble", c->trouble[0] ? c->trouble : NULL);
    json_put(j, "board", board_to_json(&c->board));
    json_put_bool(j, "mig_capable", c->mig_capable);
    json_put_bool(j, "mig_now", c->mig_now);
    json_put_bool(j, "mig_pending", c->mig_pending);
    put_readings(j, c);
    json_put(j, "peers", peers_to_json(c));
    json_put_u64(j, "xid_last", c->xid_last);
    json_t *slices = json_array();
    for (size_t i = 0; i < c->slice_count; i++)
        json_add(slices, slice_to_json(c, &c->slices[i]));
    json_put(j, "slices",
             c->known & KNOW_SLICES || c->slice_count ? slices
                                                      : (json_decref(slices), json_null()));
    json_t *processes = json_array();
    for (size_t i = 0; i < c->process_count; i++)
        json_add(processes, process_to_json(&c->processes[i]));
    json_put(j, "processes",
             c->known & KNOW_PROCESSES ? processes : (json_decref(processes), json_null()));
    return j;
}

static enum card_health read_health(struct fields *f)
{
    const char *word = fields_text(f, "health", FIELD_OPTIONAL, 32);
    for (int h = CARD_OK; word && h <= CARD_HIDDEN; h++)
        if (strcmp(word, card_health_word((enum card_health)h)) == 0)
            return (enum card_health)h;
    return word ? CARD_UNRESPONSIVE : CARD_OK;
}

static int read_lists(struct card *c, json_t *slices, json_t *processes, struct err *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && slices && i < json_array_size(slices); i++)
        code = slice_from_json(json_array_get(slices, i), card_add_slice(c), e);
    for (size_t i = 0; code == 0 && processes && i < json_array_size(processes); i++)
        code = process_from_json(json_array_get(processes, i), card_add_process(c), e);
    if (slices)
        c->known |= KNOW_SLICES;
    if (processes)
        c->known |= KNOW_PROCESSES;
    return code;
}

static int read_card(json_t *j, struct card *c, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "card", e);
    c->ordinal = (uint32_t)fields_u64(&f, "gpu", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    fields_copy(&f, "uuid", FIELD_REQUIRED, c->uuid, sizeof c->uuid);
    fields_copy(&f, "bus_id", FIELD_OPTIONAL, c->bus_id, sizeof c->bus_id);
    fields_copy(&f, "trouble", FIELD_OPTIONAL, c->trouble, sizeof c->trouble);
    c->index = fields_u32(&f, "index");
    c->minor = (uint32_t)fields_u64(&f, "minor", FIELD_OPTIONAL, 0, UINT32_MAX, UINT32_MAX);
    c->health = read_health(&f);
    c->mig_capable = fields_bool(&f, "mig_capable", false);
    c->mig_now = fields_bool(&f, "mig_now", false);
    c->mig_pending = fields_bool(&f, "mig_pending", false);
    c->xid_last = fields_u64(&f, "xid_last", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    read_readings(&f, c);
    json_t *board = fields_object(&f, "board", FIELD_REQUIRED);
    json_t *slices = fields_array(&f, "slices", FIELD_OPTIONAL, 256);
    json_t *processes = fields_array(&f, "processes", FIELD_OPTIONAL, 65536);
    json_t *peers = fields_array(&f, "peers", FIELD_OPTIONAL, CARD_PEERS_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = board_from_json(board, &c->board, e);
    if (code == 0)
        code = peers_from_json(peers, c, e);
    return code < 0 ? code : read_lists(c, slices, processes, e);
}

int card_from_json(json_t *j, struct card *ret, struct err *e)
{
    struct card *c = mem_new(sizeof *c);
    auto_free struct card *owned = c;
    int code = read_card(j, c, e);
    if (code < 0)
        card_done(c);
    else
        *ret = *owned;
    return code;
}

static json_t *snapshot_head(const struct now *now, const char *driver_version)
{
    json_t *j = json_object();
    json_put_i64(j, "taken_boot_us", now->boot_us);
    json_put_i64(j, "taken_wall_us", now->wall_us);
    json_put_text(j, "driver_version", driver_version);
    return j;
}

json_t *snapshot_to_json(const struct snapshot *s)
{
    json_t *j = snapshot_head(&s->taken, s->driver_version);
    json_put_text(j, "nvml_version", s->nvml_version);
    json_t *cards = json_array();
    for (size_t i = 0; i < s->card_count; i++)
        json_add(cards, card_to_json(&s->cards[i]));
    json_put(j, "cards", cards);
    return j;
}

static json_t *open_cards(struct fields *f, json_t *j, const char *what, struct now *now,
                          char driver_version[32], struct err *e)
{
    fields_open(f, j, what, e);
    now->boot_us = fields_i64(f, "taken_boot_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    now->wall_us = fields_i64(f, "taken_wall_us", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
    fields_copy(f, "driver_version", FIELD_OPTIONAL, driver_version, 32);
    return fields_array(f, "cards", FIELD_REQUIRED, 1024);
}

int snapshot_from_json(json_t *j, struct snapshot *ret, struct err *e)
{
    struct fields f;
    struct snapshot s = SNAPSHOT_INIT;
    json_t *cards = open_cards(&f, j, "snapshot", &s.taken, s.driver_version, e);
    fields_copy(&f, "nvml_version", FIELD_OPTIONAL, s.nvml_version, sizeof s.nvml_version);
    int code = fields_close(&f, FIELDS_OPEN);
    for (size_t i = 0; code == 0 && i < json_array_size(cards); i++)
        code = read_card(json_array_get(cards, i), snapshot_add_card(&s), e);
    if (code < 0)
        snapshot_done(&s);
    else
        *ret = s;
    return code;
}

static const char *const hold_words[] = { "none", "job", "foreign", "unknown" };

static json_t *hold_to_json(const struct hold *h)
{
    if (h->kind == HOLD_NONE)
        return json_null();
    json_t *j = json_object();
    json_put_text(j, "kind", hold_words[h->kind]);
    json_put_text(j, "name", h->name);
    json_put_text(j, "user", h->user[0] ? h->user : NULL);
    json_put(j, "pid", h->pid ? json_integer(h->pid) : json_null());
    if (h->kind != HOLD_JOB) {
        json_put(j, "since_boot_us",
                 h->since_boot_us ? json_integer(h->since_boot_us) : json_null());
        return j;
    }
    json_put_u64(j, "job", h->job_id);
    json_put_u64(j, "attempt", h->attempt);
    json_put_u64(j, "task", h->task);
    json_put_i64(j, "since_boot_us", h->since_boot_us);
    json_put_u64(j, "until_boot_us", h->until_boot_us ? (uint64_t)h->until_boot_us : UINT64_MAX);
    return j;
}

static int hold_from_json(json_t *j, struct hold *h, struct err *e)
{
    struct fields f;
    if (!j)
        return 0;
    fields_open(&f, j, "holder", e);
    const char *word = fields_text(&f, "kind", FIELD_REQUIRED, 16);
    h->kind = HOLD_UNKNOWN;
    for (size_t i = 0; word && i < 4; i++)
        if (strcmp(word, hold_words[i]) == 0)
            h->kind = (enum hold_kind)i;
    fields_copy(&f, "name", FIELD_OPTIONAL, h->name, sizeof h->name);
    fields_copy(&f, "user", FIELD_OPTIONAL, h->user, sizeof h->user);
    h->pid = (pid_t)fields_i64(&f, "pid", FIELD_OPTIONAL, 0, INT32_MAX, 0);
    h->job_id = fields_u64(&f, "job", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    h->attempt = fields_u32(&f, "attempt");
    h->task = fields_u32(&f, "task");
    h->since_boot_us = fields_i64(&f, "since_boot_us", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, 0);
    h->until_boot_us = fields_i64(&f, "until_boot_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    return fields_close(&f, FIELDS_OPEN);
}

static json_t *windows_to_json(const struct inventory_card *c)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < c->planned_count; i++) {
        json_t *w = json_object();
        json_put_i64(w, "from_wall_us", c->planned[i].from_wall_us);
        json_put_i64(w, "until_wall_us", c->planned[i].until_wall_us);
        (void)json_array_append_new(list, w); /* a short list */
    }
    return list;
}

static int read_windows(json_t *list, struct inventory_card *c, struct err *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < json_array_size(list); i++) {
        struct fields f;
        struct card_window *w = &c->planned[c->planned_count++];
        fields_open(&f, json_array_get(list, i), "window", e);
        w->from_wall_us = fields_i64(&f, "from_wall_us", FIELD_REQUIRED, 0, INT64_MAX, 0);
        w->until_wall_us = fields_i64(&f, "until_wall_us", FIELD_REQUIRED, 0, INT64_MAX, 0);
        code = fields_close(&f, FIELDS_OPEN);
    }
    return code;
}

static json_t *inventory_card_to_json(const struct inventory_card *c)
{
    json_t *j = card_to_json(&c->card);
    json_t *slices = json_object_get(j, "slices");
    json_put_text(j, "pool", card_pool_word(c->pool));
    json_put_text(j, "mode", card_mode_word(c->mode));
    json_put_bool(j, "owners_known", c->owners_known);
    json_put_text(j, "quarantine", c->quarantined ? c->quarantine : NULL);
    json_put_bool(j, "laid_out", c->laid_out);
    json_put_bool(j, "no_turn", c->no_turn);
    json_put_bool(j, "no_cuts", c->no_cuts);
    json_put_text(j, "reserved", c->reserved[0] ? c->reserved : NULL);
    json_put(j, "planned", windows_to_json(c));
    json_put_i64(j, "idle_since_boot_us", c->idle_since_boot_us);
    json_put(j, "hold", hold_to_json(&c->hold));
    for (size_t i = 0; i < c->card.slice_count; i++) {
        json_t *s = json_array_get(slices, i);
        json_put_u64(s, "generation", c->slices[i].generation);
        json_put_bool(s, "adopted", c->slices[i].adopted);
        json_put_bool(s, "leaving", c->slices[i].leaving);
        json_put(s, "hold", hold_to_json(&c->slices[i].hold));
    }
    return j;
}

json_t *inventory_to_json(const struct inventory *inv)
{
    json_t *j = snapshot_head(&inv->now, inv->driver_version);
    json_put_bool(j, "from_daemon", inv->from_daemon);
    json_t *cards = json_array();
    for (size_t i = 0; i < inv->card_count; i++)
        json_add(cards, inventory_card_to_json(&inv->cards[i]));
    json_put(j, "cards", cards);
    return j;
}

static int read_holds(json_t *slices, struct inventory_card *c, struct err *e)
{
    c->slices = mem_new(c->card.slice_count * sizeof *c->slices);
    for (size_t i = 0; i < c->card.slice_count; i++) {
        struct fields f;
        fields_open(&f, json_array_get(slices, i), "slice", e);
        c->slices[i].generation = fields_u64(&f, "generation", FIELD_OPTIONAL, 0, INT64_MAX, 0);
        c->slices[i].adopted = fields_bool(&f, "adopted", false);
        c->slices[i].leaving = fields_bool(&f, "leaving", false);
        json_t *hold = fields_object(&f, "hold", FIELD_OPTIONAL);
        int code = fields_close(&f, FIELDS_OPEN);
        if (code == 0)
            code = hold_from_json(hold, &c->slices[i].hold, e);
        if (code < 0)
            return code;
    }
    return 0;
}

static int inventory_card_from_json(json_t *j, struct inventory_card *c, struct err *e)
{
    struct fields f;
    int code = read_card(j, &c->card, e);
    if (code < 0)
        return code;
    fields_open(&f, j, "card", e);
    const char *pool = fields_text(&f, "pool", FIELD_REQUIRED, 16);
    const char *mode = fields_text(&f, "mode", FIELD_REQUIRED, 16);
    if (pool && card_pool_parse(pool, &c->pool, NULL) < 0)
        fields_fail(&f, "'%s' is no pool", pool);
    if (mode && card_mode_parse(mode, &c->mode, NULL) < 0)
        fields_fail(&f, "'%s' is no mode", mode);
    c->owners_known = fields_bool(&f, "owners_known", false);
    c->quarantined = fields_text(&f, "quarantine", FIELD_OPTIONAL, sizeof c->quarantine - 1);
    fields_copy(&f, "quarantine", FIELD_OPTIONAL, c->quarantine, sizeof c->quarantine);
    c->laid_out = fields_bool(&f, "laid_out", false);
    c->no_turn = fields_bool(&f, "no_turn", false);
    c->no_cuts = fields_bool(&f, "no_cuts", false);
    fields_copy(&f, "reserved", FIELD_OPTIONAL, c->reserved, sizeof c->reserved);
    json_t *planned = fields_array(&f, "planned", FIELD_OPTIONAL, CARD_WINDOWS_MAX);
    c->idle_since_boot_us = fields_i64(&f, "idle_since_boot_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    json_t *hold = fields_object(&f, "hold", FIELD_OPTIONAL);
    json_t *slices = fields_array(&f, "slices", FIELD_OPTIONAL, 256);
    code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = hold_from_json(hold, &c->hold, e);
    if (code == 0)
        code = read_windows(planned, c, e);
    return code < 0 ? code : read_holds(slices, c, e);
}

int inventory_from_json(json_t *j, struct inventory *ret, struct err *e)
{
    struct fields f;
    struct inventory inv = { .cards = NULL };
    json_t *cards = open_cards(&f, j, "inventory", &inv.now, inv.driver_version, e);
    inv.from_daemon = fields_bool(&f, "from_daemon", false);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code < 0)
        return code;
    inv.card_count = json_array_size(cards);
    inv.cards = mem_new(inv.card_count * sizeof *inv.cards);
    for (size_t i = 0; code == 0 && i < inv.card_count; i++) {
        inv.cards[i].card.minor = UINT32_MAX;
        code = inventory_card_from_json(json_array_get(cards, i), &inv.cards[i], e);
    }
    if (code < 0)
        inventory_done(&inv);
    else
        *ret = inv;
    return code;
}
