/*
 * launcher.h - how divvyd starts supervisors: by asking its launcher.
 *
 * src/supervise/launcher.h says what that is and why. Where none can be had,
 * or the last one died a moment ago, the supervisor is started directly, at a
 * higher price. Nothing here says whether a supervisor lives: job folders do.
 * When a launcher dies, every folder is looked at, and one that it did not get
 * to is asked for again.
 */
#ifndef DIVVY_DAEMON_LAUNCHER_H
#define DIVVY_DAEMON_LAUNCHER_H

#include <systemd/sd-event.h>

#include "base/err.h"

struct daemon;

struct launcher {
    int fd;              /* -1: none runs */
    sd_event_source *io; /* tells when it dies */
    int64_t again_us;    /* CLOCK_BOOTTIME: none is started before */
};

/* A supervisor for the folder. It outlives this process, and is a session of its own. */
int launcher_start(struct daemon *d, const char *folder, struct err *e);
/*
 * Starts argv[0] as what may outlive this process: a session of its own, no signal
 * blocked or ignored, `in` and `out` as its first two descriptors (-1: /dev/null).
 * The kernel reaps it: how it ended must be learned otherwise.
 */
int launcher_spawn(char *const argv[], int in, int out, struct err *e);
/* The launcher ends by itself; what it started does not. */
void launcher_close(struct launcher *l);

#endif
