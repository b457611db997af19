/*
 * mig_hooks.h - the hooks file of NVIDIA's mig-parted.
 *
 *     version: v1
 *     hooks:
 *       apply-start:
 *         - {workdir: /etc, command: /bin/bash, args: ["-c", "…"], envs: {A: b}}
 *
 * apply-start comes before anything is changed, pre-apply-mode before a MIG
 * mode and pre-apply-config before slices are, and apply-exit at the end,
 * however it ended. The hooks of a point run in the order of the file. A point
 * or key that the original would pass over in silence is refused.
 */
#ifndef DIVVY_CONFIG_MIG_HOOKS_H
#define DIVVY_CONFIG_MIG_HOOKS_H

#include "config/field.h"

enum mig_hook_point { MIG_HOOK_START = 0, MIG_HOOK_MODE, MIG_HOOK_CONFIG, MIG_HOOK_EXIT };
#define MIG_HOOK_POINTS 4

struct mig_hook {
    char *workdir; /* NULL: where the caller is */
    char *command;
    struct field_words args;
    struct field_words envs; /* "NAME=value" */
};

struct mig_hooks {
    struct mig_hook *list[MIG_HOOK_POINTS];
    size_t count[MIG_HOOK_POINTS];
};

#define MIG_HOOKS_INIT                                                                             \
    {                                                                                              \
        .count = { 0 }                                                                             \
    }

void mig_hooks_done(struct mig_hooks *h);

/* "apply-start", "pre-apply-mode", … */
const char *mig_hook_word(enum mig_hook_point p);

/* -ENOENT, -EINVAL with file:line:column, -EFBIG. The caller ends `ret`. */
int mig_hooks_read(const char *path, struct mig_hooks *ret, struct err *e);
int mig_hooks_parse(const char *file, const char *text, size_t len, struct mig_hooks *ret,
                    struct err *e);

#endif
