/*
 * step.h - one change to a card, and its opposite.
 *
 * A plan is an ordered list of steps from the present layout to a wanted one.
 * Steps name things by exact placement, never by "the next free one", so that
 * a step means the same when it is read from a journal after a crash.
 */
#ifndef DIVVY_PLAN_STEP_H
#define DIVVY_PLAN_STEP_H

#include <jansson.h>

#include "model/inventory.h"

enum step_kind {
    STEP_MIG_ON = 0,
    STEP_MIG_OFF,
    STEP_RESET,      /* only where the mode stays pending without it */
    STEP_CI_DESTROY,
    STEP_GI_DESTROY,
    STEP_GI_CREATE,
    STEP_CI_CREATE,
};

struct step {
    enum step_kind kind;
    char card_uuid[CARD_UUID_SIZE];
    uint32_t ordinal;        /* for messages */
    uint32_t profile_id;     /* GI steps and CI steps: of the GPU instance */
    char profile[PROFILE_NAME_SIZE];
    uint32_t start, units;   /* memory units of the GPU instance: its identity across steps */
    uint32_t gi;             /* destroy: must be this one. Create: what came of it, once done */
    uint32_t ci_profile_id, ci_start, ci_slices;
    uint32_t ci;             /* as gi */
    char uuid[CARD_UUID_SIZE]; /* CI create: the MIG UUID, once done */
};

struct plan {
    struct step *steps;
    size_t count, alloc;
};

#define PLAN_INIT { .steps = NULL }

void plan_done(struct plan *p);
void plan_copy(const struct plan *p, struct plan *ret);
struct step *plan_add(struct plan *p, enum step_kind kind, const struct card *c);

/*
 * The step that takes `s` back, once `s` was done (its gi and ci are filled
 * in). A destroyed instance is created again at the same place; a reset has
 * no opposite: returns false.
 */
bool step_reverse(const struct step *s, struct step *ret);

/* "create 2g.20gb at gpu0 @4", for journals, logs and `layout plan`. */
void step_add_text(struct text *t, const struct step *s);
const char *step_kind_word(enum step_kind k);
json_t *step_to_json(const struct step *s);
int step_from_json(json_t *j, struct step *ret, struct err *e);

#endif
