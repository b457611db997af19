#include <errno.h>
#include <string.h>

#include "apply/apply.h"
#include "model/fields.h"

json_t *apply_to_json(const struct apply *a)
{
    json_t *j = json_object();
    json_put_text(j, "state", apply_state_word(a->state));
    json_put(j, "plan", plan_to_json(&a->plan));
    json_put_u64(j, "at", a->at);
    json_put(j, "back", plan_to_json(&a->back));
    json_put_u64(j, "back_at", a->back_at);
    json_put_bool(j, "under_way", a->under_way);
    json_put(j, "reset", a->reset_next ? step_to_json(&a->reset) : json_null());
    json_put_i64(j, "code", a->code);
    json_put_bool(j, "reset_failed", a->reset_failed);
    json_put_text(j, "failure", a->failure);
    json_put_text(j, "stuck", a->stuck);
    json_put_u64(j, "resets", a->resets);
    json_put(j, "aside", plan_to_json(&a->aside));
    json_put_text(j, "reboot", a->reboot);
    return j;
}

static enum apply_state read_state(struct fields *f)
{
    const char *word = fields_text(f, "state", FIELD_REQUIRED, 16);
    for (int s = APPLY_GOING; word && s <= APPLY_STUCK; s++)
        if (strcmp(word, apply_state_word((enum apply_state)s)) == 0)
            return (enum apply_state)s;
    if (word)
        fields_fail(f, "'%s' is no state of a change", word);
    return APPLY_STUCK;
}

static int read_plans(struct apply *a, json_t *plan, json_t *back, json_t *aside, json_t *reset,
                      struct err *e)
{
    int code = plan_from_json(plan, &a->plan, e);
    if (code == 0 && aside)
        code = plan_from_json(aside, &a->aside, e);
    if (code == 0)
        code = plan_from_json(back, &a->back, e);
    if (code == 0 && reset)
        code = step_from_json(reset, &a->reset, e);
    a->reset_next = reset != NULL;
    if (code == 0 && a->state == APPLY_STUCK && !a->stuck[0])
        code = err_set(e, -EINVAL, "a change that is stuck and does not say on what");
    bool out = (a->state == APPLY_GOING && a->at >= a->plan.count) ||
               (a->state == APPLY_BACK && a->back_at >= a->back.count);
    if (code == 0 && out)
        code = err_set(e, -EINVAL, "a change that is beyond its last step");
    return code;
}

int apply_from_json(json_t *j, struct apply *ret, struct err *e)
{
    struct fields f;
    struct apply a = { .state = APPLY_STUCK };
    fields_open(&f, j, "change", e);
    a.state = read_state(&f);
    json_t *plan = fields_array(&f, "plan", FIELD_REQUIRED, SIZE_MAX);
    json_t *back = fields_array(&f, "back", FIELD_REQUIRED, SIZE_MAX);
    a.at = fields_u64(&f, "at", FIELD_REQUIRED, 0, SIZE_MAX, 0);
    a.back_at = fields_u64(&f, "back_at", FIELD_REQUIRED, 0, SIZE_MAX, 0);
    a.under_way = fields_bool(&f, "under_way", false);
    json_t *reset = fields_object(&f, "reset", FIELD_OPTIONAL);
    a.code = (int)fields_i64(&f, "code", FIELD_OPTIONAL, INT32_MIN, 0, 0);
    a.reset_failed = fields_bool(&f, "reset_failed", false);
    fields_copy(&f, "failure", FIELD_OPTIONAL, a.failure, sizeof a.failure);
    fields_copy(&f, "stuck", FIELD_OPTIONAL, a.stuck, sizeof a.stuck);
    a.resets = (enum apply_resets)fields_u64(&f, "resets", FIELD_OPTIONAL, 0, APPLY_RESET_NEVER, 0);
    json_t *aside = fields_array(&f, "aside", FIELD_OPTIONAL, SIZE_MAX);
    fields_copy(&f, "reboot", FIELD_OPTIONAL, a.reboot, sizeof a.reboot);
    int code = fields_close(&f, FIELDS_OPEN);
    if (code == 0)
        code = read_plans(&a, plan, back, aside, reset, e);
    if (code < 0)
        apply_done(&a);
    else
        *ret = a;
    return code;
}
