/* Who has a card or a slice, in as many words as there is room for. */
#include "cli/gpus_hold.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/table.h"

static const struct gpu_process *find_process(const struct inventory_card *c, pid_t pid)
{
    for (size_t i = 0; i < c->card.process_count; i++)
        if (c->card.processes[i].pid == pid)
            return &c->card.processes[i];
    return NULL;
}

static void add_process(struct text *t, const struct gpu_process *p, pid_t pid,
                        const struct gpus_look *look)
{
    text_addf(t, "pid %d", (int)pid);
    if (!p)
        return;
    auto_free char *name = cells_clean(p->name);
    const char *user =
        p->uid != (uid_t)-1 && look->user_name ? look->user_name(p->uid, look->user_arg) : NULL;
    if (name[0])
        text_addf(t, " %s", name);
    if (user)
        text_addf(t, " (%s)", user);
    else if (p->uid != (uid_t)-1)
        text_addf(t, " (uid %u)", (unsigned)p->uid);
}

static void add_job(struct text *t, const struct inventory *inv, const struct hold *h,
                    enum hold_words words)
{
    text_addf(t, "#%" PRIu64, h->job_id);
    if (words <= HOLD_WORDS_USER && h->user[0])
        text_addf(t, " %s", h->user);
    if (words == HOLD_WORDS_ALL && h->name[0])
        text_addf(t, " %s", h->name);
    if (words <= HOLD_WORDS_TIME && h->since_boot_us) {
        text_add(t, " ");
        since_add(t, h->since_boot_us, inv->now.boot_us);
    }
}

void hold_add(struct text *t, const struct inventory *inv, const struct inventory_card *c,
              const struct hold *h, const struct gpus_look *look, enum hold_words words)
{
    switch (h->kind) {
    case HOLD_NONE:
        text_add(t, c->owners_known ? "idle" : "no process");
        break;
    case HOLD_JOB:
        add_job(t, inv, h, words);
        break;
    case HOLD_FOREIGN:
    case HOLD_UNKNOWN:
        if (words == HOLD_WORDS_LEAST)
            text_add(t, "in use");
        else
            add_process(t, words == HOLD_WORDS_ALL ? find_process(c, h->pid) : NULL, h->pid, look);
        if (words == HOLD_WORDS_ALL)
            text_add(t, h->kind == HOLD_FOREIGN ? " is not a Divvy job" : ", owner unknown");
        break;
    }
}

bool hold_add_fitting(struct text *t, const struct inventory *inv, const struct inventory_card *c,
                      const struct hold *h, const struct gpus_look *look, size_t wide)
{
    for (int words = HOLD_WORDS_ALL; words <= HOLD_WORDS_LEAST; words++) {
        AUTO(text) struct text try = TEXT_INIT;
        hold_add(&try, inv, c, h, look, (enum hold_words)words);
        if (!try.len || cells_wide(try.buf) > wide)
            continue;
        text_add(t, try.buf);
        bool foreign = h->kind == HOLD_FOREIGN || h->kind == HOLD_UNKNOWN;
        return foreign ? words == HOLD_WORDS_ALL : words <= HOLD_WORDS_USER;
    }
    return false;
}

void gpus_add_hold(struct text *t, const struct inventory *inv, const struct inventory_card *c,
                   const struct hold *h, const struct gpus_look *look)
{
    hold_add(t, inv, c, h, look, HOLD_WORDS_ALL);
}
