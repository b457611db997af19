/* `divvy maintenance`: give cards to the administrator, and take them back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cards.h"
#include "cli/layout.h"
#include "cli/maintenance.h"
#include "config/moment.h"

static const char doc[] =
    "Give cards to an administrator: for a new driver, a reset, a screwdriver.\v"
    "  begin [CARD...]  no new jobs; when those that run have ended, stop the\n"
    "                   services of divvy.yaml, wait for who else has the cards\n"
    "                   open, and let go of the driver. Without cards: all\n"
    "  end              open the driver, check its versions, and give the cards\n"
    "                   back one by one, with the layouts that they keep; start\n"
    "                   the services. Cards that did not come back are tried again\n"
    "  plan FROM UNTIL [CARD...]\n"
    "                   from then on the cards are to be free: no job starts on\n"
    "                   them that may run for longer. After that they take jobs\n"
    "                   again\n"
    "  cancel ID        of a plan\n"
    "  status           where it stands, who is in the way, which cards stay out,\n"
    "                   and what is planned\n\n"
    "begin and end wait until it is so: --wait for so long at most, --no-wait not "
    "at all. It goes on meanwhile; nobody is ended for it.\n\n"
    "  divvy maintenance plan 'tomorrow' now+30h gpu0 --reason 'new riser'\n"
    "  divvy maintenance begin && apt install … && divvy maintenance end";

static const struct argp_option options[] = {
    { "no-wait", 'n', NULL, 0, "come back at once", 1 },
    { "wait", 'w', "TIME", 0, "wait for so long at most (90s, 10m); exit status 13 then", 1 },
    { "reason", 'r', "TEXT", 0, "plan: what for", 1 },
    { 0 },
};

struct maintenance_call {
    const char *words[67];
    size_t count;
    bool no_wait;
    int64_t limit_us; /* 0: none */
    const char *reason;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct maintenance_call *c = state->input;
    struct err e = ERR_INIT;
    switch (key) {
    case 'n':
        c->no_wait = true;
        return 0;
    case 'w':
        if (text_parse_duration(arg, "--wait", &c->limit_us, &e) < 0 || c->limit_us <= 0)
            verb_refuse("%s", e.text[0] ? e.text : "--wait takes a time: 90s, 10m");
        return 0;
    case 'r':
        c->reason = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (c->count == sizeof c->words / sizeof *c->words)
            verb_refuse("more cards than a server has");
        c->words[c->count++] = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *word_of(json_t *j, const char *key)
{
    return json_string_value(json_object_get(j, key));
}

static void add_gpus(struct text *t, json_t *gpus)
{
    for (size_t i = 0; i < json_array_size(gpus); i++)
        text_addf(t, " gpu%" PRIu64, (uint64_t)json_integer_value(json_array_get(gpus, i)));
}

static void add_window(struct text *t, json_t *w, int64_t now_us)
{
    json_t *holders = json_object_get(w, "holders");
    text_addf(t, "Planned %" PRIu64 ":", (uint64_t)json_integer_value(json_object_get(w, "id")));
    add_gpus(t, json_object_get(w, "gpus"));
    text_add(t, json_is_true(json_object_get(w, "begun")) ? ", since " : ", from ");
    when_add(t, json_integer_value(json_object_get(w, "from_wall_us")), now_us);
    text_add(t, " until ");
    when_add(t, json_integer_value(json_object_get(w, "until_wall_us")), now_us);
    text_addf(t, ", by %s%s%s\n", word_of(w, "who"), word_of(w, "reason") ? ": " : "",
              word_of(w, "reason") ? word_of(w, "reason") : "");
    for (size_t i = 0; i < json_array_size(holders); i++)
        text_addf(t, "  may still be there: %s\n", json_string_value(json_array_get(holders, i)));
}

static void add_planned(struct text *t, json_t *j)
{
    json_t *planned = json_object_get(j, "planned");
    for (size_t i = 0; i < json_array_size(planned); i++)
        add_window(t, json_array_get(planned, i), clock_now().wall_us);
}

void maintenance_add_out(struct text *t, json_t *out)
{
    for (size_t i = 0; i < json_array_size(out); i++) {
        json_t *card = json_array_get(out, i);
        text_addf(t, "  gpu%" PRIu64 " stays out: %s\n",
                  (uint64_t)json_integer_value(json_object_get(card, "gpu")), word_of(card, "why"));
    }
}

void maintenance_add_state(struct text *t, json_t *j)
{
    json_t *gpus = json_object_get(j, "gpus");
    json_t *holders = json_object_get(j, "holders");
    const char *phase = word_of(j, "phase");
    if (phase && strcmp(phase, "none") != 0) {
        text_addf(t, "Maintenance by %s is %s%s", word_of(j, "who"), phase,
                  json_array_size(gpus) ? ":" : "");
        add_gpus(t, gpus);
        text_add(t, "\n");
        for (size_t i = 0; i < json_array_size(holders); i++)
            text_addf(t, "  in the way: %s\n", json_string_value(json_array_get(holders, i)));
        if (word_of(j, "trouble"))
            text_addf(t, "  %s\n", word_of(j, "trouble"));
    } else if (json_array_size(json_object_get(j, "out"))) {
        text_add(t, "Maintenance has ended.\n");
    }
    maintenance_add_out(t, json_object_get(j, "out"));
}

static int show(const struct session *s, json_t *j)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (s->json)
        return verb_print_json(j);
    maintenance_add_state(&t, j);
    add_planned(&t, j);
    if (!t.len)
        text_add(&t, "No maintenance.\n");
    return verb_print(&t);
}

/* Whoever is in the way, whenever others are than before: the wait is worth more. */
static void tell_holders(const struct session *s, json_t *now, json_t **told)
{
    json_t *holders = json_object_get(now, "holders");
    if (s->json || !json_array_size(holders) || json_equal(holders, *told))
        return;
    (void)show(s, now);
    json_decref(*told);
    *told = json_incref(holders);
}

/* It has ended, or time is up. */
static int show_end(const struct session *s, json_t *now, bool late)
{
    int status = show(s, now);
    if (late)
        return LAYOUT_STATUS_BUSY;
    bool ended = text_same(word_of(now, "phase"), "none");
    return status == STATUS_OK && ended && json_array_size(json_object_get(now, "out"))
               ? LAYOUT_STATUS_PARTIAL
               : status;
}

/* Until it stands there, or something is to be told. */
static int wait_for(const struct session *s, struct client *c, const char *phase, json_t *j,
                    int64_t limit_us)
{
    const struct timespec pause = { .tv_nsec = 100L * 1000 * 1000 };
    int64_t until_us = limit_us ? clock_now().boot_us + limit_us : INT64_MAX;
    auto_json json_t *told = NULL;
    auto_json json_t *now = json_incref(j);
    while (word_of(now, "phase") && strcmp(word_of(now, "phase"), phase) != 0) {
        struct err e = ERR_INIT;
        json_t *next = NULL;
        tell_holders(s, now, &told);
        if (clock_now().boot_us > until_us)
            return show_end(s, now, true);
        (void)nanosleep(&pause, NULL); /* shorter is as good */
        int r = client_get(c, "/v1/maintenance", &next, &e);
        if (r < 0 && r != -EHOSTDOWN && r != -EREMOTEIO)
            return verb_fail(s, &e);
        if (!next)
            continue; /* divvyd is coming back */
        json_decref(now);
        now = next;
        bool back = strcmp(phase, "none") == 0 && text_same(word_of(now, "phase"), "away") &&
                    !json_is_true(json_object_get(now, "ending"));
        if (back || word_of(now, "trouble")) {
            verb_note("%s", word_of(now, "trouble") ? word_of(now, "trouble") : "it is away still");
            return STATUS_REFUSED;
        }
    }
    return show_end(s, now, false);
}

/* Cards from that word on. False: one is none. */
static bool put_gpus(struct session *s, const struct maintenance_call *m, size_t first,
                     json_t *body)
{
    json_t *gpus = json_array();
    json_put(body, "gpus", gpus);
    for (size_t i = first; i < m->count; i++) {
        uint32_t ordinal = 0;
        if (!cards_parse(s, m->words[i], &ordinal))
            return false;
        (void)json_array_append_new(gpus, json_integer(ordinal)); /* divvyd counts them */
    }
    return true;
}

static int send(struct session *s, const struct maintenance_call *m, json_t *body)
{
    int status = STATUS_OK;
    struct err e = ERR_INIT;
    bool begin = strcmp(m->words[0], "begin") == 0, end = strcmp(m->words[0], "end") == 0;
    auto_json json_t *answer = NULL;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_post(c, "/v1/maintenance", body, &answer, &e) < 0)
        return verb_fail(s, &e);
    if (m->no_wait || !(begin || end))
        return show(s, answer);
    return wait_for(s, c, begin ? "away" : "none", answer, m->limit_us);
}

static int change(struct session *s, const struct maintenance_call *m)
{
    auto_json json_t *body = json_object();
    json_put_text(body, "action", m->words[0]);
    return put_gpus(s, m, 1, body) ? send(s, m, body) : STATUS_USAGE;
}

static int plan(struct session *s, const struct maintenance_call *m)
{
    struct err e = ERR_INIT;
    int64_t from_us, until_us, now_us = clock_now().wall_us;
    auto_json json_t *body = json_object();
    if (m->count < 3)
        return verb_usage(s, "say from when to when: divvy maintenance plan 22:00 now+12h gpu0");
    if (moment_parse(m->words[1], now_us, "FROM", &from_us, &e) < 0 ||
        moment_parse(m->words[2], now_us, "UNTIL", &until_us, &e) < 0)
        return verb_usage(s, "%s", e.text);
    json_put_text(body, "action", "plan");
    json_put(body, "from_wall_us", json_integer(from_us));
    json_put(body, "until_wall_us", json_integer(until_us));
    if (m->reason)
        json_put_text(body, "reason", m->reason);
    return put_gpus(s, m, 3, body) ? send(s, m, body) : STATUS_USAGE;
}

static int cancel(struct session *s, const struct maintenance_call *m)
{
    char *end = NULL;
    uint64_t id = m->count == 2 ? strtoull(m->words[1], &end, 10) : 0;
    auto_json json_t *body = json_object();
    if (!id || *end || id > INT64_MAX)
        return verb_usage(s, "say which plan: divvy maintenance cancel ID, as divvy maintenance "
                             "lists them");
    json_put_text(body, "action", "cancel");
    json_put_u64(body, "id", id);
    return send(s, m, body);
}

int verb_maintenance(struct session *s, int argc, char **argv)
{
    struct maintenance_call m = { .count = 0 };
    struct verb_words words = {
        .options = options,
        .parser = parse,
        .args = "begin [CARD...]\nend\nplan FROM UNTIL [CARD...]\ncancel ID\nstatus",
        .doc = doc
    };
    verb_parse(s, &words, argc, argv, &m);
    if (m.count && strcmp(m.words[0], "begin") == 0)
        return change(s, &m);
    if (m.count && strcmp(m.words[0], "plan") == 0)
        return plan(s, &m);
    if (m.count && strcmp(m.words[0], "cancel") == 0)
        return cancel(s, &m);
    if (m.count == 1 && strcmp(m.words[0], "end") == 0)
        return change(s, &m);
    if (m.count != 0 && (m.count > 1 || strcmp(m.words[0], "status") != 0))
        return verb_usage(
            s, "say what: divvy maintenance begin [CARD...], end, plan, cancel or status");
    int status = STATUS_OK;
    struct err e = ERR_INIT;
    auto_json json_t *j = NULL;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    return client_get(c, "/v1/maintenance", &j, &e) < 0 ? verb_fail(s, &e) : show(s, j);
}
