/* cli/spec.h: from options to a job. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/spec.h"
#include "option_line.h"

static char *command[] = { (char *)"python3", (char *)"train.py", NULL };
static char *environment[] = { (char *)"HOME=/home/alice", (char *)"PATH=/bin",
                               (char *)"BROKEN=\xff", NULL };

static struct submit_place here(void)
{
    return (
        struct submit_place){ .cwd = "/home/alice", .environ_ = environment, .command = command };
}

static void make(const char *line, struct job_spec *ret)
{
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    struct err e = ERR_INIT;
    auto_free char *left_out = NULL;
    assert_int_equal(parse_line(line, &o, &e), 0);
    int r = job_options_spec(&o, &where, ret, &left_out, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(r, 0);
}

/* The sentence that a line of options is refused with. */
static void expect_refusal(const char *line, const char *words)
{
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    struct job_spec spec;
    struct err e = ERR_INIT;
    auto_free char *left_out = NULL;
    int r = parse_line(line, &o, &e);
    if (r == 0)
        r = job_options_spec(&o, &where, &spec, &left_out, &e);
    assert_true(r < 0);
    assert_string_equal(e.text, words);
}

static void expect_request(const char *line, enum request_kind kind, uint32_t count,
                           const char *words)
{
    AUTO(job_spec) struct job_spec s;
    AUTO(text) struct text t = TEXT_INIT;
    make(line, &s);
    request_add(&t, &s.request);
    assert_int_equal(s.request.kind, kind);
    assert_int_equal(s.request.count, count);
    assert_string_equal(t.buf, words);
}

static void test_requests(void **state)
{
    (void)state;
    expect_request("--name=x", REQUEST_NOTHING, 1, "no GPU");
    expect_request("--gpus=2", REQUEST_CARDS, 2, "2 whole cards");
    expect_request("-G2 --or-7g", REQUEST_CARDS, 2, "2 whole cards");
    expect_request("--slice=2g.20gb", REQUEST_SLICES, 1, "2g.20gb");
    expect_request("--slice 1g.10gb:3 --spread", REQUEST_SLICES, 3, "3 x 1g.10gb");
    expect_request("--slice 1g.10gb -n 3", REQUEST_SLICES, 3, "3 x 1g.10gb");
    expect_request("--gpu-mem=18G", REQUEST_NEED, 1, "18.0 GiB");
    AUTO(job_spec) struct job_spec s;
    make("--gpu-mem 18G --gpu-compute 25% --tasks 2 --exact", &s);
    assert_int_equal(s.request.mem_bytes, UINT64_C(18) << 30);
    assert_int_equal(s.request.compute_ppm, 250000);
    assert_int_equal(s.request.count, 2);
    assert_true(s.request.exact);
}

static void test_what_contradicts_itself_is_refused(void **state)
{
    (void)state;
    expect_refusal("--gpus 1 --slice 1g.10gb",
                   "--gpus asks for whole cards and --slice for parts of cards; a job has one or "
                   "the other");
    expect_refusal("--gpu-mem 18",
                   "train.sh:3: --gpu-mem: '18' is less than 1M; say the unit, as in 18G");
    expect_refusal("--slice 1g.10gb --gpu-mem 3G",
                   "--slice names a profile already; --gpu-mem and --gpu-compute choose one, so "
                   "leave one out");
    expect_refusal(
        "--gpus 2 --tasks 2",
        "--tasks goes with --slice or --gpu-mem, where each task has a slice of its own; "
        "whole cards belong to one task");
    expect_refusal("--slice 1g.10gb:2 --tasks 3",
                   "--slice asks for 2 tasks and --tasks for 3; say it once");
    expect_refusal("--spread", "train.sh:3: --spread says how, and nothing says what: add --gpus, "
                               "--slice or --gpu-mem");
}

static void a_script_is_told_its_line(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    struct job_spec spec;
    struct err e = ERR_INIT;
    auto_free char *left_out = NULL;
    assert_int_equal(parse_line("--gpus many", &o, &e), 0);
    assert_int_equal(job_options_spec(&o, &where, &spec, &left_out, &e), -EINVAL);
    assert_int_equal(strncmp(e.text, "train.sh:3: --gpus", 18), 0);
}

static void test_defaults(void **state)
{
    (void)state;
    AUTO(job_spec) struct job_spec s;
    make("", &s);
    assert_string_equal(s.name, "python3");
    assert_null(s.account);
    assert_string_equal(s.cwd, "/home/alice");
    assert_string_equal(s.output, "/home/alice/divvy-%j.out");
    assert_int_equal(s.limit_us, 0);
    assert_int_equal(s.bind, BIND_UUID);
    assert_int_equal(strv_count(s.argv), 2);
}

static void test_paths(void **state)
{
    (void)state;
    AUTO(job_spec) struct job_spec s;
    make("--chdir=exp --output=logs/%j.txt", &s);
    assert_string_equal(s.cwd, "/home/alice/exp");
    assert_string_equal(s.output, "/home/alice/logs/%j.txt");
    job_spec_done(&s);
    make("--chdir=/data --output=/dev/null", &s);
    assert_string_equal(s.cwd, "/data");
    assert_string_equal(s.output, "/dev/null");
}

static void test_container(void **state)
{
    (void)state; /* none is needed */
    AUTO(job_spec) struct job_spec s = { .name = NULL };
    make("--container=debian --env=HOME,EPOCHS=3 --container-arg=--init --container-arg=-t", &s);
    assert_string_equal(s.container.image, "debian");
    assert_null(s.container.runtime);
    assert_string_equal(s.container.args[0], "--init");
    assert_string_equal(s.container.args[1], "-t");
    assert_string_equal(s.container.env[0], "HOME");
    assert_string_equal(s.container.env[1], "EPOCHS");
    job_spec_done(&s);
    make("--container=debian --env=all", &s);
    assert_null(s.container.env);
    assert_null(s.container.args);
}

static void test_environment(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    AUTO(job_spec) struct job_spec s;
    auto_free char *left_out = NULL;
    assert_int_equal(job_options_spec(&o, &where, &s, &left_out, NULL), 0);
    assert_int_equal(strv_count(s.env), 2);
    assert_string_equal(left_out, "BROKEN");
    job_spec_done(&s);
    make("--env=none", &s);
    assert_int_equal(strv_count(s.env), 0);
    job_spec_done(&s);
    make("--env=HOME,EPOCHS=3", &s);
    assert_string_equal(s.env[0], "HOME=/home/alice");
    assert_string_equal(s.env[1], "EPOCHS=3");
    assert_null(s.env[2]);
    job_spec_done(&s);
    make("--env=EPOCHS=3 --env=SEED=4", &s);
    assert_int_equal(strv_count(s.env), 4);
    assert_string_equal(s.env[2], "EPOCHS=3");
    assert_string_equal(s.env[3], "SEED=4");
    job_spec_done(&s);
    make("--env=none --env=SEED=4", &s);
    assert_int_equal(strv_count(s.env), 1);
    job_spec_done(&s);
    make("--env=HOME,HOME=/tmp", &s);
    assert_string_equal(s.env[0], "HOME=/tmp");
    assert_null(s.env[1]);
    expect_refusal(
        "--env=NOT_THERE",
        "train.sh:3: --env: 'NOT_THERE' is not set here; write NAME=VALUE, all, none, or "
        "the name of a variable that is set");
}

static void test_names(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    struct job_spec s = { .name = NULL };
    struct err e = ERR_INIT;
    auto_free char *left_out = NULL;
    auto_free char *huge = mem_new(10241);
    memset(huge, 'x', 10240);
    assert_true(job_option_set(&o, 'J', huge));
    assert_int_equal(job_options_spec(&o, &where, &s, &left_out, &e), -E2BIG);
    assert_string_equal(e.text, "the job's name has 10240 bytes, at most 128 work");
    char *long_command[] = { huge, NULL };
    where.command = long_command;
    job_options_done(&o);
    free(take_ptr(left_out));
    assert_int_equal(job_options_spec(&o, &where, &s, &left_out, NULL), 0);
    assert_int_equal(strlen(s.name), 128);
    job_spec_done(&s);
}

static void test_no_command(void **state)
{
    (void)state;
    char *nothing[] = { NULL };
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    struct job_spec s;
    struct err e = ERR_INIT;
    char *left_out = NULL;
    where.command = nothing;
    assert_int_equal(job_options_spec(&o, &where, &s, &left_out, &e), -EINVAL);
    assert_non_null(strstr(e.text, "divvy submit -- ./train.sh"));
}

static void test_an_attached_job_has_no_file(void **state)
{
    (void)state;
    AUTO(job_options) struct job_options o = JOB_OPTIONS_INIT;
    struct submit_place where = here();
    AUTO(job_spec) struct job_spec s;
    auto_free char *left_out = NULL;
    where.attached = true;
    assert_int_equal(job_options_spec(&o, &where, &s, &left_out, NULL), 0);
    assert_null(s.output);
    assert_true(s.attached);
}

static void srun_starts_one_for_each_task_or_as_many_as_said(void **state)
{
    (void)state;
    AUTO(job_spec) struct job_spec each, some, none;
    make("--slice=1g.10gb:3 --srun=each", &each);
    make("--gpus=2 --srun=8", &some);
    make("--slice=1g.10gb:3", &none);
    assert_int_equal(each.srun_tasks, 3);
    assert_int_equal(some.srun_tasks, 8);
    assert_int_equal(none.srun_tasks, 0);
    expect_refusal("--srun=0", "train.sh:3: --srun: 0 is out of range, 1 to 128 works");
}

static void names_of_files_know_job_and_user(void **state)
{
    (void)state;
    AUTO(job_spec) struct job_spec s;
    make("--name=50%j --output=/l/%x-%j-%%x --error=/l/%u%", &s);
    assert_string_equal(s.output, "/l/50%%j-%j-%%x");
    assert_string_equal(s.error, "/l/%u%"); /* nobody said who that is */
}

static void where_it_was_submitted_is_kept_when_it_runs_elsewhere(void **state)
{
    (void)state;
    AUTO(job_spec) struct job_spec there, here_too;
    make("--chdir=/data", &there);
    make("--time=1h", &here_too);
    assert_string_equal(there.cwd, "/data");
    assert_string_equal(there.submit_dir, here_too.cwd);
    assert_null(here_too.submit_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(srun_starts_one_for_each_task_or_as_many_as_said),
        cmocka_unit_test(names_of_files_know_job_and_user),
        cmocka_unit_test(where_it_was_submitted_is_kept_when_it_runs_elsewhere),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_what_contradicts_itself_is_refused),
        cmocka_unit_test(a_script_is_told_its_line),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_container),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_command),
        cmocka_unit_test(test_an_attached_job_has_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
