/*
 * job_json.h - JSON forms of requests, specs, places and exits.
 *
 * Used by the API (bodies and answers), the store (one column each) and the
 * job folder. Sizes are bytes, times µs, parts ppm; what is not known, and what
 * is not cut yet, is null.
 */
#ifndef DIVVY_MODEL_JOB_JSON_H
#define DIVVY_MODEL_JOB_JSON_H

#include "model/fields.h"
#include "model/job.h"

json_t *request_to_json(const struct request *r);
json_t *place_to_json(const struct place *p);
json_t *exit_to_json(const struct job_exit *x);
/* Without the environment unless `with_env`: the store keeps that apart, once per content. */
json_t *job_spec_to_json(const struct job_spec *s, bool with_env);

/* Strict readers for requests and specs (they come from users), open ones for the others. */
int request_from_json(json_t *j, struct request *ret, struct err *e);
int job_spec_from_json(json_t *j, struct job_spec *ret, struct err *e);
/* Ignores fields that it does not know: for files that another release may have written. */
int job_spec_from_json_open(json_t *j, struct job_spec *ret, struct err *e);
int place_from_json(json_t *j, struct place *ret, struct err *e);
int exit_from_json(json_t *j, struct job_exit *ret, struct err *e);

const char *job_bind_word(enum job_bind b);
int job_bind_parse(const char *word, enum job_bind *ret, struct err *e);

#endif
