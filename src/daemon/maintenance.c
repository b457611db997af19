/* Maintenance: drain, stop, let go; and back. */
#include "daemon/maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/layouts.h"
#include "daemon/windows.h"
#include "model/address.h"

#define META "maintenance"
#define AGAIN_US (5 * CLOCK_SECOND)
#define LOOK_US CLOCK_SECOND
#define SAID_MAX 4096u
#define FABRIC_MANAGER "/usr/bin/nv-fabricmanager"

static const char *const words[] = { "none", "draining",  "stopping", "waiting",
                                     "away", "returning", "starting" };

/* ---- the store ---- */

void maintenance_save(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    struct err e = ERR_INIT;
    auto_json json_t *j = json_object();
    json_put_text(j, "phase", words[m->phase]);
    json_put_text(j, "who", m->who);
    json_put(j, "cards", json_strv(m->cards));
    json_put_u64(j, "stopped", m->stopped);
    json_put_bool(j, "ending", m->ending);
    json_put(j, "out", maintenance_out_json(d));
    auto_free char *text = json_dumps(j, JSON_COMPACT);
    if (text && turn_write(d) && store_set_meta(d->store, META, text, &e) < 0)
        log_line(LOG_ERROR, "the store's maintenance: %s", e.text);
    d->inventory_stale = d->schedule = true;
}

static int read_out(json_t *j, struct maintenance *m, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "the store's maintenance", e);
    const char *uuid = fields_text(&f, "uuid", FIELD_REQUIRED, CARD_UUID_SIZE - 1);
    const char *why = fields_text(&f, "why", FIELD_REQUIRED, ERR_TEXT_MAX - 1);
    int r = fields_close(&f, FIELDS_OPEN);
    if (r == 0)
        maintenance_add_out(m, uuid, why);
    return r;
}

static int read_saved(json_t *j, struct maintenance *m, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "the store's maintenance", e);
    const char *phase = fields_text(&f, "phase", FIELD_REQUIRED, 16);
    m->who = text_dup(fields_text(&f, "who", FIELD_OPTIONAL, 64));
    m->cards = fields_strv(&f, "cards", FIELD_OPTIONAL, 1024, 1024 * CARD_UUID_SIZE);
    m->stopped = fields_u64(&f, "stopped", FIELD_OPTIONAL, 0, 1024, 0);
    m->ending = fields_bool(&f, "ending", false);
    json_t *out = fields_array(&f, "out", FIELD_OPTIONAL, 1024);
    int r = fields_close(&f, FIELDS_OPEN);
    for (size_t i = 0; r == 0 && i < json_array_size(out); i++)
        r = read_out(json_array_get(out, i), m, e);
    for (size_t i = 0; r == 0 && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], phase) == 0)
            m->phase = (enum maintenance_phase)i;
    return r;
}

bool maintenance_away(const struct daemon *d)
{
    return d->maintenance->phase == MAINTENANCE_AWAY;
}

bool maintenance_unchecked(const struct daemon *d)
{
    return d->maintenance->phase == MAINTENANCE_RETURNING && !d->maintenance->checked;
}

static void say_away(struct daemon *d)
{
    (void)snprintf(d->driver_trouble, sizeof d->driver_trouble,
                   "maintenance by %s: Divvy has let go of the driver; divvy maintenance end "
                   "opens it again",
                   d->maintenance->who ? d->maintenance->who : "somebody");
}

int maintenance_load(struct daemon *d, struct err *e)
{
    auto_free char *text = NULL;
    auto_json json_t *j = NULL;
    d->maintenance = mem_new(sizeof *d->maintenance);
    *d->maintenance = (struct maintenance){ .output = -1, .said = TEXT_INIT };
    int r = store_meta(d->store, META, &text, e);
    if (r == 0 && text)
        r = json_parse(text, strlen(text), "the store's maintenance", &j, e);
    if (r == 0 && j)
        r = read_saved(j, d->maintenance, e);
    if (r == 0 && maintenance_away(d))
        say_away(d);
    return r;
}

static void forget_program(struct maintenance *m)
{
    m->io = sd_event_source_disable_unref(m->io);
    if (m->output >= 0)
        (void)close(m->output); /* read to its end, or given up */
    m->output = -1;
    m->runs = false;
}

void maintenance_done(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    if (!m)
        return;
    forget_program(m);
    text_done(&m->said);
    strv_free(m->cards);
    json_decref(m->there);
    free(m->out);
    free(m->who);
    free(m);
    d->maintenance = NULL;
}

static void go_to(struct daemon *d, enum maintenance_phase phase)
{
    struct maintenance *m = d->maintenance;
    m->phase = phase;
    m->trouble[0] = '\0';
    m->again_us = 0;
    m->closing = false;
    json_decref(take_ptr(m->there));
    log_line(LOG_NOTE, "maintenance: %s", words[phase]);
    maintenance_save(d);
}

static void trouble(struct maintenance *m, const char *why)
{
    if (strcmp(m->trouble, why) != 0)
        log_line(LOG_WARN, "maintenance: %s", why);
    (void)snprintf(m->trouble, sizeof m->trouble, "%s", why); /* cut when longer */
    m->again_us = clock_now().boot_us + AGAIN_US;
}

/* ---- programs ---- */

static void program_ended(struct daemon *d);

static int on_output(sd_event_source *s, int fd, uint32_t revents, void *user)
{
    struct daemon *d = user;
    struct maintenance *m = d->maintenance;
    char buf[1024];
    ssize_t n = read(fd, buf, sizeof buf);
    (void)s, (void)revents; /* there is one */
    if (n > 0) {
        if (m->said.len + (size_t)n <= SAID_MAX)
            text_addn(&m->said, buf, (size_t)n);
        return 0;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    program_ended(d);
    return 0;
}

/* The kernel reaps children here, so the shell writes how the program ended. */
static int start_program(struct daemon *d, const char *const words_of_it[3], struct err *e)
{
    struct maintenance *m = d->maintenance;
    static const char script[] = "\"$@\" 2>&1; echo \"exit $?\"";
    char *argv[] = { (char *)"sh",           (char *)"-c",
                     (char *)script,         (char *)"sh",
                     (char *)words_of_it[0], (char *)words_of_it[1],
                     (char *)words_of_it[2], NULL };
    int pipe_of[2];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, defaults;
    pid_t pid;
    if (pipe2(pipe_of, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_sys(e, "cannot start %s", words_of_it[0]);
    (void)sigemptyset(&none); /* these cannot fail */
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGCHLD);
    (void)sigaddset(&defaults, SIGPIPE);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &defaults);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, pipe_of[1], 1);
    int r = -posix_spawn(&pid, "/bin/sh", &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    (void)close(pipe_of[1]); /* the child's */
    if (r == 0)
        r = sd_event_add_io(d->event, &m->io, pipe_of[0], EPOLLIN, on_output, d);
    if (r < 0) {
        (void)close(pipe_of[0]); /* nobody reads it */
        return err_set(e, r, "cannot start %s: %s", words_of_it[0], strerror(-r));
    }
    m->output = pipe_of[0];
    m->runs = true;
    text_clear(&m->said);
    return 0;
}

static void run_service(struct daemon *d, const char *verb, const char *service)
{
    struct err e = ERR_INIT;
    const char *argv[3] = { d->config.maintenance.command, verb, service };
    if (start_program(d, argv, &e) < 0)
        trouble(d->maintenance, e.text);
}

/* The last line of what it wrote, cut off: "exit 0". */
static int exit_of(struct text *said)
{
    char *last = strstr(said->buf, "exit ");
    for (char *next = last; next; next = strstr(next + 1, "exit "))
        last = next;
    if (!last)
        return -1;
    int status = atoi(last + 5);
    *last = '\0';
    return status;
}

static void version_answered(struct daemon *d, int status)
{
    struct maintenance *m = d->maintenance;
    m->asks_version = false;
    if (status == 0 && !strstr(m->said.buf, d->driver_version)) {
        auto_free char *why =
            text_fmt("the fabric manager is not of the driver's version %s: %.200s",
                     d->driver_version, m->said.buf);
        go_to(d, MAINTENANCE_AWAY);
        children_pause(&d->children);
        say_away(d);
        trouble(m, why);
        return;
    }
    m->checked = true;
}

static void program_ended(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    int status = exit_of(&m->said);
    forget_program(m);
    if (m->asks_version) {
        version_answered(d, status);
        return;
    }
    bool stops = m->phase == MAINTENANCE_STOPPING;
    const struct field_words *services = &d->config.maintenance.services;
    size_t at = stops ? (size_t)m->stopped : (size_t)m->stopped - 1;
    if (status != 0) {
        auto_free char *why =
            text_fmt("'%s %s %s' failed: %.300s", d->config.maintenance.command,
                     stops ? "stop" : "start", at < services->count ? services->words[at] : "",
                     m->said.len ? m->said.buf : "it said nothing");
        trouble(m, why);
        if (stops)
            return; /* tried again: what holds the card is in the way of what comes */
    }
    m->stopped = stops ? m->stopped + 1 : m->stopped - 1;
    maintenance_save(d);
}

/* ---- steps ---- */

bool maintenance_has(const struct maintenance *m, const char *uuid)
{
    for (size_t i = 0; m->cards && m->cards[i]; i++)
        if (strcmp(m->cards[i], uuid) == 0)
            return true;
    return false;
}

static bool drained(const struct daemon *d)
{
    const struct cut *c;
    for (size_t i = 0; (c = cuts_next(d, &i));)
        for (size_t k = 0; d->maintenance->cards && d->maintenance->cards[k]; k++)
            if (apply_touches(&c->apply, d->maintenance->cards[k]))
                return false;
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        const struct inventory_card *card = &d->inventory.cards[i];
        if (!maintenance_has(d->maintenance, card->card.uuid))
            continue;
        if (card->hold.kind == HOLD_JOB)
            return false;
        for (size_t k = 0; k < card->card.slice_count; k++)
            if (card->slices[k].hold.kind == HOLD_JOB)
                return false;
    }
    return true;
}

static void stopping_turn(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    if (m->stopped < d->config.maintenance.services.count)
        run_service(d, "stop", d->config.maintenance.services.words[m->stopped]);
    else
        go_to(d, MAINTENANCE_WAITING);
}

static const char *name_of(uid_t uid, void *arg)
{
    return uid == (uid_t)-1 ? NULL : user_name(arg, uid);
}

static void add_there(struct daemon *d, const struct card *c, const struct holders *h, json_t *list)
{
    for (size_t i = 0; i < h->count; i++) {
        AUTO(text) struct text t = TEXT_INIT;
        text_addf(&t, "gpu%u: ", c->ordinal);
        holder_add_text(&t, &h->list[i], name_of, d);
        (void)json_array_append_new(list, json_string(t.buf)); /* a short list */
    }
}

/* By what the driver lists and by who has a device node open; a job's own processes, too. */
static bool anybody_there(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    json_t *list = json_array();
    bool block = false;
    for (size_t i = 0; i < d->card_count; i++) {
        AUTO(holders) struct holders h = HOLDERS_INIT;
        const struct card_memory *c = d->cards[i];
        if (!maintenance_has(m, c->row.uuid) || !c->present)
            continue;
        holders_find(d->paths.driver_root, &c->last, NOT_AN_INSTANCE, &h);
        block = block || holders_block(&h);
        add_there(d, &c->last, &h, list);
    }
    json_decref(m->there);
    m->there = list;
    return block;
}

static void waiting_turn(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    size_t i = 0;
    m->closing = m->closing || !anybody_there(d);
    m->again_us = m->closing ? 0 : clock_now().boot_us + LOOK_US;
    if (!m->closing) {
        children_refresh(&d->children);
        return;
    }
    d->inventory_stale = true;
    if (cuts_next(d, &i))
        return; /* a plan on another card is under way */
    children_pause(&d->children);
    go_to(d, MAINTENANCE_AWAY);
    say_away(d);
}

static void returning_turn(struct daemon *d)
{
    if (maintenance_return_cards(d, !d->maintenance->fabric) && !layouts_cut(d)->open)
        go_to(d, MAINTENANCE_STARTING);
}

static void end_all(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    m->ending = false;
    if (m->phase == MAINTENANCE_STARTING && m->checked)
        (void)maintenance_return_cards(d, true); /* those that waited for the services */
    m->checked = false;
    strv_free(take_ptr(m->cards));
    go_to(d, MAINTENANCE_NONE);
}

static void starting_turn(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    if (m->stopped > d->config.maintenance.services.count)
        m->stopped = d->config.maintenance.services.count; /* the list is shorter now */
    if (m->stopped)
        run_service(d, "start", d->config.maintenance.services.words[m->stopped - 1]);
    else
        end_all(d);
}

void maintenance_turn(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    if (m->out_count && turn_write(d) && maintenance_forget_out(d))
        maintenance_save(d);
    if (m->phase == MAINTENANCE_NONE || m->runs || clock_now().boot_us < m->again_us)
        return;
    if (m->phase != MAINTENANCE_AWAY && !turn_write(d))
        return;
    if (d->inventory_stale && m->phase != MAINTENANCE_AWAY)
        cards_rebuild(d);
    if (m->phase == MAINTENANCE_DRAINING && m->ending)
        end_all(d);
    else if (m->phase == MAINTENANCE_DRAINING && d->snapshot_came && drained(d))
        go_to(d, MAINTENANCE_STOPPING);
    else if ((m->phase == MAINTENANCE_STOPPING || m->phase == MAINTENANCE_WAITING) && m->ending)
        go_to(d, MAINTENANCE_STARTING);
    else if (m->phase == MAINTENANCE_STOPPING)
        stopping_turn(d);
    else if (m->phase == MAINTENANCE_WAITING && d->snapshot_came)
        waiting_turn(d);
    else if (m->phase == MAINTENANCE_AWAY && m->ending && turn_write(d)) {
        children_resume(&d->children);
        m->checked = false;
        m->ending = false;
        go_to(d, MAINTENANCE_RETURNING);
    } else if (m->phase == MAINTENANCE_RETURNING && m->checked)
        returning_turn(d);
    else if (m->phase == MAINTENANCE_STARTING)
        starting_turn(d);
}

/* ---- versions ---- */

static void disagree(struct daemon *d, const char *why)
{
    struct maintenance *m = d->maintenance;
    children_pause(&d->children);
    go_to(d, MAINTENANCE_AWAY);
    say_away(d);
    trouble(m, why);
}

void maintenance_no_driver(struct daemon *d, const struct err *why)
{
    if (d->maintenance->phase == MAINTENANCE_RETURNING)
        disagree(d, why->text);
}

void maintenance_snapshot(struct daemon *d, const struct snapshot *s)
{
    struct maintenance *m = d->maintenance;
    struct err e = ERR_INIT;
    auto_free char *kernel = NULL;
    size_t len;
    if (m->phase != MAINTENANCE_RETURNING || m->checked || m->runs)
        return;
    auto_free char *path = file_under(d->paths.driver_root, "/proc/driver/nvidia/version");
    if (file_read(AT_FDCWD, path, 4096, &kernel, &len, NULL) == 0 &&
        !strstr(kernel, s->driver_version)) {
        auto_free char *why = text_fmt("the library is of driver %s and the kernel module is not: "
                                       "%.200s",
                                       s->driver_version, kernel);
        disagree(d, why);
        return;
    }
    auto_free char *fabric = file_under(d->paths.driver_root, FABRIC_MANAGER);
    const char *argv[3] = { fabric, "--version", NULL };
    d->layouts->driver_was_gone = true; /* what cards keep is looked for */
    m->fabric = access(fabric, X_OK) == 0;
    if (m->fabric && start_program(d, argv, &e) == 0)
        m->asks_version = true;
    else
        m->checked = true;
}

/* ---- what is told ---- */

void maintenance_mark(struct daemon *d)
{
    struct maintenance *m = d->maintenance;
    if (!m || m->phase == MAINTENANCE_NONE)
        return;
    bool all = maintenance_away(d) || maintenance_unchecked(d) || m->closing;
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        struct inventory_card *c = &d->inventory.cards[i];
        if (all || maintenance_has(m, c->card.uuid))
            (void)snprintf(c->reserved, sizeof c->reserved, "maintenance by %s (%s)",
                           m->who ? m->who : "somebody", words[m->phase]); /* cut when longer */
    }
}

static void add_hold(json_t *list, const struct hold *h, const char *where)
{
    if (h->kind == HOLD_NONE)
        return;
    auto_free char *words_of_it =
        h->kind == HOLD_JOB
            ? text_fmt("%s: #%" PRIu64 " %s %s", where, h->job_id, h->user, h->name)
            : text_fmt("%s: pid %d %s, which is no Divvy job", where, (int)h->pid, h->name);
    (void)json_array_append_new(list, json_string(words_of_it)); /* a short list */
}

/* Jobs are waited for; who else is there is told. */
static json_t *holders(const struct daemon *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < d->inventory.card_count; i++) {
        const struct inventory_card *c = &d->inventory.cards[i];
        auto_free char *name = text_fmt("gpu%u", c->card.ordinal);
        if (!maintenance_has(d->maintenance, c->card.uuid))
            continue;
        add_hold(list, &c->hold, name);
        for (size_t k = 0; k < c->card.slice_count; k++) {
            AUTO(text) struct text t = TEXT_INIT;
            address_add(&t, &c->card, &c->card.slices[k]);
            add_hold(list, &c->slices[k].hold, t.buf);
        }
    }
    return list;
}

json_t *maintenance_op_show(void *ctx)
{
    const struct daemon *d = ctx;
    const struct maintenance *m = d->maintenance;
    json_t *j = json_object();
    json_t *gpus = json_array();
    for (size_t i = 0; i < d->card_count; i++)
        if (maintenance_has(m, d->cards[i]->row.uuid))
            (void)json_array_append_new(gpus, json_integer(d->cards[i]->row.ordinal));
    json_put_text(j, "phase", words[m->phase]);
    json_put_text(j, "who", m->phase ? m->who : NULL);
    json_put(j, "gpus", gpus);
    json_put_u64(j, "services_stopped", m->stopped);
    json_put_bool(j, "ending", m->ending);
    json_put_text(j, "trouble", m->trouble[0] ? m->trouble : NULL);
    json_t *there = m->phase == MAINTENANCE_DRAINING ? holders(d)
                    : m->there                       ? json_incref(m->there)
                                                     : json_array();
    json_put(j, "holders", there);
    json_put(j, "out", maintenance_out_json(d));
    json_put(j, "planned", windows_to_json(d));
    return j;
}

/* ---- begin, end ---- */

static int begin(struct daemon *d, const char *who, const struct maintenance_order *o,
                 struct err *e)
{
    struct maintenance *m = d->maintenance;
    if (m->phase != MAINTENANCE_NONE)
        return err_set(e, -EBUSY,
                       "maintenance by %s is under way (%s); divvy maintenance end "
                       "ends it",
                       m->who, words[m->phase]);
    char **cards = NULL;
    for (size_t i = 0; i < d->card_count; i++) {
        bool named = !o->count;
        for (size_t k = 0; k < o->count; k++)
            named = named || o->gpus[k] == d->cards[i]->row.ordinal;
        if (named)
            strv_add(&cards, d->cards[i]->row.uuid);
    }
    size_t n = 0;
    while (cards && cards[n])
        n++;
    if (!n || (o->count && n != o->count)) {
        strv_free(cards);
        return err_set(e, -ENOENT, "there is no such card here; divvy gpus shows what there is");
    }
    free(m->who);
    m->who = text_dup(who);
    m->cards = cards;
    m->stopped = 0;
    m->ending = false;
    go_to(d, MAINTENANCE_DRAINING);
    return 0;
}

static int end(struct daemon *d, struct err *e)
{
    struct maintenance *m = d->maintenance;
    if (m->phase == MAINTENANCE_NONE && maintenance_again(m)) {
        m->checked = false;
        go_to(d, MAINTENANCE_RETURNING);
        children_refresh(&d->children);
        return 0;
    }
    if (m->phase == MAINTENANCE_NONE)
        return err_set(e, -EALREADY, "no maintenance is under way");
    if (m->phase < MAINTENANCE_RETURNING)
        m->ending = true;
    m->again_us = 0;
    m->trouble[0] = '\0';
    maintenance_save(d);
    return 0;
}

static int change(struct daemon *d, const char *who, const struct maintenance_order *o,
                  struct err *e)
{
    switch (o->action) {
    case MAINTENANCE_BEGIN:
        return begin(d, who, o, e);
    case MAINTENANCE_PLAN:
        return windows_plan(d, who, o, e);
    case MAINTENANCE_CANCEL:
        return windows_cancel(d, o->id, e);
    case MAINTENANCE_END:
        break;
    }
    return end(d, e);
}

void maintenance_op_change(void *ctx, struct api_request *req, const struct api_caller *who,
                           const struct maintenance_order *o)
{
    struct daemon *d = ctx;
    struct err e = ERR_INIT;
    int r = turn_write(d)
                ? 0
                : err_set(&e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
    if (r == 0)
        r = change(d, user_name(d, who->uid), o, &e);
    struct owed owed = { .request = req, .kind = r < 0 ? OWED_ERROR : OWED_JSON, .err = e };
    if (r == 0)
        owed.json = maintenance_op_show(d);
    turn_owe(d, &owed);
}
