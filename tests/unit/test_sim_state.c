#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "nvml/nvml.h"
#include "sim/mig.h"
#include "sim/uuid.h"
#include "sim_boards.h"

#define AMPERE 0
#define HOPPER 1
#define PLAIN 2

static struct sim_board boards[3];
static struct sim_state st;

static int start_anew(void **state)
{
    (void)state;
    boards[AMPERE] = sim_a100();
    boards[HOPPER] = sim_hopper();
    boards[PLAIN] = (struct sim_board){ .key = "l4", .name = "NVIDIA L4", .memory_mib = 23034 };
    assert_int_equal(sim_board_check(&boards[PLAIN], NULL), 0);
    st = (struct sim_state){ .driver_version = "550.163.01", .boot = 1, .card_count = 3 };
    st.installed = (struct sim_package){ .version = "550.163.01" };
    for (uint32_t i = 0; i < 3; i++)
        st.cards[i].board = i;
    return 0;
}

static void cut(uint32_t card)
{
    uint32_t gi, ci;
    assert_int_equal(sim_card_set_mig(&st, boards, card, true, false), 0);
    assert_int_equal(mig_gi_create(&st, boards, card, 9, MIG_ANYWHERE, &gi), 0);
    assert_int_equal(mig_ci_create(&st, boards, card, gi, 2, MIG_ANYWHERE, &ci), 0);
}

static void a_board_without_mig_refuses_it(void **state)
{
    (void)state;
    assert_int_equal(sim_card_set_mig(&st, boards, PLAIN, true, false), -EOPNOTSUPP);
    assert_false(st.cards[PLAIN].mig_pending);
}

static void a_busy_card_keeps_the_mode_pending(void **state)
{
    (void)state;
    assert_int_equal(sim_card_set_mig(&st, boards, AMPERE, true, true), -EBUSY);
    assert_false(st.cards[AMPERE].mig_current);
    assert_true(st.cards[AMPERE].mig_pending);
    assert_int_equal(sim_card_reset(&st, AMPERE, true), -EBUSY);
    assert_int_equal(sim_card_reset(&st, AMPERE, false), 0);
    assert_true(st.cards[AMPERE].mig_current);
}

static void instances_hold_the_mode(void **state)
{
    (void)state;
    cut(HOPPER);
    assert_int_equal(sim_card_set_mig(&st, boards, HOPPER, false, false), -EBUSY);
    assert_true(st.cards[HOPPER].mig_current);
    assert_int_equal(sim_card_instances(&st.cards[HOPPER]), 1);
}

static void a_card_that_needs_a_reset_says_so(void **state)
{
    (void)state;
    assert_int_equal(sim_fault_set(&st, AMPERE, "reset-required", NULL), 0);
    assert_int_equal(sim_card_set_mig(&st, boards, AMPERE, true, false), -EINPROGRESS);
    assert_false(st.cards[AMPERE].mig_current);
    assert_int_equal(sim_card_reset(&st, AMPERE, false), 0);
    assert_true(st.cards[AMPERE].mig_current);
    assert_int_equal(st.cards[AMPERE].faults, 0);
}

static void ampere_keeps_the_mode_over_a_reboot_and_hopper_loses_it(void **state)
{
    (void)state;
    cut(AMPERE);
    cut(HOPPER);
    sim_reboot(&st, boards);
    assert_int_equal(st.boot, 2);
    assert_true(st.cards[AMPERE].mig_current);
    assert_false(st.cards[HOPPER].mig_current);
    assert_false(st.cards[HOPPER].mig_pending);
    assert_int_equal(sim_card_instances(&st.cards[AMPERE]), 0);
    assert_int_equal(sim_card_instances(&st.cards[HOPPER]), 0);
}

static void a_reload_loses_instances_and_mends_nothing(void **state)
{
    (void)state;
    cut(AMPERE);
    cut(HOPPER);
    assert_int_equal(sim_fault_set(&st, AMPERE, "lost", NULL), 0);
    sim_reload(&st, boards);
    assert_true(st.cards[AMPERE].mig_current);
    assert_false(st.cards[HOPPER].mig_current);
    assert_int_equal(sim_card_instances(&st.cards[AMPERE]), 0);
    assert_int_equal(sim_card_instances(&st.cards[HOPPER]), 0);
    assert_true(st.cards[AMPERE].faults & SIM_FAULT_LOST);
}

static void incarnations_go_on_after_a_reboot(void **state)
{
    (void)state;
    cut(AMPERE);
    uint32_t before = st.cards[AMPERE].gi[2].incarnation;
    sim_reboot(&st, boards);
    cut(AMPERE);
    assert_true(st.cards[AMPERE].gi[2].incarnation > before);
}

static void the_nth_create_fails_once(void **state)
{
    (void)state;
    assert_int_equal(sim_fault_set(&st, AMPERE, "create-fails:3", NULL), 0);
    assert_false(sim_create_fails(&st.cards[AMPERE]));
    assert_false(sim_create_fails(&st.cards[AMPERE]));
    assert_true(sim_create_fails(&st.cards[AMPERE]));
    assert_false(sim_create_fails(&st.cards[AMPERE]));
}

static void a_guests_card_turns_with_a_reboot_and_not_with_a_reset(void **state)
{
    (void)state;
    assert_int_equal(sim_fault_set(&st, AMPERE, "passthrough", NULL), 0);
    assert_int_equal(sim_card_set_mig(&st, boards, AMPERE, !st.cards[AMPERE].mig_current, false),
                     -EINPROGRESS);
    bool wanted = st.cards[AMPERE].mig_pending;
    assert_int_equal(sim_card_reset(&st, AMPERE, false), -EOPNOTSUPP);
    assert_true(st.cards[AMPERE].mig_current != wanted);
    sim_reboot(&st, boards);
    assert_int_equal(st.cards[AMPERE].mig_current, wanted);
    assert_int_equal(st.cards[AMPERE].faults, SIM_FAULT_PASSTHROUGH);
}

static void faults_have_a_small_language(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(sim_fault_set(&st, 0, "slow:250", &e), 0);
    assert_int_equal(st.cards[0].slow_ms, 250);
    assert_int_equal(sim_fault_set(&st, 0, "hang", &e), 0);
    assert_int_equal(sim_fault_set(&st, 0, "leak:512", &e), 0);
    assert_int_equal(st.cards[0].leak_mib, 512);
    assert_int_equal(sim_fault_set(&st, 0, "none", &e), 0);
    assert_int_equal(st.cards[0].faults | st.cards[0].slow_ms | st.cards[0].leak_mib, 0);
    static const char *const bad[] = { "",        "slow",    "slow:",          "slow:0",
                                       "slow:1x", "slow:-1", "xid:9999999999", "create-fails:0",
                                       "Lost",    "lost " };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(sim_fault_set(&st, 0, bad[i], &e), -EINVAL);
    assert_non_null(strstr(e.text, "create-fails:N"));
    assert_int_equal(st.last_event, 0);
}

static void an_xid_is_an_event_and_79_loses_the_card(void **state)
{
    (void)state;
    assert_int_equal(sim_fault_set(&st, 1, "xid:31", NULL), 0);
    assert_int_equal(st.cards[1].faults, 0);
    assert_int_equal(sim_fault_set(&st, 1, "xid:79", NULL), 0);
    assert_int_equal(st.cards[1].faults, SIM_FAULT_LOST);
    const struct sim_event *e = &st.events[2];
    assert_int_equal(st.last_event, 2);
    assert_int_equal(e->type, nvmlEventTypeXidCriticalError);
    assert_int_equal(e->data, 79);
    assert_int_equal(e->card, 1);
    assert_int_equal(e->gi, SIM_NO_INSTANCE);
    assert_int_equal(sim_card_reset(&st, 1, false), 0);
    assert_int_equal(st.cards[1].faults, 0);
}

static void names_come_out_as_the_standards_say(void **state)
{
    (void)state;
    uint8_t digest[20];
    sha1("abc", 3, digest);
    static const uint8_t expected[20] = { 0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81,
                                          0x6a, 0xba, 0x3e, 0x25, 0x71, 0x78, 0x50,
                                          0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d };
    assert_memory_equal(digest, expected, sizeof digest);
    static const uint8_t two_blocks[4] = { 0x84, 0x98, 0x3e, 0x44 };
    sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, digest);
    assert_memory_equal(digest, two_blocks, sizeof two_blocks);
    char text[UUID_TEXT_SIZE];
    uuid_v5("www.example.com", text);
    assert_string_equal(text, "2ed6657d-e927-568b-95e1-2665a8aea6a2");
}

static void a_board_that_cannot_be_is_refused_by_name(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct sim_board b = sim_a100();
    b.profiles[3].placements[1].start = 1;
    assert_int_equal(sim_board_check(&b, &e), -EINVAL);
    assert_non_null(strstr(e.text, "1:2 of 2g.20gb"));
    b = sim_a100();
    b.profiles[0].start_order[0] = 7;
    assert_int_equal(sim_board_check(&b, &e), -EINVAL);
    assert_non_null(strstr(e.text, "1g.10gb starts by default at 7"));
    b = sim_a100();
    b.mig_enable = SIM_MIG_NONE;
    assert_int_equal(sim_board_check(&b, &e), -EINVAL);
}

static void an_installed_driver_counts_from_the_next_load_on(void **state)
{
    (void)state;
    char before[48], after[48], name[64];
    st.installed = (struct sim_package){ .version = "570.86.15",
                                         .cuda_version = 12080,
                                         .uuid_series = 1,
                                         .rename_count = 1,
                                         .renames = { { "7g.80gb", "7g.79gb" } } };
    sim_mig_uuid(&st.cards[AMPERE], 0, 0, before);
    sim_profile_name(st.renames, st.rename_count, "7g.80gb", name);
    assert_string_equal(name, "7g.80gb");
    assert_int_equal(sim_branch(&st), 550);
    sim_reload(&st, boards);
    assert_int_equal(sim_branch(&st), 570);
    assert_int_equal(st.cuda_version, 12080);
    sim_mig_uuid(&st.cards[AMPERE], 0, 0, after);
    assert_string_not_equal(before, after);
    sim_profile_name(st.renames, st.rename_count, "1c.7g.80gb", name);
    assert_string_equal(name, "1c.7g.79gb");
    sim_profile_name(st.renames, st.rename_count, "3g.40gb", name);
    assert_string_equal(name, "3g.40gb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_board_without_mig_refuses_it, start_anew),
        cmocka_unit_test_setup(a_busy_card_keeps_the_mode_pending, start_anew),
        cmocka_unit_test_setup(instances_hold_the_mode, start_anew),
        cmocka_unit_test_setup(a_card_that_needs_a_reset_says_so, start_anew),
        cmocka_unit_test_setup(ampere_keeps_the_mode_over_a_reboot_and_hopper_loses_it, start_anew),
        cmocka_unit_test_setup(a_reload_loses_instances_and_mends_nothing, start_anew),
        cmocka_unit_test_setup(incarnations_go_on_after_a_reboot, start_anew),
        cmocka_unit_test_setup(the_nth_create_fails_once, start_anew),
        cmocka_unit_test_setup(a_guests_card_turns_with_a_reboot_and_not_with_a_reset, start_anew),
        cmocka_unit_test_setup(faults_have_a_small_language, start_anew),
        cmocka_unit_test_setup(an_xid_is_an_event_and_79_loses_the_card, start_anew),
        cmocka_unit_test(names_come_out_as_the_standards_say),
        cmocka_unit_test_setup(an_installed_driver_counts_from_the_next_load_on, start_anew),
        cmocka_unit_test(a_board_that_cannot_be_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
