#include "driver/wire.h"

#include <errno.h>
#include <stdlib.h>

#include "base/text.h"

json_t *skips_to_json(const struct driver_skip *skip, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *j = json_object();
        json_put_text(j, "uuid", skip[i].uuid);
        json_put_text(j, "bus_id", skip[i].bus_id);
        json_put_i64(j, "index", skip[i].index);
        json_add(list, j);
    }
    return list;
}

int skips_from_json(json_t *j, struct driver_skip **ret, size_t *ret_count, struct err *e)
{
    size_t n = json_array_size(j);
    if (n > WIRE_SKIPS_MAX)
        return err_set(e, -EPROTO, "more than %u cards to skip", WIRE_SKIPS_MAX);
    auto_free struct driver_skip *list = mem_new((n + 1) * sizeof *list);
    for (size_t i = 0; i < n; i++) {
        struct fields f;
        fields_open(&f, json_array_get(j, i), "skip", e);
        fields_copy(&f, "uuid", FIELD_OPTIONAL, list[i].uuid, sizeof list[i].uuid);
        fields_copy(&f, "bus_id", FIELD_OPTIONAL, list[i].bus_id, sizeof list[i].bus_id);
        list[i].index = fields_i64(&f, "index", FIELD_OPTIONAL, INT64_MIN, INT64_MAX, -1);
        int code = fields_close(&f, FIELDS_OPEN);
        if (code < 0)
            return code;
    }
    *ret = take_ptr(list);
    *ret_count = n;
    return 0;
}

void event_put(json_t *j, const struct driver_event *ev)
{
    json_put_text(j, "uuid", ev->uuid);
    json_put_text(j, "bus_id", ev->bus_id);
    json_put_u64(j, "xid", ev->xid);
    json_put_u64(j, "gi", ev->gi);
    json_put_u64(j, "ci", ev->ci);
}

int event_from_json(json_t *j, struct driver_event *ret, struct err *e)
{
    struct fields f;
    struct driver_event ev = { .xid = 0 };
    fields_open(&f, j, "event", e);
    fields_copy(&f, "uuid", FIELD_OPTIONAL, ev.uuid, sizeof ev.uuid);
    fields_copy(&f, "bus_id", FIELD_OPTIONAL, ev.bus_id, sizeof ev.bus_id);
    ev.xid = fields_u64(&f, "xid", FIELD_OPTIONAL, 0, UINT64_MAX, 0);
    ev.gi = (uint32_t)fields_u64(&f, "gi", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    ev.ci = (uint32_t)fields_u64(&f, "ci", FIELD_OPTIONAL, 0, UINT32_MAX, NOT_AN_INSTANCE);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        *ret = ev;
    return code;
}

json_t *restore_to_json(const struct driver_restore *r)
{
    json_t *j = json_object();
    json_put_text(j, "uuid", r->uuid);
    json_put_u64(j, "known", r->known);
    json_put_u64(j, "compute_mode", r->settings.compute_mode);
    json_put_u64(j, "app_sm_mhz", r->settings.app_sm_mhz);
    json_put_u64(j, "app_mem_mhz", r->settings.app_mem_mhz);
    json_put_bool(j, "unlock", r->unlock);
    return j;
}

static uint32_t read_u32(struct fields *f, const char *key)
{
    return (uint32_t)fields_u64(f, key, FIELD_REQUIRED, 0, UINT32_MAX, 0);
}

int restore_from_json(json_t *j, struct driver_restore *ret, struct err *e)
{
    struct fields f;
    struct driver_restore r = { .known = 0 };
    fields_open(&f, j, "restore", e);
    fields_copy(&f, "uuid", FIELD_REQUIRED, r.uuid, sizeof r.uuid);
    r.known = read_u32(&f, "known");
    r.settings.compute_mode = read_u32(&f, "compute_mode");
    r.settings.app_sm_mhz = read_u32(&f, "app_sm_mhz");
    r.settings.app_mem_mhz = read_u32(&f, "app_mem_mhz");
    r.unlock = fields_bool(&f, "unlock", false);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        *ret = r;
    return code;
}
