#include "daemon/told.h"

#include <inttypes.h>

#include "model/view.h"

void told_put(char ***env, const char *name, const char *value)
{
    auto_free char *entry = text_fmt("%s=%s", name, value ? value : "");
    strv_add(env, entry);
}

void told_put_number(char ***env, const char *name, int64_t n)
{
    auto_free char *value = text_fmt("%" PRId64, n);
    told_put(env, name, value);
}

static void put_place(char ***env, const struct attempt *a)
{
    AUTO(text) struct text all = TEXT_INIT;
    for (size_t i = 0; a && i < a->place.count; i++) {
        text_add(&all, i ? "," : "");
        placed_add_text(&all, &a->place.items[i]);
    }
    told_put(env, "DIVVY_SLICES", all.buf);
}

void told_add(char ***env, const struct job *j, const char *event, const char *why)
{
    const struct attempt *a = j->attempt;
    bool over = a && a->exit.kind != EXIT_NONE;
    told_put(env, "DIVVY_EVENT", event);
    told_put_number(env, "DIVVY_JOB_ID", (int64_t)j->id);
    told_put(env, "DIVVY_JOB_NAME", j->name);
    told_put(env, "DIVVY_STATE", job_state_word(j->state));
    told_put(env, "DIVVY_REASON", why && why[0] ? why : over ? a->exit.text : "");
    if (over)
        told_put_number(env, "DIVVY_EXIT_STATUS", job_exit_status(&a->exit));
    put_place(env, a);
}
