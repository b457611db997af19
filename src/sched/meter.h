/*
 * meter.h - inside sched/: limits, and what counts against them.
 *
 * A fence is what an account, a class or the whole server has around it:
 * limits of all its jobs together, and limits of each user's jobs in it. A
 * meter counts what is used of one such set of limits. A shape knows the
 * meters of its jobs: its account's and those above it, its class's, the
 * server's; each once for all and once for its user, where anything is
 * limited at all. So a start is checked against a handful of numbers.
 */
#ifndef DIVVY_SCHED_METER_H
#define DIVVY_SCHED_METER_H

#include "base/map.h"
#include "base/text.h"
#include "model/inventory.h"
#include "model/limits.h"

struct sched;
struct shape;
struct account;
struct class;
struct sched_job;

struct meter {
    const struct limits *limits; /* of the fence */
    const char *fence;           /* its name: "nlp", "class urgent", "this server" */
    char *user;                  /* owned; NULL: all of them */
    uint64_t compute_ppm, mem_ppm, cards, running, pending;
    uint64_t slices[LIMIT_SLICES_MAX]; /* by index in limits->slices */
    int64_t submits_until_us;          /* the allowance is used up to that time */
};

struct fence {
    char *name; /* owned */
    struct limits all, each_user;
    struct meter meter; /* of `all` */
    struct map users;   /* uid + 1 -> meter of `each_user` */
};

void fence_init(struct fence *f, const char *name);
void fence_done(struct fence *f);
/* The fence around all that is neither short nor attached, as the policy has it. */
void keep_init(struct sched *s);
/* Measures it by the cards there are; by `all`, those too that take nothing at the moment. */
void keep_look(struct sched *s, const struct inventory *inv, bool all);
/* Before anything counts against it. */
void fence_set(struct fence *f, const struct limits *all, const struct limits *each_user);

/* What one thing takes of a meter, and how much may be. */
struct excess {
    const struct meter *meter; /* NULL: nothing is exceeded */
    enum limit_kind kind;
    uint32_t slice; /* LIMIT_SLICES: index in limits->slices */
    uint64_t used, asks, max;
};

/* The meters of a user's jobs; account and class may be NULL. The list is the caller's. */
struct meter **meters_find(struct sched *s, struct account *a, struct class *c,
                           const struct sched_job *job, uint32_t *ret_count);
/* Do any of these limits tell users apart? */
bool meters_by_user(const struct sched *s, const struct account *a, const struct class *c);
/* Would a job of this shape go over a limit wherever it was placed? By its question's need. */
struct excess meters_full(const struct shape *sh);
/* Would it, on this place? */
struct excess meters_over(const struct shape *sh, const struct place *p);
/* May so many of its jobs run at a time, if nothing else does? */
bool meters_allow(const struct shape *sh, uint32_t jobs);
/* Does it ask for more than it could ever have? */
struct excess meters_never(const struct shape *sh);
void meters_take(const struct shape *sh, const struct place *p);
void meters_give(const struct shape *sh, const struct place *p);
/* A job more or less that waits. */
void meters_wait(const struct shape *sh, int jobs);
void meters_submitted(const struct shape *sh, int64_t at_us);
/* What handing in one more job at that time, with that limit of wall time, would exceed. */
struct excess meters_refuse(const struct shape *sh, int64_t limit_us, uint32_t jobs, int64_t now_us,
                            int64_t *ret_frees_us);

/*
 * Which of the running jobs end in time to make room under that limit, by
 * their own limits. INT64_MAX: nobody can say.
 */
int64_t excess_ends_us(const struct sched *s, const struct excess *x, uint64_t *ret_job);
/* "nlp may use 4 cards at a time, uses 3, and this asks for 2" */
void excess_add(struct text *t, const struct excess *x);

#endif
