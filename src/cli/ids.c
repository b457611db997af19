#include "cli/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "model/array.h"

void ids_done(struct ids *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].indices);
    free(l->items);
    *l = (struct ids){ .items = NULL };
}

void ids_add(struct ids *l, uint64_t id)
{
    ARRAY_ROOM(l->items, l->alloc, l->count + 1);
    l->items[l->count++] = (struct id){ .id = id };
}

/* "7" or "[3-9,12]", or with the limit that divvy queue shows: "[8-95%4]". */
static char *read_indices(const char *words)
{
    AUTO(job_array) struct job_array a = { .indices = NULL };
    size_t len = strlen(words);
    bool brackets = words[0] == '[' && words[len - 1] == ']';
    char *indices = text_fmt("%.*s", (int)(brackets ? len - 2 : len), words + brackets);
    indices[strcspn(indices, "%")] = '\0';
    if (job_array_parse(indices, &a, NULL) == 0 && (brackets || a.count == 1))
        return indices;
    free(indices);
    return NULL;
}

void ids_take(struct ids *l, const char *word)
{
    auto_free char *digits = text_dup(word[0] == '#' ? word + 1 : word);
    char *under = strchr(digits, '_');
    char *indices = NULL;
    uint64_t id = 0;
    if (under)
        *under++ = '\0';
    if (under)
        indices = read_indices(under);
    if (text_parse_u64(digits, 1, INT64_MAX, "job", &id, NULL) < 0 || (under && !indices))
        verb_refuse("'%.64s' is no job; jobs have numbers, as 'divvy queue' shows them: 41, or "
                    "41_7 and 41_[3-9] for tasks of an array",
                    word);
    ids_add(l, id);
    l->items[l->count - 1].indices = indices;
}

/* Adds the tasks that `id` names to `ret`. */
static int add_tasks(const struct id *id, const struct job_view *v, struct ids *ret, struct err *e)
{
    AUTO(job_array) struct job_array all = { .indices = NULL };
    AUTO(job_array) struct job_array some = { .indices = NULL };
    if (!v->array || v->array_id != id->id)
        return err_set(e, -ENOENT, "job %" PRIu64 " is no array", id->id);
    int r = job_array_parse(v->array, &all, e);
    if (r == 0)
        r = job_array_parse(id->indices ? id->indices : v->array, &some, e);
    for (size_t i = 0; r == 0 && i < some.count; i++) {
        int64_t at = job_array_position(&all, some.indices[i]);
        if (at < 0)
            return err_set(e, -ENOENT, "array %" PRIu64 " has no task %u; it has %s", id->id,
                           some.indices[i], v->array);
        ids_add(ret, id->id + (uint64_t)at);
    }
    return r;
}

static int resolve(struct client *c, const struct id *id, bool whole, struct ids *ret,
                   struct err *e)
{
    struct job_view v = { .id = 0 };
    if (!id->indices && !whole) {
        ids_add(ret, id->id);
        return 0;
    }
    int r = client_job(c, id->id, &v, e);
    if (r == 0 && (id->indices || (v.array && v.array_id == id->id)))
        r = add_tasks(id, &v, ret, e);
    else if (r == 0)
        ids_add(ret, id->id);
    job_view_done(&v);
    return r;
}

int ids_resolve(const struct session *s, struct client *c, bool whole, struct ids *l)
{
    AUTO(ids) struct ids resolved = { .verb = l->verb };
    struct err e = ERR_INIT;
    int status = STATUS_OK;
    for (size_t i = 0; i < l->count; i++)
        if (resolve(c, &l->items[i], whole, &resolved, &e) < 0)
            status = verb_fail(s, &e);
    struct ids asked = *l;
    *l = resolved;
    resolved = asked;
    return status;
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
    if (c)
        status = ids_resolve(s, c, false, &jobs);
    for (size_t i = 0; c && i < jobs.count; i++) {
        int one = fn(s, c, jobs.items[i].id, &t);
        status = status == STATUS_OK ? one : status;
    }
    int printed = t.len ? verb_print(&t) : STATUS_OK;
    return status == STATUS_OK ? printed : status;
}

int ids_act_on(const struct session *s, struct client *c, const struct id *id, enum job_action what,
               json_t *jobs)
{
    struct err e = ERR_INIT;
    auto_free char *note = NULL;
    if (client_act(c, id->id, what, id->indices, &note, &e) < 0)
        return verb_fail(s, &e);
    if (note)
        verb_note("%s", note);
    if (jobs)
        (void)json_array_append_new(jobs, json_integer((json_int_t)id->id));
    return STATUS_OK;
}

int ids_act(struct session *s, int argc, char **argv, const char *verb, const char *doc,
            enum job_action what)
{
    AUTO(ids) struct ids jobs = { .verb = verb };
    int status = STATUS_OK;
    struct verb_words words = { .parser = parse, .args = "ID...", .doc = doc };
    verb_parse(s, &words, argc, argv, &jobs);
    AUTO_PTR(client_close) struct client *c = verb_connect(s, &status);
    auto_json json_t *done = json_array();
    for (size_t i = 0; c && i < jobs.count; i++) {
        int one = ids_act_on(s, c, &jobs.items[i], what, done);
        status = status == STATUS_OK ? one : status;
    }
    if (c && s->json) {
        auto_json json_t *j = json_object();
        json_put(j, "jobs", json_incref(done));
        (void)verb_print_json(j); /* the status tells of failures */
    }
    return status;
}
