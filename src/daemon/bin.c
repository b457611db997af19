#include "daemon/bin.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "jobdir/jobdir.h"

#define QUIET_US CLOCK_SECOND

static void remove_folder(const struct bin *b, const char *name)
{
    uint64_t job_id;
    uint32_t attempt;
    struct err e = ERR_INIT;
    if (jobdir_parse_put_away(name, &job_id, &attempt))
        b->last(b->user, job_id, attempt);
    int r = jobdir_remove_leftover(b->jobs, name, &e);
    if (r == -EINVAL)
        log_line(LOG_WARN, "%s and is left alone", e.text);
    else if (r < 0)
        log_line(LOG_WARN, "%s", e.text);
}

static void remove_oldest(struct bin *b)
{
    auto_free char *name = b->names[b->first];
    b->first = (b->first + 1) % BIN_MAX;
    b->count--;
    remove_folder(b, name);
}

static void arm(const struct bin *b, int64_t in_us)
{
    (void)sd_event_source_set_time_relative(b->timer, (uint64_t)in_us); /* a valid source */
    (void)sd_event_source_set_enabled(b->timer, SD_EVENT_ONESHOT);      /* the same */
}

static int on_quiet(sd_event_source *s, uint64_t usec, void *user)
{
    struct bin *b = user;
    (void)s, (void)usec; /* the bin's own */
    if (b->count)
        remove_oldest(b);
    if (b->count)
        arm(b, 0); /* whoever asks for something meanwhile goes first */
    return 0;
}

int bin_open(struct bin *b, sd_event *event, const char *jobs, bin_last_fn last, void *user,
             struct err *e)
{
    b->jobs = jobs;
    b->last = last;
    b->user = user;
    int r = sd_event_add_time(event, &b->timer, CLOCK_BOOTTIME, UINT64_MAX, 1000, on_quiet, b);
    if (r >= 0)
        r = sd_event_source_set_priority(b->timer, SD_EVENT_PRIORITY_IDLE);
    return r < 0 ? err_set(e, r, "cannot set up the event loop: %s", strerror(-r)) : 0;
}

void bin_close(struct bin *b)
{
    b->timer = sd_event_source_disable_unref(b->timer);
    for (; b->count; b->count--, b->first = (b->first + 1) % BIN_MAX)
        free(b->names[b->first]);
    free(b->names);
    b->names = NULL;
}

void bin_add(struct bin *b, char *take_name)
{
    auto_free char *name = take_name;
    if (!b->timer) {
        remove_folder(b, name);
        return;
    }
    if (!b->names)
        b->names = mem_new(BIN_MAX * sizeof *b->names);
    if (b->count == BIN_MAX)
        remove_oldest(b);
    b->names[(b->first + b->count++) % BIN_MAX] = take_ptr(name);
    arm(b, QUIET_US);
}
