#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "cli/names.h"

static struct share_view tree;

static void add(const char *account, const char *user)
{
    struct share_row *row = share_view_add(&tree);
    row->account = account;
    row->user = user;
}

static int make_tree(void **state)
{
    (void)state;
    add("nlp", NULL);
    add("nlp", "alice-of-nlp");
    add("vision", NULL);
    return 0;
}

static int end_tree(void **state)
{
    (void)state;
    share_view_done(&tree);
    return 0;
}

static void who_is_there_is_no_slip(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(names_check(&tree, "", "", &e), 0);
    assert_int_equal(names_check(&tree, "alice-of-nlp", "vision", &e), 0);
    assert_int_equal(names_check(&tree, "root", "", &e), 0);  /* has no jobs, and is a user */
    assert_int_equal(names_check(&tree, "", "root", &e), 0);  /* would be his own account */
    assert_int_equal(names_check(&tree, "41001", "", &e), 0); /* a user without a name */
}

static void a_slip_is_told_with_what_there_is(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(names_check(&tree, "", "visoin", &e), -ENOENT);
    assert_string_equal(e.text, "there is no account 'visoin' here; did you mean vision?");
    assert_int_equal(names_check(&tree, "", "quantum-lab", &e), -ENOENT);
    assert_string_equal(e.text, "there is no account 'quantum-lab' here; there are nlp, vision");
    assert_int_equal(names_check(&tree, "alcie-of-nlp", "", &e), -ENOENT);
    assert_string_equal(e.text, "there is no user 'alcie-of-nlp' here; did you mean "
                                "alice-of-nlp?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_there_is_no_slip),
        cmocka_unit_test(a_slip_is_told_with_what_there_is),
    };
    return cmocka_run_group_tests(tests, make_tree, end_tree);
}
