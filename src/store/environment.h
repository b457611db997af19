/*
 * environment.h - the environments of jobs: each content is kept once, however many
 * jobs have it. One that no job uses any more goes with the job that was its last.
 */
#ifndef DIVVY_STORE_ENVIRONMENT_H
#define DIVVY_STORE_ENVIRONMENT_H

#include "store/store.h"

/* The row of that content, made where there is none. `env` is NULL-terminated. */
int environment_keep(struct store *s, char *const *env, int64_t *ret_id, struct err *e);

/*
 * What a row holds, NULL-terminated; ended by strv_free. What stands after the last
 * zero byte is no entry: every entry ends with one.
 */
char **environment_split(const char *data, size_t len);

#endif
