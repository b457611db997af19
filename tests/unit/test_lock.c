#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apply/lock.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define CARD "GPU-5d5b0000-0000-0000-0000-000000000000"

static int make_root(void **state)
{
    char *dir = text_dup("/tmp/divvy-test-XXXXXX");
    *state = mkdtemp(dir);
    return *state ? 0 : -1;
}

static int remove_root(void **state)
{
    int code = file_remove_tree(AT_FDCWD, *state, NULL);
    free(*state);
    return code;
}

static void test_one_at_a_time_and_the_second_hears_who(void **state)
{
    struct err e = ERR_INIT;
    struct card_lock first = CARD_LOCK_INIT;
    struct card_lock second = CARD_LOCK_INIT;
    assert_int_equal(card_lock_take(&first, *state, CARD, "divvyd", &e), 0);
    assert_int_equal(card_lock_take(&second, *state, CARD, "divvy layout apply", &e), -EBUSY);
    auto_free char *who = text_fmt("is being managed by divvyd (pid %d)", (int)getpid());
    assert_non_null(strstr(e.text, who));
    card_lock_done(&first);
    assert_int_equal(card_lock_take(&second, *state, CARD, "divvy layout apply", &e), 0);
    card_lock_done(&second);
}

static void test_a_process_that_dies_lets_go(void **state)
{
    struct err e = ERR_INIT;
    struct card_lock l = CARD_LOCK_INIT;
    pid_t pid = fork();
    if (pid == 0) {
        struct card_lock theirs = CARD_LOCK_INIT;
        _exit(card_lock_take(&theirs, *state, CARD, "divvyd", NULL) == 0 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(card_lock_take(&l, *state, CARD, "divvyd", &e), 0);
    card_lock_done(&l);
}

static void test_others_may_not_open_it(void **state)
{
    struct card_lock l = CARD_LOCK_INIT;
    struct stat st;
    assert_int_equal(card_lock_take(&l, *state, CARD, "divvyd", NULL), 0);
    auto_free char *path = text_fmt("%s/run/divvy-cards/" CARD, (char *)*state);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    card_lock_done(&l);
}

static void test_a_name_with_a_slash_is_no_card(void **state)
{
    struct card_lock l = CARD_LOCK_INIT;
    assert_int_equal(card_lock_take(&l, *state, "../../etc/passwd", "divvyd", NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time_and_the_second_hears_who),
        cmocka_unit_test(test_a_process_that_dies_lets_go),
        cmocka_unit_test(test_others_may_not_open_it),
        cmocka_unit_test(test_a_name_with_a_slash_is_no_card),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
