#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "supervise/client.h"

static int call(const char *script, int64_t limit_us, char **ret_said, struct err *e)
{
    char *words[] = { "/bin/sh", "-c", (char *)script, NULL };
    char *env[] = { "A=b", NULL };
    struct client_call c = { .words = words, .env = env, .limit_us = limit_us };
    int r = client_run(&c, ret_said, e);
    return r < 0 ? r : c.status;
}

static void it_says_what_it_said_and_how_it_ended(void **state)
{
    (void)state; /* none is needed */
    auto_free char *said = NULL;
    assert_int_equal(call("echo $A; echo no >&2; exit 7", CLOCK_MINUTE, &said, NULL), 7);
    assert_string_equal(said, "b\nno\n");
}

static void one_that_was_killed_says_so(void **state)
{
    (void)state; /* none is needed */
    auto_free char *said = NULL;
    assert_int_equal(call("kill -9 $$", CLOCK_MINUTE, &said, NULL), 128 + 9);
}

static void one_that_hangs_is_not_waited_for(void **state)
{
    (void)state; /* none is needed */
    struct err e = ERR_INIT;
    char *said = NULL;
    assert_int_equal(call("exec sleep 1000", 1000, &said, &e), -ETIMEDOUT);
    assert_null(said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_it_said_and_how_it_ended),
        cmocka_unit_test(one_that_was_killed_says_so),
        cmocka_unit_test(one_that_hangs_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
