/*
 * units.h - supervisors started by the service manager.
 *
 * Where systemd is PID 1, an attempt is a unit of its own,
 * divvy-job@ID.ATTEMPT.service in divvy.slice (dist/systemd): born from PID 1
 * with nothing of divvyd's hardening, in a cgroup that was delegated to it, and
 * visible to systemctl and journalctl. divvyd only asks for it; everything
 * after that, recovery included, is the job folder's, as without systemd.
 *
 * Invariants: nothing here waits for an answer. An attempt is asked for once at
 * a time. "No" fails its start with the manager's words; "not now" (a machine
 * that is shutting down, a bus that went away) leaves it STARTING, to be asked
 * for again by attempt_look.
 */
#ifndef DIVVY_DAEMON_UNITS_H
#define DIVVY_DAEMON_UNITS_H

#include "daemon/daemon.h"

/*
 * Decides by `launch:` of divvy.yaml whether d->units is there. `auto`: where
 * systemd runs, the root is "/" and the template unit is installed. With
 * `systemd` -ENOTSUP and the one that is missing.
 */
int units_open(struct daemon *d, struct err *e);
void units_close(struct daemon *d);

/*
 * Asks for the unit of j's attempt. Where nobody can be asked (a bus that is
 * being restarted) the log says so, and attempt_look has it asked again.
 */
void units_start(struct job *j);

/* The root of the attempts' cgroups as their spec names it (cgroup.h). Borrowed. */
const char *units_cgroup_root(const struct daemon *d);

#endif
