/*
 * step.h - one change to a card, and its opposite.
 *
 * Steps name things by exact placement (profile and first memory unit), never
 * by "the next free one", so that a step means the same when it is read from a
 * journal after a crash. plan/ makes them, driver/ carries one out, apply/
 * carries out a list of them.
 *
 * Which fields a kind uses:
 *     MIG_ON, MIG_OFF, RESET   the card; and what both modes were before it
 *     MIG_STORE                the card, and was_pending: the mode to store
 *     GI_CREATE, GI_DESTROY    the card, profile_id, profile, start, units, gi
 *     CI_CREATE, CI_DESTROY    these and ci_profile_id, ci_start, ci_slices, ci, uuid
 */
#ifndef DIVVY_MODEL_STEP_H
#define DIVVY_MODEL_STEP_H

#include <jansson.h>

#include "model/inventory.h"

enum step_kind {
    STEP_MIG_ON = 0,
    STEP_MIG_OFF,
    STEP_MIG_STORE, /* the pending mode alone: nothing is reset for it */
    STEP_RESET,     /* only where the mode stays pending without it */
    STEP_CI_DESTROY,
    STEP_GI_DESTROY,
    STEP_GI_CREATE,
    STEP_CI_CREATE,
};
#define STEP_KINDS 8

struct step {
    enum step_kind kind;
    char card_uuid[CARD_UUID_SIZE];
    uint32_t ordinal; /* for messages */
    uint32_t profile_id;
    char profile[PROFILE_NAME_SIZE];
    uint32_t start, units; /* memory units of the GPU instance: its identity across steps */
    uint32_t gi;           /* destroy: must be this one. Create: what came of it, once done; before,
                    NOT_AN_INSTANCE */
    uint32_t ci_profile_id;
    uint32_t ci_start, ci_slices; /* create: ci_slices 0 means all of the GPU instance */
    uint32_t ci;                  /* as gi */
    char uuid[CARD_UUID_SIZE];    /* CI create: the MIG UUID, once done */
    bool was_on, was_pending; /* MIG mode of the card when it was planned: current, and stored */
};

/* All fields set: gi and ci to NOT_AN_INSTANCE, the rest from the card or zero. */
void step_init(struct step *s, enum step_kind kind, const struct card *c);

#define STEP_REVERSE_MAX 2

/*
 * The steps that take `s` back, first to be done first; how many. Once `s` was
 * done (its gi and ci are filled in), or, of a mode, `only_stored`: it waits
 * for a reset that it did not get. A destroyed instance is created again at the
 * same place; a reset has no opposite. A card that had another mode stored than
 * current gets both again: what was only stored is never turned by a reset.
 */
size_t step_reverse(const struct step *s, bool only_stored, struct step ret[STEP_REVERSE_MAX]);

/* MIG_ON, MIG_OFF. */
bool step_is_mode(const struct step *s);

/* "create 2g.20gb at gpu0 @4", "turn MIG on on gpu0", for journals, logs and `layout plan`. */
void step_add_text(struct text *t, const struct step *s);
/* "mig_on", "gi_create", …: in JSON. */
const char *step_kind_word(enum step_kind k);
/* New reference. */
json_t *step_to_json(const struct step *s);
/* Open reader: journals of other versions. -EINVAL. */
int step_from_json(json_t *j, struct step *ret, struct err *e);

#endif
