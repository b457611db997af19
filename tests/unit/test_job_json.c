#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>

#include <stdlib.h>

#include "base/cleanup.h"
#include "dice.h"
#include "model/job_json.h"

#define ROUNDS 2000

/* Written out and parsed again, as it crosses a socket or lies in a file. */
static json_t *over_the_wire(json_t *take_json)
{
    struct err e = ERR_INIT;
    json_t *again = NULL;
    char *s = json_dumps(take_json, JSON_COMPACT);
    assert_non_null(s);
    if (json_parse(s, strlen(s), "wire", &again, &e) < 0)
        fail_msg("%s: %s", e.text, s);
    free(s);
    json_decref(take_json);
    return again;
}

static struct request random_request(struct dice *d)
{
    struct request r = { .kind = (enum request_kind)dice_below(d, 4), .count = 1 };
    r.count = 1 + (uint32_t)dice_below(d, REQUEST_TASKS_MAX);
    if (r.kind == REQUEST_SLICES)
        memcpy(r.profile, "1g.24gb+me.all", sizeof "1g.24gb+me.all");
    if (r.kind == REQUEST_NEED) {
        r.mem_bytes = dice_bool(d) ? INT64_MAX : 1 + dice_below(d, UINT64_C(1) << 40);
        r.compute_ppm = (uint32_t)dice_below(d, PPM + 1);
        r.exact = dice_bool(d);
    }
    r.or_7g = r.kind == REQUEST_CARDS && dice_bool(d);
    r.spread = (r.kind == REQUEST_SLICES || r.kind == REQUEST_NEED) && dice_bool(d);
    return r;
}

static void requests_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(31);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        struct request r = random_request(&d);
        struct request again = { .kind = REQUEST_NOTHING };
        auto_json json_t *j = over_the_wire(request_to_json(&r));
        if (request_from_json(j, &again, &e) < 0)
            fail_msg("%s", e.text);
        assert_true(request_same(&r, &again));
    }
}

static void placed_random(struct placed *p, struct dice *d)
{
    dice_text(d, p->card_uuid, sizeof p->card_uuid);
    p->ordinal = dice_u32(d);
    p->task = (uint32_t)dice_below(d, REQUEST_TASKS_MAX + 1);
    p->compute_ppm = (uint32_t)dice_below(d, PPM + 1);
    p->mem_ppm = (uint32_t)dice_below(d, PPM + 1);
    dice_text(d, p->uuid, sizeof p->uuid);
    p->whole = dice_bool(d);
    if (p->whole)
        return;
    p->profile_id = dice_u32(d);
    dice_text(d, p->profile, sizeof p->profile);
    p->start = (uint32_t)dice_below(d, BOARD_UNITS_MAX + 1);
    p->units = (uint32_t)dice_below(d, BOARD_UNITS_MAX + 1);
    if (dice_bool(d)) { /* cut already */
        p->gi = (uint32_t)dice_below(d, 15);
        p->ci = (uint32_t)dice_below(d, 8);
        p->generation = dice_bool(d) ? INT64_MAX : dice_below(d, 1000);
    }
}

static void assert_same_placed(const struct placed *a, const struct placed *b)
{
    assert_string_equal(a->card_uuid, b->card_uuid);
    assert_int_equal(a->ordinal, b->ordinal);
    assert_int_equal(a->task, b->task);
    assert_int_equal(a->whole, b->whole);
    assert_int_equal(a->profile_id, b->profile_id);
    assert_string_equal(a->profile, b->profile);
    assert_int_equal(a->start, b->start);
    assert_int_equal(a->units, b->units);
    assert_int_equal(a->gi, b->gi);
    assert_int_equal(a->ci, b->ci);
    assert_int_equal(a->generation, b->generation);
    assert_string_equal(a->uuid, b->uuid);
    assert_int_equal(a->compute_ppm, b->compute_ppm);
    assert_int_equal(a->mem_ppm, b->mem_ppm);
}

static void places_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(32);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        struct place p = { .items = NULL };
        struct place again;
        for (uint64_t n = dice_below(&d, 5); n > 0; n--)
            placed_random(place_add(&p), &d);
        auto_json json_t *j = over_the_wire(place_to_json(&p));
        if (place_from_json(j, &again, &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(again.count, p.count);
        for (size_t k = 0; k < p.count; k++)
            assert_same_placed(&p.items[k], &again.items[k]);
        place_done(&p);
        place_done(&again);
    }
}

static void what_is_not_cut_yet_has_null_for_its_ids(void **state)
{
    (void)state;
    struct place p = { .items = NULL };
    (void)place_add(&p);
    auto_json json_t *j = place_to_json(&p);
    json_t *item = json_array_get(j, 0);
    assert_true(json_is_null(json_object_get(item, "gi")));
    assert_true(json_is_null(json_object_get(item, "ci")));
    place_done(&p);
}

static void exits_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(33);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        struct job_exit again = { .kind = EXIT_NONE };
        struct job_exit x = {
            .kind = (enum exit_kind)dice_below(&d, EXIT_INTERRUPTED + 1),
            .value = (int)dice_below(&d, 65),
            .task = (int)dice_below(&d, REQUEST_TASKS_MAX + 1),
            .ended_boot_us = (int64_t)dice_below(&d, INT64_MAX),
            .ended_wall_us = (int64_t)dice_roll(&d),
            .mem_peak_bytes = dice_bool(&d) ? INT64_MAX : dice_below(&d, 2),
            .cpu_us = dice_bool(&d) ? INT64_MAX : (int64_t)dice_below(&d, 2),
            .gpu_mem_peak_bytes = dice_bool(&d) ? INT64_MAX : dice_below(&d, 2),
            .gpu_load_known = dice_bool(&d),
        };
        x.gpu_load_percent = x.gpu_load_known ? (uint32_t)dice_below(&d, 101) : 0;
        dice_text(&d, x.text, sizeof x.text);
        auto_json json_t *j = over_the_wire(exit_to_json(&x));
        if (exit_from_json(j, &again, &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(again.kind, x.kind);
        assert_int_equal(again.value, x.value);
        assert_int_equal(again.task, x.task);
        assert_int_equal(again.ended_boot_us, x.ended_boot_us);
        assert_int_equal(again.ended_wall_us, x.ended_wall_us);
        assert_int_equal(again.mem_peak_bytes, x.mem_peak_bytes);
        assert_int_equal(again.cpu_us, x.cpu_us);
        assert_int_equal(again.gpu_mem_peak_bytes, x.gpu_mem_peak_bytes);
        assert_int_equal(again.gpu_load_known, x.gpu_load_known);
        assert_int_equal(again.gpu_load_percent, x.gpu_load_percent);
        assert_string_equal(again.text, x.text);
    }
}

static void what_an_exit_does_not_know_is_null(void **state)
{
    (void)state;
    struct job_exit x = { .kind = EXIT_LOST };
    auto_json json_t *j = exit_to_json(&x);
    assert_true(json_is_null(json_object_get(j, "mem_peak_bytes")));
    assert_true(json_is_null(json_object_get(j, "cpu_us")));
}

static char *random_text(struct dice *d, bool may_be_none)
{
    char buf[64];
    dice_text(d, buf, sizeof buf);
    return may_be_none && dice_bool(d) ? NULL : text_fmt("x%s", buf);
}

static char **random_strv(struct dice *d)
{
    char **v = NULL;
    for (uint64_t n = 1 + dice_below(d, 6); n > 0; n--) {
        auto_free char *s = random_text(d, false);
        strv_add(&v, s);
    }
    return v;
}

static void spec_random(struct job_spec *s, struct dice *d)
{
    *s = (struct job_spec){ .name = random_text(d, false), .account = random_text(d, true) };
    s->request = random_request(d);
    s->limit_us = dice_bool(d) ? TEXT_DURATION_MAX_US : (int64_t)dice_below(d, 1000);
    s->mem_bytes = dice_bool(d) ? 0 : JOB_MEM_MIN + dice_below(d, 1000);
    s->cpu_milli = (uint32_t)dice_below(d, 3000);
    if (dice_bool(d))
        s->warning = (struct job_warning){ .signal = SIGUSR1,
                                           .before_us = 1 + (int64_t)dice_below(d, 1000) };
    s->argv = random_strv(d);
    s->env = random_strv(d);
    s->cwd = random_text(d, false);
    s->output = random_text(d, true);
    s->script = random_text(d, true);
    s->bind = (enum job_bind)dice_below(d, 3);
    s->on_start = random_text(d, true);
    s->on_end = random_text(d, true);
    s->append = dice_bool(d);
    s->keep_going = dice_bool(d);
    s->requeue_on_fault = dice_bool(d);
    s->keep_on_hangup = dice_bool(d);
    s->attached = dice_bool(d);
    s->pty = dice_bool(d);
}

static void assert_same_strv(char *const *a, char *const *b)
{
    assert_int_equal(strv_count(a), strv_count(b));
    for (size_t i = 0; i < strv_count(a); i++)
        assert_string_equal(a[i], b[i]);
}

static void assert_same_spec(const struct job_spec *a, const struct job_spec *b)
{
    assert_true(text_same(a->name, b->name));
    assert_true(text_same(a->account, b->account));
    assert_true(request_same(&a->request, &b->request));
    assert_int_equal(a->limit_us, b->limit_us);
    assert_int_equal(a->mem_bytes, b->mem_bytes);
    assert_int_equal(a->cpu_milli, b->cpu_milli);
    assert_int_equal(a->warning.signal, b->warning.signal);
    assert_int_equal(a->warning.before_us, b->warning.before_us);
    assert_same_strv(a->argv, b->argv);
    assert_true(text_same(a->cwd, b->cwd));
    assert_true(text_same(a->output, b->output));
    assert_true(text_same(a->script, b->script));
    assert_int_equal(a->bind, b->bind);
    assert_true(text_same(a->on_start, b->on_start));
    assert_true(text_same(a->on_end, b->on_end));
    assert_int_equal(a->append, b->append);
    assert_int_equal(a->keep_going, b->keep_going);
    assert_int_equal(a->requeue_on_fault, b->requeue_on_fault);
    assert_int_equal(a->keep_on_hangup, b->keep_on_hangup);
    assert_int_equal(a->attached, b->attached);
    assert_int_equal(a->pty, b->pty);
}

static void jobs_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(34);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        struct job_spec s;
        struct job_spec again;
        spec_random(&s, &d);
        bool with_env = dice_bool(&d);
        auto_json json_t *j = over_the_wire(job_spec_to_json(&s, with_env));
        if (job_spec_from_json(j, &again, &e) < 0)
            fail_msg("%s", e.text);
        assert_same_spec(&s, &again);
        if (with_env)
            assert_same_strv(s.env, again.env);
        else
            assert_null(again.env);
        job_spec_done(&s);
        job_spec_done(&again);
    }
}

/* An environment that the check lets through is one that can be read. */
static void the_largest_environment_comes_back(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct job_spec again;
    struct job_spec s = { .name = text_dup("n"), .account = text_dup("a"), .cwd = text_dup("/") };
    strv_add(&s.argv, "x");
    size_t n = JOB_ENV_MAX / sizeof "A=";
    s.env = mem_new((n + 1) * sizeof *s.env);
    for (size_t i = 0; i < n; i++)
        s.env[i] = text_dup("A=");
    assert_int_equal(job_spec_check(&s, &e), 0);
    auto_json json_t *j = over_the_wire(job_spec_to_json(&s, true));
    if (job_spec_from_json(j, &again, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(strv_count(again.env), n);
    job_spec_done(&s);
    job_spec_done(&again);
}

#define JOB "\"name\": \"n\", \"cwd\": \"/\", \"argv\": [\"x\"]"

static void jobs_that_are_wrong_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *sentence;
    } table[] = {
        { "[]", "job: must be an object" },
        { "{}", "job: field 'name' is missing" },
        { "{\"name\": \"n\"}", "job: field 'cwd' is missing" },
        { "{\"name\": \"n\", \"cwd\": \"/\"}", "job: field 'argv' is missing" },
        { "{\"name\": 7}", "job: 'name' must be a string" },
        { "{" JOB ", \"tiem\": 7}", "job: there is no field 'tiem'" },
        { "{" JOB ", \"limit_us\": -1}", "job: 'limit_us' must be from 0 to 315619200000000" },
        { "{" JOB ", \"limit_us\": 9223372036854775807}",
          "job: 'limit_us' must be from 0 to 315619200000000" },
        { "{" JOB ", \"limit_us\": \"1h\"}", "job: 'limit_us' must be a whole number" },
        { "{" JOB ", \"env\": {}}", "job: 'env' must be a list" },
        { "{" JOB ", \"pty\": \"yes\"}", "job: 'pty' must be true or false" },
        { "{" JOB ", \"bind\": \"name\"}",
          "job: 'name' is no way to bind; it is uuid, index or none" },
        { "{" JOB ", \"request\": []}", "job: 'request' must be an object" },
        { "{" JOB ", \"request\": {}}", "request: field 'kind' is missing" },
        { "{" JOB ", \"request\": {\"kind\": \"gpu\"}}",
          "request: 'kind' is nothing, cards, slices or need, not 'gpu'" },
        { "{" JOB ", \"request\": {\"kind\": \"cards\", \"gpus\": 2}}",
          "request: there is no field 'gpus'" },
        { "{" JOB ", \"request\": {\"kind\": \"cards\", \"count\": 0}}",
          "a job may ask for 1 to 128 cards or slices, not 0" },
        { "{" JOB ", \"request\": {\"kind\": \"cards\", \"count\": 4294967296}}",
          "request: 'count' must be from 0 to 4294967295" },
        { "{" JOB ", \"request\": {\"kind\": \"cards\", \"profile\": \"2g.20gb\"}}",
          "a profile goes with --slice alone" },
        { "{" JOB ", \"request\": {\"kind\": \"slices\"}}",
          "a slice needs a profile, as in --slice 2g.20gb" },
        { "{" JOB ", \"request\": {\"kind\": \"need\", \"mem_bytes\": 1.5}}",
          "request: 'mem_bytes' must be a whole number" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct err e = ERR_INIT;
        struct job_spec s = { .pty = true };
        auto_json json_t *j = json_loads(table[i].json, 0, NULL);
        assert_non_null(j);
        assert_int_not_equal(job_spec_from_json(j, &s, &e), 0);
        assert_string_equal(e.text, table[i].sentence);
        assert_true(s.pty && !s.name); /* untouched */
    }
}

static void files_of_other_releases_are_read_openly(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct job_spec s;
    auto_json json_t *j = json_loads(
        "{" JOB ", \"colour\": 1, \"request\": {\"kind\": \"cards\", \"tint\": 2}}", 0, NULL);
    assert_int_equal(job_spec_from_json(j, &s, &e), -EINVAL);
    assert_int_equal(job_spec_from_json_open(j, &s, &e), 0);
    assert_int_equal(s.request.count, 1);
    job_spec_done(&s);
}

static void a_job_that_asks_for_nothing_is_one_task_without_gpu(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct job_spec s;
    struct request nothing;
    auto_json json_t *j = json_loads("{" JOB "}", 0, NULL);
    auto_json json_t *k = json_loads("{\"kind\": \"nothing\"}", 0, NULL);
    assert_int_equal(job_spec_from_json(j, &s, &e), 0);
    assert_int_equal(request_from_json(k, &nothing, &e), 0);
    assert_true(request_same(&s.request, &nothing)); /* one shape, not two */
    job_spec_done(&s);
}

static void places_and_exits_that_are_wrong_are_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct place p;
    struct job_exit x;
    auto_json json_t *object = json_object();
    auto_json json_t *no_card = json_loads("[{\"gpu\": 0}]", 0, NULL);
    auto_json json_t *too_much =
        json_loads("[{\"card_uuid\": \"GPU-a\", \"gpu\": 0, \"mem_ppm\": 1000001}]", 0, NULL);
    auto_json json_t *no_kind = json_loads("{\"kind\": \"asleep\"}", 0, NULL);
    assert_int_equal(place_from_json(object, &p, &e), -EINVAL);
    assert_string_equal(e.text, "place: must be a list");
    assert_int_equal(place_from_json(no_card, &p, &e), -EINVAL);
    assert_string_equal(e.text, "place: field 'card_uuid' is missing");
    assert_int_equal(place_from_json(too_much, &p, &e), -EINVAL);
    assert_string_equal(e.text, "place: 'mem_ppm' must be from 0 to 1000000");
    assert_int_equal(exit_from_json(object, &x, &e), -EINVAL);
    assert_string_equal(e.text, "exit: field 'kind' is missing");
    auto_json json_t *signal = json_loads("{\"kind\": \"signaled\", \"value\": 65}", 0, NULL);
    auto_json json_t *status = json_loads("{\"kind\": \"exited\", \"value\": 256}", 0, NULL);
    assert_int_equal(exit_from_json(signal, &x, &e), -EINVAL);
    assert_string_equal(e.text, "exit: 'value' must be from 0 to 64");
    assert_int_equal(exit_from_json(status, &x, &e), -EINVAL);
    assert_string_equal(e.text, "exit: 'value' must be from 0 to 255");
    assert_int_equal(exit_from_json(no_kind, &x, &e), -EINVAL);
    assert_string_equal(e.text, "exit: 'kind' is no way to end: asleep");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_come_back_as_they_were),
        cmocka_unit_test(places_come_back_as_they_were),
        cmocka_unit_test(what_is_not_cut_yet_has_null_for_its_ids),
        cmocka_unit_test(exits_come_back_as_they_were),
        cmocka_unit_test(what_an_exit_does_not_know_is_null),
        cmocka_unit_test(jobs_come_back_as_they_were),
        cmocka_unit_test(the_largest_environment_comes_back),
        cmocka_unit_test(jobs_that_are_wrong_are_refused),
        cmocka_unit_test(files_of_other_releases_are_read_openly),
        cmocka_unit_test(a_job_that_asks_for_nothing_is_one_task_without_gpu),
        cmocka_unit_test(places_and_exits_that_are_wrong_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
