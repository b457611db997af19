/*
 * qos.h - classes of jobs: what is urgent, what it costs, what may push what out.
 *
 * Every job belongs to one class (--qos). A class of higher priority goes
 * first, whatever the shares say. Where nothing is configured there is one
 * class, "normal", and it changes nothing.
 *
 * A class lists the classes whose running jobs it may push out (`preempts`);
 * how a job is pushed out is up to its own class (`preempt`): most of what is
 * preempted is scavenging, and knows best how it wants to go.
 */
#ifndef DIVVY_MODEL_QOS_H
#define DIVVY_MODEL_QOS_H

#include "model/job.h"
#include "model/limits.h"

#define QOS_NAME_MAX 32u /* bytes */
#define QOS_MAX 64u      /* classes */
#define QOS_DEFAULT "normal"
#define QOS_GRACE_MAX_US CLOCK_DAY

/* How a job of this class goes when another needs its place. */
enum qos_preempt {
    PREEMPT_NEVER = 0, /* it is not pushed out, whoever names its class */
    PREEMPT_REQUEUE,   /* SIGTERM, then SIGKILL; back to its place in the queue */
    PREEMPT_CANCEL,    /* the same, and it ends as preempted */
    PREEMPT_SIGNAL,    /* `signal` first, `grace` to write a checkpoint; then as a requeue */
};

struct qos {
    char *name;
    uint32_t priority;         /* the tier: higher goes first */
    double charge;             /* what it pays is multiplied by this; 0 or more */
    struct limits limits;      /* of all its jobs together */
    struct limits user_limits; /* of each user's jobs in it */
    char **preempts;           /* names of classes; NULL: none */
    int preempt;               /* enum qos_preempt */
    int signal;                /* PREEMPT_SIGNAL */
    int64_t grace_us;          /* between that signal and SIGTERM; to QOS_GRACE_MAX_US */
    /* Who may use it: members of any of these; all NULL: everybody. */
    char **accounts, **groups, **users;
};

void qos_init(struct qos *q, const char *name);
void qos_done(struct qos *q);

/* 1 to QOS_NAME_MAX letters, digits, '.', '_' and '-', not beginning with '-' or '.'. */
bool qos_is_name(const char *s);

/* "never", "requeue", "cancel", "signal:USR1". NULL-safe for unknown signals. Caller frees. */
char *qos_preempt_text(const struct qos *q);
/* The same read. -EINVAL with what works. */
int qos_preempt_parse(const char *word, int *ret_preempt, int *ret_signal, struct err *e);

/* May jobs of `q` push out jobs of the class `other`? */
bool qos_may_preempt(const struct qos *q, const struct qos *other);

#endif
