/*
 * check.h - divvyd --check: is this divvy.yaml what the administrator meant?
 *
 * Whether it can be used the file itself tells. Whether its users and groups
 * are there, its programs can be run and any board has its profiles only the
 * machine knows, and it may know tomorrow: such lines are told, and are no
 * reason not to start.
 */
#ifndef DIVVY_DAEMON_CHECK_H
#define DIVVY_DAEMON_CHECK_H

#include "config/divvyd.h"

/* A line each about what is not there on this machine; asks the name service. */
void check_machine(const struct divvyd_config *c, struct text *ret);

/*
 * Reads the file, prints what it found to standard output, or why it cannot be
 * used to standard error, and returns the exit status: 0 where divvyd would start
 * with it. Makes nothing.
 */
int check_main(const char *path);

#endif
