#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "cli/queue_sums.h"

static struct placed half = { .compute_ppm = 428571, .mem_ppm = 500000 };

static struct job_view job(const char *user, const char *account, enum job_state state)
{
    struct job_view v = { .user = user, .account = account, .state = state };
    if (state == JOB_RUNNING) {
        v.place.items = &half;
        v.place.count = 1;
    }
    return v;
}

static void jobs_are_added_up_by_what_is_asked(void **state)
{
    (void)state;
    struct job_view jobs[] = { job("bob", "vision", JOB_PENDING), job("alice", "nlp", JOB_RUNNING),
                               job("bob", "nlp", JOB_RUNNING), job("bob", "vision", JOB_PENDING) };
    size_t n = 0;
    jobs[0].array_tasks = 7;
    jobs[0].expected_start_wall_us = 9 * CLOCK_HOUR;
    jobs[3].expected_start_wall_us = 8 * CLOCK_HOUR;
    auto_free struct queue_sum *sums = queue_sums(jobs, 4, false, &n);
    assert_int_equal(n, 2);
    assert_string_equal(sums[0].key, "nlp");
    assert_int_equal(sums[0].running, 2);
    assert_int_equal(sums[0].mem_ppm, 1000000);
    assert_int_equal(sums[1].waiting, 8);
    assert_true(sums[1].next_start_wall_us == 8 * CLOCK_HOUR);
    auto_free struct queue_sum *users = queue_sums(jobs, 4, true, &n);
    assert_string_equal(users[0].key, "alice");
    assert_int_equal(users[1].running, 1);
    assert_int_equal(users[1].waiting, 8);
}

static void what_is_not_known_is_said(void **state)
{
    (void)state;
    struct job_view jobs[] = { job("bob", "vision", JOB_PENDING),
                               job("alice", "nlp", JOB_RUNNING) };
    size_t n = 0;
    struct screen screen = { .width = 80 };
    AUTO(text) struct text t = TEXT_INIT;
    auto_free struct queue_sum *sums = queue_sums(jobs, 2, false, &n);
    queue_sums_draw(sums, n, false, CLOCK_HOUR, &screen, &t);
    assert_non_null(strstr(t.buf, "ACCOUNT"));
    assert_non_null(strstr(t.buf, "0.43"));
    assert_non_null(strstr(t.buf, "n/a"));
    auto_json json_t *j = queue_sums_json(sums, n, false);
    json_t *line = json_array_get(json_object_get(j, "lines"), 1);
    assert_true(json_is_null(json_object_get(line, "next_start_wall_us")));
    assert_int_equal(json_integer_value(json_object_get(line, "waiting")), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_added_up_by_what_is_asked),
        cmocka_unit_test(what_is_not_known_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
