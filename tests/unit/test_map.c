#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "base/map.h"

static void what_was_put_is_found_until_it_is_removed(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static int values[COUNT];
    AUTO(map) struct map m = MAP_INIT;
    for (uint64_t i = 0; i < COUNT; i++)
        map_put(&m, i * 4096, &values[i]);
    assert_int_equal(m.count, COUNT);
    for (uint64_t i = 0; i < COUNT; i += 2)
        assert_ptr_equal(map_remove(&m, i * 4096), &values[i]);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_ptr_equal(map_get(&m, i * 4096), i % 2 ? &values[i] : NULL);
    assert_int_equal(m.count, COUNT / 2);
    assert_null(map_get(&m, 3));
    assert_null(map_remove(&m, 3));
}

static void putting_again_replaces(void **state)
{
    (void)state;
    int a;
    int b;
    AUTO(map) struct map m = MAP_INIT;
    map_put(&m, UINT64_MAX, &a);
    map_put(&m, UINT64_MAX, &b);
    assert_int_equal(m.count, 1);
    assert_ptr_equal(map_get(&m, UINT64_MAX), &b);
}

static void names_are_keys_too(void **state)
{
    (void)state;
    char names[300][8];
    AUTO(map) struct map m = MAP_INIT;
    for (int i = 0; i < 300; i++) {
        (void)snprintf(names[i], sizeof names[i], "job%d", i); /* fits */
        map_put_name(&m, names[i], names[i]);
    }
    assert_ptr_equal(map_get_name(&m, "job299"), names[299]);
    assert_ptr_equal(map_remove_name(&m, "job7"), names[7]);
    assert_null(map_get_name(&m, "job7"));
    assert_ptr_equal(map_get_name(&m, "job8"), names[8]);
}

static void a_walk_meets_each_value_once(void **state)
{
    (void)state;
    int seen[100] = { 0 };
    AUTO(map) struct map m = MAP_INIT;
    for (uint64_t i = 0; i < 100; i++)
        map_put(&m, i, &seen[i]);
    size_t at = 0;
    for (int *v; (v = map_next(&m, &at));)
        (*v)++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_until_it_is_removed),
        cmocka_unit_test(putting_again_replaces),
        cmocka_unit_test(names_are_keys_too),
        cmocka_unit_test(a_walk_meets_each_value_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
