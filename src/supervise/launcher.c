#include "supervise/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/killpoint.h"
#include "base/log.h"

#define NAME_LAUNCHER "divvy-launcher"
#define NAME_SUPERVISOR "divvy-supervise"

/* What each child would have to find out for itself. */
static void learn(void)
{
    (void)clock_boot_id();
    json_object_seed(0);
}

/* People look for a job's supervisor by its command line. The words lie one after the other. */
static void retitle(char **argv, const char *name)
{
    char *end = argv[2] + strlen(argv[2]);
    size_t room = (size_t)(end - argv[1]);
    memset(argv[1], 0, room);
    memcpy(argv[1], name, strlen(name) < room ? strlen(name) : room);
    (void)prctl(PR_SET_NAME, NAME_SUPERVISOR);
}

/* 1: a name, as long as a folder's may be. 0: nobody is there any more. */
static int next_name(char *ret, size_t size)
{
    for (;;) {
        ssize_t n = recv(STDIN_FILENO, ret, size, MSG_TRUNC);
        if (n == 0 || (n < 0 && errno != EINTR))
            return 0;
        if (n <= 0 || (size_t)n >= size)
            continue;
        ret[n] = '\0';
        return 1;
    }
}

int launcher_run(char **argv, char *ret_name, size_t size, struct err *e)
{
    auto_close int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0)
        return err_sys(e, "cannot open /dev/null");
    (void)prctl(PR_SET_NAME, NAME_LAUNCHER);
    (void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps them */
    learn();
    while (next_name(ret_name, size)) {
        KILLPOINT(LAUNCHER_ASKED);
        pid_t pid = fork();
        if (pid == 0) {
            (void)dup2(nothing, STDIN_FILENO); /* divvyd learns at once when the launcher dies */
            (void)signal(SIGCHLD, SIG_DFL);
            retitle(argv, ret_name);
            return 1;
        }
        if (pid < 0) /* divvyd looks at the folder again, and asks again */
            log_line(LOG_ERROR, "%s: cannot make a process: %s", ret_name, strerror(errno));
        KILLPOINT(LAUNCHER_FORKED);
    }
    return 0;
}
