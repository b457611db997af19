#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/filter.h"
#include "cli/ids.h"

struct cancel_call {
    struct ids jobs;
    struct filter filter;
    bool by_filter;
};

static const char doc[] =
    "Ends jobs that run (SIGTERM, and SIGKILL after a while), and takes those "
    "that wait out of the queue.\vTasks of an array are named as in 41_7 or 41_[3-9]; 41 is all of "
    "it.";

static const struct argp_option options[] = {
    FILTER_OPTIONS('m'),
    FILTER_STATES,
    { "waiting", 'w', NULL, 0, "only those that wait, as --state waiting", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cancel_call *c = state->input;
    c->by_filter = c->by_filter || key == 'm' || key == 'u' || key == 'A';
    if (filter_parse(key, arg, &c->filter))
        return 0;
    switch (key) {
    case 'w':
        c->filter.states |= 1u << JOB_PENDING;
        return 0;
    case ARGP_KEY_ARG:
        ids_take(&c->jobs, arg);
        return 0;
    case ARGP_KEY_END:
        if (!c->jobs.count && !c->by_filter)
            verb_refuse(c->filter.states ? "whose? Add --mine, --user or --account"
                                         : "which job? divvy cancel 41, or --mine");
        if (c->jobs.count && (c->by_filter || c->filter.states))
            verb_refuse("either numbers of jobs, or --mine, --user, --account and --state");
        if (c->filter.states & JOB_STATES_ENDED)
            verb_refuse("--state names one in which a job has ended already");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int find_jobs(const struct session *s, struct client *c, struct cancel_call *call)
{
    struct job_list list = { .jobs = NULL };
    struct job_filter filter;
    struct err e = ERR_INIT;
    filter_of_jobs(&call->filter, &filter);
    filter.fold = true;
    if (client_jobs(c, &filter, &list, &e) < 0)
        return verb_fail(s, &e);
    for (size_t i = 0; i < list.count; i++) {
        ids_add(&call->jobs, list.jobs[i].id);
        struct id *last = &call->jobs.items[call->jobs.count - 1];
        if (list.jobs[i].array_id) /* its first task's number would mean all of it */
            *last = (struct id){ .id = list.jobs[i].array_id,
                                 .indices = list.jobs[i].indices
                                                ? text_dup(list.jobs[i].indices)
                                                : text_fmt("%u", list.jobs[i].array_index) };
    }
    int status = list.count ? STATUS_OK : verb_check_names(s, c, filter.user, filter.account);
    job_list_done(&list);
    return status;
}

/* What a filter found may have ended meanwhile: that is what was wanted. */
static int cancel_one(const struct session *s, struct client *c, const struct id *id,
                      bool by_filter)
{
    struct err e = ERR_INIT;
    auto_free char *note = NULL;
    int r = client_act(c, id->id, JOB_ACTION_CANCEL, id->indices, &note, &e);
    if (note && !by_filter)
        verb_note("%s", note);
    if (r == 0 || (by_filter && (r == -EALREADY || r == -ENOENT)))
        return STATUS_OK;
    return verb_fail(s, &e);
}

static void tell_count(size_t n)
{
    if (n)
        verb_note("%zu job%s told to end", n, n == 1 ? " was" : "s were");
    else
        verb_note("there is no such job to end");
}

int verb_cancel(struct session *s, int argc, char **argv)
{
    struct cancel_call call = { .by_filter = false };
    int status = STATUS_OK;
    struct verb_words words = { .options = options, .parser = parse, .args = "ID...", .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (c && call.by_filter)
        status = find_jobs(s, c, &call);
    auto_json json_t *cancelled = json_array();
    for (size_t i = 0; c && i < call.jobs.count; i++) {
        int one = cancel_one(s, c, &call.jobs.items[i], call.by_filter);
        if (one == STATUS_OK)
            (void)json_array_append_new(cancelled, json_integer((json_int_t)call.jobs.items[i].id));
        status = status == STATUS_OK ? one : status;
    }
    if (c && s->json) {
        auto_json json_t *j = json_object();
        json_put(j, "cancelled", json_incref(cancelled));
        (void)verb_print_json(j); /* the status tells of failures */
    } else if (c && call.by_filter && s->screen.tty) {
        tell_count(json_array_size(cancelled));
    }
    ids_done(&call.jobs);
    return status;
}
