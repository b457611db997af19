#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "model/ledger.h"
#include "store/ledger.h"
#include "store_folder.h"

#define HOUR 3.6e9

static void set_zone(const char *zone)
{
    assert_int_equal(setenv("TZ", zone, 1), 0);
    tzset();
}

/* ---- days ---- */

static void a_day_begins_at_local_midnight(void **state)
{
    (void)state; /* unused */
    set_zone("Europe/Berlin");
    assert_int_equal(day_begin(20261130), INT64_C(1795993200000000)); /* 29th, 23:00 UTC */
    assert_int_equal(day_of(INT64_C(1795993200000000)), 20261130);
    assert_int_equal(day_of(INT64_C(1795993199999999)), 20261129);
}

static void days_follow_each_other(void **state)
{
    (void)state; /* unused */
    set_zone("Europe/Berlin");
    assert_int_equal(day_next(20261231), 20270101);
    assert_int_equal(day_next(20280228), 20280229);
    assert_int_equal(day_next(20270228), 20270301);
    /* Summer time ends: a day of 25 hours. */
    assert_int_equal(day_begin(20261026) - day_begin(20261025), INT64_C(90000000000));
}

static void days_and_months_are_read_exactly(void **state)
{
    (void)state; /* unused */
    static const char *const wrong[] = { "2026-11-31", "2026-1-01", "26-11-30",  "2026-11-30 ",
                                         "20261130",   "",          "2026-00-10" };
    int32_t day = 0, from = 0, to = 0;
    struct err e = ERR_INIT;
    assert_int_equal(day_parse("2028-02-29", "--from", &day, &e), 0);
    assert_int_equal(day, 20280229);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(day_parse(wrong[i], "--from", &day, NULL), -EINVAL);
    assert_int_equal(month_parse("2026-12", &from, &to, &e), 0);
    assert_int_equal(from, 20261201);
    assert_int_equal(to, 20270101);
    assert_int_equal(month_parse("2026-02", &from, &to, &e), 0);
    assert_int_equal(to, 20260301);
    assert_int_equal(month_parse("2026-13", &from, &to, &e), -EINVAL);
    assert_string_equal(e.text, "'2026-13' is no month; write it as 2026-11");
}

/* ---- lines ---- */

static void lines_add_up_and_most_held_goes_first(void **state)
{
    (void)state; /* unused */
    AUTO(ledger) struct ledger l = LEDGER_INIT;
    ledger_book(&l, "alice", &(struct held){ .parts = 1, .held = HOUR, .seen = HOUR });
    ledger_book(&l, "bob", &(struct held){ .parts = 1, .held = 3 * HOUR });
    ledger_book(&l, "alice", &(struct held){ .held = HOUR, .idle = HOUR / 2 });
    ledger_sort(&l);
    assert_int_equal(l.count, 2);
    assert_string_equal(l.lines[0]->key, "bob");
    assert_string_equal(l.lines[1]->key, "alice");
    assert_true(l.lines[1]->sum.held == 2 * HOUR && l.lines[1]->sum.idle == HOUR / 2);
    assert_int_equal(l.lines[1]->sum.parts, 1);
}

static void what_was_not_seen_is_null(void **state)
{
    (void)state; /* unused */
    AUTO(ledger)
    struct ledger l = { .by = LEDGER_BY_CARD, .from_day = 20261101, .to_day = 20261201 };
    AUTO(ledger) struct ledger back = LEDGER_INIT;
    struct err e = ERR_INIT;
    ledger_book(&l, "gpu0", &(struct held){ .parts = 2, .held = 1.5 * HOUR });
    ledger_book(&l, "gpu1", &(struct held){ .held = HOUR, .seen = HOUR, .idle = HOUR / 4 });
    ledger_book(&l, "gpu2", &(struct held){ .held = HOUR / 2, .measured = HOUR, .busy = HOUR / 8 });
    auto_json json_t *j = ledger_to_json(&l);
    json_t *lines = json_object_get(j, "lines");
    assert_true(json_is_null(json_object_get(json_array_get(lines, 0), "idle_card_hours")));
    assert_true(json_real_value(json_object_get(json_array_get(lines, 1), "idle_card_hours")) ==
                0.25);
    assert_true(json_is_null(json_object_get(json_array_get(lines, 1), "busy_card_hours")));
    assert_true(json_real_value(json_object_get(json_array_get(lines, 2), "busy_card_hours")) ==
                0.125);
    assert_string_equal(json_string_value(json_object_get(j, "to")), "2026-12-01");
    assert_int_equal(ledger_from_json(j, &back, &e), 0);
    assert_int_equal(back.count, 3);
    assert_int_equal(back.by, LEDGER_BY_CARD);
    assert_true(back.lines[0]->sum.held == 1.5 * HOUR);
    assert_true(back.lines[2]->sum.measured == HOUR && back.lines[2]->sum.busy == HOUR / 8);
}

/* ---- in the store ---- */

static void book(struct store *s, int32_t day, const char *user, const char *card, double hours)
{
    struct err e = ERR_INIT;
    struct ledger_place where = {
        .day = day, .user = user, .account = "lab", .profile = "2g.20gb", .card = card
    };
    struct held h = {
        .parts = 1, .held = hours * HOUR, .measured = hours * HOUR, .busy = hours * HOUR / 2
    };
    assert_int_equal(store_book(s, &where, &h, &e), 0);
}

static void a_month_is_the_sum_of_its_days(void **state)
{
    (void)state; /* the folder is known by name */
    struct err e = ERR_INIT;
    AUTO_PTR(store_close) struct store *s = open_store();
    AUTO(ledger) struct ledger l = { .from_day = 20261101, .to_day = 20261201 };
    assert_int_equal(store_begin(s, &e), 0);
    book(s, 20261031, "alice", "gpu0", 100);
    book(s, 20261101, "alice", "gpu0", 1);
    book(s, 20261101, "alice", "gpu0", 2);
    book(s, 20261130, "alice", "gpu1", 4);
    book(s, 20261130, "bob", "gpu0", 8);
    book(s, 20261201, "bob", "gpu0", 100);
    assert_int_equal(store_commit(s, &e), 0);
    assert_int_equal(store_read_ledger(s, &l, &e), 0);
    ledger_sort(&l);
    assert_int_equal(l.count, 2);
    assert_string_equal(l.lines[0]->key, "bob");
    assert_true(l.lines[0]->sum.held == 8 * HOUR && l.lines[1]->sum.held == 7 * HOUR);
    assert_int_equal(l.lines[1]->sum.parts, 3);
    assert_true(l.lines[1]->sum.measured == 7 * HOUR && l.lines[1]->sum.busy == 3.5 * HOUR);
}

static int count_rows(const struct history_row *row, void *arg)
{
    (void)row; /* only how many */
    ++*(int *)arg;
    return 0;
}

static int count_history(struct store *s, int64_t from, int64_t to)
{
    int rows = 0;
    uint64_t seq = 0;
    struct err e = ERR_INIT;
    struct history_query q = { .from_wall_us = from, .to_wall_us = to, .limit = 100 };
    assert_int_equal(store_each_history(s, &q, count_rows, &rows, &seq, &e), 0);
    return rows;
}

static void old_days_are_forgotten(void **state)
{
    (void)state; /* the folder is known by name */
    struct err e = ERR_INIT;
    AUTO_PTR(store_close) struct store *s = open_store();
    AUTO(ledger) struct ledger l = { .from_day = 19700101, .to_day = 99991231 };
    struct history_row row = { .job_id = 7,
                               .attempt = 1,
                               .user = "alice",
                               .account = "lab",
                               .qos = "",
                               .name = "train",
                               .outcome = JOB_COMPLETED };
    set_zone("UTC");
    assert_int_equal(store_begin(s, &e), 0);
    for (int32_t day = 20261129; day <= 20261130; day++) {
        book(s, day, "alice", "gpu0", 1);
        row.ended_wall_us = day_begin(day) + 1;
        assert_int_equal(store_add_history(s, &row, &e), 0);
    }
    assert_int_equal(store_prune_ledger(s, 20261130, 100, &e), 2);
    assert_int_equal(store_commit(s, &e), 0);
    assert_int_equal(store_read_ledger(s, &l, &e), 0);
    assert_int_equal(l.count, 1);
    assert_true(l.lines[0]->sum.held == HOUR);
    assert_int_equal(count_history(s, 0, INT64_MAX), 1);
    assert_int_equal(count_history(s, 0, day_begin(20261130)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_day_begins_at_local_midnight),
        cmocka_unit_test(days_follow_each_other),
        cmocka_unit_test(days_and_months_are_read_exactly),
        cmocka_unit_test(lines_add_up_and_most_held_goes_first),
        cmocka_unit_test(what_was_not_seen_is_null),
        cmocka_unit_test_setup_teardown(a_month_is_the_sum_of_its_days, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(old_days_are_forgotten, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
