#include "model/board_json.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static const char *const activation_words[] = { "none", "reset", "immediate", "not told" };

static json_t *numbers(const uint8_t *v, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_add(list, json_integer(v[i]));
    return list;
}

static json_t *ci_profile_to_json(const struct ci_profile *p)
{
    json_t *j = json_object();
    json_put_u64(j, "id", p->id);
    json_put_u64(j, "index", p->index);
    json_put_text(j, "name", p->name);
    json_put_u64(j, "slices", p->slices);
    json_put_u64(j, "sms", p->sms);
    json_put_u64(j, "max", p->max);
    return j;
}

/*
 * Numbers that are a plain uint32_t in the struct: one table for both
 * directions. clang-format 14 has no stable form for such a list.
 */
/* clang-format off */
#define PROFILE_NUMBERS(X) \
    X(id) X(index) X(slices) X(units) X(sms) X(copy_engines) X(decoders) X(encoders) X(jpegs) \
    X(ofas) X(max)
#define BOARD_NUMBERS(X) \
    X(sms) X(pci_device_id) X(arch) X(cc_major) X(cc_minor) \
    X(power_idle_mw) X(power_limit_mw) X(copy_engines) X(decoders) X(encoders) X(jpegs) X(ofas) \
    X(brand) X(cores_per_sm) X(clock_idle_mhz) X(clock_max_mhz) X(clock_memory_mhz) \
    X(temp_slowdown_c) X(temp_shutdown_c) X(pcie_gen) X(pcie_width)
/* clang-format on */

static json_t *profile_to_json(const struct profile *p)
{
    json_t *j = json_object();
    json_put_text(j, "name", p->name);
    json_put_u64(j, "mem_bytes", p->mem_bytes);
#define PUT(field) json_put_u64(j, #field, p->field);
    PROFILE_NUMBERS(PUT)
#undef PUT
    json_put(j, "starts", numbers(p->starts, p->start_count));
    json_put(j, "order", numbers(p->order, p->order_count));
    json_put_bool(j, "unconfirmed", p->unconfirmed);
    json_t *cis = json_array();
    for (uint32_t i = 0; i < p->ci_count; i++)
        json_add(cis, ci_profile_to_json(&p->cis[i]));
    json_put(j, "compute_instances", cis);
    return j;
}

/* A board file tells all of it; a driver leaves 0 where it is silent. */
static uint64_t told(const struct board *b, uint64_t n)
{
    return n || b->key[0] ? n : UINT64_MAX;
}

static void put_flag(json_t *j, const char *key, const struct board *b, bool flag)
{
    json_put(j, key, flag || b->key[0] ? json_boolean(flag) : json_null());
}

json_t *board_to_json(const struct board *b)
{
    json_t *j = json_object();
    json_put_text(j, "key", b->key);
    json_put_text(j, "name", b->name);
    json_put_text(j, "activation", activation_words[b->activation]);
    json_put_u64(j, "units", b->units);
    json_put_u64(j, "slices", b->slices);
    json_put_u64(j, "mem_bytes", told(b, b->mem_bytes));
    json_put_u64(j, "reserved_bytes", told(b, b->reserved_bytes));
    put_flag(j, "ecc", b, b->ecc);
    put_flag(j, "fan", b, b->fan);
#define PUT(field) json_put_u64(j, #field, told(b, b->field));
    BOARD_NUMBERS(PUT)
#undef PUT
    json_put_text(j, "min_driver", b->min_driver[0] ? b->min_driver : NULL);
    json_put_bool(j, "unconfirmed", b->unconfirmed);
    json_t *profiles = json_array();
    for (uint32_t i = 0; i < b->profile_count; i++)
        json_add(profiles, profile_to_json(&b->profiles[i]));
    json_put(j, "profiles", profiles);
    return j;
}

static uint32_t read_numbers(struct fields *f, const char *key, uint8_t *v)
{
    json_t *list = fields_array(f, key, FIELD_OPTIONAL, BOARD_UNITS_MAX);
    size_t n = list ? json_array_size(list) : 0;
    for (size_t i = 0; i < n; i++) {
        json_t *item = json_array_get(list, i);
        json_int_t value = json_integer_value(item);
        if (!json_is_integer(item))
            fields_fail(f, "'%s' must be a list of whole numbers", key);
        else if (value < 0 || value >= BOARD_UNITS_MAX)
            fields_fail(f, "'%s' has a start outside of the board", key);
        v[i] = (uint8_t)value;
    }
    return (uint32_t)n;
}

static int ci_profile_from_json(json_t *j, struct ci_profile *ret, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "compute instance profile", e);
    ret->id = fields_u32(&f, "id");
    ret->index = fields_u32(&f, "index");
    ret->slices = fields_u32(&f, "slices");
    ret->sms = fields_u32(&f, "sms");
    ret->max = fields_u32(&f, "max");
    fields_copy(&f, "name", FIELD_OPTIONAL, ret->name, sizeof ret->name);
    return fields_close(&f, FIELDS_OPEN);
}

static int profile_from_json(json_t *j, struct profile *ret, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "profile", e);
    fields_copy(&f, "name", FIELD_REQUIRED, ret->name, sizeof ret->name);
    ret->mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
#define READ(field) ret->field = fields_u32(&f, #field);
    PROFILE_NUMBERS(READ)
#undef READ
    ret->start_count = read_numbers(&f, "starts", ret->starts);
    ret->order_count = read_numbers(&f, "order", ret->order);
    ret->unconfirmed = fields_bool(&f, "unconfirmed", false);
    json_t *cis = fields_array(&f, "compute_instances", FIELD_OPTIONAL, PROFILE_CI_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    for (size_t i = 0; code == 0 && cis && i < json_array_size(cis); i++)
        code = ci_profile_from_json(json_array_get(cis, i), &ret->cis[ret->ci_count++], e);
    return code;
}

static enum mig_activation read_activation(struct fields *f)
{
    const char *word = fields_text(f, "activation", FIELD_OPTIONAL, 16);
    for (size_t i = 0; word && i < 4; i++)
        if (strcmp(word, activation_words[i]) == 0)
            return (enum mig_activation)i;
    return MIG_NOT_TOLD;
}

int board_from_json(json_t *j, struct board *ret, struct err *e)
{
    struct fields f;
    struct board *b = mem_new(sizeof *b);
    auto_free struct board *owned = b;
    fields_open(&f, j, "board", e);
    fields_copy(&f, "key", FIELD_OPTIONAL, b->key, sizeof b->key);
    fields_copy(&f, "name", FIELD_OPTIONAL, b->name, sizeof b->name);
    fields_copy(&f, "min_driver", FIELD_OPTIONAL, b->min_driver, sizeof b->min_driver);
    b->activation = read_activation(&f);
    b->units = fields_u32(&f, "units");
    b->slices = fields_u32(&f, "slices");
    b->mem_bytes = fields_u64(&f, "mem_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    b->reserved_bytes = fields_u64(&f, "reserved_bytes", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    b->ecc = fields_bool(&f, "ecc", false);
    b->fan = fields_bool(&f, "fan", false);
#define READ(field) b->field = fields_u32(&f, #field);
    BOARD_NUMBERS(READ)
#undef READ
    b->unconfirmed = fields_bool(&f, "unconfirmed", false);
    json_t *profiles = fields_array(&f, "profiles", FIELD_OPTIONAL, BOARD_PROFILES_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    for (size_t i = 0; code == 0 && profiles && i < json_array_size(profiles); i++)
        code = profile_from_json(json_array_get(profiles, i), &b->profiles[b->profile_count++], e);
    if (code == 0)
        *ret = *owned;
    return code;
}
