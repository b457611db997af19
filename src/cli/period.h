/*
 * period.h - the days that a question about the past is about.
 *
 *     static const struct argp_option options[] = { …, PERIOD_OPTIONS, { 0 } };
 *     …in the parser:  if (period_parse(key, arg, &c->period)) return 0;
 */
#ifndef DIVVY_CLI_PERIOD_H
#define DIVVY_CLI_PERIOD_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

struct period {
    int32_t from_day, to_day; /* 20261130; `to` is not in it; 0: not given */
    bool by_month, by_day;
};

/* clang-format off: three rows of a table */
#define PERIOD_OPTIONS                                                                             \
    { "month", 'm', "YYYY-MM", 0, "of this month", 1 },                                            \
        { "from", 'f', "DAY", 0, "from this day on (2026-11-30)", 1 },                             \
    {                                                                                              \
        "to", 't', "DAY", 0, "up to the end of this day", 1                                        \
    }
/* clang-format on */

/* True when the key was one of these. Ends with verb_refuse on what is no day, or a contradiction. */
bool period_parse(int key, const char *arg, struct period *p);

/* Fills in what was not given. False: the last day is before the first. */
bool period_settle(struct period *p, int32_t from_day, int32_t to_day);

#endif
