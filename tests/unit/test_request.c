#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/cleanup.h"
#include "geometry.h"
#include "model/request.h"

/* "1g.10gb~ 2g.20gb whole": best first, with "~" where it was rounded. */
static void assert_fits(const struct board *b, struct request r, const char *list)
{
    struct fit fits[BOARD_PROFILES_MAX + 1];
    AUTO(text) struct text t = TEXT_INIT;
    size_t n = request_fits(&r, b, fits);
    for (size_t i = 0; i < n; i++)
        text_addf(&t, "%s%s%s", i ? " " : "", fits[i].profile ? fits[i].profile->name : "whole",
                  fits[i].rounded ? "~" : "");
    assert_string_equal(t.buf, list);
}

static struct request need(uint64_t mem_bytes)
{
    return (struct request){ .kind = REQUEST_NEED, .count = 1, .mem_bytes = mem_bytes };
}

static struct request exactly(uint64_t mem_bytes)
{
    struct request r = need(mem_bytes);
    r.exact = true;
    return r;
}

/* `fraction` as typed after --gpu-compute. */
static struct request computing(uint64_t mem_bytes, const char *fraction)
{
    struct err e = ERR_INIT;
    struct request r = need(mem_bytes);
    if (request_parse_fraction(fraction, "--gpu-compute", &r.compute_ppm, &e) < 0)
        fail_msg("%s", e.text);
    return r;
}

static struct request slices(const char *s)
{
    struct err e = ERR_INIT;
    struct request r = { .kind = REQUEST_NOTHING };
    if (request_parse_slice(s, &r, &e) < 0)
        fail_msg("%s", e.text);
    return r;
}

static void a_need_takes_the_smallest_that_is_enough(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_fits(b, need(9 * GIB),
                "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, need(18 * GIB), "1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, need(39 * GIB), "3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, need(45 * GIB), "7g.80gb whole");
    assert_fits(b, need(90 * GIB), "");
}

static void a_round_size_takes_the_profile_of_that_name(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_fits(b, need(10 * GIB),
                "1g.10gb~ 1g.10gb+me~ 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, need(20 * GIB), "1g.20gb~ 2g.20gb~ 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, need(40 * GIB), "3g.40gb~ 4g.40gb~ 7g.80gb whole");
    assert_fits(b, need(80 * GIB), "7g.80gb~ whole");
}

static void exactly_means_exactly(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_fits(b, exactly(10 * GIB), "1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, exactly(9728 * MIB),
                "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, exactly(40192 * MIB + 1), "7g.80gb whole");
    assert_fits(b, exactly(80 * GIB), "whole");
    assert_fits(b, exactly(80 * GIB + 1), "");
}

static void the_slack_is_six_per_cent_and_no_byte_more(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    uint64_t has = 40192 * MIB;
    uint64_t most = has / 100 * 106;
    assert_true(most / MIB == 42603); /* 6 % above 40192 MiB */
    assert_fits(b, need(has / 100 * 100 + has / 100 * 6), "3g.40gb~ 4g.40gb~ 7g.80gb whole");
    assert_fits(b, need(42604 * MIB), "7g.80gb whole");
}

static void compute_is_a_need_too(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_fits(b, computing(0, "1/7"),
                "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, computing(0, "0.25"), "2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, computing(18 * GIB, "20%"), "2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, computing(18 * GIB, "0.43"), "4g.40gb 7g.80gb whole");
    assert_fits(b, computing(0, "0.6"), "7g.80gb whole");
    assert_fits(b, computing(0, "1"), "7g.80gb whole");
}

/* 4/7 is 571428.57 ppm: however it is rounded, four slices of seven are that much. */
static void a_fraction_of_seven_takes_just_as_many_slices(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_fits(b, computing(0, "2/7"), "2g.20gb 3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, computing(0, "3/7"), "3g.40gb 4g.40gb 7g.80gb whole");
    assert_fits(b, computing(0, "4/7"), "4g.40gb 7g.80gb whole");
    assert_fits(b, computing(0, "7/7"), "7g.80gb whole");
}

static void an_a30_has_four_of_each(void **state)
{
    (void)state;
    auto_free struct board *b = board_a30();
    assert_fits(b, need(5 * GIB), "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb whole");
    assert_fits(b, need(6 * GIB), "1g.6gb~ 1g.6gb+me~ 2g.12gb 2g.12gb+me 4g.24gb whole");
    assert_fits(b, exactly(6 * GIB), "2g.12gb 2g.12gb+me 4g.24gb whole");
    assert_fits(b, computing(0, "1/2"), "2g.12gb 2g.12gb+me 4g.24gb whole");
    assert_fits(b, computing(0, "51%"), "4g.24gb whole");
    assert_fits(b, need(24 * GIB), "4g.24gb~ whole");
}

/* The plain profile first: it has its share of the media engines, and no more. */
static void an_rtx_pro_6000_has_twelve_units(void **state)
{
    (void)state;
    auto_free struct board *b = board_rtx_pro_6000();
    assert_fits(b, need(20 * GIB),
                "1g.24gb 1g.24gb+me 1g.24gb+gfx 1g.24gb+me.all 1g.24gb-me 2g.48gb 2g.48gb+gfx "
                "2g.48gb+me.all 2g.48gb-me 4g.96gb 4g.96gb+gfx whole");
    assert_fits(b, need(48 * GIB),
                "2g.48gb~ 2g.48gb+gfx~ 2g.48gb+me.all~ 2g.48gb-me~ 4g.96gb 4g.96gb+gfx whole");
    assert_fits(b, computing(0, "3/4"), "4g.96gb 4g.96gb+gfx whole");
}

static void whole_cards_are_whole_unless_7g_will_do(void **state)
{
    (void)state;
    struct request r = { .kind = REQUEST_CARDS, .count = 2 };
    auto_free struct board *a100 = board_a100_80gb();
    auto_free struct board *a30 = board_a30();
    auto_free struct board *rtx = board_rtx_pro_6000();
    assert_fits(a100, r, "whole");
    r.or_7g = true;
    assert_fits(a100, r, "7g.80gb whole");
    assert_fits(a30, r, "4g.24gb whole");
    assert_fits(rtx, r, "4g.96gb 4g.96gb+gfx whole");
}

static void a_profile_is_met_by_itself_alone(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_fits(b, slices("2g.20gb"), "2g.20gb");
    assert_fits(b, slices("MIG 1G.10GB+ME"), "1g.10gb+me");
    assert_fits(b, slices("1g.5gb"), "");
    assert_fits(b, (struct request){ .kind = REQUEST_NOTHING }, "");
}

static void a_card_that_cannot_be_cut_serves_what_a_whole_card_can(void **state)
{
    (void)state;
    struct board *b = mem_new(sizeof *b);
    auto_free struct board *owned = b;
    owned->mem_bytes = 24564 * MIB; /* an RTX 4090 */
    assert_fits(b, need(20 * GIB), "whole");
    assert_fits(b, need(24 * GIB), "whole~");
    assert_fits(b, computing(0, "1"), "whole");
    assert_fits(b, need(40 * GIB), "");
    assert_fits(b, slices("1g.10gb"), "");
}

static void a_slice_is_a_profile_and_how_many(void **state)
{
    (void)state;
    assert_int_equal(slices("2g.20gb").kind, REQUEST_SLICES);
    assert_int_equal(slices("2g.20gb").count, 1);
    assert_int_equal(slices("1g.10gb:4").count, 4);
    assert_string_equal(slices("1g.10gb:4").profile, "1g.10gb");
    assert_int_equal(slices("1g.10gb+me:128").count, REQUEST_TASKS_MAX);
}

static void what_is_no_slice_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *sentence;
    } bad[] = {
        { "", -EINVAL, "--slice: '' is no profile; write it like 2g.20gb or 1g.10gb:4" },
        { ":4", -EINVAL, "--slice: ':4' is no profile; write it like 2g.20gb or 1g.10gb:4" },
        { "2g.20gb:", -EINVAL, "--slice: '' is not a whole number from 1 to 128" },
        { "2g.20gb:x", -EINVAL, "--slice: 'x' is not a whole number from 1 to 128" },
        { "2g.20gb:0", -ERANGE, "--slice: 0 is out of range, 1 to 128 works" },
        { "2g.20gb:129", -ERANGE, "--slice: 129 is out of range, 1 to 128 works" },
        { "12345678901234567890123456789012", -EINVAL,
          "--slice: '12345678901234567890123456789012' is no profile; write it like 2g.20gb or "
          "1g.10gb:4" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        struct request r = { .kind = REQUEST_CARDS, .count = 2 };
        assert_int_equal(request_parse_slice(bad[i].text, &r, &e), bad[i].code);
        assert_string_equal(e.text, bad[i].sentence);
        assert_int_equal(r.kind, REQUEST_CARDS);
        assert_int_equal(r.count, 2);
    }
}

static void a_fraction_is_written_in_three_ways(void **state)
{
    (void)state;
    assert_int_equal(computing(0, "0.25").compute_ppm, 250000);
    assert_int_equal(computing(0, "25%").compute_ppm, 250000);
    assert_int_equal(computing(0, "1/4").compute_ppm, 250000);
    assert_int_equal(computing(0, "1").compute_ppm, PPM);
    assert_int_equal(computing(0, "100%").compute_ppm, PPM);
    assert_int_equal(computing(0, "0.57").compute_ppm, 570000);
    assert_int_equal(computing(0, "0.0000001").compute_ppm, 1);
}

static void what_is_no_fraction_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = { "",     "0",    "-0.5", "1.5",  "101%", "1/0",  "3/2",
                                       "x",    "nan",  "inf",  "1/",   "/4",   "25%%", "%",
                                       "1/4%", "0.5x", "0%",   "1/-4", "-1/4", "1/inf" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        AUTO(text) struct text sentence = TEXT_INIT;
        uint32_t ppm = 4711;
        text_addf(&sentence,
                  "--gpu-compute: '%s' is no part of a card; write it like 0.25, 25%% or 1/4",
                  bad[i]);
        if (request_parse_fraction(bad[i], "--gpu-compute", &ppm, &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(e.code, -EINVAL);
        assert_string_equal(e.text, sentence.buf);
        assert_int_equal(ppm, 4711);
    }
}

static void requests_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
    static const struct {
        struct request r;
        int code;
        const char *sentence;
    } bad[] = {
        { { .kind = REQUEST_CARDS, .count = 0 },
          -ERANGE,
          "a job may ask for 1 to 128 cards or slices, not 0" },
        { { .kind = REQUEST_CARDS, .count = 129 },
          -ERANGE,
          "a job may ask for 1 to 128 cards or slices, not 129" },
        { { .kind = REQUEST_SLICES, .count = 1 },
          -EINVAL,
          "a slice needs a profile, as in --slice 2g.20gb" },
        { { .kind = REQUEST_SLICES, .count = 1, .profile = "2g\x1b[2J" },
          -EINVAL,
          "the profile has characters that are no printable UTF-8" },
        { { .kind = REQUEST_NEED, .count = 1 },
          -EINVAL,
          "a need must say how much, as in --gpu-mem 18G" },
        { { .kind = REQUEST_NEED, .count = 1, .compute_ppm = PPM + 1 },
          -ERANGE,
          "--gpu-compute is a part of one card, at most 1" },
        { { .kind = REQUEST_NEED, .count = 1, .mem_bytes = 1, .or_7g = true },
          -EINVAL,
          "--or-7g goes with --gpus" },
        { { .kind = REQUEST_CARDS, .count = 1, .exact = true },
          -EINVAL,
          "--exact goes with --gpu-mem" },
        { { .kind = REQUEST_CARDS, .count = 2, .spread = true },
          -EINVAL,
          "--spread is for slices; whole cards are different cards anyway" },
        { { .kind = REQUEST_CARDS, .count = 1, .profile = "2g.20gb" },
          -EINVAL,
          "a profile goes with --slice alone" },
        { { .kind = REQUEST_SLICES, .count = 1, .profile = "2g.20gb", .mem_bytes = 1 },
          -EINVAL,
          "--gpu-mem and --gpu-compute do not go with --gpus or --slice" },
        { { .kind = REQUEST_CARDS, .count = 1, .compute_ppm = 1 },
          -EINVAL,
          "--gpu-mem and --gpu-compute do not go with --gpus or --slice" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        assert_int_equal(request_check(&bad[i].r, &e), bad[i].code);
        assert_string_equal(e.text, bad[i].sentence);
    }
}

static void requests_in_order_are_let_through(void **state)
{
    (void)state;
    static const struct request good[] = {
        { .kind = REQUEST_NOTHING },
        { .kind = REQUEST_CARDS, .count = 128, .or_7g = true },
        { .kind = REQUEST_SLICES, .count = 4, .profile = "1g.10gb", .spread = true },
        { .kind = REQUEST_NEED, .count = 2, .mem_bytes = 18 * GIB, .exact = true },
        { .kind = REQUEST_NEED, .count = 1, .compute_ppm = PPM, .spread = true },
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct err e = ERR_INIT;
        if (request_check(&good[i], &e) < 0)
            fail_msg("%s", e.text);
    }
}

static void assert_shown(struct request r, const char *shown)
{
    AUTO(text) struct text t = TEXT_INIT;
    request_add(&t, &r);
    assert_string_equal(t.buf, shown);
}

static void requests_are_shown_in_words(void **state)
{
    (void)state;
    assert_shown((struct request){ .kind = REQUEST_NOTHING }, "no GPU");
    assert_shown((struct request){ .kind = REQUEST_CARDS, .count = 1 }, "1 whole card");
    assert_shown((struct request){ .kind = REQUEST_CARDS, .count = 2 }, "2 whole cards");
    assert_shown(slices("2g.20gb"), "2g.20gb");
    assert_shown(slices("1g.10gb:3"), "3 x 1g.10gb");
    assert_shown(need(18 * GIB), "18.0 GiB");
    assert_shown(computing(18 * GIB, "0.25"), "18.0 GiB and 25% compute");
    assert_shown(computing(0, "1/7"), "14.3% compute");
}

/* Requests that differ in one field only. */
static void every_field_makes_another_shape(void **state)
{
    (void)state;
    static const struct request base = { .kind = REQUEST_NEED, .count = 1, .mem_bytes = GIB };
    struct request all[9];
    for (size_t i = 0; i < 9; i++)
        all[i] = base;
    all[1].kind = REQUEST_SLICES;
    all[2].count = 2;
    memcpy(all[3].profile, "2g", sizeof "2g");
    all[4].mem_bytes = 2 * GIB;
    all[5].compute_ppm = 1;
    all[6].or_7g = true;
    all[7].spread = true;
    all[8].exact = true;
    for (size_t i = 0; i < 9; i++)
        for (size_t k = 0; k < 9; k++) {
            assert_int_equal(request_same(&all[i], &all[k]), i == k);
            assert_int_equal(request_hash(&all[i]) == request_hash(&all[k]), i == k);
        }
}

static void whole_cards_are_one_task(void **state)
{
    (void)state;
    struct request cards = { .kind = REQUEST_CARDS, .count = 8 };
    struct request none = { .kind = REQUEST_NOTHING };
    struct request four = slices("1g.10gb:4");
    struct request three = need(GIB);
    three.count = 3;
    assert_int_equal(request_tasks(&cards), 1);
    assert_int_equal(request_tasks(&none), 1);
    assert_int_equal(request_tasks(&four), 4);
    assert_int_equal(request_tasks(&three), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_need_takes_the_smallest_that_is_enough),
        cmocka_unit_test(a_round_size_takes_the_profile_of_that_name),
        cmocka_unit_test(exactly_means_exactly),
        cmocka_unit_test(the_slack_is_six_per_cent_and_no_byte_more),
        cmocka_unit_test(compute_is_a_need_too),
        cmocka_unit_test(a_fraction_of_seven_takes_just_as_many_slices),
        cmocka_unit_test(an_a30_has_four_of_each),
        cmocka_unit_test(an_rtx_pro_6000_has_twelve_units),
        cmocka_unit_test(whole_cards_are_whole_unless_7g_will_do),
        cmocka_unit_test(a_profile_is_met_by_itself_alone),
        cmocka_unit_test(a_card_that_cannot_be_cut_serves_what_a_whole_card_can),
        cmocka_unit_test(a_slice_is_a_profile_and_how_many),
        cmocka_unit_test(what_is_no_slice_is_refused),
        cmocka_unit_test(a_fraction_is_written_in_three_ways),
        cmocka_unit_test(what_is_no_fraction_is_refused),
        cmocka_unit_test(requests_that_contradict_themselves_are_refused),
        cmocka_unit_test(requests_in_order_are_let_through),
        cmocka_unit_test(requests_are_shown_in_words),
        cmocka_unit_test(every_field_makes_another_shape),
        cmocka_unit_test(whole_cards_are_one_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
