#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"

/* Caller frees: `n` times `piece`. */
static char *repeat(const char *piece, size_t n)
{
    struct text t = TEXT_INIT;
    for (size_t i = 0; i < n; i++)
        text_add(&t, piece);
    return text_take(&t);
}

static void assert_ends(const char *s, const char *end)
{
    size_t len = strlen(s);
    assert_true(len >= strlen(end));
    assert_string_equal(s + len - strlen(end), end);
}

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
    (void)err_wrap(&e, -EINVAL, "y");
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(err_sys(&e, "z"), -EAGAIN);
    assert_int_equal(errno, EAGAIN);
}

static void a_text_that_just_fits_is_not_cut(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    auto_free char *s = repeat("x", ERR_TEXT_MAX - 1);
    assert_int_equal(err_set(&e, -EINVAL, "%s", s), -EINVAL);
    assert_string_equal(e.text, s);
}

/* Letters of one to four bytes, shifted so that the cut falls on each of their bytes. */
static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    static const char *const letters[] = { "x", "ü", "…", "😀" };
    for (size_t i = 0; i < 4; i++) {
        for (size_t shift = 0; shift < 5; shift++) {
            struct err e = ERR_INIT;
            auto_free char *before = repeat("-", shift);
            auto_free char *s = repeat(letters[i], ERR_TEXT_MAX);
            assert_int_equal(err_set(&e, -EINVAL, "%s%s", before, s), -EINVAL);
            assert_true(text_is_printable(e.text));
            assert_ends(e.text, "…");
            assert_in_range(strlen(e.text), ERR_TEXT_MAX - 4, ERR_TEXT_MAX - 1);
        }
    }
}

static void a_long_path_does_not_push_out_the_reason(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    auto_free char *path = repeat("ü", ERR_TEXT_MAX);
    errno = ENOENT;
    assert_int_equal(err_sys(&e, "cannot open %s", path), -ENOENT);
    assert_true(text_starts(e.text, "cannot open üü"));
    assert_ends(e.text, "ü…: No such file or directory");
    assert_true(text_is_printable(e.text));
}

static void a_long_context_does_not_push_out_the_reason(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    auto_free char *path = repeat("ü", ERR_TEXT_MAX);
    int r = err_set(&e, -ENOSPC, "the disk is full");
    assert_int_equal(err_wrap(&e, r, "%s", path), -ENOSPC);
    assert_true(text_starts(e.text, "üü"));
    assert_ends(e.text, "ü…: the disk is full");
    assert_true(text_is_printable(e.text));
}

static void a_failure_without_errno_is_still_one(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    errno = 0;
    assert_int_equal(err_sys(&e, "cannot read"), -EIO);
    assert_string_equal(e.text, "cannot read: Input/output error");
}

static void what_people_typed_cannot_break_the_line(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    (void)err_set(&e, -EINVAL, "'%s' is no name", "a\nb\tc\033[2Jd\177");
    assert_string_equal(e.text, "'a b c?[2Jd?' is no name");
}

static void a_character_cut_by_a_precision_is_replaced(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    (void)err_set(&e, -EINVAL, "'%.3s' is no name", "aüü");
    assert_string_equal(e.text, "'aü' is no name");
    (void)err_set(&e, -EINVAL, "'%.4s' is no name", "aüü");
    assert_string_equal(e.text, "'aü?' is no name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_sets_text_and_gives_the_code),
        cmocka_unit_test(the_systems_words_come_last),
        cmocka_unit_test(context_is_added_going_up),
        cmocka_unit_test(a_text_that_is_too_long_is_cut_visibly),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(a_text_that_just_fits_is_not_cut),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(a_long_path_does_not_push_out_the_reason),
        cmocka_unit_test(a_long_context_does_not_push_out_the_reason),
        cmocka_unit_test(a_failure_without_errno_is_still_one),
        cmocka_unit_test(what_people_typed_cannot_break_the_line),
        cmocka_unit_test(a_character_cut_by_a_precision_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
