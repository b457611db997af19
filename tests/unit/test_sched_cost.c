/*
 * What a cycle costs, counted in questions to plan/ and in jobs that are tried: the linker hands
 * calls of place_request and line_next to the counters here (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sched/queue.h"
#include "server.h"

static size_t asked, tried;

enum place_verdict __real_place_request(const struct inventory *inv, const struct request *r,
                                        const struct place_rules *rules, struct now now,
                                        struct place *ret_place, struct plan *ret_plan,
                                        struct err *e);
enum place_verdict __wrap_place_request(const struct inventory *inv, const struct request *r,
                                        const struct place_rules *rules, struct now now,
                                        struct place *ret_place, struct plan *ret_plan,
                                        struct err *e);

enum place_verdict __wrap_place_request(const struct inventory *inv, const struct request *r,
                                        const struct place_rules *rules, struct now now,
                                        struct place *ret_place, struct plan *ret_plan,
                                        struct err *e)
{
    asked++;
    return __real_place_request(inv, r, rules, now, ret_place, ret_plan, e);
}

struct entry *__real_line_next(struct sched *s, const struct inventory *inv, struct now now);
struct entry *__wrap_line_next(struct sched *s, const struct inventory *inv, struct now now);

struct entry *__wrap_line_next(struct sched *s, const struct inventory *inv, struct now now)
{
    struct entry *e = __real_line_next(s, inv, now);
    tried += e != NULL;
    return e;
}

static struct inventory inv;
static struct sched *queue;
static const struct now now = { .boot_us = CLOCK_DAY, .wall_us = 100 * CLOCK_DAY };

static void submit(uint64_t id, const char *account, struct request r)
{
    struct sched_job job = {
        .id = id, .account = account, .request = &r, .limit_us = (int64_t)id * CLOCK_SECOND
    };
    sched_add(queue, &job);
}

/* Both cards are taken whole; three kinds of jobs wait, of a hundred accounts. */
static int make_queue(size_t jobs)
{
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    inv = (struct inventory){ .cards = NULL };
    queue = sched_new(&policy);
    for (int i = 0; i < 2; i++)
        card_hold(inventory_add(&inv, board_a100_80()), 7, now.boot_us + CLOCK_HOUR);
    for (uint64_t id = 1; id <= jobs; id++) {
        char account[16];
        (void)snprintf(account, sizeof account, "user%u", (unsigned int)(id % 100));
        submit(id, account,
               id % 3 == 0   ? ask_cards(2)
               : id % 3 == 1 ? ask_cards(1)
                             : ask_slices("1g.10gb", 1));
    }
    return 0;
}

static void end_queue(void)
{
    inventory_done(&inv);
    sched_free(queue);
}

static size_t questions_of_a_cycle(size_t jobs)
{
    struct sched_decision d;
    (void)make_queue(jobs);
    sched_cycle(queue, now);
    asked = 0;
    assert_int_equal(sched_next(queue, &inv, now, &d), 0);
    size_t first = asked;
    assert_int_equal(sched_next(queue, &inv, now, &d), 0);
    assert_int_equal(asked, first); /* it is known by now */
    end_queue();
    return first;
}

static void what_does_not_fit_is_asked_at_most_twice_however_many_wait(void **state)
{
    (void)state;
    size_t few = questions_of_a_cycle(30);
    assert_in_range(few, 3, 6);
    assert_int_equal(questions_of_a_cycle(30000), few);
}

/* 4 to 80 GiB in so many steps: on an A100 they come to seven different things. */
static void submit_sizes(uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        struct request r = { .kind = REQUEST_NEED, .count = 1 };
        struct sched_job job = {
            .id = 100 + i, .account = "sizes", .request = &r, .limit_us = CLOCK_HOUR
        };
        r.mem_bytes = 4 * GIB + i * (76 * GIB / steps);
        sched_add(queue, &job);
    }
}

/* What a cycle asks and tries when so many sizes wait, once it has begun before. */
static size_t cost_of_sizes(uint64_t steps)
{
    struct sched_decision d;
    (void)make_queue(30);
    submit_sizes(steps);
    for (int i = 0; i < 2; i++) {
        sched_cycle(queue, now);
        asked = tried = 0;
        assert_int_equal(sched_next(queue, &inv, now, &d), 0);
    }
    end_queue();
    return tried;
}

static void sizes_that_come_to_the_same_are_asked_as_one(void **state)
{
    (void)state;
    (void)cost_of_sizes(3000);
    assert_in_range(asked, 6, 16);
}

static void sizes_that_come_to_the_same_are_tried_as_one(void **state)
{
    (void)state;
    size_t few = cost_of_sizes(100);
    assert_in_range(few, 1, 8);
    assert_int_equal(cost_of_sizes(3000), few);
}

static void a_job_in_memory_takes_less_than_a_hundred_bytes(void **state)
{
    (void)state;
    (void)make_queue(100000);
    assert_in_range(sched_bytes(queue) / 100000, sizeof(uint64_t) * 8, 100);
    end_queue();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_asked_at_most_twice_however_many_wait),
        cmocka_unit_test(sizes_that_come_to_the_same_are_asked_as_one),
        cmocka_unit_test(sizes_that_come_to_the_same_are_tried_as_one),
        cmocka_unit_test(a_job_in_memory_takes_less_than_a_hundred_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
