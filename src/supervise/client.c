#include "supervise/client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

#define SAID_BYTES_MAX (256 << 10)

void client_become(char *const *words, char *const *env, int said)
{
    sigset_t none;
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)setsid(); /* a new child leads no group: cannot fail */
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal(sig, SIG_DFL); /* KILL and STOP say no, rightly */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(said, 1) < 0 || dup2(said, 2) < 0)
        _exit(126);
    (void)syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC); /* all are so already */
    (void)execve(words[0], words, env);
    (void)dprintf(2, "cannot run %s: %s", words[0], strerror(errno));
    _exit(126);
}

/* True: it has ended. */
static bool wait_until(pid_t pid, int64_t end_us)
{
    auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    for (;;) {
        int64_t left_us = end_us - clock_now().boot_us;
        if (left_us <= 0)
            return false;
        int n = poll(&p, 1, (int)(left_us / 1000) + 1);
        if (n > 0 || (n < 0 && errno != EINTR))
            return n > 0;
    }
}

static char *read_said(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    size_t len = size < 0 ? 0 : size > SAID_BYTES_MAX ? SAID_BYTES_MAX : (size_t)size;
    char *said = mem_new(len + 1);
    ssize_t n = pread(fd, said, len, 0);
    said[n < 0 ? 0 : n] = '\0';
    return said;
}

int client_run(struct client_call *c, char **ret_said, struct err *e)
{
    int status = 0;
    auto_close int said = memfd_create("divvy-client", MFD_CLOEXEC);
    if (said < 0)
        return err_sys(e, "cannot make a file for what %s says", c->words[0]);
    pid_t pid = fork();
    if (pid == 0)
        client_become(c->words, c->env, said);
    if (pid < 0)
        return err_sys(e, "cannot start %s", c->words[0]);
    bool ended = wait_until(pid, clock_now().boot_us + c->limit_us);
    if (!ended)
        (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    if (!ended)
        return err_set(e, -ETIMEDOUT, "%s did not end within %d s", c->words[0],
                       (int)(c->limit_us / CLOCK_SECOND));
    c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    *ret_said = read_said(said);
    return 0;
}
