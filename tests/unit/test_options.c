/* cli/options.h: from words to options. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/options.h"
#include "option_line.h"

static void expect_refusal(const char *line, const char *words)
{
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct err e = ERR_INIT;
    assert_int_equal(parse_line(line, &o, &e), -EINVAL);
    assert_string_equal(e.text, words);
}

static void expect_words(const struct job_options *o, enum job_option option, const char *words)
{
    assert_non_null(o->values[option].words);
    assert_string_equal(o->values[option].words, words);
}

static void words_are_kept_with_their_line(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    assert_int_equal(parse_line("--slice=1g.10gb:3 -n 3 --spread -JName", &o, NULL), 0);
    expect_words(&o, OPT_SLICE, "1g.10gb:3");
    expect_words(&o, OPT_TASKS, "3");
    expect_words(&o, OPT_SPREAD, "");
    expect_words(&o, OPT_NAME, "Name");
    assert_null(o.values[OPT_GPUS].words);
    assert_string_equal(o.values[OPT_TASKS].file, "train.sh");
    assert_int_equal(o.values[OPT_TASKS].line, 3);
}

static void the_last_one_wins_but_variables_and_arguments_add(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    assert_int_equal(parse_line("--time=1h --time=2h --env=A=1 --env=B=2 --container-arg=-t "
                                "--container-arg=--init",
                                &o, NULL),
                     0);
    expect_words(&o, OPT_TIME, "2h");
    expect_words(&o, OPT_ENV, "A=1,B=2");
    expect_words(&o, OPT_CONTAINER_ARG, "-t\n--init");
}

static void a_script_is_told_its_line(void **state)
{
    (void)state;
    expect_refusal("--slcie 1g.10gb", "train.sh:3: there is no option '--slcie'; did you mean "
                                      "--slice?");
    expect_refusal("--time", "train.sh:3: --time needs a value");
    expect_refusal("--spread=yes", "train.sh:3: --spread takes no value");
    expect_refusal("python3",
                   "train.sh:3: 'python3' is no option; the command stands in the script "
                   "itself");
}

static void the_command_line_wins(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options script = JOB_OPTIONS_INIT;
    AUTO(job_options) struct job_options line = JOB_OPTIONS_INIT;
    assert_int_equal(
        parse_line("--slice=3g.40gb:2 --spread --name=script --time=1h", &script, NULL), 0);
    assert_true(job_option_set(&line, 'G', "1"));
    assert_true(job_option_set(&line, 'J', "line"));
    assert_false(job_option_set(&line, 'Z', "1"));
    job_options_merge(&line, &script);
    expect_words(&line, OPT_GPUS, "1");
    assert_null(line.values[OPT_SLICE].words);
    assert_null(line.values[OPT_SPREAD].words);
    expect_words(&line, OPT_NAME, "line");
    assert_null(line.values[OPT_NAME].file);
    expect_words(&line, OPT_TIME, "1h");
    assert_string_equal(line.values[OPT_TIME].file, "train.sh");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_kept_with_their_line),
        cmocka_unit_test(the_last_one_wins_but_variables_and_arguments_add),
        cmocka_unit_test(a_script_is_told_its_line),
        cmocka_unit_test(the_command_line_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
