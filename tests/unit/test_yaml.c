#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "config/yaml.h"

static int parse(const char *text, struct yaml_tree **t, struct err *e)
{
    return yaml_tree_parse("f.yaml", text, strlen(text), t, e);
}

/* Parses what must be refused, and holds the whole sentence against `expected`. */
static void refused(const char *text, const char *expected)
{
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    struct err e = ERR_INIT;
    assert_true(parse(text, &t, &e) < 0);
    assert_null(t);
    assert_string_equal(e.text, expected);
}

static void a_tree_keeps_order_kinds_and_places(void **state)
{
    (void)state;
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    assert_int_equal(parse("a: 1\nlist: [x, \"y\"]\nmap:\n  deep: {k: v}\n", &t, NULL), 0);
    assert_int_equal(t->root->kind, YAML_IS_MAP);
    assert_int_equal(t->root->count, 3);
    const struct yaml_node *list = yaml_node_get(t->root, "list");
    assert_int_equal(list->kind, YAML_IS_LIST);
    assert_int_equal(list->line, 2);
    assert_int_equal(list->column, 7);
    assert_int_equal(list->key_column, 1);
    assert_string_equal(list->first->text, "x");
    assert_false(list->first->quoted);
    assert_true(list->last->quoted);
    const struct yaml_node *deep = yaml_node_get(yaml_node_get(t->root, "map"), "deep");
    assert_int_equal(deep->key_line, 4);
    assert_string_equal(yaml_node_get(deep, "k")->text, "v");
    assert_null(yaml_node_get(deep, "nothing"));
}

static void an_empty_file_is_an_empty_map(void **state)
{
    (void)state;
    const char *const texts[] = { "", "# only a comment\n", "---\n", "~\n" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
        assert_int_equal(parse(texts[i], &t, NULL), 0);
        assert_int_equal(t->root->kind, YAML_IS_MAP);
        assert_int_equal(t->root->count, 0);
    }
}

static void what_is_not_taken_is_refused_at_its_place(void **state)
{
    (void)state;
    refused("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: a is here twice, first in line 1");
    refused("a: &x 1\nb: *x\n", "f.yaml:2:4: aliases (*x) are not taken; write the value out here");
    refused("a: !!int 1\n", "f.yaml:1:4: tags (tag:yaml.org,2002:int) are not understood here");
    refused("a: 1\n---\nb: 1\n", "f.yaml:2:1: a second document begins here; one is expected");
    refused("? [a]\n: 1\n", "f.yaml:1:3: a key must be a word, not a list");
    refused("a: \"x\\0y\"\n", "f.yaml:1:4: a NUL byte has no place in a text");
    refused("a: [1, 2\nb: 3\n",
            "f.yaml:2:2: not YAML: did not find expected ',' or ']', while parsing a flow sequence "
            "(begun in line 1)");
}

static void limits_are_limits(void **state)
{
    (void)state;
    AUTO(text) struct text deep = TEXT_INIT;
    for (int i = 0; i < 32; i++)
        text_add(&deep, "[");
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    struct err e = ERR_INIT;
    AUTO(text) struct text closed = TEXT_INIT;
    text_add(&closed, deep.buf);
    for (int i = 0; i < 32; i++)
        text_add(&closed, "]");
    assert_int_equal(parse(closed.buf, &t, &e), 0);
    text_add(&deep, "[");
    refused(deep.buf, "f.yaml:1:33: nested deeper than 32 levels");

    AUTO(text) struct text many = TEXT_INIT;
    for (unsigned i = 0; i < YAML_NODES_MAX; i++)
        text_add(&many, "- x\n");
    refused(many.buf, "f.yaml:20000:3: more than 20000 entries in one file");

    auto_free char *big = mem_new(YAML_BYTES_MAX + 1);
    AUTO_PTR(yaml_tree_free) struct yaml_tree *none = NULL;
    assert_int_equal(yaml_tree_parse("f.yaml", big, YAML_BYTES_MAX + 1, &none, &e), -EFBIG);
    assert_string_equal(e.text, "f.yaml: larger than 1024 KiB");
}

static const char values[] = "n: 42\nhex: 0x20B2\nyes: on\nsize: 1.5G\ntime: 10m\nx: 0.5\n"
                             "empty:\nword: 'null'\nbadhex: 0xZZ\nneg: -1\nlist: [1]\n";

static void values_are_read_with_their_units(void **state)
{
    (void)state;
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    assert_int_equal(parse(values, &t, NULL), 0);
    uint64_t n;
    assert_int_equal(yaml_node_u64(yaml_node_get(t->root, "n"), 0, 100, &n, NULL), 0);
    assert_int_equal(n, 42);
    assert_int_equal(yaml_node_u64(yaml_node_get(t->root, "hex"), 0, 0xffff, &n, NULL), 0);
    assert_int_equal(n, 0x20b2);
    bool yes = false;
    assert_int_equal(yaml_node_bool(yaml_node_get(t->root, "yes"), &yes, NULL), 0);
    assert_true(yes);
    assert_int_equal(yaml_node_size(yaml_node_get(t->root, "size"), &n, NULL), 0);
    assert_int_equal(n, 1610612736);
    int64_t us;
    assert_int_equal(yaml_node_duration(yaml_node_get(t->root, "time"), &us, NULL), 0);
    assert_int_equal(us, 600000000);
    double x;
    assert_int_equal(yaml_node_double(yaml_node_get(t->root, "x"), 0, 1, &x, NULL), 0);
    assert_true(x > 0.49 && x < 0.51);
    const char *word;
    assert_int_equal(yaml_node_text(yaml_node_get(t->root, "word"), &word, NULL), 0);
    assert_string_equal(word, "null");
    assert_true(yaml_node_is_null(yaml_node_get(t->root, "empty")));
}

static void bad_values_name_key_and_place(void **state)
{
    (void)state;
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    assert_int_equal(parse(values, &t, NULL), 0);
    uint64_t n;
    struct err e = ERR_INIT;
    assert_int_equal(yaml_node_u64(yaml_node_get(t->root, "badhex"), 0, 9, &n, &e), -EINVAL);
    assert_string_equal(e.text, "f.yaml:9:9: badhex: \"0xZZ\" is no hexadecimal number");
    assert_int_equal(yaml_node_u64(yaml_node_get(t->root, "neg"), 0, 9, &n, &e), -EINVAL);
    assert_true(text_starts(e.text, "f.yaml:10:6: neg: '-1' is not a whole number"));
    assert_int_equal(yaml_node_u64(yaml_node_get(t->root, "list"), 0, 9, &n, &e), -EINVAL);
    assert_string_equal(e.text, "f.yaml:11:7: list must be a word, not a list");
    bool b;
    assert_int_equal(yaml_node_bool(yaml_node_get(t->root, "n"), &b, &e), -EINVAL);
    assert_string_equal(e.text, "f.yaml:1:4: n: \"42\" is neither true nor false");
    const char *word;
    assert_int_equal(yaml_node_text(yaml_node_get(t->root, "empty"), &word, &e), -EINVAL);
    assert_string_equal(e.text, "f.yaml:7:7: empty has no value");
}

static void a_missing_file_is_told_apart(void **state)
{
    (void)state;
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
    assert_int_equal(yaml_tree_read("/nonexistent/divvy.yaml", &t, NULL), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_keeps_order_kinds_and_places),
        cmocka_unit_test(an_empty_file_is_an_empty_map),
        cmocka_unit_test(what_is_not_taken_is_refused_at_its_place),
        cmocka_unit_test(limits_are_limits),
        cmocka_unit_test(values_are_read_with_their_units),
        cmocka_unit_test(bad_values_name_key_and_place),
        cmocka_unit_test(a_missing_file_is_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
