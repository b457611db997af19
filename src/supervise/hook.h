/*
 * hook.h - programs of the administrator that run before and after an attempt.
 *
 * They run as the supervisor does (root; the user of a private Divvy), beside
 * the job and outside of its cgroups, with a small environment of their own:
 * PATH, DIVVY_HOOK (its name), DIVVY_UID, DIVVY_GID, DIVVY_USER and what the
 * tasks are told of their slices, joined by commas. Nothing of what the user
 * chose is in it. A program that somebody else could change is not run.
 *
 *     struct hook h = { .name = "prolog", .program = spec->prolog, .dir = dir };
 *     if (hook_run(&h, spec, e) < 0) the card is not to be used
 */
#ifndef DIVVY_SUPERVISE_HOOK_H
#define DIVVY_SUPERVISE_HOOK_H

#include "jobdir/jobdir.h"

struct hook {
    const char *name;    /* "prolog", "epilog" */
    const char *program; /* absolute */
    int dir;             /* of the job folder: a `stop` in it ends the hook; -1: nothing does */
};

/*
 * Runs it and waits, at most spec->hook_limit_us. 0 when it ended with 0.
 * -ECANCELED: the attempt was told to stop meanwhile, and the hook is dead.
 * Else negative with what it said last. What it leaves in its process group is
 * killed. Needs SIGCHLD to be blocked or default.
 */
int hook_run(const struct hook *h, const struct jobdir_spec *spec, struct err *e);

#endif
