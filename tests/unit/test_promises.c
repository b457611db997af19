#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "store/promises.h"
#include "store_folder.h"

static void sums_outlive_the_store_that_wrote_them(void **state)
{
    (void)state;
    struct promises p = { .late = 9 };
    struct store *s = open_store();
    assert_int_equal(store_read_promises(s, &p, &err), 0);
    assert_int_equal(promises_count(&p) + p.late, 0);
    assert_int_equal(store_begin(s, &err), 0);
    assert_int_equal(store_add_promise(s, 3 * CLOCK_SECOND, &err), 0);
    assert_int_equal(store_add_promise(s, -5 * CLOCK_SECOND, &err), 0);
    assert_int_equal(store_add_promise(s, 2 * CLOCK_HOUR, &err), 0);
    assert_int_equal(store_set_expected(s, 77, noon.wall_us, &err), -ENOENT);
    assert_int_equal(store_commit(s, &err), 0);
    store_close(s);
    s = open_store();
    assert_int_equal(store_read_promises(s, &p, &err), 0);
    assert_int_equal(p.jobs[0], 2);
    assert_int_equal(p.jobs[5], 1);
    assert_int_equal(p.late, 1);
    assert_true(promises_mean_us(&p) * 3 == 7208.0 * (double)CLOCK_SECOND);
    store_close(s);
}

static int take_expected(const struct job_row *row, void *arg)
{
    *(int64_t *)arg = row->expected_wall_us;
    return 0;
}

static void what_was_said_stands_with_the_job(void **state)
{
    (void)state;
    struct store *s = open_store();
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    struct job_submit who = { .uid = 1001, .gid = 1001, .user = "alice" };
    uint64_t id = 0;
    int64_t said = 1;
    fill_spec(&spec, "train");
    assert_int_equal(store_begin(s, &err), 0);
    assert_int_equal(store_add_job(s, &who, &spec, noon, &id, &err), 0);
    assert_int_equal(store_each_live_job(s, take_expected, &said, &err), 0);
    assert_int_equal(said, 0);
    assert_int_equal(store_set_expected(s, id, noon.wall_us, &err), 0);
    assert_int_equal(store_commit(s, &err), 0);
    assert_int_equal(store_each_live_job(s, take_expected, &said, &err), 0);
    assert_true(said == noon.wall_us);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sums_outlive_the_store_that_wrote_them, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(what_was_said_stands_with_the_job, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
