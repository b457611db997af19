#include "model/maintenance_order.h"

#include <errno.h>
#include <stdio.h>
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

static const char *const actions[] = { [MAINTENANCE_END] = "end",
                                       [MAINTENANCE_BEGIN] = "begin",
                                       [MAINTENANCE_PLAN] = "plan",
                                       [MAINTENANCE_CANCEL] = "cancel" };

static int read_action(const char *word, struct maintenance_order *o, struct err *e)
{
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(word, actions[i]) == 0) {
            o->action = (enum maintenance_action)i;
            return 0;
        }
    return err_set(e, -EINVAL, "maintenance: 'action' is begin, end, plan or cancel, not '%s'",
                   word);
}

/* What is said must belong to the action, and what it needs must be said. */
static int check(const struct maintenance_order *o, struct err *e)
{
    bool plan = o->action == MAINTENANCE_PLAN;
    if (o->action == MAINTENANCE_END && o->count)
        return err_set(e, -EINVAL, "maintenance ends for all cards; leave 'gpus' out");
    if (o->action == MAINTENANCE_CANCEL && (o->count || !o->id))
        return err_set(e, -EINVAL, "maintenance: to cancel a plan, say its 'id' and no more");
    if (o->action != MAINTENANCE_CANCEL && o->id)
        return err_set(e, -EINVAL, "maintenance: 'id' says what to cancel");
    if (!plan && (o->from_wall_us || o->until_wall_us || o->reason[0]))
        return err_set(e, -EINVAL, "maintenance: only a plan has times and a reason");
    if (plan && (!o->from_wall_us || !o->until_wall_us))
        return err_set(e, -EINVAL, "maintenance: a plan needs 'from_wall_us' and 'until_wall_us'");
    if (plan && o->until_wall_us <= o->from_wall_us)
        return err_set(e, -EINVAL, "maintenance must end after it begins");
    return 0;
}

int maintenance_order_from_json(json_t *j, struct maintenance_order *ret, struct err *e)
{
    struct fields f;
    struct maintenance_order o = { .count = 0 };
    fields_open(&f, j, "maintenance", e);
    const char *action = fields_text(&f, "action", FIELD_REQUIRED, 16);
    json_t *gpus = fields_array(&f, "gpus", FIELD_OPTIONAL, MAINTENANCE_CARDS_MAX);
    o.from_wall_us =
        (int64_t)fields_u64(&f, "from_wall_us", FIELD_OPTIONAL, 0, FIELD_WALL_MAX_US, 0);
    o.until_wall_us =
        (int64_t)fields_u64(&f, "until_wall_us", FIELD_OPTIONAL, 0, FIELD_WALL_MAX_US, 0);
    o.id = fields_u64(&f, "id", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    const char *reason = fields_text(&f, "reason", FIELD_OPTIONAL, MAINTENANCE_REASON_MAX);
    int r = fields_close(&f, FIELDS_STRICT);
    if (r == 0)
        r = read_action(action, &o, e);
    if (r < 0)
        return r;
    if (reason)
        (void)snprintf(o.reason, sizeof o.reason, "%s", reason); /* it fits */
    if (!read_gpus(gpus, &o))
        return err_set(e, -EINVAL, "maintenance: 'gpus' is a list of cards by number, each once");
    r = check(&o, e);
    if (r == 0)
        *ret = o;
    return r;
}
