/*
 * plan.h - an ordered list of steps from the present layout to a wanted one.
 *
 *     AUTO(plan) struct plan p = PLAN_INIT;
 *     struct step *s = plan_add(&p, STEP_GI_CREATE, card);
 *     s->profile_id = …;
 */
#ifndef DIVVY_PLAN_PLAN_H
#define DIVVY_PLAN_PLAN_H

#include "model/step.h"

struct plan {
    struct step *steps;
    size_t count, alloc;
};

#define PLAN_INIT                                                                                  \
    {                                                                                              \
        .steps = NULL                                                                              \
    }

void plan_done(struct plan *p);
/* Deep copy; `ret` need not be initialised. */
void plan_copy(const struct plan *p, struct plan *ret);
/* A new step at the end, as step_init leaves it; valid until the next addition. */
struct step *plan_add(struct plan *p, enum step_kind kind, const struct card *c);
void plan_add_step(struct plan *p, const struct step *s);

/* An array of steps. */
json_t *plan_to_json(const struct plan *p);
/* -EINVAL; `ret` is filled only on success. */
int plan_from_json(json_t *j, struct plan *ret, struct err *e);

#endif
