#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "store/cards.h"
#include "store/journal.h"
#include "store/usage.h"
#include "store_folder.h"

#define ROWS_MAX 8

struct cards {
    struct card_row rows[ROWS_MAX];
    char layouts[ROWS_MAX][64];
    size_t count;
};

static int take_card(const struct card_row *row, void *arg)
{
    struct cards *c = arg;
    assert_true(c->count < ROWS_MAX);
    snprintf(c->layouts[c->count], sizeof *c->layouts, "%s", row->layout);
    c->rows[c->count++] = *row;
    return 0;
}

static struct cards all_cards(struct store *s)
{
    struct cards c = { .count = 0 };
    ok(store_each_card(s, take_card, &c, &err));
    return c;
}

static uint32_t see(struct store *s, const char *uuid, const char *bus_id, struct now at)
{
    struct card card = { .index = 0 };
    struct card_row row;
    strcpy(card.uuid, uuid);
    strcpy(card.bus_id, bus_id);
    strcpy(card.board.name, "NVIDIA A100-SXM4-80GB");
    ok(store_see_card(s, &card, POOL_OFF, MODE_AUTO, at, &row, &err));
    assert_string_equal(row.uuid, uuid);
    assert_string_equal(row.bus_id, bus_id);
    return row.ordinal;
}

static void a_card_keeps_its_ordinal_wherever_it_is_put(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    assert_int_equal(see(s, "GPU-a", "0000:07:00.0", noon), 0);
    assert_int_equal(see(s, "GPU-b", "0000:0b:00.0", noon), 1);
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    ok(store_begin(s, &err));
    assert_int_equal(see(s, "GPU-c", "0000:07:00.0", later(1)), 2);
    assert_int_equal(see(s, "GPU-b", "0000:81:00.0", later(1)), 1);
    struct cards c = all_cards(s);
    assert_int_equal(c.count, 3);
    assert_string_equal(c.rows[0].uuid, "GPU-a");
    assert_int_equal(c.rows[0].last_seen_wall_us, noon.wall_us);
    assert_string_equal(c.rows[1].bus_id, "0000:81:00.0");
    assert_int_equal(c.rows[1].first_seen_wall_us, noon.wall_us);
    assert_int_equal(c.rows[1].last_seen_wall_us, later(1).wall_us);
    store_close(s);
}

static void a_card_without_a_reset_is_remembered_until_the_next_boot(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    (void)see(s, "GPU-a", "0000:07:00.0", noon);
    (void)see(s, "GPU-b", "0000:81:00.0", noon);
    assert_false(all_cards(s).rows[0].no_turn);
    ok(store_set_card_no_turn(s, "GPU-a", &err));
    assert_int_equal(store_set_card_no_turn(s, "GPU-x", &err), -ENOENT);
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    assert_true(all_cards(s).rows[0].no_turn);
    assert_false(all_cards(s).rows[1].no_turn);
    store_close(s);
    ok(store_open(folder, BOOT_B, &s, &err));
    assert_false(all_cards(s).rows[0].no_turn);
    store_close(s);
}

static void pool_mode_and_quarantine_are_kept_when_the_card_is_seen_again(void **state)
{
    (void)state;
    struct store *s = open_store();
    ok(store_begin(s, &err));
    (void)see(s, "GPU-a", "0000:07:00.0", noon);
    ok(store_set_card_pool(s, "GPU-a", POOL_QUEUE, &err));
    ok(store_set_card_mode(s, "GPU-a", MODE_SLICES, &err));
    ok(store_set_card_layout(s, "GPU-a", "{\"slices\":[]}", &err));
    ok(store_set_card_quarantine(s, "GPU-a", "a process of #5 cannot be killed", &err));
    (void)see(s, "GPU-a", "0000:07:00.0", later(1));
    struct cards c = all_cards(s);
    assert_int_equal(c.rows[0].pool, POOL_QUEUE);
    assert_int_equal(c.rows[0].mode, MODE_SLICES);
    assert_string_equal(c.rows[0].quarantine, "a process of #5 cannot be killed");
    assert_string_equal(c.layouts[0], "{\"slices\":[]}");
    ok(store_set_card_quarantine(s, "GPU-a", "", &err));
    assert_string_equal(all_cards(s).rows[0].quarantine, "");
    struct card_settings settings = { .compute_mode = 3, .app_sm_mhz = 1410, .app_mem_mhz = 1593 };
    assert_int_equal(all_cards(s).rows[0].settings_known, 0);
    ok(store_set_card_settings(s, "GPU-a", &settings, KNOW_COMPUTE_MODE | KNOW_APP_CLOCKS, &err));
    c = all_cards(s);
    assert_int_equal(c.rows[0].settings_known, KNOW_COMPUTE_MODE | KNOW_APP_CLOCKS);
    assert_int_equal(c.rows[0].settings.compute_mode, 3);
    assert_int_equal(c.rows[0].settings.app_sm_mhz, 1410);
    assert_int_equal(c.rows[0].settings.app_mem_mhz, 1593);
    assert_int_equal(store_set_card_pool(s, "GPU-x", POOL_QUEUE, &err), -ENOENT);
    store_close(s);
}

static void a_card_without_a_uuid_is_refused(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct card card = { .bus_id = "0000:07:00.0" };
    ok(store_begin(s, &err));
    assert_int_equal(store_see_card(s, &card, POOL_OFF, MODE_AUTO, noon, NULL, &err), -EINVAL);
    assert_non_null(strstr(err.text, "0000:07:00.0"));
    assert_int_equal(all_cards(s).count, 0);
    store_close(s);
}

struct slices {
    struct slice_row rows[ROWS_MAX];
    size_t count;
};

static int take_slice(const struct slice_row *row, void *arg)
{
    struct slices *list = arg;
    assert_true(list->count < ROWS_MAX);
    list->rows[list->count++] = *row;
    return 0;
}

static struct slices all_slices(struct store *s)
{
    struct slices list = { .count = 0 };
    ok(store_each_slice(s, take_slice, &list, &err));
    return list;
}

static struct slice_row slice_of(uint32_t gi, uint32_t ci, uint32_t start)
{
    struct slice_row row = { .card_uuid = "GPU-a",
                             .gi = gi,
                             .ci = ci,
                             .profile_id = 14,
                             .profile = "2g.20gb",
                             .start = start,
                             .units = 2,
                             .uuid = "MIG-1",
                             .job_id = 41 };
    return row;
}

static void the_same_instance_cut_again_is_another_generation(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct slice_row row = slice_of(3, 0, 4);
    uint64_t first = 0, second = 0;
    ok(store_begin(s, &err));
    (void)see(s, "GPU-a", "0000:07:00.0", noon);
    ok(store_add_slice(s, &row, noon, &first, &err));
    assert_true(first > 0);
    assert_int_equal(store_add_slice(s, &row, noon, &second, &err), -EEXIST);
    ok(store_end_slice(s, first, later(1), &err));
    assert_int_equal(store_end_slice(s, first, later(1), &err), -ENOENT);
    assert_int_equal(store_prune(s, later(2), 10, &err), 0);
    ok(store_add_slice(s, &row, later(3), &second, &err));
    ok(store_commit(s, &err));
    assert_true(second > first);
    struct slices list = all_slices(s);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.rows[0].generation, second);
    assert_int_equal(list.rows[0].made_wall_us, later(3).wall_us);
    store_close(s);
}

static void slices_come_back_whole_and_in_order(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct slice_row late = slice_of(3, 0, 4);
    struct slice_row bare = slice_of(5, NOT_AN_INSTANCE, 0);
    uint64_t generation;
    bare.adopted = true;
    bare.job_id = 0;
    ok(store_begin(s, &err));
    (void)see(s, "GPU-a", "0000:07:00.0", noon);
    ok(store_add_slice(s, &late, noon, &generation, &err));
    ok(store_add_slice(s, &bare, noon, &generation, &err));
    assert_int_equal(store_add_slice(s, &bare, noon, &generation, &err), -EEXIST);
    struct slices list = all_slices(s);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.rows[0].gi, 5);
    assert_int_equal(list.rows[0].ci, NOT_AN_INSTANCE);
    assert_true(list.rows[0].adopted);
    assert_int_equal(list.rows[1].gi, 3);
    assert_false(list.rows[1].adopted);
    assert_int_equal(list.rows[1].job_id, 41);
    assert_string_equal(list.rows[1].profile, "2g.20gb");
    assert_string_equal(list.rows[1].uuid, "MIG-1");
    store_close(s);
}

static void a_slice_of_a_card_never_seen_is_refused(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct slice_row row = slice_of(3, 0, 4);
    uint64_t generation;
    ok(store_begin(s, &err));
    assert_int_equal(store_add_slice(s, &row, noon, &generation, &err), -ENOENT);
    ok(store_commit(s, &err));
    store_close(s);
}

struct steps {
    struct journal_row rows[ROWS_MAX];
    char step[ROWS_MAX][64], note[ROWS_MAX][64];
    size_t count;
};

static int take_step(const struct journal_row *row, void *arg)
{
    struct steps *list = arg;
    assert_true(list->count < ROWS_MAX);
    strcpy(list->step[list->count], row->step);
    strcpy(list->note[list->count], row->note);
    list->rows[list->count++] = *row;
    return 0;
}

static struct steps open_steps(struct store *s)
{
    struct steps list = { .count = 0 };
    ok(store_each_open_step(s, take_step, &list, &err));
    return list;
}

static void a_journal_tells_what_was_sent_before_the_end(void **state)
{
    (void)state;
    static const char *const steps[] = { "{\"kind\":\"gi_create\"}", "{\"kind\":\"ci_create\"}" };
    struct store *s = open_store();
    uint64_t plan = 0;
    ok(store_begin(s, &err));
    uint64_t id = add_job(s, "train");
    ok(store_add_plan(s, id, 1, "", steps, 2, noon, &plan, &err));
    ok(store_set_step(s, plan, 0, JOURNAL_DONE, "{\"gi\":3}", NULL, &err));
    ok(store_set_step(s, plan, 1, JOURNAL_SENT, NULL, NULL, &err));
    ok(store_commit(s, &err));
    store_close(s);
    s = open_store();
    struct steps list = open_steps(s);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.rows[0].job_id, id);
    assert_int_equal(list.rows[0].attempt, 1);
    assert_int_equal(list.rows[0].state, JOURNAL_DONE);
    assert_string_equal(list.step[0], "{\"gi\":3}");
    assert_int_equal(list.rows[1].seq, 1);
    assert_int_equal(list.rows[1].state, JOURNAL_SENT);
    assert_string_equal(list.step[1], steps[1]);

    ok(store_begin(s, &err));
    ok(store_set_step(s, plan, 1, JOURNAL_FAILED, NULL, "in use", &err));
    ok(store_set_step(s, plan, 0, JOURNAL_UNDONE, NULL, NULL, &err));
    assert_int_equal(store_set_step(s, plan, 2, JOURNAL_DONE, NULL, NULL, &err), -ENOENT);
    ok(store_close_plan(s, plan, later(1), &err));
    assert_int_equal(open_steps(s).count, 0);
    list.count = 0;
    ok(store_each_job_step(s, id, take_step, &list, &err));
    assert_int_equal(list.count, 2);
    assert_string_equal(list.note[1], "in use");
    store_close(s);
}

static void a_layout_has_a_journal_without_a_job(void **state)
{
    (void)state;
    static const char *const steps[] = { "{}" };
    struct store *s = open_store();
    uint64_t plan = 0;
    ok(store_begin(s, &err));
    assert_int_equal(store_add_plan(s, 0, 0, "root", steps, 0, noon, &plan, &err), -EINVAL);
    ok(store_add_plan(s, 0, 0, "root", steps, 1, noon, &plan, &err));
    assert_int_equal(open_steps(s).rows[0].job_id, 0);
    assert_int_equal(store_add_plan(s, 999, 1, "", steps, 1, noon, &plan, &err), -ENOENT);
    ok(store_commit(s, &err));
    store_close(s);
}

static int take_usage(const struct usage_row *row, void *arg)
{
    struct usage_row *rows = arg;
    assert_string_equal(row->account, "nlp");
    rows[row->uid == USAGE_OF_ALL] = *row;
    return 0;
}

static void usage_is_replaced_and_keeps_its_stamp(void **state)
{
    (void)state;
    struct store *s = open_store();
    struct usage_row rows[2];
    ok(store_begin(s, &err));
    ok(store_set_usage(s, "nlp", USAGE_OF_ALL, 1.5, noon, &err));
    ok(store_set_usage(s, "nlp", 1001, 0.25, noon, &err));
    ok(store_set_usage(s, "nlp", USAGE_OF_ALL, 2.5, later(7), &err));
    ok(store_commit(s, &err));
    ok(store_each_usage(s, take_usage, rows, &err));
    assert_true(rows[0].used_card_us == 0.25);
    assert_int_equal(rows[0].uid, 1001);
    assert_true(rows[1].used_card_us == 2.5);
    assert_int_equal(rows[1].stamp.boot_us, later(7).boot_us);
    assert_string_equal(rows[1].boot_id, BOOT_A);
    store_close(s);
}

static void age_is_told_by_the_clock_that_can_and_never_backwards(void **state)
{
    (void)state;
    struct usage_row row = { .stamp = noon, .boot_id = BOOT_A };
    struct now set_back = { .boot_us = noon.boot_us + 5, .wall_us = noon.wall_us - CLOCK_DAY };
    struct now rebooted = { .boot_us = 3, .wall_us = noon.wall_us + CLOCK_HOUR };
    assert_int_equal(usage_age_us(&row, set_back, BOOT_A), 5);
    assert_int_equal(usage_age_us(&row, rebooted, BOOT_B), CLOCK_HOUR);
    assert_int_equal(usage_age_us(&row, set_back, BOOT_B), 0);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_card_keeps_its_ordinal_wherever_it_is_put),
        STORY(a_card_without_a_reset_is_remembered_until_the_next_boot),
        STORY(pool_mode_and_quarantine_are_kept_when_the_card_is_seen_again),
        STORY(a_card_without_a_uuid_is_refused),
        STORY(the_same_instance_cut_again_is_another_generation),
        STORY(slices_come_back_whole_and_in_order),
        STORY(a_slice_of_a_card_never_seen_is_refused),
        STORY(a_journal_tells_what_was_sent_before_the_end),
        STORY(a_layout_has_a_journal_without_a_job),
        STORY(usage_is_replaced_and_keeps_its_stamp),
        cmocka_unit_test(age_is_told_by_the_clock_that_can_and_never_backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
