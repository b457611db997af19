/* `divvy layout apply` without a daemon: locks, journal, steps, and a look at what came of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apply/journal.h"
#include "base/file.h"
#include "cli/cards.h"
#include "cli/holders.h"
#include "cli/layout_apply.h"
#include "model/address.h"

#define LOOK_AGAIN_S 1 /* --wait */

void applying_done(struct applying *a)
{
    driver_close(a->driver);
    for (size_t i = 0; i < a->lock_count; i++)
        card_lock_done(&a->locks[i]);
    free(a->locks);
    free(a->root);
    free(a->state);
    reboot_done(&a->reboot);
    layout_work_done(&a->work);
}

/* The status of a change that failed and was undone. */
static int status_of(const struct session *s, const struct err *e)
{
    int status = verb_fail(s, e);
    if (e->code == -EBUSY)
        return LAYOUT_STATUS_BUSY;
    return e->code == -EAGAIN ? LAYOUT_STATUS_RESET : status;
}

int applying_look(struct applying *a)
{
    AUTO(snapshot) struct snapshot snapshot = SNAPSHOT_INIT;
    struct err e = ERR_INIT;
    int r = driver_snapshot(a->driver, NULL, 0, &snapshot, &e);
    if (r < 0)
        return verb_fail(a->session, &e);
    layout_work_forget(&a->work);
    inventory_from_snapshot(&snapshot, &a->work.inv);
    if (holders_mark(a->root, &a->work.inv, &e) < 0)
        return verb_fail(a->session, &e);
    int status = STATUS_OK;
    if (!a->settled && (a->call->make || a->call->unmake))
        status = layout_work_slice(&a->work, a->session, a->call);
    if (status == STATUS_OK)
        status = layout_work_plan(&a->work, a->session);
    if (status != STATUS_OK)
        return status;
    layout_work_mark_reboots(&a->work, &a->reboot);
    layout_work_find_holders(&a->work);
    return STATUS_OK;
}

/* ---- a change that was cut short ---- */

/* What was set aside is kept before the journal goes that knows of it, too. */
static int keep_aside(struct applying *a, const struct apply *change, struct err *e)
{
    if (change->state != APPLY_DONE || !change->aside.count ||
        change->resets != APPLY_RESET_OR_ASIDE)
        return 0;
    reboot_add(&a->reboot, &change->aside);
    verb_note("%s", change->reboot);
    return reboot_save(a->state, &a->reboot, e);
}

static int finish(struct applying *a, struct journal *take_journal, struct apply *change,
                  struct err *e)
{
    AUTO(snapshot) struct snapshot snapshot = SNAPSHOT_INIT;
    int r = driver_snapshot(a->driver, NULL, 0, &snapshot, e);
    if (r == 0)
        r = apply_recover(change, &snapshot, e);
    if (r == 0 || r == -ESTALE)
        r = apply_run(change, a->driver, take_journal, e);
    if (apply_next(change)) { /* not over: the next start goes on */
        journal_close(take_journal);
        return r;
    }
    int kept = keep_aside(a, change, r < 0 ? NULL : e);
    if (kept < 0) {
        journal_close(take_journal);
        return r < 0 ? r : kept;
    }
    int removed = journal_finish(take_journal, r < 0 ? NULL : e);
    return r < 0 ? r : removed;
}

static int lock(struct applying *a, const char *uuid, struct err *e)
{
    a->locks[a->lock_count] = (struct card_lock)CARD_LOCK_INIT;
    int r = card_lock_take(&a->locks[a->lock_count], NULL, uuid, a->who, e);
    a->lock_count += r == 0;
    return r;
}

static bool destroys(const struct step *st, const struct card *c, size_t slice)
{
    const struct slice *s = &c->slices[slice];
    return (st->kind == STEP_CI_DESTROY || st->kind == STEP_GI_DESTROY) &&
           strcmp(st->card_uuid, c->uuid) == 0 && st->start == s->start &&
           st->profile_id == s->profile_id;
}

/*
 * Since it was cut short a daemon may have run, and jobs may hold what a step that is left would
 * destroy, without any process on it that the driver would refuse for.
 */
static bool is_held(const struct applying *a, const struct apply *change)
{
    const struct plan *list = change->state == APPLY_GOING ? &change->plan : &change->back;
    size_t from = change->state == APPLY_GOING ? change->at : change->back_at;
    for (size_t n = from; n < list->count; n++)
        for (size_t i = 0; i < a->work.inv.card_count; i++) {
            const struct inventory_card *c = &a->work.inv.cards[i];
            for (size_t k = 0; k < c->card.slice_count; k++) {
                AUTO(text) struct text t = TEXT_INIT;
                if (c->slices[k].hold.kind == HOLD_NONE || !destroys(&list->steps[n], &c->card, k))
                    continue;
                address_add(&t, &c->card, &c->card.slices[k]);
                verb_note("an earlier change was cut short, and would go on by destroying %s, "
                          "which is in use by now; it is finished when that ends",
                          t.buf);
                return true;
            }
        }
    return false;
}

/* Cards of a change that was cut short, first: the wish is then planned on what came of it. */
static int resume(struct applying *a)
{
    struct err e = ERR_INIT;
    struct apply change;
    struct journal *j = NULL;
    int r = journal_resume(a->state, &change, &j, &e);
    if (r == -ENOENT)
        return STATUS_OK;
    if (r < 0)
        return verb_fail(a->session, &e);
    if (is_held(a, &change)) {
        apply_done(&change);
        journal_close(j);
        return LAYOUT_STATUS_BUSY;
    }
    verb_note("an earlier change was cut short; it is finished first");
    r = finish(a, j, &change, &e);
    apply_done(&change);
    if (r == -ENOTRECOVERABLE)
        return verb_fail(a->session, &e);
    if (r < 0 && change.state != APPLY_ROLLED_BACK)
        return status_of(a->session, &e);
    if (r < 0)
        verb_note("%s", e.text);
    return STATUS_OK;
}

/* ---- this one ---- */

static int lock_cards(struct applying *a)
{
    struct err e = ERR_INIT;
    a->locks = mem_new((a->work.inv.card_count + 1) * sizeof *a->locks);
    for (size_t i = 0; i < a->work.inv.card_count; i++)
        if (a->work.inv.cards[i].card.uuid[0] && lock(a, a->work.inv.cards[i].card.uuid, &e) < 0)
            return status_of(a->session, &e);
    return STATUS_OK;
}

int applying_open(struct applying *a)
{
    struct err e = ERR_INIT;
    a->root = client_root(a->session->root);
    a->state = file_under(a->root, "/var/lib/divvy");
    if (cards_open_driver(&a->driver, &e) < 0)
        return verb_fail(a->session, &e);
    int status = applying_look(a);
    if (status == STATUS_OK)
        status = lock_cards(a);
    if (status == STATUS_OK && file_mkdirs(a->state, 0755, &e) < 0)
        status = verb_fail(a->session, &e);
    if (status == STATUS_OK && reboot_load(a->state, &a->reboot, &e) < 0)
        status = verb_fail(a->session, &e);
    if (status == STATUS_OK)
        status = resume(a);
    if (status == STATUS_OK)
        status = applying_look(a); /* as it is under the locks */
    a->settled = true;
    return status == STATUS_OK ? applying_go_on(a) : status;
}

bool layout_is_refused(const struct layout_work *w)
{
    return layout_work_worst(w) > LAYOUT_BUSY;
}

static void collect(const struct applying *a, struct plan *ret, size_t *ret_cards)
{
    for (size_t i = 0; i < a->work.inv.card_count; i++) {
        const struct layout_change *ch = &a->work.changes[i];
        if (!a->work.wishes[i] || ch->verdict != LAYOUT_TO_DO)
            continue;
        for (size_t k = 0; k < ch->steps.count; k++)
            plan_add_step(ret, &ch->steps.steps[k]);
        *ret_cards += 1;
    }
}

static bool said_yes(void)
{
    char answer[16] = "";
    (void)fputs("Apply? [y/N] ", stderr);
    (void)fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int layout_agree(const struct layout_work *w, const struct layout_call *call)
{
    uint32_t destroyed = 0, moved = 0;
    bool turns = false;
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct layout_change *ch = &w->changes[i];
        if (!w->wishes[i] || ch->verdict != LAYOUT_TO_DO)
            continue;
        destroyed += ch->destroyed;
        moved += ch->moved;
        turns = turns || ch->turn >= 0;
    }
    if (moved && !call->move_idle) {
        verb_note("%u idle slice%s would be made again at another place and get another UUID; "
                  "--allow-move-idle allows it",
                  moved, moved == 1 ? "" : "s");
        return STATUS_REFUSED;
    }
    if (call->yes || call->unmake || (!destroyed && !turns))
        return STATUS_OK;
    if (!isatty(STDIN_FILENO)) {
        verb_note("this %s, and there is nobody to ask; --yes does it without asking",
                  destroyed ? "destroys idle slices" : "changes a card's MIG mode");
        return STATUS_REFUSED;
    }
    if (said_yes())
        return STATUS_OK;
    verb_note("nothing was changed");
    return STATUS_REFUSED;
}

static size_t aside_count(const struct apply *change)
{
    size_t n = 0;
    for (size_t i = 0; i < change->aside.count; i++)
        n += step_is_mode(&change->aside.steps[i]);
    return n;
}

int applying_carry_out(struct applying *a, const struct plan *p, size_t *ret_aside)
{
    struct err e = ERR_INIT;
    struct apply change;
    struct journal *j = NULL;
    apply_init(&change, p);
    change.resets = a->resets;
    int r = journal_create(a->state, &change, &j, &e);
    if (r == 0)
        r = apply_run_with(&change, a->driver, j, a->before, a->before_arg, &e);
    bool over = j && !apply_next(&change);
    if (over && keep_aside(a, &change, r < 0 ? NULL : &e) < 0) {
        over = false;
        r = r < 0 ? r : e.code;
    }
    if (over)
        r = journal_finish(j, r < 0 ? NULL : &e) < 0 && r == 0 ? e.code : r;
    else
        journal_close(j); /* it could not be written: the next start goes on */
    bool reset = change.reset_failed;
    *ret_aside = aside_count(&change);
    apply_done(&change);
    if (r == 0)
        return STATUS_OK;
    int status = status_of(a->session, &e);
    return reset && r != -ENOTRECOVERABLE ? LAYOUT_STATUS_RESET : status;
}

static void draw(const struct applying *a)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (a->session->json)
        return; /* once, at the end */
    layout_draw(&a->work, &a->session->screen, &t);
    (void)verb_print(&t); /* the change is worth more than its picture */
}

/* One go: what can be done now. STATUS_OK: look again at what is left. */
static int change_now(struct applying *a)
{
    AUTO(plan) struct plan p = PLAN_INIT;
    size_t cards = 0, aside = 0;
    collect(a, &p, &cards);
    if (!p.count)
        return STATUS_OK;
    int status = layout_agree(&a->work, a->call);
    if (status == STATUS_OK)
        status = applying_carry_out(a, &p, &aside);
    if (status == STATUS_OK)
        a->changed += cards - aside;
    return status == STATUS_OK ? applying_look(a) : status;
}

static void add_result(const struct layout_work *w, struct text *t)
{
    for (size_t i = 0; i < w->inv.card_count; i++) {
        const struct card *c = &w->inv.cards[i].card;
        for (size_t k = 0; w->wishes[i] && k < c->slice_count; k++) {
            address_add(t, c, &c->slices[k]);
            text_addf(t, "  %s\n", c->slices[k].uuid[0] ? c->slices[k].uuid : "-");
        }
    }
}

int layout_report(const struct layout_work *w, const struct session *s, uint64_t changed)
{
    AUTO(text) struct text t = TEXT_INIT;
    int left = layout_work_status(w);
    int printed;
    if (s->json) {
        auto_json json_t *j = layout_json(w);
        json_put_u64(j, "changed", changed);
        json_put(j, "layout", layout_export_json(&w->inv));
        json_put(j, "identities", layout_identities_json(w));
        printed = verb_print_json(j);
    } else {
        if (left == STATUS_OK && changed)
            add_result(w, &t);
        layout_add_identities(w, &t);
        text_addf(&t, "%s\n",
                  left == LAYOUT_STATUS_RESET
                      ? (w->inv.from_daemon
                             ? "Not all of it is done: a reboot is needed, and the rest follows by "
                               "itself after it."
                             : "Not all of it is done: a reboot is needed, and the rest follows by "
                               "itself at the next apply after it.")
                  : left != STATUS_OK ? "Not all of it is done: the others are in use."
                  : changed           ? "Done."
                                      : "All is as wanted; nothing was changed.");
        printed = verb_print(&t);
    }
    if (printed != STATUS_OK || left == STATUS_OK)
        return printed;
    return changed && left == LAYOUT_STATUS_BUSY ? LAYOUT_STATUS_PARTIAL : left;
}

static int wait_and_change(struct applying *a)
{
    const struct timespec pause = { .tv_sec = LOOK_AGAIN_S };
    int status = change_now(a);
    while (status == STATUS_OK && a->call->wait &&
           layout_work_status(&a->work) == LAYOUT_STATUS_BUSY) {
        driver_release(a->driver);     /* whoever waits must not hold a card himself */
        (void)nanosleep(&pause, NULL); /* woken early: looked early */
        status = applying_look(a);
        if (status == STATUS_OK)
            status = change_now(a);
    }
    return status;
}

static int without_daemon(struct applying *a)
{
    int status = applying_open(a);
    if (status != STATUS_OK)
        return status;
    draw(a);
    status = layout_work_status(&a->work);
    if (layout_is_refused(&a->work)) {
        if (a->session->json)
            (void)layout_report(&a->work, a->session, 0); /* the status says more */
        verb_note("nothing was changed");
        return status;
    }
    status = wait_and_change(a);
    return status == STATUS_OK ? layout_report(&a->work, a->session, a->changed) : status;
}

int layout_apply(struct session *s, const struct layout_call *call)
{
    AUTO(applying)
    struct applying a = {
        .session = s, .call = call, .who = "divvy layout apply", .resets = APPLY_RESET_OR_ASIDE
    };
    AUTO_PTR(client_close) struct client *c = NULL;
    struct err e = ERR_INIT;
    bool slice = call->make || call->unmake;
    int status = slice ? STATUS_OK : layout_work_read(&a.work, s, call);
    if (status == STATUS_OK && !slice)
        status = layout_work_choose(&a.work, s, call);
    if (status != STATUS_OK)
        return status;
    int r = client_open(s->root, &c, &e);
    if (r == 0)
        return layout_through_daemon(&a.work, s, call, c);
    return r == -EHOSTDOWN ? without_daemon(&a) : verb_fail(s, &e);
}
