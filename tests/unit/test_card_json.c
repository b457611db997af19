#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "dice.h"
#include "geometry.h"
#include "model/card_json.h"
#include "random_board.h"

#define ROUNDS 200

static void slice_random(struct slice *s, struct dice *d)
{
    s->gi = dice_u32(d);
    s->ci = dice_bool(d) ? (uint32_t)dice_below(d, 8) : NOT_AN_INSTANCE;
    s->profile_id = dice_u32(d);
    s->start = (uint32_t)dice_below(d, BOARD_UNITS_MAX + 1);
    s->units = (uint32_t)dice_below(d, BOARD_UNITS_MAX + 1);
    s->ci_profile_id = dice_u32(d);
    s->ci_start = dice_u32(d);
    s->ci_slices = dice_u32(d);
    s->full = dice_bool(d);
    dice_text(d, s->uuid, sizeof s->uuid);
    s->mem_known = dice_bool(d);
    if (s->mem_known) {
        s->mem_total_bytes = dice_below(d, INT64_MAX);
        s->mem_used_bytes = dice_below(d, INT64_MAX);
    }
}

static void process_random(struct gpu_process *p, struct dice *d)
{
    p->pid = (pid_t)dice_below(d, INT32_MAX);
    p->uid = dice_bool(d) ? (uid_t)dice_below(d, UINT32_MAX) : (uid_t)-1;
    p->start_ticks = dice_below(d, INT64_MAX);
    p->mem_bytes = dice_bool(d) ? dice_below(d, INT64_MAX) : UINT64_MAX;
    if (dice_bool(d)) {
        p->gi = (uint32_t)dice_below(d, 15);
        p->ci = (uint32_t)dice_below(d, 8);
    }
    p->graphics = dice_bool(d);
    dice_text(d, p->name, sizeof p->name);
}

/* What is not known stays 0: it must not come back as anything else. */
static void readings_random(struct card *c, struct dice *d)
{
    c->known = (unsigned int)dice_below(d, 256);
    if (c->known & KNOW_TEMPERATURE)
        c->temperature_c = dice_u32(d);
    if (c->known & KNOW_POWER)
        c->power_mw = dice_u32(d);
    if (c->known & KNOW_POWER_LIMIT)
        c->power_limit_mw = dice_u32(d);
    if (c->known & KNOW_LOAD)
        c->load_percent = (uint32_t)dice_below(d, 101);
    if (c->known & KNOW_MEMORY) {
        c->mem_total_bytes = dice_below(d, INT64_MAX);
        c->mem_used_bytes = dice_below(d, INT64_MAX);
    }
    if (c->known & KNOW_NUMA)
        c->numa_node = (int32_t)dice_below(d, 1024);
    for (uint64_t n = c->known & KNOW_SLICES ? dice_below(d, 8) : 0; n > 0; n--)
        slice_random(card_add_slice(c), d);
    for (uint64_t n = c->known & KNOW_PROCESSES ? dice_below(d, 5) : 0; n > 0; n--)
        process_random(card_add_process(c), d);
}

/* `c` as snapshot_add_card leaves it. */
static void card_random(struct card *c, struct dice *d)
{
    dice_text(d, c->uuid, sizeof c->uuid);
    dice_text(d, c->bus_id, sizeof c->bus_id);
    c->index = dice_u32(d);
    c->minor = dice_bool(d) ? (uint32_t)dice_below(d, 64) : UINT32_MAX;
    c->ordinal = dice_u32(d);
    c->health = (enum card_health)dice_below(d, CARD_HIDDEN + 1);
    dice_text(d, c->trouble, sizeof c->trouble);
    board_random(&c->board, d);
    c->mig_capable = dice_bool(d);
    c->mig_now = dice_bool(d);
    c->mig_pending = dice_bool(d);
    c->xid_last = dice_below(d, INT64_MAX);
    readings_random(c, d);
}

static void assert_same_slice(const struct slice *a, const struct slice *b)
{
    assert_int_equal(a->gi, b->gi);
    assert_int_equal(a->ci, b->ci);
    assert_int_equal(a->profile_id, b->profile_id);
    assert_int_equal(a->start, b->start);
    assert_int_equal(a->units, b->units);
    assert_int_equal(a->ci_profile_id, b->ci_profile_id);
    assert_int_equal(a->ci_start, b->ci_start);
    assert_int_equal(a->ci_slices, b->ci_slices);
    assert_int_equal(a->full, b->full);
    assert_string_equal(a->uuid, b->uuid);
    assert_int_equal(a->mem_known, b->mem_known);
    assert_int_equal(a->mem_total_bytes, b->mem_total_bytes);
    assert_int_equal(a->mem_used_bytes, b->mem_used_bytes);
}

static void assert_same_process(const struct gpu_process *a, const struct gpu_process *b)
{
    assert_int_equal(a->pid, b->pid);
    assert_int_equal(a->uid, b->uid);
    assert_int_equal(a->start_ticks, b->start_ticks);
    assert_int_equal(a->mem_bytes, b->mem_bytes);
    assert_int_equal(a->gi, b->gi);
    assert_int_equal(a->ci, b->ci);
    assert_int_equal(a->graphics, b->graphics);
    assert_string_equal(a->name, b->name);
}

static void assert_same_card(const struct card *a, const struct card *b)
{
    assert_string_equal(a->uuid, b->uuid);
    assert_string_equal(a->bus_id, b->bus_id);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->minor, b->minor);
    assert_int_equal(a->ordinal, b->ordinal);
    assert_int_equal(a->health, b->health);
    assert_string_equal(a->trouble, b->trouble);
    assert_same_board(&a->board, &b->board);
    assert_int_equal(a->mig_capable, b->mig_capable);
    assert_int_equal(a->mig_now, b->mig_now);
    assert_int_equal(a->mig_pending, b->mig_pending);
    assert_int_equal(a->xid_last, b->xid_last);
    assert_int_equal(a->known, b->known);
    assert_int_equal(a->mem_total_bytes, b->mem_total_bytes);
    assert_int_equal(a->mem_used_bytes, b->mem_used_bytes);
    assert_int_equal(a->temperature_c, b->temperature_c);
    assert_int_equal(a->power_mw, b->power_mw);
    assert_int_equal(a->power_limit_mw, b->power_limit_mw);
    assert_int_equal(a->load_percent, b->load_percent);
    assert_int_equal(a->numa_node, b->numa_node);
    assert_int_equal(a->slice_count, b->slice_count);
    for (size_t i = 0; i < a->slice_count; i++)
        assert_same_slice(&a->slices[i], &b->slices[i]);
    assert_int_equal(a->process_count, b->process_count);
    for (size_t i = 0; i < a->process_count; i++)
        assert_same_process(&a->processes[i], &b->processes[i]);
}

static void snapshot_random(struct snapshot *s, struct dice *d)
{
    *s = (struct snapshot)SNAPSHOT_INIT;
    s->taken.boot_us = (int64_t)dice_below(d, INT64_MAX);
    s->taken.wall_us = (int64_t)dice_roll(d);
    dice_text(d, s->driver_version, sizeof s->driver_version);
    dice_text(d, s->nvml_version, sizeof s->nvml_version);
    for (uint64_t n = dice_below(d, 4); n > 0; n--)
        card_random(snapshot_add_card(s), d);
}

static void snapshots_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(42);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        struct snapshot s;
        struct snapshot again;
        snapshot_random(&s, &d);
        auto_json json_t *j = over_the_wire(snapshot_to_json(&s));
        if (snapshot_from_json(j, &again, &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(again.taken.boot_us, s.taken.boot_us);
        assert_int_equal(again.taken.wall_us, s.taken.wall_us);
        assert_string_equal(again.driver_version, s.driver_version);
        assert_string_equal(again.nvml_version, s.nvml_version);
        assert_int_equal(again.card_count, s.card_count);
        for (size_t k = 0; k < s.card_count; k++)
            assert_same_card(&s.cards[k], &again.cards[k]);
        snapshot_done(&s);
        snapshot_done(&again);
    }
}

static void hold_random(struct hold *h, struct dice *d)
{
    h->kind = (enum hold_kind)dice_below(d, HOLD_UNKNOWN + 1);
    if (h->kind == HOLD_NONE)
        return;
    dice_text(d, h->user, sizeof h->user);
    dice_text(d, h->name, sizeof h->name);
    h->pid = (pid_t)dice_below(d, INT32_MAX);
    if (h->kind != HOLD_JOB) {
        h->since_boot_us = dice_bool(d) ? 0 : (int64_t)dice_below(d, INT64_MAX);
        return;
    }
    h->job_id = dice_below(d, INT64_MAX);
    h->attempt = dice_u32(d);
    h->task = dice_u32(d);
    h->since_boot_us = -(int64_t)dice_below(d, INT64_MAX); /* before this boot */
    h->until_boot_us = dice_bool(d) ? 0 : (int64_t)dice_below(d, INT64_MAX);
}

static void assert_same_hold(const struct hold *a, const struct hold *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->job_id, b->job_id);
    assert_int_equal(a->attempt, b->attempt);
    assert_int_equal(a->task, b->task);
    assert_string_equal(a->user, b->user);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->since_boot_us, b->since_boot_us);
    assert_int_equal(a->until_boot_us, b->until_boot_us);
    assert_int_equal(a->pid, b->pid);
}

static void inventory_random(struct inventory *inv, struct dice *d)
{
    struct snapshot s;
    snapshot_random(&s, d);
    inventory_from_snapshot(&s, inv);
    snapshot_done(&s);
    inv->from_daemon = dice_bool(d);
    for (size_t i = 0; i < inv->card_count; i++) {
        struct inventory_card *c = &inv->cards[i];
        c->pool = (enum card_pool)dice_below(d, POOL_KUBERNETES + 1);
        c->mode = (enum card_mode)dice_below(d, MODE_AUTO + 1);
        c->owners_known = dice_bool(d);
        c->quarantined = dice_bool(d);
        if (c->quarantined)
            dice_text(d, c->quarantine, sizeof c->quarantine);
        c->laid_out = dice_bool(d);
        c->no_turn = dice_bool(d);
        c->no_cuts = dice_bool(d);
        dice_text(d, c->reserved, sizeof c->reserved);
        c->planned_count = (uint32_t)dice_below(d, CARD_WINDOWS_MAX + 1);
        for (uint32_t k = 0; k < c->planned_count; k++)
            c->planned[k] = (struct card_window){ (int64_t)dice_below(d, INT64_MAX),
                                                  (int64_t)dice_below(d, INT64_MAX) };
        c->idle_since_boot_us = (int64_t)dice_below(d, INT64_MAX);
        c->hold = (struct hold){ .kind = HOLD_NONE };
        hold_random(&c->hold, d);
        for (size_t k = 0; k < c->card.slice_count; k++) {
            c->slices[k] = (struct inventory_slice){ .generation = dice_below(d, INT64_MAX) };
            c->slices[k].adopted = dice_bool(d);
            c->slices[k].leaving = dice_bool(d);
            hold_random(&c->slices[k].hold, d);
        }
    }
}

static void assert_same_inventory_card(const struct inventory_card *a,
                                       const struct inventory_card *b)
{
    assert_same_card(&a->card, &b->card);
    assert_int_equal(a->pool, b->pool);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->owners_known, b->owners_known);
    assert_int_equal(a->quarantined, b->quarantined);
    assert_string_equal(a->quarantine, b->quarantine);
    assert_int_equal(a->laid_out, b->laid_out);
    assert_int_equal(a->no_turn, b->no_turn);
    assert_int_equal(a->no_cuts, b->no_cuts);
    assert_string_equal(a->reserved, b->reserved);
    assert_int_equal(a->planned_count, b->planned_count);
    for (uint32_t i = 0; i < a->planned_count; i++) {
        assert_int_equal(a->planned[i].from_wall_us, b->planned[i].from_wall_us);
        assert_int_equal(a->planned[i].until_wall_us, b->planned[i].until_wall_us);
    }
    assert_int_equal(a->idle_since_boot_us, b->idle_since_boot_us);
    assert_same_hold(&a->hold, &b->hold);
    for (size_t i = 0; i < a->card.slice_count; i++) {
        assert_int_equal(a->slices[i].generation, b->slices[i].generation);
        assert_int_equal(a->slices[i].adopted, b->slices[i].adopted);
        assert_int_equal(a->slices[i].leaving, b->slices[i].leaving);
        assert_same_hold(&a->slices[i].hold, &b->slices[i].hold);
    }
}

static void inventories_come_back_as_they_were(void **state)
{
    (void)state;
    struct dice d = dice_new(43);
    for (int i = 0; i < ROUNDS; i++) {
        struct err e = ERR_INIT;
        struct inventory inv;
        struct inventory again;
        inventory_random(&inv, &d);
        auto_json json_t *j = over_the_wire(inventory_to_json(&inv));
        if (inventory_from_json(j, &again, &e) < 0)
            fail_msg("%s", e.text);
        assert_int_equal(again.now.boot_us, inv.now.boot_us);
        assert_int_equal(again.now.wall_us, inv.now.wall_us);
        assert_string_equal(again.driver_version, inv.driver_version);
        assert_int_equal(again.from_daemon, inv.from_daemon);
        assert_int_equal(again.card_count, inv.card_count);
        for (size_t k = 0; k < inv.card_count; k++)
            assert_same_inventory_card(&inv.cards[k], &again.cards[k]);
        inventory_done(&inv);
        inventory_done(&again);
    }
}

/* A card of which nothing is known but that it is there. */
static json_t *bare_card(void)
{
    auto_free struct card *c = mem_new(sizeof *c);
    c->minor = UINT32_MAX;
    c->numa_node = -1;
    return card_to_json(c);
}

static void what_is_not_known_is_null(void **state)
{
    (void)state;
    static const char *const keys[] = { "minor",           "trouble",        "temperature_c",
                                        "power_mw",        "power_limit_mw", "load_percent",
                                        "mem_total_bytes", "mem_used_bytes", "numa_node",
                                        "slices",          "processes" };
    auto_json json_t *j = bare_card();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(j, keys[i]);
        if (!value || !json_is_null(value))
            fail_msg("'%s' should be null", keys[i]);
    }
}

static void no_slices_and_slices_not_known_are_two_things(void **state)
{
    (void)state;
    auto_free struct card *c = mem_new(sizeof *c);
    auto_json json_t *j = bare_card();
    json_object_set_new(j, "slices", json_array());
    assert_int_equal(card_from_json(j, c, NULL), 0);
    assert_int_equal(c->known, KNOW_SLICES);
    assert_int_equal(c->slice_count, 0);
    card_done(c);
}

/* Half of a pair is not enough: a use without a total, or the other way round. */
static void memory_is_known_when_both_figures_are(void **state)
{
    (void)state;
    static const char *const keys[] = { "mem_total_bytes", "mem_used_bytes" };
    for (size_t i = 0; i < 2; i++) {
        auto_free struct card *c = mem_new(sizeof *c);
        auto_json json_t *j = bare_card();
        auto_json json_t *slice = json_pack("{s:i,s:i,s:i}", "gi", 1, "start", 0, "units", 1);
        json_object_set_new(j, keys[i], json_integer(7));
        json_object_set_new(slice, keys[i], json_integer(7));
        json_object_set_new(j, "slices", json_pack("[O]", slice));
        assert_int_equal(card_from_json(j, c, NULL), 0);
        assert_int_equal(c->known & KNOW_MEMORY, 0);
        assert_int_equal(c->mem_total_bytes, 0);
        assert_int_equal(c->mem_used_bytes, 0);
        assert_false(c->slices[0].mem_known);
        assert_int_equal(c->slices[0].mem_total_bytes, 0);
        assert_int_equal(c->slices[0].mem_used_bytes, 0);
        card_done(c);
    }
}

/* -1 is how the kernel writes "no node": no reason to lose the whole snapshot. */
static void a_numa_node_of_minus_one_is_none(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    auto_free struct card *c = mem_new(sizeof *c);
    auto_json json_t *j = bare_card();
    json_object_set_new(j, "numa_node", json_integer(-1));
    if (card_from_json(j, c, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(c->known & KNOW_NUMA, 0);
    assert_int_equal(c->numa_node, -1);
    card_done(c);
}

static void a_quarantine_without_a_reason_is_still_one(void **state)
{
    (void)state;
    struct snapshot s = SNAPSHOT_INIT;
    struct inventory inv;
    struct inventory again;
    (void)snapshot_add_card(&s);
    inventory_from_snapshot(&s, &inv);
    inv.cards[0].quarantined = true;
    auto_json json_t *j = over_the_wire(inventory_to_json(&inv));
    assert_int_equal(inventory_from_json(j, &again, NULL), 0);
    assert_true(again.cards[0].quarantined);
    inventory_done(&inv);
    inventory_done(&again);
    snapshot_done(&s);
}

/* A newer daemon may know a health, a holder and fields that this command does not. */
static void words_of_a_later_release_mean_take_care(void **state)
{
    (void)state;
    struct inventory inv;
    auto_json json_t *card = bare_card();
    json_object_set_new(card, "health", json_string("too hot"));
    json_object_set_new(card, "pool", json_string("queue"));
    json_object_set_new(card, "mode", json_string("auto"));
    json_object_set_new(card, "hold", json_pack("{s:s}", "kind", "reservation"));
    json_object_set_new(card, "smell", json_string("burnt"));
    auto_json json_t *j = json_pack("{s:[O]}", "cards", card);
    assert_int_equal(inventory_from_json(j, &inv, NULL), 0);
    assert_int_equal(inv.cards[0].card.health, CARD_UNRESPONSIVE);
    assert_int_equal(inv.cards[0].hold.kind, HOLD_UNKNOWN);
    assert_false(inventory_card_free(&inv.cards[0]));
    inventory_done(&inv);
}

/* The card that every wrong one is made of: `path` set to `value`. */
static void assert_card_refused(const char *key, json_t *take_value, const char *sentence)
{
    struct err e = ERR_INIT;
    auto_free struct card *c = mem_new(sizeof *c);
    c->ordinal = 4711;
    auto_json json_t *j = bare_card();
    if (take_value)
        json_object_set_new(j, key, take_value);
    else
        json_object_del(j, key);
    assert_int_equal(card_from_json(j, c, &e), -EINVAL);
    assert_string_equal(e.text, sentence);
    assert_int_equal(c->ordinal, 4711);
}

static json_t *json(const char *s)
{
    json_t *j = json_loads(s, JSON_DECODE_ANY, NULL);
    assert_non_null(j);
    return j;
}

static void cards_that_are_wrong_are_refused(void **state)
{
    (void)state;
    assert_card_refused("gpu", NULL, "card: field 'gpu' is missing");
    assert_card_refused("uuid", json_null(), "card: field 'uuid' is missing");
    assert_card_refused("uuid", json_integer(1), "card: 'uuid' must be a string");
    assert_card_refused("gpu", json_integer(-1), "card: 'gpu' must be from 0 to 4294967295");
    assert_card_refused("mig_now", json_integer(1), "card: 'mig_now' must be true or false");
    assert_card_refused("board", json("[]"), "card: 'board' must be an object");
    assert_card_refused("board", NULL, "card: field 'board' is missing");
    assert_card_refused("board", json("{\"units\": \"8\"}"),
                        "board: 'units' must be a whole number");
    assert_card_refused("board", json("{\"profiles\": [{}]}"), "profile: field 'name' is missing");
    assert_card_refused("board", json("{\"profiles\": [{\"name\": \"x\", \"starts\": [16]}]}"),
                        "profile: 'starts' has a start outside of the board");
    assert_card_refused("board", json("{\"profiles\": [{\"name\": \"x\", \"starts\": [\"4\"]}]}"),
                        "profile: 'starts' must be a list of whole numbers");
    assert_card_refused("slices", json("{}"), "card: 'slices' must be a list");
    assert_card_refused("slices", json("[7]"), "slice: must be an object");
    assert_card_refused("slices", json("[{\"gi\": 1, \"start\": 17, \"units\": 1}]"),
                        "slice: 'start' must be from 0 to 16");
    assert_card_refused("processes", json("[{\"name\": \"x\"}]"),
                        "process: field 'pid' is missing");
    assert_card_refused("temperature_c", json("\"41\""),
                        "card: 'temperature_c' must be a whole number");
}

static void what_is_too_long_for_the_board_is_refused(void **state)
{
    (void)state;
    auto_json json_t *profiles = json_array();
    auto_json json_t *starts = json_array();
    for (int i = 0; i <= BOARD_PROFILES_MAX; i++)
        json_array_append_new(profiles, json("{\"name\": \"x\"}"));
    for (int i = 0; i <= BOARD_UNITS_MAX; i++)
        json_array_append_new(starts, json_integer(0));
    assert_card_refused("board", json_pack("{s:O}", "profiles", profiles),
                        "board: 'profiles' has 25 entries, at most 24 work");
    assert_card_refused("board",
                        json_pack("{s:[{s:s,s:O}]}", "profiles", "name", "x", "starts", starts),
                        "profile: 'starts' has 17 entries, at most 16 work");
}

static void inventories_that_are_wrong_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *sentence;
    } table[] = {
        { "pool", "null", "card: field 'pool' is missing" },
        { "pool", "\"mine\"", "card: 'mine' is no pool" },
        { "mode", "\"mig\"", "card: 'mig' is no mode" },
        { "hold", "7", "card: 'hold' must be an object" },
        { "hold", "{}", "holder: field 'kind' is missing" },
        { "slices", "[{\"gi\": 1, \"start\": 0, \"units\": 1, \"hold\": 7}]",
          "slice: 'hold' must be an object" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct err e = ERR_INIT;
        struct inventory inv = { .card_count = 4711 };
        auto_json json_t *card = bare_card();
        json_object_set_new(card, "pool", json_string("queue"));
        json_object_set_new(card, "mode", json_string("auto"));
        json_object_set_new(card, table[i].key, json_loads(table[i].value, JSON_DECODE_ANY, NULL));
        auto_json json_t *j = json_pack("{s:[O]}", "cards", card);
        assert_int_equal(inventory_from_json(j, &inv, &e), -EINVAL);
        assert_string_equal(e.text, table[i].sentence);
        assert_int_equal(inv.card_count, 4711);
    }
}

static void a_slice_is_called_by_its_address(void **state)
{
    (void)state;
    auto_free struct board *b = board_a100_80gb();
    auto_free struct card *c = mem_new(sizeof *c);
    c->board = *b;
    c->known = KNOW_SLICES;
    struct slice *s = card_add_slice(c);
    s->profile_id = 14;
    s->start = 4;
    auto_json json_t *j = card_to_json(c);
    json_t *slice = json_array_get(json_object_get(j, "slices"), 0);
    assert_string_equal(json_string_value(json_object_get(slice, "address")), "gpu0/2g.20gb@4");
    assert_string_equal(json_string_value(json_object_get(slice, "profile")), "2g.20gb");
    assert_true(json_is_null(json_object_get(slice, "ci")));
    assert_true(json_is_null(json_object_get(slice, "mem_total_bytes")));
    card_done(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_come_back_as_they_were),
        cmocka_unit_test(inventories_come_back_as_they_were),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(no_slices_and_slices_not_known_are_two_things),
        cmocka_unit_test(memory_is_known_when_both_figures_are),
        cmocka_unit_test(a_numa_node_of_minus_one_is_none),
        cmocka_unit_test(a_quarantine_without_a_reason_is_still_one),
        cmocka_unit_test(words_of_a_later_release_mean_take_care),
        cmocka_unit_test(cards_that_are_wrong_are_refused),
        cmocka_unit_test(what_is_too_long_for_the_board_is_refused),
        cmocka_unit_test(inventories_that_are_wrong_are_refused),
        cmocka_unit_test(a_slice_is_called_by_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
