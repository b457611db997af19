#include "apply/apply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apply/journal.h"
#include "base/killpoint.h"
#include "base/text.h"
#include "model/fields.h"

static const char *const state_words[] = { "going", "going back", "done", "rolled back", "stuck" };

const char *apply_state_word(enum apply_state s)
{
    return state_words[s];
}

void apply_init(struct apply *a, const struct plan *p)
{
    memset(a, 0, sizeof *a);
    plan_copy(p, &a->plan);
    a->state = p->count ? APPLY_GOING : APPLY_DONE;
}

void apply_done(struct apply *a)
{
    plan_done(&a->plan);
    plan_done(&a->back);
    plan_done(&a->aside);
}

/* The step of the list that the machine is at; NULL when it is over. */
static struct step *present(struct apply *a)
{
    if (a->state == APPLY_GOING)
        return &a->plan.steps[a->at];
    if (a->state == APPLY_BACK)
        return &a->back.steps[a->back_at];
    return NULL;
}

const struct step *apply_next(const struct apply *a)
{
    if (a->state != APPLY_GOING && a->state != APPLY_BACK)
        return NULL;
    return a->reset_next ? &a->reset : present((struct apply *)a);
}

void apply_begin(struct apply *a)
{
    a->under_way = true;
}

bool apply_needs_release(const struct step *s)
{
    return step_is_mode(s) || s->kind == STEP_MIG_STORE || s->kind == STEP_RESET;
}

bool apply_touches(const struct apply *a, const char *card_uuid)
{
    const struct plan *list = a->state == APPLY_GOING ? &a->plan : &a->back;
    size_t from = a->state == APPLY_GOING ? a->at : a->back_at;
    if (!apply_next(a))
        return false;
    for (size_t i = from; i < list->count; i++)
        if (strcmp(list->steps[i].card_uuid, card_uuid) == 0)
            return true;
    return false;
}

static void end_back(struct apply *a)
{
    if (a->back_at == a->back.count)
        a->state = a->stuck[0] ? APPLY_STUCK : APPLY_ROLLED_BACK;
}

static bool was_set_aside(const struct apply *a, const struct step *s)
{
    for (size_t i = 0; i < a->aside.count; i++)
        if (a->aside.steps[i].kind == s->kind &&
            strcmp(a->aside.steps[i].card_uuid, s->card_uuid) == 0)
            return true;
    return false;
}

/* Undoes the first `count` steps, the last of them first. */
static void turn_back(struct apply *a, size_t count)
{
    for (size_t i = count; i > 0; i--) {
        const struct step *s = &a->plan.steps[i - 1];
        struct step reverse[STEP_REVERSE_MAX];
        bool stored = (a->reset_next && i - 1 == a->at) || (step_is_mode(s) && was_set_aside(a, s));
        size_t n = step_reverse(s, stored, reverse);
        for (size_t k = 0; k < n; k++)
            plan_add_step(&a->back, &reverse[k]);
    }
    a->state = APPLY_BACK;
    a->reset_next = false;
    end_back(a);
}

static void fail(struct apply *a, int code, const char *text)
{
    AUTO(text) struct text what = TEXT_INIT;
    const struct step *s = apply_next(a);
    /* What is stored and waits for its reset, or may have been done, has to be undone as well. */
    bool this_one = a->reset_next || code == -EIO;
    step_add_text(&what, s);
    a->code = code;
    a->reset_failed = a->reset_next;
    if (text && text[0])
        (void)snprintf(a->failure, sizeof a->failure, "%.*s", ERR_TEXT_MAX - 1, text);
    else
        (void)snprintf(a->failure, sizeof a->failure, "cannot %s: %s", what.buf, strerror(-code));
    turn_back(a, a->at + this_one);
}

/* One could not be undone: what lies under it on that card cannot either; other cards can. */
static void get_stuck(struct apply *a, int code, const char *text)
{
    AUTO(text) struct text all = TEXT_INIT;
    struct step failed = a->back.steps[a->back_at];
    size_t keep = a->back_at;
    if (a->stuck[0])
        text_addf(&all, "%s; ", a->stuck);
    text_addf(&all, "gpu%u is not as it was: ", failed.ordinal);
    if (text && text[0]) {
        text_add(&all, text);
    } else {
        text_add(&all, "cannot ");
        step_add_text(&all, &failed);
        text_addf(&all, ": %s", strerror(-code));
    }
    (void)snprintf(a->stuck, sizeof a->stuck, "%s", all.buf);
    for (size_t i = a->back_at; i < a->back.count; i++)
        if (strcmp(a->back.steps[i].card_uuid, failed.card_uuid) != 0)
            a->back.steps[keep++] = a->back.steps[i];
    a->back.count = keep;
    a->reset_next = false;
    end_back(a);
}

static void step_done(struct apply *a, const struct step *done)
{
    struct step *s = present(a);
    if (done && !a->reset_next)
        *s = *done;
    a->reset_next = false;
    if (a->state == APPLY_GOING) {
        if (++a->at == a->plan.count)
            a->state = APPLY_DONE;
        return;
    }
    a->back_at++;
    end_back(a);
}

static bool destroys(const struct step *s)
{
    return s->kind == STEP_GI_DESTROY || s->kind == STEP_CI_DESTROY;
}

/* The card was started anew since the step was planned, or somebody else did it: it is done. */
static bool gone_already(const struct step *s, int code)
{
    return destroys(s) && code == -ENOENT;
}

/*
 * Things are already as this undoing step would make them, or what it would make was
 * taken away by others: by a card that was started anew (MIG is off, the GPU instance
 * gone), and what an earlier step could not undo is not come to.
 */
static bool undone_already(const struct apply *a, const struct step *s, int code)
{
    if (a->state != APPLY_BACK)
        return false;
    if (destroys(s))
        return code == -ESTALE;
    if (s->kind == STEP_CI_CREATE && (code == -ENOENT || code == -ESTALE))
        return true;
    return (s->kind == STEP_GI_CREATE || s->kind == STEP_CI_CREATE) &&
           (code == -EEXIST || code == -ENXIO);
}

static void want_reset(struct apply *a, const struct step *done)
{
    struct step *s = present(a);
    if (done)
        *s = *done;
    a->reset = *s;
    a->reset.kind = STEP_RESET;
    a->reset_next = true;
}

/* The present mode step is stored; it and what follows on its card is for later. */
static void set_aside(struct apply *a, const struct step *done, const char *text)
{
    struct step *s = present(a);
    size_t keep = a->at + 1;
    if (done && !a->reset_next)
        *s = *done;
    plan_add_step(&a->aside, s);
    for (size_t i = keep; i < a->plan.count; i++) {
        struct step *later = &a->plan.steps[i];
        if (strcmp(later->card_uuid, s->card_uuid) == 0)
            plan_add_step(&a->aside, later);
        else
            a->plan.steps[keep++] = *later;
    }
    a->plan.count = keep;
    (void)snprintf(a->reboot, sizeof a->reboot, "%s", text ? text : "");
    a->reset_next = false;
    if (++a->at == a->plan.count)
        a->state = APPLY_DONE;
}

static bool goes_aside(const struct apply *a, const struct step *s, int code)
{
    if (a->state != APPLY_GOING)
        return false;
    return (a->resets == APPLY_RESET_NEVER && code == -EAGAIN && step_is_mode(s)) ||
           (a->resets == APPLY_RESET_OR_ASIDE && code == -ENOTSUP && s->kind == STEP_RESET &&
            a->reset_next);
}

void apply_result(struct apply *a, int code, const struct step *done, const char *text)
{
    const struct step *s = apply_next(a);
    if (!s)
        return;
    a->under_way = false;
    if (code >= 0)
        step_done(a, done);
    else if (gone_already(s, code) || undone_already(a, s, code))
        step_done(a, NULL);
    else if (goes_aside(a, s, code))
        set_aside(a, done, text);
    else if (code == -EAGAIN && step_is_mode(s))
        want_reset(a, done);
    else if (a->state == APPLY_GOING)
        fail(a, code, text);
    else
        get_stuck(a, code, text);
}

void apply_cancel(struct apply *a, const char *why)
{
    if (a->state != APPLY_GOING)
        return;
    a->code = -ECANCELED;
    (void)snprintf(a->failure, sizeof a->failure, "%s", why);
    turn_back(a, a->at + a->reset_next);
}

int apply_run(struct apply *a, struct driver *d, struct journal *j, struct err *e)
{
    return apply_run_with(a, d, j, NULL, NULL, e);
}

int apply_run_with(struct apply *a, struct driver *d, struct journal *j, apply_before_fn before,
                   void *arg, struct err *e)
{
    const struct step *s;
    int code = 0;
    while ((s = apply_next(a))) {
        struct err failed = ERR_INIT;
        struct step done = *s;
        code = j ? journal_begin(j, s, e) : 0;
        if (code < 0)
            return code;
        apply_begin(a);
        bool ask = before && a->state == APPLY_GOING && !a->reset_next;
        int result = ask ? before(a, s, arg, &failed) : 0;
        KILLPOINT(APPLY_BEGUN);
        if (result >= 0)
            result = driver_step(d, s, &done, &failed);
        KILLPOINT(APPLY_DONE);
        code = j ? journal_result(j, result, &done, failed.text, e) : 0;
        if (code < 0)
            return code;
        KILLPOINT(APPLY_JOURNALED);
        apply_result(a, result, &done, failed.text);
    }
    if (a->state == APPLY_DONE)
        return 0;
    if (a->state == APPLY_ROLLED_BACK)
        return err_set(e, a->code, "%s; everything is as it was before", a->failure);
    return err_set(e, -ENOTRECOVERABLE, "%s; and it could not be undone: %s", a->failure, a->stuck);
}
