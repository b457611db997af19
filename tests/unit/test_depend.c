#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "model/depend.h"

static char *words_of(const char *words)
{
    AUTO(depend_list) struct depend_list l = { .items = NULL };
    struct err e = ERR_INIT;
    if (depend_parse(words, &l, &e) < 0)
        return text_dup(e.text);
    struct text t = TEXT_INIT;
    depend_list_add(&t, &l);
    return text_take(&t);
}

static void reads_as(const char *words, const char *said)
{
    auto_free char *found = words_of(words);
    if (!strstr(found, said))
        fail_msg("'%s' is '%s' and not '%s'", words, found, said);
}

static void lists_come_back(void **state)
{
    (void)state;
    reads_as("afterok:41", "afterok:41");
    reads_as("afterok:41:42_7,afterany:43", "afterok:41,afterok:42_7,afterany:43");
    reads_as("after:1?afternotok:2", "after:1?afternotok:2");
    reads_as("singleton", "singleton");
    reads_as("after:1+10:2,after:3_4+1", "after:1+10,after:2,after:3_4+1");
}

static void what_is_no_dependency_is_told(void **state)
{
    (void)state;
    reads_as("", "nothing to wait for");
    reads_as("before:1", "nothing to wait for");
    reads_as("afterok", "of which job");
    reads_as("afterok:", "the job");
    reads_as("afterok:0", "the job");
    reads_as("singleton:1", "stands alone");
    reads_as("afterok:1+5", "as in after:41+5; afterok has none");
    reads_as("after:1+x", "the minutes behind +");
    reads_as("after:1+525601", "the minutes behind +");
    reads_as("after:1+5_2", "the minutes behind +");
    reads_as("after:1,after:2?after:3", "one or the other");
    reads_as("after:1_x", "the index");
}

static void a_list_is_bounded(void **state)
{
    (void)state;
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, "after");
    for (int i = 1; i <= DEPEND_MAX; i++)
        text_addf(&t, ":%d", i);
    reads_as(t.buf, "after:64");
    text_add(&t, ":65");
    reads_as(t.buf, "at most 64");
}

static void judged(enum depend_kind kind, struct depend_facts f, enum depend_answer answer)
{
    assert_int_equal(depend_judge(kind, &f), answer);
}

static void each_kind_judges_in_its_own_way(void **state)
{
    (void)state;
    struct depend_facts waits = { .count = 2, .unstarted = 1, .live = 2 };
    struct depend_facts runs = { .count = 2, .live = 1 };
    struct depend_facts fails = { .count = 2, .live = 1, .not_ok = 1 };
    struct depend_facts failed = { .count = 2, .not_ok = 1 };
    struct depend_facts done = { .count = 2 };
    judged(DEPEND_AFTER, waits, DEPEND_WAITS);
    judged(DEPEND_AFTER, runs, DEPEND_MET);
    judged(DEPEND_AFTEROK, runs, DEPEND_WAITS);
    judged(DEPEND_AFTEROK, fails, DEPEND_NEVER);
    judged(DEPEND_AFTEROK, done, DEPEND_MET);
    judged(DEPEND_AFTERNOTOK, fails, DEPEND_WAITS);
    judged(DEPEND_AFTERNOTOK, failed, DEPEND_MET);
    judged(DEPEND_AFTERNOTOK, done, DEPEND_NEVER);
    judged(DEPEND_AFTERANY, fails, DEPEND_WAITS);
    judged(DEPEND_AFTERANY, failed, DEPEND_MET);
}

static void a_delay_counts_from_the_start(void **state)
{
    (void)state;
    struct depend d = { .kind = DEPEND_AFTER, .id = 1, .index = -1, .delay_minutes = 10 };
    struct depend_facts waits = { .count = 1, .unstarted = 1, .live = 1 };
    struct depend_facts runs = { .count = 1, .live = 1, .begun_wall_us = CLOCK_HOUR };
    struct depend_facts cancelled = { .count = 1, .not_ok = 1, .dropped = 1 };
    cancelled.begun_wall_us = CLOCK_HOUR;
    assert_int_equal(depend_look(&d, &waits, CLOCK_HOUR), DEPEND_WAITS);
    assert_int_equal(d.due_wall_us, 0);
    assert_int_equal(depend_look(&d, &runs, CLOCK_HOUR), DEPEND_WAITS);
    assert_int_equal(d.due_wall_us, CLOCK_HOUR + 10 * CLOCK_MINUTE);
    assert_false(d.dropped);
    assert_int_equal(depend_look(&d, &runs, d.due_wall_us), DEPEND_MET);
    assert_int_equal(depend_look(&d, &cancelled, CLOCK_HOUR), DEPEND_WAITS);
    assert_true(d.dropped);
    d.delay_minutes = 0;
    assert_int_equal(depend_look(&d, &runs, CLOCK_HOUR), DEPEND_MET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_come_back),
        cmocka_unit_test(what_is_no_dependency_is_told),
        cmocka_unit_test(a_list_is_bounded),
        cmocka_unit_test(each_kind_judges_in_its_own_way),
        cmocka_unit_test(a_delay_counts_from_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
