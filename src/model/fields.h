/*
 * fields.h - reading a JSON object without trusting it.
 *
 * The first thing wrong is kept and everything after it does nothing, so a
 * reader is a straight list and asks once at the end:
 *
 *     struct fields f;
 *     fields_open(&f, json, "request", e);
 *     uint64_t n = fields_u64(&f, "count", FIELD_OPTIONAL, 1, 128, 1);
 *     const char *s = fields_text(&f, "profile", FIELD_REQUIRED, 31);
 *     return fields_close(&f, FIELDS_STRICT);
 *
 * Requests are read strictly (a field that nobody asked for is an error, so a
 * typing mistake is never ignored); answers and files of other versions are
 * not. Values are borrowed from the JSON.
 */
#ifndef DIVVY_MODEL_FIELDS_H
#define DIVVY_MODEL_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#define FIELDS_MAX 48
/* Of a moment: a thousand years are enough, and leave room to add a limit. */
#define FIELD_WALL_MAX_US (INT64_C(31556952000) * CLOCK_SECOND)

enum field_need { FIELD_REQUIRED, FIELD_OPTIONAL };
enum fields_rule { FIELDS_STRICT, FIELDS_OPEN };

struct fields {
    json_t *object;
    const char *what;
    const char *seen[FIELDS_MAX];
    size_t seen_count;
    int code; /* 0, or the first failure */
    struct err *e;
};

void fields_open(struct fields *f, json_t *json, const char *what, struct err *e);
/* 0, or the first failure's code; strictly also -EINVAL for an unknown field. */
int fields_close(struct fields *f, enum fields_rule rule);

/* NULL when absent (or null) and optional, or after a failure. At most `max` bytes. */
const char *fields_text(struct fields *f, const char *key, enum field_need need, size_t max);
/* Copies into buf (size includes the NUL); "" when absent. */
void fields_copy(struct fields *f, const char *key, enum field_need need, char *buf, size_t size);
uint64_t fields_u64(struct fields *f, const char *key, enum field_need need, uint64_t min,
                    uint64_t max, uint64_t absent);
int64_t fields_i64(struct fields *f, const char *key, enum field_need need, int64_t min,
                   int64_t max, int64_t absent);
/* Optional; 0 when absent. */
uint32_t fields_u32(struct fields *f, const char *key);
bool fields_bool(struct fields *f, const char *key, bool absent);
/* Borrowed; NULL when absent. */
json_t *fields_object(struct fields *f, const char *key, enum field_need need);
json_t *fields_array(struct fields *f, const char *key, enum field_need need, size_t max);
/* NULL-terminated copy, owned by the caller; NULL when absent. Sum of bytes at most `max`. */
char **fields_strv(struct fields *f, const char *key, enum field_need need, size_t max_count,
                   size_t max_bytes);
/* Marks a failure found by the caller; later ones are ignored. */
void fields_fail(struct fields *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

DEFINE_AUTO_PTR(json_t, json_decref);
#define auto_json AUTO_PTR(json_decref)

/* Parses an object or list; -EINVAL with line and column. Caller decrefs. */
int json_parse(const char *data, size_t len, const char *what, json_t **ret, struct err *e);

/* Takes the value; ends the program when memory is out. For building. */
void json_put(json_t *object, const char *key, json_t *take_value);
/* The same at the end of a list. */
void json_add(json_t *list, json_t *take_value);
void json_put_text(json_t *object, const char *key,
                   const char *s); /* NULL: null; bad UTF-8 is replaced */
void json_put_u64(json_t *object, const char *key, uint64_t n);
void json_put_i64(json_t *object, const char *key, int64_t n);
void json_put_bool(json_t *object, const char *key, bool b);
json_t *json_strv(char *const *v); /* a list of strings; bad UTF-8 is replaced */

#endif
