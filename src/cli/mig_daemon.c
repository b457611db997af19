/* `divvy mig-parted apply` and `restore` while divvyd has the cards. */
#include <inttypes.h>
#include <string.h>

#include "cli/mig_parted.h"

/* "1g.5gb@0", as often as it is wanted. */
static void add_piece(struct text *t, const struct layout_piece *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        text_addf(t, "      - %s", p->profile);
        if (p->start != LAYOUT_ANYWHERE)
            text_addf(t, "@%" PRIu32, p->start);
        text_add(t, "\n");
    }
}

static void add_card(struct text *t, const struct card *c, const struct layout_wish *w)
{
    text_addf(t, "  - card: %s\n    mode: %s\n", c->uuid,
              w->mode == MODE_WHOLE ? "whole" : "slices");
    if (!w->has_slices)
        return;
    text_add(t, w->piece_count ? "    slices:\n" : "    slices: []\n");
    for (size_t i = 0; i < w->piece_count; i++)
        add_piece(t, &w->pieces[i]);
}

/* The wish by UUIDs: divvyd keeps a card's number when others go, these files count what is here. */
static int name_cards(struct layout_work *w, const struct session *s, struct text *ret,
                      struct err *e)
{
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    if (mig_read_cards(s, &inv) != STATUS_OK)
        return err_set(e, -EIO, "the cards cannot be counted");
    auto_free const struct layout_wish **wishes = mem_new((inv.card_count + 1) * sizeof *wishes);
    int r = layout_assign(w->layout, &inv, wishes, e);
    text_add(ret, "cards:\n");
    for (size_t i = 0; r == 0 && i < inv.card_count; i++)
        if (wishes[i] && inv.cards[i].card.uuid[0])
            add_card(ret, &inv.cards[i].card, wishes[i]);
    if (strcmp(ret->buf, "cards:\n") == 0) {
        text_clear(ret);
        text_add(ret, "cards: []\n");
    }
    return r;
}

/* From here on the wish is the one with UUIDs; names and files of the old one are still in use. */
static int choose_named(struct layout_work *w, const struct text *t, struct layout_list *ret_old,
                        struct err *e)
{
    *ret_old = w->list;
    w->list = (struct layout_list)LAYOUT_LIST_INIT;
    int r = layout_list_parse("mig-parted", t->buf, t->len, &w->list, e);
    w->layout = r == 0 ? &w->list.layouts[0] : NULL;
    return r;
}

static int look(struct applying *a, struct client *c)
{
    struct err e = ERR_INIT;
    layout_work_forget(&a->work);
    if (client_inventory(c, &a->work.inv, &e) < 0) {
        verb_note("%s", e.text);
        return STATUS_REFUSED;
    }
    if (layout_work_plan(&a->work, a->session) != STATUS_OK)
        return STATUS_REFUSED;
    layout_work_ask_reboots(&a->work, c);
    layout_work_find_holders(&a->work);
    return STATUS_OK;
}

static int order(struct client *c, const struct text *t, struct err *e)
{
    auto_json json_t *body = json_object();
    auto_json json_t *change = NULL;
    json_put_text(body, "text", t->buf);
    json_put_text(body, "file", "mig-parted");
    json_put_bool(body, "wait", false);
    json_put_bool(body, "agreed", true);
    json_put_bool(body, "move_idle", true);
    int r = layout_order_post(c, body, &change, e);
    if (r < 0)
        return r;
    const char *outcome = json_string_value(json_object_get(change, "outcome"));
    const char *reason = json_string_value(json_object_get(change, "reason"));
    if (outcome && strcmp(outcome, "done") == 0)
        return 0;
    return err_set(e, -ECANCELED, "divvyd did not do it (%s)%s%s", outcome ? outcome : "no answer",
                   reason && reason[0] ? ": " : "", reason ? reason : "");
}

/* Between apply-start and apply-exit. */
static int change(struct applying *a, const struct mig_call *c, const struct mig_hooks *hooks,
                  struct client *client, const struct text *t)
{
    struct err e = ERR_INIT;
    int r = mig_turns(&a->work) ? mig_hook_run(hooks, MIG_HOOK_MODE, c, &e) : 0;
    if (r == 0 && !c->mode_only)
        r = mig_hook_run(hooks, MIG_HOOK_CONFIG, c, &e);
    if (r < 0) {
        verb_note("%s", e.text);
        return STATUS_REFUSED;
    }
    if (look(a, client) != STATUS_OK)
        return STATUS_REFUSED;
    if (layout_work_worst(&a->work) > LAYOUT_TO_DO)
        return mig_refuse(&a->work);
    if (order(client, t, &e) < 0) {
        verb_note("%s", e.text);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

int mig_apply_through_daemon(struct applying *a, const struct mig_call *c,
                             const struct mig_hooks *hooks, struct client *client)
{
    struct err e = ERR_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    AUTO(layout_list) struct layout_list old = LAYOUT_LIST_INIT;
    if (c->skip_reset) {
        verb_note("divvyd has the cards, and resets what needs it by itself; --skip-reset is "
                  "possible while it is stopped, and 'divvy layout apply' without it now");
        return STATUS_REFUSED;
    }
    if (name_cards(&a->work, a->session, &t, &e) < 0 || choose_named(&a->work, &t, &old, &e) < 0) {
        verb_note("%s", e.text);
        return STATUS_REFUSED;
    }
    if (look(a, client) != STATUS_OK)
        return STATUS_REFUSED;
    enum layout_verdict worst = layout_work_worst(&a->work);
    if (worst == LAYOUT_AS_WANTED)
        return STATUS_OK; /* no write, and no hook */
    if (worst > LAYOUT_BUSY || worst == LAYOUT_NEEDS_REBOOT)
        return mig_refuse(&a->work);
    int r = mig_hook_run(hooks, MIG_HOOK_START, c, &e);
    if (r == 0) {
        int status = change(a, c, hooks, client, &t);
        r = mig_hook_run(hooks, MIG_HOOK_EXIT, c, &e);
        if (r == 0)
            return status;
    }
    verb_note("%s", e.text);
    return STATUS_REFUSED;
}
