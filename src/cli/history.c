#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/filter.h"
#include "cli/period.h"
#include "cli/table.h"
#include "cli/verb.h"

#define HOUR_US 3.6e9

struct history_call {
    struct filter filter;
    struct period period;
    bool csv;
};

static const char doc[] =
    "Attempts that ended, oldest first.\vWithout --from: those of the last seven days. --csv is "
    "what 'divvy replay' reads. Kept longer than the jobs themselves: see usage_retention in "
    "divvy.yaml(5).";

static const struct argp_option options[] = {
    FILTER_OPTIONS('M'),
    PERIOD_OPTIONS,
    { "csv", 'c', NULL, 0, "comma-separated, with a line of names", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct history_call *c = state->input;
    if (period_parse(key, arg, &c->period) || filter_parse(key, arg, &c->filter))
        return 0;
    if (key != 'c')
        return ARGP_ERR_UNKNOWN;
    c->csv = true;
    return 0;
}

/* ---- one attempt ---- */

static void time_csv(struct text *t, int64_t wall_us)
{
    struct tm tm;
    char buf[32] = "";
    time_t s = (time_t)(wall_us / CLOCK_SECOND);
    if (wall_us && gmtime_r(&s, &tm))
        (void)strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%S", &tm); /* it fits */
    text_add(t, buf);
    if (buf[0])
        text_addf(t, ".%06uZ", (unsigned)(wall_us % CLOCK_SECOND));
}

static void request_csv(struct text *t, const struct request *r)
{
    if (r->kind == REQUEST_CARDS)
        text_addf(t, "%u", r->count);
    text_add(t, ",");
    if (r->kind == REQUEST_SLICES)
        text_addf(t, "%s:%u", r->profile, r->count);
    text_add(t, ",");
    if (r->kind == REQUEST_NEED && r->mem_bytes)
        text_addf(t, "%" PRIu64, r->mem_bytes);
    text_add(t, ",");
    if (r->kind == REQUEST_NEED && r->compute_ppm)
        text_addf(t, "%.6f", r->compute_ppm / 1e6);
}

/* Of the machine, as it was asked for. */
static void machine_csv(struct text *t, const struct job_view *v)
{
    if (v->mem_bytes)
        text_addf(t, "%" PRIu64, v->mem_bytes);
    text_add(t, ",");
    if (v->cpu_milli)
        text_addf(t, "%g", v->cpu_milli / 1000.0);
    text_add(t, "\n");
}

static const char *state_word(const struct job_view *v)
{
    if (v->state != JOB_PENDING)
        return job_state_word(v->state);
    return v->preempted.times ? "preempted" : "requeued";
}

static void row_csv(struct text *t, const struct job_view *v, json_t *j)
{
    text_addf(t, "%" PRIu64 ",", v->id);
    csv_add(t, v->user);
    text_add(t, ",");
    csv_add(t, v->account);
    text_add(t, ",");
    csv_add(t, json_string_value(json_object_get(j, "qos")));
    text_add(t, ",");
    csv_add(t, v->name);
    text_add(t, ",");
    request_csv(t, &v->request);
    text_add(t, ",");
    time_csv(t, v->submit_wall_us);
    text_add(t, ",");
    time_csv(t, v->start_wall_us);
    text_add(t, ",");
    time_csv(t, v->end_wall_us);
    text_addf(t, ",%.0f,%s,%s,", (double)v->limit_us / (double)CLOCK_SECOND, state_word(v),
              v->attached ? "yes" : "no");
    machine_csv(t, v);
}

static void row_table(struct table *t, const struct job_view *v, json_t *j, int64_t now_us)
{
    AUTO(text) struct text asks = TEXT_INIT;
    AUTO(text) struct text ran = TEXT_INIT;
    AUTO(text) struct text ended = TEXT_INIT;
    json_t *usage = json_object_get(j, "usage");
    double seen = json_number_value(json_object_get(usage, "seen_card_hours"));
    request_add(&asks, &v->request);
    text_add_duration(&ran,
                      v->end_wall_us > v->start_wall_us ? v->end_wall_us - v->start_wall_us : 0);
    when_add(&ended, v->end_wall_us, now_us);
    table_cellf(t, "%" PRIu64 ".%u", v->id, v->attempt);
    table_cell(t, v->user);
    table_cell(t, v->account);
    table_cell(t, v->name);
    table_cell(t, asks.buf);
    table_cell(t, state_word(v));
    table_cell(t, ended.buf);
    table_cell(t, ran.buf);
    table_cellf(t, "%.2f", json_number_value(json_object_get(usage, "held_card_hours")));
    if (seen > 0)
        table_cellf(t, "%.0f%%",
                    100 * json_number_value(json_object_get(usage, "idle_card_hours")) / seen);
    else
        table_cell(t, "n/a");
}

/* ---- all of them ---- */

static void head(struct table *t)
{
    static const struct {
        const char *title;
        unsigned flags;
    } columns[] = { { "ID", 0 },
                    { "USER", TABLE_CUT },
                    { "ACCOUNT", TABLE_CUT },
                    { "NAME", TABLE_CUT },
                    { "ASKS", TABLE_CUT_LATE },
                    { "STATE", 0 },
                    { "ENDED", 0 },
                    { "RAN", TABLE_RIGHT },
                    { "CARD-H", TABLE_RIGHT },
                    { "IDLE", TABLE_RIGHT } };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_column(t, columns[i].title, columns[i].flags);
}

static int write_rows(const struct session *s, json_t *list, bool csv, struct text *ret,
                      struct err *e)
{
    AUTO(table) struct table t = TABLE_INIT;
    int64_t now_us = clock_now().wall_us;
    head(&t);
    if (csv)
        text_add(ret, "id,user,account,qos,name,gpus,slice,gpu_mem,gpu_compute,submitted,started,"
                      "ended,limit,state,attached,memory,cpus\n");
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct job_view v;
        json_t *j = json_array_get(list, i);
        int r = job_view_from_json(j, &v, e);
        if (r < 0)
            return r;
        if (csv)
            row_csv(ret, &v, j);
        else
            row_table(&t, &v, j, now_us);
        job_view_done(&v);
    }
    if (!csv && json_array_size(list))
        table_draw(&t, &s->screen, ret);
    else if (!csv && s->screen.tty)
        text_add(ret, "No job ended in that time.\n");
    return 0;
}

static int print(struct session *s, json_t *list, bool csv)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    if (s->json) {
        auto_json json_t *j = json_object();
        json_put(j, "jobs", json_incref(list));
        return verb_print_json(j);
    }
    return write_rows(s, list, csv, &t, &e) < 0 ? verb_fail(s, &e) : verb_print(&t);
}

int verb_history(struct session *s, int argc, char **argv)
{
    struct history_call call = { .csv = false };
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    struct history_filter filter;
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    auto_json json_t *list = NULL;
    verb_parse(s, &words, argc, argv, &call);
    if (call.csv && s->json)
        return verb_usage(s, "--csv and --json contradict each other");
    /* A period of days is cut at midnight; without one, the last seven days up to this moment. */
    bool days = call.period.by_month || call.period.by_day;
    if (!period_settle(&call.period, 19700101, 99991231))
        return verb_usage(s, "--to is before --from");
    filter_of_history(s, &call.filter, &filter);
    filter.from_wall_us =
        days ? day_begin(call.period.from_day) : clock_now().wall_us - 7 * CLOCK_DAY;
    filter.to_wall_us = days ? day_begin(call.period.to_day) : INT64_MAX;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_history(c, &filter, &list, &e) < 0)
        return verb_fail(s, &e);
    if (!json_array_size(list))
        status = verb_check_names(s, c, filter.user, filter.account);
    return status == STATUS_OK ? print(s, list, call.csv) : status;
}
