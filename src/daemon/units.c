#include "daemon/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include "base/log.h"

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define MANAGER_INTERFACE "org.freedesktop.systemd1.Manager"
#define LOCAL "org.freedesktop.DBus.Local"
#define LOCAL_PATH "/org/freedesktop/DBus/Local"
#define UNIT_FORMAT "divvy-job@%" PRIu64 ".%" PRIu32 ".service"
#define TEMPLATE "divvy-job@.service"

struct units {
    sd_bus *bus;      /* NULL: not connected yet */
    bool unreachable; /* the log says so already */
};

/* What a call was about; the job may be gone when its answer comes. */
struct call {
    struct daemon *daemon;
    uint64_t job_id;
    uint32_t attempt;
};

static const char *const unit_dirs[] = { "/etc/systemd/system", "/run/systemd/system",
                                         "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                         "/lib/systemd/system" };

static bool template_known(void)
{
    for (size_t i = 0; i < sizeof unit_dirs / sizeof *unit_dirs; i++) {
        auto_free char *path = text_fmt("%s/" TEMPLATE, unit_dirs[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

/* "" when units can be used; else why not. */
static const char *trouble(const struct daemon *d)
{
    if (!text_same(d->paths.root, "/"))
        return "this Divvy has a root of its own";
    if (sd_booted() <= 0)
        return "systemd does not run this machine";
    if (!template_known())
        return TEMPLATE " is not installed; 'divvy setup' installs it";
    return "";
}

int units_open(struct daemon *d, struct err *e)
{
    const char *why = trouble(d);
    if (d->config.launch == LAUNCH_DIRECT || (d->config.launch == LAUNCH_AUTO && why[0])) {
        if (getenv("INVOCATION_ID"))
            log_line(LOG_NOTE,
                     "jobs are started by divvyd itself, and share the limits of its unit");
        return 0;
    }
    if (why[0])
        return err_set(e, -ENOTSUP, "%s says launch: systemd, and that cannot be: %s",
                       d->paths.config, why);
    d->units = mem_new(sizeof *d->units);
    return 0;
}

static void hang_up(struct units *u)
{
    if (!u->bus)
        return;
    (void)sd_bus_detach_event(u->bus); /* it is attached */
    u->bus = sd_bus_close_unref(u->bus);
}

void units_close(struct daemon *d)
{
    if (d->units)
        hang_up(d->units);
    free(d->units);
    d->units = NULL;
}

const char *units_cgroup_root(const struct daemon *d)
{
    /* Only there is what systemd delegates all that a tree needs. */
    return d->units && d->cgroup_host.kind == CGROUP_V2 && d->cgroup_root[0] ? "self"
                                                                             : d->cgroup_root;
}

/* ---- what the manager says ---- */

/* A job whose attempt waits for its unit, or NULL. */
static struct job *asked_for(struct daemon *d, uint64_t id, uint32_t attempt)
{
    struct job *j = jobs_find(d, id);
    return j && j->attempt && j->attempt->number == attempt && j->attempt->unit_asked ? j : NULL;
}

static bool is_for_later(const char *error)
{
    static const char *const errors[] = {
        "org.freedesktop.systemd1.TransactionIsDestructive", /* it shuts down */
        "org.freedesktop.systemd1.ShuttingDown",
        "org.freedesktop.DBus.Error.ServiceUnknown", /* it is being started anew */
        "org.freedesktop.DBus.Error.NameHasNoOwner",
        "org.freedesktop.DBus.Error.NoReply",
        "org.freedesktop.DBus.Error.Timeout",
        "org.freedesktop.DBus.Error.TimedOut",
        "org.freedesktop.DBus.Error.Disconnected",
        "org.freedesktop.DBus.Error.LimitsExceeded",
        "System.Error.ECONNRESET",
        "System.Error.ETIMEDOUT",
    };
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (strcmp(error, errors[i]) == 0)
            return true;
    return false;
}

static int on_answer(sd_bus_message *m, void *user, sd_bus_error *ret_error)
{
    struct call *call = user;
    const sd_bus_error *error = sd_bus_message_get_error(m);
    struct job *j = asked_for(call->daemon, call->job_id, call->attempt);
    (void)ret_error; /* nobody is told */
    if (!error || !j)
        return 0; /* it is queued; JobRemoved tells the rest */
    struct err e = ERR_INIT;
    j->attempt->unit_asked = false;
    (void)err_set(&e, -EIO, "systemd does not start " UNIT_FORMAT ": %s", call->job_id,
                  call->attempt, error->message ? error->message : error->name);
    if (is_for_later(error->name))
        log_line(LOG_WARN, "%s; tried again", e.text);
    else
        attempt_start_failed(j, &e);
    return 0;
}

static bool parse_unit(const char *unit, uint64_t *ret_id, uint32_t *ret_attempt)
{
    int end = 0;
    return sscanf(unit, "divvy-job@%" SCNu64 ".%" SCNu32 ".service%n", ret_id, ret_attempt, &end) ==
               2 &&
           end > 0 && !unit[end];
}

static bool came_to_nothing(const char *result)
{
    static const char *const results[] = { "failed",  "timeout",     "dependency",
                                           "invalid", "unsupported", "assert" };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (strcmp(result, results[i]) == 0)
            return true;
    return false;
}

static int on_job_removed(sd_bus_message *m, void *user, sd_bus_error *ret_error)
{
    const char *path, *unit, *result;
    uint32_t number, attempt;
    uint64_t id;
    (void)ret_error; /* a signal */
    if (sd_bus_message_read(m, "uoss", &number, &path, &unit, &result) < 0 ||
        !parse_unit(unit, &id, &attempt))
        return 0;
    struct job *j = asked_for(user, id, attempt);
    if (!j)
        return 0;
    struct err e = ERR_INIT;
    j->attempt->unit_asked = false;
    if (!came_to_nothing(result))
        return 0; /* what it did stands in its folder */
    (void)err_set(&e, -EIO, "systemd could not start %s (%s); journalctl -u %s says why", unit,
                  result, unit);
    attempt_start_failed(j, &e);
    return 0;
}

/* Answers that were under way are lost, and no signal will come. */
static int on_disconnected(sd_bus_message *m, void *user, sd_bus_error *ret_error)
{
    struct daemon *d = user;
    (void)m, (void)ret_error; /* it says nothing more */
    log_line(LOG_WARN, "the system bus went away");
    for (size_t i = 0; i < d->active_count; i++)
        d->active[i]->attempt->unit_asked = false;
    return 0;
}

/* ---- asking ---- */

static int listen_to(struct daemon *d, sd_bus *bus)
{
    int r = sd_bus_match_signal_async(bus, NULL, LOCAL, LOCAL_PATH, LOCAL, "Disconnected",
                                      on_disconnected, NULL, d);
    if (r >= 0)
        r = sd_bus_match_signal_async(bus, NULL, MANAGER, MANAGER_PATH, MANAGER_INTERFACE,
                                      "JobRemoved", on_job_removed, NULL, d);
    if (r >= 0) /* without a subscriber the manager sends no signals */
        r = sd_bus_call_method_async(bus, NULL, MANAGER, MANAGER_PATH, MANAGER_INTERFACE,
                                     "Subscribe", NULL, NULL, NULL);
    return r;
}

static int connect_bus(struct daemon *d, struct err *e)
{
    struct units *u = d->units;
    if (u->bus && sd_bus_is_open(u->bus) > 0)
        return 0;
    hang_up(u);
    int r = sd_bus_open_system(&u->bus);
    if (r >= 0)
        r = sd_bus_attach_event(u->bus, d->event, SD_EVENT_PRIORITY_NORMAL);
    if (r >= 0)
        r = listen_to(d, u->bus);
    if (r >= 0)
        return 0;
    hang_up(u);
    return err_set(e, r, "cannot reach systemd on the system bus to start jobs: %s", strerror(-r));
}

static int ask(struct daemon *d, struct call *take_call, struct err *e)
{
    sd_bus_slot *slot = NULL;
    auto_free char *unit = text_fmt(UNIT_FORMAT, take_call->job_id, take_call->attempt);
    int r = sd_bus_call_method_async(d->units->bus, &slot, MANAGER, MANAGER_PATH, MANAGER_INTERFACE,
                                     "StartUnit", on_answer, take_call, "ss", unit, "fail");
    if (r < 0) {
        free(take_call);
        return err_set(e, r, "cannot ask systemd to start %s: %s", unit, strerror(-r));
    }
    (void)sd_bus_slot_set_destroy_callback(slot, free); /* a valid slot */
    (void)sd_bus_slot_set_floating(slot, 1);            /* it goes with its answer */
    sd_bus_slot_unref(slot);
    return 0;
}

void units_start(struct job *j)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    if (j->attempt->unit_asked)
        return;
    struct call call = { .daemon = d, .job_id = j->id, .attempt = j->attempt->number };
    int r = connect_bus(d, &e);
    if (r == 0)
        r = ask(d, mem_dup(&call, sizeof call), &e);
    j->attempt->unit_asked = r == 0;
    if (r < 0 && !d->units->unreachable)
        log_line(LOG_ERROR, "%s; tried again every few seconds", e.text);
    d->units->unreachable = r < 0;
}
