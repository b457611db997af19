/*
 * share_view.h - the share tree as divvyd tells it and `divvy shares` draws it.
 *
 * Rows stand in the order of the tree: an account, its users, the accounts
 * below it. Strings are borrowed; of a view that a reader made they belong to
 * its `json`.
 */
#ifndef DIVVY_MODEL_SHARE_VIEW_H
#define DIVVY_MODEL_SHARE_VIEW_H

#include "model/fields.h"

struct share_row {
    const char *account;
    const char *parent;   /* NULL: top */
    const char *user;     /* NULL: the account itself */
    const char *inside;   /* "users", "fifo" or "las" */
    uint32_t depth;       /* accounts above it; a user stands one below his account */
    double weight;        /* as configured */
    double share;         /* its part among its siblings, 0 to 1 */
    double used_card_us;  /* decayed */
    double usage;         /* its part of what its siblings used, 0 to 1 */
    double level;         /* level fairness: share / usage; INFINITY: nothing used (null in JSON) */
    double factor;        /* 0 to 1, 1 for whoever goes first */
    uint32_t rank;        /* among all who share, 1 goes first; 0: nobody is in it yet */
    uint64_t running_ppm; /* of a card, as charged */
    uint32_t running, pending;
};

struct share_view {
    struct share_row *rows; /* owned */
    size_t count, alloc;
    int64_t half_life_us;
    json_t *json; /* owner of the strings, where a reader made it; else NULL */
};

void share_view_done(struct share_view *v);
struct share_row *share_view_add(struct share_view *v); /* zeroed */
json_t *share_view_to_json(const struct share_view *v);
int share_view_from_json(json_t *j, struct share_view *ret, struct err *e);

#endif
