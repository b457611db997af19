#include <inttypes.h>

#include "base/clock.h"
#include "cli/period.h"
#include "cli/table.h"
#include "cli/verb.h"

#define HOUR_US 3.6e9

struct usage_call {
    struct ledger ledger;
    struct period period;
    bool csv;
};

static const char doc[] =
    "What was handed out, and how much of it was used.\vOne line for each user (or account, "
    "profile, card), in card hours: a slice counts with its share of the card. ASKED is time "
    "limits times share, HELD what was had, IDLE the part of it on which no process was seen, BUSY "
    "how busy the cards said they were. "
    "Without options: this month, by user.";

static const struct argp_option options[] = {
    { "by", 'b', "WHAT", 0, "a line for each user, account, profile or card", 1 },
    PERIOD_OPTIONS,
    { "csv", 'c', NULL, 0, "comma-separated, with a line of names", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct usage_call *c = state->input;
    struct err e = ERR_INIT;
    if (period_parse(key, arg, &c->period))
        return 0;
    switch (key) {
    case 'b':
        if (ledger_by_parse(arg, &c->ledger.by, &e) < 0)
            verb_refuse("%s", e.text);
        return 0;
    case 'c':
        c->csv = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char *title(enum ledger_by by)
{
    static const char *const titles[] = { "USER", "ACCOUNT", "PROFILE", "CARD" };
    return titles[by];
}

static void add_percent(struct table *t, double part, double whole)
{
    if (whole > 0)
        table_cellf(t, "%.0f%%", 100 * part / whole);
    else
        table_cell(t, "n/a");
}

static void draw(const struct ledger *l, const struct screen *s, struct text *ret)
{
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, title(l->by), TABLE_CUT);
    table_column(&t, "PARTS", TABLE_RIGHT);
    table_column(&t, "ASKED", TABLE_RIGHT);
    table_column(&t, "HELD", TABLE_RIGHT);
    table_column(&t, "COMPUTE", TABLE_RIGHT);
    table_column(&t, "MEMORY", TABLE_RIGHT);
    table_column(&t, "IDLE", TABLE_RIGHT);
    table_column(&t, "BUSY", TABLE_RIGHT);
    for (size_t i = 0; i < l->count; i++) {
        const struct held *h = &l->lines[i]->sum;
        table_cell(&t, l->lines[i]->key);
        table_cellf(&t, "%" PRIu64, h->parts);
        table_cellf(&t, "%.2f", h->asked / HOUR_US);
        table_cellf(&t, "%.2f", h->held / HOUR_US);
        table_cellf(&t, "%.2f", h->compute / HOUR_US);
        table_cellf(&t, "%.2f", h->mem / HOUR_US);
        add_percent(&t, h->idle, h->seen);
        add_percent(&t, h->busy, h->measured);
    }
    table_draw(&t, s, ret);
}

/* Nothing known is no number. */
static void add_known(struct text *t, double part, double of)
{
    if (of > 0)
        text_addf(t, "%.6f", part / HOUR_US);
}

static void write_csv(const struct ledger *l, struct text *ret)
{
    text_addf(ret,
              "%s,parts,asked_card_hours,held_card_hours,compute_card_hours,memory_card_hours,"
              "seen_card_hours,idle_card_hours,measured_card_hours,busy_card_hours\n",
              ledger_by_word(l->by));
    for (size_t i = 0; i < l->count; i++) {
        const struct held *h = &l->lines[i]->sum;
        csv_add(ret, l->lines[i]->key);
        text_addf(ret, ",%" PRIu64 ",%.6f,%.6f,%.6f,%.6f,%.6f,", h->parts, h->asked / HOUR_US,
                  h->held / HOUR_US, h->compute / HOUR_US, h->mem / HOUR_US, h->seen / HOUR_US);
        add_known(ret, h->idle, h->seen);
        text_addf(ret, ",%.6f,", h->measured / HOUR_US);
        add_known(ret, h->busy, h->measured);
        text_add(ret, "\n");
    }
}

static int print(struct session *s, const struct usage_call *c)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (s->json) {
        auto_json json_t *j = ledger_to_json(&c->ledger);
        return verb_print_json(j);
    }
    if (c->csv)
        write_csv(&c->ledger, &t);
    else if (c->ledger.count)
        draw(&c->ledger, &s->screen, &t);
    else if (s->screen.tty)
        text_add(&t, "Nothing was handed out in that time.\n");
    return verb_print(&t);
}

int verb_usage_of(struct session *s, int argc, char **argv)
{
    struct usage_call call = { .ledger = LEDGER_INIT };
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    verb_parse(s, &words, argc, argv, &call);
    if (call.csv && s->json)
        return verb_usage(s, "--csv and --json contradict each other");
    int32_t today = day_of(clock_now().wall_us);
    if (!period_settle(&call.period, today / 100 * 100 + 1, day_next(today)))
        return verb_usage(s, "--to is before --from");
    call.ledger.from_day = call.period.from_day;
    call.ledger.to_day = call.period.to_day;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_usage(c, &call.ledger, &e) < 0)
        return verb_fail(s, &e);
    status = print(s, &call);
    ledger_done(&call.ledger);
    return status;
}
