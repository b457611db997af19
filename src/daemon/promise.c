/* Starts that were announced, and how far off they were. */
#include "daemon/daemon.h"

#include <inttypes.h>

#include "base/log.h"
#include "store/promises.h"

int promises_load(struct daemon *d, struct err *e)
{
    return store_read_promises(d->store, &d->promises, e);
}

/* The first start that it is told of is what counts: later ones only come nearer. */
static void note(struct daemon *d, const struct sched_reservation *r, struct now now)
{
    struct err e = ERR_INIT;
    struct job *j = jobs_find(d, r->job_id);
    if (!j || j->state != JOB_PENDING || j->expected_wall_us || r->when_us == INT64_MAX ||
        r->when_us <= 0 || !turn_write(d))
        return;
    int64_t wall_us = now.wall_us + (r->when_us > now.boot_us ? r->when_us - now.boot_us : 0);
    if (store_set_expected(d->store, j->id, wall_us, &e) < 0)
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
    else
        j->expected_wall_us = wall_us;
}

void promise_note(struct daemon *d, struct now now)
{
    struct sched_reservation r;
    for (size_t i = 0; sched_reservation(d->sched, i, &r); i++)
        note(d, &r, now);
}

void promise_kept(struct job *j)
{
    struct err e = ERR_INIT;
    struct daemon *d = j->daemon;
    int64_t off_us = j->attempt->started_wall_us - j->expected_wall_us;
    if (!j->expected_wall_us || !j->attempt->started_wall_us)
        return;
    if (store_add_promise(d->store, off_us, &e) < 0 ||
        store_set_expected(d->store, j->id, 0, &e) < 0) {
        log_line(LOG_ERROR, "job %" PRIu64 ": %s", j->id, e.text);
        return; /* a failed store starts over */
    }
    promises_add(&d->promises, off_us);
    j->expected_wall_us = 0;
}
