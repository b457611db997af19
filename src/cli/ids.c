#include "cli/ids.h"

void ids_done(struct ids *l)
{
    free(l->ids);
    *l = (struct ids){ .ids = NULL };
}

void ids_take(struct ids *l, const char *word)
{
    const char *digits = word[0] == '#' ? word + 1 : word;
    uint64_t id = 0;
    if (text_parse_u64(digits, 1, INT64_MAX, "job", &id, NULL) < 0)
        verb_refuse("'%.64s' is no job; jobs have numbers, as 'divvy queue' shows them", word);
    ARRAY_ROOM(l->ids, l->alloc, l->count + 1);
    l->ids[l->count++] = id;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct ids *l = state->input;
    if (key == ARGP_KEY_ARG)
        ids_take(l, arg);
    else if (key == ARGP_KEY_NO_ARGS)
        verb_refuse("which job? divvy %s 41", l->verb);
    return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

int ids_each(struct session *s, int argc, char **argv, const char *verb, const char *doc, ids_fn fn)
{
    AUTO(ids) struct ids jobs = { .verb = verb };
    AUTO(text) struct text t = TEXT_INIT;
    int status = STATUS_OK;
    struct verb_words words = { .parser = parse, .args = "ID...", .doc = doc };
    verb_parse(s, &words, argc, argv, &jobs);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    for (size_t i = 0; c && i < jobs.count; i++) {
        int one = fn(s, c, jobs.ids[i], &t);
        status = status == STATUS_OK ? one : status;
    }
    int printed = t.len ? verb_print(&t) : STATUS_OK;
    return status == STATUS_OK ? printed : status;
}
