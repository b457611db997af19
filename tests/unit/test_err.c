#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"

static void failing_sets_text_and_gives_the_code(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(err_set(&e, -EBUSY, "gpu%d is held by %s", 1, "#58"), -EBUSY);
    assert_int_equal(e.code, -EBUSY);
    assert_string_equal(e.text, "gpu1 is held by #58");
    assert_int_equal(err_set(NULL, -EBUSY, "nobody listens"), -EBUSY);
}

static void the_systems_words_come_last(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    errno = ENOENT;
    assert_int_equal(err_sys(&e, "cannot open %s", "/x"), -ENOENT);
    assert_string_equal(e.text, "cannot open /x: No such file or directory");
}

static void context_is_added_going_up(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    int r = err_set(&e, -EINVAL, "line 3 is empty");
    assert_int_equal(err_wrap(&e, r, "job %d", 41), -EINVAL);
    assert_string_equal(e.text, "job 41: line 3 is empty");
    assert_int_equal(e.code, -EINVAL);
    assert_int_equal(err_wrap(NULL, -EINVAL, "job"), -EINVAL);
}

static void a_text_that_is_too_long_is_cut_visibly(void **state)
{
    (void)state;
    char name[3 * ERR_TEXT_MAX];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct err e = ERR_INIT;
    (void)err_set(&e, -E2BIG, "%s", name);
    assert_true(strlen(e.text) < ERR_TEXT_MAX);
    assert_string_equal(e.text + strlen(e.text) - strlen("…"), "…");
    (void)err_wrap(&e, -E2BIG, "%s", name);
    assert_true(strlen(e.text) < ERR_TEXT_MAX);
}

static void errno_is_kept(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    errno = EAGAIN;
    (void)err_set(&e, -EINVAL, "x");
    assert_int_equal(errno, EAGAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_sets_text_and_gives_the_code),
        cmocka_unit_test(the_systems_words_come_last),
        cmocka_unit_test(context_is_added_going_up),
        cmocka_unit_test(a_text_that_is_too_long_is_cut_visibly),
        cmocka_unit_test(errno_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
