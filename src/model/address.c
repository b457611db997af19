#include "model/address.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ADDRESS_FORMS "write gpu0, gpu0/2g.20gb@4 or gpu0/1c.3g.40gb@0.1"

static bool scan_number(const char **p, uint32_t *ret)
{
    uint32_t n = 0;
    if (!isdigit((unsigned char)**p))
        return false;
    for (; isdigit((unsigned char)**p); (*p)++) {
        if (n > 99999)
            return false;
        n = n * 10 + (uint32_t)(**p - '0');
    }
    *ret = n;
    return true;
}

/* Letters, digits and what stands between them in "1g.10gb+me" and "1g.24gb-me". */
static size_t profile_len(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || (p[n] && strchr(".+-", p[n])))
        n++;
    return n;
}

static bool scan_slice(const char *p, struct address *a)
{
    size_t len = profile_len(p);
    if (len == 0 || len >= sizeof a->profile || p[len] != '@')
        return false;
    memcpy(a->profile, p, len);
    a->profile[len] = '\0';
    p += len + 1;
    if (!scan_number(&p, &a->start))
        return false;
    if (*p == '.') {
        p++;
        a->has_ci_start = true;
        if (!scan_number(&p, &a->ci_start))
            return false;
    }
    a->has_slice = true;
    return *p == '\0';
}

int address_parse(const char *s, struct address *ret, struct err *e)
{
    struct address a = { .has_slice = false };
    const char *p = s;
    bool good = text_starts(s, "gpu");
    if (good) {
        p += strlen("gpu");
        good = scan_number(&p, &a.ordinal);
    }
    if (good && *p == '/')
        good = scan_slice(p + 1, &a);
    else if (good)
        good = *p == '\0';
    if (!good)
        return err_set(e, -EINVAL, "'%.64s' is no address of a card or slice; " ADDRESS_FORMS, s);
    *ret = a;
    return 0;
}

void slice_add_profile(struct text *t, const struct card *c, const struct slice *s)
{
    const struct profile *p = board_profile_by_id(&c->board, s->profile_id);
    bool part = p && s->ci != NOT_AN_INSTANCE && !s->full;
    const struct ci_profile *ci = part ? profile_ci_by_id(p, s->ci_profile_id) : NULL;
    if (!p)
        text_addf(t, "profile-%u", s->profile_id);
    else if (part && !ci) /* the driver was not asked yet how it calls it */
        text_addf(t, "%uc.%s", s->ci_slices, p->name);
    else
        text_add(t, ci ? ci->name : p->name);
}

void address_add(struct text *t, const struct card *c, const struct slice *s)
{
    AUTO(text) struct text profile = TEXT_INIT;
    slice_add_profile(&profile, c, s);
    address_add_place(t, c->ordinal, profile.buf, s->start);
    if (s->ci != NOT_AN_INSTANCE && !s->full)
        text_addf(t, ".%u", s->ci_start);
}

void address_add_place(struct text *t, uint32_t ordinal, const char *profile, uint32_t start)
{
    text_addf(t, "gpu%u/%s@%u", ordinal, profile, start);
}

struct slice *address_find(const struct address *a, const struct card *c)
{
    for (size_t i = 0; a->ordinal == c->ordinal && i < c->slice_count; i++) {
        struct slice *s = &c->slices[i];
        AUTO(text) struct text name = TEXT_INIT;
        slice_add_profile(&name, c, s);
        bool smaller = s->ci != NOT_AN_INSTANCE && !s->full;
        if (s->start == a->start && profile_name_matches(name.buf, a->profile) &&
            a->has_ci_start == smaller && (!smaller || a->ci_start == s->ci_start))
            return s;
    }
    return NULL;
}
