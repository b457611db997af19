#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "config/board.h"
#include "config/board_known.h"

static const char head[] = "board: x\nname: X\npci_device: 0x20B2\narch: ampere\n"
                           "compute_capability: 8.0\nmemory_mib: 1024\nsms: 8\n"
                           "power_w: {idle: 1, limit: 2}\nengines: {copy: 1}\n"
                           "mig:\n  activation: gpu_reset\n  units: 8\n  slices: 7\n  profiles:\n";

static void refused(const char *profile, const char *expected)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_addf(&t, "%s  - {%s}\n", head, profile);
    struct board *b = mem_new(sizeof *b);
    struct err e = ERR_INIT;
    assert_int_equal(board_parse("x.yaml", t.buf, t.len, b, &e), -EINVAL);
    assert_string_equal(e.text, expected);
    free(b);
}

static void the_a100_is_as_nvidia_documents_it(void **state)
{
    (void)state;
    struct board *b = mem_new(sizeof *b);
    assert_int_equal(board_find("a100-80gb", b, NULL), 0);
    assert_string_equal(b->name, "NVIDIA A100-SXM4-80GB");
    assert_int_equal(b->activation, MIG_BY_RESET);
    assert_int_equal(b->pci_device_id, 0x20b210de);
    assert_int_equal(b->mem_bytes, (uint64_t)81920 << 20);
    assert_int_equal(b->profile_count, 7);
    const struct profile *p = board_profile_by_name(b, "2g.20gb");
    assert_int_equal(p->id, 14);
    assert_int_equal(p->index, 1);
    assert_int_equal(p->units, 2);
    assert_int_equal(p->start_count, 3);
    assert_int_equal(p->order[0], 4);
    assert_int_equal(profile_full_ci(p)->id, 1);
    assert_string_equal(profile_full_ci(p)->name, "2g.20gb");
    assert_string_equal(profile_ci_by_id(p, 0)->name, "1c.2g.20gb");
    assert_true(p->unconfirmed); /* its memory is not from a capture */
    free(b);
}

/* board_known.h: read by the build, and not again while its text is the same. */
static void what_the_build_read_of_a_board_is_what_its_text_says(void **state)
{
    (void)state;
    size_t count = 0;
    struct board *known = mem_new(sizeof *known), *read = mem_new(sizeof *read);
    for (const struct board_known *k = board_table; k->text; k++, count++) {
        auto_free char *other = text_fmt("%s# another text\n", k->text);
        assert_true(board_known(k->text, k->len, known));
        assert_false(board_known(other, strlen(other), read));
        assert_int_equal(board_parse("x.yaml", other, strlen(other), read, NULL), 0);
        assert_string_equal(known->key, read->key);
        assert_memory_equal(known, read, sizeof *known);
    }
    assert_true(count >= 20);
    free(known);
    free(read);
}

static void every_board_file_is_sound(void **state)
{
    (void)state;
    struct field_words keys;
    assert_int_equal(board_keys(&keys, NULL), 0);
    assert_true(keys.count >= 20);
    struct board *b = mem_new(sizeof *b);
    for (size_t i = 0; i < keys.count; i++) {
        struct err e = ERR_INIT;
        if (board_find(keys.words[i], b, &e) < 0)
            fail_msg("%s", e.text);
        assert_string_equal(b->key, keys.words[i]);
        assert_true((b->profile_count > 0) == (b->activation != MIG_NONE));
        for (uint32_t p = 0; p < b->profile_count; p++) {
            assert_true(b->profiles[p].mem_bytes < b->mem_bytes);
            assert_true(b->profiles[p].max * b->profiles[p].units <= b->units);
        }
    }
    free(b);
    field_words_done(&keys);
}

static void an_unknown_board_brings_the_nearest(void **state)
{
    (void)state;
    struct board *b = mem_new(sizeof *b);
    struct err e = ERR_INIT;
    assert_int_equal(board_find("a100-8ogb", b, &e), -ENOENT);
    assert_true(text_starts(e.text, "there is no board 'a100-8ogb'; did you mean a100-80gb? Known "
                                    "are a100-40gb, a100-80gb, a30, "));
    assert_int_equal(board_find("../boards/a30", b, &e), -ENOENT);
    assert_int_equal(setenv("DIVVY_BOARDS", "/nonexistent", 1), 0);
    assert_int_equal(board_find("a30", b, &e), -ENOENT);
    assert_string_equal(e.text,
                        "no board files in /nonexistent; DIVVY_BOARDS can name their directory");
    assert_int_equal(unsetenv("DIVVY_BOARDS"), 0);
    free(b);
}

#define REST                                                                                       \
    ", memory_mib: 1, sms: 1, engines: [0, 0, 0, 0, 0], max: 1, "                                  \
    "compute: [[1, 1, 1]]"

static void impossible_geometry_is_refused(void **state)
{
    (void)state;
    refused("name: 1g, id: 1, index: 0, slices: 1, units: 2, starts: [0, 7]" REST,
            "x.yaml:15:5: 1g at unit 7 would run past the card's 8 units");
    refused("name: 1g, id: 1, index: 0, slices: 1, units: 2, starts: [2, 0]" REST,
            "x.yaml:15:62: starts must ascend");
    refused("name: 1g, id: 1, index: 0, slices: 1, units: 2, starts: [0], order: [4]" REST,
            "x.yaml:15:5: 1g: order names unit 4, which is not in starts");
    refused("name: 2g, id: 1, index: 0, slices: 2, units: 2, starts: [0]" REST,
            "x.yaml:15:5: 2g: compute lacks the instance with all 2 slices");
    refused("name: 1g, id: 1, index: 0, slices: 1, units: 2" REST,
            "x.yaml:15:5: starts is missing");
    refused("name: 1g, id: 1, index: 0, slices: 1, units: 2, starts: [0], strats: [0]" REST,
            "x.yaml:15:67: there is no key 'strats' here; did you mean 'starts'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_a100_is_as_nvidia_documents_it),
        cmocka_unit_test(what_the_build_read_of_a_board_is_what_its_text_says),
        cmocka_unit_test(every_board_file_is_sound),
        cmocka_unit_test(an_unknown_board_brings_the_nearest),
        cmocka_unit_test(impossible_geometry_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
