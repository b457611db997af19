#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "config/field.h"
#include "config/mig_state.h"
#include "layouts.h"
#include "model/fields.h"

static void read_spec(json_t *take_spec, struct layout_list *ret)
{
    AUTO(text) struct text t = TEXT_INIT;
    struct err e = ERR_INIT;
    mig_state_add_yaml(&t, take_spec);
    json_decref(take_spec);
    if (layout_list_parse("spec", t.buf, t.len, ret, &e) < 0)
        fail_msg("%s\n%s", e.text, t.buf);
}

static void yaml_is(json_t *take_spec, const char *expected)
{
    AUTO(text) struct text t = TEXT_INIT;
    mig_state_add_yaml(&t, take_spec);
    json_decref(take_spec);
    assert_string_equal(t.buf, expected);
}

static void cards_that_are_alike_share_an_entry(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    size_t unsaid;
    for (int i = 0; i < 3; i++)
        (void)layouts_card(&inv, "a100-40gb");
    yaml_is(mig_state_export(&inv, "current", &unsaid), "version: v1\n"
                                                        "mig-configs:\n"
                                                        "  current:\n"
                                                        "    - devices: all\n"
                                                        "      mig-enabled: true\n"
                                                        "      mig-devices: {}\n");
    (void)card_cut(&inv.cards[0], "2g.10gb", 0, 0);
    (void)card_cut(&inv.cards[0], "1g.5gb", 2, 0);
    (void)card_cut(&inv.cards[2], "1g.5gb", 6, 0);
    (void)card_cut(&inv.cards[2], "2g.10gb", 4, 0);
    card_turn(&inv.cards[1], false);
    yaml_is(mig_state_export(&inv, "my label", &unsaid), "version: v1\n"
                                                         "mig-configs:\n"
                                                         "  \"my label\":\n"
                                                         "    - devices:\n"
                                                         "        - 0\n"
                                                         "        - 2\n"
                                                         "      mig-enabled: true\n"
                                                         "      mig-devices:\n"
                                                         "        2g.10gb: 1\n"
                                                         "        1g.5gb: 1\n"
                                                         "    - devices:\n"
                                                         "        - 1\n"
                                                         "      mig-enabled: false\n"
                                                         "      mig-devices: {}\n");
    assert_int_equal(unsaid, 0);
}

static void other_models_are_told_apart_by_a_filter(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    size_t unsaid;
    (void)layouts_card(&inv, "a100-40gb");
    (void)layouts_card(&inv, "a30");
    (void)card_cut(&inv.cards[1], "4g.24gb", 0, 0);
    yaml_is(mig_state_export(&inv, "current", &unsaid), "version: v1\n"
                                                        "mig-configs:\n"
                                                        "  current:\n"
                                                        "    - devices: all\n"
                                                        "      mig-enabled: true\n"
                                                        "      mig-devices: {}\n"
                                                        "      device-filter: \"0x20B010DE\"\n"
                                                        "    - devices: all\n"
                                                        "      mig-enabled: true\n"
                                                        "      mig-devices:\n"
                                                        "        4g.24gb: 1\n"
                                                        "      device-filter: \"0x20B710DE\"\n");
}

static void what_has_no_words_is_counted(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    size_t unsaid;
    (void)layouts_card(&inv, "a100-40gb");
    (void)card_cut(&inv.cards[0], "2g.10gb", 0, 0);
    inv.cards[0].card.slices[0].ci = NOT_AN_INSTANCE;
    json_decref(mig_state_export(&inv, "current", &unsaid));
    assert_int_equal(unsaid, 1);
}

/* How many slices of each name there are, as a JSON object. */
static json_t *counts_of(const struct card *c)
{
    json_t *counts = json_object();
    for (size_t i = 0; i < c->slice_count; i++) {
        AUTO(text) struct text a = TEXT_INIT;
        address_add(&a, c, &c->slices[i]);
        char *name = strchr(a.buf, '/') + 1;
        *strchr(name, '@') = '\0';
        json_put_u64(counts, name, 1 + (uint64_t)json_integer_value(json_object_get(counts, name)));
    }
    return counts;
}

/* The wish's profiles by the board's names. */
static json_t *wanted_counts(const struct layout_wish *w, const struct board *b)
{
    json_t *counts = json_object();
    for (size_t i = 0; i < w->piece_count; i++) {
        bool other;
        const struct profile *p = layout_find_profile(b, w->pieces[i].profile, &other);
        json_put_u64(counts, p ? p->name : w->pieces[i].profile, w->pieces[i].count);
    }
    return counts;
}

/* Empty, planned, and looked at: exactly the slices that the wish names. */
static void gives_what_it_means(const struct inventory_card *c, const struct layout *l,
                                const struct layout_wish *w)
{
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    struct inventory_card after;
    layout_plan(c, w, &ch);
    if (ch.verdict > LAYOUT_TO_DO)
        fail_msg("%s, %s: %s", c->card.board.key, l->label, ch.why);
    layouts_after(c, &ch.steps, &after);
    auto_json json_t *is = counts_of(&after.card);
    auto_json json_t *wanted = wanted_counts(w, &c->card.board);
    if (!json_equal(is, wanted))
        fail_msg("%s, %s: not what was wished", c->card.board.key, l->label);
    layouts_after_done(&after);
}

static void every_generated_label_can_be_had_on_every_board(void **state)
{
    (void)state;
    AUTO(field_words) struct field_words keys = { .words = NULL };
    size_t labels = 0;
    assert_int_equal(board_keys(&keys, NULL), 0);
    for (size_t k = 0; k < keys.count; k++) {
        AUTO(inventory) struct inventory inv = { .cards = NULL };
        AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
        const struct inventory_card *c = layouts_card(&inv, keys.words[k]);
        if (!c->card.mig_capable)
            continue;
        read_spec(mig_state_generate(&inv), &l);
        assert_int_equal(l.count, 2 + c->card.board.profile_count + 1);
        for (size_t i = 0; i < l.count; i++, labels++) {
            assert_int_equal(l.layouts[i].wish_count, 1);
            gives_what_it_means(c, &l.layouts[i], &l.layouts[i].wishes[0]);
        }
    }
    assert_true(labels > 100);
}

static void generated_labels_are_filtered_where_models_differ(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
    size_t seen = 0;
    (void)layouts_card(&inv, "h100-80gb-sxm");
    (void)layouts_card(&inv, "a100-80gb");
    (void)layouts_card(&inv, "a30");
    (void)layouts_card(&inv, "rtx4090");
    read_spec(mig_state_generate(&inv), &l);
    for (size_t i = 0; i < l.count; i++) {
        const struct layout *one = &l.layouts[i];
        bool both = strcmp(one->label, "all-1g.10gb") == 0;
        bool balanced = strcmp(one->label, "all-balanced") == 0;
        seen += both || balanced;
        if (both) { /* as often on both */
            assert_int_equal(one->wish_count, 1);
            assert_int_equal(one->wishes[0].device_count, 2);
        }
        if (balanced) {
            const struct layout_wish *wishes[4];
            assert_int_equal(layout_assign(one, &inv, wishes, NULL), 0);
            assert_ptr_equal(wishes[0], wishes[1]);
            assert_int_equal(wishes[2]->piece_count, 2);
            assert_null(wishes[3]);
        }
    }
    assert_int_equal(seen, 2);
}

/* The boards whose own names a label uses; where there are none, those that it may mean. */
static size_t plan_label(const struct layout *l, const struct field_words *keys, bool exactly)
{
    size_t boards = 0;
    for (size_t k = 0; k < keys->count; k++) {
        AUTO(inventory) struct inventory inv = { .cards = NULL };
        const struct layout_wish *wish = NULL;
        struct err e = ERR_INIT;
        bool there = true;
        const struct inventory_card *c = layouts_card(&inv, keys->words[k]);
        if (layout_assign(l, &inv, &wish, &e) < 0)
            fail_msg("%s", e.text);
        for (size_t p = 0; wish && p < wish->piece_count; p++) {
            bool other = false;
            there = there && layout_find_profile(&c->card.board, wish->pieces[p].profile, &other) &&
                    !(exactly && other);
        }
        if (!wish || !there)
            continue; /* for other boards */
        gives_what_it_means(c, l, wish);
        boards++;
    }
    return boards;
}

/* The files that mig-parted itself brings, where a folder with them is named. */
static void the_files_of_others_give_what_they_mean(void **state)
{
    (void)state;
    const char *folder = getenv("DIVVY_MIG_PARTED_FILES");
    AUTO(field_words) struct field_words keys = { .words = NULL };
    AUTO(layout_list) struct layout_list l = LAYOUT_LIST_INIT;
    struct err e = ERR_INIT;
    size_t planned = 0;
    if (!folder) {
        print_message("DIVVY_MIG_PARTED_FILES names no folder with config-default.yaml\n");
        skip();
    }
    auto_free char *path = text_fmt("%s/config-default.yaml", folder);
    if (layout_list_read(path, &l, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(board_keys(&keys, NULL), 0);
    for (size_t i = 0; i < l.count; i++) {
        size_t boards = plan_label(&l.layouts[i], &keys, true);
        if (!boards)
            boards = plan_label(&l.layouts[i], &keys, false);
        if (!boards)
            print_message("%s: no board that is known here\n", l.layouts[i].label);
        planned += boards;
    }
    print_message("%zu labels, %zu layouts on boards\n", l.count, planned);
    assert_true(planned > l.count);
}

static void a_checkpoint_is_exact(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    AUTO(layout) struct layout l = LAYOUT_INIT;
    AUTO(layout_change) struct layout_change ch = LAYOUT_CHANGE_INIT;
    struct err e = ERR_INIT;
    struct inventory_card after;
    struct inventory_card *c = layouts_card(&inv, "a100-80gb");
    layouts_plan(c, "slices: [1g.20gb@2, 2g.20gb@0, 1c.3g.40gb@4.0, 1c.3g.40gb@4.1]", &ch);
    layouts_after(c, &ch.steps, &after);
    struct inventory was = { .cards = &after, .card_count = 1 };
    auto_json json_t *j = mig_state_checkpoint(&was);
    auto_free char *before = layouts_text(&after.card);
    layouts_after_done(&after);
    auto_json json_t *place = json_pack("{s:i, s:i}", "Start", 0, "Size", 2);
    json_t *device = json_array_get(json_object_get(json_object_get(j, "MigState"), "Devices"), 0);
    json_t *first = json_array_get(json_object_get(device, "GpuInstances"), 0);
    assert_true(json_equal(json_object_get(first, "Placement"), place));
    assert_int_equal(json_integer_value(json_object_get(first, "ProfileID")), 1); /* not 14 */
    if (mig_state_from_checkpoint("c.json", j, &inv, &l, &e) < 0)
        fail_msg("%s", e.text);
    layout_change_done(&ch);
    layout_plan(c, &l.wishes[0], &ch);
    assert_string_equal(ch.why, "");
    layouts_after(c, &ch.steps, &after);
    auto_free char *is = layouts_text(&after.card);
    assert_string_equal(is, before);
    layouts_after_done(&after);
}

static void refused(const struct inventory *inv, const char *text, int code, const char *expected)
{
    struct layout l = LAYOUT_INIT;
    struct err e = ERR_INIT;
    auto_json json_t *j = NULL;
    assert_int_equal(json_parse(text, strlen(text), "c.json", &j, &e), 0);
    assert_int_equal(mig_state_from_checkpoint("c.json", j, inv, &l, &e), code);
    if (!strstr(e.text, expected))
        fail_msg("'%s' is not in: %s", expected, e.text);
    assert_int_equal(l.wish_count, 0);
}

static void a_checkpoint_of_other_cards_is_refused(void **state)
{
    (void)state;
    AUTO(inventory) struct inventory inv = { .cards = NULL };
    const struct card *c = &layouts_card(&inv, "a30")->card;
    auto_free char *kind = text_fmt("{\"Version\": \"v1\", \"MigState\": {\"Devices\": [{\"UUID\": "
                                    "\"%s\", \"MigMode\": 1, \"GpuInstances\": [{\"ProfileID\": 4, "
                                    "\"Placement\": {\"Start\": 0, \"Size\": 8}}]}]}}",
                                    c->uuid);
    refused(&inv, kind, -ENOTSUP, "gpu0 has no profile of kind 4");
    refused(&inv,
            "{\"Version\": \"v1\", \"MigState\": {\"Devices\": [{\"UUID\": \"GPU-gone\", "
            "\"MigMode\": 0}]}}",
            -ENODEV, "GPU-gone is not among the cards that are here, so nothing is restored");
    refused(&inv, "{\"Version\": \"v3\", \"MigState\": {\"Devices\": []}}", -EINVAL,
            "version 'v3' is not known");
    refused(&inv, "{\"Version\": \"v1\"}", -EINVAL, "MigState");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_that_are_alike_share_an_entry),
        cmocka_unit_test(other_models_are_told_apart_by_a_filter),
        cmocka_unit_test(what_has_no_words_is_counted),
        cmocka_unit_test(every_generated_label_can_be_had_on_every_board),
        cmocka_unit_test(generated_labels_are_filtered_where_models_differ),
        cmocka_unit_test(the_files_of_others_give_what_they_mean),
        cmocka_unit_test(a_checkpoint_is_exact),
        cmocka_unit_test(a_checkpoint_of_other_cards_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
