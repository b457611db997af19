#include "cli/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "config/board.h"
#include "config/layout.h"
#include "plan/carry.h"
#include "plan/layout.h"

enum {
    KEY_GPUS = 0x1301,
    KEY_HALF_LIFE,
    KEY_STRICT,
    KEY_NO_SHARES,
    KEY_INSIDE,
    KEY_PREEMPT,
    KEY_DEFAULT_TIME,
    KEY_LAYOUT,
    KEY_GUESS,
    KEY_CSV,
    KEY_ACCOUNTS
};

#define NODE_CARDS_MAX 1024u

struct replay_call {
    const char *trace;
    uint64_t gpus; /* 0: not given */
    struct inventory inv;
    struct bulk bulk;
    struct variant variants[REPLAY_POLICIES_MAX];
    size_t count;
    double guess; /* 0: limits as they are */
    bool csv, accounts;
};

static const char doc[] =
    "What the queue would have done with jobs of the past, policy beside policy.\vTRACE is the "
    "history of divvy (divvy history --csv, or --json), another CSV, what sacct -P prints, or "
    "lines of submit time and duration in seconds, cards, and account. The cards are --node or "
    "--gpus. --policy names a divvy.yaml, of which shares, limits, classes and times count; what "
    "follows it changes it, each option once, and stands for the defaults where no --policy came "
    "before (they are --policy /dev/null, too).\n\n"
    "  divvy history --csv --from 2026-10-01 >october.csv\n"
    "  divvy replay october.csv --node a100-80gb:8 -p now.yaml -p new.yaml\n"
    "  divvy replay october.csv --node a100-80gb:8 -p now.yaml --half-life 7d\n"
    "  divvy replay october.csv --node a100-80gb:8 -p now.yaml \\\n"
    "               -p now.yaml --layout cut.yaml";

static const struct argp_option options[] = {
    { NULL, 0, NULL, 0, "On which cards:", 1 },
    { "node", 'n', "BOARD[:N]", 0, "N cards of this board; may be given again", 1 },
    { "gpus", KEY_GPUS, "N", 0, "N whole cards that are only counted", 1 },
    { NULL, 0, NULL, 0, "By which policy:", 2 },
    { "policy", 'p', "FILE", 0, "the scheduling part of a divvy.yaml; up to 16", 2 },
    { "half-life", KEY_HALF_LIFE, "TIME", 0, "of used shares", 2 },
    { "default-time", KEY_DEFAULT_TIME, "TIME", 0, "limit of jobs that name none", 2 },
    { "inside", KEY_INSIDE, "users|fifo|las", 0, "the order inside accounts not in the file", 2 },
    { "no-shares", KEY_NO_SHARES, NULL, 0, "first come, first served over all accounts", 2 },
    { "strict", KEY_STRICT, NULL, 0, "nobody passes the first that does not fit", 2 },
    { "preempt", KEY_PREEMPT, "service,shares", 0,
      "stop jobs that had more service (las), or whose account has the larger share", 2 },
    { "layout", KEY_LAYOUT, "FILE", 0, "these slices are cut first, and kept", 2 },
    { NULL, 0, NULL, 0, "Other:", 3 },
    { "guess-limits", KEY_GUESS, "U", 0, "limits of run time x 1 to U, evenly", 3 },
    { "accounts", KEY_ACCOUNTS, NULL, 0, "each account's figures as well", 3 },
    { "csv", KEY_CSV, NULL, 0, "comma-separated", 3 },
    { 0 },
};

/* ---- words ----------------------------------------------------------------- */

static void add_variant(struct replay_call *c, const char *path)
{
    struct err e = ERR_INIT;
    if (c->count == REPLAY_POLICIES_MAX)
        verb_refuse("up to %u policies are compared at a time", REPLAY_POLICIES_MAX);
    if (variant_init(&c->variants[c->count], path, &e) < 0)
        verb_refuse("%s", e.text);
    c->count++;
}

/* The policy that options change now, and its name with what they change. */
static struct replay_policy *changed(struct replay_call *c, int key, const char *option,
                                     const char *arg)
{
    if (!c->count)
        add_variant(c, NULL);
    struct variant *v = &c->variants[c->count - 1];
    uint32_t bit = UINT32_C(1) << (key - KEY_GPUS);
    if (v->changed & bit)
        verb_refuse("--%s twice for one policy: --policy FILE between them makes two to compare "
                    "(/dev/null: the defaults)",
                    option);
    v->changed |= bit;
    char *name = text_fmt("%s --%s%s%s", v->name, option, arg ? " " : "", arg ? arg : "");
    free(v->name);
    v->name = name;
    return &v->policy;
}

static int64_t take_time(const char *arg, const char *what)
{
    struct err e = ERR_INIT;
    int64_t us = 0;
    if (text_parse_duration(arg, what, &us, &e) < 0)
        verb_refuse("%s", e.text);
    return us;
}

static enum sched_inside take_inside(const char *arg)
{
    static const char *const words[] = {
        [SCHED_USERS] = "users", [SCHED_FIFO] = "fifo", [SCHED_LAS] = "las"
    };
    for (size_t i = 0; i < 3; i++)
        if (strcmp(arg, words[i]) == 0)
            return (enum sched_inside)i;
    verb_refuse("--inside '%.32s' is none of users, fifo and las", arg);
}

static void take_preempt(struct replay_call *c, const char *arg)
{
    struct replay_policy *p = changed(c, KEY_PREEMPT, "preempt", arg);
    auto_free char *words = text_dup(arg);
    char *save = NULL;
    for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strcmp(w, "service") == 0)
            p->sched.preempt_las = true;
        else if (strcmp(w, "shares") == 0)
            p->sched.preempt_shares = true;
        else
            verb_refuse("--preempt '%.32s' is neither service nor shares", w);
    }
}

static void take_number(const char *arg, uint64_t max, const char *what, uint64_t *ret)
{
    struct err e = ERR_INIT;
    if (text_parse_u64(arg, 1, max, what, ret, &e) < 0)
        verb_refuse("%s", e.text);
}

static void take_guess(struct replay_call *c, const char *arg)
{
    char *end;
    c->guess = strtod(arg, &end);
    if (*end || !(c->guess >= 1 && c->guess <= 1000))
        verb_refuse("--guess-limits '%.32s' is no number from 1 to 1000", arg);
}

/* ---- cards ----------------------------------------------------------------- */

static void add_card(struct inventory *inv, const struct board *b)
{
    size_t alloc = inv->card_count; /* grown by one: there are few */
    ARRAY_ROOM(inv->cards, alloc, inv->card_count + 1);
    struct inventory_card *c = &inv->cards[inv->card_count];
    memset(c, 0, sizeof *c);
    c->pool = POOL_QUEUE;
    c->mode = MODE_AUTO;
    c->owners_known = true;
    c->idle_since_boot_us = 1;
    c->card.board = *b;
    c->card.mig_capable = b->activation != MIG_NONE;
    c->card.mem_total_bytes = b->mem_bytes;
    c->card.ordinal = c->card.index = c->card.minor = (uint32_t)inv->card_count;
    (void)snprintf(c->card.uuid, sizeof c->card.uuid, "GPU-%08x", c->card.ordinal); /* fits */
    (void)snprintf(c->card.bus_id, sizeof c->card.bus_id, "%08x:01:00.0", c->card.ordinal);
    inv->card_count++;
}

static void take_node(struct replay_call *c, const char *arg)
{
    auto_free struct board *b = mem_new(sizeof *b);
    auto_free char *key = text_dup(arg);
    char *number = strrchr(key, ':');
    uint64_t n = 1;
    struct err e = ERR_INIT;
    if (number) {
        *number++ = '\0';
        take_number(number, NODE_CARDS_MAX, "--node: the number of cards", &n);
    }
    if (board_find(key, b, &e) < 0)
        verb_refuse("%s", e.text);
    if (c->inv.card_count + n > NODE_CARDS_MAX)
        verb_refuse("up to %u cards; more are only counted: --gpus N", NODE_CARDS_MAX);
    for (uint64_t i = 0; i < n; i++)
        add_card(&c->inv, b);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct replay_call *c = state->input;
    switch (key) {
    case 'n':
        take_node(c, arg);
        return 0;
    case KEY_GPUS:
        take_number(arg, BULK_CARDS_MAX, "--gpus", &c->gpus);
        return 0;
    case 'p':
        add_variant(c, arg);
        return 0;
    case KEY_HALF_LIFE:
        changed(c, key, "half-life", arg)->sched.half_life_us = take_time(arg, "--half-life");
        return 0;
    case KEY_DEFAULT_TIME:
        changed(c, key, "default-time", arg)->default_time_us = take_time(arg, "--default-time");
        return 0;
    case KEY_INSIDE:
        changed(c, key, "inside", arg)->inside = take_inside(arg);
        return 0;
    case KEY_NO_SHARES: {
        struct replay_policy *p = changed(c, key, "no-shares", NULL);
        p->pooled = true;
        p->sched.order.share = 0;
        return 0;
    }
    case KEY_STRICT:
        changed(c, key, "strict", NULL)->sched.strict = true;
        return 0;
    case KEY_PREEMPT:
        take_preempt(c, arg);
        return 0;
    case KEY_LAYOUT:
        (void)changed(c, key, "layout", arg); /* its name */
        c->variants[c->count - 1].layout = arg;
        return 0;
    case KEY_GUESS:
        take_guess(c, arg);
        return 0;
    case KEY_ACCOUNTS:
        c->accounts = true;
        return 0;
    case KEY_CSV:
        c->csv = true;
        return 0;
    case ARGP_KEY_ARG:
        if (c->trace)
            verb_refuse("one trace at a time, not '%s' as well", arg);
        c->trace = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- the layout ------------------------------------------------------------ */

static int cut(struct inventory_card *c, struct inventory *inv, const struct layout_wish *w,
               struct err *e)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    layout_plan(c, w, &ch);
    if (ch.verdict > LAYOUT_TO_DO)
        return err_set(e, -EINVAL, "gpu%u: %s", c->card.ordinal, ch.why);
    (void)carry_steps(inv, &ch.steps); /* before the first job: no cut of the queue's */
    for (size_t i = 0; i < c->card.slice_count; i++)
        c->slices[i].adopted = true; /* kept as it is */
    if (w->has_mode)
        c->mode = w->mode;
    return 0;
}

static int lay_out(const char *file, struct inventory *inv, struct err *e)
{
    AUTO(layout) struct layout l = LAYOUT_INIT;
    int r = layout_read(file, &l, e);
    if (r < 0)
        return r;
    auto_free const struct layout_wish **wishes = mem_new((inv->card_count + 1) * sizeof *wishes);
    r = layout_assign(&l, inv, wishes, e);
    for (size_t i = 0; r >= 0 && i < inv->card_count; i++)
        if (wishes[i])
            r = cut(&inv->cards[i], inv, wishes[i], e);
    return r;
}

/* ---- the verb -------------------------------------------------------------- */

static int read_trace(const struct replay_call *c, struct trace *t, struct err *e)
{
    auto_free char *text = NULL;
    size_t len;
    const char *path = strcmp(c->trace, "-") == 0 ? "/dev/stdin" : c->trace;
    int r = file_read(AT_FDCWD, path, TRACE_BYTES_MAX, &text, &len, e);
    if (r >= 0)
        r = trace_parse(c->trace, text, len, t, e);
    if (r >= 0 && c->guess > 0)
        trace_guess_limits(t, c->guess, 1);
    return r;
}

static int print(const struct session *s, const struct replay_call *c, const struct trace *t)
{
    AUTO(text) struct text out = TEXT_INIT;
    if (s->json) {
        auto_json json_t *j = replay_json(t, c->variants, c->count);
        return verb_print_json(j);
    }
    if (c->csv) {
        replay_csv(c->variants, c->count, c->accounts, &out);
        return verb_print(&out);
    }
    text_addf(&out, "%zu jobs", t->count);
    if (t->left_out)
        text_addf(&out, " (%zu left out: never ran, or on no card)", t->left_out);
    if (c->variants[0].figures.never)
        text_addf(&out, ", %zu of them for cards that are not there", c->variants[0].figures.never);
    text_add(&out, "\n");
    replay_draw(c->variants, c->count, &s->screen, c->accounts, &out);
    return verb_print(&out);
}

/* The cards as this one finds them. Ended by inventory_done. */
static int cards_for(const struct replay_call *c, const struct variant *v, struct inventory *ret,
                     struct err *e)
{
    carry_copy(&c->inv, ret);
    int r = v->layout ? lay_out(v->layout, ret, e) : 0;
    if (r < 0)
        inventory_done(ret);
    return r;
}

static int run(const struct replay_call *c, const struct trace *t, struct variant *v, struct err *e)
{
    AUTO(replay_result) struct replay_result res = REPLAY_RESULT_INIT;
    struct inventory inv;
    int r = cards_for(c, v, &inv, e);
    if (r < 0)
        return r;
    replay_run(t, &inv, &v->policy, &res);
    replay_figures(t, &res, &v->figures);
    inventory_done(&inv);
    return v->figures.jobs
               ? 0
               : err_set(e, -ENOSPC, "none of the %zu jobs of %s can run on these cards", t->count,
                         c->trace);
}

static int replay(const struct session *s, struct replay_call *c)
{
    AUTO(trace) struct trace t = TRACE_INIT;
    struct err e = ERR_INIT;
    if (read_trace(c, &t, &e) < 0)
        return verb_fail(s, &e);
    for (size_t i = 0; i < c->count; i++)
        if (run(c, &t, &c->variants[i], &e) < 0)
            return verb_fail(s, &e);
    return print(s, c, &t);
}

static int check(const struct session *s, const struct replay_call *c)
{
    if (!c->trace)
        return verb_usage(s, "which trace? 'divvy history --csv >FILE' makes one");
    if (!c->gpus && !c->inv.card_count)
        return verb_usage(s, "on which cards? --node a100-80gb:8, or --gpus N for cards that are "
                             "only counted");
    if (c->gpus && c->inv.card_count)
        return verb_usage(s, "either --node or --gpus, not both");
    for (size_t i = 0; c->gpus && i < c->count; i++)
        if (c->variants[i].layout)
            return verb_usage(s, "cards that are only counted have no layout; name them by --node");
    return STATUS_OK;
}

int verb_replay(struct session *s, int argc, char **argv)
{
    auto_free struct replay_call *c = mem_new(sizeof *c);
    struct verb_words words = { .options = options, .parser = parse, .args = "TRACE", .doc = doc };
    verb_parse(s, &words, argc, argv, c);
    int status = check(s, c);
    if (status == STATUS_OK && !c->count)
        add_variant(c, NULL);
    if (c->gpus) {
        c->bulk = (struct bulk){ .cards = (uint32_t)c->gpus, .free = (uint32_t)c->gpus };
        c->inv.bulk = &c->bulk;
    }
    if (status == STATUS_OK)
        status = replay(s, c);
    c->inv.bulk = NULL; /* it stands in the call itself */
    for (size_t i = 0; i < c->count; i++)
        variant_done(&c->variants[i]);
    inventory_done(&c->inv);
    return status;
}
