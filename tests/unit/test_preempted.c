#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/preempted.h"
#include "store_folder.h"

static void each_attempt_counts_once_and_the_last_is_told(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct preempted_row row = { .times = 9 };
    assert_int_equal(store_begin(s, &err), 0);
    uint64_t id = add_job(s, "train");
    assert_int_equal(store_read_preempted(s, id, 0, &row, &err), 0);
    assert_int_equal(row.times, 0);
    assert_int_equal(store_add_preempted(s, id, 1, 37, "games", 100, &err), 0);
    assert_int_equal(store_add_preempted(s, id, 1, 38, "bob", 101, &err), 0);
    assert_int_equal(store_add_preempted(s, id, 3, 40, "carol", 300, &err), 0);
    assert_int_equal(store_commit(s, &err), 0);
    store_close(s);
    s = open_store();
    assert_int_equal(store_read_preempted(s, id, 0, &row, &err), 0);
    assert_int_equal(row.times, 2);
    assert_int_equal(row.by, 40);
    assert_int_equal(row.wall_us, 300);
    assert_string_equal(row.user, "carol");
    assert_int_equal(store_read_preempted(s, id, 1, &row, &err), 0);
    assert_int_equal(row.times, 1);
    assert_int_equal(row.by, 37);
    assert_int_equal(store_read_preempted(s, id, 2, &row, &err), 0);
    assert_int_equal(row.times, 0);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_attempt_counts_once_and_the_last_is_told, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
