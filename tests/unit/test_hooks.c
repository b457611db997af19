#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/hooks.h"
#include "daemon/told.h"

static char folder[] = "/tmp/divvy-hooks-XXXXXX";
static struct daemon d;
static struct job job;
static struct attempt attempt;

static char *under(const char *name)
{
    return text_fmt("%s/%s", folder, name);
}

static void write_script(const char *name, const char *text)
{
    auto_free char *path = under(name);
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, strlen(text), NULL), 0);
}

/* A divvyd whose other self only writes down what it was told. */
static int begin(void **state)
{
    (void)state;
    char template[] = "/tmp/divvy-hooks-XXXXXX";
    assert_non_null(mkdtemp(template));
    memcpy(folder, template, sizeof folder);
    auto_free char *said = text_fmt("#!/bin/sh\necho \"$DIVVY_EVENT $DIVVY_JOB_ID $1 $2\" >> "
                                    "%s/said\n",
                                    folder);
    write_script("self", said);
    d = (struct daemon){ .config.event_hook = text_dup("/etc/hook"),
                         .config.event_time_us = 5 * CLOCK_SECOND,
                         .paths.root = "/",
                         .paths.self = under("self") };
    attempt = (struct attempt){ .number = 2 };
    job = (struct job){ .daemon = &d,
                        .id = 41,
                        .name = (char *)(uintptr_t) "train",
                        .user = "alice",
                        .account = "nlp",
                        .attempts = 2,
                        .attempt = &attempt,
                        .state = JOB_RUNNING };
    assert_true(sd_event_new(&d.event) >= 0);
    hooks_open(&d);
    return 0;
}

static int end(void **state)
{
    (void)state;
    hooks_close(&d);
    d.event = sd_event_unref(d.event);
    free(d.config.event_hook);
    free(d.paths.self);
    return file_remove_tree(AT_FDCWD, folder, NULL);
}

/* Until all that were begun have ended. */
static void wait_for_all(void)
{
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
    while (sd_event_run(d.event, 0) > 0)
        continue;
}

static char *said(void)
{
    auto_free char *path = under("said");
    char *text = NULL;
    return file_read(AT_FDCWD, path, 1 << 20, &text, NULL, NULL) < 0 ? text_dup("") : text;
}

static size_t lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void what_is_committed_is_told_once(void **state)
{
    (void)state;
    hooks_note(&job, HOOK_START, NULL);
    hooks_run(&d);
    hooks_run(&d);
    wait_for_all();
    auto_free char *text = said();
    assert_string_equal(text, "start 41 --child hook:5000000:/etc/hook\n");
}

static void what_was_not_committed_is_told_to_nobody(void **state)
{
    (void)state;
    hooks_note(&job, HOOK_START, NULL);
    hooks_forget(&d);
    hooks_run(&d);
    wait_for_all();
    auto_free char *text = said();
    assert_string_equal(text, "");
}

static void what_was_committed_before_is_not_forgotten(void **state)
{
    (void)state;
    for (int i = 0; i < 9; i++)
        hooks_note(&job, HOOK_START, NULL);
    hooks_run(&d); /* eight of them; the ninth waits */
    hooks_note(&job, HOOK_END, NULL);
    hooks_forget(&d); /* the commit of the end failed */
    wait_for_all();
    hooks_run(&d);
    wait_for_all();
    auto_free char *text = said();
    assert_int_equal(lines(text), 9);
    assert_null(strstr(text, "end"));
}

static void both_are_told_the_same(void **state)
{
    (void)state;
    char **env = NULL;
    attempt.exit = (struct job_exit){ .kind = EXIT_CODE, .value = 7, .text = "by itself" };
    job.state = JOB_FAILED;
    told_add(&env, &job, "end", "");
    AUTO(text) struct text all = TEXT_INIT;
    for (size_t i = 0; env[i]; i++)
        text_addf(&all, "%s\n", env[i]);
    strv_free(env);
    assert_string_equal(all.buf, "DIVVY_EVENT=end\nDIVVY_JOB_ID=41\nDIVVY_JOB_NAME=train\n"
                                 "DIVVY_STATE=failed\nDIVVY_REASON=by itself\n"
                                 "DIVVY_EXIT_STATUS=7\nDIVVY_SLICES=\n");
}

/* Run as the process over the hook: what hangs is killed with all that it began. */
static void one_that_hangs_is_killed_with_its_children(void **state)
{
    (void)state;
    write_script("hangs", "#!/bin/sh\nsleep 1000 & sleep 1000\n");
    auto_free char *what = text_fmt("1000:%s/hangs", folder);
    assert_int_equal(hooks_child_main(what), EXIT_SUCCESS);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void one_that_others_can_change_is_not_run(void **state)
{
    (void)state;
    write_script("open", "#!/bin/sh\n");
    auto_free char *path = under("open");
    assert_int_equal(chmod(path, 0777), 0);
    auto_free char *what = text_fmt("1000000:%s", path);
    assert_int_equal(hooks_child_main(what), EXIT_FAILURE);
}

#define WITH_DAEMON(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DAEMON(what_is_committed_is_told_once),
        WITH_DAEMON(what_was_not_committed_is_told_to_nobody),
        WITH_DAEMON(what_was_committed_before_is_not_forgotten),
        WITH_DAEMON(both_are_told_the_same),
        WITH_DAEMON(one_that_hangs_is_killed_with_its_children),
        WITH_DAEMON(one_that_others_can_change_is_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
