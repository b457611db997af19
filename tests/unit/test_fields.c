#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/text.h"
#include "model/fields.h"
#include "model/job.h"

/* One object, read by each test in its own way. */
static json_t *parse(const char *s)
{
    struct err e = ERR_INIT;
    json_t *j = NULL;
    if (json_parse(s, strlen(s), "the body", &j, &e) < 0)
        fail_msg("%s", e.text);
    return j;
}

static void fields_are_read_by_kind(void **state)
{
    (void)state;
    auto_json json_t *j =
        parse("{\"n\": 7, \"i\": -7, \"s\": \"x\", \"b\": true, \"o\": {}, \"l\": [1]}");
    struct err e = ERR_INIT;
    struct fields f;
    char buf[4];
    fields_open(&f, j, "thing", &e);
    assert_int_equal(fields_u64(&f, "n", FIELD_REQUIRED, 0, 9, 0), 7);
    assert_int_equal(fields_i64(&f, "i", FIELD_REQUIRED, -9, 9, 0), -7);
    assert_string_equal(fields_text(&f, "s", FIELD_REQUIRED, 9), "x");
    fields_copy(&f, "s", FIELD_REQUIRED, buf, sizeof buf);
    assert_string_equal(buf, "x");
    assert_true(fields_bool(&f, "b", false));
    assert_true(json_is_object(fields_object(&f, "o", FIELD_REQUIRED)));
    assert_int_equal(json_array_size(fields_array(&f, "l", FIELD_REQUIRED, 1)), 1);
    assert_int_equal(fields_close(&f, FIELDS_STRICT), 0);
    assert_int_equal(e.code, 0);
}

/* What is absent and what is null are the same. */
static void what_is_not_there_has_its_stand_in(void **state)
{
    (void)state;
    auto_json json_t *j = parse("{\"n\": null, \"s\": null, \"b\": null, \"l\": null}");
    struct fields f;
    char buf[4] = "old";
    fields_open(&f, j, "thing", NULL);
    assert_int_equal(fields_u64(&f, "n", FIELD_OPTIONAL, 0, 9, 5), 5);
    assert_int_equal(fields_i64(&f, "none", FIELD_OPTIONAL, 0, 9, -5), -5);
    assert_null(fields_text(&f, "s", FIELD_OPTIONAL, 9));
    fields_copy(&f, "none", FIELD_OPTIONAL, buf, sizeof buf);
    assert_string_equal(buf, "");
    assert_true(fields_bool(&f, "b", true));
    assert_null(fields_object(&f, "none", FIELD_OPTIONAL));
    assert_null(fields_array(&f, "l", FIELD_OPTIONAL, 9));
    assert_null(fields_strv(&f, "l", FIELD_OPTIONAL, 9, 9));
    assert_int_equal(fields_close(&f, FIELDS_STRICT), 0);
}

enum kind { TEXT, NUMBER, SIGNED, BOOL, OBJECT, LIST, STRINGS };

static void read_one(struct fields *f, const char *key, enum kind kind)
{
    switch (kind) {
    case TEXT:
        assert_null(fields_text(f, key, FIELD_REQUIRED, 3));
        break;
    case NUMBER:
        assert_int_equal(fields_u64(f, key, FIELD_REQUIRED, 1, 9, 5), 5);
        break;
    case SIGNED:
        assert_int_equal(fields_i64(f, key, FIELD_REQUIRED, -9, 9, 5), 5);
        break;
    case BOOL:
        (void)fields_bool(f, key, false); /* only its refusal is of interest */
        break;
    case OBJECT:
        assert_null(fields_object(f, key, FIELD_REQUIRED));
        break;
    case LIST:
        assert_null(fields_array(f, key, FIELD_REQUIRED, 2));
        break;
    case STRINGS:
        assert_null(fields_strv(f, key, FIELD_REQUIRED, 2, 8));
        break;
    }
}

static void what_is_wrong_is_said_in_a_sentence(void **state)
{
    (void)state;
    static const struct {
        enum kind kind;
        const char *json;
        const char *sentence;
    } table[] = {
        { TEXT, "{}", "thing: field 'x' is missing" },
        { TEXT, "{\"x\": null}", "thing: field 'x' is missing" },
        { TEXT, "{\"x\": 7}", "thing: 'x' must be a string" },
        { TEXT, "{\"x\": \"four\"}", "thing: 'x' has 4 bytes, at most 3 work" },
        { TEXT, "{\"x\": \"üü\"}", "thing: 'x' has 4 bytes, at most 3 work" },
        { NUMBER, "{}", "thing: field 'x' is missing" },
        { NUMBER, "{\"x\": \"7\"}", "thing: 'x' must be a whole number" },
        { NUMBER, "{\"x\": 7.0}", "thing: 'x' must be a whole number" },
        { NUMBER, "{\"x\": true}", "thing: 'x' must be a whole number" },
        { NUMBER, "{\"x\": 0}", "thing: 'x' must be from 1 to 9" },
        { NUMBER, "{\"x\": 10}", "thing: 'x' must be from 1 to 9" },
        { NUMBER, "{\"x\": -1}", "thing: 'x' must be from 1 to 9" },
        { NUMBER, "{\"x\": 9223372036854775807}", "thing: 'x' must be from 1 to 9" },
        { SIGNED, "{\"x\": -10}", "thing: 'x' must be from -9 to 9" },
        { SIGNED, "{\"x\": []}", "thing: 'x' must be a whole number" },
        { BOOL, "{\"x\": 1}", "thing: 'x' must be true or false" },
        { BOOL, "{\"x\": \"true\"}", "thing: 'x' must be true or false" },
        { OBJECT, "{\"x\": []}", "thing: 'x' must be an object" },
        { LIST, "{\"x\": {}}", "thing: 'x' must be a list" },
        { LIST, "{\"x\": [1, 2, 3]}", "thing: 'x' has 3 entries, at most 2 work" },
        { STRINGS, "{\"x\": [\"a\", 7]}", "thing: 'x' must be a list of strings" },
        { STRINGS, "{\"x\": [null]}", "thing: 'x' must be a list of strings" },
        { STRINGS, "{\"x\": [\"abcd\", \"efgh\"]}", "thing: 'x' is longer than 8 bytes" },
        { STRINGS, "{\"x\": \"a\"}", "thing: 'x' must be a list" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        auto_json json_t *j = parse(table[i].json);
        struct err e = ERR_INIT;
        struct fields f;
        fields_open(&f, j, "thing", &e);
        read_one(&f, "x", table[i].kind);
        assert_int_equal(fields_close(&f, FIELDS_STRICT), -EINVAL);
        assert_string_equal(e.text, table[i].sentence);
    }
}

static void only_an_object_has_fields(void **state)
{
    (void)state;
    auto_json json_t *list = parse("[]");
    json_t *const others[] = { list, NULL };
    for (size_t i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct fields f;
        fields_open(&f, others[i], "thing", &e);
        assert_null(fields_text(&f, "x", FIELD_REQUIRED, 9));
        assert_int_equal(fields_close(&f, FIELDS_OPEN), -EINVAL);
        assert_string_equal(e.text, "thing: must be an object");
    }
}

static void unknown_fields_are_refused_where_it_is_strict(void **state)
{
    (void)state;
    auto_json json_t *j = parse("{\"count\": 1, \"cuont\": 2}");
    struct err e = ERR_INIT;
    struct fields f;
    fields_open(&f, j, "request", &e);
    assert_int_equal(fields_u64(&f, "count", FIELD_REQUIRED, 0, 9, 0), 1);
    assert_int_equal(fields_close(&f, FIELDS_OPEN), 0);
    assert_int_equal(fields_close(&f, FIELDS_STRICT), -EINVAL);
    assert_string_equal(e.text, "request: there is no field 'cuont'");
}

static void the_first_failure_is_the_one_that_is_told(void **state)
{
    (void)state;
    auto_json json_t *j = parse("{\"a\": 1, \"b\": 2, \"c\": 3}");
    struct err e = ERR_INIT;
    struct fields f;
    fields_open(&f, j, "thing", &e);
    assert_null(fields_text(&f, "a", FIELD_REQUIRED, 9));
    assert_int_equal(fields_u64(&f, "b", FIELD_REQUIRED, 0, 9, 5),
                     5); /* nothing is read after it */
    assert_true(fields_bool(&f, "c", true));
    assert_null(fields_strv(&f, "c", FIELD_REQUIRED, 9, 9));
    fields_fail(&f, "something else");
    assert_int_equal(fields_close(&f, FIELDS_STRICT), -EINVAL);
    assert_string_equal(e.text, "thing: 'a' must be a string");
}

static void a_nul_inside_a_string_is_refused(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct fields f;
    auto_json json_t *j = json_object();
    json_put(j, "x", json_stringn("a\0b", 3));
    json_put(j, "l", json_pack("[s#]", "a\0b", 3));
    fields_open(&f, j, "thing", &e);
    assert_null(fields_text(&f, "x", FIELD_REQUIRED, 9));
    assert_int_equal(fields_close(&f, FIELDS_OPEN), -EINVAL);
    assert_string_equal(e.text, "thing: 'x' has a NUL inside");
    fields_open(&f, j, "thing", &e);
    assert_null(fields_strv(&f, "l", FIELD_REQUIRED, 9, 99));
    assert_int_equal(fields_close(&f, FIELDS_OPEN), -EINVAL);
    assert_string_equal(e.text, "thing: 'l' must be a list of strings");
    json_t *none = NULL;
    static const char text[] = "{\"x\": \"a\\u0000b\"}";
    assert_int_equal(json_parse(text, sizeof text - 1, "the body", &none, &e), -EINVAL);
    assert_non_null(strstr(e.text, "\\u0000 is not allowed"));
}

static void lists_of_strings_are_the_callers(void **state)
{
    (void)state;
    auto_json json_t *j = parse("{\"x\": [\"a\", \"\", \"ü\"], \"none\": []}");
    struct fields f;
    fields_open(&f, j, "thing", NULL);
    char **v = fields_strv(&f, "x", FIELD_REQUIRED, 3, 6);
    char **none = fields_strv(&f, "none", FIELD_REQUIRED, 0, 0);
    assert_int_equal(fields_close(&f, FIELDS_STRICT), 0);
    assert_int_equal(strv_count(v), 3);
    assert_string_equal(v[2], "ü");
    assert_int_equal(strv_count(none), 0);
    strv_free(v);
    strv_free(none);
}

static void text_that_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } table[] = {
        { "", "the body is no JSON: '[' or '{' expected near end of file in line 1, column 0" },
        { "{\n \"a\": }", "the body is no JSON: unexpected token near '}' in line 2, column 7" },
        { "{} x", "the body is no JSON: end of file expected near 'x' in line 1, column 4" },
        { "{\"a\": 1, \"a\": 2}",
          "the body is no JSON: duplicate object key near '\"a\"' in line 1, column 12" },
        { "{\"a\": 9223372036854775808}",
          "the body is no JSON: too big integer near '9223372036854775808' in line 1, column 25" },
        { "{\"a\": -9223372036854775809}", NULL },
        { "{\"a\": \"\xff\"}", NULL },
        { "{\"a\": \"x\ny\"}", NULL },
        { "{\"a\": nan}", NULL },
        { "7", NULL },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct err e = ERR_INIT;
        json_t *j = NULL;
        assert_int_equal(json_parse(table[i].text, strlen(table[i].text), "the body", &j, &e),
                         -EINVAL);
        assert_null(j);
        assert_true(text_starts(e.text, "the body is no JSON: "));
        assert_true(text_is_printable(e.text));
        if (table[i].sentence)
            assert_string_equal(e.text, table[i].sentence);
    }
}

static void a_json_bomb_is_no_harm(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    AUTO(text) struct text t = TEXT_INIT;
    json_t *j = NULL;
    for (int i = 0; i < 100000; i++)
        text_add(&t, "[");
    assert_int_equal(json_parse(t.buf, t.len, "the body", &j, &e), -EINVAL);
    assert_non_null(strstr(e.text, "maximum parsing depth reached"));
}

/* JSON integers have 63 bits; what is above is what is not told. */
static void numbers_are_whole_to_63_bits(void **state)
{
    (void)state;
    auto_json json_t *j = json_object();
    json_put_u64(j, "top", INT64_MAX);
    json_put_u64(j, "over", (uint64_t)INT64_MAX + 1);
    json_put_u64(j, "not told", UINT64_MAX);
    json_put_i64(j, "bottom", INT64_MIN);
    char *s = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(s, "{\"bottom\":-9223372036854775808,\"not told\":null,\"over\":null,"
                           "\"top\":9223372036854775807}");
    auto_json json_t *again = parse(s);
    struct fields f;
    fields_open(&f, again, "thing", NULL);
    assert_true(fields_u64(&f, "top", FIELD_REQUIRED, 0, UINT64_MAX, 0) == INT64_MAX);
    assert_true(fields_u64(&f, "over", FIELD_OPTIONAL, 0, UINT64_MAX, 7) == 7);
    assert_true(fields_i64(&f, "bottom", FIELD_REQUIRED, INT64_MIN, INT64_MAX, 0) == INT64_MIN);
    assert_int_equal(fields_close(&f, FIELDS_OPEN), 0);
    free(s);
}

static void strange_bytes_never_break_an_answer(void **state)
{
    (void)state;
    auto_json json_t *j = json_object();
    char *const v[] = { (char[]){ "ok ü" }, (char[]){ "M\xfcller" }, NULL };
    json_put_text(j, "good", "Müller");
    json_put_text(j, "latin", "M\xfcller");
    json_put_text(j, "none", NULL);
    json_put(j, "list", json_strv(v));
    json_put(j, "empty", json_strv(NULL));
    char *s = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    assert_non_null(s);
    assert_string_equal(s, "{\"empty\":[],\"good\":\"Müller\",\"latin\":\"M?ller\","
                           "\"list\":[\"ok ü\",\"M?ller\"],\"none\":null}");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_read_by_kind),
        cmocka_unit_test(what_is_not_there_has_its_stand_in),
        cmocka_unit_test(what_is_wrong_is_said_in_a_sentence),
        cmocka_unit_test(only_an_object_has_fields),
        cmocka_unit_test(unknown_fields_are_refused_where_it_is_strict),
        cmocka_unit_test(the_first_failure_is_the_one_that_is_told),
        cmocka_unit_test(a_nul_inside_a_string_is_refused),
        cmocka_unit_test(lists_of_strings_are_the_callers),
        cmocka_unit_test(text_that_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(a_json_bomb_is_no_harm),
        cmocka_unit_test(numbers_are_whole_to_63_bits),
        cmocka_unit_test(strange_bytes_never_break_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
