/* What a command without a daemon began and could not finish. */
#include "daemon/layouts.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/killpoint.h"
#include "base/log.h"

void journal_cut_over(const struct apply *a)
{
    log_line(a->state == APPLY_DONE ? LOG_NOTE : LOG_WARN,
             "a change of layouts that a command could not finish is %s%s%s",
             apply_state_word(a->state), a->failure[0] ? ": " : "", a->failure);
}

/* A command that still runs has the cards' locks: then it is not ours to finish. */
bool journal_all_locked(struct daemon *d)
{
    for (size_t i = 0; i < d->card_count; i++) {
        struct err e = ERR_INIT;
        if (cards_lock(d, d->cards[i], &e) < 0)
            return false;
    }
    return true;
}

static void take_journal(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    struct apply a;
    int r = journal_resume(d->paths.state, &a, &l->journal, &e);
    if (r < 0) {
        if (r != -ENOENT)
            log_line(LOG_ERROR, "a change of layouts was cut short and cannot be finished: %s",
                     e.text);
        l->journal_sought = true;
        return;
    }
    l->journal_sought = true;
    bool taken = l->cut.open && l->work == FOR_JOURNAL; /* before a crash */
    if (!taken && apply_next(&a)) {
        log_line(LOG_NOTE, "a command was cut short while it changed layouts; that is finished "
                           "first");
        l->work = FOR_JOURNAL;
        if (cut_adopt_layout(d, &l->cut, &a, LAYOUTS_WHO_JOURNAL)) {
            d->recover_cuts = true;
            return;
        }
        l->journal_sought = false;
        journal_close(take_ptr(l->journal));
    }
    apply_done(&a);
}

void journal_seek(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct stat st;
    if (l->journal_sought || (l->cut.open && l->work != FOR_JOURNAL))
        return;
    auto_free char *path = text_fmt("%s/apply.journal", d->paths.state);
    if (stat(path, &st) < 0)
        l->journal_sought = true;
    else if (journal_all_locked(d) && turn_write(d))
        take_journal(d);
}

void layouts_committed(struct daemon *d)
{
    struct layouts *l = d->layouts;
    struct err e = ERR_INIT;
    reboots_committed(d);
    if (!l->journal)
        return;
    KILLPOINT(JOURNAL_TAKEN);
    if (journal_finish(take_ptr(l->journal), &e) < 0)
        log_line(LOG_ERROR, "%s", e.text);
}
