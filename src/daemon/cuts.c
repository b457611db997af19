/* Plans on their way through `act`, one step at a time, journaled before and after. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/killpoint.h"
#include "base/log.h"

/* A job whose slices could not be cut is not tried again at once. */
#define BACK_OFF_US (15 * CLOCK_SECOND)

static char *cut_text(const struct apply *a)
{
    auto_json json_t *j = apply_to_json(a);
    return json_dumps(j, JSON_COMPACT);
}

static void wrote(int r, const struct err *e)
{
    if (r < 0)
        log_line(LOG_ERROR, "the journal of a cut: %s", e->text);
}

static void cut_write(struct job *j, enum journal_state state)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    if (!turn_write(j->daemon))
        return; /* the transaction failed: the turn starts over */
    auto_free char *text = cut_text(&a->cut);
    const char *note = a->cut.stuck[0] ? a->cut.stuck : a->cut.failure;
    wrote(store_set_step(j->daemon->store, a->plan_id, 0, state, text, note, &e), &e);
}

void cut_begin(struct job *j, const struct plan *p)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    struct attempt *a = j->attempt;
    apply_init(&a->cut, p);
    a->cut_open = true;
    auto_free char *text = cut_text(&a->cut);
    const char *steps[] = { text };
    wrote(store_add_plan(d->store, j->id, a->number, "", steps, 1, clock_now(), &a->plan_id, &e),
          &e);
}

struct find_plan {
    struct job *job;
    json_t *json;
    int code;
    struct err *e;
};

static int find_plan(const struct journal_row *row, void *arg)
{
    struct find_plan *f = arg;
    struct job *j = f->job;
    if (row->job_id != j->id || row->attempt != j->attempt->number)
        return 0;
    f->code = json_parse(row->step, strlen(row->step), "the journal", &f->json, f->e);
    j->attempt->plan_id = row->plan_id;
    return 1;
}

/* Takes up the plan of a job that was PREPARING when the last daemon ended. */
int cut_load(struct job *j, struct err *e)
{
    struct find_plan f = { .job = j, .e = e };
    int r = store_each_open_step(j->daemon->store, find_plan, &f, e);
    auto_json json_t *json = f.json;
    if (r < 0 || f.code < 0)
        return r < 0 ? r : f.code;
    if (!json)
        return err_set(e, -ENOENT, "job %" PRIu64 " has no open plan", j->id);
    r = apply_from_json(json, &j->attempt->cut, e);
    if (r == 0) {
        j->attempt->cut_open = true;
        j->daemon->recover_cuts = true;
    }
    return r;
}

static void cut_close(struct job *j)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    a->cut_open = false;
    if (turn_write(j->daemon))
        wrote(store_close_plan(j->daemon->store, a->plan_id, clock_now(), &e), &e);
}

/* What was created becomes the place of the task that it was created for. */
static void fill_place(struct daemon *d, struct attempt *a)
{
    for (size_t i = 0; i < a->place.count; i++) {
        struct placed *item = &a->place.items[i];
        for (size_t k = 0; !item->whole && k < a->cut.plan.count; k++) {
            const struct step *s = &a->cut.plan.steps[k];
            if (s->kind != STEP_CI_CREATE || strcmp(s->card_uuid, item->card_uuid) != 0 ||
                s->start != item->start || s->profile_id != item->profile_id)
                continue;
            item->gi = s->gi;
            item->ci = s->ci;
            memcpy(item->uuid, s->uuid, sizeof item->uuid);
            item->generation = cards_generation(d, s->card_uuid, s->gi, s->ci);
        }
    }
}

static void cut_ready(struct job *j)
{
    struct err e = ERR_INIT;
    struct attempt *a = j->attempt;
    cut_close(j);
    children_refresh(&j->daemon->children);
    fill_place(j->daemon, a);
    if (a->cancelled) {
        j->verdict = JOB_CANCELLED;
        (void)job_move(j, JOB_EV_DROP,
                       "cancelled before it started"); /* a failed store starts over */
        return;
    }
    wrote(store_set_place(j->daemon->store, j->id, a->number, &a->place, &e), &e);
    if (job_move(j, JOB_EV_READY, NULL)) {
        a->launch = true;
        turn_todo(j->daemon, j);
    }
}

/* Cards that a plan could not put back are not touched until an administrator looked. */
static void quarantine_cards(struct job *j)
{
    const struct plan *p = &j->attempt->cut.plan;
    for (size_t i = 0; i < p->count; i++)
        cards_quarantine(j->daemon, p->steps[i].card_uuid, j->attempt->cut.stuck);
}

static void cut_failed(struct job *j)
{
    struct daemon *d = j->daemon;
    struct attempt *a = j->attempt;
    auto_free char *why = text_fmt("its slices could not be cut: %s",
                                   a->cut.stuck[0] ? a->cut.stuck : a->cut.failure);
    log_line(LOG_WARN, "job %" PRIu64 ": %s", j->id, why);
    if (a->cut.state == APPLY_STUCK)
        quarantine_cards(j);
    cut_close(j);
    d->inventory_stale = d->schedule = true;
    children_refresh(&d->children);
    if (a->cancelled) {
        j->verdict = JOB_CANCELLED;
        (void)job_move(j, JOB_EV_DROP,
                       "cancelled before it started"); /* a failed store starts over */
        return;
    }
    if (job_move(j, JOB_EV_UNREADY, why))
        sched_hold(d->sched, j->id, clock_now().boot_us + BACK_OFF_US);
}

static void cut_settle(struct job *j)
{
    switch (j->attempt->cut.state) {
    case APPLY_GOING:
    case APPLY_BACK:
        break;
    case APPLY_DONE:
        cut_ready(j);
        break;
    case APPLY_ROLLED_BACK:
    case APPLY_STUCK:
        cut_failed(j);
        break;
    }
}

static struct job *oldest_cut(const struct daemon *d)
{
    struct job *oldest = NULL;
    for (size_t i = 0; i < d->active_count; i++) {
        struct job *j = d->active[i];
        if (j->attempt->cut_open && !j->attempt->cut.under_way && apply_next(&j->attempt->cut) &&
            (!oldest || j->attempt->plan_id < oldest->attempt->plan_id))
            oldest = j;
    }
    return oldest;
}

/* A step on a card that answers nobody would only cost its time, and `act` with it. */
static bool refuse_silent(struct job *j)
{
    struct apply *a = &j->attempt->cut;
    const struct card_memory *m = cards_find(j->daemon, apply_next(a)->card_uuid);
    if (!m || !m->silent)
        return false;
    apply_begin(a);
    apply_result(a, -ENODEV, NULL, "the card does not answer the driver");
    cut_write(j, JOURNAL_FAILED);
    cut_settle(j);
    return true;
}

void cuts_prepare(struct daemon *d)
{
    if (d->cutting || d->recover_cuts)
        return;
    struct job *j = oldest_cut(d);
    if (!j || !turn_write(d) || refuse_silent(j))
        return;
    apply_begin(&j->attempt->cut);
    cut_write(j, JOURNAL_SENT);
    d->cutting = j;
    d->send_step = true;
    d->release_asked = d->released = false;
}

void cuts_send(struct daemon *d)
{
    struct err e = ERR_INIT;
    if (!d->send_step || !d->cutting)
        return;
    const struct step *s = apply_next(&d->cutting->attempt->cut);
    if (apply_needs_release(s) && !d->released) {
        if (!d->release_asked) {
            d->release_asked = true;
            children_release(&d->children);
        }
        return; /* cuts_released comes next */
    }
    KILLPOINT(STEP_SEND);
    int r = children_step(&d->children, s, &e);
    KILLPOINT(STEP_SENT);
    if (r == 0)
        d->send_step = false;
    else if (r != -EPIPE && r != -EBUSY)
        cut_step_answer(d, r, NULL, &e);
}

void cuts_released(struct daemon *d)
{
    d->released = true;
    cuts_send(d);
}

/* The watcher stays away from the driver until it is asked again. */
static void take_back_release(struct daemon *d)
{
    if (d->release_asked)
        children_refresh(&d->children);
    d->release_asked = d->released = false;
}

void cut_step_answer(struct daemon *d, int code, const struct step *done, const struct err *why)
{
    struct job *j = d->cutting;
    KILLPOINT(STEP_RESULT);
    d->cutting = NULL;
    d->send_step = false;
    take_back_release(d);
    if (!j || code == -ETIMEDOUT) {
        d->recover_cuts = true;
        d->cut_lost_boot_us = clock_now().boot_us;
        children_refresh(&d->children);
        return;
    }
    apply_result(&j->attempt->cut, code, done, why->text);
    if (code == 0)
        cards_step_done(d, done, j->id);
    if (j->attempt->cancelled && apply_next(&j->attempt->cut))
        apply_cancel(&j->attempt->cut, "the job was cancelled");
    cut_write(j, code == 0 ? JOURNAL_DONE : JOURNAL_FAILED);
    cut_settle(j);
}

/* A card that does not answer cannot be asked what became of the step. */
static void cut_unknown(struct job *j, const struct err *why)
{
    struct apply *a = &j->attempt->cut;
    a->state = APPLY_STUCK;
    a->under_way = false;
    (void)snprintf(a->stuck, sizeof a->stuck, "%s", why->text); /* a longer text is cut */
    cut_settle(j);
}

static void cut_recover(struct job *j, const struct snapshot *s)
{
    struct err e = ERR_INIT;
    struct apply *a = &j->attempt->cut;
    const struct step *step = apply_next(a);
    struct step done;
    struct card *card = step ? snapshot_card(s, step->card_uuid) : NULL;
    bool happened = card && a->under_way && apply_step_happened(step, card, &done) == 1;
    int r = apply_recover(a, s, &e);
    if (r == -ENODEV) {
        cut_unknown(j, &e);
        return;
    }
    if (r < 0)
        log_line(LOG_WARN, "job %" PRIu64 ": after an interruption: %s", j->id, e.text);
    if (happened)
        cards_step_done(j->daemon, &done, j->id);
    if (j->attempt->cancelled)
        apply_cancel(a, "the job was cancelled");
    cut_write(j, happened ? JOURNAL_DONE : JOURNAL_PLANNED);
    cut_settle(j);
    KILLPOINT(CUT_RECOVERED);
}

void cuts_recover(struct daemon *d)
{
    struct snapshot s = { .taken = d->snapshot_taken };
    if (!d->recover_cuts || d->snapshot_taken.boot_us <= d->cut_lost_boot_us || !turn_write(d))
        return;
    d->recover_cuts = false;
    for (size_t i = 0; i < d->card_count; i++)
        if (d->cards[i]->seen)
            card_copy(&d->cards[i]->last, snapshot_add_card(&s));
    for (size_t i = d->active_count; i > 0; i--) {
        struct job *j = d->active[i - 1];
        if (j != d->cutting && j->attempt->cut_open)
            cut_recover(j, &s);
    }
    snapshot_done(&s);
}

void cut_cancel(struct job *j)
{
    j->attempt->cancelled = true;
    if (j->attempt->cut.under_way)
        return; /* its answer comes first */
    apply_cancel(&j->attempt->cut, "the job was cancelled");
    cut_write(j, JOURNAL_PLANNED);
    cut_settle(j);
}
