/* model/board_json.h: boards as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "geometry.h"
#include "random_board.h"

#define ROUNDS 200

static void boards_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(41);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        auto_free struct board *b = mem_new(sizeof *b);
        auto_free struct board *again = mem_new(sizeof *again);
        board_random(b, &d);
        auto_json json_t *j = over_the_wire(board_to_json(b));
        if (board_from_json(j, again, &e) < 0)
            fail_msg("%s", e.text);
        assert_same_board(b, again);
    }
}

static void what_a_driver_does_not_tell_of_a_board_is_null(void **state)
{
    (void)state;
    static const char *const silent[] = { "sms",      "cc_minor",       "decoders",
                                          "pcie_gen", "mem_bytes",      "ecc",
                                          "fan",      "reserved_bytes", "power_idle_mw",
                                          "brand",    "min_driver" };
    auto_free struct board *b = mem_new(sizeof *b);
    auto_free struct board *back = mem_new(sizeof *back);
    struct err e = ERR_INIT;
    auto_json json_t *j = board_to_json(b);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        assert_true(json_is_null(json_object_get(j, silent[i])));
    assert_int_equal(json_integer_value(json_object_get(j, "units")), 0);
    assert_true(json_is_integer(json_object_get(j, "units")));
    assert_int_equal(board_from_json(j, back, &e), 0);
    assert_same_board(b, back);
}

static void a_board_file_tells_of_nothing_as_0(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    (void)snprintf(b->key, sizeof b->key, "a100-80gb");
    b->encoders = 0;
    auto_json json_t *j = board_to_json(b);
    assert_true(json_is_integer(json_object_get(j, "encoders")));
    assert_true(json_is_false(json_object_get(j, "fan")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boards_come_back_as_they_were),
        cmocka_unit_test(what_a_driver_does_not_tell_of_a_board_is_null),
        cmocka_unit_test(a_board_file_tells_of_nothing_as_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
