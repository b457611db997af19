#include "queued_server.h"

#include <math.h>

static int make_server(void **state)
{
    (void)state;
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    policy.mode_hold_us = 0;
    begin_server(&policy);
    return 0;
}

static void a100s(int n)
{
    for (int i = 0; i < n; i++)
        (void)inventory_add(&inv, board_a100_80());
}

static void submit(uint64_t id, const char *account, struct request r, int64_t limit_us)
{
    limits[id] = limit_us;
    struct sched_job job = {
        .id = id, .uid = 1000, .account = account, .request = &r, .limit_us = limit_us
    };
    sched_add(queue, &job);
}

static bool runs(uint64_t id)
{
    for (size_t i = 0; i < start_count; i++)
        if (started[i] == id)
            return true;
    return false;
}

static void a_job_that_fits_starts(void **state)
{
    (void)state;
    a100s(1);
    submit(1, "nlp", ask_slices("3g.40gb", 2), 0);
    cycle();
    assert_starts(1);
    assert_int_equal(sched_pending(queue), 0);
    assert_int_equal(sched_running(queue), 1);
}

static void in_an_account_the_first_come_goes_first(void **state)
{
    (void)state;
    a100s(1);
    submit(2, "nlp", ask_slices("7g.80gb", 1), 0);
    submit(1, "nlp", ask_slices("7g.80gb", 1), 0);
    cycle();
    assert_starts(1);
    end(1);
    cycle();
    assert_starts(2);
}

static void who_used_less_goes_first(void **state)
{
    (void)state;
    a100s(1);
    sched_set_usage(queue, "nlp", 1000, NULL, 2 * CLOCK_HOUR, now.boot_us);
    sched_set_usage(queue, "vision", 1000, NULL, 1 * CLOCK_HOUR, now.boot_us);
    submit(1, "nlp", ask_cards(1), 0);
    submit(2, "vision", ask_cards(1), 0);
    cycle();
    assert_starts(2);
}

static void weights_divide_usage(void **state)
{
    (void)state;
    a100s(1);
    sched_set_weight(queue, "nlp", 4);
    sched_set_usage(queue, "nlp", 1000, NULL, 2 * CLOCK_HOUR, now.boot_us);
    sched_set_usage(queue, "vision", 1000, NULL, 1 * CLOCK_HOUR, now.boot_us);
    submit(1, "vision", ask_cards(1), 0);
    submit(2, "nlp", ask_cards(1), 0);
    cycle();
    assert_starts(2);
}

static void equal_accounts_take_turns_job_by_job(void **state)
{
    (void)state;
    a100s(4);
    for (uint64_t id = 1; id <= 10; id++)
        submit(id, "alice", ask_cards(1), 0);
    for (uint64_t id = 11; id <= 20; id++)
        submit(id, "bob", ask_cards(1), 0);
    cycle();
    assert_starts(1, 11, 2, 12);
    for (int i = 0; i < 3; i++) { /* both have used the same: whoever waits longer, in turns */
        pass(10 * CLOCK_SECOND);
        const struct hold *h = &inv.cards[i].hold;
        end(h->job_id);
    }
    cycle();
    assert_int_equal(start_count, 3);
    size_t of_alice = 0;
    for (size_t i = 0; i < start_count; i++)
        of_alice += started[i] <= 10;
    assert_in_range(of_alice, 1, 2);
}

static double used(const char *account)
{
    struct sched_account a;
    assert_true(sched_account(queue, account, now, &a));
    return a.used_card_us;
}

static void a_running_job_is_charged_by_its_share_and_time(void **state)
{
    (void)state;
    struct sched_policy no_decay = { .half_life_us = 0 };
    sched_set_policy(queue, &no_decay, now);
    submit(1, "nlp", ask_cards(1), 0);
    sched_start(queue, 1, NULL, 250000, now.boot_us);
    pass(CLOCK_HOUR);
    assert_float_equal(used("nlp"), CLOCK_HOUR / 4.0, 1);
    sched_end(queue, 1, now.boot_us);
    pass(CLOCK_HOUR);
    assert_float_equal(used("nlp"), CLOCK_HOUR / 4.0, 1);
}

static void usage_halves_with_the_half_life(void **state)
{
    (void)state;
    struct sched_policy policy = { .half_life_us = CLOCK_DAY };
    sched_set_policy(queue, &policy, now);
    sched_set_usage(queue, "nlp", 1000, NULL, 1000, now.boot_us);
    pass(CLOCK_DAY);
    assert_float_equal(used("nlp"), 500, 1e-9);
    pass(CLOCK_DAY);
    assert_float_equal(used("nlp"), 250, 1e-9);
}

/* A card held for ever under decay tends to half-life / ln 2. */
static void charging_does_not_depend_on_how_often_it_is_settled(void **state)
{
    (void)state;
    struct sched_policy policy = { .half_life_us = CLOCK_DAY };
    sched_set_policy(queue, &policy, now);
    submit(1, "once", ask_cards(1), 0);
    submit(2, "often", ask_cards(1), 0);
    sched_start(queue, 1, NULL, PPM, now.boot_us);
    sched_start(queue, 2, NULL, PPM, now.boot_us);
    for (int i = 0; i < 1000; i++) {
        pass(CLOCK_HOUR / 10);
        (void)used("often");
    }
    double expected = CLOCK_DAY / M_LN2 * (1 - exp2(-100.0 / 24));
    assert_true(fabs(used("often") / expected - 1) < 1e-9);
    assert_true(fabs(used("once") / expected - 1) < 1e-9);
}

static void a_clock_that_goes_back_takes_nothing_away(void **state)
{
    (void)state;
    sched_set_usage(queue, "nlp", 1000, NULL, 1000, now.boot_us);
    pass(-CLOCK_DAY);
    assert_float_equal(used("nlp"), 1000, 1e-9);
}

/* gpu0 is held until 16:00; two cards are wanted; gpu1 is kept for them. */
static void block_two_cards(void)
{
    a100s(2);
    submit(1, "nlp", ask_cards(1), CLOCK_HOUR);
    cycle();
    assert_starts(1);
    pass(CLOCK_MINUTE);
    submit(2, "nlp", ask_cards(2), CLOCK_HOUR);
}

static void later_jobs_that_would_delay_the_blocked_one_wait(void **state)
{
    (void)state;
    block_two_cards();
    submit(3, "vision", ask_cards(1), 2 * CLOCK_HOUR);
    sched_set_usage(queue, "vision", 1000, NULL, 100 * CLOCK_DAY, now.boot_us);
    cycle();
    assert_int_equal(start_count, 0);
    end(1);
    cycle();
    assert_starts(2);
}

static void short_jobs_fill_the_hole_before_the_reservation(void **state)
{
    (void)state;
    block_two_cards();
    sched_set_usage(queue, "vision", 1000, NULL, 100 * CLOCK_DAY, now.boot_us);
    submit(3, "vision", ask_cards(1), 0);
    submit(4, "vision", ask_cards(1), 59 * CLOCK_MINUTE + 1);
    submit(5, "vision", ask_cards(1), 59 * CLOCK_MINUTE);
    submit(6, "vision", ask_cards(1), CLOCK_MINUTE);
    cycle();
    assert_true(backfilled[0]);
    assert_starts(5);
    pass(59 * CLOCK_MINUTE);
    end(1);
    end(5);
    cycle();
    assert_false(backfilled[0]);
    assert_starts(2);
}

static void cards_that_are_not_reserved_are_used_by_everybody(void **state)
{
    (void)state;
    block_two_cards();
    a100s(1);
    inv.cards[2].mode = MODE_SLICES;
    submit(3, "vision", ask_slices("7g.80gb", 1), 0);
    sched_set_usage(queue, "vision", 1000, NULL, 100 * CLOCK_DAY, now.boot_us);
    cycle();
    assert_starts(3);
}

static void a_reservation_is_kept_when_others_used_less(void **state)
{
    (void)state;
    block_two_cards();
    cycle();
    pass(30 * CLOCK_MINUTE);
    submit(3, "newcomer", ask_slices("7g.80gb", 2), CLOCK_HOUR);
    submit(4, "newcomer", ask_cards(1), CLOCK_HOUR);
    cycle();
    assert_int_equal(start_count, 0);
    pass(29 * CLOCK_MINUTE);
    end(1);
    cycle();
    assert_starts(2);
}

static void a_reservation_passes_to_an_equal_whose_turn_it_is(void **state)
{
    (void)state;
    block_two_cards();
    cycle();
    assert_int_equal(why(2).why, WHY_RESERVED);
    submit(3, "newcomer", ask_cards(2), CLOCK_HOUR);
    end(1);
    cycle();
    assert_starts(3);
    assert_int_equal(why(2).why, WHY_RESERVED);
}

static void without_limits_the_youngest_cards_drain(void **state)
{
    (void)state;
    a100s(2);
    submit(1, "serve", ask_slices("3g.40gb", 1), 0);
    cycle();
    pass(20 * CLOCK_DAY);
    submit(2, "nlp", ask_slices("4g.40gb", 1), 0); /* beside the old one */
    submit(3, "nlp", ask_slices("3g.40gb", 1), 0);
    cycle();
    assert_starts(1, 2, 3);
    pass(CLOCK_MINUTE);
    submit(4, "nlp", ask_cards(1), 0);
    submit(5, "vision", ask_slices("1g.10gb", 1), 0);
    sched_set_usage(queue, "vision", 1000, NULL, 1000 * CLOCK_DAY, now.boot_us);
    cycle();
    assert_int_equal(start_count, 0);
    struct sched_explanation x = why(4);
    assert_int_equal(x.why, WHY_RESERVED);
    assert_int_equal(x.card_count, 1);
    assert_int_equal(x.cards[0], 1);
    assert_int_equal(x.expected_boot_us, 0);
    submit(6, "vision", ask_slices("1g.10gb", 1), CLOCK_MINUTE);
    cycle();
    assert_starts(6);
    end(6);
    end(3);
    cycle();
    assert_starts(4);
}

static void a_requeued_job_has_its_old_place(void **state)
{
    (void)state;
    a100s(1);
    submit(1, "nlp", ask_cards(1), 0);
    submit(2, "nlp", ask_cards(1), 0);
    cycle();
    assert_starts(1);
    server_end(&inv, 1, now);
    sched_requeue(queue, 1, now.boot_us);
    assert_int_equal(sched_pending(queue), 2);
    cycle();
    assert_starts(1);
}

static void a_held_job_lets_others_go_first_until_its_time(void **state)
{
    (void)state;
    a100s(1);
    submit(1, "nlp", ask_cards(1), 0);
    submit(2, "nlp", ask_cards(1), 0);
    submit(3, "nlp", ask_cards(1), 0);
    sched_hold(queue, 1, now.boot_us + CLOCK_MINUTE);
    sched_hold(queue, 2, INT64_MAX);
    assert_int_equal(sched_wake_us(queue, &inv, now), now.boot_us + CLOCK_MINUTE);
    cycle();
    assert_starts(3);
    end(3);
    pass(CLOCK_MINUTE);
    cycle();
    assert_starts(1);
    end(1);
    cycle();
    assert_int_equal(start_count, 0);
    assert_int_equal(why(2).why, WHY_HELD);
    sched_release(queue, 2);
    cycle();
    assert_starts(2);
}

static void a_removed_job_gives_its_reservation_up(void **state)
{
    (void)state;
    block_two_cards();
    submit(3, "vision", ask_cards(1), 0);
    sched_set_usage(queue, "vision", 1000, NULL, 100 * CLOCK_DAY, now.boot_us);
    cycle();
    assert_int_equal(start_count, 0);
    sched_remove(queue, 2);
    sched_remove(queue, 99);
    cycle();
    assert_starts(3);
}

static void what_no_card_can_serve_any_more_blocks_nobody(void **state)
{
    (void)state;
    a100s(2);
    submit(1, "nlp", ask_cards(2), 0);
    submit(2, "nlp", ask_cards(1), 0);
    inv.cards[1].pool = POOL_OFF;
    cycle();
    assert_starts(2);
    assert_int_equal(why(1).why, WHY_NEVER);
    assert_true(why(1).text[0]);
}

static void a_card_in_trouble_is_named_to_who_waits_for_it(void **state)
{
    (void)state;
    a100s(2);
    submit(1, "nlp", ask_cards(2), 0);
    inv.cards[1].card.health = CARD_LOST;
    cycle();
    assert_int_equal(start_count, 0);
    assert_string_equal(why(1).text, "waits for 2 whole cards: gpu1 is lost");
}

static void an_auto_card_turns_only_after_its_hold(void **state)
{
    (void)state;
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    sched_set_policy(queue, &policy, now);
    a100s(1);
    submit(1, "nlp", ask_slices("1g.10gb", 1), 0);
    cycle();
    assert_starts(1);
    pass(CLOCK_MINUTE);
    end(1);
    submit(2, "nlp", ask_cards(1), 0);
    cycle();
    assert_int_equal(start_count, 0);
    assert_int_equal(sched_wake_us(queue, &inv, now), now.boot_us + 10 * CLOCK_MINUTE);
    pass(10 * CLOCK_MINUTE);
    cycle();
    assert_starts(2);
}

/* A slice on a card that waits to turn would begin its hold anew, so only what ends before counts. */
static void backfill_leaves_room_for_the_hold_of_a_mode_change(void **state)
{
    (void)state;
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    sched_set_policy(queue, &policy, now);
    a100s(1);
    submit(1, "nlp", ask_slices("3g.40gb", 1), CLOCK_HOUR);
    cycle();
    submit(2, "nlp", ask_cards(1), 0);
    cycle();
    assert_starts(1);
    assert_int_equal(why(2).expected_boot_us, now.boot_us + CLOCK_HOUR + 10 * CLOCK_MINUTE);
    submit(3, "nlp", ask_slices("1g.10gb", 1), CLOCK_HOUR + 5 * CLOCK_MINUTE);
    submit(4, "nlp", ask_slices("1g.10gb", 1), CLOCK_HOUR);
    cycle();
    assert_starts(4);
    assert_int_equal(why(2).expected_boot_us, now.boot_us + CLOCK_HOUR + 10 * CLOCK_MINUTE);
    /* It would end before that start, and yet too late. */
    assert_string_equal(why(3).text, "gpu0 would do, but is kept for #2; with a time limit of at "
                                     "most 1h00m it could start now");
    assert_int_equal(why(3).reserved_for, 2);
}

/* Another card would serve as well, but nobody keeps that one free. */
static void a_reservation_is_held_to_its_own_cards(void **state)
{
    (void)state;
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    sched_set_policy(queue, &policy, now);
    a100s(2);
    submit(1, "nlp", ask_slices("3g.40gb", 1), 100 * CLOCK_MINUTE);
    submit(2, "nlp", ask_slices("7g.80gb", 1), 100 * CLOCK_MINUTE);
    cycle();
    assert_starts(1, 2);
    submit(3, "nlp", ask_cards(1), 0);
    cycle();
    assert_int_equal(why(3).cards[0], 0);
    submit(4, "nlp", ask_slices("4g.40gb", 1), 105 * CLOCK_MINUTE);
    cycle();
    assert_int_equal(start_count, 0);
    submit(5, "nlp", ask_slices("4g.40gb", 1), 100 * CLOCK_MINUTE);
    cycle();
    assert_starts(5);
}

static void reserve_for(uint32_t jobs)
{
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    policy.mode_hold_us = 0;
    policy.reservations = jobs;
    sched_set_policy(queue, &policy, now);
}

static void assert_booked(uint64_t id, int64_t in_us, const char *place)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct sched_explanation x = why(id);
    assert_int_equal(x.why, WHY_RESERVED);
    assert_int_equal(x.expected_boot_us, now.boot_us + in_us);
    place_add_text(&t, x.expected_place);
    assert_string_equal(t.buf, place);
}

/* A 4g runs for an hour more, a 3g for two. */
static void half_of_each(void)
{
    a100s(1);
    inv.cards[0].mode = MODE_SLICES;
    submit(1, "nlp", ask_slices("4g.40gb", 1), CLOCK_HOUR);
    submit(2, "nlp", ask_slices("3g.40gb", 1), 2 * CLOCK_HOUR);
    cycle();
    assert_starts(1, 2);
}

static void the_first_that_wait_each_have_a_time_and_a_place(void **state)
{
    (void)state;
    half_of_each();
    submit(3, "nlp", ask_slices("7g.80gb", 1), CLOCK_HOUR);
    submit(4, "nlp", ask_slices("3g.40gb", 1), CLOCK_HOUR);
    submit(5, "nlp", ask_slices("4g.40gb", 1), CLOCK_HOUR + CLOCK_MINUTE);
    cycle();
    assert_int_equal(start_count, 0);
    assert_booked(3, 2 * CLOCK_HOUR, "gpu0/7g.80gb@0");
    assert_booked(4, CLOCK_HOUR, "gpu0/3g.40gb@0"); /* fits before it */
    assert_booked(5, 3 * CLOCK_HOUR, "gpu0/4g.40gb@0");
}

static void no_more_have_one_than_the_policy_says(void **state)
{
    (void)state;
    reserve_for(2);
    half_of_each();
    for (uint64_t id = 3; id <= 6; id++)
        submit(id, "nlp", ask_slices("7g.80gb", 1), CLOCK_HOUR);
    cycle();
    assert_booked(3, 2 * CLOCK_HOUR, "gpu0/7g.80gb@0");
    assert_booked(4, 3 * CLOCK_HOUR, "gpu0/7g.80gb@0");
    assert_int_equal(why(5).why, WHY_NO_ROOM);
}

/* It would be in nobody's way: the place that is kept is another part of the card. */
static void what_is_not_kept_of_a_card_is_used_for_as_long_as_one_likes(void **state)
{
    (void)state;
    half_of_each();
    submit(3, "nlp", ask_slices("4g.40gb", 1), CLOCK_HOUR);
    cycle();
    assert_booked(3, CLOCK_HOUR, "gpu0/4g.40gb@0");
    end(2);
    submit(4, "nlp", ask_slices("3g.40gb", 1), 0);
    cycle();
    assert_starts(4);
    assert_booked(3, CLOCK_HOUR, "gpu0/4g.40gb@0");
}

static void who_ends_early_brings_starts_nearer(void **state)
{
    (void)state;
    half_of_each();
    submit(3, "nlp", ask_slices("7g.80gb", 1), CLOCK_HOUR);
    submit(4, "nlp", ask_slices("7g.80gb", 1), CLOCK_HOUR);
    cycle();
    pass(CLOCK_MINUTE);
    end(2);
    cycle();
    assert_booked(3, 59 * CLOCK_MINUTE, "gpu0/7g.80gb@0");
    assert_booked(4, 119 * CLOCK_MINUTE, "gpu0/7g.80gb@0");
}

static void who_stays_past_his_limit_pushes_only_those_back_whom_it_concerns(void **state)
{
    (void)state;
    half_of_each();
    submit(3, "nlp", ask_slices("4g.40gb", 1), CLOCK_HOUR);
    submit(4, "nlp", ask_slices("4g.40gb", 1), CLOCK_HOUR);
    submit(5, "nlp", ask_slices("3g.40gb", 1), CLOCK_HOUR);
    cycle();
    assert_booked(5, 2 * CLOCK_HOUR, "gpu0/3g.40gb@4");
    pass(CLOCK_HOUR + CLOCK_MINUTE);
    cycle();
    assert_int_equal(start_count, 0);
    assert_booked(3, 0, "gpu0/4g.40gb@0");
    assert_booked(4, CLOCK_HOUR, "gpu0/4g.40gb@0");
    assert_booked(5, 59 * CLOCK_MINUTE, "gpu0/3g.40gb@4");
}

static void close_card(uint32_t ordinal, int64_t in_us, int64_t for_us)
{
    struct sched_closed c = { .ordinal = ordinal,
                              .from_us = now.boot_us + in_us,
                              .until_us = now.boot_us + in_us + for_us };
    sched_set_closed(queue, &c, 1);
}

static void who_would_reach_into_maintenance_does_not_start_there(void **state)
{
    (void)state;
    a100s(1);
    close_card(0, CLOCK_HOUR, CLOCK_HOUR);
    submit(1, "nlp", ask_cards(1), CLOCK_HOUR + CLOCK_MINUTE);
    submit(2, "nlp", ask_cards(1), 0);
    cycle();
    assert_int_equal(start_count, 0);
    assert_booked(1, 2 * CLOCK_HOUR, "gpu0");
    submit(3, "nlp", ask_cards(1), CLOCK_HOUR);
    cycle();
    assert_starts(3);
    pass(CLOCK_HOUR);
    end(3);
    cycle();
    assert_int_equal(start_count, 0);
    pass(CLOCK_HOUR);
    cycle();
    assert_starts(1);
}

static void after_maintenance_of_all_cards_each_takes_one(void **state)
{
    (void)state;
    a100s(2);
    struct sched_closed both[2];
    for (uint32_t i = 0; i < 2; i++)
        both[i] = (struct sched_closed){ .ordinal = i,
                                         .from_us = now.boot_us + CLOCK_HOUR,
                                         .until_us = now.boot_us + 3 * CLOCK_HOUR };
    submit(1, "nlp", ask_cards(1), 2 * CLOCK_HOUR);
    cycle();
    sched_set_closed(queue, both, 2);
    submit(2, "nlp", ask_cards(1), 0);
    cycle();
    submit(3, "nlp", ask_cards(1), 90 * CLOCK_MINUTE);
    cycle();
    assert_booked(2, 3 * CLOCK_HOUR, "gpu0");
    assert_booked(3, 3 * CLOCK_HOUR, "gpu1");
}

static void why_tells_of_maintenance_and_what_would_go_before_it(void **state)
{
    (void)state;
    reserve_for(0);
    a100s(1);
    close_card(0, CLOCK_HOUR, CLOCK_HOUR);
    submit(1, "nlp", ask_cards(1), 0);
    cycle();
    struct sched_explanation x = why(1);
    assert_int_equal(x.why, WHY_CLOSED);
    assert_int_equal(x.short_limit_us, CLOCK_HOUR);
    assert_non_null(strstr(x.text, "gpu0 would do, but maintenance begins there at "));
    assert_non_null(
        strstr(x.text, ", and this has no time limit; with a time limit of at most 1h"));
}

static void who_goes_before_is_known_across_accounts(void **state)
{
    (void)state;
    block_two_cards();
    submit(3, "vision", ask_cards(2), CLOCK_HOUR);
    submit(4, "nlp", ask_cards(2), CLOCK_HOUR);
    sched_set_usage(queue, "nlp", 1000, NULL, 100 * CLOCK_DAY, now.boot_us);
    (void)why(2);
    assert_true(sched_goes_before(queue, 3, 2, now)); /* its account used nothing */
    assert_false(sched_goes_before(queue, 2, 3, now));
    assert_true(sched_goes_before(queue, 2, 4, now));  /* it came first */
    assert_false(sched_goes_before(queue, 1, 3, now)); /* it runs */
    assert_false(sched_goes_before(queue, 3, 3, now));
}

static void why_names_those_who_go_there_first(void **state)
{
    (void)state;
    reserve_for(6);
    a100s(1);
    submit(1, "nlp", ask_cards(1), CLOCK_HOUR);
    cycle();
    assert_starts(1);
    for (uint64_t id = 2; id < 8; id++)
        submit(id, "nlp", ask_cards(1), CLOCK_HOUR);
    cycle();
    assert_null(strstr(why(2).text, "first"));
    assert_non_null(strstr(why(3).text, "; #2 goes there first"));
    assert_non_null(strstr(why(7).text, "; #2, #3, #4 and 2 more go there first"));
}

static void why_tells_of_whom_nobody_knows_the_end(void **state)
{
    (void)state;
    reserve_for(1);
    a100s(1);
    submit(1, "nlp", ask_cards(1), 0);
    cycle();
    assert_starts(1);
    submit(2, "nlp", ask_cards(1), 0);
    submit(3, "nlp", ask_cards(1), 0);
    cycle();
    for (uint64_t id = 2; id < 4; id++)
        assert_non_null(strstr(why(id).text, ": gpu0 without a time limit (#1 carol)"));
}

static void why_says_who_is_in_the_way_and_what_would_help(void **state)
{
    (void)state;
    reserve_for(1);
    block_two_cards();
    submit(3, "vision", ask_cards(1), 2 * CLOCK_HOUR);
    submit(4, "nlp", ask_cards(2), 0);
    sched_set_usage(queue, "vision", 1000, NULL, 100 * CLOCK_DAY, now.boot_us);
    cycle();
    struct sched_explanation x = why(2);
    assert_int_equal(x.why, WHY_RESERVED);
    assert_int_equal(x.ahead, 0);
    assert_int_equal(x.rank, 1);
    assert_int_equal(x.leaves, 2);
    assert_string_equal(x.account, "nlp");
    assert_int_equal(x.card_count, 2);
    assert_int_equal(x.expected_boot_us, now.boot_us + 59 * CLOCK_MINUTE);
    assert_non_null(strstr(x.text, "waits for 2 whole cards: gpu0 until "));
    assert_non_null(strstr(x.text, " (#1 carol)"));
    assert_non_null(strstr(x.text, "gpu1 is free and kept for it"));
    x = why(3);
    assert_int_equal(x.why, WHY_DRAINING);
    assert_int_equal(x.reserved_for, 2);
    assert_int_equal(x.rank, 2);
    assert_int_equal(x.short_limit_us, 59 * CLOCK_MINUTE);
    assert_string_equal(x.text, "gpu0, gpu1 would do, but are kept for #2; with a time limit of at "
                                "most 59m it could start now");
    x = why(4);
    assert_int_equal(x.why, WHY_NO_ROOM);
    assert_int_equal(x.ahead, 1);
    assert_int_equal(x.earliest_boot_us, now.boot_us + 59 * CLOCK_MINUTE);
    assert_int_equal(why(1).why, WHY_RUNNING);
    assert_int_equal(why(77).why, WHY_UNKNOWN);
}

static void a_job_behind_ten_thousand_blocked_ones_starts(void **state)
{
    (void)state;
    a100s(4);
    submit(1, "nlp", ask_cards(3), CLOCK_HOUR);
    cycle();
    assert_true(runs(1));
    struct request four = ask_cards(4);
    for (uint64_t id = 100; id < 10100; id++) {
        struct sched_job job = { .id = id, .account = "nlp", .request = &four };
        sched_add(queue, &job);
    }
    limits[2] = CLOCK_MINUTE;
    struct request one = ask_cards(1);
    struct sched_job late = {
        .id = 2, .order = 20000, .account = "nlp", .request = &one, .limit_us = CLOCK_MINUTE
    };
    sched_add(queue, &late);
    cycle();
    assert_true(runs(2));
    assert_int_equal(sched_pending(queue), 10000);
}

/* Of many users, of whole cards and of slices, each with a limit of its own. */
static void blocked_jobs_of_many_never_use_up_the_search(void **state)
{
    static const uint64_t many[] = { 400, 600, 10000 };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        (void)end_server(state);
        (void)make_server(state);
        a100s(4);
        submit(1, "nlp", ask_slices("4g.40gb", 1), 2 * CLOCK_HOUR);
        cycle();
        for (uint64_t id = 100; id < 100 + many[i]; id++) {
            char account[16];
            struct request r = ask_cards(4);
            (void)snprintf(account, sizeof account, "user%u", (unsigned int)(id % 97));
            struct sched_job job = { .id = id, .account = account, .request = &r };
            job.limit_us = (int64_t)(1 + id % 600) * CLOCK_MINUTE;
            sched_add(queue, &job);
        }
        submit(2, "late", ask_slices("1g.10gb", 1), CLOCK_HOUR);
        submit(3, "late", ask_cards(1), CLOCK_HOUR);
        submit(4, "late", ask_slices("3g.40gb", 1), 3 * CLOCK_HOUR); /* would delay them */
        cycle();
        assert_true(runs(1) && runs(2) && runs(3));
        assert_false(runs(4));
        assert_int_equal(sched_pending(queue), many[i] + 1);
    }
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, make_server, end_server)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_job_that_fits_starts),
        STORY(in_an_account_the_first_come_goes_first),
        STORY(who_used_less_goes_first),
        STORY(weights_divide_usage),
        STORY(equal_accounts_take_turns_job_by_job),
        STORY(a_running_job_is_charged_by_its_share_and_time),
        STORY(usage_halves_with_the_half_life),
        STORY(charging_does_not_depend_on_how_often_it_is_settled),
        STORY(a_clock_that_goes_back_takes_nothing_away),
        STORY(later_jobs_that_would_delay_the_blocked_one_wait),
        STORY(short_jobs_fill_the_hole_before_the_reservation),
        STORY(cards_that_are_not_reserved_are_used_by_everybody),
        STORY(a_reservation_is_kept_when_others_used_less),
        STORY(a_reservation_passes_to_an_equal_whose_turn_it_is),
        STORY(without_limits_the_youngest_cards_drain),
        STORY(a_requeued_job_has_its_old_place),
        STORY(a_held_job_lets_others_go_first_until_its_time),
        STORY(a_removed_job_gives_its_reservation_up),
        STORY(what_no_card_can_serve_any_more_blocks_nobody),
        STORY(a_card_in_trouble_is_named_to_who_waits_for_it),
        STORY(an_auto_card_turns_only_after_its_hold),
        STORY(backfill_leaves_room_for_the_hold_of_a_mode_change),
        STORY(a_reservation_is_held_to_its_own_cards),
        STORY(the_first_that_wait_each_have_a_time_and_a_place),
        STORY(no_more_have_one_than_the_policy_says),
        STORY(what_is_not_kept_of_a_card_is_used_for_as_long_as_one_likes),
        STORY(who_ends_early_brings_starts_nearer),
        STORY(who_stays_past_his_limit_pushes_only_those_back_whom_it_concerns),
        STORY(who_would_reach_into_maintenance_does_not_start_there),
        STORY(after_maintenance_of_all_cards_each_takes_one),
        STORY(why_tells_of_maintenance_and_what_would_go_before_it),
        STORY(who_goes_before_is_known_across_accounts),
        STORY(why_names_those_who_go_there_first),
        STORY(why_tells_of_whom_nobody_knows_the_end),
        STORY(why_says_who_is_in_the_way_and_what_would_help),
        STORY(a_job_behind_ten_thousand_blocked_ones_starts),
        STORY(blocked_jobs_of_many_never_use_up_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
