#include "cli/ids.h"
#include "cli/queue_draw.h"

static const char doc[] =
    "All about one job, or several.\vCommand, directory, output and script are "
    "shown to the job's owner and to operators.";

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
    return ids_each(s, argc, argv, "show", doc, show);
}
