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
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "nvml/nvml.h"
#include "sim/mig.h"
#include "sim/process.h"
#include "sim_boards.h"

#define MIB ((uint64_t)1 << 20)

static char dir[64];
static struct machine *machine;

/* Card 0 whole, card 1 cut into a 3g.40gb (instance 2) and nothing else. */
static int put_up(void **state)
{
    (void)state;
    static const uint32_t cards[2] = { 0, 0 };
    struct sim_board board = sim_a100();
    struct machine_plan plan = {
        .boards = &board, .board_count = 1, .cards = cards, .card_count = 2
    };
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    uint32_t gi, ci;
    (void)snprintf(dir, sizeof dir, "/tmp/divvy-test-process-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(machine_make(dir, &plan, NULL), 0);
    assert_int_equal(machine_open(dir, &machine, NULL), 0);
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    struct sim_state *st = edit.state;
    assert_int_equal(sim_card_set_mig(st, &board, 1, true, false), 0);
    assert_int_equal(mig_gi_create(st, &board, 1, 9, MIG_ANYWHERE, &gi), 0);
    assert_int_equal(mig_ci_create(st, &board, 1, gi, 2, MIG_ANYWHERE, &ci), 0);
    assert_int_equal(machine_edit_commit(&edit), 0);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    machine_close(machine);
    (void)file_remove_tree(AT_FDCWD, dir, NULL); /* best effort; the folder is the test's own */
    return 0;
}

static struct sim_use whole(uint32_t card, uint64_t mib, uint32_t load)
{
    return (struct sim_use){ .card = card,
                             .gi = SIM_NO_INSTANCE,
                             .ci = SIM_NO_INSTANCE,
                             .load_percent = load,
                             .memory_bytes = mib * MIB };
}

static struct sim_use sliced(uint64_t mib, uint32_t load)
{
    return (struct sim_use){
        .card = 1, .gi = 2, .ci = 0, .load_percent = load, .memory_bytes = mib * MIB
    };
}

static int use(struct sim_use u)
{
    return sim_use_set(machine, &u, 1, NULL);
}

/* Runs another process that registers, and stays until it is killed. */
static pid_t another(struct sim_use u)
{
    int pipes[2];
    char byte;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* else a failed test would leave it behind */
        if (use(u) < 0 || write(pipes[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    (void)close(pipes[1]);
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    (void)close(pipes[0]);
    return child;
}

static void end(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_process_shows_with_what_it_uses(void **state)
{
    (void)state;
    struct sim_proc *procs;
    uint32_t count;
    pid_t child = another(whole(0, 1024, 40));
    assert_int_equal(sim_procs_read(machine, &procs, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(procs[0].pid, child);
    assert_int_equal(procs[0].uid, geteuid());
    assert_int_equal(procs[0].uses[0].memory_bytes, 1024 * MIB);
    assert_true(procs[0].uses[0].since_us > 0);
    assert_non_null(strstr(procs[0].name, program_invocation_short_name));
    assert_int_equal(sim_memory_used(procs, count, 0, SIM_NO_INSTANCE), 1024 * MIB);
    assert_int_equal(sim_memory_used(procs, count, 1, SIM_NO_INSTANCE), 0);
    free(procs);
    end(child);
}

static void a_killed_process_is_gone_at_once(void **state)
{
    (void)state;
    struct sim_proc *procs;
    uint32_t count;
    pid_t child = another(sliced(100, 10));
    assert_true(sim_gi_busy(machine, 1, 2));
    assert_true(sim_ci_busy(machine, 1, 2, 0));
    assert_false(sim_gi_busy(machine, 1, 1));
    assert_false(sim_card_busy(machine, 0));
    end(child);
    assert_int_equal(sim_procs_read(machine, &procs, &count, NULL), 0);
    assert_int_equal(count, 0);
    assert_null(procs);
}

static void registering_again_replaces_and_nothing_ends_it(void **state)
{
    (void)state;
    assert_int_equal(use(whole(0, 100, 0)), 0);
    assert_int_equal(use(sliced(50, 0)), 0);
    assert_false(sim_card_busy(machine, 0));
    assert_true(sim_card_busy(machine, 1));
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
    assert_false(sim_card_busy(machine, 1));
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
}

static void places_that_are_not_there_are_refused(void **state)
{
    (void)state;
    struct sim_use wrong = sliced(1, 0);
    assert_int_equal(use(whole(2, 1, 0)), -ENODEV);
    assert_int_equal(use(whole(1, 1, 0)), -EINVAL);
    wrong.gi = 1;
    assert_int_equal(use(wrong), -ENOENT);
    wrong = sliced(1, 0);
    wrong.card = 0;
    assert_int_equal(use(wrong), -ENOENT);
    wrong = sliced(1, 0);
    wrong.ci = 3000000000U;
    assert_int_equal(use(wrong), -ENOENT);
    assert_false(sim_card_busy(machine, 0) || sim_card_busy(machine, 1));
}

static void memory_is_what_is_left_there(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    assert_int_equal(use(sliced(40193, 0)), -ENOMEM);
    assert_int_equal(use(sliced(40192, 0)), 0);
    assert_int_equal(use(whole(0, 81920 - 640, 0)), 0);
    pid_t child = another(sliced(30000, 0));
    struct sim_use u = sliced(10193, 0);
    assert_int_equal(sim_use_set(machine, &u, 1, &e), -ENOMEM);
    assert_non_null(strstr(e.text, "10192 MiB free"));
    assert_int_equal(use(sliced(10192, 0)), 0);
    struct sim_use two[2] = { sliced(UINT64_MAX >> 20, 0), sliced(UINT64_MAX >> 20, 0) };
    assert_int_equal(sim_use_set(machine, two, 2, NULL), -ENOMEM);
    end(child);
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
}

static void compute_modes_are_kept(void **state)
{
    (void)state;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    edit.state->cards[0].compute_mode = NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
    assert_int_equal(machine_edit_commit(&edit), 0);
    pid_t child = another(whole(0, 1, 0));
    assert_int_equal(use(whole(0, 1, 0)), -EBUSY);
    end(child);
    assert_int_equal(use(whole(0, 1, 0)), 0);
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    edit.state->cards[0].compute_mode = NVML_COMPUTEMODE_PROHIBITED;
    assert_int_equal(machine_edit_commit(&edit), 0);
    assert_int_equal(use(whole(0, 1, 0)), -EACCES);
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
}

static void a_reboot_ends_all_registrations(void **state)
{
    (void)state;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    assert_int_equal(use(whole(0, 1, 0)), 0);
    assert_int_equal(machine_edit_begin(machine, &edit, NULL), 0);
    sim_reboot(edit.state, machine_boards(machine));
    assert_int_equal(machine_edit_commit(&edit), 0);
    assert_false(sim_card_busy(machine, 0));
    assert_int_equal(use(whole(0, 1, 0)), 0);
    assert_true(sim_card_busy(machine, 0));
    assert_int_equal(sim_use_set(machine, NULL, 0, NULL), 0);
}

static void load_is_weighed_by_the_slice(void **state)
{
    (void)state;
    struct sim_card c;
    const struct sim_board *b = machine_boards(machine);
    struct sim_proc procs[2] = { { .pid = 1, .use_count = 1 }, { .pid = 2, .use_count = 1 } };
    procs[0].uses[0] = sliced(1, 70);
    procs[1].uses[0] = whole(0, 1, 80);
    machine_card(machine, 1, &c);
    assert_int_equal(sim_gi_load(b, &c, procs, 2, 1, 2), 70);
    assert_int_equal(sim_card_load(b, &c, procs, 2, 1), 29); /* 70 * 3/7 */
    machine_card(machine, 0, &c);
    assert_int_equal(sim_card_load(b, &c, procs, 2, 0), 80);
    procs[0].uses[0] = whole(0, 1, 80);
    assert_int_equal(sim_card_load(b, &c, procs, 2, 0), 100);
}

static void a_file_that_speaks_for_another_is_not_believed(void **state)
{
    (void)state;
    auto_free char *procs = file_under(dir, "/procs");
    auto_close int fd = open(procs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    pid_t child = another(whole(0, 1, 0));
    char mine[32], forged[32];
    (void)snprintf(mine, sizeof mine, "%d.%u", (int)child, (unsigned int)geteuid());
    (void)snprintf(forged, sizeof forged, "1.%u", (unsigned int)geteuid());
    /* Its own record under init's number: owner or start time tells. */
    assert_int_equal(renameat(fd, mine, fd, forged), 0);
    struct sim_proc *list;
    uint32_t count;
    assert_int_equal(sim_procs_read(machine, &list, &count, NULL), 0);
    assert_int_equal(count, 0);
    end(child);
}

static void what_the_dead_left_is_cleared(void **state)
{
    (void)state;
    pid_t child = another(whole(0, 1, 0));
    char record[64], half[64];
    (void)snprintf(record, sizeof record, "/procs/%d.%u", (int)child, (unsigned int)geteuid());
    (void)snprintf(half, sizeof half, "/procs/.%d.%u", (int)child, (unsigned int)geteuid());
    auto_free char *record_path = file_under(dir, record);
    auto_free char *half_path = file_under(dir, half);
    auto_close int fd = open(half_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(sim_card_busy(machine, 0));
    assert_int_equal(access(half_path, F_OK), 0);
    end(child);
    assert_false(sim_card_busy(machine, 0));
    assert_int_equal(access(record_path, F_OK), -1);
    assert_int_equal(access(half_path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_shows_with_what_it_uses, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_killed_process_is_gone_at_once, put_up, take_down),
        cmocka_unit_test_setup_teardown(registering_again_replaces_and_nothing_ends_it, put_up,
                                        take_down),
        cmocka_unit_test_setup_teardown(places_that_are_not_there_are_refused, put_up, take_down),
        cmocka_unit_test_setup_teardown(memory_is_what_is_left_there, put_up, take_down),
        cmocka_unit_test_setup_teardown(compute_modes_are_kept, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_reboot_ends_all_registrations, put_up, take_down),
        cmocka_unit_test_setup_teardown(what_the_dead_left_is_cleared, put_up, take_down),
        cmocka_unit_test_setup_teardown(load_is_weighed_by_the_slice, put_up, take_down),
        cmocka_unit_test_setup_teardown(a_file_that_speaks_for_another_is_not_believed, put_up,
                                        take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
