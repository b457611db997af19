/* `divvy layout apply` through divvyd: it changes the cards, this waits and tells. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/layout.h"
#include "model/layout_order.h"

#define POLL_NS (100L * 1000 * 1000)
#define AWAY_US (10 * CLOCK_MINUTE) /* a daemon that is being upgraded comes back */

static int look(struct layout_work *w, const struct session *s, const struct layout_call *call,
                struct client *c, bool first)
{
    struct err e = ERR_INIT;
    layout_work_forget(w);
    if ((first ? client_look : client_inventory)(c, &w->inv, &e) < 0)
        return verb_fail(s, &e);
    int status = STATUS_OK;
    if (first && (call->make || call->unmake))
        status = layout_work_slice(w, s, call);
    if (status == STATUS_OK)
        status = layout_work_plan(w, s);
    if (status == STATUS_OK) {
        layout_work_ask_reboots(w, c);
        layout_work_find_holders(w);
    }
    return status;
}

static json_t *order_json(const struct layout_work *w, const struct layout_call *call)
{
    json_t *j = json_object();
    json_put_text(j, "text", w->text);
    json_put_text(j, "file", w->text ? w->layout->file : NULL);
    json_put_text(j, "label", call->label);
    json_put_text(j, "make", call->make);
    json_put_text(j, "unmake", call->unmake);
    json_put_bool(j, "wait", call->wait);
    json_put_bool(j, "agreed", true); /* layout_agree */
    json_put_bool(j, "move_idle", call->move_idle);
    return j;
}

/* The change is in divvyd's store: one that was killed meanwhile goes on with it. */
static int poll_once(struct client *c, json_t **ret, int64_t *seen_us, struct err *e)
{
    int r = client_get(c, "/v1/layout", ret, e);
    int64_t now = clock_now().boot_us;
    if (r == 0)
        *seen_us = now;
    bool away = (r == -EHOSTDOWN || r == -EREMOTEIO) && now - *seen_us < AWAY_US;
    return away ? 0 : r;
}

static bool is_over(json_t *j, uint64_t id)
{
    const char *outcome = json_string_value(json_object_get(j, "outcome"));
    return (uint64_t)json_integer_value(json_object_get(j, "id")) != id ||
           (outcome && strcmp(outcome, "open") != 0);
}

static int wait_for(struct client *c, json_t **change, struct err *e)
{
    const struct timespec pause = { .tv_nsec = POLL_NS };
    uint64_t id = (uint64_t)json_integer_value(json_object_get(*change, "id"));
    int64_t seen_us = clock_now().boot_us;
    while (!is_over(*change, id)) {
        json_t *now = NULL;
        (void)nanosleep(&pause, NULL); /* shorter is as good */
        int r = poll_once(c, &now, &seen_us, e);
        if (r < 0)
            return r;
        if (!now)
            continue;
        json_decref(*change);
        *change = now;
    }
    if ((uint64_t)json_integer_value(json_object_get(*change, "id")) != id)
        return err_set(e, -EREMOTEIO,
                       "another change of layouts was asked for meanwhile; divvy "
                       "gpus shows what came of this one");
    return 0;
}

int layout_order_post(struct client *c, json_t *order, json_t **ret_change, struct err *e)
{
    int r = client_post(c, "/v1/layout", order, ret_change, e);
    return r < 0 ? r : wait_for(c, ret_change, e);
}

static int status_of(const struct layout_work *w, json_t *change)
{
    static const int statuses[] = {
        [LAYOUT_OPEN] = STATUS_REFUSED,          [LAYOUT_DONE] = STATUS_OK,
        [LAYOUT_PARTLY] = LAYOUT_STATUS_PARTIAL, [LAYOUT_IN_USE] = LAYOUT_STATUS_BUSY,
        [LAYOUT_NO_RESET] = LAYOUT_STATUS_RESET, [LAYOUT_REFUSED] = STATUS_REFUSED,
        [LAYOUT_FAILED] = STATUS_REFUSED,        [LAYOUT_STOPPED] = STATUS_REFUSED,
        [LAYOUT_REBOOT] = LAYOUT_STATUS_RESET
    };
    enum layout_outcome o = LAYOUT_FAILED;
    const char *word = json_string_value(json_object_get(change, "outcome"));
    if (!word || layout_outcome_parse(word, &o, NULL) < 0)
        return STATUS_REFUSED;
    return o == LAYOUT_REFUSED && layout_is_refused(w) ? layout_work_status(w) : statuses[o];
}

static int finish(struct layout_work *w, const struct session *s, json_t *change)
{
    const char *reason = json_string_value(json_object_get(change, "reason"));
    uint64_t changed = (uint64_t)json_integer_value(json_object_get(change, "changed"));
    int status = status_of(w, change);
    bool told = status == STATUS_OK || status == LAYOUT_STATUS_PARTIAL;
    if (reason && !told)
        verb_note("%s", reason);
    bool waits = layout_work_worst(w) == LAYOUT_NEEDS_REBOOT;
    if (!told && !waits && status != LAYOUT_STATUS_BUSY && !s->json)
        return status;
    int printed = layout_report(w, s, changed);
    return printed == STATUS_OK || printed >= LAYOUT_STATUS_DIFFERS ? status : printed;
}

int layout_through_daemon(struct layout_work *w, struct session *s, const struct layout_call *call,
                          struct client *c)
{
    struct err e = ERR_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    int status = look(w, s, call, c, true);
    if (status != STATUS_OK)
        return status;
    if (!s->json) {
        layout_draw(w, &s->screen, &t);
        (void)verb_print(&t); /* the change is worth more than its picture */
    }
    status = layout_work_status(w);
    if (layout_is_refused(w)) {
        if (s->json)
            (void)layout_report(w, s, 0); /* the status says more */
        verb_note("nothing was changed");
        return status;
    }
    status = layout_agree(w, call);
    if (status != STATUS_OK)
        return status;
    auto_json json_t *body = order_json(w, call);
    auto_json json_t *change = NULL;
    if (layout_order_post(c, body, &change, &e) < 0)
        return verb_fail(s, &e);
    status = look(w, s, call, c, false);
    return status == STATUS_OK ? finish(w, s, change) : status;
}

/* ---- status, stop ---- */

static void add_cards(struct text *t, json_t *cards)
{
    for (size_t i = 0; i < json_array_size(cards); i++) {
        json_t *c = json_array_get(cards, i);
        const char *why = json_string_value(json_object_get(c, "why"));
        text_addf(t, "  gpu%" PRIu64 "  %s%s%s\n",
                  (uint64_t)json_integer_value(json_object_get(c, "gpu")),
                  json_string_value(json_object_get(c, "verdict")), why ? ": " : "",
                  why ? why : "");
    }
}

static void add_identities(struct text *t, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *j = json_array_get(list, i);
        text_addf(t, "  %s is %s now; it was %s\n",
                  json_string_value(json_object_get(j, "address")),
                  json_string_value(json_object_get(j, "new")),
                  json_string_value(json_object_get(j, "old")));
    }
}

void layout_add_restores(struct text *t, json_t *kept)
{
    for (size_t i = 0; i < json_array_size(kept); i++) {
        json_t *k = json_array_get(kept, i);
        const char *trouble = json_string_value(json_object_get(k, "trouble"));
        uint64_t gpu = (uint64_t)json_integer_value(json_object_get(k, "gpu"));
        if (json_is_true(json_object_get(k, "restoring")) || trouble)
            text_addf(t, "gpu%" PRIu64 " has not got its layout back%s%s%s\n", gpu,
                      json_is_true(json_object_get(k, "restoring")) ? " yet" : "",
                      trouble ? ": " : "", trouble ? trouble : "");
        add_identities(t, json_object_get(k, "identities"));
    }
}

static void add_kept(struct text *t, json_t *kept)
{
    for (size_t i = 0; i < json_array_size(kept); i++) {
        json_t *k = json_array_get(kept, i);
        json_t *slices = json_object_get(k, "slices");
        const char *trouble = json_string_value(json_object_get(k, "trouble"));
        text_addf(t, "gpu%" PRIu64 " keeps",
                  (uint64_t)json_integer_value(json_object_get(k, "gpu")));
        for (size_t n = 0; n < json_array_size(slices); n++)
            text_addf(t, "%s %s", n ? "," : "",
                      json_string_value(json_object_get(json_array_get(slices, n), "slice")));
        text_addf(t, "%s%s%s%s\n", json_array_size(slices) ? "" : " no slices",
                  json_is_true(json_object_get(k, "restoring")) ? " (being restored)" : "",
                  trouble ? ": " : "", trouble ? trouble : "");
        add_identities(t, json_object_get(k, "identities"));
    }
}

void layout_add_reboots(struct text *t, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *j = json_array_get(list, i);
        uint64_t steps = (uint64_t)json_integer_value(json_object_get(j, "steps"));
        const char *who = json_string_value(json_object_get(j, "who"));
        text_addf(t, "gpu%" PRIu64 " waits for a reboot of this machine: MIG %s is stored",
                  (uint64_t)json_integer_value(json_object_get(j, "gpu")),
                  json_is_true(json_object_get(j, "mig")) ? "on" : "off");
        if (steps)
            text_addf(t, ", and %" PRIu64 " steps follow by themselves after it", steps);
        text_addf(t, "%s%s%s\n", who ? " (" : "", who ? who : "", who ? ")" : "");
    }
}

static void draw_change(struct text *t, json_t *j)
{
    const char *outcome = json_string_value(json_object_get(j, "outcome"));
    const char *who = json_string_value(json_object_get(j, "who"));
    const char *step = json_string_value(json_object_get(j, "step"));
    const char *reason = json_string_value(json_object_get(j, "reason"));
    if (!outcome) {
        text_add(t, "No layout was asked for yet.\n");
    } else if (strcmp(outcome, "open") != 0) {
        text_addf(t, "The last change (%s): %s%s%s\n", who, outcome, reason ? ": " : "",
                  reason ? reason : "");
    } else if (step) {
        text_addf(t, "A change (%s) is under way, step %" PRIu64 " of %" PRIu64 ": %s\n", who,
                  (uint64_t)json_integer_value(json_object_get(j, "steps_done")) + 1,
                  (uint64_t)json_integer_value(json_object_get(j, "steps")), step);
    } else {
        text_addf(t, "A change (%s) waits:\n", who);
        add_cards(t, json_object_get(j, "cards"));
    }
    layout_add_reboots(t, json_object_get(j, "reboots"));
    add_kept(t, json_object_get(j, "kept"));
}

int layout_show_change(struct session *s, const struct layout_call *call)
{
    int status = STATUS_OK;
    struct err e = ERR_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    auto_json json_t *j = NULL;
    if (call->file)
        return verb_usage(s, "status takes no file");
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_get(c, "/v1/layout", &j, &e) < 0)
        return verb_fail(s, &e);
    if (s->json)
        return verb_print_json(j);
    draw_change(&t, j);
    return verb_print(&t);
}

int layout_stop_change(struct session *s, const struct layout_call *call)
{
    int status = STATUS_OK;
    struct err e = ERR_INIT;
    if (call->file)
        return verb_usage(s, "stop takes no file");
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    return client_post(c, "/v1/layout/stop", NULL, NULL, &e) < 0 ? verb_fail(s, &e) : STATUS_OK;
}
