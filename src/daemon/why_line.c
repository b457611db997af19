/* Who goes before one that waits. */
#include "daemon/daemon.h"

#include <inttypes.h>

#define AHEAD_TOLD 3u

struct ahead {
    const struct job *first[AHEAD_TOLD]; /* in their order */
    size_t told;
    uint32_t own, account, others; /* of the same share; of others in its account; of others */
};

static void count_one(const struct job *j, const struct job *other,
                      const struct sched_explanation *x, struct ahead *a)
{
    if (!text_same(other->account, j->account))
        a->others++;
    else if (x->user && other->uid == j->uid)
        a->own++;
    else
        a->account++;
}

static void take_one(const struct daemon *d, const struct job *other, struct now now,
                     struct ahead *a)
{
    size_t at = a->told;
    while (at > 0 && sched_goes_before(d->sched, other->id, a->first[at - 1]->id, now))
        at--;
    if (at == AHEAD_TOLD)
        return;
    a->told += a->told < AHEAD_TOLD;
    for (size_t k = a->told - 1; k > at; k--)
        a->first[k] = a->first[k - 1];
    a->first[at] = other;
}

static void find_ahead(const struct daemon *d, const struct job *j,
                       const struct sched_explanation *x, struct now now, struct ahead *ret)
{
    const struct job *other;
    *ret = (struct ahead){ .told = 0 };
    for (size_t i = 0; (other = map_next(&d->jobs, &i));)
        if (other->state == JOB_PENDING && sched_goes_before(d->sched, other->id, j->id, now)) {
            count_one(j, other, x, ret);
            take_one(d, other, now, ret);
        }
}

/* "2 of alice", ", 3 of others in nlp", and "and" before the last */
static void add_group(struct text *t, uint32_t n, bool last, const char *of, const char *whose)
{
    if (n)
        text_addf(t, "%s%u %s%s%s",
                  !t->len ? ""
                  : last  ? " and "
                          : ", ",
                  n, of, whose ? " " : "", whose ? whose : "");
}

static void tell_order(const struct sched_explanation *x, const struct ahead *a, struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (!a->told) {
        why_view_add(v, "order", "first in line");
        return;
    }
    if (a->own)
        text_addf(&t, "%u of %s", a->own, x->user);
    add_group(&t, a->account, !a->others, x->user ? "of others in" : "in", x->account);
    add_group(&t, a->others, true, "of other accounts", NULL);
    why_view_add(v, "order", "number %u in line, behind %s", a->own + a->account + a->others + 1,
                 t.buf);
}

/* When it is expected to start; 0: nobody knows. */
static int64_t start_of(const struct daemon *d, const struct job *j)
{
    struct sched_reservation r;
    for (size_t i = 0; sched_reservation(d->sched, i, &r); i++)
        if (r.job_id == j->id)
            return r.when_us < INT64_MAX ? r.when_us : 0;
    return 0;
}

static void add_waiting(const struct daemon *d, struct text *t, const struct job *other,
                        const struct job *j, struct now now)
{
    int64_t at = start_of(d, other);
    text_addf(t, "#%" PRIu64 " (%s", other->id, other->user);
    if (!text_same(other->account, j->account))
        text_addf(t, " of %s", other->account);
    text_addf(t, ", %s, ", other->name);
    request_add(t, &other->request);
    if (at > now.boot_us) {
        text_add(t, ", about ");
        waits_add_moment(t, now.wall_us + (at - now.boot_us), now.wall_us);
    }
    text_add(t, ")");
}

static void tell_ahead(const struct daemon *d, const struct job *j, const struct ahead *a,
                       struct now now, struct why_view *v)
{
    AUTO(text) struct text t = TEXT_INIT;
    uint32_t all = a->own + a->account + a->others;
    for (size_t i = 0; i < a->told; i++) {
        text_add(&t, i ? ", " : "");
        add_waiting(d, &t, a->first[i], j, now);
    }
    if (all > a->told)
        text_addf(&t, " and %zu more", all - a->told);
    if (a->told)
        why_view_add(v, "ahead", "%s", t.buf);
}

static json_t *ahead_to_json(const struct daemon *d, const struct ahead *a, struct now now)
{
    json_t *j = json_object();
    json_t *first = json_array();
    json_put_u64(j, "own", a->own);
    json_put_u64(j, "account", a->account);
    json_put_u64(j, "others", a->others);
    for (size_t i = 0; i < a->told; i++) {
        const struct job *other = a->first[i];
        json_t *one = json_object();
        int64_t at = start_of(d, other);
        json_put_u64(one, "job", other->id);
        json_put_text(one, "user", other->user);
        json_put_text(one, "account", other->account);
        json_put_text(one, "name", other->name);
        json_put(one, "expected_start_wall_us",
                 at ? json_integer(now.wall_us + (at - now.boot_us)) : json_null());
        (void)json_array_append_new(first, one); /* out of memory: a shorter list */
    }
    json_put(j, "first", first);
    return j;
}

/* Only where it is in the way: others have a start kept that delays nobody. */
static void tell_kept(const struct daemon *d, const struct job *j,
                      const struct sched_explanation *x, struct now now, struct why_view *v)
{
    const struct job *holder = jobs_find(d, x->reserved_for);
    AUTO(text) struct text t = TEXT_INIT;
    if (x->why != WHY_DRAINING || !holder || holder == j)
        return;
    add_waiting(d, &t, holder, j, now);
    why_view_add(v, "kept for", "%s, who goes there first; nobody may delay that", t.buf);
}

void why_line(const struct daemon *d, const struct job *j, const struct sched_explanation *x,
              struct now now, struct why_view *v)
{
    struct ahead a;
    find_ahead(d, j, x, now, &a);
    tell_order(x, &a, v);
    tell_ahead(d, j, &a, now, v);
    v->ahead = ahead_to_json(d, &a, now);
    tell_kept(d, j, x, now, v);
}
