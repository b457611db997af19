#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define TEXT_ROOM (ERR_TEXT_MAX - 1)
#define CONTEXT_MIN 128 /* of a long context, beside a long reason */

/* Shortens to `max` bytes at most, between two characters, and says so. */
static void cut(char *text, size_t max)
{
    if (strlen(text) <= max)
        return;
    size_t end = max - strlen("…");
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(text + end, "…", sizeof "…");
}

/* What people, files and drivers gave is quoted in here: it must not reach a terminal as it is. */
static void make_printable(char *text)
{
    for (char *p = text; *p;) {
        size_t n = text_character(p);
        if (n == 0) {
            *p = *p == '\n' || *p == '\t' ? ' ' : '?';
            n = 1;
        }
        p += n;
    }
}

__attribute__((format(printf, 2, 0))) static void set_text(struct err *e, const char *fmt,
                                                           va_list ap)
{
    char whole[ERR_TEXT_MAX + 4]; /* a character more, so that what is too long is seen */
    (void)vsnprintf(whole, sizeof whole, fmt, ap);
    make_printable(whole);
    cut(whole, TEXT_ROOM);
    memcpy(e->text, whole, strlen(whole) + 1);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    assert(code < 0);
    if (!e)
        return code;
    int saved = errno;
    va_list ap;
    va_start(ap, fmt);
    set_text(e, fmt, ap);
    va_end(ap);
    e->code = code;
    errno = saved;
    return code;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    int code = saved > 0 ? -saved : -EIO;
    if (!e)
        return code;
    const char *reason = strerror(-code);
    char what[ERR_TEXT_MAX + 4];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    cut(what, TEXT_ROOM - strlen(": ") - strlen(reason));
    (void)err_set(e, code, "%s: %s", what, reason);
    errno = saved;
    return code;
}

int err_wrap(struct err *e, int code, const char *fmt, ...)
{
    assert(code < 0);
    if (!e)
        return code;
    int saved = errno;
    char context[ERR_TEXT_MAX + 4];
    char inner[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(context, sizeof context, fmt, ap);
    va_end(ap);
    memcpy(inner, e->text, sizeof inner);
    size_t room = TEXT_ROOM - strlen(": ");
    size_t left = strlen(inner) < room - CONTEXT_MIN ? room - strlen(inner) : CONTEXT_MIN;
    cut(context, left);
    (void)err_set(e, code, "%s: %s", context, inner);
    errno = saved;
    return code;
}
