#include <inttypes.h>

#include "cli/layout.h"
#include "cli/maintenance.h"
#include "cli/table.h"
#include "cli/verb.h"

static const char doc[] = "The daemon, the driver, the cards and the queue in a few lines.\v"
                          "After divvyd has been started: divvy status --wait 10s";

static const struct argp_option options[] = {
    { "wait", 'w', "TIME", 0, "until divvyd answers, for so long at most (10s, 1m)", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    int64_t *wait_us = state->input;
    struct err e = ERR_INIT;
    if (key != 'w')
        return ARGP_ERR_UNKNOWN;
    if (text_parse_duration(arg, "--wait", wait_us, &e) < 0)
        verb_refuse("%s", e.text);
    return 0;
}

static void row(struct table *t, const char *what, const char *words)
{
    table_cell(t, what);
    table_cell(t, words);
}

static void row_daemon(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    text_addf(&words, "%s, pid %d, up ", v->version, (int)v->pid);
    since_add(&words, v->started_wall_us, clock_now().wall_us);
    row(t, "divvyd", words.buf);
    text_clear(&words);
    text_addf(&words, "%s%s", v->root, v->private_root ? ", private: for its own user only" : "");
    row(t, "root", words.buf);
}

static void row_driver(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    text_add(&words, v->driver_version ? v->driver_version : "n/a");
    if (v->driver_trouble)
        text_addf(&words, ": %s", v->driver_trouble);
    row(t, "driver", words.buf);
    if (v->driver_trouble)
        table_tint(t, COLOUR_BAD);
}

static void row_isolation(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    text_add(&words, v->isolation ? v->isolation : "n/a");
    if (v->isolation_why)
        text_addf(&words, ": %s", v->isolation_why);
    row(t, "isolation", words.buf);
}

static void row_cards(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    text_addf(&words, "%u, %u of them in pool queue", v->cards, v->cards_queue);
    if (v->cards_trouble)
        text_addf(&words, ", %u in trouble (divvy gpus tells)", v->cards_trouble);
    row(t, "cards", words.buf);
    if (v->cards_trouble)
        table_tint(t, COLOUR_BAD);
}

static void row_jobs(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    uint32_t under_way = v->jobs[JOB_PREPARING] + v->jobs[JOB_STARTING] + v->jobs[JOB_ENDING];
    uint32_t ended = 0;
    for (int s = JOB_COMPLETED; s < JOB_STATES; s++)
        ended += v->jobs[s];
    text_addf(&words, "%u running, %u waiting", v->jobs[JOB_RUNNING], v->jobs[JOB_PENDING]);
    if (under_way)
        text_addf(&words, ", %u starting or ending", under_way);
    text_addf(&words, ", %u ended", ended);
    row(t, "jobs", words.buf);
}

/* What jobs were promised of it, whether they use it or not. */
static void row_machine(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    if (v->mem_bytes) {
        text_add_size(&words, v->mem_used_bytes);
        text_add(&words, " of ");
        text_add_size(&words, v->mem_bytes);
        text_add(&words, " of memory");
    }
    if (v->cpu_milli)
        text_addf(&words, "%s%g of %g CPUs", words.len ? ", " : "",
                  (double)v->cpu_used_milli / 1000, (double)v->cpu_milli / 1000);
    if (!words.len)
        return;
    text_add(&words, " given to jobs");
    row(t, "machine", words.buf);
}

static void row_promises(struct table *t, const struct daemon_view *v)
{
    AUTO(text) struct text words = TEXT_INIT;
    const struct promises *p = &v->promises;
    uint64_t count = promises_count(p);
    int64_t bound = promises_bound_us(p, 90);
    if (!count)
        return;
    text_addf(&words, "%" PRIu64 " expected and come, off by ", count);
    text_add_duration(&words, (int64_t)promises_mean_us(p));
    text_add(&words, " on average, 9 in 10 by ");
    text_add(&words, bound == INT64_MAX ? "more than a day" : "at most ");
    if (bound != INT64_MAX)
        text_add_limit(&words, bound);
    text_addf(&words, "; %" PRIu64 " later than was said", p->late);
    row(t, "starts", words.buf);
}

/* Lines with a newline each; none: no row. */
static void row_lines(struct table *t, const char *what, struct text *lines)
{
    if (!lines->len)
        return;
    lines->buf[lines->len - 1] = '\0';
    row(t, what, lines->buf);
    table_tint(t, COLOUR_BAD);
}

/* What an administrator has under way, when there is something. */
static void row_layouts(struct table *t, struct client *c)
{
    AUTO(text) struct text words = TEXT_INIT;
    auto_json json_t *j = NULL;
    if (client_get(c, "/v1/layout", &j, NULL) < 0)
        return; /* the other lines tell how it is */
    layout_add_reboots(&words, json_object_get(j, "reboots"));
    layout_add_restores(&words, json_object_get(j, "kept"));
    row_lines(t, "layouts", &words);
}

static void row_maintenance(struct table *t, struct client *c)
{
    AUTO(text) struct text words = TEXT_INIT;
    auto_json json_t *j = NULL;
    if (client_get(c, "/v1/maintenance", &j, NULL) < 0)
        return; /* as above */
    maintenance_add_state(&words, j);
    row_lines(t, "maintenance", &words);
}

int verb_status(struct session *s, int argc, char **argv)
{
    struct daemon_view v = { .version = NULL };
    AUTO(table) struct table t = TABLE_INIT;
    AUTO(text) struct text out = TEXT_INIT;
    struct err e = ERR_INIT;
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    int64_t wait_us = 0;
    verb_parse(s, &words, argc, argv, &wait_us);
    AUTO_PTR(client_close) struct client *c = NULL;
    if (client_open_by(s->root, clock_now().boot_us + wait_us, &c, &e) < 0)
        return verb_fail(s, &e);
    if (client_daemon(c, &v, &e) < 0)
        return verb_fail(s, &e);
    if (s->json) {
        int status = verb_print_json(v.json);
        daemon_view_done(&v);
        return status;
    }
    t.untitled = true;
    table_column(&t, "", 0);
    table_column(&t, "", TABLE_WRAP);
    row_daemon(&t, &v);
    row_driver(&t, &v);
    row_isolation(&t, &v);
    row_cards(&t, &v);
    row_jobs(&t, &v);
    row_machine(&t, &v);
    row_promises(&t, &v);
    row_layouts(&t, c);
    row_maintenance(&t, c);
    table_draw(&t, &s->screen, &out);
    daemon_view_done(&v);
    return verb_print(&out);
}
