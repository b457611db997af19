#include "cli/shares_draw.h"
#include "cli/verb.h"

static const char doc[] =
    "Who has which share of the server, what was used of it, and who goes first.\vLEVEL is an "
    "account's or user's part of the shares beside it over its part of what those used: above 1, "
    "it had less than its due. RANK 1 goes first; what runs counts a little ahead.";

int verb_shares(struct session *s, int argc, char **argv)
{
    struct share_view v = { .rows = NULL };
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    struct verb_words words = { .doc = doc };
    verb_parse(s, &words, argc, argv, NULL);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    if (!c)
        return status;
    if (client_shares(c, &v, &e) < 0)
        return verb_fail(s, &e);
    if (s->json) {
        status = verb_print_json(v.json);
    } else {
        shares_draw(&v, &s->screen, &t);
        status = verb_print(&t);
    }
    share_view_done(&v);
    return status;
}
