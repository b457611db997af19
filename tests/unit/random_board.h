/*
 * random_board.h - boards with a random value in every field, over a socket and back, for tests.
 */
#ifndef DIVVY_TESTS_RANDOM_BOARD_H
#define DIVVY_TESTS_RANDOM_BOARD_H

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "model/board_json.h"

/* Written out and parsed again, as it crosses a socket. */
static inline json_t *over_the_wire(json_t *take_json)
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

static inline void ci_random(struct ci_profile *p, struct dice *d)
{
    p->id = dice_u32(d);
    p->index = dice_u32(d);
    p->slices = dice_u32(d);
    p->sms = dice_u32(d);
    p->max = dice_u32(d);
    dice_text(d, p->name, sizeof p->name);
}

static inline void profile_random(struct profile *p, struct dice *d)
{
    uint32_t *const numbers[] = { &p->id,       &p->index,    &p->slices, &p->units,
                                  &p->sms,      &p->decoders, &p->jpegs,  &p->copy_engines,
                                  &p->encoders, &p->ofas,     &p->max };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = dice_u32(d);
    dice_text(d, p->name, sizeof p->name);
    p->mem_bytes = dice_below(d, INT64_MAX);
    p->start_count = (uint32_t)dice_below(d, BOARD_UNITS_MAX + 1);
    p->order_count = (uint32_t)dice_below(d, BOARD_UNITS_MAX + 1);
    for (uint32_t i = 0; i < p->start_count; i++)
        p->starts[i] = (uint8_t)dice_below(d, BOARD_UNITS_MAX);
    for (uint32_t i = 0; i < p->order_count; i++)
        p->order[i] = (uint8_t)dice_below(d, BOARD_UNITS_MAX);
    p->ci_count = (uint32_t)dice_below(d, PROFILE_CI_MAX + 1);
    for (uint32_t i = 0; i < p->ci_count; i++)
        ci_random(&p->cis[i], d);
    p->unconfirmed = dice_bool(d);
}

static inline void board_random(struct board *b, struct dice *d)
{
    uint32_t *const numbers[] = {
        &b->units,
        &b->slices,
        &b->sms,
        &b->pci_device_id,
        &b->arch,
        &b->cc_major,
        &b->cc_minor,
        &b->power_idle_mw,
        &b->power_limit_mw,
        &b->copy_engines,
        &b->decoders,
        &b->encoders,
        &b->jpegs,
        &b->ofas,
        &b->brand,
        &b->cores_per_sm,
        &b->clock_idle_mhz,
        &b->clock_max_mhz,
        &b->clock_memory_mhz,
        &b->temp_slowdown_c,
        &b->temp_shutdown_c,
        &b->pcie_gen,
        &b->pcie_width,
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = dice_u32(d);
    dice_text(d, b->key, sizeof b->key);
    dice_text(d, b->name, sizeof b->name);
    dice_text(d, b->min_driver, sizeof b->min_driver);
    b->activation = (enum mig_activation)dice_below(d, 4);
    b->mem_bytes = dice_below(d, INT64_MAX);
    b->reserved_bytes = dice_below(d, INT64_MAX);
    b->ecc = dice_bool(d);
    b->fan = dice_bool(d);
    b->unconfirmed = dice_bool(d);
    b->profile_count = (uint32_t)dice_below(d, 4);
    if (dice_below(d, 50) == 0)
        b->profile_count = BOARD_PROFILES_MAX;
    for (uint32_t i = 0; i < b->profile_count; i++)
        profile_random(&b->profiles[i], d);
}

static inline void assert_same_ci(const struct ci_profile *a, const struct ci_profile *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->index, b->index);
    assert_int_equal(a->slices, b->slices);
    assert_int_equal(a->sms, b->sms);
    assert_int_equal(a->max, b->max);
    assert_string_equal(a->name, b->name);
}

static inline void assert_same_profile(const struct profile *a, const struct profile *b)
{
    assert_int_equal(a->id, b->id);
    assert_int_equal(a->index, b->index);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->slices, b->slices);
    assert_int_equal(a->units, b->units);
    assert_int_equal(a->mem_bytes, b->mem_bytes);
    assert_int_equal(a->sms, b->sms);
    assert_int_equal(a->copy_engines, b->copy_engines);
    assert_int_equal(a->decoders, b->decoders);
    assert_int_equal(a->encoders, b->encoders);
    assert_int_equal(a->jpegs, b->jpegs);
    assert_int_equal(a->ofas, b->ofas);
    assert_int_equal(a->max, b->max);
    assert_int_equal(a->start_count, b->start_count);
    assert_memory_equal(a->starts, b->starts, sizeof a->starts);
    assert_int_equal(a->order_count, b->order_count);
    assert_memory_equal(a->order, b->order, sizeof a->order);
    assert_int_equal(a->unconfirmed, b->unconfirmed);
    assert_int_equal(a->ci_count, b->ci_count);
    for (uint32_t i = 0; i < a->ci_count; i++)
        assert_same_ci(&a->cis[i], &b->cis[i]);
}

static inline void assert_same_simulated(const struct board *a, const struct board *b)
{
    assert_int_equal(a->pci_device_id, b->pci_device_id);
    assert_int_equal(a->arch, b->arch);
    assert_int_equal(a->cc_major, b->cc_major);
    assert_int_equal(a->cc_minor, b->cc_minor);
    assert_int_equal(a->power_idle_mw, b->power_idle_mw);
    assert_int_equal(a->power_limit_mw, b->power_limit_mw);
    assert_int_equal(a->copy_engines, b->copy_engines);
    assert_int_equal(a->decoders, b->decoders);
    assert_int_equal(a->encoders, b->encoders);
    assert_int_equal(a->jpegs, b->jpegs);
    assert_int_equal(a->ofas, b->ofas);
    assert_int_equal(a->reserved_bytes, b->reserved_bytes);
    assert_int_equal(a->brand, b->brand);
    assert_int_equal(a->cores_per_sm, b->cores_per_sm);
    assert_int_equal(a->clock_idle_mhz, b->clock_idle_mhz);
    assert_int_equal(a->clock_max_mhz, b->clock_max_mhz);
    assert_int_equal(a->clock_memory_mhz, b->clock_memory_mhz);
    assert_int_equal(a->temp_slowdown_c, b->temp_slowdown_c);
    assert_int_equal(a->temp_shutdown_c, b->temp_shutdown_c);
    assert_int_equal(a->pcie_gen, b->pcie_gen);
    assert_int_equal(a->pcie_width, b->pcie_width);
    assert_int_equal(a->ecc, b->ecc);
    assert_int_equal(a->fan, b->fan);
    assert_string_equal(a->min_driver, b->min_driver);
}

static inline void assert_same_board(const struct board *a, const struct board *b)
{
    assert_string_equal(a->key, b->key);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->activation, b->activation);
    assert_int_equal(a->units, b->units);
    assert_int_equal(a->slices, b->slices);
    assert_int_equal(a->mem_bytes, b->mem_bytes);
    assert_int_equal(a->sms, b->sms);
    assert_int_equal(a->unconfirmed, b->unconfirmed);
    assert_same_simulated(a, b);
    assert_int_equal(a->profile_count, b->profile_count);
    for (uint32_t i = 0; i < a->profile_count; i++)
        assert_same_profile(&a->profiles[i], &b->profiles[i]);
}

#endif
