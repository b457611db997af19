#include "config/yaml.h"

#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "base/file.h"
#include "base/map.h"
#include "base/text.h"

struct level {
    struct yaml_node *node;
    struct map seen; /* keys of this map, to find duplicates */
    char *key;       /* read, waiting for its value */
    unsigned key_line;
    unsigned key_column;
};

struct builder {
    yaml_parser_t parser;
    struct yaml_tree *tree;
    struct level levels[YAML_DEPTH_MAX];
    size_t depth;
};

static void node_free(struct yaml_node *n)
{
    while (n) { /* depth is bounded by YAML_DEPTH_MAX, width is walked */
        struct yaml_node *next = n->next;
        node_free(n->first);
        free(n->key);
        free(n->text);
        free(n);
        n = next;
    }
}

void yaml_tree_free(struct yaml_tree *t)
{
    if (!t)
        return;
    node_free(t->root);
    free(t->file);
    free(t);
}

static int fail_at(const char *file, unsigned line, unsigned column, struct err *e, const char *fmt,
                   va_list args) __attribute__((format(printf, 5, 0)));
static int fail_at(const char *file, unsigned line, unsigned column, struct err *e, const char *fmt,
                   va_list args)
{
    char sentence[ERR_TEXT_MAX];
    /* All callers have begun `args`, which the analyzer does not always see. */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    (void)vsnprintf(sentence, sizeof sentence, fmt, args); /* cut when too long: fine */
    return err_set(e, -EINVAL, "%s:%u:%u: %s", file, line, column, sentence);
}

int yaml_node_fail(const struct yaml_node *n, struct err *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int r = fail_at(n->file, n->line, n->column, e, fmt, args);
    va_end(args);
    return r;
}

int yaml_node_fail_key(const struct yaml_node *n, struct err *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int r = fail_at(n->file, n->key ? n->key_line : n->line, n->key ? n->key_column : n->column, e,
                    fmt, args);
    va_end(args);
    return r;
}

static int fail_mark(const struct builder *b, yaml_mark_t mark, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int fail_mark(const struct builder *b, yaml_mark_t mark, struct err *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int r =
        fail_at(b->tree->file, (unsigned)mark.line + 1, (unsigned)mark.column + 1, e, fmt, args);
    va_end(args);
    return r;
}

static int fail_parser(const struct builder *b, struct err *e)
{
    const yaml_parser_t *p = &b->parser;
    const char *problem = p->problem ? p->problem : "out of memory";
    yaml_mark_t mark = p->problem_mark;
    if (p->error == YAML_READER_ERROR)
        return err_set(e, -EINVAL, "%s: not UTF-8 text: %s at byte %zu", b->tree->file, problem,
                       p->problem_offset);
    if (p->context)
        return fail_mark(b, mark, e, "not YAML: %s, %s (begun in line %zu)", problem, p->context,
                         p->context_mark.line + 1);
    return fail_mark(b, mark, e, "not YAML: %s", problem);
}

static struct level *top(struct builder *b)
{
    return b->depth ? &b->levels[b->depth - 1] : NULL;
}

/* Hangs a node where the parser stands. The tree owns it from here on. */
static int node_add(struct builder *b, struct yaml_node *n, yaml_mark_t mark, struct err *e)
{
    n->file = b->tree->file;
    n->line = (unsigned)mark.line + 1;
    n->column = (unsigned)mark.column + 1;
    struct level *up = top(b);
    if (!up) {
        b->tree->root = n;
    } else {
        n->key = take_ptr(up->key);
        n->key_line = up->key_line;
        n->key_column = up->key_column;
        if (up->node->last)
            up->node->last->next = n;
        else
            up->node->first = n;
        up->node->last = n;
        up->node->count++;
        if (n->key)
            map_put_name(&up->seen, n->key, n);
    }
    if (++b->tree->nodes > YAML_NODES_MAX)
        return fail_mark(b, mark, e, "more than %u entries in one file", YAML_NODES_MAX);
    return 0;
}

static int check_scalar(const struct builder *b, const yaml_event_t *ev, struct err *e)
{
    const char *text = (const char *)ev->data.scalar.value;
    if (ev->data.scalar.tag)
        return fail_mark(b, ev->start_mark, e, "tags (%s) are not understood here",
                         (const char *)ev->data.scalar.tag);
    if (memchr(text, '\0', ev->data.scalar.length))
        return fail_mark(b, ev->start_mark, e, "a NUL byte has no place in a text");
    return 0;
}

static int add_key(struct builder *b, const yaml_event_t *ev, struct err *e)
{
    struct level *up = top(b);
    const char *text = (const char *)ev->data.scalar.value;
    const struct yaml_node *first = map_get_name(&up->seen, text);
    if (first)
        return fail_mark(b, ev->start_mark, e, "%s is here twice, first in line %u", text,
                         first->key_line);
    up->key = text_dup(text);
    up->key_line = (unsigned)ev->start_mark.line + 1;
    up->key_column = (unsigned)ev->start_mark.column + 1;
    return 0;
}

static bool wants_key(struct builder *b)
{
    struct level *up = top(b);
    return up && up->node->kind == YAML_IS_MAP && !up->key;
}

static int add_scalar(struct builder *b, const yaml_event_t *ev, struct err *e)
{
    int r = check_scalar(b, ev, e);
    if (r < 0)
        return r;
    if (wants_key(b))
        return add_key(b, ev, e);
    struct yaml_node *n = mem_new(sizeof *n);
    n->kind = YAML_IS_SCALAR;
    n->text = text_dup((const char *)ev->data.scalar.value);
    n->quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return node_add(b, n, ev->start_mark, e);
}

static int open_level(struct builder *b, const yaml_event_t *ev, enum yaml_node_kind kind,
                      const yaml_char_t *tag, struct err *e)
{
    if (tag)
        return fail_mark(b, ev->start_mark, e, "tags (%s) are not understood here",
                         (const char *)tag);
    if (wants_key(b))
        return fail_mark(b, ev->start_mark, e, "a key must be a word, not %s",
                         yaml_node_kind_name(kind));
    if (b->depth == YAML_DEPTH_MAX)
        return fail_mark(b, ev->start_mark, e, "nested deeper than %u levels", YAML_DEPTH_MAX);
    struct yaml_node *n = mem_new(sizeof *n);
    n->kind = kind;
    int r = node_add(b, n, ev->start_mark, e);
    if (r < 0)
        return r;
    b->levels[b->depth++] = (struct level){ .node = n, .seen = MAP_INIT };
    return 0;
}

static void close_level(struct builder *b)
{
    struct level *l = &b->levels[--b->depth];
    map_done(&l->seen);
    free(l->key);
}

/* 1: the document is complete. */
static int take_event(struct builder *b, const yaml_event_t *ev, struct err *e)
{
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(b, ev, e);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(b, ev, YAML_IS_LIST, ev->data.sequence_start.tag, e);
    case YAML_MAPPING_START_EVENT:
        return open_level(b, ev, YAML_IS_MAP, ev->data.mapping_start.tag, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_level(b);
        return 0;
    case YAML_ALIAS_EVENT:
        return fail_mark(b, ev->start_mark, e,
                         "aliases (*%s) are not taken; write the value out here",
                         (const char *)ev->data.alias.anchor);
    case YAML_DOCUMENT_START_EVENT:
        if (b->tree->root)
            return fail_mark(b, ev->start_mark, e,
                             "a second document begins here; one is expected");
        return 0;
    case YAML_STREAM_END_EVENT:
        return 1;
    default:
        return 0;
    }
}

static int build(struct builder *b, struct err *e)
{
    for (;;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&b->parser, &ev))
            return fail_parser(b, e);
        int r = take_event(b, &ev, e);
        yaml_event_delete(&ev);
        if (r != 0)
            return r < 0 ? r : 0;
    }
}

static void root_default(struct yaml_tree *t)
{
    bool nothing = !t->root || (t->root->kind == YAML_IS_SCALAR && yaml_node_is_null(t->root));
    if (!nothing)
        return;
    node_free(t->root);
    t->root = mem_new(sizeof *t->root);
    *t->root = (struct yaml_node){ .kind = YAML_IS_MAP, .line = 1, .column = 1, .file = t->file };
}

int yaml_tree_parse(const char *file, const char *text, size_t len, struct yaml_tree **ret_tree,
                    struct err *e)
{
    if (len > YAML_BYTES_MAX)
        return err_set(e, -EFBIG, "%s: larger than %u KiB", file, YAML_BYTES_MAX / 1024);
    AUTO_PTR(yaml_tree_free) struct yaml_tree *t = mem_new(sizeof *t);
    t->file = text_dup(file);
    auto_free struct builder *b = mem_new(sizeof *b);
    b->tree = t;
    if (!yaml_parser_initialize(&b->parser))
        return err_set(e, -ENOMEM, "%s: no memory to read it", file);
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)text, len);
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
    int r = build(b, e);
    while (b->depth)
        close_level(b);
    yaml_parser_delete(&b->parser);
    if (r < 0)
        return r;
    root_default(t);
    *ret_tree = take_ptr(t);
    return 0;
}

int yaml_tree_read(const char *path, struct yaml_tree **ret_tree, struct err *e)
{
    auto_free char *text = NULL;
    size_t len = 0;
    int r = file_read(AT_FDCWD, path, YAML_BYTES_MAX, &text, &len, e);
    return r < 0 ? r : yaml_tree_parse(path, text, len, ret_tree, e);
}

const struct yaml_node *yaml_node_get(const struct yaml_node *n, const char *key)
{
    for (const struct yaml_node *c = n->first; c; c = c->next)
        if (c->key && strcmp(c->key, key) == 0)
            return c;
    return NULL;
}

bool yaml_node_is_null(const struct yaml_node *n)
{
    return n->kind == YAML_IS_SCALAR && !n->quoted &&
           (n->text[0] == '\0' || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

const char *yaml_node_kind_name(enum yaml_node_kind kind)
{
    static const char *const names[] = { "a word", "a list", "a map" };
    return names[kind];
}

static const char *name_of(const struct yaml_node *n)
{
    return n->key ? n->key : "this entry";
}

int yaml_node_text(const struct yaml_node *n, const char **ret_text, struct err *e)
{
    if (n->kind != YAML_IS_SCALAR)
        return yaml_node_fail(n, e, "%s must be a word, not %s", name_of(n),
                              yaml_node_kind_name(n->kind));
    if (yaml_node_is_null(n))
        return yaml_node_fail(n, e, "%s has no value", name_of(n));
    *ret_text = n->text;
    return 0;
}

/* Takes over the text of a parser of text.h and puts the place in front. */
static int fail_value(const struct yaml_node *n, const struct err *why, struct err *e)
{
    return yaml_node_fail(n, e, "%s", why->text);
}

int yaml_node_u64(const struct yaml_node *n, uint64_t min, uint64_t max, uint64_t *ret_n,
                  struct err *e)
{
    const char *text = "";
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    char decimal[24];
    if (strncasecmp(text, "0x", 2) == 0) {
        char *end;
        errno = 0;
        unsigned long long x = strtoull(text + 2, &end, 16);
        if (text[2] == '\0' || text[2] == '-' || text[2] == '+' || *end || errno)
            return yaml_node_fail(n, e, "%s: \"%s\" is no hexadecimal number", name_of(n), text);
        (void)snprintf(decimal, sizeof decimal, "%llu", x); /* 20 digits at most */
        text = decimal;
    }
    struct err why = ERR_INIT;
    if (text_parse_u64(text, min, max, name_of(n), ret_n, &why) < 0)
        return fail_value(n, &why, e);
    return 0;
}

int yaml_node_double(const struct yaml_node *n, double min, double max, double *ret_x,
                     struct err *e)
{
    const char *text = "";
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !isfinite(x))
        return yaml_node_fail(n, e, "%s: \"%s\" is no number", name_of(n), text);
    if (x < min || x > max)
        return yaml_node_fail(n, e, "%s: %s is not between %g and %g", name_of(n), text, min, max);
    *ret_x = x;
    return 0;
}

int yaml_node_bool(const struct yaml_node *n, bool *ret_b, struct err *e)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = { { "true", true },   { "yes", true }, { "on", true },
                  { "false", false }, { "no", false }, { "off", false } };
    const char *text = "";
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(text, words[i].word) == 0) {
            *ret_b = words[i].value;
            return 0;
        }
    }
    return yaml_node_fail(n, e, "%s: \"%s\" is neither true nor false", name_of(n), text);
}

int yaml_node_size(const struct yaml_node *n, uint64_t *ret_bytes, struct err *e)
{
    const char *text = "";
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    struct err why = ERR_INIT;
    return text_parse_size(text, name_of(n), ret_bytes, &why) < 0 ? fail_value(n, &why, e) : 0;
}

int yaml_node_duration(const struct yaml_node *n, int64_t *ret_us, struct err *e)
{
    const char *text = "";
    int r = yaml_node_text(n, &text, e);
    if (r < 0)
        return r;
    struct err why = ERR_INIT;
    return text_parse_duration(text, name_of(n), ret_us, &why) < 0 ? fail_value(n, &why, e) : 0;
}
