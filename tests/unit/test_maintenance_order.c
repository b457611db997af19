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
    assert_true(o.begin);
    assert_int_equal(o.count, 2);
    assert_int_equal(o.gpus[0], 3);
    assert_int_equal(read_order("{\"action\":\"begin\"}", &o, &e), 0);
    assert_int_equal(o.count, 0);
    assert_int_equal(read_order("{\"action\":\"end\"}", &o, &e), 0);
    assert_false(o.begin);
}

static void what_it_cannot_be_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "{}",
                                         "{\"action\":\"pause\"}",
                                         "{\"action\":\"begin\",\"gpus\":[-1]}",
                                         "{\"action\":\"begin\",\"gpus\":[1,1]}",
                                         "{\"action\":\"begin\",\"gpus\":[\"a\"]}",
                                         "{\"action\":\"end\",\"gpus\":[1]}" };
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
        cmocka_unit_test(what_it_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
