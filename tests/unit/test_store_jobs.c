#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "store/db.h"
#include "store_folder.h"

struct seen {
    size_t count;
    uint64_t ids[16];
    struct job_row row; /* the last one; its strings are gone */
    char user[64], account[64], name[64], reason[128];
    char place[128];
};

static int see(const struct job_row *row, void *arg)
{
    struct seen *seen = arg;
    assert_true(seen->count < 16);
    seen->ids[seen->count++] = row->id;
    seen->row = *row;
    (void)snprintf(seen->user, sizeof seen->user, "%s", row->user);
    (void)snprintf(seen->account, sizeof seen->account, "%s", row->account);
    (void)snprintf(seen->name, sizeof seen->name, "%s", row->name);
    (void)snprintf(seen->reason, sizeof seen->reason, "%s", row->reason);
    AUTO(text) struct text t = TEXT_INIT;
    place_add_text(&t, &row->last.place);
    (void)snprintf(seen->place, sizeof seen->place, "%s", t.buf);
    return 0;
}

static struct seen look(struct store *s, struct job_query q)
{
    struct seen seen = { .count = 0 };
    ok(store_each_job(s, &q, see, &seen, &err));
    return seen;
}

static void make_place(struct place *p)
{
    *p = (struct place){ .items = NULL };
    struct placed *item = place_add(p);
    strcpy(item->card_uuid, "GPU-1");
    strcpy(item->profile, "2g.20gb");
    item->profile_id = 14;
    item->start = 4;
    item->units = 2;
    item->compute_ppm = 285714;
    item->mem_ppm = 250000;
}

static void a_job_comes_back_as_it_was_submitted(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    struct seen seen = { .count = 0 };
    ok(store_each_live_job(s, see, &seen, &err));
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.row.id, id);
    assert_int_equal(seen.row.uid, 1001);
    assert_string_equal(seen.user, "alice");
    assert_string_equal(seen.account, "nlp");
    assert_string_equal(seen.name, "train");
    assert_int_equal(seen.row.state, JOB_PENDING);
    assert_int_equal(seen.row.limit_us, CLOCK_HOUR);
    assert_int_equal(seen.row.mem_bytes, UINT64_C(3) << 30);
    assert_int_equal(seen.row.cpu_milli, 1500);
    assert_int_equal(seen.row.submit_wall_us, noon.wall_us);
    assert_string_equal(seen.row.request.profile, "2g.20gb");
    assert_int_equal(seen.row.request.count, 2);
    assert_int_equal(seen.row.last.attempt, 0);

    AUTO(job_spec) struct job_spec spec = { .name = NULL };
    ok(store_job_spec(s, id, &spec, &err));
    assert_string_equal(spec.argv[1], "train.py");
    assert_null(spec.argv[2]);
    assert_string_equal(spec.env[0], "HOME=/home/alice");
    assert_string_equal(spec.env[1], "STRANGE=\xff\xfe");
    assert_null(spec.env[2]);
    assert_string_equal(spec.cwd, "/home/alice");

    auto_free gid_t *groups = NULL;
    size_t count = 0;
    ok(store_job_groups(s, id, &groups, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(groups[1], 4000000000u);
    store_close(s);
}

static void ids_rise_and_are_never_used_again(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    uint64_t first = add_job(s, "a");
    uint64_t second = add_job(s, "b");
    assert_true(first > 0 && second > first);
    ok(store_set_state(s, second, JOB_CANCELLED, JOB_PENDING, "", noon, &err));
    assert_int_equal(store_prune(s, later(1), 10, &err), 1);
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    ok(store_begin(s, &err));
    assert_true(add_job(s, "c") > second);
    store_close(s);
}

static void a_number_that_is_in_use_elsewhere_is_left_out(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    ok(store_reserve_job(s, 41, &err));
    assert_int_equal(add_job(s, "a"), 42);
    ok(store_reserve_job(s, 7, &err));
    assert_int_equal(add_job(s, "b"), 43);
    ok(store_commit(s, &err));
    store_close(s);
}

static void a_clock_that_was_set_forward_forgets_nothing_of_this_boot(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct now forward = { .boot_us = noon.boot_us - CLOCK_HOUR,
                           .wall_us = noon.wall_us + 100 * CLOCK_DAY };
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    ok(store_set_state(s, id, JOB_COMPLETED, JOB_PENDING, "", noon, &err));
    assert_int_equal(store_prune(s, forward, 10, &err), 0);
    forward.boot_us = noon.boot_us + 1;
    assert_int_equal(store_prune(s, forward, 10, &err), 1);
    ok(store_commit(s, &err));
    store_close(s);
}

static void an_attempt_is_kept_from_place_to_exit(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct place place;
    struct job_exit exit = { .kind = EXIT_CODE, .value = 3, .text = "said no" };
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    make_place(&place);
    ok(store_add_attempt(s, id, 1, &place, later(CLOCK_SECOND), &err));
    ok(store_set_state(s, id, JOB_PREPARING, JOB_PENDING, NULL, later(CLOCK_SECOND), &err));
    place.items[0].gi = 3;
    place.items[0].ci = 0;
    place.items[0].generation = 7;
    ok(store_set_place(s, id, 1, &place, &err));
    ok(store_attempt_started(s, id, 1, later(2 * CLOCK_SECOND), &err));
    struct attempt_samples samples = { .mem_peak_bytes = 5, .load_sum = 70, .load_count = 2 };
    ok(store_set_samples(s, id, 1, &samples, &err));
    ok(store_set_state(s, id, JOB_ENDING, JOB_FAILED, NULL, later(9 * CLOCK_SECOND), &err));
    struct seen seen = look(s, (struct job_query){ .id = id });
    assert_int_equal(seen.row.last.samples.mem_peak_bytes, 5);
    assert_int_equal(seen.row.last.samples.load_sum, 70);
    assert_int_equal(seen.row.last.samples.load_count, 2);
    assert_int_equal(seen.row.verdict, JOB_FAILED);
    assert_int_equal(seen.row.last.exit.kind, EXIT_NONE);
    assert_int_equal(seen.row.ended_wall_us, 0);

    ok(store_end_attempt(s, id, 1, JOB_FAILED, &exit, 12345, later(9 * CLOCK_SECOND), &err));
    ok(store_set_state(s, id, JOB_FAILED, JOB_PENDING, "exit 3", later(9 * CLOCK_SECOND), &err));
    ok(store_commit(s, &err));
    seen = look(s, (struct job_query){ .id = id });
    assert_int_equal(seen.row.state, JOB_FAILED);
    assert_int_equal(seen.row.verdict, JOB_PENDING);
    assert_int_equal(seen.row.ended_wall_us, later(9 * CLOCK_SECOND).wall_us);
    assert_string_equal(seen.reason, "exit 3");
    assert_string_equal(seen.place, "gpu0/2g.20gb@4");
    const struct attempt_row *a = &seen.row.last;
    assert_int_equal(a->attempt, 1);
    assert_string_equal(a->boot_id, BOOT_A);
    assert_int_equal(a->started_boot_us, later(2 * CLOCK_SECOND).boot_us);
    assert_int_equal(a->ended_boot_us, later(9 * CLOCK_SECOND).boot_us);
    assert_int_equal(a->outcome, JOB_FAILED);
    assert_int_equal(a->exit.value, 3);
    assert_string_equal(a->exit.text, "said no");
    assert_int_equal(a->charge_ppm_us, 12345);
    place_done(&place);
    store_close(s);
}

static void an_attempt_that_a_reboot_ended_has_no_boot_time_of_its_end(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct place place;
    struct job_exit exit = { .kind = EXIT_LOST };
    make_place(&place);
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    ok(store_add_attempt(s, id, 1, &place, noon, &err));
    ok(store_commit(s, &err));
    place_done(&place);
    store_close(s);
    ok(store_open(folder, BOOT_B, &s, &err));
    ok(store_begin(s, &err));
    ok(store_end_attempt(s, id, 1, JOB_LOST, &exit, 5, later(CLOCK_HOUR), &err));
    ok(store_commit(s, &err));
    struct seen seen = look(s, (struct job_query){ .id = id });
    assert_string_equal(seen.row.last.boot_id, BOOT_A);
    assert_int_equal(seen.row.last.ended_boot_us, 0);
    assert_int_equal(seen.row.last.ended_wall_us, later(CLOCK_HOUR).wall_us);
    store_close(s);
}

static int count_attempts(const struct attempt_row *row, void *arg)
{
    uint32_t *count = arg;
    assert_int_equal(row->attempt, ++*count);
    return 0;
}

static void attempts_are_numbered_without_a_gap(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct place none = { .items = NULL };
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    assert_int_equal(store_add_attempt(s, id, 2, &none, noon, &err), -EINVAL);
    ok(store_add_attempt(s, id, 1, &none, noon, &err));
    assert_int_equal(store_add_attempt(s, id, 1, &none, noon, &err), -EINVAL);
    ok(store_add_attempt(s, id, 2, &none, noon, &err));
    assert_int_equal(store_add_attempt(s, id + 1, 1, &none, noon, &err), -ENOENT);
    uint32_t count = 0;
    ok(store_each_attempt(s, id, count_attempts, &count, &err));
    assert_int_equal(count, 2);
    struct seen seen = look(s, (struct job_query){ .id = id });
    assert_int_equal(seen.row.last.attempt, 2);
    store_close(s);
}

static void what_is_not_there_is_said_and_breaks_nothing(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct job_spec spec;
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    assert_int_equal(store_set_state(s, 999, JOB_FAILED, JOB_PENDING, "", noon, &err), -ENOENT);
    assert_int_equal(store_attempt_started(s, id, 1, noon, &err), -ENOENT);
    assert_int_equal(store_job_spec(s, 999, &spec, &err), -ENOENT);
    assert_string_equal(err.text, "there is no job 999");
    ok(store_commit(s, &err));
    assert_int_equal(look(s, (struct job_query){ .id = id }).count, 1);
    store_close(s);
}

static void history_is_found_by_who_state_and_page(void **state)
{
    (void)state;
    struct store *s = open_store();
    uint64_t id[6];
    ok(store_begin(s, &err));
    for (int i = 0; i < 6; i++)
        id[i] = add_job(s, "train");
    ok(store_set_state(s, id[0], JOB_COMPLETED, JOB_PENDING, "", later(CLOCK_HOUR), &err));
    ok(store_set_state(s, id[1], JOB_FAILED, JOB_PENDING, "", later(2 * CLOCK_HOUR), &err));
    ok(store_commit(s, &err));

    struct seen seen = look(s, (struct job_query){ .limit = 2 });
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.ids[0], id[5]);
    assert_int_equal(seen.ids[1], id[4]);
    seen = look(s, (struct job_query){ .limit = 2, .before_id = id[4] });
    assert_int_equal(seen.ids[0], id[3]);
    seen = look(s, (struct job_query){ .states = 1u << JOB_FAILED | 1u << JOB_COMPLETED });
    assert_int_equal(seen.count, 2);
    seen = look(s, (struct job_query){ .ended_since_wall_us = later(CLOCK_HOUR).wall_us + 1 });
    assert_int_equal(seen.count, 5);
    assert_int_equal(look(s, (struct job_query){ .by_uid = true, .uid = 1001 }).count, 6);
    assert_int_equal(look(s, (struct job_query){ .by_uid = true, .uid = 0 }).count, 0);
    assert_int_equal(look(s, (struct job_query){ .account = "nlp" }).count, 6);
    assert_int_equal(look(s, (struct job_query){ .account = "x' OR 'a'='a" }).count, 0);
    struct seen live = { .count = 0 };
    ok(store_each_live_job(s, see, &live, &err));
    assert_int_equal(live.count, 4);
    assert_int_equal(live.ids[0], id[2]);
    store_close(s);
}

static int64_t environments(struct store *s)
{
    int64_t n = -1;
    ok(db_number(s->db, s->path, "SELECT count(*) FROM environments", &n, &err));
    return n;
}

static void an_environment_is_kept_once_and_goes_with_its_last_job(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct job_spec spec;
    ok(store_begin(s, &err));
    uint64_t first = add_job(s, "a");
    uint64_t second = add_job(s, "b");
    ok(store_commit(s, &err));
    assert_int_equal(environments(s), 1);

    ok(store_begin(s, &err));
    ok(store_set_state(s, first, JOB_COMPLETED, JOB_PENDING, "", noon, &err));
    assert_int_equal(store_prune(s, later(1), 100, &err), 1);
    assert_int_equal(environments(s), 1);
    ok(store_job_spec(s, second, &spec, &err));
    assert_string_equal(spec.env[0], "HOME=/home/alice");
    job_spec_done(&spec);
    ok(store_set_state(s, second, JOB_COMPLETED, JOB_PENDING, "", noon, &err));
    assert_int_equal(store_prune(s, later(1), 100, &err), 1);
    assert_int_equal(environments(s), 0);
    ok(store_commit(s, &err));
    store_close(s);
}

static void pruning_takes_the_oldest_ended_ones_first_and_never_a_live_one(void **state)
{
    (void)state;
    struct store *s = open_store();
    uint64_t id[4];
    ok(store_begin(s, &err));
    for (int i = 0; i < 4; i++)
        id[i] = add_job(s, "train");
    ok(store_set_state(s, id[2], JOB_COMPLETED, JOB_PENDING, "", later(1), &err));
    ok(store_set_state(s, id[0], JOB_COMPLETED, JOB_PENDING, "", later(2), &err));
    ok(store_set_state(s, id[1], JOB_COMPLETED, JOB_PENDING, "", later(CLOCK_DAY), &err));
    assert_int_equal(store_prune(s, later(CLOCK_HOUR), 1, &err), 1);
    assert_int_equal(look(s, (struct job_query){ .id = id[2] }).count, 0);
    assert_int_equal(look(s, (struct job_query){ .id = id[0] }).count, 1);
    assert_int_equal(store_prune(s, later(CLOCK_HOUR), 10, &err), 1);
    assert_int_equal(store_prune(s, later(CLOCK_HOUR), 10, &err), 0);
    struct seen rest = look(s, (struct job_query){ .id = 0 });
    assert_int_equal(rest.count, 2);
    assert_int_equal(rest.ids[0], id[3]);
    assert_int_equal(rest.ids[1], id[1]);
    store_close(s);
}

static int stop_at_second(const struct job_row *row, void *arg)
{
    (void)row;
    return ++*(int *)arg == 2 ? 42 : 0;
}

static void a_walk_stops_where_its_callback_says(void **state)
{
    (void)state;
    struct store *s = open_store();
    int calls = 0;
    ok(store_begin(s, &err));
    for (int i = 0; i < 3; i++)
        add_job(s, "train");
    assert_int_equal(store_each_live_job(s, stop_at_second, &calls, &err), 42);
    assert_int_equal(calls, 2);
    ok(store_commit(s, &err));
    store_close(s);
}

static int walk_again(const struct job_row *row, void *arg)
{
    (void)row;
    struct seen seen = { .count = 0 };
    ok(store_each_live_job(arg, see, &seen, &err));
    assert_int_equal(seen.count, 2);
    return 0;
}

static void a_callback_may_walk_the_same_rows(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    add_job(s, "a");
    add_job(s, "b");
    ok(store_each_live_job(s, walk_again, s, &err));
    store_close(s);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_job_comes_back_as_it_was_submitted),
        STORY(ids_rise_and_are_never_used_again),
        STORY(a_number_that_is_in_use_elsewhere_is_left_out),
        STORY(a_clock_that_was_set_forward_forgets_nothing_of_this_boot),
        STORY(an_attempt_is_kept_from_place_to_exit),
        STORY(an_attempt_that_a_reboot_ended_has_no_boot_time_of_its_end),
        STORY(attempts_are_numbered_without_a_gap),
        STORY(what_is_not_there_is_said_and_breaks_nothing),
        STORY(history_is_found_by_who_state_and_page),
        STORY(an_environment_is_kept_once_and_goes_with_its_last_job),
        STORY(pruning_takes_the_oldest_ended_ones_first_and_never_a_live_one),
        STORY(a_walk_stops_where_its_callback_says),
        STORY(a_callback_may_walk_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
