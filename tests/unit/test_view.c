/* model/view.h: what is written is what is read, and who may see what. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "model/view.h"

static char *words[] = { (char *)"python3", (char *)"train.py", NULL };

static struct job_view running_job(struct placed *placed)
{
    *placed = (struct placed){
        .card_uuid = "GPU-1", .profile = "2g.20gb", .start = 4, .units = 2, .gi = 3, .ci = 0
    };
    return (
        struct job_view){ .id = 41,
                          .uid = 1000,
                          .user = "alice",
                          .account = "nlp",
                          .name = "serve",
                          .state = JOB_RUNNING,
                          .request = { .kind = REQUEST_SLICES, .count = 1, .profile = "2g.20gb" },
                          .place = { .items = placed, .count = 1 },
                          .attempt = 1,
                          .tasks = 1,
                          .submit_wall_us = 5,
                          .start_wall_us = 7,
                          .argv = words,
                          .cwd = "/home/alice",
                          .output = "/home/alice/divvy-41.out" };
}

static void test_a_job_comes_back(void **state)
{
    (void)state;
    struct placed placed;
    struct job_view v = running_job(&placed);
    auto_json json_t *j = job_view_to_json(&v, JOB_VIEW_PRIVATE);
    struct job_view back;
    assert_int_equal(job_view_from_json(j, &back, NULL), 0);
    assert_int_equal(back.id, 41);
    assert_int_equal(back.state, JOB_RUNNING);
    assert_true(request_same(&back.request, &v.request));
    assert_int_equal(back.place.count, 1);
    assert_int_equal(back.place.items[0].gi, 3);
    assert_string_equal(back.argv[1], "train.py");
    assert_null(back.argv[2]);
    assert_string_equal(back.output, "/home/alice/divvy-41.out");
    assert_int_equal(back.start_wall_us, 7);
    assert_int_equal(back.end_wall_us, 0);
    job_view_done(&back);
}

static void test_who_was_pushed_out_says_for_whom(void **state)
{
    (void)state;
    struct placed placed;
    struct job_view v = running_job(&placed), back;
    auto_json json_t *never = job_view_to_json(&v, JOB_VIEW_PUBLIC);
    assert_true(json_is_null(json_object_get(never, "preempted")));
    v.preempted = (struct job_preempted){ .times = 2, .wall_us = 11, .by = 37, .user = "games" };
    auto_json json_t *j = job_view_to_json(&v, JOB_VIEW_PUBLIC);
    assert_int_equal(job_view_from_json(j, &back, NULL), 0);
    assert_int_equal(back.preempted.times, 2);
    assert_int_equal(back.preempted.wall_us, 11);
    AUTO(text) struct text t = TEXT_INIT;
    job_preempted_add_by(&t, &back.preempted);
    assert_string_equal(t.buf, "#37 of games");
    job_view_done(&back);
}

static void test_words_for_people(void **state)
{
    (void)state;
    struct placed placed;
    struct job_view v = running_job(&placed);
    auto_json json_t *j = job_view_to_json(&v, JOB_VIEW_PUBLIC);
    assert_string_equal(json_string_value(json_object_get(j, "asks")), "2g.20gb");
    json_t *address = json_array_get(json_object_get(j, "addresses"), 0);
    assert_string_equal(json_string_value(address), "gpu0/2g.20gb@4");
    assert_true(json_is_null(json_object_get(j, "end_wall_us")));
}

static void test_strangers_see_no_command(void **state)
{
    (void)state;
    struct placed placed;
    struct job_view v = running_job(&placed);
    auto_json json_t *j = job_view_to_json(&v, JOB_VIEW_PUBLIC);
    assert_null(json_object_get(j, "argv"));
    assert_null(json_object_get(j, "cwd"));
    assert_null(json_object_get(j, "output"));
    assert_null(json_object_get(j, "script"));
}

static void test_an_unknown_state_is_an_error(void **state)
{
    (void)state;
    struct placed placed;
    struct err e = ERR_INIT;
    struct job_view v = running_job(&placed);
    auto_json json_t *j = job_view_to_json(&v, JOB_VIEW_PUBLIC);
    struct job_view back;
    json_put_text(j, "state", "dreaming");
    assert_int_equal(job_view_from_json(j, &back, &e), -EINVAL);
    assert_non_null(strstr(e.text, "dreaming"));
}

static void test_filter(void **state)
{
    (void)state;
    struct job_filter f = { .after = 0 };
    assert_true(job_filter_matches(&f, JOB_PENDING, 1, "a", NULL));
    assert_false(job_filter_matches(&f, JOB_FAILED, 1, "a", NULL));
    f = (struct job_filter){ .states = JOB_STATES_ENDED, .account = "nlp" };
    assert_true(job_filter_matches(&f, JOB_FAILED, 1, "a", "nlp"));
    assert_false(job_filter_matches(&f, JOB_FAILED, 1, "a", NULL));
    assert_false(job_filter_matches(&f, JOB_PENDING, 1, "a", "nlp"));
    f = (struct job_filter){ .has_uid = true, .uid = 2 };
    assert_false(job_filter_matches(&f, JOB_PENDING, 1, "a", NULL));
}

static void test_status_comes_back(void **state)
{
    (void)state;
    struct daemon_view v = { .version = "0.1.0",
                             .root = "/",
                             .isolation = "none",
                             .cards = 2,
                             .mem_bytes = 1 << 30,
                             .mem_used_bytes = 1 << 20 };
    struct daemon_view back;
    v.jobs[JOB_RUNNING] = 3;
    promises_add(&v.promises, 30 * CLOCK_SECOND);
    auto_json json_t *j = daemon_view_to_json(&v);
    assert_int_equal(daemon_view_from_json(j, &back, NULL), 0);
    assert_int_equal(back.jobs[JOB_RUNNING], 3);
    assert_int_equal(back.cards, 2);
    assert_int_equal(promises_count(&back.promises), 1);
    assert_int_equal(promises_bound_us(&back.promises, 90), CLOCK_MINUTE);
    assert_true(promises_mean_us(&back.promises) == 30.0 * (double)CLOCK_SECOND);
    assert_null(back.driver_version);
    assert_int_equal(back.mem_bytes, 1 << 30);
    assert_int_equal(back.mem_used_bytes, 1 << 20);
    assert_true(json_is_null(json_object_get(json_object_get(j, "node"), "cpu_used_milli")));
    daemon_view_done(&back);
}

static void test_why_comes_back(void **state)
{
    (void)state;
    struct why_view v = { .id = 62, .summary = "#62 waits for 2 whole cards." };
    struct why_view back;
    why_view_add(&v, "gpu1", "held by #%d", 58);
    strv_add(&v.sooner, "--slice 3g.40gb (now)");
    v.holders = json_pack("[{s:s, s:i}]", "where", "gpu1", "job", 58);
    auto_json json_t *j = why_view_to_json(&v);
    why_view_done(&v);
    assert_int_equal(why_view_from_json(j, &back, NULL), 0);
    assert_int_equal(back.term_count, 1);
    assert_string_equal(back.terms[0].text, "held by #58");
    assert_string_equal(back.sooner[0], "--slice 3g.40gb (now)");
    json_t *held = json_array_get(json_object_get(back.json, "holders"), 0);
    assert_int_equal(json_integer_value(json_object_get(held, "job")), 58);
    why_view_done(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_comes_back),
        cmocka_unit_test(test_who_was_pushed_out_says_for_whom),
        cmocka_unit_test(test_words_for_people),
        cmocka_unit_test(test_strangers_see_no_command),
        cmocka_unit_test(test_an_unknown_state_is_an_error),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_status_comes_back),
        cmocka_unit_test(test_why_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
