#include "cli/holders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "jobdir/jobdir.h"

struct marking {
    struct inventory *inv;
    const char *jobs;
};

static void hold(struct hold *h, const struct jobdir_spec *s)
{
    *h = (struct hold){ .kind = HOLD_JOB, .job_id = s->job_id, .attempt = s->attempt };
    (void)snprintf(h->user, sizeof h->user, "%s", s->user ? s->user : ""); /* a longer one is cut */
    (void)snprintf(h->name, sizeof h->name, "%s", s->job.name ? s->job.name : "");
}

/* By place: ids of instances come again after a re-cut. */
static void mark_item(struct inventory *inv, const struct placed *item, const struct jobdir_spec *s)
{
    struct inventory_card *c = inventory_uuid(inv, item->card_uuid);
    if (!c)
        return;
    if (item->whole)
        hold(&c->hold, s);
    for (size_t i = 0; !item->whole && i < c->card.slice_count; i++)
        if (c->card.slices[i].start == item->start)
            hold(&c->slices[i].hold, s);
}

static int mark(void *user, uint64_t job_id, uint32_t attempt, struct err *e)
{
    struct marking *m = user;
    struct jobdir_spec s;
    auto_close int dir = -1;
    int code = jobdir_open(m->jobs, job_id, attempt, &dir, e);
    if (code == -ENOENT)
        return 0; /* removed since it was listed */
    int state = code < 0 ? code : jobdir_state(dir, e);
    if (state < 0 || state == JOBDIR_ENDED)
        return state < 0 ? state : 0;
    code = jobdir_read_spec(dir, &s, e);
    if (code < 0)
        return err_wrap(e, code, "job %" PRIu64, job_id);
    for (size_t i = 0; i < s.place.count; i++)
        mark_item(m->inv, &s.place.items[i], &s);
    jobdir_spec_done(&s);
    return 0;
}

int holders_mark(const char *root, struct inventory *inv, struct err *e)
{
    auto_free char *jobs = file_under(root, "/var/lib/divvy/jobs");
    struct marking m = { .inv = inv, .jobs = jobs };
    if (access(jobs, F_OK) < 0 && errno == ENOENT)
        return 0;
    int code = jobdir_scan(jobs, mark, NULL, &m, e);
    return code < 0 ? err_wrap(e, code, "cannot tell what running jobs hold") : 0;
}
