/* How wide text is on a terminal. Own ranges: wcwidth depends on the locale of the moment. */
#include "cli/table.h"

#include <string.h>

static const struct range {
    uint32_t from, to;
    uint8_t wide;
} ranges[] = {
    { 0x0300, 0x036f, 0 },   { 0x200b, 0x200f, 0 },   { 0x20d0, 0x20ff, 0 }, { 0xfe00, 0xfe0f, 0 },
    { 0x1100, 0x115f, 2 },   { 0x2e80, 0x303e, 2 },   { 0x3041, 0xa4cf, 2 }, { 0xac00, 0xd7a3, 2 },
    { 0xf900, 0xfaff, 2 },   { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 }, { 0xffe0, 0xffe6, 2 },
    { 0x1f300, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
};

static size_t code_wide(uint32_t code)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].from && code <= ranges[i].to)
            return ranges[i].wide;
    return 1;
}

/* Length of the sequence at p and its code; 0: broken, or a control character. */
static size_t decode(const unsigned char *p, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0x20, 0x80, 0x800, 0x10000 };
    size_t n = p[0] < 0x80                    ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0  ? 2
               : (p[0] & 0xf0) == 0xe0        ? 3
               : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                              : 0;
    uint32_t code = n == 1 ? p[0] : n ? p[0] & (0x7fu >> n) : 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    bool control =
        code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (!n || code < least[n] || control || surrogate || code > 0x10ffff)
        return 0;
    *ret_code = code;
    return n;
}

size_t cells_wide(const char *s)
{
    size_t wide = 0;
    uint32_t code = 0;
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        size_t n = decode(p, &code);
        wide += n ? code_wide(code) : 1;
        p += n ? n : 1;
    }
    return wide;
}

void cells_add_cut(struct text *t, const char *s, size_t wide)
{
    if (cells_wide(s) <= wide) {
        text_add(t, s);
        return;
    }
    size_t used = 0;
    uint32_t code = 0;
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        size_t n = decode(p, &code);
        size_t w = n ? code_wide(code) : 1;
        n = n ? n : 1;
        if (used + w + 1 > wide)
            break;
        text_addn(t, p, n);
        used += w;
        p += n;
    }
    if (wide)
        text_add(t, "…");
}

void cells_add_times(struct text *t, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        text_add(t, s);
}

char *cells_clean(const char *s)
{
    struct text t = TEXT_INIT;
    uint32_t code = 0;
    for (const unsigned char *p = (const unsigned char *)s; *p;) {
        size_t n = decode(p, &code);
        if (n)
            text_addn(&t, p, n);
        else
            text_add(&t, "?");
        p += n ? n : 1;
    }
    return text_take(&t);
}
