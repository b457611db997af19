#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

char text_empty[1];

static void __attribute__((noreturn)) text_die(void)
{
    static const char line[] = "out of memory\n";
    (void)!fwrite(line, 1, sizeof line - 1, stderr); /* nothing more can be done */
    abort();
}

void *mem_new(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        text_die();
    return p;
}

void *mem_dup(const void *p, size_t bytes)
{
    void *copy = mem_new(bytes);
    if (bytes)
        memcpy(copy, p, bytes);
    return copy;
}

char *text_dup(const char *s)
{
    return s ? mem_dup(s, strlen(s) + 1) : NULL;
}

void array_room(void **ret_items, size_t *alloc, size_t need, size_t size)
{
    if (need <= *alloc)
        return;
    size_t grown = *alloc + *alloc / 2 + 8;
    if (grown < need)
        grown = need;
    size_t bytes;
    if (__builtin_mul_overflow(grown, size, &bytes))
        text_die();
    char *items = realloc(*ret_items, bytes);
    if (!items)
        text_die();
    memset(items + *alloc * size, 0, (grown - *alloc) * size);
    *ret_items = items;
    *alloc = grown;
}

static void text_room(struct text *t, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(t->len, more, &need) || need >= SIZE_MAX / 4)
        text_die();
    need++;
    if (need <= t->alloc)
        return;
    size_t grown = need + need / 2 + 32;
    char *buf = realloc(t->alloc ? t->buf : NULL, grown);
    if (!buf)
        text_die();
    t->buf = buf;
    t->alloc = grown;
    t->buf[t->len] = '\0';
}

void text_done(struct text *t)
{
    if (t->alloc)
        free(t->buf);
    *t = (struct text)TEXT_INIT;
}

void text_clear(struct text *t)
{
    t->len = 0;
    if (t->alloc)
        t->buf[0] = '\0';
}

void text_addn(struct text *t, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    text_room(t, n);
    memcpy(t->buf + t->len, bytes, n);
    t->len += n;
    t->buf[t->len] = '\0';
}

void text_add(struct text *t, const char *s)
{
    text_addn(t, s, strlen(s));
}

__attribute__((format(printf, 2, 0))) static void text_addv(struct text *t, const char *fmt,
                                                            va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        text_die();
    text_room(t, (size_t)n);
    (void)vsnprintf(t->buf + t->len, (size_t)n + 1, fmt, again); /* measured above */
    va_end(again);
    t->len += (size_t)n;
}

void text_addf(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    text_addv(t, fmt, ap);
    va_end(ap);
}

char *text_fmt(const char *fmt, ...)
{
    struct text t = TEXT_INIT;
    va_list ap;
    va_start(ap, fmt);
    text_addv(&t, fmt, ap);
    va_end(ap);
    return text_take(&t);
}

char *text_take(struct text *t)
{
    char *s = t->alloc ? t->buf : mem_new(1);
    *t = (struct text)TEXT_INIT;
    return s;
}

bool text_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool text_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Digits from *s on; -EINVAL without any, -ERANGE past 64 bits. Moves *s behind them. */
static int scan_u64(const char **s, uint64_t *ret_n)
{
    uint64_t n = 0;
    if (!isdigit((unsigned char)**s))
        return -EINVAL;
    bool over = false;
    for (; isdigit((unsigned char)**s); (*s)++)
        over |= __builtin_mul_overflow(n, 10, &n) ||
                __builtin_add_overflow(n, (uint64_t)(**s - '0'), &n);
    *ret_n = n;
    return over ? -ERANGE : 0;
}

int text_parse_u64(const char *s, uint64_t min, uint64_t max, const char *what, uint64_t *ret_n,
                   struct err *e)
{
    uint64_t n = 0;
    const char *p = s;
    int r = scan_u64(&p, &n);
    if (r == -EINVAL || *p)
        return err_set(e, -EINVAL, "%s: '%.64s' is not a whole number from %" PRIu64 " to %" PRIu64,
                       what, s, min, max);
    if (r < 0 || n < min || n > max)
        return err_set(e, -ERANGE, "%s: %.64s is out of range, %" PRIu64 " to %" PRIu64 " works",
                       what, s, min, max);
    *ret_n = n;
    return 0;
}

static int size_unit_shift(const char *unit)
{
    static const char letters[] = "kmgt";
    char first = (char)tolower((unsigned char)unit[0]);
    if (first == '\0' || (first == 'b' && unit[1] == '\0'))
        return 0;
    const char *at = strchr(letters, first);
    if (!at)
        return -EINVAL;
    const char *rest = unit + 1;
    if (*rest == 'i' || *rest == 'I')
        rest++;
    if (*rest == 'b' || *rest == 'B')
        rest++;
    return *rest ? -EINVAL : (int)(at - letters + 1) * 10;
}

int text_parse_size(const char *s, const char *what, uint64_t *ret_bytes, struct err *e)
{
    const char *p = s;
    uint64_t whole = 0;
    uint64_t thousandths = 0;
    int r = scan_u64(&p, &whole);
    if (r != -EINVAL && *p == '.') {
        p++;
        if (!isdigit((unsigned char)*p))
            r = -EINVAL;
        for (uint64_t place = 100; isdigit((unsigned char)*p); p++, place /= 10)
            thousandths += (uint64_t)(*p - '0') * place;
    }
    int shift = r == -EINVAL ? r : size_unit_shift(p);
    if (r == -EINVAL || shift == -EINVAL)
        return err_set(e, -EINVAL, "%s: '%.64s' is not a size; write it like 512M, 10G or 9.5G",
                       what, s);
    if (r < 0 || whole > (UINT64_C(1) << 50 >> shift))
        return err_set(e, -ERANGE, "%s: %.64s is more than any machine has", what, s);
    *ret_bytes = (whole << shift) + ((thousandths << shift) / 1000);
    return 0;
}

static const struct {
    char letter;
    int64_t us;
} duration_units[] = {
    { 'd', CLOCK_DAY },
    { 'h', CLOCK_HOUR },
    { 'm', CLOCK_MINUTE },
    { 's', CLOCK_SECOND },
};

static int add_scaled(int64_t *sum, uint64_t n, int64_t unit_us)
{
    int64_t part;
    if (n > INT64_MAX || __builtin_mul_overflow((int64_t)n, unit_us, &part) ||
        __builtin_add_overflow(*sum, part, sum))
        return -ERANGE;
    return 0;
}

/* "2h30m": numbers with units, the larger first. */
static int scan_unit_duration(const char *p, int64_t *ret_us)
{
    int64_t sum = 0;
    size_t next = 0;
    while (*p) {
        uint64_t n;
        int r = scan_u64(&p, &n);
        if (r < 0)
            return r;
        while (next < 4 && duration_units[next].letter != *p)
            next++;
        if (next == 4)
            return -EINVAL;
        r = add_scaled(&sum, n, duration_units[next++].us);
        if (r < 0)
            return r;
        p++;
    }
    *ret_us = sum;
    return 0;
}

/* Slurm's forms: [days-]a[:b[:c]], where with days the first number is hours. */
static int scan_colon_duration(const char *p, int64_t *ret_us)
{
    uint64_t n[3] = { 0, 0, 0 };
    uint64_t days = 0;
    size_t count = 0;
    int64_t sum = 0;
    bool with_days = strchr(p, '-') != NULL;
    int r = 0;
    if (with_days) {
        r = scan_u64(&p, &days);
        if (r < 0 || *p++ != '-')
            return r < 0 ? r : -EINVAL;
    }
    do {
        if (count == 3)
            return -EINVAL;
        r = scan_u64(&p, &n[count++]);
        if (r < 0)
            return r;
    } while (*p == ':' && p++);
    if (*p)
        return -EINVAL;
    static const int64_t plain[3][3] = {
        { CLOCK_MINUTE, 0, 0 },
        { CLOCK_MINUTE, CLOCK_SECOND, 0 },
        { CLOCK_HOUR, CLOCK_MINUTE, CLOCK_SECOND },
    };
    const int64_t *unit = with_days ? plain[2] : plain[count - 1];
    r = add_scaled(&sum, days, CLOCK_DAY);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = add_scaled(&sum, n[i], unit[i]);
    if (r == 0)
        *ret_us = sum;
    return r;
}

int text_parse_duration(const char *s, const char *what, int64_t *ret_us, struct err *e)
{
    int64_t us = 0;
    int r = strpbrk(s, "dhms") ? scan_unit_duration(s, &us) : scan_colon_duration(s, &us);
    if (r == -EINVAL)
        return err_set(e, r, "%s: '%.64s' is not a time; write it like 90s, 45m, 2h30m or 1:30:00",
                       what, s);
    if (r < 0 || us > TEXT_DURATION_MAX_US)
        return err_set(e, -ERANGE, "%s: %.64s is longer than ten years", what, s);
    *ret_us = us;
    return 0;
}

void text_add_duration(struct text *t, int64_t us)
{
    int64_t s = us / CLOCK_SECOND;
    if (s < 60)
        text_addf(t, "%" PRId64 "s", s);
    else if (s < 3600)
        text_addf(t, "%" PRId64 "m", s / 60);
    else if (s < 86400)
        text_addf(t, "%" PRId64 "h%02" PRId64 "m", s / 3600, s / 60 % 60);
    else
        text_addf(t, "%" PRId64 "d%02" PRId64 "h", s / 86400, s / 3600 % 24);
}

void text_add_limit(struct text *t, int64_t us)
{
    static const struct unit {
        int64_t seconds;
        const char *word;
    } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "m" }, { 1, "s" } };
    int64_t s = us / CLOCK_SECOND;
    if (!s)
        text_add(t, "0s");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (s >= units[i].seconds)
            text_addf(t, "%" PRId64 "%s", s / units[i].seconds, units[i].word);
        s %= units[i].seconds;
    }
}

void text_add_size(struct text *t, uint64_t bytes)
{
    if (bytes >= UINT64_C(1) << 30)
        text_addf(t, "%.1f GiB", (double)bytes / (double)(UINT64_C(1) << 30));
    else if (bytes >= UINT64_C(1) << 20)
        text_addf(t, "%" PRIu64 " MiB", bytes >> 20);
    else
        text_addf(t, "%" PRIu64 " KiB", bytes >> 10);
}

static size_t utf8_len(const unsigned char *s)
{
    size_t n = s[0] < 0x80                   ? 1
               : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
               : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
               : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool overlong =
        (n == 3 && s[0] == 0xE0 && s[1] < 0xA0) || (n == 4 && s[0] == 0xF0 && s[1] < 0x90);
    bool surrogate = n == 3 && s[0] == 0xED && s[1] >= 0xA0;
    bool beyond = n == 4 && s[0] == 0xF4 && s[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0);
}

size_t text_character(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    return is_control(p) ? 0 : utf8_len(p);
}

bool text_is_printable(const char *s)
{
    for (; *s; s += text_character(s))
        if (text_character(s) == 0)
            return false;
    return true;
}

bool text_is_utf8(const char *s)
{
    for (; *s; s += utf8_len((const unsigned char *)s))
        if (utf8_len((const unsigned char *)s) == 0)
            return false;
    return true;
}
