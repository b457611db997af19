/*
 * moment.h - a time that people write: "16:40", "tomorrow", "now+2h",
 * "2026-11-30T08:00". Wall clock, in the time zone of the process.
 *
 * A time of day that has passed is tomorrow's. Pure but for the time zone:
 * what time it is now is handed in.
 *
 *     moment_parse("now+2h", clock_now().wall_us, "--begin", &at_us, e);
 */
#ifndef DIVVY_CONFIG_MOMENT_H
#define DIVVY_CONFIG_MOMENT_H

#include <stdint.h>

#include "base/err.h"

/* µs since 1970. -EINVAL with the forms that work; `what` names the option. */
int moment_parse(const char *words, int64_t now_wall_us, const char *what, int64_t *ret_wall_us,
                 struct err *e);

#endif
