#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/mig_parted.h"
#include "layouts.h"

#define HEAD "version: v1\nmig-configs:\n  a:\n"

static void refused(const char *text, const char *expected)
{
    struct layout_list l = LAYOUT_LIST_INIT;
    struct err e = ERR_INIT;
    assert_true(layout_list_parse("m.yaml", text, strlen(text), &l, &e) < 0);
    assert_string_equal(e.text, expected);
    assert_int_equal(l.count, 0);
}

static void read_list(const char *text, struct layout_list *ret)
{
    struct err e = ERR_INIT;
    if (layout_list_parse("m.yaml", text, strlen(text), ret, &e) < 0)
        fail_msg("%s", e.text);
}

static void each_label_is_a_layout(void **state)
{
    (void)state;
    AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
    read_list("version: v1\n"
              "mig-configs:\n"
              "  all-off:\n"
              "  - {devices: all, mig-enabled: false}\n"
              "  on.but.empty:\n"
              "  - {devices: all, mig-enabled: true, mig-devices: {}}\n"
              "  mixed:\n"
              "  - device-filter: [0x20B010DE, \"548475102\", \"\"]\n"
              "    devices: [0, 2]\n"
              "    mig-enabled: true\n"
              "    mig-devices:\n"
              "      \"1g.5gb\": 2\n"
              "      1c.3g.20gb: 3\n",
              &l);
    assert_int_equal(l.count, 3);
    assert_string_equal(l.layouts[1].label, "on.but.empty");
    assert_int_equal(layout_wish_mig(&l.layouts[0].wishes[0]), 0);
    assert_int_equal(layout_wish_mig(&l.layouts[1].wishes[0]), 1);
    assert_int_equal(l.layouts[1].wishes[0].piece_count, 0);
    const struct layout_wish *w = &l.layouts[2].wishes[0];
    assert_int_equal(w->device_count, 2);
    assert_int_equal(w->devices[0], 0x20B010DE);
    assert_int_equal(w->devices[1], 0x20B110DE);
    assert_int_equal(w->claims[1].ordinal, 2);
    assert_int_equal(w->pieces[0].count, 2);
    assert_string_equal(w->pieces[1].profile, "1c.3g.20gb");
}

static void json_is_read_too(void **state)
{
    (void)state;
    AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
    read_list("{\"version\": \"v1\", \"mig-configs\": {\"x\": [{\"devices\": [0], "
              "\"mig-enabled\": true, \"mig-devices\": {\"1g.5gb\": 7}}]}}",
              &l);
    assert_int_equal(l.layouts[0].wishes[0].pieces[0].count, 7);
}

static void faults_name_line_and_column(void **state)
{
    (void)state;
    refused("version: v2\nmig-configs: {}\n", "m.yaml:1:10: version 'v2' is not known; v1 is");
    refused("mig-configs: {a: []}\n", "m.yaml:1:15: a must be a list of at least one entry");
    refused("version: v1\nmig-configs: {}\n",
            "m.yaml:2:14: mig-configs must be a map of at least one label");
    refused(HEAD "  - {devices: 7, mig-enabled: false}\n",
            "m.yaml:4:15: devices must be the word all or a list of numbers: [0, 1]");
    refused(HEAD "  - {devices: [\"0\"], mig-enabled: false}\n",
            "m.yaml:4:16: a device is a number without quotes");
    refused(HEAD "  - {devices: all, mig-enabled: true}\n",
            "m.yaml:4:5: mig-devices is missing; {} is MIG without any slices");
    refused(HEAD "  - {devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}}\n",
            "m.yaml:4:40: mig-enabled is false here, so there can be no slices");
    refused(HEAD "  - {devices: all, mig-enabled: true, mig-devices: {1g.5gb: 1, 2g.10gb: 0}}\n",
            "m.yaml:4:73: 2g.10gb: 0 asks for nothing; leave it out");
    refused(HEAD "  - {devices: all, mig-enabled: true, mig-devices: {1g.5gb@0: 1}}\n",
            "m.yaml:4:53: mig-parted files have no places; write 1g.5gb");
    refused(HEAD "  - {device-filter: A100, devices: all, mig-enabled: false}\n",
            "m.yaml:4:21: 'A100' is no device filter; write the PCI device and vendor as one "
            "number: 0x20B010DE");
    refused(HEAD
            "  - {device-filter: \"0x233010DE:0x16C110DE\", devices: all, mig-enabled: false}\n",
            "m.yaml:4:21: '0x233010DE:0x16C110DE' names a subsystem, which this version cannot "
            "compare; write the device alone, 0x233010DE, or name the cards by number");
    refused(HEAD "  - {devices: all, mig-enabled: false, other: 1}\n",
            "m.yaml:4:40: there is no key 'other' here; known are device-filter, devices, "
            "mig-enabled, mig-devices");
}

static void filter_and_number_must_both_agree_and_the_last_wins(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
    const struct layout_wish *wishes[3];
    (void)layouts_card(&inv, "a100-40gb");
    (void)layouts_card(&inv, "a30");
    (void)layouts_card(&inv, "rtx4090");
    read_list(HEAD "  - {devices: all, mig-enabled: true, mig-devices: {}}\n"
                   "  - {devices: [1], device-filter: 0x20B010DE, mig-enabled: false}\n"
                   "  - {devices: [1, 9], device-filter: 0x20B710DE, mig-enabled: false}\n",
              &l);
    assert_int_equal(layout_assign(&l.layouts[0], &inv, wishes, NULL), 0);
    assert_ptr_equal(wishes[0], &l.layouts[0].wishes[0]);
    assert_ptr_equal(wishes[1], &l.layouts[0].wishes[2]);
    assert_null(wishes[2]);
}

/* Wishes as the files of others have them, each on its own board. */
static void what_it_means_is_what_is_planned(void **state)
{
    (void)state;
    static const struct {
        const char *board, *devices, *expected;
    } rows[] = {
        { "a100-40gb", "{1g.5gb: 2, 2g.10gb: 1, 3g.20gb: 1}",
          "2g.10gb@0 1g.5gb@2 1g.5gb@3 3g.20gb@4" },
        { "a30", "{1g.6gb: 2, 2g.12gb: 1}", "2g.12gb@0 1g.6gb@2 1g.6gb@3" },
        { "h100-94gb-nvl", "{3g.47gb: 2}", "3g.47gb@0 3g.47gb@4" },
        { "rtx-pro-6000", "{1g.24gb+me.all: 1}", "1g.24gb+me.all@0" },
        { "rtx-pro-6000", "{2g.48gb-me: 2}", "2g.48gb-me@0 2g.48gb-me@6" },
        { "b200-180gb", "{1g.45gb: 4}", "1g.45gb@0 1g.45gb@2 1g.45gb@4 1g.45gb@6" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO(inventory) struct inventory inv = { .cards = NULL };
        AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
        AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
        struct inventory_card after;
        struct inventory_card *c = layouts_card(&inv, rows[i].board);
        auto_free char *text = text_fmt(
            HEAD "  - {devices: all, mig-enabled: true, mig-devices: %s}\n", rows[i].devices);
        read_list(text, &l);
        layout_plan(c, &l.layouts[0].wishes[0], &ch);
        assert_string_equal(ch.why, "");
        layouts_after(c, &ch.steps, &after);
        auto_free char *is = layouts_text(&after.card);
        assert_string_equal(is, rows[i].expected);
        layouts_after_done(&after);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_label_is_a_layout),
        cmocka_unit_test(json_is_read_too),
        cmocka_unit_test(faults_name_line_and_column),
        cmocka_unit_test(filter_and_number_must_both_agree_and_the_last_wins),
        cmocka_unit_test(what_it_means_is_what_is_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
