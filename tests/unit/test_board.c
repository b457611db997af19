#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "geometry.h"

static void profiles_are_found_by_id_and_by_name(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_string_equal(board_profile_by_id(b, 9)->name, "3g.40gb");
    assert_null(board_profile_by_id(b, 21));
    assert_int_equal(board_profile_by_name(b, "1g.10gb")->id, 19);
    assert_int_equal(board_profile_by_name(b, "1g.10gb+me")->id, 20);
    assert_int_equal(board_profile_by_name(b, "MIG 2G.20GB")->id, 14);
    assert_null(board_profile_by_name(b, "1g.5gb"));
    assert_null(board_profile_by_name(b, ""));
}

static void only_another_spelling_is_the_same_name(void **state)
{
    (void)state;
    assert_true(profile_name_matches("2g.20gb", "2g.20gb"));
    assert_true(profile_name_matches("2g.20gb", "MIG 2g.20gb"));
    assert_true(profile_name_matches("2g.20gb", "mig 2G.20GB"));
    assert_true(profile_name_matches("1g.10gb+me", "1G.10GB+ME"));
    assert_false(profile_name_matches("1g.10gb", "1g.10gb+me"));
    assert_false(profile_name_matches("1g.10gb+me", "1g.10gb"));
    assert_false(profile_name_matches("1g.24gb-me", "1g.24gb+me"));
    assert_false(profile_name_matches("1g.10gb", "1g.5gb"));
    assert_false(profile_name_matches("1g.10gb", "1g"));
    assert_false(profile_name_matches("2g.20gb", "MIG MIG 2g.20gb"));
    assert_false(profile_name_matches("2g.20gb", " 2g.20gb"));
}

static void the_full_compute_instance_has_all_slices(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    const struct profile *p = board_profile_by_name(b, "3g.40gb");
    assert_string_equal(profile_full_ci(p)->name, "3g.40gb");
    assert_int_equal(profile_full_ci(p)->id, 2);
    assert_string_equal(profile_ci_by_id(p, 0)->name, "1c.3g.40gb");
    assert_null(profile_ci_by_id(p, 4));
    struct profile empty = { .slices = 1 };
    assert_null(profile_full_ci(&empty));
}

static void a_profile_starts_where_it_may(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    const struct profile *p = board_profile_by_name(b, "2g.20gb");
    for (uint32_t start = 0; start < BOARD_UNITS_MAX; start++)
        assert_int_equal(profile_starts_at(p, start), start == 0 || start == 2 || start == 4);
}

static void assert_profiles(struct board *b, const char *sentence)
{
    auto_free char *s = board_profiles_sentence(b);
    assert_string_equal(s, sentence);
}

static void refusals_end_with_what_the_board_has(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    assert_profiles(b, "A100-SXM4-80GB has 1g.10gb, 1g.10gb+me, 1g.20gb, 2g.20gb, 3g.40gb, "
                       "4g.40gb, 7g.80gb");
    b->profile_count = 0;
    assert_profiles(b, "A100-SXM4-80GB does not tell its profiles while MIG is off");
    b->activation = MIG_NONE;
    assert_profiles(b, "A100-SXM4-80GB cannot be cut (no MIG)");
    memcpy(b->name, "Quadro", sizeof "Quadro");
    assert_string_equal(board_short_name(b), "Quadro");
    b->name[0] = '\0';
    b->profile_count = 0;
    assert_profiles(b, "A card that does not answer does not tell its profiles");
}

static void assert_parts(struct board *b, const char *name, uint32_t compute, uint32_t mem)
{
    const struct profile *p = board_profile_by_name(b, name);
    assert_int_equal(profile_compute_ppm(b, p), compute);
    assert_int_equal(profile_mem_ppm(b, p), mem);
}

static void parts_are_of_the_whole_card(void **state)
{
    (void)state;
    auto_free struct board *a100 = board_a100_80gb();
    assert_parts(a100, "1g.10gb", 142857, 125000);
    assert_parts(a100, "1g.20gb", 142857, 250000);
    assert_parts(a100, "3g.40gb", 428571, 500000);
    assert_parts(a100, "7g.80gb", 1000000, 1000000);
    auto_free struct board *a30 = board_a30();
    assert_parts(a30, "1g.6gb", 250000, 250000);
    assert_parts(a30, "4g.24gb", 1000000, 1000000);
    auto_free struct board *rtx = board_rtx_pro_6000();
    assert_parts(rtx, "1g.24gb", 250000, 250000);
    assert_parts(rtx, "2g.48gb+gfx", 500000, 500000);
    assert_parts(rtx, "4g.96gb", 1000000, 1000000);
}

/* Whatever fits on a card together is never more than the card. */
static void parts_side_by_side_are_at_most_a_card(void **state)
{
    (void)state;
    struct board *(*const boards[])(void) = { board_a100_80gb, board_a30, board_rtx_pro_6000 };
    for (size_t k = 0; k < 3; k++) {
        auto_free struct board *b = boards[k]();
        for (uint32_t i = 0; i < b->profile_count; i++) {
            const struct profile *p = &b->profiles[i];
            assert_true(profile_compute_ppm(b, p) * p->max <= 1000000);
            assert_true(profile_mem_ppm(b, p) * p->max <= 1000000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_are_found_by_id_and_by_name),
        cmocka_unit_test(only_another_spelling_is_the_same_name),
        cmocka_unit_test(the_full_compute_instance_has_all_slices),
        cmocka_unit_test(a_profile_starts_where_it_may),
        cmocka_unit_test(refusals_end_with_what_the_board_has),
        cmocka_unit_test(parts_are_of_the_whole_card),
        cmocka_unit_test(parts_side_by_side_are_at_most_a_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
