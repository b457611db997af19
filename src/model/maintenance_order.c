#include "model/maintenance_order.h"

#include <errno.h>
#include <string.h>

static bool read_gpus(json_t *list, struct maintenance_order *o)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *gpu = json_array_get(list, i);
        json_int_t n = json_integer_value(gpu);
        if (!json_is_integer(gpu) || n < 0 || n > UINT32_MAX)
            return false;
        for (size_t k = 0; k < o->count; k++)
            if (o->gpus[k] == (uint32_t)n)
                return false;
        o->gpus[o->count++] = (uint32_t)n;
    }
    return true;
}

int maintenance_order_from_json(json_t *j, struct maintenance_order *ret, struct err *e)
{
    struct fields f;
    struct maintenance_order o = { .count = 0 };
    fields_open(&f, j, "maintenance", e);
    const char *action = fields_text(&f, "action", FIELD_REQUIRED, 16);
    json_t *gpus = fields_array(&f, "gpus", FIELD_OPTIONAL, MAINTENANCE_CARDS_MAX);
    int r = fields_close(&f, FIELDS_STRICT);
    if (r < 0)
        return r;
    o.begin = strcmp(action, "begin") == 0;
    if (!o.begin && strcmp(action, "end") != 0)
        return err_set(e, -EINVAL, "maintenance: 'action' is begin or end, not '%s'", action);
    if (!read_gpus(gpus, &o))
        return err_set(e, -EINVAL, "maintenance: 'gpus' is a list of cards by number, each once");
    if (!o.begin && o.count)
        return err_set(e, -EINVAL, "maintenance ends for all cards; leave 'gpus' out");
    *ret = o;
    return 0;
}
