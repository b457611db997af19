/* What keeps a job out of line: holds, begin times, deadlines, other jobs, its array's limit. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "store/waits.h"

#define TERMS_TOLD 4

static void waits_free(struct waits *w)
{
    depend_list_done(&w->depend);
    job_array_done(&w->array);
    free(w->never);
    free(w);
}

void waits_done(struct daemon *d)
{
    struct waits *w;
    for (size_t i = 0; (w = map_next(&d->waits, &i));)
        waits_free(w);
    map_done(&d->waits);
    d->waits_stale = false;
    d->moment_wall_us = INT64_MAX;
}

static void stale(struct daemon *d, struct waits *w)
{
    w->stale = d->waits_stale = true;
}

int waits_enter(struct daemon *d, const struct waits_row *row, struct err *e)
{
    struct waits *w = mem_new(sizeof *w);
    int r = 0;
    w->id = row->id;
    w->keep_invalid = row->keep_invalid;
    if (row->array[0])
        r = job_array_parse(row->array, &w->array, e);
    if (r == 0 && row->depend[0])
        r = depend_parse(row->depend, &w->depend, e);
    if (r < 0) {
        waits_free(w);
        return err_wrap(e, -EILSEQ, "what job %" PRIu64 " waits for", row->id);
    }
    map_put(&d->waits, w->id, w);
    stale(d, w);
    return 0;
}

static int load_one(const struct waits_row *row, void *arg)
{
    struct err e = ERR_INIT;
    if (waits_enter(arg, row, &e) < 0)
        log_line(LOG_ERROR, "%s", e.text); /* the others go on */
    return 0;
}

int waits_load(struct daemon *d, struct err *e)
{
    return store_each_waits(d->store, load_one, d, e);
}

/* ---- one job ---- */

/* It cannot end by its deadline when it starts later than this; INT64_MAX: it has none. */
static int64_t last_start(const struct job *j)
{
    return j->deadline_wall_us ? j->deadline_wall_us - j->limit_us : INT64_MAX;
}

char *waits_too_late(const struct job *j, const struct sched_explanation *x, struct now now)
{
    AUTO(text) struct text t = TEXT_INIT;
    int64_t start = now.wall_us + (x->expected_boot_us - now.boot_us);
    if (!x->expected_boot_us || x->expected_boot_us == INT64_MAX || start <= last_start(j))
        return NULL;
    text_add(&t, "waits for an earlier place than the next one, about ");
    waits_add_moment(&t, start, now.wall_us);
    text_add(&t, ": for its deadline ");
    waits_add_moment(&t, j->deadline_wall_us, now.wall_us);
    text_add(&t, " it must start by ");
    waits_add_moment(&t, last_start(j), now.wall_us);
    text_add(&t, ", or is cancelled then");
    return text_take(&t);
}

/* The next time at which the clock changes something for it; INT64_MAX: never. */
static int64_t moment_of(const struct job *j, int64_t now_wall_us)
{
    int64_t last = last_start(j);
    if (j->state != JOB_PENDING)
        return INT64_MAX;
    return j->begin_wall_us > now_wall_us && j->begin_wall_us < last ? j->begin_wall_us : last;
}

static bool lacks_slot(const struct job *j)
{
    return j->waits && j->waits->array.running_max && !j->slot;
}

static bool is_blocked(const struct job *j, struct now now)
{
    return j->hold || j->begin_wall_us > now.wall_us || (j->waits && j->waits->depend.count) ||
           lacks_slot(j);
}

void waits_apply(struct job *j)
{
    struct daemon *d = j->daemon;
    if (j->state != JOB_PENDING)
        return;
    bool blocked = is_blocked(j, clock_now());
    if (blocked) {
        sched_hold(d->sched, j->id, INT64_MAX);
    } else if (j->blocked) {
        sched_release(d->sched, j->id);
        d->schedule = true;
    }
    j->blocked = blocked;
}

void waits_join(struct job *j, uint64_t array_id)
{
    struct daemon *d = j->daemon;
    int64_t moment = moment_of(j, clock_now().wall_us);
    j->waits = map_get(&d->waits, array_id ? array_id : j->id);
    if (moment < d->moment_wall_us)
        d->moment_wall_us = moment;
    if (j->waits) {
        j->waits->jobs++;
        if (j->state != JOB_PENDING && j->waits->array.running_max) {
            j->slot = true;
            j->waits->slots++;
        }
    }
    waits_apply(j);
}

void waits_leave(struct job *j)
{
    struct waits *w = j->waits;
    j->waits = NULL;
    if (w && --w->jobs == 0) {
        (void)map_remove(&j->daemon->waits, w->id); /* it is there */
        waits_free(w);
    }
}

static uint32_t position(const struct job *j)
{
    return (uint32_t)(j->id - j->waits->id);
}

static void drop_slot(struct job *j)
{
    if (!j->slot)
        return;
    j->slot = false;
    j->waits->slots--;
    stale(j->daemon, j->waits);
}

void waits_hold(struct job *j)
{
    if (j->hold)
        drop_slot(j);
    if (lacks_slot(j) && position(j) < j->waits->next)
        j->waits->next = position(j);
    if (j->waits)
        stale(j->daemon, j->waits);
    waits_apply(j);
}

/* ---- others that wait for it ---- */

static bool names_it(const struct depend *item, const struct job *j, const struct waits *w)
{
    if (item->kind == DEPEND_SINGLETON)
        return w->blocker == j->id;
    return item->id == j->id || (j->waits && item->id == j->waits->id);
}

void waits_changed(struct job *j)
{
    struct daemon *d = j->daemon;
    struct waits *w;
    for (size_t i = 0; (w = map_next(&d->waits, &i));)
        for (size_t k = 0; k < w->depend.count && !w->stale; k++)
            if (names_it(&w->depend.items[k], j, w))
                stale(d, w);
    if (job_state_ended(j->state))
        drop_slot(j);
}

/* ---- a submission ---- */

static struct job *task_at(const struct daemon *d, const struct waits *w, size_t at)
{
    struct job *j = jobs_find(d, w->id + at);
    return j && !job_state_ended(j->state) ? j : NULL;
}

static size_t task_count(const struct waits *w)
{
    return w->array.count ? w->array.count : 1;
}

static void fill_slots(struct daemon *d, struct waits *w)
{
    for (; w->next < w->array.count && w->slots < w->array.running_max; w->next++) {
        struct job *j = task_at(d, w, w->next);
        if (!j || j->slot || j->hold)
            continue;
        j->slot = true;
        w->slots++;
        waits_apply(j);
    }
}

/* The latest of the earlier ones: it waits itself, or the ones before it do not matter to it. */
static uint64_t find_namesake(const struct daemon *d, const struct waits *w)
{
    const struct job *first = NULL;
    const struct job *j;
    uint64_t found = 0;
    for (size_t i = 0; i < task_count(w) && !first; i++)
        first = task_at(d, w, i);
    for (size_t i = 0; first && (j = map_next(&d->jobs, &i));)
        if (j->id < w->id && j->id > found && j->uid == first->uid && !job_state_ended(j->state) &&
            text_same(j->name, first->name))
            found = j->id;
    return found;
}

static enum depend_answer judge(struct daemon *d, struct waits *w, struct depend *item)
{
    struct depend_facts facts = { .count = 0 };
    struct err e = ERR_INIT;
    if (item->kind == DEPEND_SINGLETON) {
        w->blocker = find_namesake(d, w);
        return w->blocker ? DEPEND_WAITS : DEPEND_MET;
    }
    if (store_depend_facts(d->store, item, &facts, &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", w->id, e.text);
        return DEPEND_WAITS;
    }
    if (!facts.count) /* forgotten: it has ended, and nobody knows how */
        return item->kind == DEPEND_AFTEROK || item->kind == DEPEND_AFTERNOTOK ? DEPEND_NEVER
                                                                               : DEPEND_MET;
    enum depend_answer answer = depend_look(item, &facts, clock_now().wall_us);
    if (answer == DEPEND_WAITS && item->due_wall_us && item->due_wall_us < d->moment_wall_us)
        d->moment_wall_us = item->due_wall_us;
    return answer;
}

static char *never_words(const struct depend *item)
{
    AUTO(text) struct text t = TEXT_INIT;
    depend_add(&t, item);
    return text_fmt("%s can never be met: that %s", t.buf,
                    item->kind == DEPEND_AFTEROK ? "did not complete" : "did not fail");
}

/* What is left of it. *ret_never (owned): why it can never be met; NULL: it can. */
static struct depend_list judge_all(struct daemon *d, struct waits *w, char **ret_never)
{
    struct depend_list left = { .any = w->depend.any };
    bool met = false;
    auto_free char *why = NULL;
    *ret_never = NULL;
    for (size_t i = 0; i < w->depend.count; i++) {
        struct depend *item = &w->depend.items[i];
        enum depend_answer answer = judge(d, w, item);
        met = met || answer == DEPEND_MET;
        if (answer == DEPEND_NEVER && !why)
            why = never_words(item);
        if (answer == DEPEND_WAITS || (answer == DEPEND_NEVER && !left.any)) {
            ARRAY_ROOM(left.items, left.alloc, left.count + 1);
            left.items[left.count++] = *item;
        }
    }
    if (left.any && met)
        depend_list_done(&left);
    else if (why && (!left.any || !left.count))
        *ret_never = take_ptr(why);
    return left;
}

static void apply_all(struct daemon *d, const struct waits *w)
{
    for (size_t i = 0; i < task_count(w); i++) {
        struct job *j = task_at(d, w, i);
        if (j)
            waits_apply(j);
    }
}

static void drop(struct job *j, const char *why)
{
    auto_free char *reason = text_fmt("cancelled: %s", why);
    j->verdict = JOB_CANCELLED;
    (void)job_move(j, JOB_EV_DROP, reason); /* a failed store starts over */
}

static void give_up(struct daemon *d, struct waits *w, char *take_why)
{
    auto_free char *why = take_why;
    if (w->keep_invalid) {
        free(w->never);
        w->never = take_ptr(why);
        return;
    }
    for (size_t i = 0; i < task_count(w); i++) {
        struct job *j = task_at(d, w, i);
        if (j && j->state == JOB_PENDING)
            drop(j, why);
    }
}

static void look_at_depend(struct daemon *d, struct waits *w)
{
    struct err e = ERR_INIT;
    char *never = NULL;
    struct depend_list left = judge_all(d, w, &never);
    if (never) {
        depend_list_done(&left);
        give_up(d, w, never);
        return;
    }
    bool changed = left.count != w->depend.count;
    depend_list_done(&w->depend);
    w->depend = left;
    if (!changed)
        return;
    AUTO(text) struct text words = TEXT_INIT;
    depend_list_add(&words, &w->depend);
    if (store_set_depend(d->store, w->id, words.buf, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", w->id, e.text);
    if (!w->depend.count)
        apply_all(d, w);
}

void waits_turn(struct daemon *d)
{
    if (!d->waits_stale || !turn_write(d))
        return;
    while (d->waits_stale) {
        struct waits *w;
        d->waits_stale = false;
        for (size_t i = 0; (w = map_next(&d->waits, &i));) {
            if (!w->stale)
                continue;
            w->stale = false;
            if (w->depend.count && !w->never)
                look_at_depend(d, w);
            fill_slots(d, w);
        }
    }
}

/* ---- time ---- */

void waits_add_moment(struct text *t, int64_t wall_us, int64_t now_wall_us)
{
    time_t at = (time_t)(wall_us / CLOCK_SECOND);
    time_t today = (time_t)(now_wall_us / CLOCK_SECOND);
    struct tm tm, now;
    char words[64] = "";
    if (!localtime_r(&at, &tm) || !localtime_r(&today, &now))
        return;
    bool same = tm.tm_yday == now.tm_yday && tm.tm_year == now.tm_year;
    (void)strftime(words, sizeof words, same ? "%H:%M" : "%a %d %b %Y %H:%M", &tm);
    text_add(t, words);
}

static void look_at_clock(struct job *j, int64_t now_wall_us)
{
    if (j->state != JOB_PENDING)
        return;
    if (now_wall_us <= last_start(j)) {
        waits_apply(j);
        return;
    }
    AUTO(text) struct text why = TEXT_INIT;
    text_add(&why, "it could not end by its deadline any more (");
    waits_add_moment(&why, j->deadline_wall_us, now_wall_us);
    text_add(&why, ")");
    drop(j, why.buf);
}

/* Delays behind a start that are over now; gives when the next one is. */
static int64_t look_at_delays(struct daemon *d, int64_t now_wall_us)
{
    struct waits *w;
    int64_t next = INT64_MAX;
    for (size_t i = 0; (w = map_next(&d->waits, &i));)
        for (size_t k = 0; k < w->depend.count; k++) {
            int64_t due = w->depend.items[k].due_wall_us;
            if (due && due <= now_wall_us)
                stale(d, w);
            else if (due && due < next)
                next = due;
        }
    return next;
}

/* Drops are written: without the store, the same moment is looked at again. */
void waits_clock(struct daemon *d)
{
    struct job *j;
    int64_t now_wall_us = clock_now().wall_us;
    if (now_wall_us < d->moment_wall_us || !turn_write(d))
        return;
    d->moment_wall_us = look_at_delays(d, now_wall_us);
    for (size_t i = 0; (j = map_next(&d->jobs, &i));) {
        look_at_clock(j, now_wall_us);
        int64_t moment = moment_of(j, now_wall_us);
        if (moment < d->moment_wall_us)
            d->moment_wall_us = moment;
    }
}

int64_t waits_limit(const struct job *j, int64_t limit_us, int64_t now_wall_us)
{
    int64_t left = j->deadline_wall_us - now_wall_us;
    if (!j->deadline_wall_us || (limit_us && limit_us <= left))
        return limit_us;
    return left > CLOCK_SECOND ? left : CLOCK_SECOND;
}

/* ---- in words ---- */

static void add_named(struct text *t, const struct depend *item)
{
    text_addf(t, "#%" PRIu64, item->id);
    if (item->index >= 0)
        text_addf(t, "_%" PRId64, item->index);
}

static void add_term(struct text *t, const struct waits *w, const struct depend *item)
{
    static const char *const how[] = { "to start", "to complete", "to fail", "to end" };
    if (item->kind == DEPEND_SINGLETON) {
        text_addf(t, "#%" PRIu64 " of the same name to end", w->blocker);
        return;
    }
    add_named(t, item);
    text_addf(t, " %s", how[item->kind]);
    if (item->delay_minutes)
        text_addf(t, " and %" PRIu32 " minute%s more", item->delay_minutes,
                  item->delay_minutes == 1 ? "" : "s");
}

/* "10 minutes after #41 began: at 16:50" */
static void add_delay(struct text *t, const struct depend *item)
{
    text_addf(t, "%" PRIu32 " minute%s after ", item->delay_minutes,
              item->delay_minutes == 1 ? "" : "s");
    add_named(t, item);
    text_addf(t, " %s: at ", item->dropped ? "was cancelled" : "began");
    waits_add_moment(t, item->due_wall_us, clock_now().wall_us);
}

static void add_depend(struct text *t, const struct waits *w)
{
    if (w->never) {
        text_add(t, w->never);
        return;
    }
    for (size_t i = 0; i < w->depend.count && i < TERMS_TOLD; i++) {
        const struct depend *item = &w->depend.items[i];
        bool due = item->due_wall_us;
        if (i)
            text_add(t, w->depend.any ? " or " : ", ");
        if (!i || due != (item[-1].due_wall_us != 0))
            text_add(t, due ? "begins " : "waits for ");
        if (due)
            add_delay(t, item);
        else
            add_term(t, w, item);
    }
    if (w->depend.count > TERMS_TOLD)
        text_addf(t, " and %zu more", w->depend.count - TERMS_TOLD);
}

char *waits_words(const struct job *j)
{
    struct text t = TEXT_INIT;
    struct now now = clock_now();
    if (j->state != JOB_PENDING || !j->blocked)
        return NULL;
    if (j->hold == JOB_HOLD_OPERATOR)
        text_add(&t, "held by an operator, who alone can release it");
    else if (j->hold)
        text_addf(&t, "held until it is released: divvy release %" PRIu64, j->id);
    else if (j->waits && j->waits->depend.count)
        add_depend(&t, j->waits);
    else if (j->begin_wall_us > now.wall_us) {
        text_add(&t, "begins at ");
        waits_add_moment(&t, j->begin_wall_us, now.wall_us);
    } else if (lacks_slot(j))
        text_addf(&t, "at most %u tasks of its array run at a time", j->waits->array.running_max);
    return text_take(&t);
}

/* ---- submitting ---- */

static int check_deadline(const struct job_spec *s, struct now now, struct err *e)
{
    AUTO(text) struct text at = TEXT_INIT;
    int64_t begin = s->begin_wall_us > now.wall_us ? s->begin_wall_us : now.wall_us;
    if (!s->deadline_wall_us || s->limit_us < s->deadline_wall_us - begin)
        return 0;
    waits_add_moment(&at, s->deadline_wall_us, now.wall_us);
    if (s->deadline_wall_us <= begin)
        return err_set(e, -EINVAL, "the deadline %s has passed before the job may begin", at.buf);
    return err_set(e, -EINVAL,
                   "the deadline %s is nearer than the job's time limit; a shorter --time leaves "
                   "room for it",
                   at.buf);
}

static int check_unknown(const struct depend *item, const char *words, uint64_t last, struct err *e)
{
    if (item->id > last)
        return err_set(e, -EINVAL, "dependency %s: there is no job %" PRIu64, words, item->id);
    if (item->index >= 0)
        return err_set(e, -EINVAL,
                       "dependency %s: there is no task %" PRId64 " of an array %" PRIu64, words,
                       item->index, item->id);
    if (item->kind == DEPEND_AFTER || item->kind == DEPEND_AFTERANY)
        return 0;
    return err_set(e, -EINVAL,
                   "dependency %s: job %" PRIu64 " ended so long ago that nobody knows how; "
                   "afterany:%" PRIu64 " asks for no more than its end",
                   words, item->id, item->id);
}

static int check_item(struct daemon *d, const struct depend *item, bool may_be_never, struct err *e)
{
    AUTO(text) struct text words = TEXT_INIT;
    struct depend_facts facts = { .count = 0 };
    uint64_t last = 0;
    if (item->kind == DEPEND_SINGLETON)
        return 0;
    depend_add(&words, item);
    int r = store_depend_facts(d->store, item, &facts, e);
    if (r == 0)
        r = store_last_job(d->store, &last, e);
    if (r < 0)
        return r;
    if (!facts.count)
        return check_unknown(item, words.buf, last, e);
    if (may_be_never || depend_judge(item->kind, &facts) != DEPEND_NEVER)
        return 0;
    auto_free char *why = never_words(item);
    return err_set(e, -EINVAL, "dependency %s", why);
}

int waits_check(struct daemon *d, const struct job_spec *s, struct err *e)
{
    AUTO(depend_list) struct depend_list l = { .items = NULL };
    int r = check_deadline(s, clock_now(), e);
    if (r == 0 && s->dependency)
        r = depend_parse(s->dependency, &l, e);
    for (size_t i = 0; r == 0 && i < l.count; i++)
        r = check_item(d, &l.items[i], l.any || s->keep_invalid, e);
    return r;
}
