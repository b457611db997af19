#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "plan/connect.h"

#define CARDS_MAX 16

static struct card cards[CARDS_MAX];
static const struct card *list[CARDS_MAX];
static uint32_t costs[CARDS_MAX];

static void begin(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cards[i] = (struct card){ .ordinal = (uint32_t)i };
        snprintf(cards[i].bus_id, sizeof cards[i].bus_id, "00000000:%02zx:00.0", i);
        list[i] = &cards[i];
        costs[i] = 0;
    }
}

static void one_way(size_t a, size_t b, uint32_t nvlinks, uint32_t path)
{
    struct card_peer *p = &cards[a].peers[cards[a].peer_count++];
    *p = (struct card_peer){ .nvlinks = nvlinks, .path = path };
    memcpy(p->bus_id, cards[b].bus_id, sizeof p->bus_id);
}

static void join(size_t a, size_t b, uint32_t nvlinks, uint32_t path)
{
    one_way(a, b, nvlinks, path);
    one_way(b, a, nvlinks, path);
}

static void assert_two(size_t n, size_t first, size_t second)
{
    size_t chosen[2];
    connect_choose(list, costs, n, 2, chosen);
    assert_int_equal(chosen[0], first);
    assert_int_equal(chosen[1], second);
}

static void test_a_bridged_pair_is_taken_together(void **state)
{
    (void)state;
    begin(4);
    join(0, 1, 0, 10);
    join(0, 2, 12, 40);
    join(1, 3, 12, 40);
    assert_two(4, 0, 2);
    costs[0] = 1000; /* its MIG mode would have to be turned */
    assert_two(4, 1, 3);
}

static void test_without_nvlink_the_shortest_path_counts(void **state)
{
    (void)state;
    begin(4);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = i + 1; k < 4; k++)
            join(i, k, 0, i == 2 && k == 3 ? 10 : 50);
    assert_two(4, 2, 3);
}

static void test_on_switches_all_are_equal_and_the_cheapest_go(void **state)
{
    (void)state;
    begin(8);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = i + 1; k < 8; k++)
            join(i, k, 18, 50);
    assert_two(8, 0, 1);
    costs[1] = 1;
    assert_two(8, 0, 2);
}

/* Two sockets of four cards; two cards on each switch below them. */
static void begin_pcie_tree(void)
{
    begin(8);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = i + 1; k < 8; k++)
            join(i, k, 0, i / 2 == k / 2 ? 10 : i / 4 == k / 4 ? 30 : 50);
}

static void test_on_a_pcie_tree_cards_of_one_switch_then_one_socket_go(void **state)
{
    (void)state;
    size_t chosen[4];
    begin_pcie_tree();
    costs[0] = costs[2] = costs[5] = 1000;
    assert_two(8, 6, 7); /* the only switch that costs nothing */
    connect_choose(list, costs, 8, 4, chosen);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(chosen[i], 4 + i); /* one socket, at one change of mode and not two */
}

static void test_one_card_is_not_torn_from_a_pair(void **state)
{
    (void)state;
    size_t chosen[1];
    begin(5);
    join(0, 1, 12, 50);
    join(2, 3, 12, 50);
    connect_choose(list, costs, 5, 1, chosen);
    assert_int_equal(chosen[0], 4);
    costs[4] = 1000;
    connect_choose(list, costs, 4, 1, chosen);
    assert_int_equal(chosen[0], 0); /* there is no other */
}

static void test_one_card_leaves_a_whole_switch_alone(void **state)
{
    (void)state;
    size_t chosen[1];
    begin_pcie_tree();
    list[0] = &cards[1]; /* card 0 is taken, so its neighbour is single */
    for (size_t i = 1; i < 7; i++)
        list[i] = &cards[8 - i];
    connect_choose(list, costs, 7, 1, chosen);
    assert_ptr_equal(list[chosen[0]], &cards[1]);
}

static void test_three_of_two_bridged_pairs_hold_one_pair(void **state)
{
    (void)state;
    size_t chosen[3];
    begin(4);
    join(0, 2, 4, 50);
    join(1, 3, 4, 50);
    costs[0] = 1000;
    connect_choose(list, costs, 4, 3, chosen);
    assert_int_equal(chosen[0], 1);
    assert_int_equal(chosen[1], 2);
    assert_int_equal(chosen[2], 3);
}

static void test_many_cards_are_grown_from_the_best_seed(void **state)
{
    (void)state;
    size_t chosen[4];
    begin(CARDS_MAX);
    for (size_t i = 12; i < 16; i++)
        for (size_t k = i + 1; k < 16; k++)
            join(i, k, 4, 20);
    connect_choose(list, costs, CARDS_MAX, 4, chosen);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(chosen[i], 12 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bridged_pair_is_taken_together),
        cmocka_unit_test(test_without_nvlink_the_shortest_path_counts),
        cmocka_unit_test(test_on_switches_all_are_equal_and_the_cheapest_go),
        cmocka_unit_test(test_on_a_pcie_tree_cards_of_one_switch_then_one_socket_go),
        cmocka_unit_test(test_one_card_is_not_torn_from_a_pair),
        cmocka_unit_test(test_one_card_leaves_a_whole_switch_alone),
        cmocka_unit_test(test_three_of_two_bridged_pairs_hold_one_pair),
        cmocka_unit_test(test_many_cards_are_grown_from_the_best_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
