/*
 * err.h - one way to fail.
 *
 * A function that can fail returns int: 0 or positive is success, a negative
 * errno is failure. Its last or next to last parameter is a `struct err *e`,
 * which may be NULL, and which on failure gets a text for a person: what
 * happened, then why, then what would work. On success it is left alone. A
 * text that is too long is cut with "…".
 *
 *     int card_lock(const char *path, struct err *e)
 *     {
 *         auto_close int fd = open(path, O_RDWR | O_CLOEXEC);
 *         if (fd < 0)
 *             return err_sys(e, "cannot open %s", path);
 *         ...
 *     }
 *
 * The struct lies on the caller's stack; there is nothing to free.
 */
#ifndef DIVVY_BASE_ERR_H
#define DIVVY_BASE_ERR_H

#define ERR_TEXT_MAX 1024

struct err {
    int code;                /* negative errno, 0 while nothing failed */
    char text[ERR_TEXT_MAX]; /* one sentence: valid UTF-8, no newline or other control */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        .code = 0, .text = ""                                                                      \
    }

/*
 * Sets the text and returns `code`, so that `return err_set(e, -EBUSY, "…")`
 * is the whole failure branch. `code` must be negative. Keeps errno.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * As err_set with -errno, and appends ": " and errno's own words. A text that
 * is too long loses its middle, never the reason at its end.
 */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Puts "context: " in front of the text that is there and returns its code.
 * To be called on the way up, only with an error that is set (or e NULL, in
 * which case `code` is all that is left to return).
 */
int err_wrap(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
