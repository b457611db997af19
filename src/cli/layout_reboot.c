/* Cards whose MIG mode waits for a reboot: told once, not touched meanwhile, and finished after. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/layout_apply.h"

void layout_work_mark_reboots(struct layout_work *w, const struct reboot *r)
{
    for (size_t i = 0; i < w->inv.card_count; i++)
        if (w->wishes[i] && reboot_mark(r, &w->inv.cards[i].card, &w->changes[i]))
            plan_done(&w->changes[i].steps);
}

/* Of a card that waits, what reboot_look asks: which mode is stored. */
static void add_waiting(struct reboot *r, json_t *j)
{
    struct card c = { .ordinal = (uint32_t)json_integer_value(json_object_get(j, "gpu")) };
    const char *uuid = json_string_value(json_object_get(j, "uuid"));
    bool on = json_is_true(json_object_get(j, "mig"));
    (void)snprintf(c.uuid, sizeof c.uuid, "%s", uuid ? uuid : ""); /* fits */
    (void)plan_add(&r->steps, on ? STEP_MIG_ON : STEP_MIG_OFF, &c);
}

void layout_work_ask_reboots(struct layout_work *w, struct client *c)
{
    AUTO(reboot) struct reboot r = REBOOT_INIT;
    auto_json json_t *j = NULL;
    if (client_get(c, "/v1/layout", &j, NULL) < 0)
        return; /* then it is shown as to be done, and divvyd knows better */
    json_t *list = json_object_get(j, "reboots");
    for (size_t i = 0; i < json_array_size(list); i++)
        add_waiting(&r, json_array_get(list, i));
    layout_work_mark_reboots(w, &r);
}

void layout_work_find_reboots(struct layout_work *w, const struct session *s)
{
    AUTO_PTR(client_close) struct client *c = NULL;
    if (w->inv.from_daemon && client_open(s->root, &c, NULL) == 0) {
        layout_work_ask_reboots(w, c);
        return;
    }
    AUTO(reboot) struct reboot r = REBOOT_INIT;
    auto_free char *root = client_root(s->root);
    auto_free char *state = file_under(root, "/var/lib/divvy");
    if (reboot_load(state, &r, NULL) == 0) /* not for this user: then it is shown as to be done */
        layout_work_mark_reboots(w, &r);
}

/* What is left for the card at `i`, where it is for us to do; says what is not. */
static bool take_rest(struct applying *a, size_t i, struct plan *ret)
{
    const struct card *c = &a->work.inv.cards[i].card;
    enum reboot_state state = reboot_look(&a->reboot, c);
    if (state == REBOOT_NONE || (a->work.wishes[i] && state == REBOOT_WAITS))
        return false;
    if (state == REBOOT_WAITS) {
        verb_note("gpu%u still waits for a reboot that was asked for earlier", c->ordinal);
        return false;
    }
    if (!a->work.wishes[i] && state == REBOOT_DONE)
        reboot_rest(&a->reboot, c->uuid, ret);
    if (!a->work.wishes[i] && state == REBOOT_LOST)
        verb_note("the MIG mode of gpu%u that waited for a reboot was turned back since; what was "
                  "to follow is dropped",
                  c->ordinal);
    reboot_drop(&a->reboot, c->uuid);
    return true;
}

int applying_go_on(struct applying *a)
{
    AUTO(plan) struct plan rest = PLAN_INIT;
    struct err e = ERR_INIT;
    size_t aside = 0;
    bool changed = false;
    int status = STATUS_OK;
    for (size_t i = 0; i < a->work.inv.card_count; i++)
        changed = take_rest(a, i, &rest) || changed;
    if (!changed)
        return STATUS_OK;
    if (rest.count) {
        verb_note("the reboot that an earlier change waited for has come; it is finished first");
        status = applying_carry_out(a, &rest, &aside);
    }
    /* Also when it failed: it was told, and is not tried for ever. */
    if (reboot_save(a->state, &a->reboot, &e) < 0)
        return verb_fail(a->session, &e);
    return status == STATUS_OK ? applying_look(a) : status;
}
