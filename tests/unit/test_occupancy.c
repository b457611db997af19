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

static void test_the_worth_of_an_a100_is_its_places_and_what_fills_it(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    assert_int_equal(occupancy_fill(&o, &b), 8);
    assert_int_equal(occupancy_worth(&o, &b),
                     14 * 5 + (4 + 3) * 12 + (2 + 1) * 32 + 96 + WORTH_FILL * 8);
}

static void test_sums_are_added_widened_and_lessened(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy two = { 0 }, three = { 0 };
    occupancy_add(&two, &b, named(&b, "2g.20gb"), 0);
    occupancy_add(&three, &b, named(&b, "3g.40gb"), 4);
    struct occupancy both = two, wide = two;
    occupancy_add_all(&both, &three);
    assert_int_equal(both.slices, 5);
    assert_int_equal(both.units, 0xf3);
    occupancy_widen(&wide, &three);
    assert_int_equal(wide.slices, 3);
    assert_int_equal(wide.units, 0xf3);
    occupancy_lessen(&two, &three);
    assert_int_equal(two.slices, 0);
    assert_int_equal(two.units, 0x03);
}

static void test_a_unit_that_nothing_can_use_fills_nothing(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    occupancy_add(&o, &b, named(&b, "1g.10gb"), 6);
    assert_int_equal(occupancy_fill(&o, &b), 6); /* only 1g.20gb, 3g and 7g reach unit 7 */
    occupancy_remove(&o, &b, named(&b, "1g.10gb"), 6);
    occupancy_add(&o, &b, named(&b, "1g.10gb"), 0);
    assert_int_equal(occupancy_fill(&o, &b), 7);
    occupancy_add(&o, &b, named(&b, "1g.20gb"), 2);
    assert_int_equal(occupancy_fill(&o, &b), 5); /* unit 1, and four from unit 4 */
}

static void test_compute_slices_limit_what_fills_a_card(void **state)
{
    (void)state;
    struct board b = board_a100_80();
    struct occupancy o = { 0 };
    occupancy_add(&o, &b, named(&b, "4g.40gb"), 0);
    occupancy_add(&o, &b, named(&b, "2g.20gb"), 4);
    assert_int_equal(occupancy_fill(&o, &b), 2); /* 1g.20gb */
    occupancy_add(&o, &b, named(&b, "1g.10gb"), 6);
    assert_int_equal(occupancy_fill(&o, &b), 0);
    assert_int_equal(occupancy_worth(&o, &b), 0);
}

/* By trying every set of instances. */
static uint32_t most_units(const struct occupancy *o, const struct board *b)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < b->profile_count; i++)
        for (uint32_t k = 0; k < b->profiles[i].start_count; k++) {
            const struct profile *p = &b->profiles[i];
            if (!occupancy_fits(o, b, p, p->starts[k]))
                continue;
            struct occupancy with = *o;
            occupancy_add(&with, b, p, p->starts[k]);
            uint32_t units = p->units + most_units(&with, b);
            most = units > most ? units : most;
        }
    return most;
}

static void test_what_fills_an_a30_is_what_trying_everything_finds(void **state)
{
    (void)state;
    struct board b = board_a30();
    for (uint32_t i = 0; i < b.profile_count; i++)
        for (uint32_t k = 0; k < b.profiles[i].start_count; k++) {
            struct occupancy o = { 0 };
            occupancy_add(&o, &b, &b.profiles[i], b.profiles[i].starts[k]);
            assert_int_equal(occupancy_fill(&o, &b), most_units(&o, &b));
        }
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
        cmocka_unit_test(test_sums_are_added_widened_and_lessened),
        cmocka_unit_test(test_an_empty_a100_has_25_places),
        cmocka_unit_test(test_the_worth_of_an_a100_is_its_places_and_what_fills_it),
        cmocka_unit_test(test_a_unit_that_nothing_can_use_fills_nothing),
        cmocka_unit_test(test_compute_slices_limit_what_fills_a_card),
        cmocka_unit_test(test_what_fills_an_a30_is_what_trying_everything_finds),
        cmocka_unit_test(test_units_may_not_overlap),
        cmocka_unit_test(test_compute_slices_run_out_before_memory),
        cmocka_unit_test(test_engines_and_instance_numbers_are_limits),
        cmocka_unit_test(test_removing_takes_back_what_adding_did),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
