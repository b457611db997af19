#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/fields.h"

#define PLAN_STEPS_MAX 4096

void plan_done(struct plan *p)
{
    free(p->steps);
    *p = (struct plan)PLAN_INIT;
}

void plan_copy(const struct plan *p, struct plan *ret)
{
    ret->steps = mem_dup(p->steps, p->count * sizeof *p->steps);
    ret->count = p->count;
    ret->alloc = p->count;
}

struct step *plan_add(struct plan *p, enum step_kind kind, const struct card *c)
{
    ARRAY_ROOM(p->steps, p->alloc, p->count + 1);
    struct step *s = &p->steps[p->count++];
    step_init(s, kind, c);
    return s;
}

void plan_add_step(struct plan *p, const struct step *s)
{
    ARRAY_ROOM(p->steps, p->alloc, p->count + 1);
    p->steps[p->count++] = *s;
}

json_t *plan_to_json(const struct plan *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++)
        json_add(list, step_to_json(&p->steps[i]));
    return list;
}

int plan_from_json(json_t *j, struct plan *ret, struct err *e)
{
    AUTO(plan) struct plan p = PLAN_INIT;
    if (!json_is_array(j) || json_array_size(j) > PLAN_STEPS_MAX)
        return err_set(e, -EINVAL, "a plan is a list of at most %d steps", PLAN_STEPS_MAX);
    for (size_t i = 0; i < json_array_size(j); i++) {
        struct step s;
        int code = step_from_json(json_array_get(j, i), &s, e);
        if (code < 0)
            return err_wrap(e, code, "step %zu", i + 1);
        plan_add_step(&p, &s);
    }
    *ret = p;
    p = (struct plan)PLAN_INIT;
    return 0;
}
