/* Orders of layouts: from the API to the store, to the cards, and to their end. */
#include "daemon/layouts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/maintenance.h"
#include "model/address.h"

#define META "layout_order"

static void wrote(int r, const struct err *e)
{
    if (r < 0)
        log_line(LOG_ERROR, "the store's layouts: %s", e->text);
}

bool orders_open(const struct layouts *l)
{
    return l->id && l->outcome == LAYOUT_OPEN;
}

/* ---- the store ---- */

static void save(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    auto_json json_t *j = json_object();
    json_put_u64(j, "id", l->id);
    json_put_text(j, "who", l->who);
    json_put(j, "order", layout_order_to_json(&l->order));
    json_put_text(j, "outcome", layout_outcome_word(l->outcome));
    json_put_text(j, "reason", l->reason);
    json_put_u64(j, "changed", l->changed);
    auto_free char *text = json_dumps(j, JSON_COMPACT);
    if (text && turn_write(d))
        wrote(store_set_meta(d->store, META, text, &e), &e);
}

static int read_saved(json_t *j, struct layouts *l, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "the store's layout order", e);
    l->id = fields_u64(&f, "id", FIELD_REQUIRED, 1, INT64_MAX, 0);
    l->who = text_dup(fields_text(&f, "who", FIELD_REQUIRED, 64));
    json_t *order = fields_object(&f, "order", FIELD_REQUIRED);
    const char *outcome = fields_text(&f, "outcome", FIELD_REQUIRED, 16);
    fields_copy(&f, "reason", FIELD_OPTIONAL, l->reason, sizeof l->reason);
    l->changed = fields_u64(&f, "changed", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        r = layout_outcome_parse(outcome, &l->outcome, e);
    return r < 0 ? r : layout_order_from_json(order, &l->order, e);
}

static int choose(struct layouts *l, struct err *e);

int orders_load(struct daemon *d, struct err *e)
{
    struct layouts *l = d->layouts;
    auto_free char *text = NULL;
    auto_json json_t *j = NULL;
    int r = store_meta(d->store, META, &text, e);
    if (r < 0 || !text)
        return r;
    r = json_parse(text, strlen(text), "the store's layout order", &j, e);
    if (r == 0)
        r = read_saved(j, l, e);
    return r == 0 && orders_open(l) ? choose(l, e) : r;
}

void orders_forget(struct layouts *l)
{
    layout_order_done(&l->order);
    layout_list_done(&l->list);
    json_decref(l->cards);
    free(l->who);
    l->cards = NULL;
    l->who = NULL;
    l->chosen = NULL;
    l->reason[0] = '\0';
    l->changed = 0;
}

/* ---- what an order says ---- */

static int choose(struct layouts *l, struct err *e)
{
    const struct layout_order *o = &l->order;
    AUTO(text) struct text all = TEXT_INIT;
    const char *file = o->file ? o->file : "the layout";
    int r = layout_list_parse(file, o->text, strlen(o->text), &l->list, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < l->list.count; i++) {
        const struct layout *one = &l->list.layouts[i];
        if (o->label ? text_same(one->label, o->label) : l->list.count == 1) {
            l->chosen = one;
            return 0;
        }
        text_addf(&all, "%s%s", i ? ", " : "", one->label ? one->label : "one without a label");
    }
    return err_set(e, -EINVAL, "%s: choose one of its layouts: %s", file, all.buf);
}

static struct inventory_card *named_card(struct daemon *d, uint32_t ordinal, struct err *e)
{
    struct inventory_card *c = inventory_card(&d->inventory, ordinal);
    if (!c)
        (void)err_set(e, -ENOENT, "there is no gpu%u here; divvy gpus shows what there is",
                      ordinal);
    return c;
}

/* "gpu0/2g.20gb" or with a place, as a file that keeps all else as it is. */
static int write_make(struct daemon *d, struct layout_order *o, struct err *e)
{
    struct layout_piece piece;
    struct address a;
    AUTO(text) struct text t = TEXT_INIT;
    auto_free char *card = text_dup(o->make);
    char *slash = strchr(card, '/');
    if (!slash)
        return err_set(e, -EINVAL, "'%.64s' is no slice to be made; write gpu0/2g.20gb@4", o->make);
    *slash = '\0';
    int r = address_parse(card, &a, e);
    if (r == 0)
        r = layout_piece_parse(slash + 1, &piece, e);
    if (r < 0)
        return r;
    const struct inventory_card *c = named_card(d, a.ordinal, e);
    if (!c)
        return e->code;
    struct layout_writing how = { .without = SIZE_MAX, .with = slash + 1 };
    text_add(&t, "cards:\n");
    layout_add_card(&t, c, &how);
    o->text = text_take(&t);
    return 0;
}

static int write_unmake(struct daemon *d, struct layout_order *o, struct err *e)
{
    struct address a;
    AUTO(text) struct text t = TEXT_INIT;
    int r = address_parse(o->unmake, &a, e);
    if (r < 0)
        return r;
    const struct inventory_card *c = named_card(d, a.ordinal, e);
    if (!c)
        return e->code;
    const struct slice *s = a.has_slice ? address_find(&a, &c->card) : NULL;
    if (!s)
        return err_set(e, -ENOENT, "there is no slice %.64s; divvy gpus shows what there is",
                       o->unmake);
    struct layout_writing how = { .without = (size_t)(s - c->card.slices) };
    text_add(&t, "cards:\n");
    layout_add_card(&t, c, &how);
    o->text = text_take(&t);
    return 0;
}

/* A slice becomes a file once: what is looked at later is the same wish. */
static int write_text(struct daemon *d, struct layout_order *o, struct err *e)
{
    int r = o->make ? write_make(d, o, e) : o->unmake ? write_unmake(d, o, e) : 0;
    if (r < 0 || (!o->make && !o->unmake))
        return r;
    free(o->make);
    free(o->unmake);
    o->make = o->unmake = NULL;
    return 0;
}

/* What is wished of each card of the inventory, and what that takes. */
struct looked {
    const struct layout_wish **wishes;
    struct layout_change *changes;
    size_t count;
};

static void looked_done(struct looked *k)
{
    for (size_t i = 0; i < k->count; i++)
        layout_change_done(&k->changes[i]);
    free(k->wishes);
    free(k->changes);
}

static json_t *look_json(const struct daemon *d, const struct looked *k)
{
    json_t *list = json_array();
    for (size_t i = 0; i < k->count; i++) {
        const struct layout_change *ch = &k->changes[i];
        if (!k->wishes[i])
            continue;
        json_t *j = json_object();
        json_put_u64(j, "gpu", d->inventory.cards[i].card.ordinal);
        json_put_text(j, "uuid", d->inventory.cards[i].card.uuid);
        json_put_text(j, "verdict", layout_verdict_word(ch->verdict));
        json_put_text(j, "why", ch->why[0] ? ch->why : NULL);
        json_put_text(j, "nearest", ch->nearest[0] ? ch->nearest : NULL);
        json_put_text(j, "warning", ch->warning[0] ? ch->warning : NULL);
        (void)json_array_append_new(list, j); /* out of memory: a short list */
    }
    return list;
}

static int look(struct daemon *d, struct looked *ret, struct err *e)
{
    struct layouts *l = d->layouts;
    if (d->inventory_stale)
        cards_rebuild(d);
    size_t n = d->inventory.card_count;
    *ret = (struct looked){ .count = n };
    ret->wishes = mem_new((n + 1) * sizeof *ret->wishes);
    ret->changes = mem_new((n + 1) * sizeof *ret->changes);
    for (size_t i = 0; i < n; i++)
        layouts_know_board(d, &d->inventory.cards[i]);
    int r = layout_assign(l->chosen, &d->inventory, ret->wishes, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (ret->wishes[i])
            layouts_plan_card(d, &d->inventory.cards[i], ret->wishes[i], &ret->changes[i]);
    json_decref(l->cards);
    l->cards = look_json(d, ret);
    return r;
}

static enum layout_verdict worst_of(const struct looked *k)
{
    enum layout_verdict worst = LAYOUT_AS_WANTED;
    for (size_t i = 0; i < k->count; i++)
        if (k->wishes[i] && k->changes[i].verdict > worst)
            worst = k->changes[i].verdict;
    return worst;
}

/* ---- its end ---- */

static void end_order(struct daemon *d, enum layout_outcome outcome, const char *reason)
{
    struct layouts *l = d->layouts;
    l->outcome = outcome;
    (void)snprintf(l->reason, sizeof l->reason, "%s", reason); /* a longer one is cut */
    layout_list_done(&l->list);
    l->chosen = NULL;
    log_line(outcome == LAYOUT_DONE ? LOG_NOTE : LOG_WARN, "the layout that %s asked for: %s%s%s",
             l->who, layout_outcome_word(outcome), reason[0] ? ": " : "", reason);
    save(d);
    d->inventory_stale = d->schedule = true;
}

/* ---- its steps ---- */

/* Negative: not what whoever asked has agreed to. */
static int collect(const struct layouts *l, const struct looked *k, struct plan *ret, struct err *e)
{
    for (size_t i = 0; i < k->count; i++) {
        const struct layout_change *ch = &k->changes[i];
        if (!k->wishes[i] || ch->verdict != LAYOUT_TO_DO)
            continue;
        if (ch->moved && !l->order.move_idle)
            return err_set(e, -EPERM,
                           "idle slices would be made again at another place, which "
                           "was not allowed");
        if ((ch->destroyed || ch->turn >= 0) && !l->order.agreed)
            return err_set(e, -EPERM,
                           "idle slices would be destroyed or a MIG mode turned, which "
                           "was not agreed to");
        for (size_t n = 0; n < ch->steps.count; n++)
            plan_add_step(ret, &ch->steps.steps[n]);
    }
    return 0;
}

/* The newest wish for a card counts, also for what follows after a reboot. */
static void take_reboots(struct daemon *d, const struct looked *k)
{
    struct layouts *l = d->layouts;
    for (size_t i = 0; i < k->count; i++) {
        const struct card *c = &d->inventory.cards[i].card;
        if (!k->wishes[i] || !reboots_has(d, c->uuid))
            continue;
        if (reboot_look(&l->reboots, c) != REBOOT_WAITS)
            reboots_forget(d, c->uuid);
        else if (k->changes[i].verdict == LAYOUT_NEEDS_REBOOT && l->order.agreed)
            reboots_keep(d, &k->changes[i].steps, l->who, k->wishes[i], l->id);
    }
}

/* Cards that are as they are wanted stay so. */
static void take_done(struct daemon *d, const struct looked *k)
{
    for (size_t i = 0; i < k->count; i++) {
        struct err e = ERR_INIT;
        struct card_memory *m = cards_find(d, d->inventory.cards[i].card.uuid);
        if (k->wishes[i] && m && k->changes[i].verdict == LAYOUT_AS_WANTED)
            wrote(keeps_take(d, m, k->wishes[i], &e), &e);
    }
}

static const char *first_why(const struct looked *k, enum layout_verdict v)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->wishes[i] && k->changes[i].verdict == v)
            return k->changes[i].why;
    return "";
}

static bool has_verdict(const struct looked *k, enum layout_verdict v)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->wishes[i] && k->changes[i].verdict == v)
            return true;
    return false;
}

static void no_step(struct daemon *d, const struct looked *k)
{
    struct layouts *l = d->layouts;
    enum layout_verdict worst = worst_of(k);
    bool some = l->changed || has_verdict(k, LAYOUT_NEEDS_REBOOT);
    if (worst == LAYOUT_AS_WANTED)
        end_order(d, LAYOUT_DONE, "");
    else if (worst == LAYOUT_NEEDS_REBOOT)
        end_order(d, LAYOUT_REBOOT, first_why(k, worst));
    else if (worst == LAYOUT_NEEDS_RESET)
        end_order(d, LAYOUT_NO_RESET, first_why(k, worst));
    else if (worst != LAYOUT_BUSY)
        end_order(d, some ? LAYOUT_PARTLY : LAYOUT_REFUSED, first_why(k, worst));
    else if (!l->order.wait)
        end_order(d, some ? LAYOUT_PARTLY : LAYOUT_IN_USE, first_why(k, worst));
}

bool orders_see(const struct daemon *d)
{
    return d->snapshot_taken.boot_us > d->layouts->asked_boot_us;
}

void orders_turn(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    AUTO(looked) struct looked k = { .count = 0 };
    AUTO(plan) struct plan p = PLAN_INIT;
    int r = look(d, &k, &e);
    if (r == 0) {
        take_reboots(d, &k);
        take_done(d, &k);
        r = collect(l, &k, &p, &e);
    }
    if (r < 0) {
        end_order(d, LAYOUT_REFUSED, e.text);
        return;
    }
    if (!p.count) {
        no_step(d, &k);
        return;
    }
    l->work = FOR_ORDER;
    if (cut_begin_layout(d, &l->cut, &p, l->who))
        d->inventory_stale = true;
}

static size_t cards_of(const struct plan *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = strcmp(p->steps[k].card_uuid, p->steps[i].card_uuid) == 0;
        n += !seen;
    }
    return n;
}

static void order_failed(struct daemon *d, const struct cut *c)
{
    const struct apply *a = &c->apply;
    enum layout_outcome o = LAYOUT_FAILED;
    if (c->cancelled)
        o = LAYOUT_STOPPED;
    else if (a->state == APPLY_ROLLED_BACK && a->reset_failed)
        o = LAYOUT_NO_RESET;
    else if (a->state == APPLY_ROLLED_BACK && a->code == -EBUSY)
        o = LAYOUT_IN_USE;
    const char *rest = a->stuck[0] ? a->stuck : "everything is as it was before";
    auto_free char *why = text_fmt("%s%s%s", a->failure, a->failure[0] ? "; " : "", rest);
    end_order(d, o, why);
}

void orders_cut_over(struct daemon *d, const struct cut *over, size_t aside)
{
    struct layouts *l = d->layouts;
    if (!orders_open(l)) {
        log_line(LOG_WARN, "a change of layouts that nobody waits for is over");
    } else if (over->apply.state == APPLY_DONE) {
        l->changed += cards_of(&over->apply.plan) - aside;
        save(d);
    } else {
        order_failed(d, over);
    }
}

/* What would have to go if nobody were there takes nobody new. */
static void mark_waiting(struct daemon *d, struct inventory_card *c, const struct layout_wish *w)
{
    struct inventory_card empty = *c;
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    auto_free struct inventory_slice *free_slices =
        mem_new((c->card.slice_count + 1) * sizeof *free_slices);
    layouts_know_board(d, c);
    empty.card.board = c->card.board;
    empty.slices = free_slices;
    empty.hold.kind = HOLD_NONE;
    layout_plan(&empty, w, &ch);
    if (ch.verdict != LAYOUT_TO_DO)
        return;
    c->no_cuts = true;
    if (ch.turn >= 0) {
        auto_free char *why = text_fmt("a new layout waits for it (%s)", d->layouts->who);
        layouts_reserve(c, why);
    }
    for (size_t i = 0; i < ch.line_count; i++)
        if (ch.lines[i].fate == FATE_DESTROY || ch.lines[i].fate == FATE_MOVE_AWAY)
            c->slices[ch.lines[i].slice].leaving = true;
}

const struct layout_wish *orders_wish(const struct daemon *d, const char *uuid)
{
    const struct layouts *l = d->layouts;
    const struct layout_wish *wish = NULL;
    auto_free const struct layout_wish **wishes =
        mem_new((d->inventory.card_count + 1) * sizeof *wishes);
    if (!l->chosen || layout_assign(l->chosen, &d->inventory, wishes, NULL) < 0)
        return NULL;
    for (size_t i = 0; i < d->inventory.card_count; i++)
        if (strcmp(d->inventory.cards[i].card.uuid, uuid) == 0)
            wish = wishes[i];
    return wish;
}

void orders_rebooted(struct daemon *d, uint64_t order, const char *failure, bool last)
{
    struct layouts *l = d->layouts;
    if (!order || order != l->id || l->outcome != LAYOUT_REBOOT)
        return;
    l->changed += !failure;
    if (failure)
        end_order(d, LAYOUT_FAILED, failure);
    else if (last)
        end_order(d, LAYOUT_DONE, "");
    else
        save(d);
}

void orders_mark(struct daemon *d)
{
    struct layouts *l = d->layouts;
    if (!orders_open(l) || !l->chosen)
        return;
    auto_free const struct layout_wish **wishes =
        mem_new((d->inventory.card_count + 1) * sizeof *wishes);
    if (layout_assign(l->chosen, &d->inventory, wishes, NULL) < 0)
        return; /* the look tells */
    for (size_t i = 0; i < d->inventory.card_count; i++)
        if (wishes[i] && !d->inventory.cards[i].reserved[0])
            mark_waiting(d, &d->inventory.cards[i], wishes[i]);
}

/* ---- the API ---- */

static void owe_error(struct daemon *d, struct api_request *req, const struct err *e)
{
    turn_owe(d, &(struct owed){ .request = req, .kind = OWED_ERROR, .err = *e });
}

static int accept_order(struct daemon *d, const char *who, struct layout_order *o, struct err *e)
{
    struct layouts *l = d->layouts;
    AUTO(looked) struct looked k = { .count = 0 };
    if (orders_open(l))
        return err_set(e, -EBUSY,
                       "a layout that %s asked for is not done yet; divvy layout status tells "
                       "what it waits for, divvy layout stop calls it off",
                       l->who);
    if (d->maintenance->phase >= MAINTENANCE_STOPPING)
        return err_set(e, -EBUSY,
                       "maintenance by %s is under way; layouts can be changed when it has ended",
                       d->maintenance->who);
    if (!d->snapshot_came)
        return err_set(e, -EAGAIN, "the cards are not known yet%s%s; try again in a moment",
                       d->driver_trouble[0] ? ": " : "", d->driver_trouble);
    if (!turn_write(d))
        return err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
    if (d->inventory_stale)
        cards_rebuild(d);
    int r = write_text(d, o, e);
    if (r < 0)
        return r;
    orders_forget(l);
    l->outcome = LAYOUT_REFUSED; /* until it is looked at: the inventory's marks go by this */
    l->id++;
    l->who = text_dup(who);
    l->order = *o;
    *o = (struct layout_order)LAYOUT_ORDER_INIT;
    r = choose(l, e);
    if (r == 0)
        r = look(d, &k, e);
    if (r < 0)
        return r;
    if (worst_of(&k) > LAYOUT_BUSY) {
        end_order(d, worst_of(&k) == LAYOUT_NEEDS_RESET ? LAYOUT_NO_RESET : LAYOUT_REFUSED,
                  first_why(&k, worst_of(&k)));
        return 0;
    }
    l->outcome = LAYOUT_OPEN;
    l->look = d->schedule = d->inventory_stale = true;
    l->asked_boot_us = clock_now().boot_us;
    children_refresh(&d->children);
    save(d);
    return 0;
}

void layouts_op_change(void *ctx, struct api_request *req, const struct api_caller *who,
                       struct layout_order *take_order)
{
    struct daemon *d = ctx;
    struct err e = ERR_INIT;
    if (accept_order(d, user_name(d, who->uid), take_order, &e) < 0)
        owe_error(d, req, &e);
    else
        turn_owe(d,
                 &(struct owed){ .request = req, .kind = OWED_JSON, .json = layouts_op_show(d) });
    layout_order_done(take_order);
}

void layouts_op_stop(void *ctx, struct api_request *req, const struct api_caller *who)
{
    struct daemon *d = ctx;
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    if (!orders_open(l)) {
        (void)err_set(&e, -EALREADY, "no change of layouts is under way");
        owe_error(d, req, &e);
        return;
    }
    if (!turn_write(d)) {
        (void)err_set(&e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
        owe_error(d, req, &e);
        return;
    }
    if (l->cut.open && l->work == FOR_ORDER) {
        cut_cancel(d, &l->cut);
    } else {
        auto_free char *why = text_fmt("by %s", user_name(d, who->uid));
        end_order(d, LAYOUT_STOPPED, why);
    }
    turn_owe(d, &(struct owed){ .request = req, .kind = OWED_OK });
}

static void add_step(json_t *j, const struct layouts *l)
{
    const struct apply *a = &l->cut.apply;
    const struct step *s = l->cut.open && l->work == FOR_ORDER ? apply_next(a) : NULL;
    AUTO(text) struct text t = TEXT_INIT;
    if (s)
        step_add_text(&t, s);
    json_put_text(j, "step", s ? t.buf : NULL);
    json_put_u64(j, "steps_done", s ? a->at : 0);
    json_put_u64(j, "steps", s ? a->plan.count : 0);
}

json_t *layouts_op_show(void *ctx)
{
    const struct daemon *d = ctx;
    const struct layouts *l = d->layouts;
    json_t *j = json_object();
    json_put_u64(j, "id", l->id);
    json_put_text(j, "who", l->who);
    json_put_text(j, "outcome", l->id ? layout_outcome_word(l->outcome) : NULL);
    json_put_text(j, "reason", l->reason[0] ? l->reason : NULL);
    json_put_bool(j, "wait", l->order.wait);
    json_put_u64(j, "changed", l->changed);
    add_step(j, l);
    json_put(j, "cards", l->cards ? json_incref(l->cards) : json_array());
    json_put(j, "kept", keeps_json(d));
    json_put(j, "reboots", reboots_json(d));
    return j;
}
