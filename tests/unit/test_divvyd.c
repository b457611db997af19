#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/text.h"
#include "config/divvyd.h"

static int parse(const char *text, struct divvyd_config *c, struct err *e)
{
    return divvyd_config_parse("divvy.yaml", text, strlen(text), c, e);
}

static void refused(const char *text, const char *expected)
{
    struct divvyd_config c;
    struct err e = ERR_INIT;
    assert_int_equal(parse(text, &c, &e), -EINVAL);
    assert_string_equal(e.text, expected);
}

static void nothing_written_means_the_defaults(void **state)
{
    (void)state;
    struct divvyd_config c;
    assert_int_equal(parse("", &c, NULL), 0);
    assert_int_equal(c.default_pool, POOL_OFF);
    assert_int_equal(c.default_mode, MODE_AUTO);
    assert_int_equal(c.mode_hold_us, 10 * CLOCK_MINUTE);
    assert_int_equal(c.default_time_us, 0);
    assert_int_equal(c.retention_us, 30 * CLOCK_DAY);
    assert_int_equal(c.isolation, GATE_AUTO);
    assert_int_equal(c.log_level, LOG_NOTE);
    assert_string_equal(c.operators, "divvy");
    assert_string_equal(c.cdi, "off");
    assert_null(c.driver_root);
    assert_int_equal(c.account_count, 0);
    divvyd_config_done(&c);
}

static void what_is_written_is_taken(void **state)
{
    (void)state;
    struct divvyd_config c;
    assert_int_equal(parse("driver_root: /run/divvy-sim/root\n"
                           "cdi: /etc/cdi/divvy.json\n"
                           "nvml: /usr/lib/libnvidia-ml.so.1\n"
                           "isolation: require\n"
                           "log_level: info\n"
                           "cards:\n"
                           "  GPU-1: {mode: slices}\n"
                           "  0000:07:00.0: {pool: slurm}\n"
                           "  default: {pool: queue, mode: whole}\n"
                           "mode_hold: 90s\n"
                           "prolog: /etc/divvy/prolog\n"
                           "prolog_time: 20s\n"
                           "default_time: 1h\n"
                           "max_time: 2d\n"
                           "accounts:\n"
                           "  lab: {share: 2.5}\n"
                           "  nlp: {users: [alice, bob], groups: nlp-lab}\n"
                           "  rest:\n",
                           &c, NULL),
                     0);
    assert_string_equal(c.driver_root, "/run/divvy-sim/root");
    assert_string_equal(c.cdi, "/etc/cdi/divvy.json");
    assert_int_equal(c.isolation, GATE_REQUIRE);
    assert_int_equal(c.log_level, LOG_INFO);
    assert_int_equal(c.default_pool, POOL_QUEUE);
    assert_int_equal(c.card_count, 2);
    assert_string_equal(c.cards[0].which, "GPU-1");
    assert_int_equal(c.cards[0].pool, POOL_QUEUE);
    assert_int_equal(c.cards[0].mode, MODE_SLICES);
    assert_int_equal(c.cards[1].pool, POOL_SLURM);
    assert_int_equal(c.cards[1].mode, MODE_WHOLE);
    assert_int_equal(c.mode_hold_us, 90 * CLOCK_SECOND);
    assert_string_equal(c.prolog, "/etc/divvy/prolog");
    assert_null(c.epilog);
    assert_int_equal(c.prolog_time_us, 20 * CLOCK_SECOND);
    assert_int_equal(c.max_time_us, 2 * CLOCK_DAY);
    assert_int_equal(c.account_count, 3);
    const struct config_account *nlp = divvyd_config_account(&c, "nlp");
    assert_int_equal(nlp->users.count, 2);
    assert_string_equal(nlp->users.words[1], "bob");
    assert_string_equal(nlp->groups.words[0], "nlp-lab");
    assert_true(nlp->share > 0.99 && nlp->share < 1.01);
    assert_true(divvyd_config_account(&c, "lab")->share > 2.49);
    assert_null(divvyd_config_account(&c, "vision"));
    divvyd_config_done(&c);
}

static void an_unknown_key_is_refused_with_the_nearest(void **state)
{
    (void)state;
    refused("mode_hodl: 10m\n",
            "divvy.yaml:1:1: there is no key 'mode_hodl' here; did you mean 'mode_hold'?");
    refused("accounts:\n  nlp: {user: [alice]}\n",
            "divvy.yaml:2:9: there is no key 'user' here; did you mean 'users'?");
    refused("accounts:\n  nlp: {zzz: 1}\n",
            "divvy.yaml:2:9: there is no key 'zzz' here; known are users, groups, share, "
            "max_pending");
}

static void bad_values_are_refused_at_their_place(void **state)
{
    (void)state;
    refused("isolation: strict\n",
            "divvy.yaml:1:12: isolation: 'strict' is not one of auto, require or none");
    refused(
        "cdi: run/divvy.json\n",
        "divvy.yaml:1:6: cdi: 'run/divvy.json' is neither on, off nor an absolute path that ends "
        "with .json");
    refused("driver_root: sim/root\n",
            "divvy.yaml:1:14: driver_root: 'sim/root' must be an absolute path, beginning with /");
    refused("mode_hold: soon\n", "divvy.yaml:1:12: mode_hold: 'soon' is not a time; write it like "
                                 "90s, 45m, 2h30m or 1:30:00");
    refused("default_time: 3h\nmax_time: 2h\n",
            "divvy.yaml:1:15: default_time is longer than max_time");
    refused("accounts:\n  nlp: {share: 0}\n",
            "divvy.yaml:2:16: share must be above 0; an account without one gets 1");
    refused("accounts: [nlp]\n", "divvy.yaml:1:11: accounts must be a map of names, not a list");
    refused(
        "cards:\n  gpu0: {pool: queue}\n",
        "divvy.yaml:2:3: cards: 'gpu0' is neither 'default', a UUID (GPU-...) nor a PCI address "
        "(0000:07:00.0); divvy gpus --json tells them");
}

static void an_account_has_a_name_that_fits_everywhere(void **state)
{
    (void)state;
    refused("accounts:\n  'a b': {}\n",
            "divvy.yaml:2:3: accounts: 'a b' cannot be a name; up to 32 letters, digits, '.', '_' "
            "and '-' can");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_written_means_the_defaults),
        cmocka_unit_test(what_is_written_is_taken),
        cmocka_unit_test(an_unknown_key_is_refused_with_the_nearest),
        cmocka_unit_test(bad_values_are_refused_at_their_place),
        cmocka_unit_test(an_account_has_a_name_that_fits_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
