/*
 * bench_sched_cycle [JOBS[:USERS[:KINDS]]...] - what a scheduling cycle costs, and memory a job.
 *
 * Eight A100 full of slices; the jobs are of up to 1,000 users, who ask for
 * eight different things with limits of their own. Each turn one job ends and
 * a cycle is run, which starts one or a few. Built with
 * `ninja -C BUILD bench/bench_sched_cycle`. USERS default to 1,000 and KINDS to
 * eight; of more kinds the others are sizes of memory. Without JOBS there are
 * 1,000 to 1,000,000, and then 100,000 in fewer and more shapes (a user's jobs
 * that ask the same), which is what the cost grows with; then as many held ones
 * beside them, and jobs of two thousand sizes instead of eight kinds. Times are
 * of the processor, since others use the machine as well.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../tests/unit/dice.h"
#include "../tests/unit/server.h"

#define TURNS 300
#define KINDS 8
#define SIZES 2000 /* kinds from KINDS on: so much memory, in steps of 32 MiB */

struct bench {
    struct inventory inv;
    struct sched *queue;
    struct now now;
    struct dice dice;
    uint64_t last_id;
    uint64_t running[64]; /* a card has seven slices at most */
    size_t running_count;
    size_t starts;
};

static struct request request_of(uint64_t n)
{
    static const char *const profiles[] = { "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb" };
    if (n >= KINDS)
        return (struct request){ .kind = REQUEST_NEED,
                                 .count = 1,
                                 .mem_bytes = 4 * GIB + n * 32 * MIB };
    if (n < 5)
        return ask_slices(profiles[n], 1);
    if (n < 6)
        return ask_slices("1g.10gb", 4);
    return ask_cards(n == 6 ? 1 : 4);
}

static void submit(struct bench *b, uint64_t users, uint64_t kinds)
{
    char account[16];
    uint64_t user = dice_below(&b->dice, users);
    struct request r = request_of(dice_below(&b->dice, kinds));
    (void)snprintf(account, sizeof account, "user%u", (unsigned int)user);
    struct sched_job job = {
        .id = ++b->last_id, .uid = (uid_t)(1000 + user), .account = account, .request = &r
    };
    job.limit_us = (int64_t)(1 + dice_below(&b->dice, 600)) * CLOCK_MINUTE;
    sched_add(b->queue, &job);
}

static void cycle(struct bench *b)
{
    struct sched_decision d;
    sched_cycle(b->queue, b->now);
    while (sched_next(b->queue, &b->inv, b->now, &d) > 0) {
        const char *wrong = server_apply(&b->inv, &d, CLOCK_HOUR, b->now);
        if (wrong || b->running_count == sizeof b->running / sizeof *b->running) {
            (void)fprintf(stderr, "bench: %s\n", wrong ? wrong : "too many run");
            exit(1);
        }
        b->running[b->running_count++] = d.job_id;
        sched_start(b->queue, d.job_id, &d.place, charge_dominant_ppm(&d.place), b->now.boot_us);
        sched_decision_done(&d);
        b->starts++;
    }
}

static void end_one(struct bench *b)
{
    size_t at = dice_below(&b->dice, b->running_count);
    server_end(&b->inv, b->running[at], b->now);
    sched_end(b->queue, b->running[at], b->now.boot_us);
    b->running[at] = b->running[--b->running_count];
}

static double ms_now(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts); /* cannot fail for this clock */
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What the program has on its heap. */
static double mib_used(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd) / (1024 * 1024);
}

static void take_turns(struct bench *b, uint64_t users, uint64_t kinds, double *ret_took)
{
    cycle(b);
    b->starts = 0;
    for (int i = 0; i < TURNS; i++) {
        b->now.boot_us += CLOCK_MINUTE;
        if (b->running_count)
            end_one(b);
        submit(b, users, kinds);
        double begun = ms_now();
        cycle(b);
        ret_took[i] = ms_now() - begun;
    }
    qsort(ret_took, TURNS, sizeof *ret_took, by_size);
}

/* Elements of arrays that may not run yet: they wait beside the others. */
static void hold_more(struct bench *b, size_t jobs)
{
    for (size_t i = 0; i < jobs; i++) {
        submit(b, 1000, KINDS);
        sched_hold(b->queue, b->last_id, INT64_MAX);
    }
}

static void run(size_t jobs, uint64_t users, uint64_t kinds, size_t held)
{
    struct sched_policy policy = SCHED_POLICY_DEFAULT;
    struct bench b = { .dice = { .state = jobs }, .now = { .boot_us = CLOCK_DAY } };
    double took[TURNS];
    double before = mib_used();
    b.queue = sched_new(&policy);
    for (int i = 0; i < 8; i++)
        (void)inventory_add(&b.inv, board_a100_80());
    while (sched_pending(b.queue) < jobs)
        submit(&b, users, kinds);
    double bytes = (double)sched_bytes(b.queue) / (double)jobs;
    double mib = mib_used() - before;
    hold_more(&b, held);
    take_turns(&b, users, kinds, took);
    printf("%8zu pending %6zu held %5u users %5u shapes   "
           "cycle %7.3f ms median %7.3f worst   "
           "%.2f starts   %6.1f MiB   %5.1f bytes a job\n",
           jobs, held, (unsigned int)users, (unsigned int)(users * kinds), took[TURNS / 2],
           took[TURNS - 1], (double)b.starts / TURNS, mib, bytes);
    (void)fflush(stdout);
    inventory_done(&b.inv);
    sched_free(b.queue);
}

static void run_all(void)
{
    static const size_t sizes[] = { 1000, 10000, 100000, 1000000 };
    static const size_t users[] = { 10, 100, 1000, 10000 };
    for (size_t i = 0; i < 4; i++)
        run(sizes[i], sizes[i] < 10000 ? 100 : 1000, KINDS, 0);
    for (size_t i = 0; i < 4; i++)
        run(100000, users[i], KINDS, 0);
    for (uint64_t kinds = 1; kinds < KINDS; kinds *= 2)
        run(100000, 1000, kinds, 0);
    run(100000, 1000, KINDS, 100000);
    run(10000, 10, SIZES, 0);
}

static uint64_t next_number(char **at, uint64_t without)
{
    char *from = **at == ':' ? *at + 1 : *at;
    uint64_t n = strtoull(from, at, 10);
    return *at == from ? without : n;
}

static void run_said(char *arg)
{
    uint64_t jobs = next_number(&arg, 0);
    uint64_t users = next_number(&arg, 1000);
    run(jobs, users, next_number(&arg, KINDS), 0);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_said(argv[i]);
    if (argc < 2)
        run_all();
    return 0;
}
