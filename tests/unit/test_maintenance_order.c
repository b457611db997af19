#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "model/maintenance_order.h"

static int read_order(const char *text, struct maintenance_order *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    assert_int_equal(json_parse(text, strlen(text), "a test", &j, e), 0);
    return maintenance_order_from_json(j, ret, e);
}

static void it_begins_for_some_cards_or_all(void **state)
{
    (void)state;
    struct maintenance_order o;
    struct err e = ERR_INIT;
    assert_int_equal(read_order("{\"action\":\"begin\",\"gpus\":[3,0]}", &o, &e), 0);
    assert_int_equal(o.action, MAINTENANCE_BEGIN);
    assert_int_equal(o.count, 2);
    assert_int_equal(o.gpus[0], 3);
    assert_int_equal(read_order("{\"action\":\"begin\"}", &o, &e), 0);
    assert_int_equal(o.count, 0);
    assert_int_equal(read_order("{\"action\":\"end\"}", &o, &e), 0);
    assert_int_equal(o.action, MAINTENANCE_END);
}

static void it_is_planned_and_a_plan_is_cancelled(void **state)
{
    (void)state;
    struct maintenance_order o;
    struct err e = ERR_INIT;
    assert_int_equal(read_order("{\"action\":\"plan\",\"from_wall_us\":5,\"until_wall_us\":9,"
                                "\"gpus\":[1],\"reason\":\"new riser\"}",
                                &o, &e),
                     0);
    assert_int_equal(o.action, MAINTENANCE_PLAN);
    assert_true(o.from_wall_us == 5 && o.until_wall_us == 9 && o.gpus[0] == 1);
    assert_string_equal(o.reason, "new riser");
    assert_int_equal(read_order("{\"action\":\"cancel\",\"id\":7}", &o, &e), 0);
    assert_int_equal(o.action, MAINTENANCE_CANCEL);
    assert_int_equal(o.id, 7);
}

static void what_it_cannot_be_is_refused(void **state)
{
    (void)state;
    static const char backwards[] = "{\"action\":\"plan\",\"from_wall_us\":5,\"until_wall_us\":5}";
    static const char too_late[] =
        "{\"action\":\"plan\",\"from_wall_us\":5,\"until_wall_us\":9223372036854775807}";
    static const char *const wrong[] = { "{}",
                                         "{\"action\":\"pause\"}",
                                         "{\"action\":\"begin\",\"gpus\":[-1]}",
                                         "{\"action\":\"begin\",\"gpus\":[1,1]}",
                                         "{\"action\":\"begin\",\"gpus\":[\"a\"]}",
                                         "{\"action\":\"end\",\"gpus\":[1]}",
                                         "{\"action\":\"cancel\"}",
                                         "{\"action\":\"end\",\"id\":1}",
                                         "{\"action\":\"begin\",\"reason\":\"x\"}",
                                         "{\"action\":\"plan\",\"from_wall_us\":5}",
                                         backwards,
                                         too_late };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct maintenance_order o;
        struct err e = ERR_INIT;
        assert_int_equal(read_order(wrong[i], &o, &e), -EINVAL);
        assert_true(e.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_for_some_cards_or_all),
        cmocka_unit_test(it_is_planned_and_a_plan_is_cancelled),
        cmocka_unit_test(what_it_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
