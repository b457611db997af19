/*
 * body.h - what requests carry, read strictly.
 *
 * Pure functions from bytes to model structs: the fuzzer's door. A field or a
 * parameter that nobody knows is refused, so that a typing mistake is never
 * taken for consent.
 */
#ifndef DIVVY_API_BODY_H
#define DIVVY_API_BODY_H

#include "api/api.h"

/* POST /v1/jobs. `ret` is job_spec_done's. -EINVAL, -E2BIG. */
int api_read_submit(const char *body, size_t len, struct job_spec *ret, struct err *e);

/*
 * POST /v1/batch: {"jobs": [as above, …], "env": […]}; `env` is that of jobs that
 * name none. Nobody's id is known yet, so none may depend on another one of them.
 * *ret (a list on the heap) and its specs are the caller's. -EINVAL, -E2BIG.
 */
int api_read_submit_many(const char *body, size_t len, struct job_spec **ret, size_t *ret_count,
                         struct err *e);

/* PATCH /v1/cards/N: pool and mode, -1 where absent; at least one is there. -EINVAL. */
int api_read_set_card(const char *body, size_t len, int *ret_pool, int *ret_mode, struct err *e);

/* POST /v1/layout. `ret` is layout_order_done's. -EINVAL. */
int api_read_layout(const char *body, size_t len, struct layout_order *ret, struct err *e);

/* POST /v1/maintenance. -EINVAL. */
int api_read_maintenance(const char *body, size_t len, struct maintenance_order *ret,
                         struct err *e);

/* A body that must be empty or "{}". -EINVAL. */
/* {"indices": "3-9"} or nothing; *ret (owned) is NULL then. */
int api_read_indices(const char *body, size_t len, char **ret, struct err *e);
int api_read_nothing(const char *body, size_t len, struct err *e);

/* What stands behind the "?", decoded, in its order. Borrowed. */
struct api_parameter {
    const char *key;
    const char *value; /* NULL: no "=" */
};

#define API_PARAMETERS_MAX 16

/*
 * GET /v1/jobs: user, uid, account, state (words separated by commas, or
 * "active", "ended", "all"), after, limit. -EINVAL.
 */
int api_read_filter(const struct api_parameter *p, size_t n, struct job_filter *ret, struct err *e);

/* GET /v1/history: user, account, from, to (µs since 1970 UTC), after, limit. -EINVAL. */
int api_read_history(const struct api_parameter *p, size_t n, struct history_filter *ret,
                     struct err *e);
/* GET /v1/usage: by, from, to (days, 2026-11-30; `to` is not in it). Today by user without. -EINVAL. */
int api_read_usage(const struct api_parameter *p, size_t n, struct ledger *ret, struct err *e);

/* STARTING: its supervisor was asked to start it, so that somebody may attach. */
enum api_until { API_UNTIL_STARTING, API_UNTIL_STARTED, API_UNTIL_ENDED };

/* GET /v1/jobs/N/wait: until (starting, started, ended), timeout_ms (0 to API_WAIT_MAX_US). -EINVAL. */
int api_read_wait(const struct api_parameter *p, size_t n, enum api_until *ret_until,
                  int64_t *ret_timeout_us, struct err *e);

/* GET /v1/inventory: fresh (true, false). -EINVAL. */
int api_read_inventory(const struct api_parameter *p, size_t n, bool *ret_fresh, struct err *e);

/* For routes that know no parameters. -EINVAL when there is one. */
int api_read_no_parameters(const struct api_parameter *p, size_t n, struct err *e);

#endif
