#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "srun/words.h"

#define ARGS(...)                                                                                  \
    (char *[])                                                                                     \
    {                                                                                              \
        "srun", __VA_ARGS__, NULL                                                                  \
    }
#define COUNT(...) (int)(sizeof(ARGS(__VA_ARGS__)) / sizeof(char *)) - 1
#define PARSE(w, ...) words_parse(COUNT(__VA_ARGS__), ARGS(__VA_ARGS__), w, NULL)

static void the_command_begins_at_the_first_word(void **state)
{
    (void)state;
    AUTO(words) struct words w;
    assert_int_equal(PARSE(&w, "-n2", "--overlap", "-o", "log", "./train", "-n", "9"), 0);
    assert_int_equal(w.tasks, 2);
    assert_true(w.overlap);
    assert_false(w.kill_on_bad_exit);
    assert_string_equal(w.output, "log");
    assert_string_equal(w.command[0], "./train");
    assert_string_equal(w.command[1], "-n");
}

static void what_means_nothing_here_is_named_once_a_word(void **state)
{
    (void)state;
    AUTO(words) struct words w;
    assert_int_equal(PARSE(&w, "--mpi=pmix", "-c", "4", "-l", "--exclusive", "-N1", "true"), 0);
    assert_string_equal(w.left_out.buf, "--mpi, --cpus-per-task");
    assert_true(w.label);
    assert_string_equal(w.command[0], "true");
}

static void refused(int argc, char **argv, const char *said)
{
    AUTO(words) struct words w;
    struct err e = ERR_INIT;
    assert_int_equal(words_parse(argc, argv, &w, &e), -22);
    if (!strstr(e.text, said))
        fail_msg("'%s' has no '%s'", e.text, said);
}
#define REFUSED(said, ...) refused(COUNT(__VA_ARGS__), ARGS(__VA_ARGS__), said)

static void what_cannot_be_is_refused_in_words(void **state)
{
    (void)state;
    REFUSED("one machine", "-N", "2", "true");
    REFUSED("--ntasks", "-n", "0", "true");
    REFUSED("--ntasks", "--ntasks=many", "true");
    REFUSED("needs a value", "-n");
    REFUSED("--frob", "--frob", "true");
    REFUSED("-Z", "-Z", "true");
    REFUSED("which command", "-n", "2");
    REFUSED("SLURM_PROCID", "--multi-prog", "file");
}

static void the_version_needs_no_command(void **state)
{
    (void)state;
    AUTO(words) struct words w;
    assert_int_equal(PARSE(&w, "-V"), 0);
    assert_true(w.version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_begins_at_the_first_word),
        cmocka_unit_test(what_means_nothing_here_is_named_once_a_word),
        cmocka_unit_test(what_cannot_be_is_refused_in_words),
        cmocka_unit_test(the_version_needs_no_command),
    };
    return cmocka_run_group_tests_name("srun_words", tests, NULL, NULL);
}
