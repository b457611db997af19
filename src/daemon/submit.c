/* A job comes in: may it, can it be, and then into the store and the queue. */
#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "model/array.h"

/* "10G takes 1g.10gb": said where a need was rounded down to a profile. */
static char *note_of(const struct daemon *d, const struct request *r)
{
    for (size_t i = 0; r->kind == REQUEST_NEED && i < d->inventory.card_count; i++) {
        const struct board *b = &d->inventory.cards[i].card.board;
        struct fit fits[BOARD_PROFILES_MAX + 1];
        size_t n = request_fits(r, b, fits);
        if (!n || !fits[0].rounded || !fits[0].profile)
            continue;
        struct text t = TEXT_INIT;
        text_add_size(&t, r->mem_bytes);
        text_addf(&t, " takes %s with ", fits[0].profile->name);
        text_add_size(&t, fits[0].profile->mem_bytes);
        text_add(&t, "; --exact takes no less than asked");
        return text_take(&t);
    }
    return NULL;
}

static int check_possible(struct daemon *d, const struct request *r, struct err *e)
{
    struct place_rules rules = { .mode_hold_us = d->config.mode_hold_us };
    if (r->kind == REQUEST_NOTHING)
        return 0;
    if (!d->snapshot_came)
        return err_set(e, -EAGAIN, "the cards are not known yet%s%s; try again in a moment",
                       d->driver_trouble[0] ? ": " : "", d->driver_trouble);
    if (d->inventory_stale)
        cards_rebuild(d);
    return place_possible(&d->inventory, r, &rules, e) == PLACE_NEVER ? -EINVAL : 0;
}

static int check_limit(const struct daemon *d, struct job_spec *s, struct err *e)
{
    if (!s->limit_us)
        s->limit_us = d->config.default_time_us;
    if (d->config.max_time_us && (!s->limit_us || s->limit_us > d->config.max_time_us)) {
        AUTO(text) struct text longest = TEXT_INIT;
        text_add_limit(&longest, d->config.max_time_us);
        return err_set(e, -EINVAL, "a job may run %s here; say how long it needs with --time",
                       longest.buf);
    }
    return job_warning_check(&s->warning, s->limit_us, e);
}

static int check_bind(const struct daemon *d, const struct job_spec *s, struct err *e)
{
    if (s->bind == BIND_UUID || d->isolation != ISOLATION_NONE)
        return 0;
    return err_set(e, -EINVAL,
                   "--bind %s needs a gate, and there is none here (%s); use --bind uuid",
                   job_bind_word(s->bind), d->isolation_why);
}

static int check_shares(struct daemon *d, const struct api_caller *who, const struct job_spec *s,
                        struct err *e)
{
    struct now now = clock_now();
    AUTO(job_array) struct job_array array = { .indices = NULL };
    if (s->array && job_array_parse(s->array, &array, e) < 0)
        return e->code;
    struct sched_job job = { .tasks = (uint32_t)array.count,
                             .uid = who->uid,
                             .user = user_name(d, who->uid),
                             .account = s->account,
                             .qos = s->qos,
                             .request = &s->request,
                             .limit_us = s->limit_us,
                             .submit_us = now.boot_us,
                             .attached = s->attached,
                             .mem_bytes = s->mem_bytes,
                             .cpu_milli = s->cpu_milli };
    return sched_admit(d->sched, &d->inventory, &job, now, e);
}

static void replace(char **word, const char *by)
{
    if (text_same(*word, by))
        return;
    free(*word);
    *word = text_dup(by);
}

static int check_submit(struct daemon *d, const struct api_caller *who, struct job_spec *s,
                        struct err *e)
{
    const char *account = NULL, *qos = NULL;
    int r = account_of(d, who, s->account, &account, e);
    if (r == 0)
        r = class_of(d, who, account, s->qos, &qos, e);
    if (r < 0)
        return r;
    replace(&s->account, account);
    replace(&s->qos, qos);
    r = check_limit(d, s, e);
    if (r == 0)
        r = waits_check(d, s, e);
    if (r == 0)
        r = check_bind(d, s, e);
    if (r == 0)
        r = check_possible(d, &s->request, e);
    if (r == 0)
        r = check_shares(d, who, s, e);
    if (r == 0)
        r = job_spec_check(s, e);
    return r < 0 || !s->container.image ? r : container_check(d, s, who->uid, e);
}

/* The tasks of an array are jobs with numbers that follow each other. */
static int enter_rows(struct daemon *d, const struct job_spec *s, struct job_row *row,
                      struct err *e)
{
    struct waits_row waits = { .id = row->id,
                               .array = s->array ? s->array : "",
                               .depend = s->dependency ? s->dependency : "",
                               .keep_invalid = s->keep_invalid };
    int r = s->array || s->dependency ? waits_enter(d, &waits, e) : 0;
    const struct waits *w = map_get(&d->waits, row->id);
    if (!s->array || r < 0) {
        (void)jobs_add(d, row); /* in the map now */
        return r;
    }
    row->array_id = row->id;
    for (size_t i = 0; i < w->array.count; i++) {
        row->id = row->array_id + i;
        row->array_index = w->array.indices[i];
        (void)jobs_add(d, row); /* in the map now */
    }
    return 0;
}

int submit_enter(struct daemon *d, const struct job_submit *by, const struct job_spec *s,
                 uint64_t *ret_id, struct err *e)
{
    struct now now = clock_now();
    int r = store_add_job(d->store, by, s, now, ret_id, e);
    if (r < 0)
        return r;
    struct job_row row = { .id = *ret_id,
                           .hold = s->hold ? JOB_HOLD_USER : JOB_HOLD_NONE,
                           .tells = job_tells(s),
                           .attached = s->attached,
                           .begin_wall_us = s->begin_wall_us,
                           .deadline_wall_us = s->deadline_wall_us,
                           .uid = by->uid,
                           .gid = by->gid,
                           .user = by->user,
                           .account = s->account,
                           .qos = s->qos,
                           .name = s->name,
                           .request = s->request,
                           .mem_bytes = s->mem_bytes,
                           .cpu_milli = s->cpu_milli,
                           .limit_us = s->limit_us,
                           .state = JOB_PENDING,
                           .submit_wall_us = now.wall_us };
    d->schedule = true;
    return enter_rows(d, s, &row, e);
}

static int enter_job(struct daemon *d, const struct api_caller *who, const struct job_spec *s,
                     uint64_t *ret_id, struct err *e)
{
    struct job_submit by = { .uid = who->uid,
                             .gid = who->gid,
                             .user = user_name(d, who->uid),
                             .groups = who->groups,
                             .group_count = who->group_count };
    if (!turn_write(d))
        return err_set(e, -ENOSPC, "no job can be taken at the moment: %s", d->stalled_why);
    return submit_enter(d, &by, s, ret_id, e);
}

void submit_op(void *ctx, struct api_request *req, const struct api_caller *who,
               struct job_spec *take_spec)
{
    struct daemon *d = ctx;
    struct err e = ERR_INIT;
    struct owed o = { .request = req, .kind = OWED_SUBMITTED };
    int r = check_submit(d, who, take_spec, &e);
    if (r == 0)
        r = enter_job(d, who, take_spec, &o.id, &e);
    if (r < 0) {
        answers_owe_error(d, req, &e);
    } else {
        o.note = note_of(d, &take_spec->request);
        turn_owe(d, &o);
    }
    job_spec_done(take_spec);
}

/* ---- many at once ---- */

struct many {
    json_t *ids, *notes;
    json_t *refused; /* what ended it; NULL: nothing did */
};

static json_t *refusal(size_t index, const struct err *e)
{
    json_t *j = json_object();
    json_put_u64(j, "index", index);
    json_put_i64(j, "code", e->code);
    json_put_text(j, "message", e->text);
    return j;
}

/* All of them could come in by themselves. */
static int check_many(struct daemon *d, const struct api_caller *who, struct job_spec *specs,
                      size_t count, size_t *ret_refused, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = check_submit(d, who, &specs[i], e);
        *ret_refused = i;
    }
    return r;
}

/* Limits count those that came in before it, so they are asked again. */
static int enter_one(struct daemon *d, const struct api_caller *who, const struct job_spec *s,
                     struct many *m, struct err *e)
{
    uint64_t id = 0;
    int r = check_shares(d, who, s, e);
    if (r == 0)
        r = enter_job(d, who, s, &id, e);
    if (r < 0)
        return r;
    auto_free char *note = note_of(d, &s->request);
    (void)json_array_append_new(m->ids, json_integer((json_int_t)id)); /* memory ends the program */
    (void)json_array_append_new(m->notes, note ? json_string(note) : json_null()); /* the same */
    return 0;
}

static json_t *enter_many(struct daemon *d, const struct api_caller *who, struct job_spec *specs,
                          size_t count)
{
    struct err e = ERR_INIT;
    size_t refused = 0;
    struct many m = { .ids = json_array(), .notes = json_array() };
    if (check_many(d, who, specs, count, &refused, &e) < 0)
        m.refused = refusal(refused, &e);
    for (size_t i = 0; i < count && !m.refused; i++)
        if (enter_one(d, who, &specs[i], &m, &e) < 0)
            m.refused = refusal(i, &e);
    json_t *answer = json_object();
    json_put(answer, "ids", m.ids);
    json_put(answer, "notes", m.notes);
    json_put(answer, "refused", m.refused ? m.refused : json_null());
    return answer;
}

void submit_op_many(void *ctx, struct api_request *req, const struct api_caller *who,
                    struct job_spec *take_specs, size_t count)
{
    struct owed o = { .request = req, .kind = OWED_JSON };
    o.json = enter_many(ctx, who, take_specs, count);
    turn_owe(ctx, &o);
    for (size_t i = 0; i < count; i++)
        job_spec_done(&take_specs[i]);
    free(take_specs);
}
