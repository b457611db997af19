/*
 * log.h - lines for the administrator, on standard error.
 *
 * Only programs log (daemon, supervise, cli); libraries return errors. Under
 * systemd a line carries its level as "<3>" in front, which the journal
 * understands; on a terminal or in a file it carries the time instead.
 */
#ifndef DIVVY_BASE_LOG_H
#define DIVVY_BASE_LOG_H

enum log_level {
    LOG_ERROR = 3,
    LOG_WARN = 4,
    LOG_NOTE = 5, /* what an administrator wants to see in normal operation */
    LOG_INFO = 6,
    LOG_TRACE = 7,
};

/* Default LOG_NOTE. `program` is kept, not copied. */
void log_init(const char *program, enum log_level max);
/*
 * Lines go to the file `name` of the open directory `dir` (borrowed, kept open
 * by the caller), which is made with the first of them; standard error is left
 * alone. For those whose standard error nobody reads.
 */
void log_to_file(int dir, const char *name);
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
