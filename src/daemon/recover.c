/* What a restart, or the end of a job, finds that nobody expected. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "model/charge.h"

/* ---- a place that is gone ---- */

static bool item_gone(const struct daemon *d, const struct placed *item)
{
    const struct card_memory *m = cards_find(d, item->card_uuid);
    if (!m || !m->seen || !m->present || m->last.health == CARD_LOST)
        return true;
    return !item->whole && item->generation &&
           cards_generation(d, item->card_uuid, item->gi, item->ci) != item->generation;
}

bool recover_place_gone(const struct daemon *d, const struct place *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (item_gone(d, &p->items[i]))
            return true;
    return false;
}

/* ---- a folder that a power cut tore ---- */

bool recover_torn_folder(struct daemon *d, uint64_t job_id, uint32_t attempt)
{
    struct err e = ERR_INIT;
    struct jobdir_spec spec = { .job_id = 0 };
    auto_close int dir = -1;
    auto_close int lock = -1;
    if (jobdir_open(d->paths.jobs, job_id, attempt, &dir, NULL) < 0)
        return false;
    int r = jobdir_read_spec(dir, &spec, &e);
    if (r == 0)
        jobdir_spec_done(&spec);
    if (r == 0 || r == -EPROTONOSUPPORT || jobdir_state(dir, NULL) != JOBDIR_NEW ||
        (r != -ENOENT && jobdir_claim(dir, &lock, NULL) < 0))
        return false;
    log_line(LOG_WARN, "the folder of %" PRIu64 ".%u is made again: %s", job_id, attempt, e.text);
    return attempt_remove_files(d, job_id, attempt, NULL) == 0;
}

/* ---- attempts that the store knows nothing of ---- */

static int note_lost_attempts(struct job *j, uint32_t until, struct err *e)
{
    struct place nowhere = { .items = NULL };
    struct now now = clock_now();
    int r = 0;
    for (uint32_t n = j->attempts + 1; r == 0 && n < until; n++) {
        r = store_add_attempt(j->daemon->store, j->id, n, &nowhere, now, e);
        if (r == 0)
            r = store_end_attempt(j->daemon->store, j->id, n, JOB_LOST, NULL, 0, now, e);
    }
    return r;
}

/* As if it had been placed and made ready by us: its folder tells the rest. */
static int take_up(struct job *j, uint32_t number, const struct place *place, struct err *e)
{
    struct daemon *d = j->daemon;
    struct now now = clock_now();
    if (!turn_write(d))
        return err_set(e, -ENOSPC, "%s", d->stalled_why);
    int r = note_lost_attempts(j, number, e);
    if (r == 0)
        r = store_add_attempt(d->store, j->id, number, place, now, e);
    if (r < 0)
        return r;
    attempt_new(j, number, place)->placed_boot_us = now.boot_us;
    sched_start(d->sched, j->id, place, charge_of(d, place), now.boot_us);
    if (!job_move(j, JOB_EV_PLACE, "") || !job_move(j, JOB_EV_READY, NULL))
        return err_set(e, -EIO, "the store took no write");
    attempt_watch(j);
    return 0;
}

/* True: the job has its attempt again. */
static bool taken_up(struct job *j, int dir, uint32_t number)
{
    struct err e = ERR_INIT;
    struct jobdir_spec spec = { .job_id = 0 };
    if (!j || j->state != JOB_PENDING || number <= j->attempts ||
        jobdir_read_spec(dir, &spec, &e) < 0)
        return false;
    int r = spec.uid == j->uid ? take_up(j, number, &spec.place, &e) : -EPERM;
    jobdir_spec_done(&spec);
    if (r < 0)
        return false;
    log_line(LOG_WARN,
             "%" PRIu64 ".%u had begun and the store does not know it: an older store was put "
             "back, or its disk lost what was written; it is taken up",
             j->id, number);
    return true;
}

static void tell_to_end(struct daemon *d, int dir, uint64_t job_id, uint32_t attempt)
{
    log_line(LOG_WARN,
             "an attempt %" PRIu64 ".%u runs that the store knows nothing of; it is told to end",
             job_id, attempt);
    (void)jobdir_stop(dir, JOBDIR_STOP_CANCEL, NULL, NULL); /* swept again at the next start */
    ARRAY_ROOM(d->strays, d->stray_alloc, d->stray_count + 1);
    d->strays[d->stray_count++] = (struct stray){ job_id, attempt };
}

/* The number may be in somebody's mail: it is not given to another job. */
static void reserve_number(struct daemon *d, uint64_t job_id)
{
    struct err e = ERR_INIT;
    if (!jobs_find(d, job_id) && turn_write(d) && store_reserve_job(d->store, job_id, &e) < 0)
        log_line(LOG_ERROR, "%s", e.text);
}

void recover_unknown(struct daemon *d, uint64_t job_id, uint32_t attempt)
{
    auto_close int dir = -1;
    auto_close int lock = -1;
    if (jobdir_open(d->paths.jobs, job_id, attempt, &dir, NULL) < 0)
        return;
    int state = jobdir_state(dir, NULL);
    reserve_number(d, job_id);
    if (state >= 0 && state != JOBDIR_NEW && taken_up(jobs_find(d, job_id), dir, attempt))
        return;
    if (state == JOBDIR_STARTED_ALIVE || state == JOBDIR_STARTING) {
        tell_to_end(d, dir, job_id, attempt);
        return;
    }
    if (state == JOBDIR_NEW && jobdir_claim(dir, &lock, NULL) < 0)
        return;
    (void)attempt_remove_files(d, job_id, attempt, NULL); /* swept again at the next start */
}

/* Over, or gone. */
static bool stray_ended(struct daemon *d, const struct stray *s)
{
    auto_close int dir = -1;
    if (jobdir_open(d->paths.jobs, s->job_id, s->attempt, &dir, NULL) < 0)
        return true;
    int state = jobdir_state(dir, NULL);
    return state == JOBDIR_ENDED || state == JOBDIR_STARTED_DEAD;
}

void recover_strays(struct daemon *d)
{
    for (size_t i = d->stray_count; i > 0; i--) {
        struct stray s = d->strays[i - 1];
        if (!stray_ended(d, &s))
            continue;
        (void)attempt_remove_files(d, s.job_id, s.attempt, NULL); /* swept again at a start */
        d->strays[i - 1] = d->strays[--d->stray_count];
    }
}
