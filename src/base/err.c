#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that was cut says so, at a character boundary. */
static void mark_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(text + end, "…", sizeof "…");
}

__attribute__((format(printf, 2, 0))) static void set_text(struct err *e, const char *fmt,
                                                           va_list ap)
{
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    if (n >= (int)sizeof e->text)
        mark_cut(e->text, sizeof e->text);
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
    char what[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof what, fmt, ap); /* cut below, with its mark */
    va_end(ap);
    (void)err_set(e, code, "%s: %s", what, strerror(-code));
    errno = saved;
    return code;
}

int err_wrap(struct err *e, int code, const char *fmt, ...)
{
    assert(code < 0);
    if (!e)
        return code;
    int saved = errno;
    char context[ERR_TEXT_MAX];
    char inner[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(context, sizeof context, fmt, ap);
    va_end(ap);
    memcpy(inner, e->text, sizeof inner);
    (void)err_set(e, code, "%s: %s", context, inner);
    errno = saved;
    return code;
}
