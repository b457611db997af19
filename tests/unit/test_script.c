#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "config/script.h"

static int parse(const char *text, struct script_options *o, struct err *e)
{
    return script_parse("s.sh", text, strlen(text), o, e);
}

static void refused(const char *text, const char *expected)
{
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    struct err e = ERR_INIT;
    assert_true(parse(text, &o, &e) < 0);
    assert_int_equal(o.count, 0);
    assert_string_equal(e.text, expected);
}

static void words_keep_their_lines(void **state)
{
    (void)state;
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    assert_int_equal(parse("#!/bin/sh\n"
                           "#DIVVY --slice 2g.20gb --time 2h\n"
                           "\n"
                           "  # a comment\n"
                           "#DIVVY\t--name \"my run\"   # and why\r\n"
                           "echo go\n",
                           &o, NULL),
                     0);
    const char *const expected[] = { "--slice", "2g.20gb", "--time", "2h", "--name", "my run" };
    const unsigned lines[] = { 2, 2, 2, 2, 5, 5 };
    assert_int_equal(o.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_string_equal(o.argv[i], expected[i]);
        assert_int_equal(o.lines[i], lines[i]);
    }
    assert_null(o.argv[6]);
    assert_true(o.interpreter);
    assert_int_equal(o.late_line, 0);
}

static void quotes_are_a_shells(void **state)
{
    (void)state;
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    assert_int_equal(
        parse("#DIVVY a'b c'd \"x\\\"y\\n\" e\\ f '$HOME' \"\\$5\" '' g#h\n", &o, NULL), 0);
    const char *const expected[] = { "ab cd", "x\"y\\n", "e f", "$HOME", "$5", "", "g#h" };
    assert_int_equal(o.count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(o.argv[i], expected[i]);
    assert_false(o.interpreter);
}

static void only_directives_before_the_first_command_count(void **state)
{
    (void)state;
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    assert_int_equal(parse("##DIVVY --off\n#DIVVYX --other\n# DIVVY --text\n#DIVVY\ntrue\n"
                           "#DIVVY --late\n#DIVVY --later\n",
                           &o, NULL),
                     0);
    assert_int_equal(o.count, 0);
    assert_null(o.argv);
    assert_int_equal(o.late_line, 6);
}

static void faults_name_line_and_column(void **state)
{
    (void)state;
    refused("#!/bin/sh\n#DIVVY --name \"my run\n",
            "s.sh:2:15: this quote is not closed in its line");
    refused("#DIVVY 'x\n", "s.sh:1:8: this quote is not closed in its line");
    refused("#DIVVY --gpus 1 \\\n",
            "s.sh:1:17: such a line does not go on in the next one; begin that in the same way");
    refused("#DIVVY --output $HOME/o\n",
            "s.sh:1:17: variables and commands are not expanded in these lines; write the value "
            "itself, or 'single quotes' around a $ that is meant");
    struct err e = ERR_INIT;
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    assert_int_equal(script_parse("prog", "\177ELF\0\1", 6, &o, &e), -EINVAL);
    assert_string_equal(e.text, "prog: has a NUL byte and so is no script; to run a program write: "
                                "divvy submit -- prog");
}

static void no_script_is_endless(void **state)
{
    (void)state;
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "#DIVVY");
    for (unsigned i = 0; i < SCRIPT_WORDS_MAX; i++)
        text_add(&t, " a");
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    assert_int_equal(parse(t.buf, &o, NULL), 0);
    assert_int_equal(o.count, SCRIPT_WORDS_MAX);
    text_add(&t, " a");
    refused(t.buf, "s.sh:1:2056: more options than anybody means (1024 words)");
    auto_free char *big = mem_new(SCRIPT_BYTES_MAX + 1);
    memset(big, '#', SCRIPT_BYTES_MAX + 1);
    AUTO(script_options) struct script_options none = SCRIPT_OPTIONS_INIT;
    assert_int_equal(script_parse("big", big, SCRIPT_BYTES_MAX + 1, &none, NULL), -EFBIG);
}

static void a_line_by_itself_is_split_alike(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    AUTO(script_options) struct script_options o = SCRIPT_OPTIONS_INIT;
    const char line[] = "--name 'a b' -- ./x \"1 2\" # first\r";
    assert_int_equal(script_words("jobs", 7, line, strlen(line), &o, &e), 0);
    assert_int_equal(o.count, 5);
    assert_string_equal(o.argv[1], "a b");
    assert_string_equal(o.argv[4], "1 2");
    assert_int_equal(o.lines[4], 7);
    AUTO(script_options) struct script_options none = SCRIPT_OPTIONS_INIT;
    assert_int_equal(script_words("jobs", 8, "  # nothing", 11, &none, &e), 0);
    assert_int_equal(none.count, 0);
    assert_int_equal(script_words("jobs", 9, "echo $x", 7, &none, &e), -EINVAL);
    assert_true(strncmp(e.text, "jobs:9:6: variables", 19) == 0);
    assert_int_equal(script_words("jobs", 9, "a\0b", 3, &none, &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_keep_their_lines),
        cmocka_unit_test(quotes_are_a_shells),
        cmocka_unit_test(only_directives_before_the_first_command_count),
        cmocka_unit_test(faults_name_line_and_column),
        cmocka_unit_test(no_script_is_endless),
        cmocka_unit_test(a_line_by_itself_is_split_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
