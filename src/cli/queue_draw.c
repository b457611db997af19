#include "cli/queue_draw.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/table.h"
#include "model/array.h"

/* "pending" is the state; for people it waits. */
static const char *state_word(const struct job_view *v)
{
    return v->state == JOB_PENDING ? "waiting" : job_state_word(v->state);
}

static enum colour state_colour(enum job_state s)
{
    if (s == JOB_RUNNING || s == JOB_COMPLETED)
        return COLOUR_GOOD;
    if (s < JOB_RUNNING || s == JOB_ENDING)
        return COLOUR_WAIT;
    return COLOUR_BAD;
}

static int64_t state_since(const struct job_view *v)
{
    if (job_state_ended(v->state))
        return v->end_wall_us;
    if (v->start_wall_us && v->state >= JOB_RUNNING)
        return v->start_wall_us;
    return v->submit_wall_us;
}

void job_add_end(struct text *t, const struct job_view *v)
{
    const struct job_exit *x = &v->exit;
    switch (x->kind) {
    case EXIT_NONE:
        break;
    case EXIT_CODE:
        text_addf(t, "exit %d", x->value);
        break;
    case EXIT_SIGNAL:
        text_addf(t, "killed by signal %d (%s)", x->value, strsignal(x->value));
        break;
    case EXIT_OOM:
        text_add(t, "its memory limit");
        break;
    case EXIT_TIMEOUT:
        text_add(t, "its time limit");
        if (v->limit_us) {
            text_add(t, " of ");
            text_add_limit(t, v->limit_us);
        }
        break;
    case EXIT_CANCELLED:
        text_add(t, "cancelled");
        break;
    case EXIT_NOT_STARTED:
        text_addf(t, "could not be started%s%s", x->text[0] ? ": " : "", x->text);
        break;
    case EXIT_LOST:
        text_addf(t, "nobody saw it end%s%s", x->text[0] ? ": " : "", x->text);
        break;
    case EXIT_INTERRUPTED:
        text_add(t, x->text[0] ? x->text : "interrupted");
        break;
    }
}

/* Not twice: a reason begins with "cancelled" where the end says no more than that. */
static void add_end_and_reason(struct text *t, const struct job_view *v)
{
    bool reason = v->reason && v->state != JOB_COMPLETED;
    if (!reason || v->exit.kind != EXIT_CANCELLED || !text_starts(v->reason, "cancelled"))
        job_add_end(t, v);
    if (reason)
        text_addf(t, "%s%s", t->len ? ": " : "", v->reason);
}

/* The columns before it say that it waits, and for what: "waits for 2g.20gb: gpu0 until ...". */
static const char *reason_alone(const struct job_view *v)
{
    AUTO(text) struct text begin = TEXT_INIT;
    text_add(&begin, "waits for ");
    request_add(&begin, &v->request);
    text_add(&begin, ": ");
    return v->reason + (text_starts(v->reason, begin.buf) ? begin.len : 0);
}

static void add_preempted(struct text *t, const struct job_preempted *p, int64_t now_wall_us)
{
    if (p->times > 1)
        text_addf(t, "%u times, the last ", p->times);
    text_add(t, "at ");
    when_add(t, p->wall_us, now_wall_us);
    text_add(t, p->by ? " for " : "");
    job_preempted_add_by(t, p);
}

static void add_where_or_why(struct text *t, const struct job_view *v, int64_t now_wall_us)
{
    if (job_state_ended(v->state)) {
        add_end_and_reason(t, v);
        return;
    }
    if (v->place.count) {
        place_add_text(t, &v->place);
        if ((v->state == JOB_RUNNING || v->state == JOB_ENDING) && v->reason)
            text_addf(t, "; %s", v->reason);
        return;
    }
    if (v->expected_start_wall_us) {
        text_add(t, "starts about ");
        when_add(t, v->expected_start_wall_us, now_wall_us);
        if (v->expected_place)
            text_addf(t, " on %s", v->expected_place);
    }
    if (v->reason)
        text_addf(t, "%s%s", t->len ? ": " : "", reason_alone(v));
    if (v->preempted.times) {
        text_add(t, t->len ? "; preempted " : "preempted ");
        add_preempted(t, &v->preempted, now_wall_us);
    }
}

static int rank(const struct job_view *v)
{
    if (job_state_ended(v->state))
        return 2;
    return v->state == JOB_PENDING;
}

static int by_rank_and_id(const void *a, const void *b)
{
    const struct job_view *x = a;
    const struct job_view *y = b;
    if (rank(x) != rank(y))
        return rank(x) - rank(y);
    return x->id < y->id ? -1 : x->id > y->id;
}

static void add_job(struct table *t, const struct job_view *v, int64_t now_wall_us)
{
    AUTO(text) struct text asks = TEXT_INIT;
    AUTO(text) struct text since = TEXT_INIT;
    AUTO(text) struct text where = TEXT_INIT;
    AUTO(text) struct text id = TEXT_INIT;
    request_add(&asks, &v->request);
    since_add(&since, state_since(v), now_wall_us);
    add_where_or_why(&where, v, now_wall_us);
    job_view_add_id(&id, v);
    table_cell(t, id.buf);
    table_cell(t, v->user);
    table_cell(t, v->account);
    table_cell(t, v->name);
    table_cell(t, asks.buf);
    table_cell(t, state_word(v));
    table_tint(t, state_colour(v->state));
    table_cell(t, since.buf);
    table_cell(t, where.buf);
}

void queue_draw(struct job_view *jobs, size_t count, int64_t now_wall_us, const struct screen *s,
                struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "ID", 0);
    table_column(&t, "USER", TABLE_CUT);
    table_column(&t, "ACCOUNT", TABLE_CUT);
    table_column(&t, "NAME", TABLE_CUT);
    table_column(&t, "ASKS", TABLE_CUT_LATE);
    table_column(&t, "STATE", 0);
    table_column(&t, "SINCE", 0);
    table_column(&t, "WHERE / WHY", TABLE_WRAP);
    if (count)
        qsort(jobs, count, sizeof *jobs, by_rank_and_id);
    for (size_t i = 0; i < count; i++)
        add_job(&t, &jobs[i], now_wall_us);
    table_draw(&t, s, ret);
}

/* ---- one job ---- */

static void row(struct table *t, const char *what, const char *words)
{
    if (!words || !words[0])
        return;
    table_cell(t, what);
    table_cell(t, words);
}

static void row_time(struct table *t, const char *what, int64_t wall_us, int64_t now_wall_us)
{
    AUTO(text) struct text words = TEXT_INIT;
    if (!wall_us)
        return;
    when_add(&words, wall_us, now_wall_us);
    if (wall_us <= now_wall_us) {
        text_add(&words, ", ");
        since_add(&words, wall_us, now_wall_us);
        text_add(&words, " ago");
    }
    row(t, what, words.buf);
}

static void rows_who(struct table *t, const struct job_view *v)
{
    AUTO(text) struct text who = TEXT_INIT;
    AUTO(text) struct text asks = TEXT_INIT;
    AUTO(text) struct text limit = TEXT_INIT;
    text_addf(&who, "%s (%u)", v->user, (unsigned)v->uid);
    if (v->account)
        text_addf(&who, ", account %s", v->account);
    if (v->qos && v->qos[0])
        text_addf(&who, ", class %s", v->qos);
    row(t, "user", who.buf);
    request_add(&asks, &v->request);
    text_add(&asks, v->request.spread ? ", on different cards" : "");
    text_add(&asks, v->request.exact ? ", exactly" : "");
    text_add(&asks, v->request.or_7g ? ", or full slices" : "");
    row(t, "asks", asks.buf);
    if (v->limit_us)
        text_add_limit(&limit, v->limit_us);
    row(t, "limit", v->limit_us ? limit.buf : "none");
}

/* What was asked for and what the kernel took of it are two things. */
static void add_limit(struct text *t, const struct job_view *v, const char *words, int bit)
{
    text_addf(t, "%s%s%s", t->len ? ", " : "", words,
              v->enforced >= 0 && !(v->enforced & bit) ? " (not held here)" : "");
}

static void rows_limits(struct table *t, const struct job_view *v)
{
    AUTO(text) struct text limits = TEXT_INIT;
    if (v->mem_bytes) {
        AUTO(text) struct text size = TEXT_INIT;
        text_add_size(&size, v->mem_bytes);
        text_add(&size, " of memory");
        add_limit(&limits, v, size.buf, JOB_ENFORCES_MEMORY);
    }
    if (v->cpu_milli) {
        auto_free char *cpus = text_fmt("%g CPUs", v->cpu_milli / 1000.0);
        add_limit(&limits, v, cpus, JOB_ENFORCES_CPU);
    }
    if (v->cpus && v->enforced >= 0) {
        auto_free char *near = text_fmt("CPUs %s", v->cpus);
        add_limit(&limits, v, near, JOB_ENFORCES_CPUS);
    }
    if (v->pids && v->enforced >= 0) {
        auto_free char *pids = text_fmt("%u processes", (unsigned)v->pids);
        add_limit(&limits, v, pids, JOB_ENFORCES_PIDS);
    }
    if (limits.len && v->tasks > 1)
        text_add(&limits, " for each task");
    row(t, "may use", limits.buf);
}

/* What it counts for, beside its place. */
static void row_needs(struct table *t, const struct job_view *v)
{
    AUTO(text) struct text needs = TEXT_INIT;
    if (v->needs_mem_bytes) {
        text_add_size(&needs, v->needs_mem_bytes);
        text_add(&needs, " of memory");
    }
    if (v->needs_cpu_milli)
        text_addf(&needs, "%s%.3g CPUs", needs.len ? " and " : "",
                  (double)v->needs_cpu_milli / 1000);
    if (needs.len)
        text_add(&needs, " of the machine");
    row(t, "needs", needs.len ? needs.buf : NULL);
}

static void rows_where(struct table *t, const struct job_view *v)
{
    for (size_t i = 0; i < v->place.count; i++) {
        const struct placed *p = &v->place.items[i];
        AUTO(text) struct text words = TEXT_INIT;
        placed_add_text(&words, p);
        text_addf(&words, "  %s", p->uuid);
        if (v->tasks > 1)
            text_addf(&words, "  task %u", p->task);
        row(t, i ? "" : "place", words.buf);
    }
    if (v->isolation) {
        auto_free char *words = text_fmt("%s%s%s", v->isolation, v->isolation_why ? ": " : "",
                                         v->isolation_why ? v->isolation_why : "");
        row(t, "isolation", words);
    }
}

static void rows_times(struct table *t, const struct job_view *v, int64_t now_wall_us)
{
    if (v->array_id) {
        auto_free char *array = text_fmt("%" PRIu64 "_[%s], this is job %" PRIu64, v->array_id,
                                         v->array ? v->array : "", v->id);
        row(t, "array", array);
    }
    row(t, "after", v->dependency);
    row_time(t, "begins", v->begin_wall_us, now_wall_us);
    row_time(t, "deadline", v->deadline_wall_us, now_wall_us);
    row_time(t, "submitted", v->submit_wall_us, now_wall_us);
    row_time(t, "expected", v->expected_start_wall_us, now_wall_us);
    row(t, "expected on", v->expected_place);
    row_time(t, "started", v->start_wall_us, now_wall_us);
    row_time(t, "ended", v->end_wall_us, now_wall_us);
    if (v->attempt > 1) {
        auto_free char *attempt = text_fmt("%u", (unsigned)v->attempt);
        row(t, "attempt", attempt);
    }
}

static void row_preempted(struct table *t, const struct job_view *v, int64_t now_wall_us)
{
    AUTO(text) struct text words = TEXT_INIT;
    if (!v->preempted.times)
        return;
    add_preempted(&words, &v->preempted, now_wall_us);
    row(t, "preempted", words.buf);
}

static void row_gpu_use(struct table *t, const struct job_view *v)
{
    AUTO(text) struct text used = TEXT_INIT;
    const struct job_exit *x = &v->exit;
    if (!v->place.count || !v->start_wall_us || x->kind == EXIT_NONE)
        return;
    text_add(&used, "GPU memory ");
    if (x->gpu_mem_peak_bytes) {
        text_add(&used, "at most ");
        text_add_size(&used, x->gpu_mem_peak_bytes);
    } else {
        text_add(&used, "n/a (never seen on its card)");
    }
    if (x->gpu_load_known)
        text_addf(&used, ", busy for %u%% of the time", (unsigned)x->gpu_load_percent);
    else
        text_addf(&used, ", activity n/a%s",
                  v->place.items[0].whole ? "" : " (not told of its slices)");
    row(t, "", used.buf);
}

static void rows_end(struct table *t, const struct job_view *v)
{
    AUTO(text) struct text end = TEXT_INIT;
    AUTO(text) struct text used = TEXT_INIT;
    job_add_end(&end, v);
    if (end.len && v->tasks > 1 && v->exit.kind != EXIT_CANCELLED)
        text_addf(&end, " (task %d)", v->exit.task);
    row(t, "end", end.buf);
    if (v->exit.cpu_us) {
        if (v->exit.cpu_us < CLOCK_SECOND)
            text_addf(&used, "%.2fs", (double)v->exit.cpu_us / (double)CLOCK_SECOND);
        else
            text_add_duration(&used, v->exit.cpu_us);
        text_add(&used, " of CPU time");
    }
    if (v->exit.mem_peak_bytes) {
        text_add(&used, used.len ? ", at most " : "at most ");
        text_add_size(&used, v->exit.mem_peak_bytes);
        text_add(&used, " of memory");
    }
    row(t, "used", used.buf);
    row_gpu_use(t, v);
}

static void rows_private(struct table *t, const struct job_view *v)
{
    AUTO(text) struct text command = TEXT_INIT;
    for (size_t i = 0; v->argv && v->argv[i]; i++)
        text_addf(&command, "%s%s", i ? " " : "", v->argv[i]);
    row(t, v->script ? "script" : "command", command.buf);
    row(t, "directory", v->cwd);
    for (uint32_t task = 0; v->output && task < (job_output_by_task(v->output) ? v->tasks : 1);
         task++) {
        auto_free char *of_array =
            job_array_output(v->output, v->array_id ? v->array_id : v->id, v->array_index);
        auto_free char *path = job_output_path(of_array, v->id, task);
        row(t, task ? "" : "output", path);
    }
}

void job_draw(const struct job_view *v, int64_t now_wall_us, const struct screen *s,
              struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    auto_free char *name = cells_clean(v->name);
    t.untitled = true;
    table_column(&t, "", 0);
    table_column(&t, "", TABLE_WRAP);
    text_add(ret, "#");
    job_view_add_id(ret, v);
    text_addf(ret, " %s  ", name);
    screen_add(s, ret, state_colour(v->state), state_word(v));
    text_add(ret, "\n");
    row(&t, "reason", v->reason);
    rows_who(&t, v);
    row_needs(&t, v);
    rows_limits(&t, v);
    rows_where(&t, v);
    rows_times(&t, v, now_wall_us);
    row_preempted(&t, v, now_wall_us);
    rows_end(&t, v);
    rows_private(&t, v);
    table_draw(&t, s, ret);
}
