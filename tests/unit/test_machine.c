#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "sim/process.h"
#include "sim_boards.h"

static char dir[64];
static struct machine *machine;

static struct machine_plan plan_of(const struct sim_board *board, const uint32_t *cards, uint32_t n)
{
    return (struct machine_plan){
        .boards = board, .board_count = 1, .cards = cards, .card_count = n, .seed = 7
    };
}

static int put_up(void **state)
{
    (void)state;
    static const uint32_t cards[2] = { 0, 0 };
    struct sim_board board = sim_a100();
    struct machine_plan plan = plan_of(&board, cards, 2);
    (void)snprintf(dir, sizeof dir, "/tmp/divvy-test-machine-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(machine_make(dir, &plan, NULL), 0);
    assert_int_equal(machine_open(dir, &machine, NULL), 0);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    machine_close(machine);
    machine = NULL;
    (void)file_remove_tree(AT_FDCWD, dir, NULL); /* best effort; the folder is the test's own */
    return 0;
}

static void change_power(uint32_t card, uint32_t milliwatts)
{
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    edit.state->cards[card].power_limit_mw = milliwatts;
    assert_int_equal(machine_edit_commit(&edit), 0);
}

static uint32_t power(uint32_t card)
{
    struct sim_card c;
    machine_card(machine, card, &c);
    return c.power_limit_mw;
}

static void cards_have_names_that_follow_from_the_seed(void **state)
{
    (void)state;
    struct sim_card a, b;
    machine_card(machine, 0, &a);
    machine_card(machine, 1, &b);
    assert_int_equal(strncmp(a.uuid, "GPU-", 4), 0);
    assert_int_equal(strlen(a.uuid), 40);
    assert_string_not_equal(a.uuid, b.uuid);
    assert_true(a.pci_bus < b.pci_bus);
    static const uint32_t cards[1] = { 0 };
    struct sim_board board = sim_a100();
    struct machine_plan plan = plan_of(&board, cards, 1);
    assert_int_equal(machine_remove(dir, NULL), 0);
    assert_int_equal(machine_make(dir, &plan, NULL), 0);
    struct machine *again;
    assert_int_equal(machine_open(dir, &again, NULL), 0);
    machine_card(again, 0, &b);
    assert_string_equal(a.uuid, b.uuid);
    machine_close(again);
}

static void a_change_shows_when_committed_and_only_then(void **state)
{
    (void)state;
    uint64_t version = machine_version(machine);
    {
        AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
        assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
        edit.state->cards[0].power_limit_mw = 1234;
        assert_int_equal(power(0), 0);
    }
    assert_int_equal(power(0), 0);
    assert_int_equal(machine_version(machine), version);
    change_power(0, 4321);
    assert_int_equal(power(0), 4321);
    assert_int_equal(machine_version(machine), version + 1);
}

static void two_machines_do_not_fit_in_one_folder(void **state)
{
    (void)state;
    static const uint32_t cards[1] = { 0 };
    struct sim_board board = sim_a100();
    struct machine_plan plan = plan_of(&board, cards, 1);
    assert_int_equal(machine_make(dir, &plan, NULL), -EEXIST);
    plan.card_count = 33;
    assert_int_equal(machine_make(dir, &plan, NULL), -EINVAL);
}

static void a_machine_taken_down_is_seen_by_those_who_hold_it(void **state)
{
    (void)state;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    struct machine *other;
    assert_false(machine_is_gone(machine));
    assert_int_equal(machine_remove(dir, NULL), 0);
    assert_true(machine_is_gone(machine));
    assert_true(machine_edit_begin(machine, &edit, NULL) < 0);
    assert_int_equal(machine_open(dir, &other, NULL), -ENOENT);
    assert_int_equal(machine_remove(dir, NULL), -ENOENT);
}

static void a_foreign_state_file_is_refused(void **state)
{
    (void)state;
    struct machine *other;
    struct err e = ERR_INIT;
    auto_free char *path = file_under(dir, "/state");
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(machine_open(dir, &other, &e), -EINVAL);
    assert_non_null(strstr(e.text, "divvy-sim down"));
}

/* Sets both cards to the same number, again and again, until it is killed. */
static void write_for_ever(void)
{
    for (uint32_t n = power(0);; n++) {
        struct machine_edit edit = MACHINE_EDIT_INIT;
        if (machine_edit_begin(machine, &edit, NULL) < 0)
            _exit(1);
        edit.state->cards[0].power_limit_mw = n;
        edit.state->cards[1].power_limit_mw = n;
        (void)machine_edit_commit(&edit);
    }
}

static bool both_agree(uint32_t *ret)
{
    struct sim_state *st = malloc(sizeof *st);
    assert_non_null(st);
    machine_read(machine, st);
    *ret = st->cards[0].power_limit_mw;
    bool agree = st->cards[1].power_limit_mw == *ret;
    free(st);
    return agree;
}

/* Readers look all the time while writers are killed at whatever instruction they are. */
static void a_killed_writer_leaves_the_old_or_the_new_state(void **state)
{
    (void)state;
    uint32_t seen = 0, last = 0;
    change_power(0, 1);
    change_power(1, 1);
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* else a failed test would leave it behind */
            write_for_ever();
        }
        uint64_t started = machine_version(machine);
        while (machine_version(machine) < started + 1 + (uint64_t)(round % 7))
            assert_true(both_agree(&seen));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_true(both_agree(&seen));
        assert_true(seen >= last);
        last = seen;
    }
    change_power(0, 99); /* and the lock is free */
    assert_int_equal(power(0), 99);
}

static void waiting_ends_with_a_change(void **state)
{
    (void)state;
    uint64_t version = machine_version(machine);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        change_power(0, 5);
        _exit(0);
    }
    while (machine_version(machine) == version)
        machine_wait(machine, version, 60000);
    assert_int_equal(power(0), 5);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_hanging_card_holds_its_callers_until_it_is_let_go(void **state)
{
    (void)state;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    struct sim_card c;
    int pipes[2];
    char byte = 0;
    assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    assert_int_equal(sim_fault_set(edit.state, 0, "hang", NULL), 0);
    assert_int_equal(machine_edit_commit(&edit), 0);
    machine_gate(machine, 1, &c); /* its neighbour answers */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        machine_gate(machine, 0, &c);
        _exit(write(pipes[1], "x", 1) == 1 ? 0 : 1);
    }
    assert_int_equal(read(pipes[0], &byte, 1), -1);
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    assert_int_equal(sim_fault_set(edit.state, 0, "none", NULL), 0);
    assert_int_equal(machine_edit_commit(&edit), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

static void strangers_may_look_and_not_change(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(dir, 0755), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct machine *m;
        struct machine_edit edit = MACHINE_EDIT_INIT;
        struct sim_use use = { .card = 0, .gi = SIM_NO_INSTANCE, .ci = SIM_NO_INSTANCE };
        if (setuid(65534) < 0 || machine_open(dir, &m, NULL) < 0)
            _exit(2);
        if (machine_is_ours(m) || machine_edit_begin(m, &edit, NULL) != -EACCES)
            _exit(3);
        _exit(sim_use_set(m, &use, 1, NULL) == 0 && sim_card_busy(m, 0) ? 0 : 4);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_false(sim_card_busy(machine, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cards_have_names_that_follow_from_the_seed, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(a_change_shows_when_committed_and_only_then, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(two_machines_do_not_fit_in_one_folder, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_machine_taken_down_is_seen_by_those_who_hold_it, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(a_foreign_state_file_is_refused, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_killed_writer_leaves_the_old_or_the_new_state, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(waiting_ends_with_a_change, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_hanging_card_holds_its_callers_until_it_is_let_go, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(strangers_may_look_and_not_change, put_up, take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
