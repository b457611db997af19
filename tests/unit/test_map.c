#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"
#include "dice.h"

#define KEYS 512 /* few enough that they meet, many enough that the table grows */
#define EVENTS 200000

/* What a map must agree with: a place for each key. */
struct model {
    uint64_t keys[KEYS];
    char *names[KEYS];
    void *values[KEYS];
    size_t count;
};

static int things[64];

static void model_put(struct model *m, size_t i, void *value)
{
    m->count += !m->values[i];
    m->values[i] = value;
}

static void *model_remove(struct model *m, size_t i)
{
    void *was = m->values[i];
    m->count -= was != NULL;
    m->values[i] = NULL;
    return was;
}

/* Keys that are dense like job ids, keys that differ in their high bits only, and any. */
static void model_init(struct model *m, struct dice *d)
{
    *m = (struct model){ .count = 0 };
    for (size_t i = 0; i < KEYS; i++) {
        m->keys[i] = i % 3 == 0 ? i : i % 3 == 1 ? (uint64_t)i << 48 : dice_roll(d);
        m->names[i] = text_fmt("user%zu", i);
    }
}

static void model_done(struct model *m)
{
    for (size_t i = 0; i < KEYS; i++)
        free(m->names[i]);
}

static void what_was_put_is_found_until_it_is_removed(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    static int values[COUNT];
    AUTO(map) struct map m = MAP_INIT;
    for (uint64_t i = 0; i < COUNT; i++)
        map_put(&m, i * 4096, &values[i]);
    assert_int_equal(m.count, COUNT);
    for (uint64_t i = 0; i < COUNT; i += 2)
        assert_ptr_equal(map_remove(&m, i * 4096), &values[i]);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_ptr_equal(map_get(&m, i * 4096), i % 2 ? &values[i] : NULL);
    assert_int_equal(m.count, COUNT / 2);
    assert_null(map_get(&m, 3));
    assert_null(map_remove(&m, 3));
}

static void putting_again_replaces(void **state)
{
    (void)state;
    int a;
    int b;
    AUTO(map) struct map m = MAP_INIT;
    map_put(&m, UINT64_MAX, &a);
    map_put(&m, UINT64_MAX, &b);
    assert_int_equal(m.count, 1);
    assert_ptr_equal(map_get(&m, UINT64_MAX), &b);
}

static void names_are_keys_too(void **state)
{
    (void)state;
    char names[300][8];
    AUTO(map) struct map m = MAP_INIT;
    for (int i = 0; i < 300; i++) {
        (void)snprintf(names[i], sizeof names[i], "job%d", i); /* fits */
        map_put_name(&m, names[i], names[i]);
    }
    assert_ptr_equal(map_get_name(&m, "job299"), names[299]);
    assert_ptr_equal(map_remove_name(&m, "job7"), names[7]);
    assert_null(map_get_name(&m, "job7"));
    assert_ptr_equal(map_get_name(&m, "job8"), names[8]);
}

static void a_walk_meets_each_value_once(void **state)
{
    (void)state;
    int seen[100] = { 0 };
    AUTO(map) struct map m = MAP_INIT;
    for (uint64_t i = 0; i < 100; i++)
        map_put(&m, i, &seen[i]);
    size_t at = 0;
    for (int *v; (v = map_next(&m, &at));)
        (*v)++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    AUTO(map) struct map m = MAP_INIT;
    size_t i = 0;
    assert_null(map_get(&m, 0));
    assert_null(map_get_name(&m, ""));
    assert_null(map_remove(&m, 7));
    assert_null(map_remove_name(&m, "x"));
    assert_null(map_next(&m, &i));
}

static void a_name_lives_with_its_latest_entry(void **state)
{
    (void)state;
    AUTO(map) struct map m = MAP_INIT;
    char *first = text_dup("alice");
    auto_free char *second = text_dup("alice");
    map_put_name(&m, first, &things[0]);
    map_put_name(&m, second, &things[1]);
    free(first);
    assert_ptr_equal(map_get_name(&m, "alice"), &things[1]);
    assert_int_equal(m.count, 1);
}

static bool model_has(const struct model *model, const struct map_entry *entry)
{
    for (size_t k = 0; k < KEYS; k++)
        if (model->values[k] == entry->value &&
            (entry->name ? text_same(entry->name, model->names[k]) : entry->key == model->keys[k]))
            return true;
    return false;
}

static void assert_walk_agrees(const struct map *map, const struct model *model)
{
    size_t seen = 0;
    for (size_t i = 0; map_next(map, &i); seen++)
        assert_true(model_has(model, &map->entries[i - 1]));
    assert_int_equal(seen, model->count);
}

/* Now more puts, now more removals, so that it fills and empties. */
static void numbers_agree_with_a_list(void **state)
{
    (void)state;
    struct dice d = dice_new(20240611);
    AUTO(map) struct map m = MAP_INIT;
    AUTO(model) struct model model;
    model_init(&model, &d);
    for (size_t n = 0; n < EVENTS; n++) {
        size_t i = dice_below(&d, KEYS);
        void *value = &things[dice_below(&d, 64)];
        if (dice_below(&d, 10) < (n / 20000 % 2 ? 2 : 8)) {
            map_put(&m, model.keys[i], value);
            model_put(&model, i, value);
        } else {
            assert_ptr_equal(map_remove(&m, model.keys[i]), model_remove(&model, i));
        }
        size_t other = dice_below(&d, KEYS);
        assert_ptr_equal(map_get(&m, model.keys[other]), model.values[other]);
        assert_int_equal(m.count, model.count);
        if (n % 5000 == 0)
            assert_walk_agrees(&m, &model);
    }
}

static void names_agree_with_a_list(void **state)
{
    (void)state;
    struct dice d = dice_new(20240612);
    AUTO(map) struct map m = MAP_INIT;
    AUTO(model) struct model model;
    model_init(&model, &d);
    for (size_t n = 0; n < EVENTS / 4; n++) {
        size_t i = dice_below(&d, KEYS);
        void *value = &things[dice_below(&d, 64)];
        if (dice_bool(&d)) {
            map_put_name(&m, model.names[i], value);
            model_put(&model, i, value);
        } else {
            assert_ptr_equal(map_remove_name(&m, model.names[i]), model_remove(&model, i));
        }
        size_t other = dice_below(&d, KEYS);
        assert_ptr_equal(map_get_name(&m, model.names[other]), model.values[other]);
        assert_int_equal(m.count, model.count);
        if (n % 5000 == 0)
            assert_walk_agrees(&m, &model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_put_is_found_until_it_is_removed),
        cmocka_unit_test(putting_again_replaces),
        cmocka_unit_test(names_are_keys_too),
        cmocka_unit_test(a_walk_meets_each_value_once),
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(a_name_lives_with_its_latest_entry),
        cmocka_unit_test(numbers_agree_with_a_list),
        cmocka_unit_test(names_agree_with_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
