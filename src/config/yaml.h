/*
 * yaml.h - a YAML file as a tree that remembers where each word stood.
 *
 * People write these files, so every complaint about them must point at a
 * line and a column. libyaml's own tree forgets that; this one is built from
 * its events.
 *
 * What is read is deliberately small: one document, plain maps, lists and
 * scalars. Refused, with file:line:column: aliases (a few lines of them can
 * stand for a tree of any size), tags, keys that are no scalars, the same key
 * twice in one map, NUL bytes, more than 1 MiB, 32 levels or 20000 nodes.
 * An empty file is an empty map.
 *
 *     AUTO_PTR(yaml_tree_free) struct yaml_tree *t = NULL;
 *     r = yaml_tree_read("/etc/divvy/divvy.yaml", &t, e);
 *     const struct yaml_node *n = yaml_node_get(t->root, "mode_hold");
 *     if (n && (r = yaml_node_duration(n, &hold_us, e)) < 0) ...
 */
#ifndef DIVVY_CONFIG_YAML_H
#define DIVVY_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

#define YAML_BYTES_MAX (1024u * 1024u)
#define YAML_DEPTH_MAX 32u
#define YAML_NODES_MAX 20000u

enum yaml_node_kind { YAML_IS_SCALAR, YAML_IS_LIST, YAML_IS_MAP };

struct yaml_node {
    enum yaml_node_kind kind;
    unsigned line;           /* of the node itself, from 1 */
    unsigned column;         /* in characters, from 1 */
    const char *file;        /* as it was named by the caller; lives in the tree */
    char *key;               /* its key when it stands in a map, else NULL */
    unsigned key_line;       /* where that key stands; 0 outside a map */
    unsigned key_column;     /* from 1 */
    char *text;              /* scalars: valid UTF-8, no NUL inside; else NULL */
    bool quoted;             /* the scalar was quoted or a block: never null or a number */
    struct yaml_node *first; /* children in the order of the file */
    struct yaml_node *last;
    struct yaml_node *next; /* next child of the same parent */
    size_t count;           /* children */
};

struct yaml_tree {
    char *file;
    struct yaml_node *root; /* never NULL */
    size_t nodes;
};

/* Reads a file. -ENOENT when it is not there, -EINVAL for its content, -EFBIG. Caller frees. */
int yaml_tree_read(const char *path, struct yaml_tree **ret_tree, struct err *e);

/* The same from memory; `file` is only for messages. */
int yaml_tree_parse(const char *file, const char *text, size_t len, struct yaml_tree **ret_tree,
                    struct err *e);

void yaml_tree_free(struct yaml_tree *t);
DEFINE_AUTO_PTR(struct yaml_tree, yaml_tree_free);

/* Sets "file:line:column: sentence" for the node (its key when `at_key`) and returns -EINVAL. */
int yaml_node_fail(const struct yaml_node *n, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int yaml_node_fail_key(const struct yaml_node *n, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The child with that key, or NULL. `n` must be a map. */
const struct yaml_node *yaml_node_get(const struct yaml_node *n, const char *key);

/* True for an empty plain scalar, "~" and "null": a key that stands there without a value. */
bool yaml_node_is_null(const struct yaml_node *n);

/*
 * Scalars as values. Each refuses another kind of node and a bad value with
 * the place and, where the node has a key, its name; -EINVAL. Text is
 * borrowed from the tree.
 */
int yaml_node_text(const struct yaml_node *n, const char **ret_text, struct err *e);
int yaml_node_u64(const struct yaml_node *n, uint64_t min, uint64_t max, uint64_t *ret_n,
                  struct err *e); /* decimal, or hexadecimal with 0x */
int yaml_node_double(const struct yaml_node *n, double min, double max, double *ret_x,
                     struct err *e);
int yaml_node_bool(const struct yaml_node *n, bool *ret_b, struct err *e); /* true/false/yes/no */
int yaml_node_size(const struct yaml_node *n, uint64_t *ret_bytes, struct err *e); /* "10G" */
int yaml_node_duration(const struct yaml_node *n, int64_t *ret_us, struct err *e); /* "10m" */

/* "a map", "a list", "a word": for messages. */
const char *yaml_node_kind_name(enum yaml_node_kind kind);

#endif
