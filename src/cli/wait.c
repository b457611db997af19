#include <inttypes.h>

#include "cli/ids.h"
#include "cli/submission.h"

struct wait_call {
    struct ids jobs;
    int64_t timeout_us;
};

static const char doc[] =
    "Waits until jobs have ended, and exits as they did: with the status of the first, in the "
    "order "
    "given, that did not end with 0.\vWhen the time is over first, the exit status is 124; when "
    "Divvy itself fails, 125. A daemon that is restarted meanwhile is waited for as well.";

static const struct argp_option options[] = {
    { "timeout", 'T', "TIME", 0, "wait at most so long, as in 90s or 2h", 1 },
    { 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wait_call *c = state->input;
    struct err e = ERR_INIT;
    switch (key) {
    case 'T':
        if (text_parse_duration(arg, "--timeout", &c->timeout_us, &e) < 0)
            verb_refuse("%s", e.text);
        return 0;
    case ARGP_KEY_ARG:
        ids_take(&c->jobs, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        verb_refuse("for which job? divvy wait 41");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int wait_one(const struct session *s, struct client *c, uint64_t id, int64_t left_us)
{
    struct err e = ERR_INIT;
    struct job_view v = { .id = 0 };
    if (client_wait(c, id, CLIENT_UNTIL_ENDED, left_us, &v, &e) < 0)
        return verb_fail(s, &e);
    int status = 124;
    if (job_state_ended(v.state)) {
        submission_tell_end(&v);
        status =
            v.exit.kind == EXIT_NONE && v.state == JOB_CANCELLED ? 130 : job_exit_status(&v.exit);
    } else {
        verb_note("#%" PRIu64 " is still %s", id, job_state_word(v.state));
    }
    if (s->json)
        (void)verb_print_json(v.json); /* the status says more */
    job_view_done(&v);
    return status;
}

int verb_wait(struct session *s, int argc, char **argv)
{
    struct wait_call call = { .timeout_us = -1 };
    int status = STATUS_OK;
    s->own_failure = STATUS_OURS;
    struct verb_words words = { .options = options, .parser = parse, .args = "ID...", .doc = doc };
    verb_parse(s, &words, argc, argv, &call);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    int64_t end_us = clock_now().boot_us + call.timeout_us;
    if (c)
        status = ids_resolve(s, c, true, &call.jobs);
    for (size_t i = 0; c && i < call.jobs.count; i++) {
        int64_t left_us = end_us - clock_now().boot_us;
        if (call.timeout_us < 0)
            left_us = -1;
        else if (left_us < 0)
            left_us = 0;
        int one = wait_one(s, c, call.jobs.items[i].id, left_us);
        status = status == STATUS_OK ? one : status;
    }
    ids_done(&call.jobs);
    return status;
}
