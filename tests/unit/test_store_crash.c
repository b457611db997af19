/*
 * A writer that is killed while it commits: what it said is committed must be
 * there, whole, when the store is opened again.
 *
 *     DIVVY_TEST_SEED=N test_store_crash    the same numbers of commits before each kill
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>

#include "dice.h"
#include "store_folder.h"

#define ROUNDS 25

/* One turn: some jobs, an attempt of the first, and a number that grows with them. */
static void turn(struct store *s, uint64_t n)
{
    struct place none = { .items = NULL };
    auto_free char *number = text_fmt("%d", (int)n);
    ok(store_begin(s, &err));
    uint64_t first = add_job(s, number);
    for (uint64_t i = 0; i < n % 7; i++)
        (void)add_job(s, number);
    ok(store_add_attempt(s, first, 1, &none, noon, &err));
    ok(store_set_meta(s, "turn", number, &err));
    ok(store_commit(s, &err));
}

static uint64_t last_turn(struct store *s)
{
    auto_free char *value = NULL;
    ok(store_meta(s, "turn", &value, &err));
    return value ? strtoull(value, NULL, 10) : 0;
}

/* Commits for ever and says each number once it is committed. */
static void write_until_killed(int fd)
{
    struct store *s = NULL;
    if (store_open(folder, BOOT_A, &s, &err) < 0)
        _exit(1);
    for (uint64_t n = last_turn(s) + 1;; n++) {
        turn(s, n);
        if (write(fd, &n, sizeof n) != sizeof n)
            _exit(2);
    }
}

/* The last number that the writer said before it was killed; 0: it said none. */
static uint64_t kill_after(uint64_t said)
{
    int fds[2];
    uint64_t last = 0, n;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)close(fds[0]);
        write_until_killed(fds[1]);
    }
    assert_int_equal(close(fds[1]), 0);
    for (uint64_t i = 0; i < said && read(fds[0], &n, sizeof n) == sizeof n; i++)
        last = n;
    assert_int_equal(kill(child, SIGKILL), 0);
    while (read(fds[0], &n, sizeof n) == sizeof n)
        last = n;
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(close(fds[0]), 0);
    return last;
}

struct census {
    uint64_t jobs[4096]; /* by turn */
    uint64_t attempts[4096];
};

static int count(const struct job_row *row, void *arg)
{
    struct census *c = arg;
    uint64_t n = strtoull(row->name, NULL, 10);
    assert_true(n > 0 && n < 4096);
    c->jobs[n]++;
    c->attempts[n] += row->last.attempt;
    return 0;
}

static void every_turn_is_there_whole_or_not_at_all(struct store *s, uint64_t last)
{
    static struct census c;
    memset(&c, 0, sizeof c);
    ok(store_each_live_job(s, count, &c, &err));
    for (uint64_t n = 1; n < 4096; n++) {
        assert_int_equal(c.jobs[n], n <= last ? 1 + n % 7 : 0);
        assert_int_equal(c.attempts[n], n <= last ? 1 : 0);
    }
}

static void what_a_killed_writer_acknowledged_is_there(void **state)
{
    (void)state;
    struct dice d = dice_new(1);
    uint64_t acknowledged = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t said = kill_after(dice_below(&d, 30));
        if (said)
            acknowledged = said;
        struct store *s = open_store();
        uint64_t last = last_turn(s);
        assert_in_range(last, acknowledged, acknowledged + 1); /* committed and not said in time */
        every_turn_is_there_whole_or_not_at_all(s, last);
        store_close(s);
        acknowledged = last;
    }
    assert_true(acknowledged > ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_killed_writer_acknowledged_is_there, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
