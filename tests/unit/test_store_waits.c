#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/waits.h"
#include "store_folder.h"

static uint64_t add(struct store *s, const char *array, const char *dependency)
{
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    struct job_submit who = { .uid = 1001, .gid = 1001, .user = "alice" };
    uint64_t id = 0;
    fill_spec(&spec, "train");
    spec.array = text_dup(array);
    spec.dependency = text_dup(dependency);
    if (store_add_job(s, &who, &spec, noon, &id, &err) < 0)
        fail_msg("%s", err.text);
    return id;
}

static int count_tasks(const struct job_row *row, void *arg)
{
    uint32_t *next = arg;
    assert_int_equal(row->array_id, 2);
    assert_int_equal(row->id, 2 + *next);
    assert_int_equal(row->array_index, 1 + 2 * *next);
    (*next)++;
    return 0;
}

static void an_array_is_consecutive_jobs_with_one_spec(void **state)
{
    (void)state;
    struct store *s = open_store();
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    auto_free char *words = NULL;
    uint32_t next = 0;
    uint64_t last = 0;
    assert_int_equal(store_begin(s, &err), 0);
    assert_int_equal(add(s, NULL, NULL), 1);
    assert_int_equal(store_set_state(s, 1, JOB_COMPLETED, JOB_PENDING, "", noon, &err), 0);
    assert_int_equal(add(s, "1,3,5", NULL), 2);
    assert_int_equal(store_commit(s, &err), 0);
    assert_int_equal(store_each_live_job(s, count_tasks, &next, &err), 0);
    assert_int_equal(next, 3);
    assert_int_equal(store_job_spec(s, 4, &spec, &err), 0);
    assert_string_equal(spec.array, "1,3,5");
    assert_string_equal(spec.env[0], "HOME=/home/alice");
    assert_int_equal(store_array_words(s, 3, &words, &err), 0);
    assert_string_equal(words, "1,3,5");
    assert_int_equal(store_array_words(s, 1, &words, &err), -ENOENT);
    assert_int_equal(store_last_job(s, &last, &err), 0);
    assert_int_equal(last, 4);
    store_close(s);
}

static struct depend_facts facts(struct store *s, uint64_t id, int64_t index)
{
    struct depend d = { .id = id, .index = index };
    struct depend_facts f = { .count = 77 };
    assert_int_equal(store_depend_facts(s, &d, &f, &err), 0);
    return f;
}

static void facts_are_of_a_job_a_task_or_an_array(void **state)
{
    (void)state;
    struct store *s = open_store();
    assert_int_equal(store_begin(s, &err), 0);
    (void)add(s, "0-2", NULL);
    assert_int_equal(store_set_state(s, 1, JOB_COMPLETED, JOB_PENDING, "", noon, &err), 0);
    assert_int_equal(store_set_state(s, 2, JOB_FAILED, JOB_PENDING, "", noon, &err), 0);
    struct depend_facts f = facts(s, 1, -1);
    assert_int_equal(f.count, 3);
    assert_int_equal(f.unstarted, 1);
    assert_int_equal(f.dropped, 2);
    assert_int_equal(f.begun_wall_us, noon.wall_us); /* when those two ended */
    assert_int_equal(f.live, 1);
    assert_int_equal(f.not_ok, 1);
    f = facts(s, 1, 0);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.live + f.not_ok, 0);
    f = facts(s, 2, -1);
    assert_int_equal(f.count, 1);
    assert_int_equal(f.not_ok, 1);
    assert_int_equal(facts(s, 1, 9).count, 0);
    assert_int_equal(facts(s, 9, -1).count, 0);
    assert_int_equal(store_commit(s, &err), 0);
    store_close(s);
}

static int see_waits(const struct waits_row *row, void *arg)
{
    struct text *t = arg;
    text_addf(t, "%d:%s:%s;", (int)row->id, row->array, row->depend);
    return 0;
}

static void what_is_waited_for_comes_back_while_somebody_waits(void **state)
{
    (void)state;
    struct store *s = open_store();
    AUTO(text) struct text t = TEXT_INIT;
    assert_int_equal(store_begin(s, &err), 0);
    (void)add(s, NULL, "afterok:9,afterany:8");
    (void)add(s, "0-1", NULL);
    (void)add(s, NULL, NULL);
    assert_int_equal(store_set_depend(s, 1, "afterany:8", &err), 0);
    assert_int_equal(store_set_state(s, 2, JOB_COMPLETED, JOB_PENDING, "", noon, &err), 0);
    assert_int_equal(store_each_waits(s, see_waits, &t, &err), 0);
    assert_string_equal(t.buf, "1::afterany:8;2:0-1:;");
    assert_int_equal(store_set_state(s, 3, JOB_COMPLETED, JOB_PENDING, "", noon, &err), 0);
    text_clear(&t);
    assert_int_equal(store_each_waits(s, see_waits, &t, &err), 0);
    assert_string_equal(t.buf, "1::afterany:8;");
    assert_int_equal(store_set_depend(s, 4, "", &err), -ENOENT);
    assert_int_equal(store_commit(s, &err), 0);
    store_close(s);
}

static void an_array_is_forgotten_as_a_whole(void **state)
{
    (void)state;
    struct store *s = open_store();
    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    struct now now = later(CLOCK_DAY);
    assert_int_equal(store_begin(s, &err), 0);
    (void)add(s, "0-1", NULL);
    assert_int_equal(store_set_state(s, 1, JOB_COMPLETED, JOB_PENDING, "", noon, &err), 0);
    assert_int_equal(store_prune(s, now, 100, &err), 0);
    assert_int_equal(store_job_spec(s, 2, &spec, &err), 0);
    assert_int_equal(store_set_state(s, 2, JOB_COMPLETED, JOB_PENDING, "", now, &err), 0);
    assert_int_equal(store_prune(s, now, 100, &err), 0);
    assert_int_equal(store_prune(s, later(CLOCK_DAY + 1), 100, &err), 2);
    assert_int_equal(facts(s, 1, -1).count, 0);
    assert_int_equal(store_commit(s, &err), 0);
    store_close(s);
}

static int see_hold(const struct job_row *row, void *arg)
{
    *(struct job_row *)arg = *row;
    return 0;
}

static void holds_and_requeues_are_kept(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct job_row row = { .id = 0 };
    assert_int_equal(store_begin(s, &err), 0);
    (void)add(s, NULL, NULL);
    assert_int_equal(store_set_hold(s, 1, JOB_HOLD_OPERATOR, &err), 0);
    assert_int_equal(store_set_requeue(s, 1, true, &err), 0);
    assert_int_equal(store_each_live_job(s, see_hold, &row, &err), 0);
    assert_int_equal(row.hold, JOB_HOLD_OPERATOR);
    assert_true(row.requeue);
    assert_int_equal(store_set_hold(s, 2, JOB_HOLD_NONE, &err), -ENOENT);
    assert_int_equal(store_commit(s, &err), 0);
    store_close(s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_array_is_consecutive_jobs_with_one_spec),
        TEST(facts_are_of_a_job_a_task_or_an_array),
        TEST(what_is_waited_for_comes_back_while_somebody_waits),
        TEST(an_array_is_forgotten_as_a_whole),
        TEST(holds_and_requeues_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
