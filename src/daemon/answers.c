/* What the API is told, and what it asks to be done. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/layouts.h"
#include "daemon/maintenance.h"
#include "daemon/windows.h"
#include "model/array.h"

/* Reasons are worked out for the first so many waiting jobs of a list: each costs a few searches. */
#define EXPLAINED_MAX 64

void answers_forget(struct daemon *d)
{
    job_spec_done(&d->view_spec);
    place_done(&d->view_place);
    for (size_t i = 0; i < sizeof d->view_words / sizeof *d->view_words; i++) {
        free(d->view_words[i]);
        d->view_words[i] = NULL;
    }
}

const char *answers_keep(struct daemon *d, size_t slot, const char *word)
{
    free(d->view_words[slot]);
    d->view_words[slot] = text_dup(word);
    return d->view_words[slot];
}

void answers_owe_error(struct daemon *d, struct api_request *req, const struct err *e)
{
    turn_owe(d, &(struct owed){ .request = req, .kind = OWED_ERROR, .err = *e });
}

static void op_set_card(void *ctx, struct api_request *req, const struct api_caller *who,
                        uint32_t ordinal, int pool, int mode)
{
    struct daemon *d = ctx;
    struct err e = ERR_INIT;
    (void)who; /* an operator: the api saw to that */
    if (cards_set(d, ordinal, pool, mode, &e) < 0)
        answers_owe_error(d, req, &e);
    else
        turn_owe(d, &(struct owed){ .request = req, .kind = OWED_OK });
}

/* ---- jobs ---- */

static const char *waits_for(struct daemon *d, const struct job *j, struct job_view *v)
{
    struct sched_explanation x;
    struct now now = clock_now();
    auto_free char *blocked = waits_words(j);
    if (blocked)
        return answers_keep(d, 0, blocked);
    if (j->reason && j->reason[0] && !d->snapshot_came)
        return j->reason;
    sched_explain(d->sched, &d->inventory, j->id, now, &x);
    auto_free char *late = waits_too_late(j, &x, now);
    if (late)
        return answers_keep(d, 0, late);
    int64_t at = x.expected_boot_us ? x.expected_boot_us : 0;
    if (at && at != INT64_MAX)
        v->expected_start_wall_us = now.wall_us + (at > now.boot_us ? at - now.boot_us : 0);
    if (x.expected_place) {
        AUTO(text) struct text place = TEXT_INIT;
        place_add_text(&place, x.expected_place);
        v->expected_place = answers_keep(d, 8, place.buf);
    }
    if (x.why == WHY_HELD && j->reason && j->reason[0])
        return j->reason;
    return x.text[0] ? answers_keep(d, 0, x.text) : NULL;
}

static int64_t start_wall(const struct attempt *a)
{
    return a ? a->started_wall_us : 0;
}

static const char *said(const struct job *j)
{
    return j->reason && j->reason[0] ? j->reason : NULL;
}

/* Of a live job; what only show tells (command, directory …) is added by op_job. */
static void view_live(struct daemon *d, const struct job *j, bool explain, struct job_view *v)
{
    const struct attempt *a = j->attempt;
    *v = (struct job_view){ .id = j->id,
                            .uid = j->uid,
                            .user = j->user,
                            .account = j->account,
                            .qos = j->qos,
                            .name = j->name,
                            .state = j->state,
                            .reason = said(j),
                            .request = j->request,
                            .attempt = j->attempts,
                            .tasks = request_tasks(&j->request),
                            .limit_us = j->limit_us,
                            .submit_wall_us = j->submit_wall_us,
                            .begin_wall_us = j->begin_wall_us,
                            .deadline_wall_us = j->deadline_wall_us,
                            .hold = j->hold,
                            .attached = j->attached,
                            .start_wall_us = start_wall(a) };
    v->enforced = -1;
    node_view_job(d, j, v);
    if (j->waits && j->waits->array.count) {
        v->array_id = j->waits->id;
        v->array_index = j->array_index;
        v->array_max = j->waits->array.running_max;
    }
    if (a) {
        v->place = a->place;
        v->exit = a->exit;
        v->enforced = a->isolation[0] ? a->enforced : -1;
        v->isolation = a->isolation[0] ? a->isolation : NULL;
        /* Where it was never tried, the supervisor knows no more than that. */
        bool untried = a->isolation_why && d->isolation == ISOLATION_NONE;
        v->isolation_why = untried ? d->isolation_why : a->isolation_why;
        v->mem_bytes = a->mem_bytes;
        v->cpu_milli = a->cpu_milli;
        v->pids = a->pids;
        v->cpus = a->cpus;
    }
    auto_free char *idle = idle_words(j, clock_now().boot_us);
    if (idle)
        v->reason = answers_keep(d, 7, idle);
    if (j->state == JOB_PENDING && explain)
        v->reason = waits_for(d, j, v);
    preempt_show(d, j->id, v);
}

static void view_row(const struct job_row *row, struct job_view *v)
{
    *v = (struct job_view){ .id = row->id,
                            .uid = row->uid,
                            .user = row->user,
                            .account = row->account,
                            .qos = row->qos,
                            .name = row->name,
                            .state = row->state,
                            .reason = row->reason[0] ? row->reason : NULL,
                            .request = row->request,
                            .place = row->last.place,
                            .attempt = row->last.attempt,
                            .tasks = request_tasks(&row->request),
                            .limit_us = row->limit_us,
                            .submit_wall_us = row->submit_wall_us,
                            .begin_wall_us = row->begin_wall_us,
                            .deadline_wall_us = row->deadline_wall_us,
                            .hold = row->hold,
                            .attached = row->attached,
                            .array_id = row->array_id,
                            .array_index = row->array_index,
                            .start_wall_us = row->last.started_wall_us,
                            .end_wall_us = row->ended_wall_us,
                            .exit = row->last.exit,
                            .enforced = -1 };
}

struct find_row {
    struct daemon *daemon;
    struct job_view *view;
    bool found;
};

/* The row's strings end with the callback: those of the view are kept until the next turn. */
static int take_row(const struct job_row *row, void *arg)
{
    struct find_row *f = arg;
    struct daemon *d = f->daemon;
    struct job_view *v = f->view;
    view_row(row, v);
    v->user = answers_keep(d, 1, row->user);
    v->account = answers_keep(d, 2, row->account);
    v->qos = answers_keep(d, 6, row->qos);
    v->name = answers_keep(d, 3, row->name);
    v->reason = row->reason[0] ? answers_keep(d, 4, row->reason) : NULL;
    place_done(&d->view_place);
    place_copy(&row->last.place, &d->view_place);
    v->place = d->view_place;
    f->found = true;
    preempt_show(d, row->id, v);
    return 1;
}

static int add_spec(struct daemon *d, uint64_t id, struct job_view *v, struct err *e)
{
    job_spec_done(&d->view_spec);
    int r = store_job_spec(d->store, id, &d->view_spec, e);
    if (r < 0)
        return r;
    v->argv = d->view_spec.argv;
    v->cwd = d->view_spec.cwd;
    v->output = d->view_spec.output;
    v->script = d->view_spec.script;
    v->array = d->view_spec.array;
    v->dependency = d->view_spec.dependency;
    if (d->view_spec.mem_bytes)
        v->mem_bytes = d->view_spec.mem_bytes;
    if (d->view_spec.cpu_milli)
        v->cpu_milli = d->view_spec.cpu_milli;
    return 0;
}

static int op_job(void *ctx, uint64_t id, struct job_view *ret, struct err *e)
{
    struct daemon *d = ctx;
    struct job *j = jobs_find(d, id);
    if (d->inventory_stale)
        cards_rebuild(d);
    if (j && !job_state_ended(j->state)) {
        view_live(d, j, true, ret);
        return add_spec(d, id, ret, e);
    }
    struct find_row f = { .daemon = d, .view = ret };
    struct job_query q = { .id = id, .limit = 1 };
    int r = store_each_job(d->store, &q, take_row, &f, e);
    if (r < 0)
        return r;
    if (!f.found)
        return err_set(e, -ENOENT, "there is no job %" PRIu64, id);
    return add_spec(d, id, ret, e);
}

struct list {
    struct daemon *daemon;
    const struct job_filter *filter;
    struct api_jobs *out;
    uint64_t *ids;
    size_t count, alloc;
    struct text indices; /* of the tasks that were told as one last */
};

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void list_live(struct list *l)
{
    struct job *j;
    for (size_t i = 0; (j = map_next(&l->daemon->jobs, &i));) {
        if (j->id <= l->filter->after || job_state_ended(j->state) ||
            !job_filter_matches(l->filter, j->state, j->uid, j->user, j->account))
            continue;
        ARRAY_ROOM(l->ids, l->alloc, l->count + 1);
        l->ids[l->count++] = j->id;
    }
}

static int list_ended(const struct job_row *row, void *arg)
{
    struct list *l = arg;
    const struct job *live = jobs_find(l->daemon, row->id);
    if (row->id <= l->filter->after || (live && !job_state_ended(live->state)) ||
        !job_filter_matches(l->filter, row->state, row->uid, row->user, row->account))
        return 0;
    ARRAY_ROOM(l->ids, l->alloc, l->count + 1);
    l->ids[l->count++] = row->id;
    return 0;
}

static int collect(struct list *l, struct err *e)
{
    uint32_t ended = l->filter->states & JOB_STATES_ENDED;
    list_live(l);
    if (!ended)
        return 0;
    struct job_query q = { .by_uid = l->filter->has_uid,
                           .uid = l->filter->uid,
                           .states = ended,
                           .account = l->filter->account[0] ? l->filter->account : NULL,
                           .limit = JOB_LIST_MAX };
    return store_each_job(l->daemon->store, &q, list_ended, l, e);
}

/* May it be told together with others of its array? The first of them tells for all. */
static bool is_folded(const struct list *l, const struct job *j)
{
    return l->filter->fold && j && j->state == JOB_PENDING && j->attempts == 0 && j->waits &&
           j->waits->array.count;
}

static bool alike(const struct job *a, const struct job *b)
{
    return b && a->waits == b->waits && a->hold == b->hold && a->blocked == b->blocked;
}

/* Tasks from l->ids[i] on that wait alike go into one view. How many they are. */
static size_t fold(struct list *l, size_t i, struct job_view *v)
{
    const struct job *first = jobs_find(l->daemon, l->ids[i]);
    uint32_t *indices = NULL;
    size_t n = 0, alloc = 0;
    for (; i + n < l->count; n++) {
        const struct job *j = jobs_find(l->daemon, l->ids[i + n]);
        if (!is_folded(l, j) || !alike(first, j))
            break;
        ARRAY_ROOM(indices, alloc, n + 1);
        indices[n] = j->array_index;
    }
    text_clear(&l->indices);
    job_array_add_words(&l->indices, indices, n);
    free(indices);
    v->array_tasks = (uint32_t)n;
    v->indices = n > 1 ? l->indices.buf : NULL;
    return n;
}

/* The next, at *i; moves that on. False: the page is full. */
static bool list_one(struct list *l, size_t *i, size_t *explained, struct err *e)
{
    struct job_view v;
    struct daemon *d = l->daemon;
    size_t at = (*i)++;
    uint64_t id = l->ids[at];
    struct job *j = jobs_find(d, id);
    if (j && !job_state_ended(j->state)) {
        bool explain = j->state == JOB_PENDING && (*explained)++ < EXPLAINED_MAX;
        view_live(d, j, explain, &v);
        if (is_folded(l, j))
            *i = at + fold(l, at, &v);
        return api_jobs_add(l->out, &v, l->ids[*i - 1]);
    }
    struct find_row f = { .daemon = d, .view = &v };
    struct job_query q = { .id = id, .limit = 1 };
    if (store_each_job(d->store, &q, take_row, &f, e) < 0 || !f.found)
        return true;
    return api_jobs_add(l->out, &v, id);
}

static int op_jobs(void *ctx, const struct job_filter *filter, struct api_jobs *out, struct err *e)
{
    struct daemon *d = ctx;
    struct list l = { .daemon = d, .filter = filter, .out = out, .indices = TEXT_INIT };
    size_t explained = 0;
    if (d->inventory_stale)
        cards_rebuild(d);
    int r = collect(&l, e);
    if (r >= 0 && l.count)
        qsort(l.ids, l.count, sizeof *l.ids, by_id);
    for (size_t i = 0; r >= 0 && i < l.count && list_one(&l, &i, &explained, e);)
        ;
    text_done(&l.indices);
    free(l.ids);
    return r < 0 ? r : 0;
}

/* ---- cards, daemon, why ---- */

int answers_inventory(struct daemon *d, const struct inventory **ret, struct err *e)
{
    if (!d->snapshot_came && d->driver_trouble[0])
        return err_set(e, -ENODEV, "%s", d->driver_trouble);
    if (d->inventory_stale)
        cards_rebuild(d);
    d->inventory.now = clock_now();
    windows_show(d);
    *ret = &d->inventory;
    return 0;
}

static int op_inventory(void *ctx, const struct inventory **ret, struct err *e)
{
    return answers_inventory(ctx, ret, e);
}

static void op_daemon(void *ctx, struct daemon_view *ret)
{
    struct daemon *d = ctx;
    struct job *j;
    *ret = (struct daemon_view){ .version = DIVVY_VERSION,
                                 .pid = getpid(),
                                 .root = d->paths.root,
                                 .private_root = d->private_root,
                                 .started_wall_us = d->started_wall_us,
                                 .driver_version = d->driver_version[0] ? d->driver_version : NULL,
                                 .driver_trouble = d->driver_trouble[0] ? d->driver_trouble : NULL,
                                 .isolation = isolation_word(d->isolation),
                                 .isolation_why = d->isolation_why[0] ? d->isolation_why : NULL };
    for (size_t i = 0; (j = map_next(&d->jobs, &i));)
        if (!job_state_ended(j->state))
            ret->jobs[j->state]++;
    for (size_t s = JOB_COMPLETED; s < JOB_STATES; s++)
        ret->jobs[s] = (uint32_t)d->ended[s];
    ret->promises = d->promises;
    node_view(d, ret);
    ret->cards = (uint32_t)d->inventory.card_count;
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        const struct inventory_card *c = &d->inventory.cards[i];
        ret->cards_queue += c->pool == POOL_QUEUE;
        ret->cards_trouble += c->card.health != CARD_OK || c->quarantined;
    }
}

static void op_shares(void *ctx, struct share_view *ret)
{
    shares_view(ctx, ret);
}

static int op_why(void *ctx, uint64_t id, struct why_view *ret, struct err *e)
{
    struct daemon *d = ctx;
    struct job_view view;
    struct job *j = jobs_find(d, id);
    if (d->inventory_stale)
        cards_rebuild(d);
    *ret = (struct why_view){ .id = id };
    if (j && j->state == JOB_PENDING) {
        why_pending(d, j, ret);
        return 0;
    }
    int r = op_job(d, id, &view, e);
    if (r < 0)
        return r;
    AUTO(text) struct text where = TEXT_INIT;
    place_add_text(&where, &view.place);
    auto_free char *summary = text_fmt("#%" PRIu64 " is %s%s%s%s%s", id, job_state_word(view.state),
                                       where.len ? " on " : "", where.buf, view.reason ? ": " : "",
                                       view.reason ? view.reason : "");
    ret->summary = answers_keep(d, 5, summary);
    return 0;
}

static int op_history(void *ctx, const struct history_filter *filter, struct api_jobs *out,
                      struct err *e)
{
    return ledger_history(ctx, filter, out, e);
}

static int op_usage(void *ctx, struct ledger *ret, struct err *e)
{
    return ledger_sum(ctx, ret, e);
}

const struct api_ops daemon_api_ops = {
    .submit = submit_op,
    .submit_many = submit_op_many,
    .act = op_act,
    .set_card = op_set_card,
    .job = op_job,
    .jobs = op_jobs,
    .inventory = op_inventory,
    .look = looks_op,
    .daemon = op_daemon,
    .history = op_history,
    .usage = op_usage,
    .shares = op_shares,
    .why = op_why,
    .change_layout = layouts_op_change,
    .stop_layout = layouts_op_stop,
    .layout = layouts_op_show,
    .change_maintenance = maintenance_op_change,
    .maintenance = maintenance_op_show,
};
