#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/setup.h"
#include "config/divvyd.h"

static void read_back(char *const *groups, struct divvyd_config *ret)
{
    struct err e = ERR_INIT;
    auto_free char *text = setup_config_text(groups);
    if (divvyd_config_parse("divvy.yaml", text, strlen(text), ret, &e) < 0)
        fail_msg("%s", e.text);
}

static void first_file_touches_no_card(void **state)
{
    struct divvyd_config c;
    (void)state;
    read_back(NULL, &c);
    assert_int_equal(c.default_pool, POOL_OFF);
    assert_int_equal(c.account_count, 0);
    divvyd_config_done(&c);
}

static void each_group_is_an_account(void **state)
{
    struct divvyd_config c;
    char *const groups[] = { (char *)"nlp-lab", (char *)"no", (char *)"0640", NULL };
    (void)state;
    read_back(groups, &c);
    assert_int_equal(c.account_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(c.accounts[i].name, groups[i]);
        assert_int_equal(c.accounts[i].groups.count, 1);
        assert_string_equal(c.accounts[i].groups.words[0], groups[i]);
    }
    divvyd_config_done(&c);
}

/* The examples in comments are what the daemon takes, with their marks removed. */
static void what_is_commented_out_is_right(void **state)
{
    struct err e = ERR_INIT;
    struct divvyd_config c;
    AUTO(text) struct text t = TEXT_INIT;
    auto_free char *text = setup_config_text(NULL);
    (void)state;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        text_addf(&t, "%s\n",
                  line[0] == '#' && line[1] && line[1] != ' ' ? line + 1
                  : text_starts(line, "#  ")                  ? line + 1
                                                              : line);
    if (divvyd_config_parse("divvy.yaml", t.buf, t.len, &c, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(c.account_count, 3);
    assert_string_equal(c.operators, "divvy");
    divvyd_config_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_file_touches_no_card),
        cmocka_unit_test(each_group_is_an_account),
        cmocka_unit_test(what_is_commented_out_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
