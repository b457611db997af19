#include "model/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int request_check(const struct request *r, struct err *e)
{
    if (r->kind == REQUEST_NOTHING)
        return 0;
    if (r->count < 1 || r->count > REQUEST_TASKS_MAX)
        return err_set(e, -ERANGE, "a job may ask for 1 to %d cards or slices, not %u",
                       REQUEST_TASKS_MAX, r->count);
    if (r->kind == REQUEST_SLICES && !r->profile[0])
        return err_set(e, -EINVAL, "a slice needs a profile, as in --slice 2g.20gb");
    if (r->kind == REQUEST_NEED && !r->mem_bytes && !r->compute_ppm)
        return err_set(e, -EINVAL, "a need must say how much, as in --gpu-mem 18G");
    if (r->profile[0] && r->kind != REQUEST_SLICES)
        return err_set(e, -EINVAL, "a profile goes with --slice alone");
    if (!text_is_printable(r->profile))
        return err_set(e, -EINVAL, "the profile has characters that are no printable UTF-8");
    if ((r->mem_bytes || r->compute_ppm) && r->kind != REQUEST_NEED)
        return err_set(e, -EINVAL, "--gpu-mem and --gpu-compute do not go with --gpus or --slice");
    if (r->compute_ppm > PPM)
        return err_set(e, -ERANGE, "--gpu-compute is a part of one card, at most 1");
    if (r->or_7g && r->kind != REQUEST_CARDS)
        return err_set(e, -EINVAL, "--or-7g goes with --gpus");
    if (r->exact && r->kind != REQUEST_NEED)
        return err_set(e, -EINVAL, "--exact goes with --gpu-mem");
    if (r->spread && r->kind == REQUEST_CARDS)
        return err_set(e, -EINVAL,
                       "--spread is for slices; whole cards are different cards anyway");
    return 0;
}

int request_parse_slice(const char *s, struct request *r, struct err *e)
{
    const char *colon = strrchr(s, ':');
    size_t len = colon ? (size_t)(colon - s) : strlen(s);
    uint64_t n = 1;
    if (len == 0 || len >= sizeof r->profile)
        return err_set(e, -EINVAL,
                       "--slice: '%.64s' is no profile; write it like 2g.20gb or 1g.10gb:4", s);
    if (colon) {
        int ret = text_parse_u64(colon + 1, 1, REQUEST_TASKS_MAX, "--slice", &n, e);
        if (ret < 0)
            return ret;
    }
    r->kind = REQUEST_SLICES;
    memcpy(r->profile, s, len);
    r->profile[len] = '\0';
    r->count = (uint32_t)n;
    return 0;
}

int request_parse_fraction(const char *s, const char *what, uint32_t *ret_ppm, struct err *e)
{
    char *end = NULL;
    double value = strtod(s, &end);
    if (end != s && *end == '%' && end[1] == '\0') {
        value /= 100;
        end++;
    } else if (end != s && *end == '/') {
        char *low = end + 1;
        double below = strtod(low, &end);
        value = end != low && below > 0 ? value / below : -1;
    }
    if (end == s || *end || !(value > 0) || value > 1)
        return err_set(e, -EINVAL,
                       "%s: '%.64s' is no part of a card; write it like 0.25, 25%% or 1/4", what,
                       s);
    uint32_t ppm = (uint32_t)(value * PPM + 0.5);
    *ret_ppm = ppm ? ppm : 1;
    return 0;
}

static uint32_t dominant(const struct board *b, const struct profile *p)
{
    uint32_t compute = profile_compute_ppm(b, p);
    uint32_t mem = profile_mem_ppm(b, p);
    return compute > mem ? compute : mem;
}

/* Enough memory, or short of it by no more than the slack. */
static bool mem_enough(const struct request *r, uint64_t has, bool *ret_rounded)
{
    *ret_rounded = false;
    if (has >= r->mem_bytes)
        return true;
    if (r->exact)
        return false;
    *ret_rounded = true;
    return has + has / 100 * REQUEST_SLACK_PERCENT >= r->mem_bytes;
}

static bool profile_serves(const struct request *r, const struct board *b, const struct profile *p,
                           bool *ret_rounded)
{
    *ret_rounded = false;
    switch (r->kind) {
    case REQUEST_SLICES:
        return profile_name_matches(p->name, r->profile);
    case REQUEST_CARDS:
        return r->or_7g && p->units == b->units && p->slices == b->slices;
    case REQUEST_NEED: /* both parts are rounded: one ppm apart is the same fraction */
        return profile_compute_ppm(b, p) + 1 >= r->compute_ppm &&
               mem_enough(r, p->mem_bytes, ret_rounded);
    case REQUEST_NOTHING:
        break;
    }
    return false;
}

static bool fit_before(const struct fit *a, const struct fit *b)
{
    if (a->dominant_ppm != b->dominant_ppm)
        return a->dominant_ppm < b->dominant_ppm;
    if (!a->profile || !b->profile)
        return a->profile != NULL;
    if (a->profile->slices != b->profile->slices)
        return a->profile->slices < b->profile->slices;
    return a->profile->id < b->profile->id;
}

static size_t insert_fit(struct fit *list, size_t n, struct fit f)
{
    size_t i = n;
    for (; i > 0 && fit_before(&f, &list[i - 1]); i--)
        list[i] = list[i - 1];
    list[i] = f;
    return n + 1;
}

size_t request_fits(const struct request *r, const struct board *b,
                    struct fit ret[BOARD_PROFILES_MAX + 1])
{
    size_t n = 0;
    bool rounded;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        if (profile_serves(r, b, p, &rounded))
            n = insert_fit(
                ret, n,
                (struct fit){ .profile = p, .dominant_ppm = dominant(b, p), .rounded = rounded });
    }
    struct fit whole = { .profile = NULL, .dominant_ppm = PPM, .rounded = false };
    if (r->kind == REQUEST_CARDS ||
        (r->kind == REQUEST_NEED && mem_enough(r, b->mem_bytes, &whole.rounded)))
        ret[n++] = whole;
    return n;
}

static void add_need(struct text *t, const struct request *r)
{
    if (r->count > 1)
        text_addf(t, "%u x ", r->count);
    if (r->mem_bytes)
        text_add_size(t, r->mem_bytes);
    if (r->mem_bytes && r->compute_ppm)
        text_add(t, " and ");
    if (r->compute_ppm)
        text_addf(t, "%.3g%% compute", r->compute_ppm / 10000.0);
}

void request_add(struct text *t, const struct request *r)
{
    switch (r->kind) {
    case REQUEST_NOTHING:
        text_add(t, "no GPU");
        break;
    case REQUEST_CARDS:
        text_addf(t, "%u whole card%s", r->count, r->count == 1 ? "" : "s");
        break;
    case REQUEST_SLICES:
        if (r->count > 1)
            text_addf(t, "%u x ", r->count);
        text_add(t, r->profile);
        break;
    case REQUEST_NEED:
        add_need(t, r);
        break;
    }
}

bool request_same(const struct request *a, const struct request *b)
{
    return a->kind == b->kind && a->count == b->count && strcmp(a->profile, b->profile) == 0 &&
           a->mem_bytes == b->mem_bytes && a->compute_ppm == b->compute_ppm &&
           a->or_7g == b->or_7g && a->spread == b->spread && a->exact == b->exact;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    return (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t request_hash(const struct request *r)
{
    uint64_t h = mix(r->kind, r->count);
    for (const char *p = r->profile; *p; p++)
        h = mix(h, (unsigned char)*p);
    h = mix(h, r->mem_bytes);
    h = mix(h, r->compute_ppm);
    return mix(h, (uint64_t)(r->or_7g | r->spread << 1 | r->exact << 2));
}

uint32_t request_tasks(const struct request *r)
{
    return r->kind == REQUEST_SLICES || r->kind == REQUEST_NEED ? r->count : 1;
}
