#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/launcher.h"

/* What a child says of itself: its folder's name, the end, and how it is seen. */
struct said {
    char name[32], comm[16], title[32];
    bool default_child, free_input;
};

static void say(int to, const char *name, const char *title)
{
    struct said s = { .name = "" };
    struct sigaction child;
    (void)sigaction(SIGCHLD, NULL, &child);
    (void)snprintf(s.name, sizeof s.name, "%s", name);
    (void)snprintf(s.title, sizeof s.title, "%s", title);
    (void)prctl(PR_GET_NAME, s.comm);
    char byte;
    s.default_child = child.sa_handler == SIG_DFL;
    s.free_input = read(0, &byte, 1) == 0;
    (void)!write(to, &s, sizeof s);
}

/* A launcher of its own process; *ret_ask asks it, *ret_hear hears its children. */
static pid_t start(int *ret_ask, int *ret_hear)
{
    int ask[2], hear[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ask), 0);
    assert_int_equal(pipe2(hear, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char words[] = "divvy-supervise\0--launcher\0/var/lib/divvy/jobs";
        char *argv[] = { words, words + 16, words + 27, NULL };
        char name[32];
        (void)dup2(ask[1], 0);
        (void)close(ask[0]);
        (void)close(ask[1]);
        int r = launcher_run(argv, name, sizeof name, NULL);
        if (r > 0)
            say(hear[1], name, argv[1]);
        _exit(r < 0);
    }
    (void)close(ask[1]);
    (void)close(hear[1]);
    *ret_ask = ask[0];
    *ret_hear = hear[0];
    return pid;
}

static void each_name_gets_a_child_that_is_as_if_it_were_executed(void **state)
{
    (void)state;
    int ask, hear, status;
    pid_t launcher = start(&ask, &hear);
    const char *const names[] = { "41.1", "9223372036854775807.4294967295" };
    for (int i = 0; i < 2; i++) {
        struct said s;
        assert_int_equal(send(ask, names[i], strlen(names[i]), 0), strlen(names[i]));
        assert_int_equal(read(hear, &s, sizeof s), sizeof s);
        assert_string_equal(s.name, names[i]);
        assert_string_equal(s.title, names[i]);
        assert_string_equal(s.comm, "divvy-supervise");
        assert_true(s.default_child);
        assert_true(s.free_input);
    }
    close(ask);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_int_equal(status, 0); /* it ends when nobody can ask any more */
    close(hear);
}

static void a_name_that_no_folder_has_is_passed_over(void **state)
{
    (void)state;
    int ask, hear, status;
    struct said s;
    char longer[33];
    pid_t launcher = start(&ask, &hear);
    memset(longer, '1', sizeof longer);
    assert_int_equal(send(ask, longer, sizeof longer, 0), sizeof longer);
    assert_int_equal(send(ask, "7.1", 3, 0), 3);
    assert_int_equal(read(hear, &s, sizeof s), sizeof s);
    assert_string_equal(s.name, "7.1");
    close(ask);
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_int_equal(read(hear, &s, sizeof s), 0); /* there was no other child */
    close(hear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_gets_a_child_that_is_as_if_it_were_executed),
        cmocka_unit_test(a_name_that_no_folder_has_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
