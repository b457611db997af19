#include "model/qos.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

void qos_init(struct qos *q, const char *name)
{
    *q = (struct qos){ .name = text_dup(name),
                       .charge = 1,
                       .limits = LIMITS_NONE,
                       .user_limits = LIMITS_NONE,
                       .grace_us = CLOCK_MINUTE };
}

void qos_done(struct qos *q)
{
    free(q->name);
    strv_free(q->preempts);
    strv_free(q->accounts);
    strv_free(q->groups);
    strv_free(q->users);
    memset(q, 0, sizeof *q);
}

bool qos_is_name(const char *s)
{
    size_t len = strlen(s);
    return len >= 1 && len <= QOS_NAME_MAX && s[0] != '-' && s[0] != '.' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == len;
}

char *qos_preempt_text(const struct qos *q)
{
    static const char *const words[] = { "never", "requeue", "cancel" };
    if (q->preempt != PREEMPT_SIGNAL)
        return text_dup(words[q->preempt]);
    const char *word = signal_word(q->signal);
    return word ? text_fmt("signal:%s", word) : text_fmt("signal:%d", q->signal);
}

int qos_preempt_parse(const char *word, int *ret_preempt, int *ret_signal, struct err *e)
{
    int signal = SIGTERM, preempt;
    if (strcmp(word, "never") == 0) {
        preempt = PREEMPT_NEVER;
    } else if (strcmp(word, "requeue") == 0) {
        preempt = PREEMPT_REQUEUE;
    } else if (strcmp(word, "cancel") == 0) {
        preempt = PREEMPT_CANCEL;
    } else if (text_starts(word, "signal:")) {
        preempt = PREEMPT_SIGNAL;
        int r = signal_parse(word + strlen("signal:"), &signal, e);
        if (r < 0)
            return r;
    } else {
        return err_set(e, -EINVAL,
                       "'%.32s' is no way to push a job out; never, requeue, cancel and "
                       "signal:NAME are",
                       word);
    }
    *ret_preempt = preempt;
    *ret_signal = signal;
    return 0;
}

bool qos_may_preempt(const struct qos *q, const struct qos *other)
{
    for (char **w = q->preempts; w && *w; w++)
        if (strcmp(*w, other->name) == 0)
            return other->preempt != PREEMPT_NEVER;
    return false;
}
