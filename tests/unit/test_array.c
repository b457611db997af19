#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/array.h"

static char *words_of(const char *words)
{
    AUTO(job_array) struct job_array a = { .indices = NULL };
    struct err e = ERR_INIT;
    if (job_array_parse(words, &a, &e) < 0)
        return text_dup(e.text);
    struct text t = TEXT_INIT;
    job_array_add_words(&t, a.indices, a.count);
    if (a.running_max)
        text_addf(&t, "%%%u", a.running_max);
    return text_take(&t);
}

static void reads_as(const char *words, const char *said)
{
    auto_free char *found = words_of(words);
    if (!strstr(found, said))
        fail_msg("'%s' is '%s' and not '%s'", words, found, said);
}

static void indices_come_back_in_order_and_once(void **state)
{
    (void)state;
    reads_as("0-99%4", "0-99%4");
    reads_as("1,3,5-9:2", "1-9:2");
    reads_as("9,1,1,2-3", "1-3,9");
    reads_as("7", "7");
    reads_as("1,2", "1,2");
    reads_as("1,5", "1,5");
    reads_as("4194303", "4194303");
}

static void what_is_no_array_is_told(void **state)
{
    (void)state;
    reads_as("5-3", "backwards");
    reads_as("", "array");
    reads_as("1,", "array");
    reads_as("x", "array");
    reads_as("1:2", "range");
    reads_as("0-9:0", "step");
    reads_as("0-9%0", "limit");
    reads_as("0-20000", "at most 20000");
    reads_as("4194304", "array");
    reads_as("0-19999,0-19999", "at most");
}

static void a_position_is_found_by_its_index(void **state)
{
    (void)state;
    AUTO(job_array) struct job_array a = { .indices = NULL };
    assert_int_equal(job_array_parse("2,5-7", &a, NULL), 0);
    assert_int_equal(a.count, 4);
    assert_int_equal(job_array_position(&a, 2), 0);
    assert_int_equal(job_array_position(&a, 7), 3);
    assert_int_equal(job_array_position(&a, 3), -1);
}

static void an_output_names_array_and_index(void **state)
{
    (void)state;
    auto_free char *s = job_array_output("out/%A_%a.%j%%a%", 41, 7);
    assert_string_equal(s, "out/41_7.%j%%a%");
    assert_null(job_array_output(NULL, 41, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_come_back_in_order_and_once),
        cmocka_unit_test(what_is_no_array_is_told),
        cmocka_unit_test(a_position_is_found_by_its_index),
        cmocka_unit_test(an_output_names_array_and_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
