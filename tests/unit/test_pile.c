#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/pile.h"
#include "dice.h"

#define THINGS 200

struct thing {
    int64_t key;
    uint32_t slot;
    bool met;
};

static int64_t least_of(const struct thing *t)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < THINGS; i++)
        if (t[i].slot && t[i].key < least)
            least = t[i].key;
    return least;
}

static void put(struct pile *h, struct thing *t, int64_t key)
{
    t->key = key;
    pile_put(h, key, t, &t->slot);
}

/* All within `most` once, and nobody else. */
static void check_within(const struct pile *h, struct thing *t, int64_t most)
{
    struct thing *v;
    for (size_t i = 0; i < THINGS; i++)
        t[i].met = false;
    for (size_t i = 0; (v = pile_within(h, most, &i));) {
        assert_false(v->met);
        v->met = true;
    }
    for (size_t i = 0; i < THINGS; i++)
        assert_int_equal(t[i].met, t[i].slot && t[i].key <= most);
}

static void an_empty_one_has_no_first(void **state)
{
    (void)state;
    AUTO(pile) struct pile h = PILE_INIT;
    size_t i = 0;
    uint32_t slot = 0;
    assert_null(pile_first(&h));
    assert_true(pile_first_key(&h) == INT64_MAX);
    assert_null(pile_within(&h, INT64_MAX, &i));
    pile_take(&h, &slot);
    assert_int_equal(h.count, 0);
}

static void the_least_is_first_whatever_comes_moves_and_goes(void **state)
{
    (void)state;
    AUTO(pile) struct pile h = PILE_INIT;
    struct thing things[THINGS] = { { .key = 0 } };
    struct dice d = dice_new(20261130);
    for (int step = 0; step < 20000; step++) {
        struct thing *t = &things[dice_below(&d, THINGS)];
        if (dice_below(&d, 3))
            put(&h, t, (int64_t)dice_below(&d, 50));
        else
            pile_take(&h, &t->slot);
        assert_true(pile_first_key(&h) == least_of(things));
        struct thing *first = pile_first(&h);
        assert_true(first ? first->key == least_of(things) : h.count == 0);
        if (step % 10 == 0)
            check_within(&h, things, (int64_t)dice_below(&d, 60) - 5);
    }
}

static void all_come_out_in_order(void **state)
{
    (void)state;
    AUTO(pile) struct pile h = PILE_INIT;
    struct thing things[THINGS] = { { .key = 0 } };
    struct dice d = dice_new(7);
    int64_t before = INT64_MIN;
    for (size_t i = 0; i < THINGS; i++)
        put(&h, &things[i], (int64_t)dice_roll(&d));
    for (struct thing *t; (t = pile_first(&h));) {
        assert_true(t->key >= before);
        before = t->key;
        pile_take(&h, &t->slot);
        assert_int_equal(t->slot, 0);
    }
    check_within(&h, things, INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_no_first),
        cmocka_unit_test(the_least_is_first_whatever_comes_moves_and_goes),
        cmocka_unit_test(all_come_out_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
