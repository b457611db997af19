#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "jobdir/jobdir.h"

static char jobs[64];

static int make_jobs(void **state)
{
    (void)state;
    strcpy(jobs, "/tmp/test-jobdir-XXXXXX");
    return mkdtemp(jobs) ? 0 : -1;
}

static int remove_jobs(void **state)
{
    (void)state;
    return file_remove_tree(AT_FDCWD, jobs, NULL);
}

static void fill_spec(struct jobdir_spec *s)
{
    *s = (struct jobdir_spec){ .job_id = 41, .attempt = 2, .uid = 1000, .gid = 1001 };
    s->user = text_dup("alice");
    s->groups = mem_new(2 * sizeof *s->groups);
    s->groups[0] = 27;
    s->groups[1] = 4000000000u;
    s->group_count = 2;
    s->job.name = text_dup("train");
    s->job.account = text_dup("nlp");
    strv_add(&s->job.argv, "python3");
    strv_add(&s->job.argv, "train.py");
    strv_add(&s->job.env, "HOME=/home/alice");
    s->job.cwd = text_dup("/home/alice");
    s->job.limit_us = CLOCK_HOUR;
    s->job.request = (struct request){ .kind = REQUEST_NOTHING, .count = 1 };
    s->job.attached = true;
    s->kill_grace_us = 3 * CLOCK_SECOND;
    s->root = text_dup("/");
    s->driver_root = text_dup("/run/driver");
    s->cgroup_root = text_dup("/divvy");
    s->attach_socket = text_dup("/run/divvy/jobs/41.2.sock");
    s->gate = true;
    struct jobdir_task *t = jobdir_spec_add_task(s);
    strv_add(&t->env, "CUDA_VISIBLE_DEVICES=MIG-1");
    *jobdir_task_add_device(t) =
        (struct jobdir_device){ .path = text_dup("/dev/nvidia0"), .major = 195, .minor = 0 };
    t->limits = (struct jobdir_limits){
        .mem_bytes = 1u << 30, .cpu_milli = 2500, .pids = 512, .cpus = text_dup("0-3,8")
    };
}

static int make_folder(void)
{
    AUTO(jobdir_spec) struct jobdir_spec s;
    struct err e = ERR_INIT;
    fill_spec(&s);
    assert_int_equal(jobdir_create(jobs, &s, &e), 0);
    int dir = -1;
    assert_int_equal(jobdir_open(jobs, 41, 2, &dir, &e), 0);
    return dir;
}

static void fill_started(struct jobdir_started *s, struct jobdir_started_task *task)
{
    *s = (struct jobdir_started){ .boot_id = "11111111-2222-3333-4444-555555555555",
                                  .boot_us = 5,
                                  .supervisor = { .pid = 77, .start_ticks = 9 },
                                  .isolation = "none",
                                  .isolation_reason = "not root",
                                  .tracking = "hybrid",
                                  .cgroup = (char *)"/divvy" };
    *task = (struct jobdir_started_task){ .process = { .pid = 78, .start_ticks = 10 },
                                          .memory_enforced = true };
    s->tasks = task;
    s->task_count = 1;
}

static void write_raw(int dir, const char *name, const char *text)
{
    assert_int_equal(file_replace(dir, name, text, strlen(text), 0600, NULL), 0);
}

static void spec_comes_back_as_it_was_written(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    AUTO(jobdir_spec) struct jobdir_spec s = { .job_id = 0 };
    struct err e = ERR_INIT;
    assert_int_equal(jobdir_read_spec(dir, &s, &e), 0);
    assert_int_equal(s.job_id, 41);
    assert_int_equal(s.attempt, 2);
    assert_int_equal(s.uid, 1000);
    assert_int_equal(s.group_count, 2);
    assert_int_equal(s.groups[1], 4000000000u);
    assert_string_equal(s.job.argv[1], "train.py");
    assert_string_equal(s.job.env[0], "HOME=/home/alice");
    assert_true(s.job.attached);
    assert_int_equal(s.kill_grace_us, 3 * CLOCK_SECOND);
    assert_int_equal(s.task_count, 1);
    assert_string_equal(s.tasks[0].env[0], "CUDA_VISIBLE_DEVICES=MIG-1");
    assert_int_equal(s.tasks[0].devices[0].major, 195);
    assert_string_equal(s.tasks[0].limits.cpus, "0-3,8");
    assert_null(s.tasks[0].limits.mems);
    assert_int_equal(s.tasks[0].limits.cpu_milli, 2500);
    assert_true(s.gate);
    assert_false(s.new_privileges);
}

static void folder_is_made_once_and_only_for_its_owner(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    AUTO(jobdir_spec) struct jobdir_spec s;
    struct stat st;
    fill_spec(&s);
    assert_int_equal(fstat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(jobdir_create(jobs, &s, NULL), -EEXIST);
    assert_int_equal(jobdir_state(dir, NULL), JOBDIR_NEW);
}

static void spec_of_a_later_release_is_read_or_refused_by_its_v(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    AUTO(jobdir_spec) struct jobdir_spec s = { .job_id = 0 };
    struct err e = ERR_INIT;
    auto_free char *text = NULL;
    assert_int_equal(file_read(dir, "spec.json", 1 << 20, &text, NULL, NULL), 0);
    auto_free char *more = text_fmt("{\"colour\":\"red\",%s", text + 1);
    write_raw(dir, "spec.json", more);
    assert_int_equal(jobdir_read_spec(dir, &s, &e), 0);
    char *job = strstr(text, "\"job\":{");
    auto_free char *deep =
        text_fmt("%.*s\"job\":{\"later\":1,%s", (int)(job - text), text, job + strlen("\"job\":{"));
    write_raw(dir, "spec.json", deep);
    jobdir_spec_done(&s);
    assert_int_equal(jobdir_read_spec(dir, &s, &e), 0);
    write_raw(dir, "spec.json", "{\"v\":99}");
    AUTO(jobdir_spec) struct jobdir_spec none = { .job_id = 0 };
    assert_int_equal(jobdir_read_spec(dir, &none, &e), -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "newer"));
}

static void state_follows_the_files_and_the_lock(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    struct err e = ERR_INIT;
    auto_close int lock = -1;
    assert_int_equal(jobdir_claim(dir, &lock, &e), 0);
    assert_int_equal(jobdir_state(dir, &e), JOBDIR_STARTING);
    struct jobdir_started s;
    struct jobdir_started_task task;
    fill_started(&s, &task);
    assert_int_equal(jobdir_write_started(dir, &s, true, &e), 0);
    assert_int_equal(jobdir_state(dir, &e), JOBDIR_STARTED_ALIVE);
    close(take_fd(lock));
    assert_int_equal(jobdir_state(dir, &e), JOBDIR_STARTED_DEAD);
    struct jobdir_exit x = { .job = { .kind = EXIT_SIGNAL, .value = 9 } };
    assert_int_equal(jobdir_write_exit(dir, &x, false, &e), 0);
    assert_int_equal(jobdir_state(dir, &e), JOBDIR_ENDED);
}

static void lock_is_for_one_and_asking_does_not_take_it(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    auto_close int first = -1;
    auto_close int second = -1;
    assert_int_equal(jobdir_claim(dir, &first, NULL), 0);
    assert_int_equal(jobdir_claim(dir, &second, NULL), -EBUSY);
    close(take_fd(first));
    assert_int_equal(jobdir_state(dir, NULL), JOBDIR_NEW);
    assert_int_equal(jobdir_claim(dir, &second, NULL), 0);
}

static void what_has_started_is_never_claimed_again(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    auto_close int lock = -1;
    write_raw(dir, "started", ""); /* torn by a power cut: it says "started" all the same */
    assert_int_equal(jobdir_claim(dir, &lock, NULL), -EALREADY);
    assert_int_equal(lock, -1);
    struct jobdir_started s = JOBDIR_STARTED_INIT;
    assert_int_equal(jobdir_read_started(dir, &s, NULL), -EINVAL);
    assert_int_equal(jobdir_state(dir, NULL), JOBDIR_STARTED_DEAD);
}

static void started_and_exit_come_back(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    struct err e = ERR_INIT;
    struct jobdir_started s;
    struct jobdir_started_task task;
    fill_started(&s, &task);
    assert_int_equal(jobdir_write_started(dir, &s, true, &e), 0);
    AUTO(jobdir_started) struct jobdir_started got = JOBDIR_STARTED_INIT;
    assert_int_equal(jobdir_read_started(dir, &got, &e), 0);
    assert_string_equal(got.boot_id, s.boot_id);
    assert_string_equal(got.isolation_reason, "not root");
    assert_string_equal(got.cgroup, "/divvy");
    assert_int_equal(got.tasks[0].process.start_ticks, 10);
    assert_true(got.tasks[0].memory_enforced);
    assert_false(got.tasks[0].cpu_enforced);

    struct job_exit each[2] = { { .kind = EXIT_CODE, .value = 0 },
                                { .kind = EXIT_OOM, .task = 1 } };
    struct jobdir_exit x = { .job = each[1], .tasks = each, .task_count = 2 };
    assert_int_equal(jobdir_write_exit(dir, &x, false, &e), 0);
    AUTO(jobdir_exit) struct jobdir_exit end = { .tasks = NULL };
    assert_int_equal(jobdir_read_exit(dir, &end, &e), 0);
    assert_int_equal(end.job.kind, EXIT_OOM);
    assert_int_equal(end.job.task, 1);
    assert_int_equal(end.task_count, 2);
    assert_int_equal(end.tasks[0].kind, EXIT_CODE);
}

static void stop_says_why(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    assert_int_equal(jobdir_read_stop(dir, NULL), JOBDIR_STOP_NONE);
    assert_int_equal(jobdir_stop(dir, JOBDIR_STOP_PREEMPT, NULL, NULL), 0);
    assert_int_equal(jobdir_read_stop(dir, NULL), JOBDIR_STOP_PREEMPT);
    write_raw(dir, "stop", "rubbish");
    assert_int_equal(jobdir_read_stop(dir, NULL), JOBDIR_STOP_CANCEL);
}

static void assert_notice(int dir, int signal, int64_t grace_us)
{
    struct jobdir_notice n = { .signal = -1 };
    assert_int_not_equal(jobdir_read_stop(dir, &n), JOBDIR_STOP_NONE);
    assert_int_equal(n.signal, signal);
    assert_int_equal(n.grace_us, grace_us);
}

static void stop_may_leave_time_for_a_checkpoint(void **state)
{
    (void)state;
    auto_close int dir = make_folder();
    struct jobdir_notice n = { .signal = SIGUSR1, .grace_us = CLOCK_MINUTE };
    assert_int_equal(jobdir_stop(dir, JOBDIR_STOP_PREEMPT, &n, NULL), 0);
    assert_notice(dir, SIGUSR1, CLOCK_MINUTE);
    assert_int_equal(jobdir_stop(dir, JOBDIR_STOP_CANCEL, NULL, NULL), 0); /* no time left */
    assert_notice(dir, 0, 0);
    write_raw(dir, "stop",
              "{\"v\": 1, \"reason\": \"preempt\", \"signal\": 5000, \"grace_us\": 1}");
    assert_notice(dir, 0, 0);
    write_raw(dir, "stop", "{\"v\": 1, \"reason\": \"preempt\", \"signal\": 10, \"grace_us\": -1}");
    assert_notice(dir, 0, 0);
}

struct seen {
    unsigned attempts, garbage;
};

static int count_attempt(void *user, uint64_t job_id, uint32_t attempt, struct err *e)
{
    (void)e;
    assert_int_equal(job_id, 41);
    assert_int_equal(attempt, 2);
    ((struct seen *)user)->attempts++;
    return 0;
}

static void count_garbage(void *user, const char *name)
{
    assert_non_null(name);
    ((struct seen *)user)->garbage++;
}

static void scan_tells_attempts_from_garbage(void **state)
{
    (void)state;
    close(make_folder());
    const char *const others[] = { ".new-7.1", "041.1", "41", "41.", "x.1", "41.2.3", "0.1" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        auto_free char *path = text_fmt("%s/%s", jobs, others[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    struct seen seen = { 0, 0 };
    assert_int_equal(jobdir_scan(jobs, count_attempt, count_garbage, &seen, NULL), 0);
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(seen.garbage, 7);
}

static void removing_is_done_once_and_may_be_repeated(void **state)
{
    (void)state;
    close(make_folder());
    int again = -1;
    assert_int_equal(jobdir_remove(jobs, 41, 2, NULL), 0);
    assert_int_equal(jobdir_remove(jobs, 41, 2, NULL), 0);
    assert_int_equal(jobdir_open(jobs, 41, 2, &again, NULL), -ENOENT);
    assert_int_equal(rmdir(jobs), 0); /* nothing is left in it */
    assert_int_equal(mkdir(jobs, 0700), 0);
}

static void a_folder_put_away_is_no_attempt(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* one that was made anew takes the place of the first */
        auto_free char *gone = NULL;
        int again = -1;
        uint64_t id;
        uint32_t attempt;
        close(make_folder());
        assert_int_equal(jobdir_put_away(jobs, 41, 2, &gone, NULL), 0);
        assert_true(jobdir_parse_put_away(gone, &id, &attempt));
        assert_int_equal(id, 41);
        assert_int_equal(attempt, 2);
        assert_string_equal(gone, ".new-gone-41.2");
        assert_int_equal(jobdir_open(jobs, 41, 2, &again, NULL), -ENOENT);
        struct seen seen = { 0, 0 };
        assert_int_equal(jobdir_scan(jobs, count_attempt, count_garbage, &seen, NULL), 0);
        assert_int_equal(seen.attempts, 0);
        assert_int_equal(seen.garbage, 1);
    }
    char *none = NULL;
    assert_int_equal(jobdir_put_away(jobs, 41, 2, &none, NULL), -ENOENT);
    assert_null(none);
    uint64_t id;
    uint32_t attempt;
    assert_false(jobdir_parse_put_away(".new-41.2", &id, &attempt)); /* a torn jobdir_create's */
    assert_int_equal(jobdir_remove_leftover(jobs, ".new-gone-41.2", NULL), 0);
    assert_int_equal(rmdir(jobs), 0); /* nothing is left in it */
    assert_int_equal(mkdir(jobs, 0700), 0);
}

static void only_leftovers_are_removed_as_such(void **state)
{
    (void)state;
    close(make_folder());
    auto_free char *made = text_fmt("%s/.new-7.1", jobs);
    auto_free char *gone = text_fmt("%s/.new-gone-7.1", jobs);
    assert_int_equal(mkdir(made, 0700), 0);
    assert_int_equal(mkdir(gone, 0700), 0);
    assert_int_equal(jobdir_remove_leftover(jobs, ".new-7.1", NULL), 0);
    assert_int_equal(jobdir_remove_leftover(jobs, ".new-gone-7.1", NULL), 0);
    assert_int_equal(jobdir_remove_leftover(jobs, "41.2", NULL), -EINVAL);
    assert_int_equal(jobdir_remove_leftover(jobs, ".new-/../41.2", NULL), -EINVAL);
    struct seen seen = { 0, 0 };
    assert_int_equal(jobdir_scan(jobs, count_attempt, count_garbage, &seen, NULL), 0);
    assert_int_equal(seen.attempts, 1);
    assert_int_equal(seen.garbage, 0);
}

static void process_is_told_from_another_with_its_pid(void **state)
{
    (void)state;
    struct jobdir_process me = { .pid = getpid(), .start_ticks = jobdir_start_ticks(getpid()) };
    assert_true(me.start_ticks > 0);
    assert_true(jobdir_process_lives(&me));
    me.start_ticks++;
    assert_false(jobdir_process_lives(&me));
}

#define WITH_JOBS(f) cmocka_unit_test_setup_teardown(f, make_jobs, remove_jobs)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_JOBS(spec_comes_back_as_it_was_written),
        WITH_JOBS(folder_is_made_once_and_only_for_its_owner),
        WITH_JOBS(spec_of_a_later_release_is_read_or_refused_by_its_v),
        WITH_JOBS(state_follows_the_files_and_the_lock),
        WITH_JOBS(lock_is_for_one_and_asking_does_not_take_it),
        WITH_JOBS(what_has_started_is_never_claimed_again),
        WITH_JOBS(started_and_exit_come_back),
        WITH_JOBS(stop_says_why),
        WITH_JOBS(stop_may_leave_time_for_a_checkpoint),
        WITH_JOBS(scan_tells_attempts_from_garbage),
        WITH_JOBS(only_leftovers_are_removed_as_such),
        WITH_JOBS(removing_is_done_once_and_may_be_repeated),
        WITH_JOBS(a_folder_put_away_is_no_attempt),
        cmocka_unit_test(process_is_told_from_another_with_its_pid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
