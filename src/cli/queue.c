#include <string.h>
#include <strings.h>

#include "cli/queue_draw.h"
#include "cli/verb.h"
#include "config/nearest.h"

#define KEY_ENDED 0x1201

struct queue_call {
    struct job_filter filter;
    uint32_t group, named; /* states by --all or --ended, and by --state; 0: not given */
};

static const char doc[] =
    "Jobs that run, where, and jobs that wait, and why.\vThe states are waiting (pending in JSON), "
    "preparing, starting, running, ending; completed, failed, cancelled, timeout, oom, preempted, "
    "lost.";

static const struct argp_option options[] = {
    { NULL, 0, NULL, 0, "Which jobs (all that have not ended):", 1 },
    { "mine", 'm', NULL, 0, "only your own", 1 },
    { "me", 0, NULL, OPTION_ALIAS | OPTION_HIDDEN, NULL, 1 },
    { "user", 'u', "NAME", 0, "only this user's", 1 },
    { "account", 'A', "NAME", 0, "only this account's", 1 },
    { "state", 't', "STATE,...", 0, "only in these states", 1 },
    { "all", 'a', NULL, 0, "those that have ended as well", 1 },
    { "ended", KEY_ENDED, NULL, 0, "only those that have ended", 1 },
    { 0 },
};

static uint32_t state_bit(const char *word)
{
    enum job_state state;
    if (strcasecmp(word, "waiting") == 0)
        return 1u << JOB_PENDING;
    return job_state_parse(word, &state) < 0 ? 0 : 1u << state;
}

static void unknown_state(const char *word)
{
    const char *names[JOB_STATES];
    for (int i = 0; i < JOB_STATES; i++)
        names[i] = job_state_word((enum job_state)i);
    const char *near = nearest_name(word, names, JOB_STATES);
    if (near)
        verb_refuse("'%.32s' is no state; did you mean %s?", word, near);
    verb_refuse("'%.32s' is no state; 'divvy queue --help' lists them", word);
}

static void add_states(struct queue_call *c, const char *arg)
{
    auto_free char *words = text_dup(arg);
    char *save = NULL;
    for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (!state_bit(w))
            unknown_state(w);
        c->named |= state_bit(w);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct queue_call *c = state->input;
    switch (key) {
    case 'm':
        c->filter.has_uid = true;
        c->filter.uid = getuid();
        return 0;
    case 'u':
        verb_take_name(c->filter.user, sizeof c->filter.user, arg);
        return 0;
    case 'A':
        verb_take_name(c->filter.account, sizeof c->filter.account, arg);
        return 0;
    case 't':
        add_states(c, arg);
        return 0;
    case 'a':
        c->group = (1u << JOB_STATES) - 1;
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

int verb_queue(struct session *s, int argc, char **argv)
{
    struct queue_call call = { .filter = { .after = 0 } };
    struct job_list list = { .jobs = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    struct verb_words words = { .options = options, .parser = parse, .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    call.filter.states =
        call.named && call.group ? call.named & call.group : call.named | call.group;
    if (call.named && !call.filter.states)
        return verb_usage(s, "--ended leaves no job in a state that --state names");
    call.filter.fold = !s->json;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_jobs(c, &call.filter, &list, &e) < 0)
        return verb_fail(s, &e);
    if (s->json) {
        status = print_json(&list);
    } else {
        queue_draw(list.jobs, list.count, clock_now().wall_us, &s->screen, &t);
        if (!list.count && s->screen.tty) {
            text_clear(&t);
            text_add(&t, "No jobs.\n");
        }
        status = verb_print(&t);
    }
    job_list_done(&list);
    return status;
}
