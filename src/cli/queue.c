#include <string.h>

#include "cli/filter.h"
#include "cli/queue_draw.h"
#include "cli/queue_sums.h"
#include "cli/verb.h"

#define KEY_ENDED 0x1201
#define KEY_BY 0x1202

enum queue_by { BY_JOB = 0, BY_ACCOUNT, BY_USER };

struct queue_call {
    struct filter filter;
    uint32_t group; /* states by --all or --ended; 0: not given */
    enum queue_by by;
};

static const char doc[] =
    "Jobs that run, where, and jobs that wait, and why.\vThe states are waiting (pending in JSON), "
    "preparing, starting, running, ending; completed, failed, cancelled, timeout, oom, preempted, "
    "lost.";

static const struct argp_option options[] = {
    { NULL, 0, NULL, 0, "Which jobs (all that have not ended):", 1 },
    FILTER_OPTIONS('m'),
    FILTER_STATES,
    { "all", 'a', NULL, 0, "those that have ended as well", 1 },
    { "ended", KEY_ENDED, NULL, 0, "only those that have ended", 1 },
    { "by", KEY_BY, "account|user", 0, "added up, a line for each account or user", 2 },
    { 0 },
};

static enum queue_by parse_by(const char *arg)
{
    if (strcmp(arg, "account") == 0)
        return BY_ACCOUNT;
    if (strcmp(arg, "user") != 0)
        verb_refuse("--by is account or user, not '%.32s'", arg);
    return BY_USER;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct queue_call *c = state->input;
    if (filter_parse(key, arg, &c->filter))
        return 0;
    switch (key) {
    case 'a':
        c->group = (1u << JOB_STATES) - 1;
        return 0;
    case KEY_BY:
        c->by = parse_by(arg);
        return 0;
    case KEY_ENDED:
        c->group = JOB_STATES_ENDED;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int print_json(const struct job_list *list)
{
    auto_json json_t *j = json_object();
    json_t *jobs = json_array();
    for (size_t i = 0; i < list->count; i++)
        (void)json_array_append(jobs, list->jobs[i].json); /* out of memory: a shorter list */
    json_put(j, "jobs", jobs);
    return verb_print_json(j);
}

static int print_sums(struct session *s, const struct job_list *list, bool by_user)
{
    size_t count = 0;
    AUTO(text) struct text t = TEXT_INIT;
    auto_free struct queue_sum *sums = queue_sums(list->jobs, list->count, by_user, &count);
    if (s->json) {
        auto_json json_t *j = queue_sums_json(sums, count, by_user);
        return verb_print_json(j);
    }
    if (count)
        queue_sums_draw(sums, count, by_user, clock_now().wall_us, &s->screen, &t);
    else if (s->screen.tty)
        text_add(&t, "No jobs.\n");
    return verb_print(&t);
}

static int print_jobs(struct session *s, const struct job_list *list)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (s->json)
        return print_json(list);
    queue_draw(list->jobs, list->count, clock_now().wall_us, &s->screen, &t);
    if (!list->count && s->screen.tty) {
        text_clear(&t);
        text_add(&t, "No jobs.\n");
    }
    return verb_print(&t);
}

int verb_queue(struct session *s, int argc, char **argv)
{
    struct queue_call call = { .by = BY_JOB };
    struct job_filter filter;
    struct job_list list = { .jobs = NULL };
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    uint32_t named = call.filter.states;
    filter_of_jobs(&call.filter, &filter);
    filter.states = named && call.group ? named & call.group : named | call.group;
    if (named && !filter.states)
        return verb_usage(s, "--ended leaves no job in a state that --state names");
    filter.fold = !s->json || call.by;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_jobs(c, &filter, &list, &e) < 0)
        return verb_fail(s, &e);
    if (!list.count)
        status = verb_check_names(s, c, filter.user, filter.account);
    if (status == STATUS_OK)
        status = call.by ? print_sums(s, &list, call.by == BY_USER) : print_jobs(s, &list);
    job_list_done(&list);
    return status;
}
