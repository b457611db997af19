#include "config/field.h"

#include <string.h>

#include "base/text.h"
#include "config/nearest.h"

#define FIELDS_MAX 64

void field_words_done(struct field_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->words[i]);
    free(w->words);
    *w = (struct field_words){ .words = NULL };
}

static const struct field *find(const struct field *fields, const char *key)
{
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static int fail_unknown(const struct yaml_node *n, const struct field *fields, struct err *e)
{
    const char *names[FIELDS_MAX];
    size_t count = 0;
    AUTO(text) struct text all = TEXT_INIT;
    for (; fields->key && count < FIELDS_MAX; fields++) {
        text_addf(&all, "%s%s", count ? ", " : "", fields->key);
        names[count++] = fields->key;
    }
    const char *near = nearest_name(n->key, names, count);
    if (near)
        return yaml_node_fail_key(n, e, "there is no key '%.64s' here; did you mean '%s'?", n->key,
                                  near);
    return yaml_node_fail_key(n, e, "there is no key '%.64s' here; known are %s", n->key, all.buf);
}

static int check_required(const struct yaml_node *map, const struct field *fields, struct err *e)
{
    for (; fields->key; fields++) {
        if (!fields->required)
            continue;
        const struct yaml_node *n = yaml_node_get(map, fields->key);
        if (!n || yaml_node_is_null(n))
            return yaml_node_fail(n ? n : map, e, "%s is missing", fields->key);
    }
    return 0;
}

int field_read_map(const struct yaml_node *map, const struct field *fields, void *ret,
                   struct err *e)
{
    if (map->kind != YAML_IS_MAP)
        return yaml_node_fail(map, e, "%s must be a map (key: value), not %s",
                              map->key ? map->key : "this", yaml_node_kind_name(map->kind));
    for (const struct yaml_node *n = map->first; n; n = n->next) {
        const struct field *f = find(fields, n->key);
        if (!f)
            return fail_unknown(n, fields, e);
        if (yaml_node_is_null(n))
            continue;
        int r = f->read(n, f, (char *)ret + f->offset, e);
        if (r < 0)
            return r;
    }
    return check_required(map, fields, e);
}

static uint64_t max_of(const struct field *f)
{
    return f->max ? f->max : UINT32_MAX;
}

int field_u32(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    uint64_t x;
    int r = yaml_node_u64(n, f->min, max_of(f), &x, e);
    if (r < 0)
        return r;
    *(uint32_t *)place = (uint32_t)x;
    return 0;
}

int field_u64(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    return yaml_node_u64(n, f->min, f->max ? f->max : UINT64_MAX, place, e);
}

int field_mib(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    uint64_t mib;
    int r = yaml_node_u64(n, f->min, f->max ? f->max : 16u * 1024 * 1024, &mib, e);
    if (r < 0)
        return r;
    *(uint64_t *)place = mib << 20;
    return 0;
}

int field_milliwatt(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    uint64_t watt;
    int r = yaml_node_u64(n, f->min, f->max ? f->max : 100000, &watt, e);
    if (r < 0)
        return r;
    *(uint32_t *)place = (uint32_t)(watt * 1000);
    return 0;
}

int field_bool(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    return yaml_node_bool(n, place, e);
}

int field_double(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    return yaml_node_double(n, (double)f->min, (double)max_of(f), place, e);
}

int field_size(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    return yaml_node_size(n, place, e);
}

int field_duration(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    return yaml_node_duration(n, place, e);
}

static int read_printable(const struct yaml_node *n, const char **ret_text, struct err *e)
{
    int r = yaml_node_text(n, ret_text, e);
    if (r < 0)
        return r;
    if (!text_is_printable(*ret_text))
        return yaml_node_fail(n, e, "control characters have no place here");
    return 0;
}

int field_chars(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    const char *text;
    int r = read_printable(n, &text, e);
    if (r < 0)
        return r;
    size_t len = strlen(text);
    if (len >= f->size)
        return yaml_node_fail(n, e, "%s: %zu bytes are too long, %zu fit", f->key, len,
                              f->size - 1);
    memcpy(place, text, len + 1);
    return 0;
}

int field_string(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    const char *text;
    int r = read_printable(n, &text, e);
    if (r < 0)
        return r;
    char **string = place;
    free(*string);
    *string = text_dup(text);
    return 0;
}

int field_path(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    const char *text;
    int r = read_printable(n, &text, e);
    if (r < 0)
        return r;
    if (text[0] != '/')
        return yaml_node_fail(n, e, "%s: '%.64s' must be an absolute path, beginning with /",
                              f->key, text);
    return field_string(n, f, place, e);
}

int field_choice_word(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    const char *text;
    int r = read_printable(n, &text, e);
    if (r < 0)
        return r;
    AUTO(text) struct text all = TEXT_INIT;
    for (const struct field_choice *c = f->choices; c->word; c++) {
        if (strcmp(c->word, text) == 0) {
            *(int *)place = c->value;
            return 0;
        }
        text_addf(&all, "%s%s", c == f->choices ? "" : c[1].word ? ", " : " or ", c->word);
    }
    return yaml_node_fail(n, e, "%s: '%.64s' is not one of %s", f->key, text, all.buf);
}

static int add_word(const struct yaml_node *n, struct field_words *w, struct err *e)
{
    const char *text;
    int r = read_printable(n, &text, e);
    if (r < 0)
        return r;
    ARRAY_ROOM(w->words, w->alloc, w->count + 1);
    w->words[w->count++] = text_dup(text);
    return 0;
}

int field_list_words(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    (void)f;
    if (n->kind == YAML_IS_MAP)
        return yaml_node_fail(n, e, "%s must be a list, not a map", f->key);
    if (n->kind == YAML_IS_SCALAR)
        return add_word(n, place, e);
    for (const struct yaml_node *c = n->first; c; c = c->next) {
        int r = add_word(c, place, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int field_map(const struct yaml_node *n, const struct field *f, void *place, struct err *e)
{
    return field_read_map(n, f->sub, place, e);
}
