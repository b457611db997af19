#include "base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *log_program = "divvy";
static enum log_level log_max = LOG_NOTE;
static int log_to_journal;
static int log_dir = -1;
static const char *log_name; /* NULL: standard error */

void log_init(const char *program, enum log_level max)
{
    log_program = program;
    log_max = max;
    log_to_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_to_file(int dir, const char *name)
{
    log_dir = dir;
    log_name = name;
    log_to_journal = 0;
}

static void put_line(const char *when, const char *line)
{
    if (log_name) {
        int fd =
            openat(log_dir, log_name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0) {
            (void)dprintf(fd, "%s %s: %s\n", when, log_program, line); /* nowhere to tell */
            (void)close(fd);
        }
        return;
    }
    (void)fprintf(stderr, "%s %s: %s\n", when, log_program, line);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    if (level > log_max)
        return;
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap); /* a line that is too long is cut */
    va_end(ap);
    if (log_to_journal) {
        (void)fprintf(stderr, "<%d>%s\n", (int)level, line); /* nowhere to tell a failure */
        return;
    }
    char when[32] = "";
    time_t t = time(NULL);
    struct tm tm;
    if (localtime_r(&t, &tm))
        (void)strftime(when, sizeof when, "%H:%M:%S", &tm); /* "" when it does not fit: it does */
    put_line(when, line);
}
