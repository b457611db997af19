/* Both ends of the attach socket, each by its own code: client/attach.h and supervise/attach.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "client/attach.h"
#include "supervise/attach.h"

static char folder[64];
static char path[256];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test-attach-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    /* Longer than a sockaddr_un holds. */
    snprintf(path, sizeof path, "%s/%0100d", folder, 1);
    if (mkdir(path, 0700) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/%0100d/sock", folder, 1);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, folder, NULL);
}

/* A client in a process of its own: its streams are files, its exit is the job's. */
static pid_t start_client(const char *input, const char *output, const char *error)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct err e = ERR_INIT;
    struct job_exit end = { .kind = EXIT_NONE };
    int sock = -1;
    if (dup2(open(input, O_RDONLY), 0) < 0 || dup2(open(output, O_WRONLY | O_CREAT, 0600), 1) < 0 ||
        dup2(open(error, O_WRONLY | O_CREAT, 0600), 2) < 0)
        _exit(90);
    if (attach_open(path, 10 * CLOCK_SECOND, &sock, &e) < 0)
        _exit(91);
    int r = attach_relay(sock, false, &end, &e);
    if (r < 0) {
        (void)!write(2, e.text, strlen(e.text));
        _exit(r == -EPROTO ? 92 : 93);
    }
    _exit(job_exit_status(&end));
}

static enum attach_event next_event(struct attach *a)
{
    for (;;) {
        struct pollfd fds[ATTACH_FDS];
        attach_fds(a, fds);
        assert_true(poll(fds, ATTACH_FDS, 30000) > 0);
        enum attach_event ev = attach_ready(a, fds);
        if (ev != ATTACH_NOTHING)
            return ev;
    }
}

static int status_of(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static char *file_text(const char *name)
{
    char *text = NULL;
    assert_int_equal(file_read(AT_FDCWD, name, 4096, &text, NULL, NULL), 0);
    return text;
}

static void listen_here(struct attach *a, bool pty)
{
    struct err e = ERR_INIT;
    if (attach_listen(a, path, getuid(), getgid(), pty, &e) < 0)
        fail_msg("%s", e.text);
}

static void streams_pass_and_the_end_comes_back(void **state)
{
    (void)state;
    struct attach a;
    auto_free char *out = text_fmt("%s/out", folder);
    listen_here(&a, false);
    pid_t client = start_client("/dev/null", out, "/dev/null");
    assert_int_equal(next_event(&a), ATTACH_CAME);
    int streams[3];
    attach_streams(&a, streams);
    assert_int_equal(write(streams[1], "from the job\n", 13), 13);
    attach_handed(&a);
    struct job_exit end = { .kind = EXIT_CODE, .value = 42 };
    attach_end(&a, &end);
    assert_int_equal(status_of(client), 42);
    auto_free char *text = file_text(out);
    assert_string_equal(text, "from the job\n");
    assert_int_equal(access(path, F_OK), -1);
}

static void signals_of_the_client_are_passed_on(void **state)
{
    (void)state;
    struct attach a;
    listen_here(&a, false);
    pid_t client = start_client("/dev/null", "/dev/null", "/dev/null");
    assert_int_equal(next_event(&a), ATTACH_CAME);
    assert_int_equal(kill(client, SIGUSR2), 0);
    assert_int_equal(next_event(&a), ATTACH_ASKED);
    assert_int_equal(a.signal, SIGUSR2);
    struct job_exit end = { .kind = EXIT_SIGNAL, .value = SIGUSR2 };
    attach_end(&a, &end);
    assert_int_equal(status_of(client), 128 + SIGUSR2);
}

static void client_that_dies_is_lost(void **state)
{
    (void)state;
    struct attach a;
    listen_here(&a, false);
    pid_t client = start_client("/dev/null", "/dev/null", "/dev/null");
    assert_int_equal(next_event(&a), ATTACH_CAME);
    assert_int_equal(kill(client, SIGKILL), 0);
    assert_int_equal(next_event(&a), ATTACH_LOST);
    assert_int_equal(status_of(client), 1000 + SIGKILL);
    attach_done(&a);
}

static void supervisor_that_dies_is_told_from_an_end(void **state)
{
    (void)state;
    struct attach a;
    auto_free char *error = text_fmt("%s/error", folder);
    listen_here(&a, false);
    pid_t client = start_client("/dev/null", "/dev/null", error);
    assert_int_equal(next_event(&a), ATTACH_CAME);
    attach_done(&a);
    assert_int_equal(status_of(client), 93);
    auto_free char *text = file_text(error);
    assert_non_null(strstr(text, "without telling"));
}

static void job_with_a_terminal_refuses_a_client_without(void **state)
{
    (void)state;
    struct attach a;
    auto_free char *error = text_fmt("%s/error", folder);
    listen_here(&a, true);
    pid_t client = start_client("/dev/null", "/dev/null", error);
    struct pollfd fds[ATTACH_FDS];
    int status = 0;
    while (waitpid(client, &status, WNOHANG) == 0) {
        attach_fds(&a, fds);
        if (poll(fds, ATTACH_FDS, 20) > 0)
            assert_int_equal(attach_ready(&a, fds), ATTACH_NOTHING);
    }
    assert_int_equal(WEXITSTATUS(status), 92);
    auto_free char *text = file_text(error);
    assert_non_null(strstr(text, "has a terminal"));
    attach_done(&a);
}

static void nobody_there_is_told_at_once_when_asked_not_to_wait(void **state)
{
    (void)state;
    int sock = -1;
    struct err e = ERR_INIT;
    assert_int_equal(attach_open(path, 0, &sock, &e), -ENOENT);
    assert_int_equal(sock, -1);
    assert_non_null(strstr(e.text, path));
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(streams_pass_and_the_end_comes_back),
        WITH_FOLDER(signals_of_the_client_are_passed_on),
        WITH_FOLDER(client_that_dies_is_lost),
        WITH_FOLDER(supervisor_that_dies_is_told_from_an_end),
        WITH_FOLDER(job_with_a_terminal_refuses_a_client_without),
        WITH_FOLDER(nobody_there_is_told_at_once_when_asked_not_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
