#include "model/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/job.h"

void fields_fail(struct fields *f, const char *fmt, ...)
{
    if (f->code)
        return;
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap); /* a message that is too long is cut */
    va_end(ap);
    f->code = err_set(f->e, -EINVAL, "%s: %s", f->what, what);
}

void fields_open(struct fields *f, json_t *json, const char *what, struct err *e)
{
    *f = (struct fields){ .object = json, .what = what, .e = e };
    if (!json_is_object(json))
        fields_fail(f, "must be an object");
}

static bool fields_saw(const struct fields *f, const char *key)
{
    for (size_t i = 0; i < f->seen_count; i++)
        if (strcmp(f->seen[i], key) == 0)
            return true;
    return false;
}

int fields_close(struct fields *f, enum fields_rule rule)
{
    const char *key;
    json_t *value;
    if (f->code || rule == FIELDS_OPEN)
        return f->code;
    json_object_foreach(f->object, key, value)
    {
        if (!fields_saw(f, key))
            fields_fail(f, "there is no field '%.64s'", key);
    }
    return f->code;
}

/* The value, or NULL when absent, null, or after a failure. */
static json_t *fields_get(struct fields *f, const char *key, enum field_need need)
{
    if (f->code)
        return NULL;
    if (f->seen_count < FIELDS_MAX)
        f->seen[f->seen_count++] = key;
    json_t *value = json_object_get(f->object, key);
    if (json_is_null(value))
        value = NULL;
    if (!value && need == FIELD_REQUIRED)
        fields_fail(f, "field '%s' is missing", key);
    return value;
}

const char *fields_text(struct fields *f, const char *key, enum field_need need, size_t max)
{
    json_t *value = fields_get(f, key, need);
    if (!value)
        return NULL;
    if (!json_is_string(value))
        fields_fail(f, "'%s' must be a string", key);
    else if (json_string_length(value) > max)
        fields_fail(f, "'%s' has %zu bytes, at most %zu work", key, json_string_length(value), max);
    else if (strlen(json_string_value(value)) != json_string_length(value))
        fields_fail(f, "'%s' has a NUL inside", key);
    return f->code ? NULL : json_string_value(value);
}

void fields_copy(struct fields *f, const char *key, enum field_need need, char *buf, size_t size)
{
    const char *s = fields_text(f, key, need, size - 1);
    memcpy(buf, s ? s : "", s ? strlen(s) + 1 : 1);
}

int64_t fields_i64(struct fields *f, const char *key, enum field_need need, int64_t min,
                   int64_t max, int64_t absent)
{
    json_t *value = fields_get(f, key, need);
    if (!value)
        return absent;
    if (!json_is_integer(value))
        fields_fail(f, "'%s' must be a whole number", key);
    else if (json_integer_value(value) < min || json_integer_value(value) > max)
        fields_fail(f, "'%s' must be from %" PRId64 " to %" PRId64, key, min, max);
    return f->code ? absent : (int64_t)json_integer_value(value);
}

/* JSON integers have 63 bits; UINT64_MAX ("not told") is written as null. */
uint64_t fields_u64(struct fields *f, const char *key, enum field_need need, uint64_t min,
                    uint64_t max, uint64_t absent)
{
    int64_t top = max > INT64_MAX ? INT64_MAX : (int64_t)max;
    json_t *value = fields_get(f, key, need);
    if (!value)
        return absent;
    if (!json_is_integer(value))
        fields_fail(f, "'%s' must be a whole number", key);
    else if (json_integer_value(value) < (int64_t)min || json_integer_value(value) > top)
        fields_fail(f, "'%s' must be from %" PRIu64 " to %" PRId64, key, min, top);
    return f->code ? absent : (uint64_t)json_integer_value(value);
}

uint32_t fields_u32(struct fields *f, const char *key)
{
    return (uint32_t)fields_u64(f, key, FIELD_OPTIONAL, 0, UINT32_MAX, 0);
}

bool fields_bool(struct fields *f, const char *key, bool absent)
{
    json_t *value = fields_get(f, key, FIELD_OPTIONAL);
    if (!value)
        return absent;
    if (!json_is_boolean(value))
        fields_fail(f, "'%s' must be true or false", key);
    return json_is_true(value);
}

json_t *fields_object(struct fields *f, const char *key, enum field_need need)
{
    json_t *value = fields_get(f, key, need);
    if (value && !json_is_object(value))
        fields_fail(f, "'%s' must be an object", key);
    return f->code ? NULL : value;
}

json_t *fields_array(struct fields *f, const char *key, enum field_need need, size_t max)
{
    json_t *value = fields_get(f, key, need);
    if (value && !json_is_array(value))
        fields_fail(f, "'%s' must be a list", key);
    else if (value && json_array_size(value) > max)
        fields_fail(f, "'%s' has %zu entries, at most %zu work", key, json_array_size(value), max);
    return f->code ? NULL : value;
}

char **fields_strv(struct fields *f, const char *key, enum field_need need, size_t max_count,
                   size_t max_bytes)
{
    json_t *list = fields_array(f, key, need, max_count);
    if (!list)
        return NULL;
    size_t n = json_array_size(list);
    size_t bytes = 0;
    char **v = mem_new((n + 1) * sizeof *v);
    for (size_t i = 0; i < n && !f->code; i++) {
        json_t *item = json_array_get(list, i);
        const char *s = json_string_value(item);
        if (!s || strlen(s) != json_string_length(item))
            fields_fail(f, "'%s' must be a list of strings", key);
        else if ((bytes += strlen(s) + 1) > max_bytes)
            fields_fail(f, "'%s' is longer than %zu bytes", key, max_bytes);
        else
            v[i] = text_dup(s);
    }
    if (f->code) {
        strv_free(v);
        return NULL;
    }
    return v;
}

int json_parse(const char *data, size_t len, const char *what, json_t **ret, struct err *e)
{
    json_error_t error;
    json_t *json = json_loadb(data, len, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        return err_set(e, -EINVAL, "%s is no JSON: %s in line %d, column %d", what, error.text,
                       error.line, error.column);
    *ret = json;
    return 0;
}

void json_put(json_t *object, const char *key, json_t *take_value)
{
    if (!take_value || json_object_set_new_nocheck(object, key, take_value) < 0)
        abort(); /* out of memory: as in base/text.h */
}

/* Bytes that are no UTF-8 become '?', so that a strange name never breaks an answer. */
static json_t *json_text(const char *s)
{
    json_t *value = json_string(s);
    if (value)
        return value;
    auto_free char *copy = text_dup(s);
    for (unsigned char *p = (unsigned char *)copy; *p; p++)
        if (*p >= 0x80)
            *p = '?';
    return json_string(copy);
}

void json_add(json_t *list, json_t *take_value)
{
    if (json_array_append_new(list, take_value) < 0)
        abort(); /* out of memory: as in base/text.h */
}

void json_put_text(json_t *object, const char *key, const char *s)
{
    json_put(object, key, s ? json_text(s) : json_null());
}

void json_put_u64(json_t *object, const char *key, uint64_t n)
{
    json_put(object, key, n > INT64_MAX ? json_null() : json_integer((json_int_t)n));
}

void json_put_i64(json_t *object, const char *key, int64_t n)
{
    json_put(object, key, json_integer(n));
}

void json_put_bool(json_t *object, const char *key, bool b)
{
    json_put(object, key, json_boolean(b));
}

json_t *json_strv(char *const *v)
{
    json_t *list = json_array();
    for (size_t i = 0; v && v[i]; i++)
        json_add(list, json_text(v[i]));
    return list;
}
