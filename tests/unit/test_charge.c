#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/charge.h"

static void a_charge_is_the_larger_part_of_each_slice(void **state)
{
    (void)state;
    struct place p = { .items = NULL };
    assert_int_equal(charge_dominant_ppm(&p), 0);
    struct placed *a = place_add(&p);
    a->compute_ppm = 142857;
    a->mem_ppm = 250000;
    struct placed *b = place_add(&p);
    b->compute_ppm = 142857;
    b->mem_ppm = 125000;
    assert_int_equal(charge_dominant_ppm(&p), 250000 + 142857);
    assert_int_equal(charge_compute_ppm(&p), 2 * 142857);
    assert_int_equal(charge_mem_ppm(&p), 375000);
    place_done(&p);
}

static void as_many_cards_as_a_job_may_have_are_summed(void **state)
{
    (void)state;
    struct place p = { .items = NULL };
    for (int i = 0; i < REQUEST_TASKS_MAX; i++) {
        struct placed *item = place_add(&p);
        item->compute_ppm = item->mem_ppm = PPM;
    }
    assert_int_equal(charge_dominant_ppm(&p), UINT64_C(128000000));
    place_done(&p);
}

static void assert_near(double a, double b)
{
    assert_true(a - b < 1e-6 && b - a < 1e-6);
}

static void usage_halves_in_a_half_life(void **state)
{
    (void)state;
    int64_t week = 7 * CLOCK_DAY;
    assert_near(charge_decay(1000, week, week), 500);
    assert_near(charge_decay(1000, 2 * week, week), 250);
    assert_near(charge_decay(1000, week / 2, week), 707.106781);
    assert_near(charge_decay(1000, 2000 * week, week), 0);
    assert_near(charge_decay(0, week, week), 0);
}

static void without_a_half_life_nothing_is_forgotten(void **state)
{
    (void)state;
    assert_near(charge_decay(1000, CLOCK_DAY, 0), 1000);
}

static void a_clock_that_was_set_back_does_not_add_usage(void **state)
{
    (void)state;
    assert_near(charge_decay(1000, -CLOCK_DAY, CLOCK_DAY), 1000);
    assert_near(charge_decay(1000, INT64_MIN, CLOCK_DAY), 1000);
    assert_near(charge_decay(1000, 0, CLOCK_DAY), 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_charge_is_the_larger_part_of_each_slice),
        cmocka_unit_test(as_many_cards_as_a_job_may_have_are_summed),
        cmocka_unit_test(usage_halves_in_a_half_life),
        cmocka_unit_test(without_a_half_life_nothing_is_forgotten),
        cmocka_unit_test(a_clock_that_was_set_back_does_not_add_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
