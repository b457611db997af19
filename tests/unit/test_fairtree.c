#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "dice.h"
#include "sched/fairtree.h"

/* As a real Slurm printed them after some jobs: sshare -a -l, with FAIR_TREE. */
struct line {
    const char *name;
    int parent; /* line, or -1 */
    bool user;
    double shares, raw_usage;
    double norm_shares, effective_usage; /* from here on: the right answers, to six digits */
    double fair_share, level_fs;         /* fair_share of users alone */
};

static const struct line slurm[] = {
    { "root", -1, true, 1, 0, 0.009901, 0.000000, 1.000000, INFINITY },
    { "bio", -1, false, 30, 45, 0.297030, 0.166667, 0, 1.782178 },
    { "slu7", 1, true, 1, 0, 0.500000, 0.000000, 0.916667, INFINITY },
    { "slu8", 1, true, 1, 45, 0.500000, 1.000000, 0.833333, 0.500000 },
    { "chem", -1, false, 30, 75, 0.297030, 0.277778, 0, 1.069307 },
    { "slu5", 4, true, 1, 15, 0.333333, 0.200000, 0.750000, 1.666667 },
    { "slu6", 4, true, 2, 60, 0.666667, 0.800000, 0.666667, 0.833333 },
    { "lab", -1, false, 0, 0, 0.000000, 0.000000, 0, 0.000000 },
    { "lab root", 7, true, 1, 0, 0.333333, 0.000000, 0.250000, INFINITY },
    { "slalice", 7, true, 1, 0, 0.333333, 0.000000, 0.250000, INFINITY },
    { "slbob", 7, true, 1, 0, 0.333333, 0.000000, 0.250000, INFINITY },
    { "phys", -1, false, 40, 150, 0.396040, 0.555556, 0, 0.712871 },
    { "slu1", 11, true, 1, 60, 0.250000, 0.400000, 0.333333, 0.625000 },
    { "slu2", 11, true, 1, 30, 0.250000, 0.200000, 0.583333, 1.250000 },
    { "lab1", 11, false, 2, 60, 0.500000, 0.400000, 0, 1.250000 },
    { "slu3", 14, true, 3, 45, 0.750000, 0.750000, 0.583333, 1.000000 },
    { "slu4", 14, true, 1, 15, 0.250000, 0.250000, 0.583333, 1.000000 },
};
#define LINES (sizeof slurm / sizeof *slurm)

static void plant(struct fairtree_node *t, double times)
{
    for (size_t i = 0; i < LINES; i++)
        t[i] = (struct fairtree_node){
            .parent = slurm[i].parent < 0 ? FAIRTREE_TOP : (uint32_t)slurm[i].parent,
            .leaf = slurm[i].user,
            .shares = slurm[i].shares,
            .usage = slurm[i].user ? slurm[i].raw_usage * times : 0,
        };
}

static void assert_six_digits(const char *name, const char *what, double got, double right)
{
    if (got == right || fabs(got - right) < 5.1e-7)
        return;
    print_error("%s: %s is %.6f, Slurm says %.6f\n", name, what, got, right);
    fail();
}

static void a_real_slurms_tree_comes_out_to_six_digits(void **state)
{
    (void)state;
    struct fairtree_node t[LINES];
    plant(t, 1);
    fairtree_rank(t, LINES);
    for (size_t i = 0; i < LINES; i++) {
        const struct line *l = &slurm[i];
        assert_six_digits(l->name, "NormShares", t[i].norm_shares, l->norm_shares);
        assert_six_digits(l->name, "RawUsage", t[i].usage, l->raw_usage);
        assert_six_digits(l->name, "EffectvUsage", t[i].norm_usage, l->effective_usage);
        assert_six_digits(l->name, "LevelFS", t[i].level, l->level_fs);
        if (l->user)
            assert_six_digits(l->name, "FairShare", t[i].factor, l->fair_share);
    }
}

static void decay_that_is_the_same_for_all_changes_nothing(void **state)
{
    (void)state;
    struct fairtree_node now[LINES], later[LINES];
    plant(now, 1);
    plant(later, 0.375); /* a number that keeps ties exact */
    fairtree_rank(now, LINES);
    fairtree_rank(later, LINES);
    for (size_t i = 0; i < LINES; i++)
        assert_int_equal(now[i].rank, later[i].rank);
}

static void ranks_are_left_out_after_a_tie(void **state)
{
    (void)state;
    struct fairtree_node t[LINES];
    plant(t, 1);
    fairtree_rank(t, LINES);
    assert_int_equal(t[0].rank, 1);
    assert_int_equal(t[13].rank, 6); /* slu2, slu3 and slu4 */
    assert_int_equal(t[15].rank, 6);
    assert_int_equal(t[16].rank, 6);
    assert_int_equal(t[12].rank, 9); /* slu1 */
    assert_int_equal(t[14].rank, 6); /* lab1: as its best */
    assert_int_equal(t[11].rank, 6); /* phys */
    assert_int_equal(t[7].rank, 10); /* lab */
}

static void equal_accounts_have_their_users_ranked_together(void **state)
{
    (void)state;
    struct fairtree_node t[] = {
        { .parent = FAIRTREE_TOP, .shares = 1 },
        { .parent = FAIRTREE_TOP, .shares = 1 },
        { .parent = 0, .leaf = true, .shares = 1, .usage = 10 }, /* 0.5 / (10/40) = 2 */
        { .parent = 0, .leaf = true, .shares = 1, .usage = 30 }, /* 2/3 */
        { .parent = 1, .leaf = true, .shares = 1, .usage = 20 }, /* 1 */
        { .parent = 1, .leaf = true, .shares = 1, .usage = 20 }, /* 1 */
    };
    fairtree_rank(t, 6);
    assert_int_equal(t[2].rank, 1);
    assert_int_equal(t[4].rank, 2);
    assert_int_equal(t[5].rank, 2);
    assert_int_equal(t[3].rank, 4);
}

static void an_account_without_users_takes_no_rank(void **state)
{
    (void)state;
    struct fairtree_node t[] = {
        { .parent = FAIRTREE_TOP, .shares = 5 },
        { .parent = FAIRTREE_TOP, .leaf = true, .shares = 1, .usage = 7 },
    };
    fairtree_rank(t, 2);
    assert_int_equal(t[0].rank, 0);
    assert_int_equal(t[1].rank, 1);
    assert_six_digits("the only leaf", "FairShare", t[1].factor, 1);
    fairtree_rank(t, 0);
}

/* Who is below the account that had less goes first, whatever stands elsewhere. */
static void random_trees_keep_accounts_together(void **state)
{
    (void)state;
    struct dice d = { .state = 7 };
    for (int round = 0; round < 500; round++) {
        struct fairtree_node t[40];
        uint32_t first[4] = { 0 }, last[4] = { 0 };
        for (uint32_t i = 0; i < 40; i++)
            t[i] = (struct fairtree_node){ .parent = i < 4 ? FAIRTREE_TOP : i % 4,
                                           .leaf = i >= 4,
                                           .shares = 1 + (double)dice_below(&d, 1000),
                                           .usage = 1 + (double)dice_below(&d, 1000000) };
        fairtree_rank(t, 40);
        for (uint32_t i = 4; i < 40; i++) {
            uint32_t p = i % 4;
            first[p] = first[p] && first[p] < t[i].rank ? first[p] : t[i].rank;
            last[p] = last[p] > t[i].rank ? last[p] : t[i].rank;
        }
        for (uint32_t a = 0; a < 4; a++)
            for (uint32_t b = 0; b < 4; b++)
                if (t[a].level > t[b].level)
                    assert_true(last[a] < first[b]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_real_slurms_tree_comes_out_to_six_digits),
        cmocka_unit_test(decay_that_is_the_same_for_all_changes_nothing),
        cmocka_unit_test(ranks_are_left_out_after_a_tie),
        cmocka_unit_test(equal_accounts_have_their_users_ranked_together),
        cmocka_unit_test(an_account_without_users_takes_no_rank),
        cmocka_unit_test(random_trees_keep_accounts_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
