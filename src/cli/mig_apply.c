/* `divvy mig-parted apply` and `restore`: the change, with the hooks around it. */
#include <errno.h>
#include <string.h>

#include "cli/mig_parted.h"

/* One apply on its way. */
struct running {
    struct applying *a;
    const struct mig_call *call;
    const struct mig_hooks *hooks;
    size_t mode_steps; /* of the plan: the others come after pre-apply-config */
    bool config_ran;
};

void mig_keep_modes(struct layout *l)
{
    for (size_t i = 0; i < l->wish_count; i++) {
        l->wishes[i].has_slices = false;
        l->wishes[i].piece_count = 0;
    }
}

static int hook(struct running *r, enum mig_hook_point p, struct err *e)
{
    driver_release(r->a->driver); /* whoever the hook stops for us must not find us there */
    return mig_hook_run(r->hooks, p, r->call, e);
}

static int fail(const struct err *e)
{
    verb_note("%s", e->text);
    return STATUS_REFUSED;
}

/* ---- what is to be done ---- */

bool mig_turns(const struct layout_work *w)
{
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (w->wishes[i] && w->changes[i].verdict != LAYOUT_AS_WANTED && w->changes[i].turn >= 0)
            return true;
    return false;
}

static void tell_holders(const struct layout_work *w, size_t i)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (!w->holders)
        return;
    holders_add_sentence(&t, &w->holders[i], layout_user_name, NULL);
    if (t.len)
        verb_note("on gpu%u: %s", w->inv.cards[i].card.ordinal, t.buf);
}

/* Says of each card that is in the way why; nothing is changed then. */
int mig_refuse(const struct layout_work *w)
{
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct layout_change *ch = &w->changes[i];
        if (!w->wishes[i] || ch->verdict <= LAYOUT_TO_DO)
            continue;
        verb_note("gpu%u (%s) %s: %s%s%s", w->inv.cards[i].card.ordinal,
                  board_short_name(&w->inv.cards[i].card.board), layout_verdict_word(ch->verdict),
                  ch->why, ch->nearest[0] ? ". What fits: " : "", ch->nearest);
        tell_holders(w, i);
    }
    verb_note("nothing was changed");
    return STATUS_REFUSED;
}

/* Of each card that turns, what leads to its new mode; then all the rest. */
static size_t collect(const struct layout_work *w, struct plan *ret)
{
    size_t mode_steps = 0;
    for (int rest = 0; rest < 2; rest++)
        for (size_t i = 0; i < w->inv.card_count; i++) {
            const struct layout_change *ch = &w->changes[i];
            size_t modes = 0;
            if (!w->wishes[i] || ch->verdict != LAYOUT_TO_DO)
                continue;
            for (size_t k = 0; k < ch->steps.count; k++)
                modes = step_is_mode(&ch->steps.steps[k]) ? k + 1 : modes;
            for (size_t k = rest ? modes : 0; k < (rest ? ch->steps.count : modes); k++)
                plan_add_step(ret, &ch->steps.steps[k]);
            mode_steps += rest ? 0 : modes;
        }
    return mode_steps;
}

static int before_step(const struct apply *change, const struct step *s, void *arg, struct err *e)
{
    struct running *r = arg;
    (void)s; /* which one it is says its place */
    if (r->config_ran || change->at < r->mode_steps)
        return 0;
    r->config_ran = true;
    return hook(r, MIG_HOOK_CONFIG, e);
}

static int carry_out(struct running *r)
{
    AUTO(plan) struct plan p = PLAN_INIT;
    struct applying *a = r->a;
    size_t aside = 0;
    r->mode_steps = collect(&a->work, &p);
    a->before = before_step;
    a->before_arg = r;
    int status = applying_carry_out(a, &p, &aside);
    a->before = NULL;
    if (status != STATUS_OK)
        return STATUS_REFUSED;
    status = applying_look(a);
    if (status != STATUS_OK)
        return STATUS_REFUSED;
    if (layout_work_worst(&a->work) == LAYOUT_AS_WANTED)
        return STATUS_OK;
    if (aside && r->call->skip_reset && r->call->mode_only)
        return STATUS_OK; /* stored, which is all that was asked */
    if (aside && r->call->skip_reset)
        verb_note("the MIG mode of %zu card%s is stored and waits for a reset, which --skip-reset "
                  "left to others; apply again after it for the slices",
                  aside, aside == 1 ? "" : "s");
    else if (!aside)
        verb_note("the cards are not as wanted after all: somebody else has changed them");
    return STATUS_REFUSED;
}

/* Between apply-start and apply-exit. */
static int change(struct running *r)
{
    struct err e = ERR_INIT;
    bool turns = mig_turns(&r->a->work);
    r->config_ran = !turns;
    if (hook(r, turns ? MIG_HOOK_MODE : MIG_HOOK_CONFIG, &e) < 0)
        return fail(&e);
    if (applying_look(r->a) != STATUS_OK)
        return STATUS_REFUSED;
    if (layout_work_worst(&r->a->work) == LAYOUT_AS_WANTED)
        return STATUS_OK;
    if (layout_work_worst(&r->a->work) > LAYOUT_TO_DO)
        return mig_refuse(&r->a->work);
    return carry_out(r);
}

static int with_hooks(struct running *r)
{
    struct err e = ERR_INIT;
    if (hook(r, MIG_HOOK_START, &e) < 0)
        return fail(&e);
    int status = change(r);
    if (hook(r, MIG_HOOK_EXIT, &e) < 0)
        return fail(&e);
    return status;
}

int mig_apply(struct applying *a, const struct mig_call *c, const struct mig_hooks *hooks)
{
    struct running r = { .a = a, .call = c, .hooks = hooks };
    AUTO_PTR(client_close) struct client *client = NULL;
    struct err e = ERR_INIT;
    int code = client_open(a->session->root, &client, &e);
    if (code == 0)
        return mig_apply_through_daemon(a, c, hooks, client);
    if (code != -EHOSTDOWN)
        return fail(&e);
    if (applying_open(a) != STATUS_OK)
        return STATUS_REFUSED;
    enum layout_verdict worst = layout_work_worst(&a->work);
    if (worst == LAYOUT_AS_WANTED)
        return STATUS_OK; /* no write, and no hook */
    if (worst > LAYOUT_BUSY || worst == LAYOUT_NEEDS_REBOOT)
        return mig_refuse(&a->work);
    return with_hooks(&r); /* a hook may stop who is in the way */
}
