/* cli/table.h: columns line up, in any alphabet and any width. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/table.h"

static const struct screen file = { .tty = false };
static const struct screen narrow = { .tty = true, .width = 40 };
static const struct screen colourful = { .tty = true, .width = 80, .colour = true };

static void expect(const struct table *t, const struct screen *s, const char *wanted)
{
    AUTO(text) struct text got = TEXT_INIT;
    table_draw(t, s, &got);
    assert_string_equal(got.buf, wanted);
}

static void test_columns_line_up(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "ID", TABLE_RIGHT);
    table_column(&t, "NAME", 0);
    table_column(&t, "WHY", TABLE_WRAP);
    table_cell(&t, "7"), table_cell(&t, "größer"), table_cell(&t, "a b");
    table_cell(&t, "1234"), table_cell(&t, "日本"), table_cell(&t, "");
    table_cell(&t, "8"), table_cell(&t, NULL);
    expect(&t, &file,
           "  ID  NAME    WHY\n"
           "   7  größer  a b\n"
           "1234  日本\n"
           "   8  -\n");
}

static void test_long_text_wraps_below_itself(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "ID", 0);
    table_column(&t, "WHY", TABLE_WRAP);
    table_cell(&t, "62");
    table_cell(&t, "starts about 16:40: gpu1 frees then; gpu0 is draining for it");
    expect(&t, &narrow,
           "ID  WHY\n"
           "62  starts about 16:40: gpu1 frees then;\n"
           "    gpu0 is draining for it\n");
    expect(&t, &file,
           "ID  WHY\n"
           "62  starts about 16:40: gpu1 frees then; gpu0 is draining for it\n");
}

static void test_a_word_longer_than_the_screen_stays_whole(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "WHY", TABLE_WRAP);
    table_cell(&t, "0123456789012345678901234567890123456789012345 next");
    expect(&t, &narrow, "WHY\n0123456789012345678901234567890123456789012345\nnext\n");
}

static void test_what_may_be_cut_is_cut(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "NAME", TABLE_CUT);
    table_column(&t, "ASKS", 0);
    table_cell(&t, "a name of very many letters, which nobody reads");
    table_cell(&t, "2g.20gb");
    expect(&t, &narrow,
           "NAME                             ASKS\n"
           "a name of very many letters, w…  2g.20gb\n");
}

static void test_others_are_cut_where_that_is_not_enough(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    struct screen tiny = { .tty = true, .width = 17 };
    table_column(&t, "NAME", TABLE_CUT);
    table_column(&t, "ASKS", TABLE_CUT_LATE);
    table_cell(&t, "a-long-name");
    table_cell(&t, "2 whole cards");
    expect(&t, &tiny, "NAME    ASKS\na-lon…  2 whole …\n");
}

static void test_names_cannot_draw(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "NAME", 0);
    table_cell(&t, "\033[31mred\n\xff\xc3(\xc2\x9b");
    expect(&t, &file, "NAME\n?[31mred?\?\?(?\?\n");
}

static void test_colour_takes_no_room(void **state)
{
    (void)state;
    AUTO(table) struct table t = TABLE_INIT;
    table_column(&t, "STATE", 0);
    table_column(&t, "X", 0);
    table_cell(&t, "ok");
    table_tint(&t, COLOUR_GOOD);
    table_cell(&t, "1");
    expect(&t, &colourful, "STATE  X\n\033[32mok\033[0m     1\n");
    expect(&t, &file, "STATE  X\nok     1\n");
}

static void test_how_wide_text_is(void **state)
{
    (void)state;
    assert_int_equal(cells_wide("abc"), 3);
    assert_int_equal(cells_wide("日本"), 4);
    assert_int_equal(cells_wide("e\xcc\x81"), 1);
    assert_int_equal(cells_wide(""), 0);
    AUTO(text) struct text t = TEXT_INIT;
    cells_add_cut(&t, "日本語", 4);
    assert_string_equal(t.buf, "日…");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_line_up),
        cmocka_unit_test(test_long_text_wraps_below_itself),
        cmocka_unit_test(test_a_word_longer_than_the_screen_stays_whole),
        cmocka_unit_test(test_what_may_be_cut_is_cut),
        cmocka_unit_test(test_others_are_cut_where_that_is_not_enough),
        cmocka_unit_test(test_names_cannot_draw),
        cmocka_unit_test(test_colour_takes_no_room),
        cmocka_unit_test(test_how_wide_text_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
