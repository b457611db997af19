#include <inttypes.h>
#include <string.h>

#include "cli/batch.h"
#include "cli/ids.h"
#include "cli/submission.h"
#include "model/array.h"

#define KEY_QUIET 'q'
#define KEY_WAIT 'W'
#define KEY_BATCH 0x1102

struct submit_call {
    struct submission submission;
    bool quiet, wait;
    const char *batch; /* a file of jobs; NULL: none */
};

static const struct argp_option own_options[] = {
    { NULL, 0, NULL, 0, "How to submit:", 4 },
    { "batch", KEY_BATCH, "FILE", 0,
      "a job of each line of this file (-: standard input), as in --time 2h -- ./train.sh 1; "
      "thousands a second",
      4 },
    { "wait", KEY_WAIT, NULL, 0, "wait until it has ended, and exit as it did", 4 },
    { "quiet", KEY_QUIET, NULL, 0, "print only the job's number (as without a terminal)", 4 },
    { 0 },
};

static const char doc[] =
    "Queues a command, or a script whose #DIVVY lines are options, and comes back at once with "
    "its number.\vA script's text goes along with the job: what is changed in the file later does "
    "not matter. The command line wins over #DIVVY lines.\n\n"
    "  divvy submit --slice 2g.20gb --time 2h -- python3 train.py\n"
    "  divvy submit --gpu-mem 18G train.sh data/";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct submit_call *c = state->input;
    switch (key) {
    case KEY_QUIET:
        c->quiet = true;
        return 0;
    case KEY_BATCH:
        c->batch = arg;
        return 0;
    case KEY_WAIT:
        c->wait = true;
        return 0;
    default:
        return submission_parse(&c->submission, key, arg, state);
    }
}

static int tell(const struct session *s, const struct submit_call *c, const struct job_spec *spec,
                uint64_t id, const char *note)
{
    AUTO(text) struct text t = TEXT_INIT;
    if (s->json) {
        auto_json json_t *j = json_object();
        json_put_u64(j, "id", id);
        json_put_text(j, "note", note);
        return verb_print_json(j);
    }
    if (c->quiet || !s->screen.tty) {
        text_addf(&t, "%" PRIu64 "\n", id);
    } else {
        auto_free char *of_job =
            spec->array ? text_dup(spec->output) : job_array_output(spec->output, id, 0);
        auto_free char *path = job_output_path(of_job, id, 0);
        text_addf(&t, "#%" PRIu64 " %s asks for ", id, spec->name);
        request_add(&t, &spec->request);
        text_addf(&t, "%s%s; output in %s\n", spec->array ? ", array " : "",
                  spec->array ? spec->array : "", path);
    }
    return verb_print(&t);
}

static int wait_for_one(const struct session *s, struct client *c, uint64_t id)
{
    struct job_view v = { .id = 0 };
    struct err e = ERR_INIT;
    if (client_wait(c, id, CLIENT_UNTIL_ENDED, -1, &v, &e) < 0)
        return verb_fail(s, &e);
    submission_tell_end(&v);
    int status =
        v.exit.kind == EXIT_NONE && v.state == JOB_CANCELLED ? 130 : job_exit_status(&v.exit);
    job_view_done(&v);
    return status;
}

/* All tasks of an array, and then as the first that failed. */
static int wait_for_end(const struct session *s, struct client *c, uint64_t id)
{
    AUTO(ids) struct ids jobs = { .verb = "submit" };
    ids_add(&jobs, id);
    int status = ids_resolve(s, c, true, &jobs);
    for (size_t i = 0; i < jobs.count; i++) {
        int one = wait_for_one(s, c, jobs.items[i].id);
        status = status == STATUS_OK ? one : status;
    }
    return status;
}

static int submit_batch(const struct session *s, struct submit_call *call)
{
    if (call->submission.command)
        return verb_usage(s,
                          "--batch takes the commands from %.200s, and there is one here, too: "
                          "%.64s",
                          call->batch, call->submission.command[0]);
    if (call->wait)
        return verb_usage(s, "--wait waits for one job; divvy wait takes the numbers that --batch "
                             "prints");
    int status = batch_submit(s, call->batch, &call->submission);
    job_options_done(&call->submission.options);
    return status;
}

int verb_submit(struct session *s, int argc, char **argv)
{
    struct submit_call call = { .quiet = false };
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    uint64_t id = 0;
    auto_free char *note = NULL;
    int status = STATUS_OK;
    struct argp_option options[64];
    size_t n = 0;
    for (const struct argp_option *o = job_options_argp(); o->name || o->doc; o++)
        options[n++] = *o;
    memcpy(options + n, own_options, sizeof own_options);
    struct verb_words words = { .options = options,
                                .parser = parse,
                                .args =
                                    "SCRIPT [ARGUMENT...]\n-- COMMAND [ARGUMENT...]\n--batch FILE",
                                .doc = doc,
                                .flags = ARGP_IN_ORDER };
    verb_parse(s, &words, argc, argv, &call);
    s->own_failure = call.wait ? STATUS_OURS : 0;
    if (call.batch)
        return submit_batch(s, &call);
    status = submission_spec(s, &call.submission, true, &spec);
    if (status != STATUS_OK)
        return status;
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (c)
        status = submission_send(s, c, &spec, &id, &note);
    if (status == STATUS_OK)
        status = tell(s, &call, &spec, id, note);
    return status == STATUS_OK && call.wait ? wait_for_end(s, c, id) : status;
}
