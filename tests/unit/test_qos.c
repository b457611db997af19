#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "model/qos.h"

static void ways_out_are_read_and_written(void **state)
{
    (void)state;
    static const char *const words[] = { "never", "requeue", "cancel", "signal:USR1" };
    for (int i = 0; i < 4; i++) {
        struct qos q;
        qos_init(&q, "low");
        assert_int_equal(qos_preempt_parse(words[i], &q.preempt, &q.signal, NULL), 0);
        assert_int_equal(q.preempt, i);
        auto_free char *text = qos_preempt_text(&q);
        assert_string_equal(text, words[i]);
        qos_done(&q);
    }
    int preempt, signal;
    assert_int_equal(qos_preempt_parse("signal:sigusr2", &preempt, &signal, NULL), 0);
    assert_int_equal(signal, SIGUSR2);
    struct err e = ERR_INIT;
    assert_int_equal(qos_preempt_parse("kill", &preempt, &signal, &e), -EINVAL);
    assert_string_equal(e.text, "'kill' is no way to push a job out; never, requeue, cancel and "
                                "signal:NAME are");
    assert_int_equal(qos_preempt_parse("signal:KILL", &preempt, &signal, NULL), -EINVAL);
}

static void only_who_is_named_and_lets_himself_is_pushed_out(void **state)
{
    (void)state;
    struct qos high, low;
    qos_init(&high, "high");
    qos_init(&low, "low");
    assert_false(qos_may_preempt(&high, &low));
    strv_add(&high.preempts, "low");
    assert_false(qos_may_preempt(&high, &low)); /* low says never */
    low.preempt = PREEMPT_REQUEUE;
    assert_true(qos_may_preempt(&high, &low));
    assert_false(qos_may_preempt(&low, &high));
    qos_done(&high);
    qos_done(&low);
}

static void names_fit_everywhere(void **state)
{
    (void)state;
    assert_true(qos_is_name("high-2.x_y"));
    assert_false(qos_is_name(""));
    assert_false(qos_is_name("-x"));
    assert_false(qos_is_name("a b"));
    assert_true(qos_is_name("abcdefghijklmnopqrstuvwxyz123456"));
    assert_false(qos_is_name("abcdefghijklmnopqrstuvwxyz1234567"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_out_are_read_and_written),
        cmocka_unit_test(only_who_is_named_and_lets_himself_is_pushed_out),
        cmocka_unit_test(names_fit_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
