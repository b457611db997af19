/* cli/queue_draw.h: the table of ux, and one job in full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/queue_draw.h"

#define MINUTE CLOCK_MINUTE
#define NOW_US (INT64_C(1796043600) * CLOCK_SECOND) /* Mon 2026-11-30 13:00 UTC */

static const struct screen terminal = { .tty = true, .utf8 = true, .width = 80 };
static const struct screen file = { .tty = false };

static int utc(void **state)
{
    (void)state; /* none */
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    tzset();
    return 0;
}

static struct placed *at(struct placed *p, const char *profile, uint32_t start)
{
    *p = (struct placed){ .start = start, .uuid = "MIG-1" };
    memcpy(p->profile, profile, strlen(profile) + 1);
    return p;
}

static struct job_view waiting(uint64_t id, const char *user, const char *name)
{
    return (struct job_view){ .id = id,
                              .uid = 1000,
                              .user = user,
                              .account = "nlp",
                              .name = name,
                              .tasks = 1,
                              .submit_wall_us = NOW_US - 25 * MINUTE };
}

static struct job_view running(uint64_t id, const char *user, const char *name, struct placed *p)
{
    struct job_view v = waiting(id, user, name);
    v.state = JOB_RUNNING;
    v.attempt = 1;
    v.start_wall_us = NOW_US - 133 * MINUTE;
    v.place = (struct place){ .items = p, .count = 1 };
    v.request = (struct request){ .kind = REQUEST_SLICES, .count = 1 };
    memcpy(v.request.profile, p->profile, sizeof p->profile);
    return v;
}

static void expect(struct job_view *jobs, size_t n, const struct screen *s, const char *wanted)
{
    AUTO(text) struct text got = TEXT_INIT;
    queue_draw(jobs, n, NOW_US, s, &got);
    assert_string_equal(got.buf, wanted);
}

static void make_three(struct job_view jobs[3], struct placed *p)
{
    jobs[0] = waiting(62, "erin", "big");
    jobs[0].request = (struct request){ .kind = REQUEST_CARDS, .count = 2 };
    jobs[0].expected_start_wall_us = NOW_US + 100 * MINUTE;
    jobs[0].reason = "gpu1 frees then; gpu0 is draining for it";
    jobs[1] = running(41, "alice", "serve", at(p, "2g.20gb", 0));
    jobs[2] = waiting(40, "bob", "once");
    jobs[2].state = JOB_FAILED;
    jobs[2].end_wall_us = NOW_US - 3 * MINUTE;
    jobs[2].exit = (struct job_exit){ .kind = EXIT_SIGNAL, .value = 9 };
}

static void test_nothing_is_said_twice(void **state)
{
    (void)state;
    struct job_view jobs[3] = { waiting(1, "erin", "a"), waiting(2, "erin", "b"),
                                waiting(3, "erin", "c") };
    jobs[0].request = (struct request){ .kind = REQUEST_CARDS, .count = 1 };
    jobs[0].reason = "waits for 1 whole card: gpu1 until 14:50 (#10 root)";
    jobs[1].state = JOB_CANCELLED;
    jobs[1].end_wall_us = NOW_US;
    jobs[1].exit.kind = EXIT_CANCELLED;
    jobs[1].reason = "cancelled by bob";
    jobs[2].state = JOB_TIMEOUT;
    jobs[2].end_wall_us = NOW_US;
    jobs[2].exit.kind = EXIT_TIMEOUT;
    jobs[2].limit_us = 90 * CLOCK_SECOND;
    expect(jobs, 3, &file,
           "ID  USER  ACCOUNT  NAME  ASKS          STATE      SINCE  WHERE / WHY\n"
           "1   erin  nlp      a     1 whole card  waiting    25m    gpu1 until 14:50 (#10 root)\n"
           "2   erin  nlp      b     no GPU        cancelled  0s     cancelled by bob\n"
           "3   erin  nlp      c     no GPU        timeout    0s     its time limit of 1m30s\n");
}

static void test_the_queue(void **state)
{
    (void)state;
    struct placed p;
    struct job_view jobs[3];
    make_three(jobs, &p);
    expect(jobs, 3, &terminal,
           "ID  USER   ACCOUNT  NAME   ASKS           STATE    SINCE  WHERE / WHY\n"
           "41  alice  nlp      serve  2g.20gb        running  2h13m  gpu0/2g.20gb@0\n"
           "62  erin   nlp      big    2 whole cards  waiting  25m    starts about 14:40:\n"
           "                                                          gpu1 frees then; gpu0\n"
           "                                                          is draining for it\n"
           "40  bob    nlp      once   no GPU         failed   3m     killed by signal 9\n"
           "                                                          (Killed)\n");
}

static void test_one_line_a_job_for_scripts(void **state)
{
    (void)state;
    struct placed p;
    struct job_view jobs[3];
    make_three(jobs, &p);
    AUTO(text) struct text got = TEXT_INIT;
    queue_draw(jobs, 3, NOW_US, &file, &got);
    size_t lines = 0;
    for (const char *c = got.buf; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 4);
}

static void test_an_empty_queue_has_its_titles(void **state)
{
    (void)state;
    expect(NULL, 0, &file, "ID  USER  ACCOUNT  NAME  ASKS  STATE  SINCE  WHERE / WHY\n");
}

static void test_a_job_in_full(void **state)
{
    (void)state;
    struct placed p;
    char *argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 3", NULL };
    struct job_view v = running(41, "alice", "serve", at(&p, "2g.20gb", 4));
    AUTO(text) struct text got = TEXT_INIT;
    v.state = JOB_FAILED;
    v.end_wall_us = NOW_US;
    v.limit_us = 4 * CLOCK_HOUR;
    v.exit = (struct job_exit){ .kind = EXIT_CODE,
                                .value = 3,
                                .cpu_us = 90 * CLOCK_SECOND,
                                .mem_peak_bytes = UINT64_C(3) << 30,
                                .gpu_mem_peak_bytes = UINT64_C(7) << 30 };
    v.argv = argv;
    v.cwd = "/home/alice";
    v.output = "/home/alice/divvy-%j.out";
    job_draw(&v, NOW_US, &terminal, &got);
    assert_string_equal(
        got.buf, "#41 serve  failed\n"
                 "user       alice (1000), account nlp\n"
                 "asks       2g.20gb\n"
                 "limit      4h\n"
                 "place      gpu0/2g.20gb@4  MIG-1\n"
                 "submitted  12:35, 25m ago\n"
                 "started    10:47, 2h13m ago\n"
                 "ended      13:00, 0s ago\n"
                 "end        exit 3\n"
                 "used       1m of CPU time, at most 3.0 GiB of memory\n"
                 "           GPU memory at most 7.0 GiB, activity n/a (not told of its slices)\n"
                 "command    sh -c exit 3\n"
                 "directory  /home/alice\n"
                 "output     /home/alice/divvy-41.out\n");
}

static void test_what_is_private_is_left_out(void **state)
{
    (void)state;
    struct job_view v = waiting(5, "bob", "train");
    AUTO(text) struct text got = TEXT_INIT;
    job_draw(&v, NOW_US, &terminal, &got);
    assert_null(strstr(got.buf, "command"));
    assert_null(strstr(got.buf, "(null)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_said_twice),
        cmocka_unit_test(test_the_queue),
        cmocka_unit_test(test_one_line_a_job_for_scripts),
        cmocka_unit_test(test_an_empty_queue_has_its_titles),
        cmocka_unit_test(test_a_job_in_full),
        cmocka_unit_test(test_what_is_private_is_left_out),
    };
    return cmocka_run_group_tests(tests, utc, NULL);
}
