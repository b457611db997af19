/*
 * text.h - growing strings, and reading the small languages people type:
 * numbers, sizes ("10G"), durations ("1:30:00", "90m").
 *
 *     AUTO(text) struct text t = TEXT_INIT;
 *     text_addf(&t, "gpu%u", ordinal);
 *     puts(t.buf);
 *
 * Invariant: `buf` is never NULL and always ends with a NUL at buf[len].
 * Running out of memory ends the program (text_die): nothing sane is left to
 * do for the few kilobytes that are asked here. Input is bounded elsewhere.
 */
#ifndef DIVVY_BASE_TEXT_H
#define DIVVY_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct text {
    char *buf;
    size_t len;   /* bytes without the NUL */
    size_t alloc; /* 0: buf is the shared empty string, not ours */
};

extern char text_empty[1];
#define TEXT_INIT                                                                                  \
    {                                                                                              \
        .buf = text_empty, .len = 0, .alloc = 0                                                    \
    }

void text_done(struct text *t);
void text_clear(struct text *t);
void text_add(struct text *t, const char *s);
void text_addn(struct text *t, const void *bytes, size_t n);
void text_addf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Moves the string out; the caller frees it with free(). `t` is empty after. */
char *text_take(struct text *t);

/* malloc family that ends the program when there is no memory. Never NULL. */
void *mem_new(size_t bytes); /* zeroed */
void *mem_dup(const void *p, size_t bytes);
char *text_dup(const char *s); /* NULL stays NULL */
char *text_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Makes room for `need` elements of `size` bytes in *ret_items (grown by half
 * again, new room zeroed). Use through ARRAY_ROOM.
 */
void array_room(void **ret_items, size_t *alloc, size_t need, size_t size);
#define ARRAY_ROOM(items, alloc, need)                                                             \
    array_room((void **)&(items), &(alloc), (need), sizeof *(items))

bool text_same(const char *a, const char *b); /* NULL equals only NULL */
bool text_starts(const char *s, const char *prefix);

/*
 * Whole string as a decimal number between min and max. -EINVAL when it is no
 * number, -ERANGE when it is out of range; the text says which and names the
 * range. `what` is the thing's name for that text ("--gpus").
 */
int text_parse_u64(const char *s, uint64_t min, uint64_t max, const char *what, uint64_t *ret_n,
                   struct err *e);

/*
 * A size: digits, an optional fraction, and an optional unit B, K, M, G or T
 * (case and a trailing "B" or "iB" ignored: "10G", "10GiB", "9.5g"), in
 * powers of 1024. A number without a unit is bytes. -EINVAL, -ERANGE.
 */
int text_parse_size(const char *s, const char *what, uint64_t *ret_bytes, struct err *e);

/*
 * A duration, in microseconds: "90s", "45m", "2h", "1d", "2h30m", or as Slurm
 * writes it: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
 * days-hours:minutes[:seconds]. At most 10 years. -EINVAL, -ERANGE.
 */
#define TEXT_DURATION_MAX_US (3653 * CLOCK_DAY)
int text_parse_duration(const char *s, const char *what, int64_t *ret_us, struct err *e);

/* "41m", "2h13m", "3d04h", "12s": at most two units, for a person. us >= 0. */
void text_add_duration(struct text *t, int64_t us);
/* To the second, as it may be typed: "1m30s", "2h", "1d4h". For what was asked; us >= 0. */
void text_add_limit(struct text *t, int64_t us);
/* "79.2 GiB", "512 MiB": one decimal above a GiB, for a person. */
void text_add_size(struct text *t, uint64_t bytes);

/* True when s is valid UTF-8 without control characters. */
bool text_is_printable(const char *s);
/* True when s is valid UTF-8; newlines, escapes and the like are allowed. */
bool text_is_utf8(const char *s);
/* Bytes of the printable UTF-8 character at s; 0 when there is none (a control, a broken one). */
size_t text_character(const char *s);

#endif
