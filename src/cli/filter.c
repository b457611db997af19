#include "cli/filter.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "config/nearest.h"

static int unknown_state(const char *word, struct err *e)
{
    const char *names[JOB_STATES + 1] = { [JOB_STATES] = "waiting" };
    for (int i = 0; i < JOB_STATES; i++)
        names[i] = job_state_word((enum job_state)i);
    const char *near = nearest_name(word, names, JOB_STATES + 1);
    if (near)
        return err_set(e, -EINVAL, "'%.32s' is no state; did you mean %s?", word, near);
    return err_set(e, -EINVAL, "'%.32s' is no state; 'divvy queue --help' lists them", word);
}

static uint32_t state_bit(const char *word)
{
    enum job_state state;
    if (strcasecmp(word, "waiting") == 0)
        return 1u << JOB_PENDING;
    return job_state_parse(word, &state) < 0 ? 0 : 1u << state;
}

int filter_add_states(const char *words, uint32_t *states, struct err *e)
{
    auto_free char *copy = text_dup(words);
    char *save = NULL;
    uint32_t named = 0;
    for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (!state_bit(w))
            return unknown_state(w, e);
        named |= state_bit(w);
    }
    if (!named) /* none at all would be every one of them */
        return unknown_state(words, e);
    *states |= named;
    return 0;
}

static bool take_option(int key, const char *arg, struct filter *f)
{
    struct err e = ERR_INIT;
    switch (key) {
    case 'm':
    case 'M':
        f->mine = true;
        return true;
    case 'u':
        verb_take_name(f->user, sizeof f->user, arg);
        return true;
    case 'A':
        verb_take_name(f->account, sizeof f->account, arg);
        return true;
    case 't':
        if (filter_add_states(arg, &f->states, &e) < 0)
            verb_refuse("%s", e.text);
        return true;
    default:
        return false;
    }
}

bool filter_parse(int key, const char *arg, struct filter *f)
{
    if (!take_option(key, arg, f))
        return false;
    if (f->mine && f->user[0])
        verb_refuse("--mine and --user each say whose; leave one out");
    return true;
}

static void copy_name(char *ret, size_t size, const char *name)
{
    size_t len = strnlen(name, size - 1); /* no name that was parsed is longer */
    memcpy(ret, name, len);
    ret[len] = '\0';
}

void filter_of_jobs(const struct filter *f, struct job_filter *ret)
{
    *ret = (struct job_filter){ .has_uid = f->mine,
                                .uid = f->mine ? getuid() : 0,
                                .states = f->states };
    copy_name(ret->user, sizeof ret->user, f->user);
    copy_name(ret->account, sizeof ret->account, f->account);
}

void filter_of_history(const struct session *s, const struct filter *f, struct history_filter *ret)
{
    auto_free char *number = text_fmt("%u", (unsigned)getuid());
    const char *own = s->caller_name ? s->caller_name() : NULL;
    *ret = (struct history_filter){ .after = 0 };
    copy_name(ret->user, sizeof ret->user, !f->mine ? f->user : own ? own : number);
    copy_name(ret->account, sizeof ret->account, f->account);
}
