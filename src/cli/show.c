#include "cli/ids.h"
#include "cli/queue_draw.h"

static const char doc[] =
    "All about one job, or several.\vCommand, directory, output and script are "
    "shown to the job's owner and to operators.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        ids_take(state->input, arg);
    else if (key == ARGP_KEY_NO_ARGS)
        verb_refuse("which job? divvy show 41");
    return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

static int show(const struct session *s, struct client *c, uint64_t id, struct text *t)
{
    struct err e = ERR_INIT;
    struct job_view v = { .id = 0 };
    if (client_job(c, id, &v, &e) < 0)
        return verb_fail(s, &e);
    int status = STATUS_OK;
    if (s->json) {
        status = verb_print_json(v.json);
    } else {
        text_add(t, t->len ? "\n" : "");
        job_draw(&v, clock_now().wall_us, &s->screen, t);
    }
    job_view_done(&v);
    return status;
}

int verb_show(struct session *s, int argc, char **argv)
{
    AUTO(ids) struct ids jobs = { .ids = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    int status = STATUS_OK;
    struct verb_words words = { .parser = parse, .args = "ID...", .doc = doc };
    verb_parse(s, &words, argc, argv, &jobs);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    for (size_t i = 0; c && i < jobs.count; i++) {
        int one = show(s, c, jobs.ids[i], &t);
        status = status == STATUS_OK ? one : status;
    }
    int printed = t.len ? verb_print(&t) : STATUS_OK;
    return status == STATUS_OK ? printed : status;
}
