#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/text.h"
#include "config/mig_hooks.h"

static void refused(const char *text, const char *expected)
{
    struct mig_hooks h = MIG_HOOKS_INIT;
    struct err e = ERR_INIT;
    assert_true(mig_hooks_parse("h.yaml", text, strlen(text), &h, &e) < 0);
    assert_string_equal(e.text, expected);
    assert_int_equal(h.count[MIG_HOOK_START], 0);
}

static void each_point_has_its_commands_in_order(void **state)
{
    (void)state;
    AUTO(mig_hooks) struct mig_hooks h = MIG_HOOKS_INIT;
    struct err e = ERR_INIT;
    const char *text = "version: v1\n"
                       "hooks:\n"
                       "  apply-start:\n"
                       "  - workdir: /etc\n"
                       "    command: /bin/bash\n"
                       "    args: [\"-x\", \"-c\", \"source a.sh; go ${LABEL}\\n\"]\n"
                       "    envs: {A: b=c, EMPTY: \"\"}\n"
                       "  apply-exit:\n"
                       "  - {command: one}\n"
                       "  - {command: two}\n"
                       "  pre-apply-mode:\n";
    if (mig_hooks_parse("h.yaml", text, strlen(text), &h, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(h.count[MIG_HOOK_START], 1);
    assert_int_equal(h.count[MIG_HOOK_MODE], 0);
    assert_int_equal(h.count[MIG_HOOK_CONFIG], 0);
    assert_int_equal(h.count[MIG_HOOK_EXIT], 2);
    const struct mig_hook *first = &h.list[MIG_HOOK_START][0];
    assert_string_equal(first->workdir, "/etc");
    assert_string_equal(first->command, "/bin/bash");
    assert_int_equal(first->args.count, 3);
    assert_string_equal(first->args.words[2], "source a.sh; go ${LABEL}\n");
    assert_int_equal(first->envs.count, 2);
    assert_string_equal(first->envs.words[0], "A=b=c");
    assert_string_equal(first->envs.words[1], "EMPTY=");
    assert_string_equal(h.list[MIG_HOOK_EXIT][1].command, "two");
}

static void an_empty_file_has_none(void **state)
{
    (void)state;
    AUTO(mig_hooks) struct mig_hooks h = MIG_HOOKS_INIT;
    assert_int_equal(mig_hooks_parse("h.yaml", "", 0, &h, NULL), 0);
    for (int p = 0; p < MIG_HOOK_POINTS; p++)
        assert_int_equal(h.count[p], 0);
}

static void faults_name_line_and_column(void **state)
{
    (void)state;
    refused("version: v2\n", "h.yaml:1:10: version 'v2' is not known; v1 is");
    refused("hooks: {pre-aply-mode: []}\n",
            "h.yaml:1:9: no hook is called 'pre-aply-mode'; did you mean pre-apply-mode?");
    refused("hooks: {zzz: []}\n",
            "h.yaml:1:9: no hook is called 'zzz'; there are apply-start, pre-apply-mode, "
            "pre-apply-config and apply-exit");
    refused("hooks: {apply-start: true}\n", "h.yaml:1:22: apply-start must be a list of commands");
    refused("hooks: {apply-start: [{command: \"\"}]}\n", "h.yaml:1:33: command is empty");
    refused("hooks: {apply-start: [{command: a, args: b}]}\n",
            "h.yaml:1:42: args must be a list: [\"-c\", \"true\"]");
    refused("hooks: {apply-start: [{command: a, envs: [b]}]}\n",
            "h.yaml:1:42: envs must be a map of names and values");
    refused("hooks: {apply-start: [{command: a, envs: {\"A=\": b}}]}\n",
            "h.yaml:1:43: 'A=' is no name of a variable");
    refused("hooks: [a]\n", "h.yaml:1:8: hooks must be a map of lists");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_point_has_its_commands_in_order),
        cmocka_unit_test(an_empty_file_has_none),
        cmocka_unit_test(faults_name_line_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
