/*
 * shares.h - the keys of divvy.yaml that say who gets how much: accounts,
 * limits, classes of jobs, the order of the queue and what cards cost.
 *
 *     accounts:
 *       lab:  {share: 3, limits: {cards: 6}}
 *       nlp:  {parent: lab, users: [alice, bob], user_shares: {alice: 2}}
 *       sims: {parent: lab, groups: [sims], inside: las, user_limits: {running: 4}}
 *     qos:
 *       urgent: {priority: 10, charge: 2, preempts: [spare], users: [alice]}
 *       spare:  {charge: 0.1, preempt: requeue, limits: {slices: {1g.10gb: 7}}}
 *     order:  {share: 1, age: 0.2, age_max: 7d}
 *     charge: {A100-SXM4-80GB: 1, A30: 0.3}
 *
 * The readers are rows of the table in divvyd.c; each takes the whole
 * configuration as its place.
 */
#ifndef DIVVY_CONFIG_SHARES_H
#define DIVVY_CONFIG_SHARES_H

#include "config/field.h"
#include "model/qos.h"

#define CONFIG_NAME_MAX 32u /* bytes of an account name */
#define CONFIG_ACCOUNTS_MAX 2000u
#define CONFIG_DEPTH_MAX 16u /* accounts below accounts */
#define CONFIG_LAS_MAX 8u    /* thresholds */

/* In which order the jobs of an account go among themselves. */
enum config_inside {
    INSIDE_USERS = 0, /* each user has a share of his own */
    INSIDE_FIFO,      /* first come, first served, whose they are does not matter */
    INSIDE_LAS,       /* least attained service: jobs that had little so far go first */
};

struct config_user_share {
    char *user;
    double share;
};

struct config_account {
    char *name;
    char *parent;              /* NULL: none */
    struct field_words users;  /* user names; "*" is everybody who is in no other account */
    struct field_words groups; /* Unix groups */
    double share;              /* weight against its siblings; 0: after all others */
    int inside;                /* enum config_inside */
    struct config_user_share *user_shares; /* users not named have 1 */
    size_t user_share_count, user_share_alloc;
    struct limits limits;      /* of all jobs of it and of the accounts below it */
    struct limits user_limits; /* of each user's jobs in it and below */
};

/* Weights of what decides between the users and accounts that wait in one tier. */
struct config_order {
    double share; /* times the fair share factor, 0 to 1 */
    double age;   /* times waited / age_max, at most 1 */
    double size;  /* times the part of all cards that the job takes; below 0: small ones first */
    int64_t age_max_us;
};

struct config_charge {
    char *board; /* the card's name as the driver says it, "NVIDIA " may be left out */
    double factor;
};

field_read_fn shares_read_accounts, shares_read_qos, shares_read_order, shares_read_las,
    shares_read_charge;
field_read_fn shares_read_limits; /* to a struct limits */

struct divvyd_config;
void shares_config_init(struct divvyd_config *c);
void shares_config_done(struct divvyd_config *c);
/* What can only be seen when all is read: parents, classes that are named. -EINVAL. */
int shares_config_check(const struct yaml_node *root, const struct divvyd_config *c, struct err *e);

#endif
