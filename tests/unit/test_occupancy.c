#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "boards.h"
#include "plan/occupancy.h"

static const struct profile *named(const struct board *b, const char *name)
{
    const struct profile *p = board_profile_by_name(b, name);
    assert_non_null(p);
    return p;
}

static void test_an_empty_a100_has_25_places(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    /* 1g 7, 1g+me 7, 1g.20gb 4, 2g 3, 3g 2, 4g 1, 7g 1 */
    assert_int_equal(occupancy_room(&o, &b), 25);
}

static void test_units_may_not_overlap(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    occupancy_add(&o, &b, named(&b, "3g.40gb"), 4);
    assert_int_equal(o.units, 0xf0);
    assert_false(occupancy_fits(&o, &b, named(&b, "2g.20gb"), 4));
    assert_true(occupancy_fits(&o, &b, named(&b, "4g.40gb"), 0));
    assert_false(occupancy_fits(&o, &b, named(&b, "2g.20gb"), 1)); /* no start of it */
    assert_false(occupancy_fits(&o, &b, named(&b, "7g.80gb"), 0));
}

static void test_compute_slices_run_out_before_memory(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    occupancy_add(&o, &b, named(&b, "4g.40gb"), 0);
    occupancy_add(&o, &b, named(&b, "2g.20gb"), 4);
    assert_false(occupancy_fits(&o, &b, named(&b, "2g.20gb"), 4));
    assert_true(occupancy_fits(&o, &b, named(&b, "1g.20gb"), 6));
    occupancy_add(&o, &b, named(&b, "1g.20gb"), 6);
    assert_int_equal(occupancy_room(&o, &b), 0);
}

static void test_engines_and_instance_numbers_are_limits(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    occupancy_add(&o, &b, named(&b, "1g.10gb+me"), 6);
    assert_false(occupancy_fits(&o, &b, named(&b, "1g.10gb+me"), 0)); /* one JPEG engine */
    b.jpegs = b.ofas = b.decoders = 0;                                /* not told: no limit */
    assert_false(occupancy_fits(&o, &b, named(&b, "1g.10gb+me"), 0)); /* at most one of it */
    b.profiles[1].max = 0;
    assert_true(occupancy_fits(&o, &b, named(&b, "1g.10gb+me"), 0));
}

static void test_removing_takes_back_what_adding_did(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    for (uint32_t i = 0; i < b.profile_count; i++) {
        struct occupancy o = { 0 };
        const struct occupancy empty = { 0 };
        occupancy_add(&o, &b, &b.profiles[i], b.profiles[i].starts[0]);
        assert_memory_not_equal(&o, &empty, sizeof o);
        occupancy_remove(&o, &b, &b.profiles[i], b.profiles[i].starts[0]);
        assert_memory_equal(&o, &empty, sizeof o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_a100_has_25_places),
        cmocka_unit_test(test_units_may_not_overlap),
        cmocka_unit_test(test_compute_slices_run_out_before_memory),
        cmocka_unit_test(test_engines_and_instance_numbers_are_limits),
        cmocka_unit_test(test_removing_takes_back_what_adding_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
