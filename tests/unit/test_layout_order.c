#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/layout_order.h"

static int read_order(const char *text, struct layout_order *ret, struct err *e)
{
    auto_json json_t *j = NULL;
    assert_int_equal(json_parse(text, strlen(text), "a test", &j, e), 0);
    return layout_order_from_json(j, ret, e);
}

static void an_order_comes_back_as_it_was(void **state)
{
    (void)state;
    AUTO(layout_order) struct layout_order a = LAYOUT_ORDER_INIT;
    AUTO(layout_order) struct layout_order b = LAYOUT_ORDER_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(read_order("{\"text\":\"cards: []\",\"file\":\"lab.yaml\",\"label\":\"day\","
                                "\"wait\":true,\"move_idle\":true}",
                                &a, &e),
                     0);
    auto_json json_t *j = layout_order_to_json(&a);
    assert_int_equal(layout_order_from_json(j, &b, &e), 0);
    assert_string_equal(b.text, "cards: []");
    assert_string_equal(b.file, "lab.yaml");
    assert_string_equal(b.label, "day");
    assert_null(b.make);
    assert_null(b.unmake);
    assert_true(b.wait);
    assert_false(b.agreed);
    assert_true(b.move_idle);
}

static void an_order_is_for_one_thing(void **state)
{
    (void)state;
    static const char *const wrong[] = { "{}", "{\"make\":\"a\",\"unmake\":\"b\"}",
                                         "{\"text\":\"a\",\"make\":\"b\"}",
                                         "{\"text\":\"a\",\"yes\":true}", "{\"text\":7}" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct layout_order o = LAYOUT_ORDER_INIT;
        struct err e = ERR_INIT;
        assert_int_equal(read_order(wrong[i], &o, &e), -EINVAL);
        assert_true(e.text[0]);
        assert_null(o.text);
    }
}

static void every_outcome_has_a_word(void **state)
{
    (void)state;
    for (int o = LAYOUT_OPEN; o <= LAYOUT_STOPPED; o++) {
        enum layout_outcome back = LAYOUT_OPEN;
        assert_int_equal(
            layout_outcome_parse(layout_outcome_word((enum layout_outcome)o), &back, NULL), 0);
        assert_int_equal(back, o);
    }
    enum layout_outcome o = LAYOUT_DONE;
    assert_int_equal(layout_outcome_parse("perhaps", &o, NULL), -EINVAL);
    assert_int_equal(o, LAYOUT_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_comes_back_as_it_was),
        cmocka_unit_test(an_order_is_for_one_thing),
        cmocka_unit_test(every_outcome_has_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
