/*
 * field.h - a map of a YAML file into a struct, by a table.
 *
 * The table names each key, how its value is read, where it goes and what
 * range it has. A key that is in no table is refused at its line and column,
 * with the nearest known key; so is a required one that is missing.
 *
 *     static const struct field power_fields[] = {
 *         {"idle", field_u32, offsetof(struct power, idle_w), .max = 5000},
 *         {"limit", field_u32, offsetof(struct power, limit_w), .max = 5000, .required = true},
 *         {NULL},
 *     };
 *     r = field_read_map(node, power_fields, &power, e);
 *
 * A key without a value ("accounts:") counts as not written. What is not
 * written leaves its place in the struct as it was: put defaults there first.
 */
#ifndef DIVVY_CONFIG_FIELD_H
#define DIVVY_CONFIG_FIELD_H

#include "config/yaml.h"

struct field;

/* Reads one value to `place` (ret struct + offset). -EINVAL with line and column. */
typedef int field_read_fn(const struct yaml_node *n, const struct field *f, void *place,
                          struct err *e);

struct field_choice {
    const char *word;
    int value;
};

struct field {
    const char *key; /* NULL ends the table */
    field_read_fn *read;
    size_t offset;
    uint64_t max;                       /* numbers: largest value; 0: 2^32-1 */
    uint64_t min;                       /* numbers: smallest value */
    size_t size;                        /* field_chars: bytes of the array */
    const struct field_choice *choices; /* field_choice_word: ends with word NULL */
    const struct field *sub;            /* field_map: table of the nested map */
    bool required;
};

/* A growing list of words; owned. */
struct field_words {
    char **words;
    size_t count;
    size_t alloc;
};
void field_words_done(struct field_words *w);

/*
 * Reads `map` into `ret`. On failure `ret` may be half filled; the caller
 * throws it away (strings that were read are owned by it all the same).
 */
int field_read_map(const struct yaml_node *map, const struct field *fields, void *ret,
                   struct err *e);

field_read_fn field_u32;         /* uint32_t */
field_read_fn field_u64;         /* uint64_t */
field_read_fn field_mib;         /* uint64_t bytes, written as a number of MiB */
field_read_fn field_milliwatt;   /* uint32_t mW, written in whole W */
field_read_fn field_bool;        /* bool */
field_read_fn field_double;      /* double, 0 to max */
field_read_fn field_size;        /* uint64_t bytes, "10G" */
field_read_fn field_duration;    /* int64_t µs, "10m" */
field_read_fn field_chars;       /* char[size], printable, must fit */
field_read_fn field_string;      /* char *, owned, replaced; printable */
field_read_fn field_path;        /* as field_string; must be absolute */
field_read_fn field_choice_word; /* int or enum */
field_read_fn field_list_words;  /* struct field_words; a list, or one word */
field_read_fn field_map;         /* a struct at `offset`, by `sub` */

#endif
