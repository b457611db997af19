#include "model/expect.h"

#include <stdlib.h>
#include <string.h>

static void drop_slice(struct card *c, size_t i)
{
    memmove(&c->slices[i], &c->slices[i + 1], (c->slice_count - i - 1) * sizeof *c->slices);
    c->slice_count--;
}

static void set_mode(struct card *c, bool on)
{
    if (c->mig_now != on)
        c->slice_count = 0;
    c->mig_now = c->mig_pending = on;
    c->known = on ? c->known | KNOW_SLICES : c->known & ~(unsigned int)KNOW_SLICES;
}

/* Is `s` of the GPU instance that the step is about? Placement is its identity. */
static bool same_instance(const struct slice *s, const struct step *step)
{
    return s->start == step->start && s->profile_id == step->profile_id;
}

static void create_gi(struct card *c, const struct step *step)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (same_instance(&c->slices[i], step)) {
            if (step->gi != NOT_AN_INSTANCE)
                c->slices[i].gi = step->gi;
            return;
        }
    struct slice *s = card_add_slice(c);
    s->gi = step->gi;
    s->profile_id = step->profile_id;
    s->start = step->start;
    s->units = step->units;
}

static void fill_ci(struct card *c, struct slice *s, const struct step *step)
{
    const struct profile *p = board_profile_by_id(&c->board, step->profile_id);
    uint32_t all = p ? p->slices : step->ci_slices;
    if (step->gi != NOT_AN_INSTANCE)
        s->gi = step->gi;
    s->ci = step->ci;
    s->ci_profile_id = step->ci_profile_id;
    s->ci_start = step->ci_start;
    s->ci_slices = step->ci_slices ? step->ci_slices : all;
    s->full = s->ci_slices == all;
    memcpy(s->uuid, step->uuid, sizeof s->uuid);
}

/* The slice of the instance that this compute instance is, or may become; NULL: the instance is missing. */
static struct slice *room_for_ci(struct card *c, const struct step *step, bool *ret_other)
{
    *ret_other = false;
    for (size_t i = 0; i < c->slice_count; i++) {
        struct slice *s = &c->slices[i];
        if (!same_instance(s, step))
            continue;
        if (s->ci_slices == 0 || s->ci_start == step->ci_start)
            return s;
        *ret_other = true;
    }
    return NULL;
}

static void create_ci(struct card *c, const struct step *step)
{
    bool other;
    struct slice *s = room_for_ci(c, step, &other);
    if (!s && other) {
        s = card_add_slice(c);
        s->profile_id = step->profile_id;
        s->start = step->start;
        s->units = step->units;
        s->gi = step->gi;
    }
    if (s)
        fill_ci(c, s, step);
}

static void destroy_ci(struct card *c, const struct step *step)
{
    size_t of_instance = 0;
    for (size_t i = 0; i < c->slice_count; i++)
        of_instance += same_instance(&c->slices[i], step);
    for (size_t i = 0; i < c->slice_count; i++) {
        struct slice *s = &c->slices[i];
        if (!same_instance(s, step) || s->ci != step->ci || !s->ci_slices)
            continue;
        if (of_instance > 1) {
            drop_slice(c, i);
            return;
        }
        s->ci = NOT_AN_INSTANCE;
        s->ci_profile_id = s->ci_start = s->ci_slices = 0;
        s->full = s->mem_known = false;
        s->uuid[0] = '\0';
        return;
    }
}

static void destroy_gi(struct card *c, const struct step *step)
{
    for (size_t i = c->slice_count; i > 0; i--)
        if (same_instance(&c->slices[i - 1], step))
            drop_slice(c, i - 1);
}

void card_expect(struct card *c, const struct step *s)
{
    switch (s->kind) {
    case STEP_MIG_ON:
        set_mode(c, true);
        break;
    case STEP_MIG_OFF:
        set_mode(c, false);
        break;
    case STEP_MIG_STORE:
        c->mig_pending = s->was_pending;
        break;
    case STEP_RESET:
        break;
    case STEP_GI_CREATE:
        create_gi(c, s);
        break;
    case STEP_CI_CREATE:
        create_ci(c, s);
        break;
    case STEP_CI_DESTROY:
        destroy_ci(c, s);
        break;
    case STEP_GI_DESTROY:
        destroy_gi(c, s);
        break;
    }
    card_sort_slices(c);
}
