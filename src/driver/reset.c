#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"
#include "driver/state.h"

#define OUTPUT_MAX 400 /* of the command's output, for the message */

/* The word with {uuid} and {bus} filled in. */
static char *fill(const char *word, const char *uuid, const char *bus_id)
{
    struct text t = TEXT_INIT;
    while (*word) {
        if (text_starts(word, "{uuid}")) {
            text_add(&t, uuid);
            word += strlen("{uuid}");
        } else if (text_starts(word, "{bus}")) {
            text_add(&t, bus_id);
            word += strlen("{bus}");
        } else {
            text_addn(&t, word++, 1);
        }
    }
    return text_take(&t);
}

static int spawn(char *const argv[], int output, pid_t *ret, struct err *e)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return err_set(e, -ENOMEM, "no memory to start %s", argv[0]);
    (void)posix_spawnattr_init(&attr); /* allocates nothing here */
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    int failed = posix_spawnp(ret, argv[0], &actions, &attr, argv, environ);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (failed)
        return err_set(e, -failed, "cannot start the reset command %s: %s", argv[0],
                       strerror(failed));
    return 0;
}

/* Reads to the end, so that the command never blocks, and keeps the beginning in one line. */
static void read_output(int fd, struct text *t)
{
    char buf[512];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && t->len < OUTPUT_MAX)
            text_addn(t, buf, (size_t)n);
    for (size_t i = 0; i < t->len; i++)
        if (t->buf[i] == '\n')
            t->buf[i] = ' ';
    while (t->len && t->buf[t->len - 1] == ' ')
        t->buf[--t->len] = '\0';
}

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

int driver_run_reset(struct driver *d, const char *uuid, const char *bus_id, struct err *e)
{
    char **argv = NULL;
    int pipes[2];
    pid_t pid;
    AUTO(text) struct text output = TEXT_INIT;
    for (size_t i = 0; d->reset_argv[i]; i++) {
        auto_free char *word = fill(d->reset_argv[i], uuid, bus_id);
        strv_add(&argv, word);
    }
    if (pipe2(pipes, O_CLOEXEC) < 0) {
        strv_free(argv);
        return err_sys(e, "cannot make a pipe for the reset command");
    }
    auto_close int from = pipes[0];
    assert(argv); /* driver_open took a command of at least one word */
    int code = spawn(argv, pipes[1], &pid, e);
    (void)close(pipes[1]); /* the command has its own */
    strv_free(argv);
    if (code < 0)
        return code;
    read_output(from, &output);
    int status = wait_for(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, -EBUSY, "the reset command failed for %s: %.*s", uuid, OUTPUT_MAX,
                   output.len ? output.buf : "it said nothing");
}
