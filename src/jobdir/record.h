/*
 * record.h - `started` and `exit`: to JSON and back. Inside jobdir.
 */
#ifndef DIVVY_JOBDIR_RECORD_H
#define DIVVY_JOBDIR_RECORD_H

#include "jobdir/jobdir.h"
#include "model/fields.h"

json_t *jobdir_started_to_json(const struct jobdir_started *s);
json_t *jobdir_exit_to_json(const struct jobdir_exit *x);
/* `ret` is filled only on success. -EINVAL, -EPROTONOSUPPORT. */
int jobdir_started_from_json(json_t *j, struct jobdir_started *ret, struct err *e);
int jobdir_exit_from_json(json_t *j, struct jobdir_exit *ret, struct err *e);

#endif
