#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "driver/state.h"

/* A library that gives `load` for each pair of samples, and counts what it gave away. */
static struct {
    nvmlReturn_t support, sample, metric;
    unsigned int there;
    double load;
    int samples, taken;
} gpm;

static nvmlReturn_t query(nvmlDevice_t dev, nvmlGpmSupport_t *s)
{
    (void)dev;
    assert_int_equal(s->version, 1);
    s->isSupportedDevice = gpm.there;
    return gpm.support;
}

static nvmlReturn_t alloc(nvmlGpmSample_t *ret)
{
    gpm.samples++;
    *ret = malloc(1);
    return NVML_SUCCESS;
}

static nvmlReturn_t release(nvmlGpmSample_t s)
{
    gpm.samples--;
    free(s);
    return NVML_SUCCESS;
}

static nvmlReturn_t take(nvmlDevice_t dev, unsigned int gi, nvmlGpmSample_t s)
{
    (void)dev, (void)s;
    assert_int_equal(gi, 3);
    gpm.taken++;
    return gpm.sample;
}

static nvmlReturn_t get(nvmlGpmMetricsGet_t *g)
{
    assert_int_equal(g->version, 1);
    assert_int_equal(g->numMetrics, 1);
    assert_ptr_not_equal(g->sample1, g->sample2);
    g->metrics[0].nvmlReturn = gpm.metric;
    g->metrics[0].value = gpm.load;
    return NVML_SUCCESS;
}

static struct driver d;
static struct known_card known;
static struct slice slice;
static struct card card;

static int begin(void **state)
{
    (void)state;
    memset(&gpm, 0, sizeof gpm);
    gpm.there = 1;
    d = (struct driver){ .lib = { .nvmlGpmQueryDeviceSupport = query,
                                  .nvmlGpmSampleAlloc = alloc,
                                  .nvmlGpmSampleFree = release,
                                  .nvmlGpmMigSampleGet = take,
                                  .nvmlGpmMetricsGet = get } };
    known = (struct known_card){ .uuid = "GPU-1" };
    slice = (struct slice){ .gi = 3, .ci = 0, .full = true, .uuid = "MIG-1" };
    card = (struct card){ .uuid = "GPU-1", .slices = &slice, .slice_count = 1 };
    return 0;
}

static int end(void **state)
{
    (void)state;
    driver_drop_activity(&d);
    assert_int_equal(gpm.samples, 0); /* each was given back */
    return 0;
}

static void look_at(int64_t seconds)
{
    driver_add_activity(&d, NULL, &known, &card, seconds * CLOCK_SECOND);
}

static void the_second_look_tells(void **state)
{
    (void)state;
    gpm.load = 41.6;
    look_at(10);
    assert_false(slice.load_known);
    look_at(15);
    assert_true(slice.load_known);
    assert_int_equal(slice.load_percent, 42);
    assert_int_equal(slice.load_since_boot_us, 10 * CLOCK_SECOND);
    gpm.load = 7;
    look_at(16);
    assert_int_equal(slice.load_percent, 7);
    assert_int_equal(slice.load_since_boot_us, 15 * CLOCK_SECOND);
}

static void where_it_is_off_nothing_is_asked(void **state)
{
    (void)state;
    d.no_activity = true;
    look_at(10);
    look_at(15);
    assert_false(slice.load_known);
    assert_int_equal(gpm.taken, 0);
}

static void looks_that_are_too_close_tell_what_was_known(void **state)
{
    (void)state;
    gpm.load = 50;
    look_at(10);
    look_at(10);
    assert_false(slice.load_known);
    look_at(11);
    gpm.load = 99;
    look_at(11);
    assert_int_equal(slice.load_percent, 50);
    assert_int_equal(gpm.taken, 2);
}

static void after_a_long_gap_nothing_is_known(void **state)
{
    (void)state;
    look_at(10);
    look_at(10 + 601);
    assert_false(slice.load_known);
    look_at(10 + 602);
    assert_true(slice.load_known);
}

static void another_slice_with_the_same_id_begins_anew(void **state)
{
    (void)state;
    look_at(10);
    memcpy(slice.uuid, "MIG-2", sizeof "MIG-2");
    look_at(12);
    assert_false(slice.load_known);
    assert_int_equal(gpm.samples, 1); /* of the one that is gone none is kept */
}

static void what_is_shared_is_nobodys(void **state)
{
    (void)state;
    slice.full = false;
    look_at(10);
    look_at(12);
    assert_false(slice.load_known);
    assert_int_equal(gpm.taken, 0);
}

static void a_card_or_a_library_without_it_is_asked_once(void **state)
{
    (void)state;
    gpm.there = 0;
    look_at(10);
    gpm.there = 1;
    look_at(12);
    assert_int_equal(gpm.taken, 0);
    known.gpm = GPM_NOT_ASKED;
    d.lib.nvmlGpmMetricsGet = NULL;
    look_at(14);
    assert_int_equal(gpm.taken, 0);
}

static void a_card_that_promises_and_cannot_is_left_alone(void **state)
{
    (void)state;
    gpm.sample = NVML_ERROR_NOT_SUPPORTED;
    look_at(10);
    look_at(12);
    assert_int_equal(gpm.taken, 1);
    assert_false(slice.load_known);
}

static void a_metric_that_fails_or_is_no_number_is_none(void **state)
{
    (void)state;
    look_at(10);
    gpm.load = NAN;
    look_at(12);
    assert_false(slice.load_known);
    gpm.load = 5;
    gpm.metric = NVML_ERROR_NO_DATA;
    look_at(14);
    assert_false(slice.load_known);
    gpm.metric = NVML_SUCCESS;
    gpm.load = 130;
    look_at(16);
    assert_int_equal(slice.load_percent, 100);
}

#define WITH_LIBRARY(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_LIBRARY(the_second_look_tells),
        WITH_LIBRARY(where_it_is_off_nothing_is_asked),
        WITH_LIBRARY(looks_that_are_too_close_tell_what_was_known),
        WITH_LIBRARY(after_a_long_gap_nothing_is_known),
        WITH_LIBRARY(another_slice_with_the_same_id_begins_anew),
        WITH_LIBRARY(what_is_shared_is_nobodys),
        WITH_LIBRARY(a_card_or_a_library_without_it_is_asked_once),
        WITH_LIBRARY(a_card_that_promises_and_cannot_is_left_alone),
        WITH_LIBRARY(a_metric_that_fails_or_is_no_number_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
