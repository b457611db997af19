#include "daemon/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "daemon/daemon.h"

#include <spawn.h> /* its SCHED_FIFO is a macro, and ours a word of an enum */

extern char **environ;

/* The supervisor must outlive this process: a session of its own, nothing inherited. */
int launcher_start(struct daemon *d, const char *folder, struct err *e)
{
    pid_t pid;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none, defaults;
    char *const argv[] = { d->paths.supervisor, (char *)folder, NULL };
    (void)sigemptyset(&none);    /* cannot fail */
    (void)sigfillset(&defaults); /* cannot fail */
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &defaults);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    /* Standard error is ours until it has a log of its own: one that cannot run is heard. */
    (void)posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    int r = posix_spawn(&pid, d->paths.supervisor, &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return r ? err_set(e, -r, "cannot start %s: %s", d->paths.supervisor, strerror(r)) : 0;
}
