#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "replay/trace.h"

static void read_trace(const char *text, struct trace *ret)
{
    struct err e = ERR_INIT;
    if (trace_parse("t", text, strlen(text), ret, &e) < 0)
        fail_msg("%s", e.text);
}

static void refused(const char *text, const char *sentence)
{
    struct err e = ERR_INIT;
    struct trace t;
    assert_true(trace_parse("t", text, strlen(text), &t, &e) < 0);
    assert_string_equal(e.text, sentence);
}

static void four_numbers_are_a_plain_trace(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("30 66.5 4 2\n10\t2951.000000\t1\t6\n", &t);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.jobs[0].submit_us, 10 * CLOCK_SECOND); /* in the order of submission */
    assert_int_equal(t.jobs[0].id, 2);
    assert_int_equal(t.jobs[1].run_us, 66500000);
    assert_int_equal(t.jobs[1].request.count, 4);
    assert_string_equal(t.accounts.words[t.jobs[1].account], "2");
}

static void a_plain_trace_may_call_accounts_by_name(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("0 3600 1 nlp\n5 60 2 vision\n9 60 1 nlp\n", &t);
    assert_int_equal(t.count, 3);
    assert_string_equal(t.accounts.words[t.jobs[1].account], "vision");
    assert_int_equal(t.jobs[0].account, t.jobs[2].account);
}

static void csv_has_names_in_any_order(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("user,name,submitted,started,ended,slice,limit\r\n"
               "alice,\"a, \"\"b\"\"\",2026-11-30T16:00:00,2026-11-30T16:00:30.5,"
               "2026-11-30T17:00:30.5Z,2g.20gb:3,2h\r\n"
               "bob,,100,,,1g.10gb,\r\n",
               &t);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.left_out, 1); /* bob's never started */
    assert_int_equal(t.jobs[0].run_us, CLOCK_HOUR);
    assert_int_equal(t.jobs[0].wait_us, 30500000);
    assert_int_equal(t.jobs[0].limit_us, 2 * CLOCK_HOUR);
    assert_int_equal(t.jobs[0].request.kind, REQUEST_SLICES);
    assert_int_equal(t.jobs[0].request.count, 3);
    assert_string_equal(t.accounts.words[t.jobs[0].account], "alice");
}

static void csv_tells_who_was_attached(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    AUTO(trace) struct trace old = TRACE_INIT;
    read_trace("submitted,run,attached\n1,60,yes\n2,60,no\n3,60,\n", &t);
    assert_true(t.jobs[0].attached);
    assert_false(t.jobs[1].attached || t.jobs[2].attached);
    read_trace("submitted,run\n1,60\n", &old); /* as it was before there was such a column */
    assert_false(old.jobs[0].attached);
    refused("submitted,run,attached\n1,60,maybe\n", "t:2: attached is yes or no, not 'maybe'");
}

static void csv_says_what_is_needed_of_the_machine(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("submitted,run,gpus,memory,cpus\n1,60,1,64G,1.5\n2,60,1,,\n", &t);
    assert_true(t.jobs[0].mem_bytes == UINT64_C(64) << 30);
    assert_int_equal(t.jobs[0].cpu_milli, 1500);
    assert_true(t.jobs[1].mem_bytes == 0 && t.jobs[1].cpu_milli == 0);
    refused("submitted,run,memory\n1,60,much\n", "t:2: memory 'much' is no size");
    refused("submitted,run,cpus\n1,60,nan\n", "t:2: cpus 'nan' is no number");
}

static void sacct_says_it_of_the_whole_job(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("JobID|User|Submit|Start|End|ReqTRES\n"
               "1|a|2026-11-30T16:00:00|2026-11-30T16:00:00|2026-11-30T17:00:00|"
               "billing=8,cpu=8,gres/mig:1g.10gb=2,mem=64G,node=1\n"
               "2|a|2026-11-30T16:00:00|2026-11-30T16:00:00|2026-11-30T17:00:00|"
               "cpu=?,gres/gpu=1,mem=?\n",
               &t);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.jobs[0].request.count, 2);
    assert_true(t.jobs[0].mem_bytes == UINT64_C(32) << 30); /* of each task */
    assert_int_equal(t.jobs[0].cpu_milli, 4000);
    assert_true(t.jobs[1].mem_bytes == 0 && t.jobs[1].cpu_milli == 0);
}

static void csv_asks_for_memory_too(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("submitted,run,gpus,gpu_mem,gpu_compute,account\n1,60,,18G,25%,nlp\n2,60,2,,,nlp\n",
               &t);
    assert_int_equal(t.jobs[0].request.kind, REQUEST_NEED);
    assert_int_equal(t.jobs[0].request.mem_bytes, (uint64_t)18 << 30);
    assert_int_equal(t.jobs[0].request.compute_ppm, 250000);
    assert_int_equal(t.jobs[1].request.kind, REQUEST_CARDS);
    assert_int_equal(t.jobs[1].request.count, 2);
}

static void sacct_is_read_without_its_steps(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT;
    read_trace("JobID|User|Account|Submit|Start|End|Elapsed|Timelimit|State|AllocTRES\n"
               "41|alice|nlp|2026-11-01T10:00:00|2026-11-01T10:00:10|2026-11-02T11:00:10|1-01:00:00"
               "|2-00:00:00|COMPLETED|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G\n"
               "41.batch||nlp|2026-11-01T10:00:00|2026-11-01T10:00:10|2026-11-02T11:00:10|"
               "1-01:00:00||COMPLETED|cpu=8,mem=64G\n"
               "42|bob|cv|2026-11-01T10:00:01|Unknown|Unknown|00:00:00|UNLIMITED|CANCELLED by 0|\n"
               "43|bob|cv|2026-11-01T10:00:02|2026-11-01T10:00:05|2026-11-01T10:01:05|00:01:00|"
               "UNLIMITED|COMPLETED|cpu=1,gres/mig:2g.20gb=2\n"
               "44|bob|cv|2026-11-01T10:00:02|2026-11-01T10:00:05|2026-11-01T10:01:05|00:01:00|"
               "10:00|COMPLETED|cpu=1\n",
               &t);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.left_out, 2); /* never started, no GPU */
    assert_int_equal(t.jobs[0].id, 41);
    assert_int_equal(t.jobs[0].run_us, 25 * CLOCK_HOUR);
    assert_int_equal(t.jobs[0].limit_us, 48 * CLOCK_HOUR);
    assert_int_equal(t.jobs[0].request.count, 2);
    assert_string_equal(t.jobs[1].request.profile, "2g.20gb");
    assert_int_equal(t.jobs[1].request.count, 2);
    assert_int_equal(t.jobs[1].limit_us, 0);
}

#define JOB(id, more)                                                                              \
    "{\"id\": " id ", \"uid\": 7, \"user\": \"alice\", \"name\": \"x\", \"state\": \"completed\"," \
    "\"request\": {\"kind\": \"cards\", \"count\": 2}, \"submit_wall_us\": 5000000" more "}"
#define RAN ", \"start_wall_us\": 6000000, \"end_wall_us\": 9000000, \"account\": \"nlp\""

static void history_is_lines_a_list_or_an_answer(void **state)
{
    (void)state;
    static const char *const forms[] = {
        JOB("7", RAN) "\n" JOB("8", "") "\n",
        "[" JOB("7", RAN) "," JOB("8", "") "]",
        "{\"jobs\": [" JOB("7", RAN) "," JOB("8", "") "]}\n",
    };
    for (size_t i = 0; i < 3; i++) {
        AUTO(trace) struct trace t = TRACE_INIT;
        read_trace(forms[i], &t);
        assert_int_equal(t.count, 1);
        assert_int_equal(t.left_out, 1);
        assert_int_equal(t.jobs[0].id, 7);
        assert_int_equal(t.jobs[0].run_us, 3 * CLOCK_SECOND);
        assert_int_equal(t.jobs[0].wait_us, CLOCK_SECOND);
        assert_string_equal(t.accounts.words[t.jobs[0].account], "nlp");
    }
}

static void what_cannot_be_read_is_refused_with_its_line(void **state)
{
    (void)state;
    refused("1 2 3\n",
            "t:1: not three numbers and an account: submit time and duration in seconds, cards, "
            "account");
    refused("0 60 1 nlp\n0 60 nlp 1\n",
            "t:2: not three numbers and an account: submit time and duration in seconds, cards, "
            "account");
    refused("a,b\n1,2\n", "t:1: no column 'submitted' (or submit, submit_time)");
    refused("submitted,started\n1,2\n", "t:1: neither a column 'run' nor 'started' and 'ended'");
    refused("submitted,run\n1,2\n\nsoon,3\n", "t:4: submitted 'soon' is no time");
    refused("submitted,run,gpus\n1,2,many\n", "t:2: gpus 'many' is no number");
    refused("submitted,run,gpus\n1,2,0\n",
            "t: none of its 1 jobs ran on a card; nothing to replay");
    refused("{\"jobs\": [{\"id\": 1}]}\n", "t: job 1 of the list: job: field 'state' is missing");
    refused("", "t: no job in it; a trace is JSON, CSV with names in its first line, what sacct -P "
                "prints, or lines of submit time, duration, cards and account");
}

static void guessed_limits_lie_above_what_ran(void **state)
{
    (void)state;
    AUTO(trace) struct trace t = TRACE_INIT, same = TRACE_INIT;
    read_trace("1 100 1 1\n2 100 1 1\n3 100 1 1\n", &t);
    read_trace("1 100 1 1\n2 100 1 1\n3 100 1 1\n", &same);
    trace_guess_limits(&t, 4, 7);
    trace_guess_limits(&same, 4, 7);
    for (size_t i = 0; i < t.count; i++) {
        assert_true(t.jobs[i].limit_us > t.jobs[i].run_us);
        assert_true(t.jobs[i].limit_us <= 4 * t.jobs[i].run_us + 1);
        assert_int_equal(t.jobs[i].limit_us, same.jobs[i].limit_us);
    }
    assert_true(t.jobs[0].limit_us != t.jobs[1].limit_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_numbers_are_a_plain_trace),
        cmocka_unit_test(a_plain_trace_may_call_accounts_by_name),
        cmocka_unit_test(csv_has_names_in_any_order),
        cmocka_unit_test(csv_tells_who_was_attached),
        cmocka_unit_test(csv_says_what_is_needed_of_the_machine),
        cmocka_unit_test(sacct_says_it_of_the_whole_job),
        cmocka_unit_test(csv_asks_for_memory_too),
        cmocka_unit_test(sacct_is_read_without_its_steps),
        cmocka_unit_test(history_is_lines_a_list_or_an_answer),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_its_line),
        cmocka_unit_test(guessed_limits_lie_above_what_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
