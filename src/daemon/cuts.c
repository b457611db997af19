/* Plans on their way through `act`, one step at a time, journaled before and after. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/killpoint.h"
#include "base/log.h"
#include "daemon/layouts.h"

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

static void cut_write(struct daemon *d, struct cut *c, enum journal_state state)
{
    struct err e = ERR_INIT;
    if (!turn_write(d))
        return; /* the transaction failed: the turn starts over */
    auto_free char *text = cut_text(&c->apply);
    const char *note = c->apply.stuck[0] ? c->apply.stuck : c->apply.failure;
    wrote(store_set_step(d->store, c->plan_id, 0, state, text, note, &e), &e);
}

/* Where no reset works MIG is stored for the next boot, and never turned off for a job. */
static bool turns_off(const struct plan *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->steps[i].kind == STEP_MIG_OFF)
            return true;
    return false;
}

void cut_begin(struct job *j, const struct plan *p)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    struct attempt *a = j->attempt;
    struct cut *c = &a->cut;
    apply_init(&c->apply, p);
    c->apply.resets = turns_off(p) ? APPLY_RESET_MUST : APPLY_RESET_OR_ASIDE;
    c->job = j;
    c->open = true;
    auto_free char *text = cut_text(&c->apply);
    const char *steps[] = { text };
    wrote(store_add_plan(d->store, j->id, a->number, "", steps, 1, clock_now(), &c->plan_id, &e),
          &e);
}

bool cut_adopt_layout(struct daemon *d, struct cut *c, const struct apply *a, const char *who)
{
    struct err e = ERR_INIT;
    struct cut new = { .apply = *a, .open = true };
    if (!turn_write(d))
        return false;
    auto_free char *text = cut_text(&new.apply);
    const char *steps[] = { text };
    int r = store_add_plan(d->store, 0, 0, who, steps, 1, clock_now(), &new.plan_id, &e);
    wrote(r, &e);
    if (r == 0)
        *c = new;
    return r == 0;
}

bool cut_begin_layout(struct daemon *d, struct cut *c, const struct plan *p, const char *who)
{
    struct apply a;
    apply_init(&a, p);
    a.resets = APPLY_RESET_OR_ASIDE;
    bool begun = cut_adopt_layout(d, c, &a, who);
    if (!begun)
        apply_done(&a);
    return begun;
}

bool cuts_of_jobs_on(const struct daemon *d, const char *card_uuid)
{
    const struct cut *c;
    for (size_t i = 0; (c = cuts_next(d, &i));)
        if (c->job && apply_touches(&c->apply, card_uuid))
            return true;
    return false;
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
    j->attempt->cut.plan_id = row->plan_id;
    return 1;
}

/* Takes up the plan of a job that was PREPARING when the last daemon ended. */
int cut_load(struct job *j, struct err *e)
{
    struct cut *c = &j->attempt->cut;
    struct find_plan f = { .job = j, .e = e };
    int r = store_each_open_step(j->daemon->store, find_plan, &f, e);
    auto_json json_t *json = f.json;
    if (r < 0 || f.code < 0)
        return r < 0 ? r : f.code;
    if (!json)
        return err_set(e, -ENOENT, "job %" PRIu64 " has no open plan", j->id);
    r = apply_from_json(json, &c->apply, e);
    if (r == 0) {
        c->job = j;
        c->open = true;
        j->daemon->recover_cuts = true;
    }
    return r;
}

static void cut_close(struct daemon *d, struct cut *c)
{
    struct err e = ERR_INIT;
    c->open = false;
    if (turn_write(d))
        wrote(store_close_plan(d->store, c->plan_id, clock_now(), &e), &e);
}

/* What was created becomes the place of the task that it was created for. */
static void fill_place(struct daemon *d, struct attempt *a)
{
    for (size_t i = 0; i < a->place.count; i++) {
        struct placed *item = &a->place.items[i];
        for (size_t k = 0; !item->whole && k < a->cut.apply.plan.count; k++) {
            const struct step *s = &a->cut.apply.plan.steps[k];
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
    cut_close(j->daemon, &j->attempt->cut);
    children_refresh(&j->daemon->children);
    fill_place(j->daemon, a);
    if (a->cut.cancelled) {
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
static void quarantine_cards(struct daemon *d, const struct apply *a)
{
    for (size_t i = 0; i < a->plan.count; i++)
        cards_quarantine(d, a->plan.steps[i].card_uuid, a->stuck);
}

/* Back to the queue. */
static void cut_in_vain(struct job *j, const char *why)
{
    struct daemon *d = j->daemon;
    struct attempt *a = j->attempt;
    log_line(LOG_WARN, "job %" PRIu64 ": %s", j->id, why);
    cut_close(j->daemon, &j->attempt->cut);
    d->inventory_stale = d->schedule = true;
    children_refresh(&d->children);
    if (a->cut.cancelled) {
        j->verdict = JOB_CANCELLED;
        (void)job_move(j, JOB_EV_DROP,
                       "cancelled before it started"); /* a failed store starts over */
        return;
    }
    if (job_move(j, JOB_EV_UNREADY, why))
        sched_hold(d->sched, j->id, clock_now().boot_us + BACK_OFF_US);
}

static void cut_failed(struct job *j)
{
    struct daemon *d = j->daemon;
    const struct apply *a = &j->attempt->cut.apply;
    auto_free char *why =
        text_fmt("its slices could not be cut: %s", a->stuck[0] ? a->stuck : a->failure);
    if (a->state == APPLY_STUCK)
        quarantine_cards(d, a);
    if (a->reset_failed && a->code == -ENOTSUP)
        cards_no_turn(d, a->plan.steps[a->at].card_uuid); /* it would fail again */
    cut_in_vain(j, why);
}

/* A card's mode is stored: nothing can be had of it before a reboot. What was cut elsewhere stays. */
static void cut_waits(struct job *j)
{
    auto_free char *why =
        text_fmt("MIG is on after a reboot of this machine: %s", j->attempt->cut.apply.reboot);
    reboots_keep_for_job(j->daemon, &j->attempt->cut.apply.aside);
    cut_in_vain(j, why);
}

static void layout_over(struct daemon *d, struct cut *c)
{
    if (c->apply.state == APPLY_STUCK)
        quarantine_cards(d, &c->apply);
    cut_close(d, c);
    d->inventory_stale = d->schedule = true;
    children_refresh(&d->children);
    layouts_cut_over(d);
}

static void cut_settle(struct daemon *d, struct cut *c)
{
    if (!c->job) {
        if (!apply_next(&c->apply))
            layout_over(d, c);
        return;
    }
    switch (c->apply.state) {
    case APPLY_GOING:
    case APPLY_BACK:
        break;
    case APPLY_DONE:
        if (c->apply.aside.count)
            cut_waits(c->job);
        else
            cut_ready(c->job);
        break;
    case APPLY_ROLLED_BACK:
    case APPLY_STUCK:
        cut_failed(c->job);
        break;
    }
}

struct cut *cuts_next(const struct daemon *d, size_t *i)
{
    while (*i < d->active_count) {
        struct cut *c = &d->active[(*i)++]->attempt->cut;
        if (c->open)
            return c;
    }
    struct cut *of_layout = layouts_cut(d);
    return (*i)++ == d->active_count && of_layout->open ? of_layout : NULL;
}

static uint64_t job_of(const struct cut *c)
{
    return c->job ? c->job->id : 0;
}

static struct cut *oldest_cut(const struct daemon *d)
{
    struct cut *oldest = NULL;
    struct cut *c;
    for (size_t i = 0; (c = cuts_next(d, &i));)
        if (!c->apply.under_way && apply_next(&c->apply) &&
            (!oldest || c->plan_id < oldest->plan_id))
            oldest = c;
    return oldest;
}

/* A step on a card that answers nobody would only cost its time, and `act` with it. */
static bool refuse_silent(struct daemon *d, struct cut *c)
{
    const struct card_memory *m = cards_find(d, apply_next(&c->apply)->card_uuid);
    if (!m || !m->silent)
        return false;
    apply_begin(&c->apply);
    apply_result(&c->apply, -ENODEV, NULL, "the card does not answer the driver");
    cut_write(d, c, JOURNAL_FAILED);
    cut_settle(d, c);
    return true;
}

void cuts_prepare(struct daemon *d)
{
    if (d->cutting || d->recover_cuts || d->layouts->journal)
        return;
    struct cut *c = oldest_cut(d);
    if (!c || !turn_write(d) || refuse_silent(d, c))
        return;
    apply_begin(&c->apply);
    cut_write(d, c, JOURNAL_SENT);
    d->cutting = c;
    d->send_step = true;
    d->release_asked = d->released = false;
}

void cuts_send(struct daemon *d)
{
    struct err e = ERR_INIT;
    if (!d->send_step || !d->cutting)
        return;
    const struct step *s = apply_next(&d->cutting->apply);
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

/* What is left of a plan whose owner has given it up is undone. */
static void undo_cancelled(struct cut *c)
{
    if (c->cancelled && apply_next(&c->apply))
        apply_cancel(&c->apply, c->job ? "the job was cancelled" : "it was called off");
}

void cut_step_answer(struct daemon *d, int code, const struct step *done, const struct err *why)
{
    struct cut *c = d->cutting;
    KILLPOINT(STEP_RESULT);
    d->cutting = NULL;
    d->send_step = false;
    take_back_release(d);
    if (!c || code == -ETIMEDOUT) {
        d->recover_cuts = true;
        d->cut_lost_boot_us = clock_now().boot_us;
        children_refresh(&d->children);
        return;
    }
    apply_result(&c->apply, code, done, why->text);
    if (code == 0)
        cards_step_done(d, done, job_of(c));
    undo_cancelled(c);
    cut_write(d, c, code == 0 ? JOURNAL_DONE : JOURNAL_FAILED);
    cut_settle(d, c);
}

/* A card that does not answer cannot be asked what became of the step. */
static void cut_unknown(struct daemon *d, struct cut *c, const struct err *why)
{
    struct apply *a = &c->apply;
    a->state = APPLY_STUCK;
    a->under_way = false;
    (void)snprintf(a->stuck, sizeof a->stuck, "%s", why->text); /* a longer text is cut */
    cut_settle(d, c);
}

static void cut_recover(struct daemon *d, struct cut *c, const struct snapshot *s)
{
    struct err e = ERR_INIT;
    struct apply *a = &c->apply;
    const struct step *step = apply_next(a);
    struct step done;
    struct card *card = step ? snapshot_card(s, step->card_uuid) : NULL;
    bool happened = card && a->under_way && apply_step_happened(step, card, &done) == 1;
    int r = apply_recover(a, s, &e);
    if (r == -ENODEV) {
        cut_unknown(d, c, &e);
        return;
    }
    if (r < 0)
        log_line(LOG_WARN, "job %" PRIu64 ": after an interruption: %s", job_of(c), e.text);
    if (happened)
        cards_step_done(d, &done, job_of(c));
    undo_cancelled(c);
    cut_write(d, c, happened ? JOURNAL_DONE : JOURNAL_PLANNED);
    cut_settle(d, c);
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
        struct cut *c = &d->active[i - 1]->attempt->cut;
        if (c != d->cutting && c->open)
            cut_recover(d, c, &s);
    }
    if (layouts_cut(d) != d->cutting && layouts_cut(d)->open)
        cut_recover(d, layouts_cut(d), &s);
    snapshot_done(&s);
}

void cut_cancel(struct daemon *d, struct cut *c)
{
    c->cancelled = true;
    if (c->apply.under_way)
        return; /* its answer comes first */
    undo_cancelled(c);
    cut_write(d, c, JOURNAL_PLANNED);
    cut_settle(d, c);
}
