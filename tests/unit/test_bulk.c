#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/bulk.h"
#include "plan/place.h"

static void holds_stand_in_the_order_of_their_ends(void **state)
{
    (void)state;
    struct bulk b = { .cards = 8, .free = 8 };
    assert_true(bulk_hold(&b, &(struct bulk_hold){ 1, 2, 0, 300 }));
    assert_true(bulk_hold(&b, &(struct bulk_hold){ 2, 1, 0, INT64_MAX }));
    assert_true(bulk_hold(&b, &(struct bulk_hold){ 3, 4, 0, 100 }));
    assert_int_equal(b.free, 1);
    assert_int_equal(b.holds[0].job_id, 3);
    assert_int_equal(b.holds[1].job_id, 1);
    assert_int_equal(b.holds[2].job_id, 2);
    assert_false(bulk_hold(&b, &(struct bulk_hold){ 4, 2, 0, 50 }));
    assert_int_equal(b.count, 3);
    assert_int_equal(bulk_free_at(&b, 100), 5);
    assert_true(bulk_end(&b, 1));
    assert_false(bulk_end(&b, 1));
    assert_int_equal(b.free, 3);
    bulk_done(&b);
}

static void the_soonest_is_when_enough_have_ended(void **state)
{
    (void)state;
    struct bulk b = { .cards = 8, .free = 8 };
    assert_true(bulk_hold(&b, &(struct bulk_hold){ 1, 2, 0, 300 }));
    assert_true(bulk_hold(&b, &(struct bulk_hold){ 2, 1, 0, INT64_MAX }));
    assert_true(bulk_hold(&b, &(struct bulk_hold){ 3, 4, 0, 100 }));
    assert_int_equal(bulk_soonest_us(&b, 1, 10), 10);
    assert_int_equal(bulk_soonest_us(&b, 5, 10), 100);
    assert_int_equal(bulk_soonest_us(&b, 6, 10), 300);
    assert_int_equal(bulk_soonest_us(&b, 6, 400), 400); /* overdue: any moment now */
    assert_true(bulk_soonest_us(&b, 8, 10) == INT64_MAX);
    bulk_done(&b);
}

static void place_gives_counted_cards(void **state)
{
    (void)state;
    struct bulk b = { .cards = 4, .free = 3 };
    struct inventory inv = { .bulk = &b };
    struct request r = { .kind = REQUEST_CARDS, .count = 3 };
    struct place place;
    struct plan plan;
    struct now now = { .boot_us = 1 };
    assert_int_equal(place_request(&inv, &r, NULL, now, &place, &plan, NULL), PLACE_NOW);
    assert_int_equal(place.count, 3);
    assert_int_equal(place.items[2].compute_ppm, PPM);
    assert_int_equal(plan.count, 0);
    place_done(&place);
    r.count = 4;
    assert_int_equal(place_request(&inv, &r, NULL, now, &place, &plan, NULL), PLACE_LATER);
    r.count = 5;
    struct err e = ERR_INIT;
    assert_int_equal(place_request(&inv, &r, NULL, now, &place, &plan, &e), PLACE_NEVER);
    assert_string_equal(e.text, "5 cards are asked for, and there are 4");
    r = (struct request){ .kind = REQUEST_SLICES, .count = 1, .profile = "1g.10gb" };
    assert_int_equal(place_possible(&inv, &r, NULL, &e), PLACE_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_stand_in_the_order_of_their_ends),
        cmocka_unit_test(the_soonest_is_when_enough_have_ended),
        cmocka_unit_test(place_gives_counted_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
