#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include <stdlib.h>

#include "model/inventory.h"

static void words_are_read_back_and_others_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    enum card_pool pool = POOL_OFF;
    enum card_mode mode = MODE_WHOLE;
    for (int i = POOL_OFF; i <= POOL_KUBERNETES; i++) {
        assert_int_equal(card_pool_parse(card_pool_word((enum card_pool)i), &pool, &e), 0);
        assert_int_equal(pool, i);
    }
    for (int i = MODE_WHOLE; i <= MODE_AUTO; i++) {
        assert_int_equal(card_mode_parse(card_mode_word((enum card_mode)i), &mode, &e), 0);
        assert_int_equal(mode, i);
    }
    assert_int_equal(card_pool_parse("on", &pool, &e), -EINVAL);
    assert_string_equal(e.text, "'on' is no pool; it is off, queue, slurm or kubernetes");
    assert_int_equal(card_mode_parse("mig", &mode, &e), -EINVAL);
    assert_string_equal(e.text, "'mig' is no mode; it is whole, slices or auto");
    assert_int_equal(pool, POOL_KUBERNETES);
    assert_int_equal(mode, MODE_AUTO);
}

/* gpu0 is cut into (GI 1, CI 0) and (GI 2, CI 0); gpu1 is whole. */
static void snapshot_init(struct snapshot *s)
{
    *s = (struct snapshot)SNAPSHOT_INIT;
    s->taken = (struct now){ .boot_us = 5, .wall_us = 6 };
    memcpy(s->driver_version, "570.86.15", sizeof "570.86.15");
    struct card *cut = snapshot_add_card(s);
    memcpy(cut->uuid, "GPU-a", sizeof "GPU-a");
    cut->mig_now = true;
    for (uint32_t gi = 1; gi <= 2; gi++) {
        struct slice *slice = card_add_slice(cut);
        slice->gi = gi;
        slice->ci = 0;
    }
    struct card *whole = snapshot_add_card(s);
    memcpy(whole->uuid, "GPU-b", sizeof "GPU-b");
    whole->ordinal = 1;
}

static void process_on(struct card *c, uint32_t gi, uint32_t ci)
{
    struct gpu_process *p = card_add_process(c);
    p->pid = 8121;
    p->gi = gi;
    p->ci = ci;
    memcpy(p->name, "python3", sizeof "python3");
}

static void without_a_daemon_nothing_is_ours_to_give(void **state)
{
    (void)state;
    struct snapshot s;
    struct inventory inv;
    snapshot_init(&s);
    inventory_from_snapshot(&s, &inv);
    snapshot_done(&s); /* the inventory has a copy of its own */
    assert_int_equal(inv.card_count, 2);
    assert_int_equal(inv.now.wall_us, 6);
    assert_string_equal(inv.driver_version, "570.86.15");
    assert_false(inv.from_daemon);
    struct inventory_card *cut = inventory_card(&inv, 0);
    assert_int_equal(cut->pool, POOL_OFF);
    assert_int_equal(cut->mode, MODE_SLICES);
    assert_false(cut->owners_known);
    assert_int_equal(cut->card.slice_count, 2);
    assert_true(inventory_card_free(cut));
    assert_int_equal(inventory_card(&inv, 1)->mode, MODE_WHOLE);
    assert_null(inventory_card(&inv, 2));
    assert_ptr_equal(inventory_uuid(&inv, "GPU-b"), inventory_card(&inv, 1));
    assert_null(inventory_uuid(&inv, "GPU-c"));
    inventory_done(&inv);
}

static void a_process_holds_the_slice_that_it_is_on(void **state)
{
    (void)state;
    struct snapshot s;
    struct inventory inv;
    snapshot_init(&s);
    process_on(&s.cards[0], 2, 0);
    process_on(&s.cards[1], NOT_AN_INSTANCE, NOT_AN_INSTANCE);
    inventory_from_snapshot(&s, &inv);
    struct inventory_card *cut = inventory_card(&inv, 0);
    assert_int_equal(cut->hold.kind, HOLD_NONE);
    assert_int_equal(cut->slices[0].hold.kind, HOLD_NONE);
    assert_int_equal(cut->slices[1].hold.kind, HOLD_UNKNOWN);
    assert_int_equal(cut->slices[1].hold.pid, 8121);
    assert_string_equal(cut->slices[1].hold.name, "python3");
    assert_false(inventory_card_free(cut));
    assert_int_equal(inventory_card(&inv, 1)->hold.kind, HOLD_UNKNOWN);
    assert_false(inventory_card_free(inventory_card(&inv, 1)));
    inventory_done(&inv);
    snapshot_done(&s);
}

/* The driver names an instance that it does not list, or only half of it. */
static void a_process_on_no_slice_that_is_known_holds_the_card(void **state)
{
    (void)state;
    static const uint32_t on[][2] = { { 7, 0 }, { 1, 5 }, { 1, NOT_AN_INSTANCE } };
    for (size_t i = 0; i < 3; i++) {
        struct snapshot s;
        struct inventory inv;
        snapshot_init(&s);
        process_on(&s.cards[0], on[i][0], on[i][1]);
        inventory_from_snapshot(&s, &inv);
        assert_int_equal(inventory_card(&inv, 0)->hold.kind, HOLD_UNKNOWN);
        assert_false(inventory_card_free(inventory_card(&inv, 0)));
        inventory_done(&inv);
        snapshot_done(&s);
    }
}

static void a_card_without_uuid_is_not_found_by_none(void **state)
{
    (void)state;
    struct snapshot s;
    struct inventory inv;
    snapshot_init(&s);
    s.cards[0].uuid[0] = '\0'; /* lost at start */
    inventory_from_snapshot(&s, &inv);
    assert_null(snapshot_card(&s, ""));
    assert_null(inventory_uuid(&inv, ""));
    inventory_done(&inv);
    snapshot_done(&s);
}

static void cards_are_numbered_by_their_address(void **state)
{
    (void)state;
    struct snapshot s = SNAPSHOT_INIT;
    static const char *const buses[] = { "00000000:C1:00.0", "00000000:07:00.0",
                                         "00000000:0F:00.0" };
    for (size_t i = 0; i < 3; i++) {
        struct card *c = snapshot_add_card(&s);
        memcpy(c->bus_id, buses[i], strlen(buses[i]) + 1);
        c->index = (uint32_t)i;
    }
    snapshot_number(&s);
    assert_int_equal(snapshot_ordinal(&s, 0)->index, 1);
    assert_int_equal(snapshot_ordinal(&s, 1)->index, 2);
    assert_int_equal(snapshot_ordinal(&s, 2)->index, 0);
    assert_null(snapshot_ordinal(&s, 3));
    snapshot_done(&s);
    snapshot_number(&s); /* no cards are fine */
}

static void a_copy_lives_on_alone(void **state)
{
    (void)state;
    struct snapshot s;
    struct snapshot copy;
    snapshot_init(&s);
    process_on(&s.cards[0], 1, 0);
    snapshot_copy(&s, &copy);
    snapshot_done(&s);
    assert_int_equal(copy.card_count, 2);
    assert_non_null(card_slice(&copy.cards[0], 2, 0));
    assert_null(card_slice(&copy.cards[0], 3, 0));
    assert_int_equal(copy.cards[0].processes[0].pid, 8121);
    assert_ptr_equal(snapshot_card(&copy, "GPU-b"), &copy.cards[1]);
    (void)card_add_slice(&copy.cards[0]); /* it grows on its own */
    snapshot_done(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_back_and_others_refused),
        cmocka_unit_test(without_a_daemon_nothing_is_ours_to_give),
        cmocka_unit_test(a_process_holds_the_slice_that_it_is_on),
        cmocka_unit_test(a_process_on_no_slice_that_is_known_holds_the_card),
        cmocka_unit_test(a_card_without_uuid_is_not_found_by_none),
        cmocka_unit_test(cards_are_numbered_by_their_address),
        cmocka_unit_test(a_copy_lives_on_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
