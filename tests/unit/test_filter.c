/* cli/filter.h: which jobs a list is about. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "cli/filter.h"

static const char *alice(void)
{
    return "alice";
}

static const char *nobody(void)
{
    return NULL;
}

static void nothing_given_is_any_job_that_has_not_ended(void **state)
{
    (void)state;
    struct filter f = { .mine = false };
    struct job_filter jobs;
    filter_of_jobs(&f, &jobs);
    assert_false(jobs.has_uid);
    assert_string_equal(jobs.user, "");
    assert_string_equal(jobs.account, "");
    assert_int_equal(jobs.states, 0);
}

static void options_reach_the_daemon(void **state)
{
    (void)state;
    struct filter f = { .mine = false };
    struct job_filter jobs;
    assert_true(filter_parse('u', "bob", &f));
    assert_true(filter_parse('A', "nlp", &f));
    assert_true(filter_parse('t', "running,Waiting", &f));
    assert_false(filter_parse('x', NULL, &f));
    filter_of_jobs(&f, &jobs);
    assert_string_equal(jobs.user, "bob");
    assert_string_equal(jobs.account, "nlp");
    assert_int_equal(jobs.states, 1u << JOB_RUNNING | 1u << JOB_PENDING);
}

static void own_jobs_are_those_of_the_caller(void **state)
{
    (void)state;
    struct filter f = { .mine = false };
    struct job_filter jobs;
    assert_true(filter_parse('m', NULL, &f));
    filter_of_jobs(&f, &jobs);
    assert_true(jobs.has_uid);
    assert_int_equal(jobs.uid, getuid());
}

static void the_past_knows_the_caller_by_name_or_else_by_number(void **state)
{
    (void)state;
    struct session s = { .caller_name = alice };
    struct filter f = { .mine = false };
    struct history_filter past;
    char number[16];
    (void)snprintf(number, sizeof number, "%u", (unsigned)getuid());
    assert_true(filter_parse('A', "nlp", &f));
    filter_of_history(&s, &f, &past);
    assert_string_equal(past.user, "");
    assert_string_equal(past.account, "nlp");
    assert_true(filter_parse('M', NULL, &f));
    filter_of_history(&s, &f, &past);
    assert_string_equal(past.user, "alice");
    s.caller_name = nobody;
    filter_of_history(&s, &f, &past);
    assert_string_equal(past.user, number);
}

static void what_is_no_state_is_told_with_the_nearest(void **state)
{
    (void)state;
    uint32_t states = 0;
    struct err e = ERR_INIT;
    assert_int_equal(filter_add_states("runing", &states, &e), -EINVAL);
    assert_string_equal(e.text, "'runing' is no state; did you mean running?");
    assert_int_equal(filter_add_states("wating", &states, &e), -EINVAL);
    assert_string_equal(e.text, "'wating' is no state; did you mean waiting?");
    assert_int_equal(filter_add_states("qqq", &states, &e), -EINVAL);
    assert_string_equal(e.text, "'qqq' is no state; 'divvy queue --help' lists them");
    assert_int_equal(filter_add_states("", &states, &e), -EINVAL); /* would be all of them */
    assert_int_equal(filter_add_states(",", &states, &e), -EINVAL);
    assert_int_equal(states, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_is_any_job_that_has_not_ended),
        cmocka_unit_test(options_reach_the_daemon),
        cmocka_unit_test(own_jobs_are_those_of_the_caller),
        cmocka_unit_test(the_past_knows_the_caller_by_name_or_else_by_number),
        cmocka_unit_test(what_is_no_state_is_told_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
