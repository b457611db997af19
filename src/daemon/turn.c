/* One turn: decide, commit, and only then answer, send and start. */
#include "daemon/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include "base/killpoint.h"
#include "base/log.h"
#include "daemon/hooks.h"
#include "daemon/layouts.h"
#include "daemon/maintenance.h"
#include "daemon/windows.h"
#include "daemon/tells.h"

#define ROUNDS_MAX 64
#define STALL_US CLOCK_SECOND
/* So long may what a job's folder tells, too, wait for something that must be on disk. */
#define NOTE_US (CLOCK_SECOND / 100)

static void stall(struct daemon *d, const struct err *why)
{
    d->stalled_until_us = clock_now().boot_us + STALL_US;
    memcpy(d->stalled_why, why->text, sizeof d->stalled_why);
}

bool turn_note(struct daemon *d)
{
    struct err e = ERR_INIT;
    int64_t now_us = clock_now().boot_us;
    if (now_us < d->stalled_until_us)
        return false;
    if (store_is_open(d->store))
        return true;
    if (store_begin(d->store, &e) == 0) {
        d->commit_boot_us = now_us + NOTE_US;
        return true;
    }
    log_line(LOG_ERROR, "%s", e.text);
    stall(d, &e);
    return false;
}

bool turn_write(struct daemon *d)
{
    if (!turn_note(d))
        return false;
    d->commit_boot_us = 0;
    return true;
}

/* Is anything written that must be on disk before the turn goes on? */
static bool commit_due(const struct daemon *d)
{
    return store_is_open(d->store) && clock_now().boot_us >= d->commit_boot_us;
}

void turn_owe(struct daemon *d, const struct owed *o)
{
    ARRAY_ROOM(d->owed, d->owed_alloc, d->owed_count + 1);
    d->owed[d->owed_count++] = *o;
}

void turn_todo(struct daemon *d, struct job *j)
{
    for (size_t i = 0; i < d->todo_count; i++)
        if (d->todo[i] == j)
            return;
    ARRAY_ROOM(d->todo, d->todo_alloc, d->todo_count + 1);
    d->todo[d->todo_count++] = j;
}

static void answer(struct owed *o)
{
    switch (o->kind) {
    case OWED_SUBMITTED:
        api_answer_submitted(o->request, o->id, o->note);
        break;
    case OWED_OK:
        api_answer_ok(o->request, o->note);
        break;
    case OWED_JSON:
        api_answer_json(o->request, take_ptr(o->json));
        break;
    case OWED_ERROR:
        api_answer_error(o->request, &o->err);
        break;
    }
}

/* Gives every answer of this turn; with `failed`, what was written was not kept. */
static void answer_all(struct daemon *d, const struct err *failed)
{
    for (size_t i = 0; i < d->owed_count; i++) {
        struct owed *o = &d->owed[i];
        if (failed && o->kind != OWED_ERROR) {
            o->kind = OWED_ERROR;
            o->err = *failed;
        }
        answer(o);
        free(o->note);
        json_decref(o->json);
        KILLPOINT(ANSWERED);
    }
    d->owed_count = 0;
}

/*
 * The store kept nothing of this turn, so the picture is wrong: it is thrown
 * away and read again, as at a start. What runs is not touched by that.
 */
static void start_over(struct daemon *d, const struct err *why)
{
    struct err e = ERR_INIT;
    log_line(LOG_ERROR, "nothing of this turn was kept: %s", why->text);
    answer_all(d, why);
    hooks_forget(d);
    d->tell_count = 0;
    d->todo_count = 0;
    d->send_step = false;
    d->cutting = NULL;
    stall(d, why);
    maintenance_done(d);
    windows_done(d);
    layouts_done(d);
    jobs_done(d);
    cards_done(d);
    if (cards_load(d, &e) < 0 || jobs_load(d, &e) < 0 || layouts_load(d, &e) < 0 ||
        maintenance_load(d, &e) < 0 || windows_load(d, &e) < 0) {
        log_line(LOG_ERROR, "the store cannot be read either; ending: %s", e.text);
        (void)sd_event_exit(d->event, EXIT_FAILURE); /* the loop is ours */
        return;
    }
    d->recover_cuts = true;
    d->cut_lost_boot_us = clock_now().boot_us;
    d->snapshot_came = false;
    children_refresh(&d->children);
}

static void carry_out(struct daemon *d)
{
    while (d->todo_count) {
        struct job *j = d->todo[--d->todo_count];
        attempt_carry_out(j);
    }
}

/* True while there may be more to do without waiting. */
static bool round_done(struct daemon *d)
{
    struct err e = ERR_INIT;
    bool stalled = clock_now().boot_us < d->stalled_until_us;
    if (!stalled) {
        maintenance_turn(d);
        layouts_turn(d);
        waits_clock(d);
        windows_clock(d);
        waits_turn(d);
    }
    if (!stalled && d->schedule)
        jobs_schedule(d);
    if (!stalled)
        cuts_prepare(d);
    tells_turn(d);
    looks_turn(d);
    if (commit_due(d)) {
        KILLPOINT(COMMIT);
        if (store_commit(d->store, &e) < 0) {
            start_over(d, &e);
            api_run(d->api); /* the refusals go out now: nothing else may come for long */
            return d->owed_count > 0;
        }
        KILLPOINT(COMMITTED);
        layouts_committed(d);
    }
    if (!store_is_open(d->store))
        hooks_run(d);
    bool answered = d->owed_count > 0;
    answer_all(d, NULL);
    carry_out(d);
    if (d->send_step)
        cdi_follow(d); /* before a slice goes, nothing may name it any more */
    cuts_send(d);
    if (answered || api_owes(d->api))
        api_run(d->api);
    return commit_due(d) || d->owed_count || d->todo_count ||
           ((d->schedule || d->waits_stale) && !stalled);
}

static void set_timer(sd_event_source *s, int64_t at_us)
{
    if (at_us == INT64_MAX) {
        (void)sd_event_source_set_enabled(s, SD_EVENT_OFF); /* a valid source */
        return;
    }
    (void)sd_event_source_set_time(s, (uint64_t)(at_us > 0 ? at_us : 0)); /* the same */
    (void)sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);               /* the same */
}

static void set_timers(struct daemon *d)
{
    struct now now = clock_now();
    int64_t api_us = api_timeout_us(d->api, now);
    set_timer(d->api_timer, api_us < 0 ? INT64_MAX : now.boot_us + api_us);
    int64_t wake = sched_wake_us(d->sched, &d->inventory, now);
    if (d->stalled_until_us > now.boot_us)
        wake = d->stalled_until_us;
    else if (d->send_step) /* `act` is being started again */
        wake = now.boot_us + CLOCK_SECOND / 5;
    set_timer(d->wake_timer, wake);
    set_timer(d->commit_timer, store_is_open(d->store) ? d->commit_boot_us : INT64_MAX);
    int64_t window = windows_next_us(d);
    int64_t moment = window < d->moment_wall_us ? window : d->moment_wall_us;
    set_timer(d->moment_timer, d->stalled_until_us > now.boot_us ? INT64_MAX : moment);
    if (d->look_soon)
        set_timer(d->look_timer, now.boot_us + CLOCK_SECOND / 10);
    d->look_soon = false;
}

/*
 * Whoever asks before the cards are known waits in the socket's queue, rather
 * than being told that there are none. Not for long: a driver that hangs is
 * something to tell, too.
 */
static void serve_when_known(struct daemon *d)
{
    bool late = clock_now().boot_us > d->serve_boot_us;
    if (d->serves || !(d->snapshot_came || d->driver_trouble[0] || late))
        return;
    d->serves = true;
    (void)sd_event_source_set_enabled(d->api_io, SD_EVENT_ON); /* a valid source */
    log_line(LOG_NOTE, "divvyd " DIVVY_VERSION " listens on %s", d->paths.socket);
    (void)sd_notify(0, "READY=1"); /* nobody may be listening */
}

static int on_turn(sd_event_source *s, void *user)
{
    struct daemon *d = user;
    (void)s; /* the daemon's own */
    answers_forget(d);
    for (int i = 0; i < ROUNDS_MAX && round_done(d); i++)
        ;
    if (d->inventory_stale)
        cards_rebuild(d);
    cdi_follow(d);
    serve_when_known(d);
    set_timers(d);
    return 0;
}

static int on_api(sd_event_source *s, int fd, uint32_t revents, void *user)
{
    struct daemon *d = user;
    (void)s, (void)fd, (void)revents; /* the api knows them */
    api_run(d->api);
    return 0;
}

static int on_api_timer(sd_event_source *s, uint64_t usec, void *user)
{
    struct daemon *d = user;
    (void)s, (void)usec; /* asked of the clock again */
    if (d->serves)
        api_run(d->api);
    return 0;
}

static int on_wake(sd_event_source *s, uint64_t usec, void *user)
{
    struct daemon *d = user;
    (void)s, (void)usec; /* as above */
    d->schedule = true;
    return 0;
}

/* The turn that follows looks at the clock: that of the wall also when it is set. */
static int on_moment(sd_event_source *s, uint64_t usec, void *user)
{
    (void)s, (void)usec, (void)user; /* as above */
    return 0;
}

#define LOOK_US (5 * CLOCK_SECOND)
#define PRUNE_US (10 * CLOCK_MINUTE)
#define PRUNE_ROWS 200 /* so many a turn: nobody waits for it */

/* Forgets jobs that ended longer ago than divvy.yaml's `retention`, a few at a time. */
static void prune(struct daemon *d)
{
    struct err e = ERR_INIT;
    struct now now = clock_now();
    if (now.boot_us < d->prune_boot_us || !turn_write(d))
        return;
    struct now before = { .boot_us = now.boot_us - d->config.retention_us,
                          .wall_us = now.wall_us - d->config.retention_us };
    int n = store_prune(d->store, before, PRUNE_ROWS, &e);
    int32_t day = day_of(now.wall_us - d->config.usage_retention_us);
    int old = n < 0 ? n : store_prune_ledger(d->store, day, PRUNE_ROWS, &e);
    if (n < 0 || old < 0)
        log_line(LOG_ERROR, "cannot forget old jobs: %s", e.text);
    d->prune_boot_us = now.boot_us + (n == PRUNE_ROWS || old >= PRUNE_ROWS ? 0 : PRUNE_US);
}

/* inotify tells of folders at once; this is for what it may have missed. */
static int on_look(sd_event_source *s, uint64_t usec, void *user)
{
    struct daemon *d = user;
    (void)usec; /* as above */
    for (size_t i = d->active_count; i > 0; i--)
        if (i <= d->active_count)
            attempt_look(d->active[i - 1]);
    recover_strays(d);
    prune(d);
    set_timer(s, clock_now().boot_us + LOOK_US);
    return 0;
}

static int on_stop(sd_event_source *s, const struct signalfd_siginfo *si, void *user)
{
    struct daemon *d = user;
    (void)s; /* one handler for both signals */
    log_line(LOG_NOTE, "ending by %s; jobs run on",
             si->ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
    return sd_event_exit(d->event, 0);
}

int turn_open(struct daemon *d, struct err *e)
{
    uint64_t soon = (uint64_t)clock_now().boot_us;
    int r = sd_event_add_post(d->event, &d->turn, on_turn, d);
    if (r >= 0)
        r = sd_event_add_io(d->event, &d->api_io, api_fd(d->api), EPOLLIN, on_api, d);
    if (r >= 0)
        r = sd_event_source_set_enabled(d->api_io, SD_EVENT_OFF); /* until the cards are known */
    if (r >= 0)
        r = sd_event_add_time(d->event, &d->api_timer, CLOCK_BOOTTIME, soon, 1000, on_api_timer, d);
    if (r >= 0)
        r = sd_event_add_time(d->event, &d->wake_timer, CLOCK_BOOTTIME, soon, 1000, on_wake, d);
    if (r >= 0)
        r = sd_event_add_time(d->event, &d->look_timer, CLOCK_BOOTTIME, soon, 1000, on_look, d);
    if (r >= 0)
        r = sd_event_add_time(d->event, &d->commit_timer, CLOCK_BOOTTIME, soon, 1000, on_moment, d);
    if (r >= 0)
        r = sd_event_add_time(d->event, &d->moment_timer, CLOCK_REALTIME, UINT64_MAX, 1000,
                              on_moment, d);
    if (r >= 0)
        r = sd_event_add_signal(d->event, &d->sigterm, SIGTERM, on_stop, d);
    if (r >= 0)
        r = sd_event_add_signal(d->event, &d->sigint, SIGINT, on_stop, d);
    return r < 0 ? err_set(e, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}
