#include "model/share_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/text.h"

#define ROWS_MAX 1000000u

void share_view_done(struct share_view *v)
{
    free(v->rows);
    if (v->json)
        json_decref(v->json);
    *v = (struct share_view){ .rows = NULL };
}

struct share_row *share_view_add(struct share_view *v)
{
    ARRAY_ROOM(v->rows, v->alloc, v->count + 1);
    v->rows[v->count] = (struct share_row){ .account = NULL };
    return &v->rows[v->count++];
}

static json_t *row_to_json(const struct share_row *r)
{
    json_t *j = json_object();
    json_put_text(j, "account", r->account);
    json_put_text(j, "parent", r->parent);
    json_put_text(j, "user", r->user);
    json_put_text(j, "inside", r->inside);
    json_put_u64(j, "depth", r->depth);
    json_put(j, "weight", json_real(r->weight));
    json_put(j, "share", json_real(r->share));
    json_put_i64(j, "used_card_us", (int64_t)r->used_card_us);
    json_put(j, "usage", json_real(r->usage));
    json_put(j, "level_fairness", isfinite(r->level) ? json_real(r->level) : json_null());
    json_put(j, "factor", json_real(r->factor));
    json_put(j, "rank", r->rank ? json_integer(r->rank) : json_null());
    json_put_u64(j, "running_ppm", r->running_ppm);
    json_put_u64(j, "running", r->running);
    json_put_u64(j, "waiting", r->pending);
    return j;
}

json_t *share_view_to_json(const struct share_view *v)
{
    json_t *j = json_object();
    json_t *rows = json_array();
    for (size_t i = 0; i < v->count; i++)
        json_add(rows, row_to_json(&v->rows[i]));
    json_put_i64(j, "half_life_us", v->half_life_us);
    json_put(j, "shares", rows);
    return j;
}

static double number(json_t *j, const char *key, double absent)
{
    json_t *n = json_object_get(j, key);
    return json_is_number(n) ? json_number_value(n) : absent;
}

static int read_row(json_t *j, struct share_row *r, struct err *e)
{
    struct fields f;
    fields_open(&f, j, "share", e);
    r->account = fields_text(&f, "account", FIELD_REQUIRED, 4096);
    r->parent = fields_text(&f, "parent", FIELD_OPTIONAL, 4096);
    r->user = fields_text(&f, "user", FIELD_OPTIONAL, 4096);
    r->inside = fields_text(&f, "inside", FIELD_OPTIONAL, 32);
    r->depth = (uint32_t)fields_u64(&f, "depth", FIELD_OPTIONAL, 0, 1000, 0);
    r->rank = (uint32_t)fields_u64(&f, "rank", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    r->running_ppm = fields_u64(&f, "running_ppm", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    r->running = (uint32_t)fields_u64(&f, "running", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    r->pending = (uint32_t)fields_u64(&f, "waiting", FIELD_OPTIONAL, 0, UINT32_MAX, 0);
    r->weight = number(j, "weight", 1);
    r->share = number(j, "share", 0);
    r->used_card_us = number(j, "used_card_us", 0);
    r->usage = number(j, "usage", 0);
    r->level = number(j, "level_fairness", INFINITY);
    r->factor = number(j, "factor", 0);
    return fields_close(&f, FIELDS_OPEN);
}

int share_view_from_json(json_t *j, struct share_view *ret, struct err *e)
{
    struct fields f;
    struct share_view v = { .rows = NULL };
    fields_open(&f, j, "shares", e);
    v.half_life_us = fields_i64(&f, "half_life_us", FIELD_OPTIONAL, 0, INT64_MAX, 0);
    json_t *rows = fields_array(&f, "shares", FIELD_REQUIRED, ROWS_MAX);
    int code = fields_close(&f, FIELDS_OPEN);
    for (size_t i = 0; code == 0 && i < json_array_size(rows); i++)
        code = read_row(json_array_get(rows, i), share_view_add(&v), e);
    if (code < 0) {
        share_view_done(&v);
        return code;
    }
    v.json = json_incref(j);
    *ret = v;
    return 0;
}
