/* What is asked of jobs that are there: cancel, hold, release, requeue; one, or tasks of an array. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "store/waits.h"

/* One call, which may be about many. */
struct action {
    struct daemon *daemon;
    const struct api_caller *who;
    enum job_action what;
    size_t done, failed;
    struct err first; /* failure */
};

static int no_write(const struct daemon *d, struct err *e)
{
    return err_set(e, -ENOSPC, "nothing can be changed at the moment: %s", d->stalled_why);
}

static int set_hold(struct job *j, enum job_hold hold, struct err *e)
{
    struct daemon *d = j->daemon;
    if (!turn_write(d))
        return no_write(d, e);
    int r = store_set_hold(d->store, j->id, hold, e);
    if (r < 0)
        return r;
    j->hold = hold;
    waits_hold(j);
    api_job_changed(d->api, j->id);
    return 0;
}

static int hold(struct job *j, const struct api_caller *who, struct err *e)
{
    bool as_owner = who->uid == j->uid;
    if (j->state != JOB_PENDING)
        return err_set(e, -EBUSY,
                       "job %" PRIu64 " is %s; only jobs that wait can be held, and divvy requeue "
                       "puts it back to them",
                       j->id, job_state_word(j->state));
    if (j->hold == JOB_HOLD_OPERATOR || (j->hold && as_owner))
        return 0;
    return set_hold(j, as_owner ? JOB_HOLD_USER : JOB_HOLD_OPERATOR, e);
}

static int release(struct job *j, const struct api_caller *who, struct err *e)
{
    if (j->state != JOB_PENDING || !j->hold)
        return err_set(e, -EALREADY, "job %" PRIu64 " is not held", j->id);
    if (j->hold == JOB_HOLD_OPERATOR && !who->is_operator)
        return err_set(e, -EPERM,
                       "job %" PRIu64 " is held by an operator; only operators can release it",
                       j->id);
    return set_hold(j, JOB_HOLD_NONE, e);
}

static int requeue(struct job *j, const struct api_caller *who, struct err *e)
{
    struct daemon *d = j->daemon;
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    auto_free char *reason = text_fmt("requeued by %s", user_name(d, who->uid));
    int r = store_job_spec(d->store, j->id, &spec, e);
    if (r < 0)
        return r;
    if (spec.no_requeue)
        return err_set(e, -EINVAL, "job %" PRIu64 " was submitted with --no-requeue", j->id);
    if (spec.attached)
        return err_set(e, -EINVAL,
                       "job %" PRIu64 " is attached (divvy run): its client ends with it", j->id);
    return job_requeue(j, reason, e);
}

static int act_on(struct action *a, struct job *j, struct err *e)
{
    switch (a->what) {
    case JOB_ACTION_CANCEL:
        return job_cancel(j, user_name(a->daemon, a->who->uid), e) ? 0 : e->code;
    case JOB_ACTION_HOLD:
        return hold(j, a->who, e);
    case JOB_ACTION_RELEASE:
        return release(j, a->who, e);
    case JOB_ACTION_REQUEUE:
        break;
    }
    return requeue(j, a->who, e);
}

static void act(struct action *a, uint64_t id)
{
    struct err e = ERR_INIT;
    struct job *j = jobs_find(a->daemon, id);
    int r = j && !job_state_ended(j->state)
                ? act_on(a, j, &e)
                : err_set(&e, -EALREADY, "job %" PRIu64 " has ended already", id);
    if (r < 0 && !a->failed++)
        a->first = e;
    a->done += r >= 0;
}

/* The tasks of a whole array that have not ended. */
static void act_on_array(struct action *a, const struct waits *w)
{
    uint64_t id = w->id;
    size_t count = w->array.count;
    for (size_t i = 0; i < count; i++) {
        const struct job *j = jobs_find(a->daemon, id + i);
        if (j && !job_state_ended(j->state))
            act(a, id + i);
    }
}

static int act_on_tasks(struct action *a, uint64_t id, const char *indices, struct err *e)
{
    AUTO(job_array) struct job_array all = { .indices = NULL };
    AUTO(job_array) struct job_array some = { .indices = NULL };
    auto_free char *words = NULL;
    int r = store_array_words(a->daemon->store, id, &words, e);
    if (r == 0)
        r = job_array_parse(words, &all, e);
    if (r == 0)
        r = job_array_parse(indices, &some, e);
    for (size_t i = 0; r == 0 && i < some.count; i++)
        if (job_array_position(&all, some.indices[i]) < 0)
            r = err_set(e, -ENOENT, "array %" PRIu64 " has no task %u; it has %s", id,
                        some.indices[i], words);
    for (size_t i = 0; r == 0 && i < some.count; i++)
        act(a, id + (uint64_t)job_array_position(&all, some.indices[i]));
    return r;
}

void op_act(void *ctx, struct api_request *req, const struct api_caller *who, uint64_t id,
            enum job_action what, const char *indices)
{
    struct daemon *d = ctx;
    struct action a = { .daemon = d, .who = who, .what = what, .first = ERR_INIT };
    const struct waits *w = map_get(&d->waits, id);
    int r = 0;
    if (indices)
        r = act_on_tasks(&a, id, indices, &a.first);
    else if (w && w->array.count)
        act_on_array(&a, w);
    else
        act(&a, id);
    struct owed o = { .request = req, .kind = OWED_OK };
    if (r < 0 || (a.failed && !a.done)) {
        o.kind = OWED_ERROR;
        o.err = a.first;
    } else if (a.failed) {
        o.note = text_fmt("%zu of %zu: %s", a.done, a.done + a.failed, a.first.text);
    }
    turn_owe(d, &o);
}
