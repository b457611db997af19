/* store/environment.h: one row for each content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/environment.h"
#include "store_folder.h"

static int64_t keep(struct store *s, char *const *env)
{
    int64_t id = 0;
    if (environment_keep(s, env, &id, &err) < 0)
        fail_msg("%s", err.text);
    return id;
}

static void the_same_content_is_kept_once(void **state)
{
    (void)state;
    char *one[] = { (char *)"HOME=/home/alice", (char *)"A=1", NULL };
    char *other[] = { (char *)"HOME=/home/alice", (char *)"A=2", NULL };
    char *joined[] = { (char *)"HOME=/home/aliceA=1", NULL };
    struct store *s = open_store();
    if (store_begin(s, &err) < 0)
        fail_msg("%s", err.text);
    int64_t first = keep(s, one);
    assert_int_equal(keep(s, one), first);
    assert_int_not_equal(keep(s, other), first);
    assert_int_not_equal(keep(s, joined), first);
    assert_int_equal(keep(s, one), first);
    store_close(s);
}

static void entries_end_with_a_zero_byte(void **state)
{
    (void)state;
    char **env = environment_split("A=1\0B=\0cut off", 14);
    assert_string_equal(env[0], "A=1");
    assert_string_equal(env[1], "B=");
    assert_null(env[2]);
    strv_free(env);
    env = environment_split("", 0);
    assert_null(env[0]);
    strv_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_content_is_kept_once, make_folder, remove_folder),
        cmocka_unit_test(entries_end_with_a_zero_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
