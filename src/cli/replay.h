/*
 * replay.h - inside cli/: what `divvy replay` was told, and how it tells what
 * came of it.
 */
#ifndef DIVVY_CLI_REPLAY_H
#define DIVVY_CLI_REPLAY_H

#include "cli/verb.h"
#include "policy/policy.h"
#include "replay/figures.h"

#define REPLAY_POLICIES_MAX 16u

/* A policy with its name and its figures. */
struct variant {
    char *name;         /* owned: its file, and what was changed of it */
    const char *layout; /* file of the slices that are cut first; NULL: none. Borrowed */
    struct divvyd_config config;
    struct replay_policy policy; /* its branches borrow from `config` */
    struct policy_branches branches;
    struct replay_figures figures;
    uint32_t changed; /* which options did: each once */
};

/* The scheduling part of a divvy.yaml; path NULL: the defaults. */
int variant_init(struct variant *v, const char *path, struct err *e);
void variant_done(struct variant *v);

enum replay_form { REPLAY_TABLE = 0, REPLAY_CSV, REPLAY_JSON };

/* Policies side by side; with `accounts` those of each below it. */
void replay_draw(const struct variant *v, size_t count, const struct screen *s, bool accounts,
                 struct text *ret);
void replay_csv(const struct variant *v, size_t count, bool accounts, struct text *ret);
json_t *replay_json(const struct trace *t, const struct variant *v, size_t count);

#endif
