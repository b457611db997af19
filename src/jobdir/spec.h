/*
 * spec.h - spec.json: jobdir_spec to JSON and back. Inside jobdir.
 *
 * Written by divvyd, read by a supervisor that may be of another release:
 * unknown fields are ignored, every `v` since 1 is read.
 */
#ifndef DIVVY_JOBDIR_SPEC_H
#define DIVVY_JOBDIR_SPEC_H

#include "jobdir/jobdir.h"
#include "model/fields.h"

json_t *jobdir_spec_to_json(const struct jobdir_spec *s);
/* `ret` is filled only on success. -EINVAL, -EPROTONOSUPPORT. */
int jobdir_spec_from_json(json_t *j, struct jobdir_spec *ret, struct err *e);

/* Reads `v`: 0, or -EPROTONOSUPPORT when it is newer than this program. */
int jobdir_check_version(json_t *j, const char *what, struct err *e);

#endif
