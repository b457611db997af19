#include <errno.h>
#include <string.h>

#include "apply/apply.h"
#include "base/text.h"

/* The first slice of the instance at the step's placement. */
static const struct slice *instance(const struct step *s, const struct card *c)
{
    for (size_t i = 0; i < c->slice_count; i++)
        if (c->slices[i].start == s->start && c->slices[i].profile_id == s->profile_id)
            return &c->slices[i];
    return NULL;
}

static bool others_there(const struct step *s, const struct card *c)
{
    for (size_t i = 0; i < c->slice_count; i++) {
        const struct slice *o = &c->slices[i];
        if (o->start < s->start + s->units && s->start < o->start + o->units)
            return true;
    }
    return false;
}

static const struct slice *compute_instance(const struct step *s, const struct card *c)
{
    for (size_t i = 0; i < c->slice_count; i++) {
        const struct slice *o = &c->slices[i];
        if (o->start != s->start || o->profile_id != s->profile_id || o->ci == NOT_AN_INSTANCE)
            continue;
        if (s->ci == NOT_AN_INSTANCE ? o->ci_start == s->ci_start : o->ci == s->ci)
            return o;
    }
    return NULL;
}

static int gi_created(const struct step *s, const struct card *c, struct step *ret_done)
{
    const struct slice *o = instance(s, c);
    if (!o)
        return others_there(s, c) ? -ESTALE : 0;
    *ret_done = *s;
    ret_done->gi = o->gi;
    return 1;
}

static int ci_created(const struct step *s, const struct card *c, struct step *ret_done)
{
    const struct slice *o = compute_instance(s, c);
    if (!o)
        return instance(s, c) ? 0 : -ESTALE;
    *ret_done = *s;
    ret_done->gi = o->gi;
    ret_done->ci = o->ci;
    ret_done->ci_profile_id = o->ci_profile_id;
    ret_done->ci_slices = o->ci_slices;
    memcpy(ret_done->uuid, o->uuid, sizeof ret_done->uuid);
    return 1;
}

static int destroyed(const struct step *s, const struct slice *left, struct step *ret_done)
{
    if (left && (s->gi == NOT_AN_INSTANCE || left->gi == s->gi))
        return 0;
    *ret_done = *s;
    return 1;
}

static int mode_is(const struct step *s, const struct card *c, bool on, struct step *ret_done)
{
    if (c->mig_now != on || c->mig_pending != on)
        return 0;
    *ret_done = *s;
    return 1;
}

static int is_stored(const struct step *s, const struct card *c, struct step *ret_done)
{
    if (c->mig_pending != s->was_pending)
        return 0;
    *ret_done = *s;
    return 1;
}

int apply_step_happened(const struct step *s, const struct card *now, struct step *ret_done)
{
    switch (s->kind) {
    case STEP_MIG_ON:
        return mode_is(s, now, true, ret_done);
    case STEP_MIG_OFF:
        return mode_is(s, now, false, ret_done);
    case STEP_MIG_STORE:
        return is_stored(s, now, ret_done);
    case STEP_RESET:
        return mode_is(s, now, now->mig_pending, ret_done);
    case STEP_CI_DESTROY:
        return destroyed(s, compute_instance(s, now), ret_done);
    case STEP_GI_DESTROY:
        return destroyed(s, instance(s, now), ret_done);
    case STEP_GI_CREATE:
        return gi_created(s, now, ret_done);
    case STEP_CI_CREATE:
        return ci_created(s, now, ret_done);
    }
    return -ESTALE;
}

static bool waits_for_reset(const struct step *s, const struct card *c)
{
    return (s->kind == STEP_MIG_ON && !c->mig_now && c->mig_pending) ||
           (s->kind == STEP_MIG_OFF && c->mig_now && !c->mig_pending);
}

int apply_recover(struct apply *a, const struct snapshot *now, struct err *e)
{
    const struct step *s = apply_next(a);
    AUTO(text) struct text what = TEXT_INIT;
    if (!s || !a->under_way)
        return 0;
    step_add_text(&what, s);
    const struct card *c = snapshot_card(now, s->card_uuid);
    if (!c || (c->health != CARD_OK && c->health != CARD_RESET_REQUIRED))
        return err_set(e, -ENODEV,
                       "cannot tell whether Divvy got to %s: the card is %s; it is looked at again "
                       "when it answers",
                       what.buf, c ? card_health_word(c->health) : "not there");
    struct step done;
    int happened = apply_step_happened(s, c, &done);
    if (happened > 0)
        apply_result(a, 0, &done, NULL);
    else if (waits_for_reset(s, c))
        apply_result(a, -EAGAIN, NULL, NULL);
    else if (happened == 0)
        a->under_way = false; /* as before it: apply_next gives it once more */
    else {
        struct err stale = ERR_INIT;
        (void)err_set(&stale, happened,
                      "cannot %s: somebody else has cut the card since, or it was started anew",
                      what.buf);
        apply_result(a, happened, NULL, stale.text);
        return err_set(e, happened, "%s", stale.text);
    }
    return 0;
}
