/*
 * depend.h - what a job waits for: other jobs, to start or to end in some way.
 *
 *     afterok:41:42_7,afterany:43     all of them (,)
 *     afterok:41?afternotok:42        one of them (?)
 *     after:41+10                     ten minutes after it has started
 *     singleton                       earlier jobs of the same user and name
 *
 * A number alone means the whole array where it is an array's, else the job;
 * 42_7 is one task. Dependencies are on jobs that exist, so there is no cycle.
 */
#ifndef DIVVY_MODEL_DEPEND_H
#define DIVVY_MODEL_DEPEND_H

#include "base/cleanup.h"
#include "base/text.h"

#define DEPEND_MAX 64           /* of one job */
#define DEPEND_WORDS_MAX 4096   /* bytes, as they are written */
#define DEPEND_DELAY_MAX 525600 /* minutes: a year */

enum depend_kind {
    DEPEND_AFTER = 0,  /* it has started, be it in the queue again, or will not any more */
    DEPEND_AFTEROK,    /* it has completed */
    DEPEND_AFTERNOTOK, /* it has ended in any other way */
    DEPEND_AFTERANY,   /* it has ended */
    DEPEND_SINGLETON,
};

struct depend {
    enum depend_kind kind;
    uint64_t id;            /* 0: singleton */
    int64_t index;          /* of a task of the array `id`; -1: all of it */
    uint32_t delay_minutes; /* DEPEND_AFTER: met so long after that; 0: at once */
    /* For who judges it, not written down: when the delay is over, wall clock; 0: not known yet. */
    int64_t due_wall_us;
    bool dropped; /* and it counts from an end: what it names never started */
};

struct depend_list {
    struct depend *items;
    size_t count, alloc;
    bool any; /* one is enough */
};

void depend_list_done(struct depend_list *l);

/* -EINVAL, -E2BIG with what is wrong and what would work. */
int depend_parse(const char *words, struct depend_list *ret, struct err *e);
const char *depend_kind_word(enum depend_kind k);
/* As depend_parse reads it. */
void depend_add(struct text *t, const struct depend *d);
void depend_list_add(struct text *t, const struct depend_list *l);

/* How it is with what a dependency names: a job, a task, or all tasks of an array. */
struct depend_facts {
    uint64_t count;     /* jobs that it names; 0: none is known any more */
    uint64_t unstarted; /* of them: that have never started */
    uint64_t live;      /* that have not ended */
    uint64_t not_ok;    /* that ended otherwise than completed */
    uint64_t dropped;   /* that ended without having started */
    /* The last of them to start for the first time, or to end without, did so then; 0: none has. */
    int64_t begun_wall_us;
};

enum depend_answer { DEPEND_WAITS, DEPEND_MET, DEPEND_NEVER };

/* `f` is about at least one job. Not for DEPEND_SINGLETON. */
enum depend_answer depend_judge(enum depend_kind kind, const struct depend_facts *f);
/* The same with its delay, of which it takes note in `d`: `due_wall_us` and `dropped`. */
enum depend_answer depend_look(struct depend *d, const struct depend_facts *f, int64_t now_wall_us);

#endif
