#include "config/mig_state.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/address.h"
#include "model/fields.h"

#define STATE_CARDS_MAX 256

static bool is_told(const struct card *c)
{
    return c->health == CARD_OK && c->uuid[0];
}

/* ---- export ---- */

static char *id_word(const struct card *c)
{
    return text_fmt("0x%08" PRIX32, c->board.pci_device_id);
}

static json_t *entry(bool enabled, json_t *take_devices, json_t *take_slices)
{
    json_t *j = json_object();
    json_put(j, "devices", take_devices);
    json_put_bool(j, "mig-enabled", enabled);
    if (take_slices)
        json_put(j, "mig-devices", take_slices);
    return j;
}

/* {"1g.5gb": 2}, by the names of the compute instances. */
static json_t *count_slices(const struct card *c, size_t *unsaid)
{
    json_t *counts = json_object();
    for (size_t i = 0; i < c->slice_count; i++) {
        AUTO(text) struct text address = TEXT_INIT;
        if (c->slices[i].ci == NOT_AN_INSTANCE ||
            !board_profile_by_id(&c->board, c->slices[i].profile_id)) {
            *unsaid += 1;
            continue;
        }
        address_add(&address, c, &c->slices[i]);
        char *name = strchr(address.buf, '/') + 1;
        name[strcspn(name, "@")] = '\0';
        json_int_t n = json_integer_value(json_object_get(counts, name));
        json_put_u64(counts, name, (uint64_t)n + 1);
    }
    return counts;
}

/* Cards that are alike. */
struct alike {
    bool enabled;
    json_t *slices;
    bool cards[STATE_CARDS_MAX];
};

static size_t group_cards(const struct inventory *inv, struct alike *groups, size_t *unsaid)
{
    size_t n = 0;
    for (size_t i = 0; i < inv->card_count && i < STATE_CARDS_MAX; i++) {
        const struct card *c = &inv->cards[i].card;
        if (!is_told(c))
            continue;
        json_t *slices = c->mig_now ? count_slices(c, unsaid) : json_object();
        size_t g = 0;
        while (g < n && (groups[g].enabled != c->mig_now || !json_equal(groups[g].slices, slices)))
            g++;
        if (g == n)
            groups[n++] = (struct alike){ .enabled = c->mig_now, .slices = json_incref(slices) };
        groups[g].cards[i] = true;
        json_decref(slices);
    }
    return n;
}

/* The device ids of a group, each once; of all cards where it is NULL. */
static json_t *ids_of(const struct inventory *inv, const bool *cards)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < inv->card_count && i < STATE_CARDS_MAX; i++) {
        bool there = !is_told(&inv->cards[i].card) || (cards && !cards[i]);
        auto_free char *word = id_word(&inv->cards[i].card);
        for (size_t k = 0; !there && k < json_array_size(ids); k++)
            there = strcmp(json_string_value(json_array_get(ids, k)), word) == 0;
        if (!there)
            json_add(ids, json_string(word));
    }
    return ids;
}

static bool has_id(const json_t *ids, const struct card *c)
{
    auto_free char *word = id_word(c);
    for (size_t k = 0; k < json_array_size(ids); k++)
        if (strcmp(json_string_value(json_array_get(ids, k)), word) == 0)
            return true;
    return false;
}

/* "all" where every card of these ids is in the group, else their numbers. */
static json_t *devices_of(const struct inventory *inv, const struct alike *g, const json_t *ids)
{
    json_t *numbers = json_array();
    bool all = true;
    for (size_t i = 0; i < inv->card_count && i < STATE_CARDS_MAX; i++) {
        const struct card *c = &inv->cards[i].card;
        if (g->cards[i])
            json_add(numbers, json_integer(c->ordinal));
        else
            all = all && !(is_told(c) && has_id(ids, c));
    }
    if (!all)
        return numbers;
    json_decref(numbers);
    return json_string("all");
}

static json_t *group_entry(const struct inventory *inv, struct alike *g, bool filtered)
{
    json_t *ids = ids_of(inv, g->cards);
    json_t *j = entry(g->enabled, devices_of(inv, g, ids), g->slices);
    if (filtered && json_array_size(ids) == 1)
        json_put(j, "device-filter", json_incref(json_array_get(ids, 0)));
    else if (filtered)
        json_put(j, "device-filter", json_incref(ids));
    json_decref(ids);
    return j;
}

static json_t *spec_of(json_t *take_configs)
{
    json_t *j = json_object();
    json_put_text(j, "version", "v1");
    json_put(j, "mig-configs", take_configs);
    return j;
}

json_t *mig_state_export(const struct inventory *inv, const char *label, size_t *ret_unsaid)
{
    auto_free struct alike *groups = mem_new(STATE_CARDS_MAX * sizeof *groups);
    auto_json json_t *all_ids = ids_of(inv, NULL);
    json_t *list = json_array();
    json_t *configs = json_object();
    *ret_unsaid = 0;
    size_t n = group_cards(inv, groups, ret_unsaid);
    for (size_t g = 0; g < n; g++)
        json_add(list, group_entry(inv, &groups[g], n > 1 && json_array_size(all_ids) > 1));
    json_put(configs, label, list);
    return spec_of(configs);
}

/* ---- generate ---- */

/* Adds the device to the label's entry of these slices, made when there is none. */
static void add_to_label(json_t *configs, const char *label, json_t *take_slices,
                         const struct card *c, bool filtered)
{
    auto_free char *id = id_word(c);
    json_t *list = json_object_get(configs, label);
    if (!list) {
        list = json_array();
        json_put(configs, label, list);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *e = json_array_get(list, i);
        json_t *ids = json_object_get(e, "device-filter");
        if (!json_equal(json_object_get(e, "mig-devices"), take_slices))
            continue;
        if (filtered && !has_id(ids, c))
            json_add(ids, json_string(id));
        json_decref(take_slices);
        return;
    }
    json_t *e = entry(true, json_string("all"), take_slices);
    if (filtered) {
        json_t *ids = json_array();
        json_add(ids, json_string(id));
        json_put(e, "device-filter", ids);
    }
    json_add(list, e);
}

static void add_profile(json_t *configs, const struct card *c, const struct profile *p,
                        bool filtered)
{
    auto_free char *label = text_fmt("all-%s", p->name);
    json_t *slices = json_object();
    for (char *at = label; *at; at++)
        *at = *at == '+' ? '.' : *at;
    json_put_u64(slices, p->name, p->max);
    add_to_label(configs, label, slices, c, filtered);
}

/* Of the profiles with so many compute slices the one that fits most often. */
static const struct profile *commonest(const struct board *b, uint32_t slices)
{
    const struct profile *best = NULL;
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].slices == slices && (!best || b->profiles[i].max > best->max))
            best = &b->profiles[i];
    return best;
}

static void add_balanced(json_t *configs, const struct card *c, bool filtered)
{
    const struct profile *one = commonest(&c->board, 1), *two = commonest(&c->board, 2);
    const struct profile *three = c->board.slices >= 7 ? commonest(&c->board, 3) : NULL;
    if (!one || !two || (c->board.slices >= 7 && !three))
        return; /* no such parts to balance */
    json_t *slices = json_object();
    json_put_u64(slices, one->name, 2);
    json_put_u64(slices, two->name, 1);
    if (three)
        json_put_u64(slices, three->name, 1);
    add_to_label(configs, "all-balanced", slices, c, filtered);
}

static bool can_be_cut(const struct inventory_card *c)
{
    return is_told(&c->card) && c->card.mig_capable && c->card.board.profile_count;
}

static bool differ(const struct inventory *inv)
{
    const struct card *first = NULL;
    for (size_t i = 0; i < inv->card_count; i++) {
        if (!can_be_cut(&inv->cards[i]))
            continue;
        first = first ? first : &inv->cards[i].card;
        if (first->board.pci_device_id != inv->cards[i].card.board.pci_device_id)
            return true;
    }
    return false;
}

json_t *mig_state_generate(const struct inventory *inv)
{
    json_t *configs = json_object();
    json_t *off = json_array(), *on = json_array();
    bool filtered = differ(inv);
    json_add(off, entry(false, json_string("all"), NULL));
    json_add(on, entry(true, json_string("all"), json_object()));
    json_put(configs, "all-disabled", off);
    json_put(configs, "all-enabled", on);
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct card *c = &inv->cards[i].card;
        if (!can_be_cut(&inv->cards[i]))
            continue;
        for (uint32_t p = 0; p < c->board.profile_count; p++)
            add_profile(configs, c, &c->board.profiles[p], filtered);
        add_balanced(configs, c, filtered);
    }
    return spec_of(configs);
}

/* ---- YAML ---- */

/* Plain where no reader could take it for anything but a word; "1g.5gb" is one, 0x10 is not. */
static void add_word(struct text *t, const char *word)
{
    bool plain = word[0] && strncmp(word, "0x", 2) != 0 &&
                 strspn(word, "0123456789.") != strlen(word) && word[0] != '-' && word[0] != '+';
    for (const char *at = word; plain && *at; at++)
        plain = isalnum((unsigned char)*at) || strchr(".+-_", *at);
    static const char *const other[] = { "true", "false", "yes", "no", "on", "off", "null" };
    for (size_t i = 0; plain && i < sizeof other / sizeof *other; i++)
        plain = strcmp(word, other[i]) != 0;
    if (plain) {
        text_add(t, word);
        return;
    }
    auto_json json_t *j = json_string(word);
    auto_free char *quoted = json_dumps(j, JSON_ENCODE_ANY);
    text_add(t, quoted ? quoted : "\"\"");
}

static void add_node(struct text *t, const json_t *j, int depth, bool in_list);

static void add_scalar(struct text *t, const json_t *j)
{
    if (json_is_string(j))
        add_word(t, json_string_value(j));
    else if (json_is_integer(j))
        text_addf(t, "%lld", (long long)json_integer_value(j));
    else
        text_add(t, json_is_true(j) ? "true" : json_is_boolean(j) ? "false" : "null");
    text_add(t, "\n");
}

static void add_value(struct text *t, const json_t *j, int depth)
{
    bool empty =
        (json_is_object(j) && !json_object_size(j)) || (json_is_array(j) && !json_array_size(j));
    if (empty) {
        text_add(t, json_is_object(j) ? " {}\n" : " []\n");
    } else if (json_is_object(j) || json_is_array(j)) {
        text_add(t, "\n");
        add_node(t, j, depth + 1, false);
    } else {
        text_add(t, " ");
        add_scalar(t, j);
    }
}

static void add_node(struct text *t, const json_t *j, int depth, bool in_list)
{
    size_t i;
    const char *key;
    json_t *value;
    bool first = in_list;
    if (json_is_array(j)) {
        json_array_foreach(j, i, value)
        {
            text_addf(t, "%*s- ", 2 * depth, "");
            if (json_is_object(value))
                add_node(t, value, depth + 1, true);
            else
                add_scalar(t, value);
        }
        return;
    }
    json_object_foreach((json_t *)j, key, value)
    {
        if (!first)
            text_addf(t, "%*s", 2 * depth, "");
        first = false;
        add_word(t, key);
        text_add(t, ":");
        add_value(t, value, depth);
    }
}

void mig_state_add_yaml(struct text *t, const json_t *j)
{
    add_node(t, j, 0, false);
}

/* ---- checkpoint ---- */

static json_t *ci_state(const struct profile *p, const struct slice *s)
{
    const struct ci_profile *ci = profile_ci_by_id(p, s->ci_profile_id);
    json_t *j = json_object();
    json_put_u64(j, "ProfileID", ci ? ci->index : s->ci_profile_id);
    json_put_u64(j, "EngProfileID", 0);
    return j;
}

/* The GPU instance that begins at slice `i`, and how many entries of the list are its. */
static json_t *gi_state(const struct card *c, size_t i, size_t *ret_count)
{
    const struct slice *s = &c->slices[i];
    const struct profile *p = board_profile_by_id(&c->board, s->profile_id);
    json_t *place = json_object();
    json_t *cis = json_array();
    json_t *j = json_object();
    size_t n = 0;
    for (; i + n < c->slice_count && c->slices[i + n].gi == s->gi; n++)
        if (p && c->slices[i + n].ci != NOT_AN_INSTANCE)
            json_add(cis, ci_state(p, &c->slices[i + n]));
    *ret_count = n;
    json_put_u64(place, "Start", s->start);
    json_put_u64(place, "Size", s->units);
    json_put_u64(j, "ProfileID", p ? p->index : s->profile_id);
    json_put(j, "Placement", place);
    json_put(j, "ComputeInstances", cis);
    return j;
}

json_t *mig_state_checkpoint(const struct inventory *inv)
{
    json_t *devices = json_array();
    json_t *state = json_object();
    json_t *j = json_object();
    for (size_t i = 0; i < inv->card_count; i++) {
        const struct card *c = &inv->cards[i].card;
        json_t *device = json_object();
        json_t *gis = json_array();
        size_t n = 1;
        if (!is_told(c)) {
            json_decref(device);
            json_decref(gis);
            continue;
        }
        for (size_t k = 0; k < c->slice_count; k += n)
            json_add(gis, gi_state(c, k, &n));
        json_put_text(device, "UUID", c->uuid);
        json_put_u64(device, "MigMode", c->mig_now);
        json_put(device, "GpuInstances", gis);
        json_add(devices, device);
    }
    json_put(state, "Devices", devices);
    json_put_text(j, "Version", "v1");
    json_put(j, "MigState", state);
    return j;
}

/* ---- from a checkpoint ---- */

struct restoring {
    const char *file;
    const struct card *card;
    struct layout_wish *wish;
    struct err *e;
};

static const struct profile *by_index(const struct board *b, uint64_t index)
{
    for (uint32_t i = 0; i < b->profile_count; i++)
        if (b->profiles[i].index == index)
            return &b->profiles[i];
    return NULL;
}

/* NVML_COMPUTE_INSTANCE_PROFILE_*: 1, 2, 3, 4, 7, 8 and 6 slices, and 1 of another kind. */
static uint32_t ci_slices(uint64_t index)
{
    static const uint32_t slices[] = { 1, 2, 3, 4, 7, 8, 6, 1 };
    return index < sizeof slices / sizeof *slices ? slices[index] : 0;
}

static int add_ci(const struct restoring *r, const struct profile *p, uint32_t start, json_t *j)
{
    struct fields f;
    fields_open(&f, j, "a compute instance", r->e);
    uint64_t index = fields_u64(&f, "ProfileID", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    int code = fields_close(&f, FIELDS_OPEN);
    uint32_t slices = ci_slices(index);
    if (code < 0)
        return code;
    if (!slices || slices > p->slices)
        return err_set(r->e, -ENOTSUP,
                       "%s: compute instances of kind %" PRIu64 " do not exist in a %s", r->file,
                       index, p->name);
    if (r->wish->piece_count == LAYOUT_PIECES_MAX)
        return err_set(r->e, -EINVAL, "%s: more slices than any card has", r->file);
    struct layout_piece *piece = layout_add_piece(r->wish);
    *piece = (struct layout_piece){ .count = 1, .start = start, .ci_start = LAYOUT_ANYWHERE };
    if (slices == p->slices)
        (void)snprintf(piece->profile, sizeof piece->profile, "%s", p->name);
    else
        (void)snprintf(piece->profile, sizeof piece->profile, "%" PRIu32 "c.%.18s", slices,
                       p->name);
    return 0;
}

static int add_gi(const struct restoring *r, json_t *j)
{
    struct fields f, at;
    fields_open(&f, j, "a GPU instance", r->e);
    uint64_t index = fields_u64(&f, "ProfileID", FIELD_REQUIRED, 0, UINT32_MAX, 0);
    json_t *place = fields_object(&f, "Placement", FIELD_REQUIRED);
    json_t *cis = fields_array(&f, "ComputeInstances", FIELD_OPTIONAL, PROFILE_CI_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code < 0)
        return code;
    fields_open(&at, place, "a placement", r->e);
    uint64_t start = fields_u64(&at, "Start", FIELD_REQUIRED, 0, BOARD_UNITS_MAX - 1, 0);
    code = fields_close(&at, FIELDS_OPEN);
    const struct profile *p = by_index(&r->card->board, index);
    if (code == 0 && !p)
        return err_set(r->e, -ENOTSUP, "%s: gpu%" PRIu32 " has no profile of kind %" PRIu64,
                       r->file, r->card->ordinal, index);
    for (size_t i = 0; code == 0 && i < json_array_size(cis); i++)
        code = add_ci(r, p, (uint32_t)start, json_array_get(cis, i));
    return code;
}

static int add_device(const char *file, json_t *j, const struct inventory *inv, struct layout *l,
                      struct err *e)
{
    struct fields f;
    fields_open(&f, j, "a device", e);
    const char *uuid = fields_text(&f, "UUID", FIELD_REQUIRED, CARD_UUID_SIZE - 1);
    uint64_t mode = fields_u64(&f, "MigMode", FIELD_REQUIRED, 0, 1, 0);
    json_t *gis = fields_array(&f, "GpuInstances", FIELD_OPTIONAL, LAYOUT_PIECES_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code < 0)
        return code;
    const struct inventory_card *c = inventory_uuid(inv, uuid);
    if (!c)
        return err_set(e, -ENODEV,
                       "%s: %s is not among the cards that are here, so nothing is restored; take "
                       "it out of the file to restore the others",
                       file, uuid);
    struct layout_wish *w = layout_add_wish(l);
    struct layout_claim *claim = layout_add_claim(w);
    claim->kind = CLAIM_UUID;
    (void)snprintf(claim->word, sizeof claim->word, "%s", uuid);
    w->has_mode = true;
    w->mode = mode ? MODE_SLICES : MODE_WHOLE;
    w->has_slices = mode;
    struct restoring r = { .file = file, .card = &c->card, .wish = w, .e = e };
    for (size_t i = 0; mode && code == 0 && i < json_array_size(gis); i++)
        code = add_gi(&r, json_array_get(gis, i));
    return code;
}

int mig_state_from_checkpoint(const char *file, json_t *j, const struct inventory *inv,
                              struct layout *ret, struct err *e)
{
    AUTO(layout) struct layout l = LAYOUT_INIT;
    struct fields f, s;
    l.file = text_dup(file);
    fields_open(&f, j, file, e);
    const char *version = fields_text(&f, "Version", FIELD_REQUIRED, 16);
    json_t *state = fields_object(&f, "MigState", FIELD_REQUIRED);
    if (version && strcmp(version, "v1") != 0)
        fields_fail(&f, "version '%s' is not known; v1 is", version);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code < 0)
        return code;
    fields_open(&s, state, file, e);
    json_t *devices = fields_array(&s, "Devices", FIELD_REQUIRED, LAYOUT_WISHES_MAX);
    code = fields_close(&s, FIELDS_OPEN);
    for (size_t i = 0; code == 0 && i < json_array_size(devices); i++)
        code = add_device(file, json_array_get(devices, i), inv, &l, e);
    if (code < 0)
        return code;
    *ret = l;
    l = (struct layout)LAYOUT_INIT;
    return 0;
}
