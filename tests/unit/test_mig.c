#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#include "nvml/nvml.h"
#include "sim/mig.h"
#include "sim_boards.h"

struct bench {
    struct sim_board boards[1];
    struct sim_state st;
};

static struct bench *bench(struct sim_board board)
{
    struct bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->boards[0] = board;
    b->st.card_count = 1;
    (void)snprintf(b->st.driver_version, sizeof b->st.driver_version, "550.163.01");
    (void)snprintf(b->st.cards[0].uuid, sizeof b->st.cards[0].uuid,
                   "GPU-00000000-0000-5000-8000-000000000001");
    b->st.cards[0].mig_current = b->st.cards[0].mig_pending = true;
    return b;
}

static int create(struct bench *b, uint32_t id, uint32_t start, uint32_t *gi)
{
    return mig_gi_create(&b->st, b->boards, 0, id, start, gi);
}

static uint32_t created(struct bench *b, uint32_t id, uint32_t start)
{
    uint32_t gi = 99;
    assert_int_equal(create(b, id, start, &gi), 0);
    return gi;
}

static uint32_t remaining(struct bench *b, uint32_t id)
{
    return mig_gi_remaining(b->boards, &b->st.cards[0], sim_board_profile(b->boards, id), 550);
}

static void small_first_fails_in_the_end(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi;
    assert_int_equal(created(b, 19, MIG_ANYWHERE), 13);
    assert_int_equal(created(b, 19, MIG_ANYWHERE), 11);
    assert_int_equal(created(b, 14, MIG_ANYWHERE), 3);
    assert_int_equal(create(b, 9, MIG_ANYWHERE, &gi), -ENOSPC);
    free(b);
}

static void big_first_works(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    assert_int_equal(created(b, 9, MIG_ANYWHERE), 2);
    assert_int_equal(created(b, 14, MIG_ANYWHERE), 3);
    assert_int_equal(created(b, 19, MIG_ANYWHERE), 9);
    assert_int_equal(created(b, 19, MIG_ANYWHERE), 10);
    free(b);
}

static void ids_follow_from_the_placement(void **state)
{
    (void)state;
    struct sim_board a100 = sim_a100(), a30 = sim_a30(), rtx = sim_rtx_pro_6000();
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 0, 8 }), 0);
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 0, 4 }), 1);
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 4, 4 }), 2);
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 0, 2 }), 3);
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 6, 2 }), 6);
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 0, 1 }), 7);
    assert_int_equal(mig_gi_id(&a100, (struct sim_span){ 6, 1 }), 13);
    assert_int_equal(mig_gi_id(&a30, (struct sim_span){ 0, 4 }), 0);
    assert_int_equal(mig_gi_id(&a30, (struct sim_span){ 2, 2 }), 2);
    assert_int_equal(mig_gi_id(&a30, (struct sim_span){ 3, 1 }), 6);
    assert_int_equal(mig_gi_id(&rtx, (struct sim_span){ 0, 12 }), 0);
    assert_int_equal(mig_gi_id(&rtx, (struct sim_span){ 6, 6 }), 2);
    assert_int_equal(mig_gi_id(&rtx, (struct sim_span){ 9, 3 }), 6);
}

static void seven_slices_are_all_there_are(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi;
    assert_int_equal(remaining(b, 19), 7);
    for (uint32_t start = 0; start < 7; start++)
        assert_int_equal(created(b, 19, start), 7 + start);
    assert_int_equal(remaining(b, 19), 0);
    assert_int_equal(create(b, 19, MIG_ANYWHERE, &gi), -ENOSPC);
    assert_int_equal(create(b, 19, 7, &gi), -EINVAL);
    free(b);
}

static void four_and_three_share_a_card_since_510(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi;
    (void)snprintf(b->st.driver_version, sizeof b->st.driver_version, "470.256.02");
    assert_int_equal(created(b, 5, 0), 1);
    assert_int_equal(create(b, 9, 4, &gi), -ENOSPC);
    (void)snprintf(b->st.driver_version, sizeof b->st.driver_version, "510.39.01");
    assert_int_equal(created(b, 9, 4), 2);
    assert_int_equal(remaining(b, 19), 0);
    free(b);
}

static void two_threes_leave_no_memory_for_the_seventh_slice(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    (void)created(b, 9, 0);
    (void)created(b, 9, 4);
    assert_int_equal(remaining(b, 19), 0);
    free(b);
}

static void media_engines_are_there_once(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi;
    (void)created(b, 20, 0);
    assert_int_equal(create(b, 20, 1, &gi), -ENOSPC);
    assert_int_equal(remaining(b, 20), 0);
    assert_int_equal(remaining(b, 19), 6);
    free(b);
}

static void all_engines_in_one_leave_only_slices_without(void **state)
{
    (void)state;
    struct bench *b = bench(sim_rtx_pro_6000());
    uint32_t gi;
    (void)created(b, 65, 0);
    assert_int_equal(create(b, 14, 3, &gi), -ENOSPC);
    assert_int_equal(remaining(b, 67), 3);
    assert_int_equal(created(b, 67, 3), 4);
    free(b);
}

static void destroying_needs_it_empty(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi = created(b, 9, 4), ci;
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 2, MIG_ANYWHERE, &ci), 0);
    assert_int_equal(mig_gi_destroy(&b->st, 0, gi, false), -EBUSY);
    assert_int_equal(mig_ci_destroy(&b->st, 0, gi, ci, true), -EBUSY);
    assert_int_equal(mig_ci_destroy(&b->st, 0, gi, ci, false), 0);
    assert_int_equal(mig_gi_destroy(&b->st, 0, gi, true), -EBUSY);
    assert_int_equal(mig_gi_destroy(&b->st, 0, gi, false), 0);
    assert_int_equal(mig_gi_destroy(&b->st, 0, gi, false), -ENOENT);
    free(b);
}

static void a_cut_at_the_same_place_has_the_same_uuid_and_another_incarnation(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    struct sim_card *c = &b->st.cards[0];
    char first[48], again[48], other[48];
    uint32_t gi = created(b, 14, 2), ci;
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 1, MIG_ANYWHERE, &ci), 0);
    uint32_t before = c->gi[gi].ci[ci].incarnation;
    sim_mig_uuid(c, gi, ci, first);
    assert_int_equal(mig_ci_destroy(&b->st, 0, gi, ci, false), 0);
    assert_int_equal(mig_gi_destroy(&b->st, 0, gi, false), 0);
    assert_int_equal(created(b, 14, 2), gi);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 1, MIG_ANYWHERE, &ci), 0);
    sim_mig_uuid(c, gi, ci, again);
    sim_mig_uuid(c, gi + 1, ci, other);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    assert_int_not_equal(c->gi[gi].ci[ci].incarnation, before);
    assert_int_equal(strncmp(first, "MIG-", 4), 0);
    assert_int_equal(strlen(first), 40);
    free(b);
}

static void compute_instances_share_their_gpu_instance(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi = created(b, 0, MIG_ANYWHERE), ci;
    const struct sim_profile *p = sim_board_profile(b->boards, 0);
    const struct sim_gi *g = &b->st.cards[0].gi[gi];
    assert_int_equal(mig_ci_remaining(p, g, sim_ci_profile(p, 0)), 7);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 3, MIG_ANYWHERE, &ci), 0);
    assert_int_equal(ci, 0);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 2, MIG_ANYWHERE, &ci), 0);
    assert_int_equal(ci, 1);
    assert_int_equal(g->ci[1].span.start, 4);
    assert_int_equal(mig_ci_remaining(p, g, sim_ci_profile(p, 0)), 0);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 0, 4, &ci), -ENOSPC);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, gi, 0, 7, &ci), -EINVAL);
    assert_string_equal(mig_device_profile(b->boards, &b->st.cards[0], gi, 1), "3c.7g.80gb");
    free(b);
}

static void devices_are_counted_without_gaps(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi, ci;
    uint32_t high = created(b, 9, 4), low = created(b, 14, 0);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, low, 1, MIG_ANYWHERE, &ci), 0);
    assert_int_equal(mig_ci_create(&b->st, b->boards, 0, high, 2, MIG_ANYWHERE, &ci), 0);
    assert_true(mig_device_at(&b->st.cards[0], 0, &gi, &ci));
    assert_int_equal(gi, high);
    assert_true(mig_device_at(&b->st.cards[0], 1, &gi, &ci));
    assert_int_equal(gi, low);
    assert_false(mig_device_at(&b->st.cards[0], 2, &gi, &ci));
    assert_int_equal(mig_device_index(&b->st.cards[0], low, 0), 1);
    assert_int_equal(mig_device_index(&b->st.cards[0], 0, 0), MIG_ANYWHERE);
    free(b);
}

static void nothing_is_cut_with_mig_off(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi;
    b->st.cards[0].mig_current = false;
    assert_int_equal(create(b, 19, MIG_ANYWHERE, &gi), -EOPNOTSUPP);
    b->st.cards[0].mig_current = true;
    assert_int_equal(create(b, 77, MIG_ANYWHERE, &gi), -EINVAL);
    free(b);
}

static void a30_takes_four(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a30());
    assert_int_equal(created(b, 14, MIG_ANYWHERE), 6);
    assert_int_equal(created(b, 14, MIG_ANYWHERE), 5);
    assert_int_equal(remaining(b, 5), 1);
    assert_int_equal(created(b, 5, MIG_ANYWHERE), 1);
    assert_int_equal(remaining(b, 14), 0);
    free(b);
}

static void a_destroy_that_lies_leaves_the_instance(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    uint32_t gi = created(b, 9, 0);
    assert_int_equal(sim_fault_set(&b->st, 0, "destroy-lies", NULL), 0);
    assert_int_equal(mig_gi_destroy(&b->st, 0, gi, false), 0);
    assert_true(b->st.cards[0].gi[gi].used);
    free(b);
}

/* Whatever is made and unmade: spans never overlap, sums hold, remaining is the truth. */
static void random_cuts_keep_the_rules(void **state)
{
    (void)state;
    struct bench *b = bench(sim_a100());
    struct sim_card *c = &b->st.cards[0];
    static const uint32_t ids[] = { 19, 20, 15, 14, 9, 5, 0 };
    uint64_t seed = 20;
    for (int step = 0; step < 20000; step++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t dice = (uint32_t)(seed >> 33);
        uint32_t id = ids[dice % 7], gi;
        if (dice & 0x100) {
            uint32_t could = remaining(b, id);
            int rc = create(b, id, MIG_ANYWHERE, &gi);
            assert_int_equal(rc, could > 0 ? 0 : -ENOSPC);
        } else {
            (void)mig_gi_destroy(&b->st, 0, dice % SIM_GI_MAX, false);
        }
        uint32_t slices = 0, owner[8] = { 0 };
        for (gi = 0; gi < SIM_GI_MAX; gi++)
            for (uint32_t u = 0; c->gi[gi].used && u < c->gi[gi].span.size; u++) {
                assert_int_equal(owner[c->gi[gi].span.start + u]++, 0);
                slices += u == 0 ? b->boards->profiles[c->gi[gi].profile].slices : 0;
            }
        assert_true(slices <= 7);
    }
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_first_fails_in_the_end),
        cmocka_unit_test(big_first_works),
        cmocka_unit_test(ids_follow_from_the_placement),
        cmocka_unit_test(seven_slices_are_all_there_are),
        cmocka_unit_test(four_and_three_share_a_card_since_510),
        cmocka_unit_test(two_threes_leave_no_memory_for_the_seventh_slice),
        cmocka_unit_test(media_engines_are_there_once),
        cmocka_unit_test(all_engines_in_one_leave_only_slices_without),
        cmocka_unit_test(destroying_needs_it_empty),
        cmocka_unit_test(a_cut_at_the_same_place_has_the_same_uuid_and_another_incarnation),
        cmocka_unit_test(compute_instances_share_their_gpu_instance),
        cmocka_unit_test(devices_are_counted_without_gaps),
        cmocka_unit_test(nothing_is_cut_with_mig_off),
        cmocka_unit_test(a30_takes_four),
        cmocka_unit_test(a_destroy_that_lies_leaves_the_instance),
        cmocka_unit_test(random_cuts_keep_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
