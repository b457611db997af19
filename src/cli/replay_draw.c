#include "cli/replay.h"

#include <inttypes.h>

#include "cli/table.h"

static void duration(struct table *t, double seconds)
{
    AUTO(text) struct text d = TEXT_INIT;
    text_add_duration(&d, (int64_t)(seconds * 1e6));
    table_cell(t, d.buf);
}

static void row(struct table *t, const struct variant *v)
{
    const struct replay_figures *f = &v->figures;
    table_cell(t, v->name);
    duration(t, f->wait_mean_s);
    duration(t, f->wait_p95_s);
    duration(t, f->completion_mean_s);
    table_cellf(t, "%.1f", f->slowdown_mean);
    table_cellf(t, "%.1f", f->worst_slowdown);
    table_cellf(t, "%.2f", f->jain);
    table_cellf(t, "%.0f%%", 100 * f->compute);
    table_cellf(t, "%.0f%%", 100 * f->mem);
    table_cellf(t, "%" PRIu64, f->recuts);
    table_cellf(t, "%" PRIu64, f->preemptions);
}

static void add_accounts(const struct variant *v, const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    text_addf(ret, "\n%s\n", v->name);
    table_column(&t, "ACCOUNT", TABLE_CUT);
    table_column(&t, "JOBS", TABLE_RIGHT);
    table_column(&t, "CARD-HOURS", TABLE_RIGHT);
    table_column(&t, "WAIT", TABLE_RIGHT);
    table_column(&t, "COMPLETION", TABLE_RIGHT);
    table_column(&t, "SLOWDOWN", TABLE_RIGHT);
    for (size_t i = 0; i < v->figures.account_count; i++) {
        const struct replay_account *a = &v->figures.accounts[i];
        if (!a->jobs)
            continue;
        table_cell(&t, a->name);
        table_cellf(&t, "%zu", a->jobs);
        table_cellf(&t, "%.1f", a->card_hours);
        duration(&t, a->wait_s);
        duration(&t, a->completion_s);
        table_cellf(&t, "%.1f", a->slowdown);
    }
    table_draw(&t, s, ret);
}

void replay_draw(const struct variant *v, size_t count, const struct screen *s, bool accounts,
                 struct text *ret)
{
    static const char *const titles[] = { "WAIT", "P95",  "DONE", "SLOW", "WORST",
                                          "JAIN", "COMP", "MEM",  "CUTS", "PREEMPT" };
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "POLICY", TABLE_CUT);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&t, titles[i], TABLE_RIGHT);
    for (size_t i = 0; i < count; i++)
        row(&t, &v[i]);
    table_draw(&t, s, ret);
    for (size_t i = 0; accounts && i < count; i++)
        add_accounts(&v[i], s, ret);
}

static void csv_word(struct text *t, const char *s)
{
    text_add(t, "\"");
    for (; *s; s++)
        text_addf(t, *s == '"' ? "\"\"" : "%c", *s);
    text_add(t, "\"");
}

void replay_csv(const struct variant *v, size_t count, bool accounts, struct text *ret)
{
    text_add(ret, accounts ? "policy,account,jobs,card_hours,wait_s,completion_s,slowdown\n"
                           : "policy,jobs,never,cut_short,wait_s,wait_p50_s,wait_p95_s,wait_max_s,"
                             "completion_s,completion_p50_s,completion_p95_s,slowdown,slowdown_p95,"
                             "worst_slowdown,jain,compute,memory,recuts,preemptions\n");
    for (size_t i = 0; i < count; i++) {
        const struct replay_figures *f = &v[i].figures;
        for (size_t k = 0; accounts && k < f->account_count; k++) {
            const struct replay_account *a = &f->accounts[k];
            csv_word(ret, v[i].name);
            text_add(ret, ",");
            csv_word(ret, a->name);
            text_addf(ret, ",%zu,%.3f,%.3f,%.3f,%.4f\n", a->jobs, a->card_hours, a->wait_s,
                      a->completion_s, a->slowdown);
        }
        if (accounts)
            continue;
        csv_word(ret, v[i].name);
        text_addf(ret, ",%zu,%zu,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.4f,%.4f,%.4f,%.6f,%.6f,",
                  f->jobs, f->never, f->cut_short, f->wait_mean_s, f->wait_p50_s, f->wait_p95_s,
                  f->wait_max_s, f->completion_mean_s, f->completion_p50_s, f->completion_p95_s,
                  f->slowdown_mean, f->slowdown_p95, f->worst_slowdown, f->jain, f->compute);
        text_addf(ret, "%.6f,%" PRIu64 ",%" PRIu64 "\n", f->mem, f->recuts, f->preemptions);
    }
}

static void put(json_t *j, const char *key, double x)
{
    json_put(j, key, json_real(x));
}

static json_t *accounts_json(const struct replay_figures *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->account_count; i++) {
        json_t *j = json_object();
        json_put_text(j, "account", f->accounts[i].name);
        json_put_u64(j, "jobs", f->accounts[i].jobs);
        put(j, "card_hours", f->accounts[i].card_hours);
        put(j, "wait_s", f->accounts[i].wait_s);
        put(j, "completion_s", f->accounts[i].completion_s);
        put(j, "slowdown", f->accounts[i].slowdown);
        (void)json_array_append_new(list, j); /* out of memory: a short list */
    }
    return list;
}

static json_t *figures_json(const struct variant *v)
{
    const struct replay_figures *f = &v->figures;
    json_t *j = json_object();
    json_put_text(j, "policy", v->name);
    json_put_u64(j, "jobs", f->jobs);
    json_put_u64(j, "never", f->never);
    json_put_u64(j, "cut_short", f->cut_short);
    put(j, "wait_s", f->wait_mean_s);
    put(j, "wait_p50_s", f->wait_p50_s);
    put(j, "wait_p95_s", f->wait_p95_s);
    put(j, "wait_max_s", f->wait_max_s);
    put(j, "completion_s", f->completion_mean_s);
    put(j, "completion_p50_s", f->completion_p50_s);
    put(j, "completion_p95_s", f->completion_p95_s);
    put(j, "slowdown", f->slowdown_mean);
    put(j, "slowdown_p95", f->slowdown_p95);
    put(j, "worst_slowdown", f->worst_slowdown);
    json_put_text(j, "worst_account", f->worst);
    put(j, "jain", f->jain);
    put(j, "compute", f->compute);
    put(j, "memory", f->mem);
    put(j, "span_s", f->span_s);
    json_put_u64(j, "recuts", f->recuts);
    json_put_u64(j, "preemptions", f->preemptions);
    json_put(j, "accounts", accounts_json(f));
    return j;
}

json_t *replay_json(const struct trace *t, const struct variant *v, size_t count)
{
    json_t *j = json_object();
    json_t *list = json_array();
    json_put_u64(j, "jobs", t->count);
    json_put_u64(j, "left_out", t->left_out);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, figures_json(&v[i])); /* out of memory: a short list */
    json_put(j, "policies", list);
    return j;
}
