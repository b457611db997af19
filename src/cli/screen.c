#include "cli/screen.h"

#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

unsigned screen_width(int fd)
{
    struct winsize size;
    uint64_t columns = 0;
    const char *asked = getenv("COLUMNS");
    if (isatty(fd) != 1)
        return 0;
    if (asked && text_parse_u64(asked, 40, 1000, "COLUMNS", &columns, NULL) == 0)
        return (unsigned)columns;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col;
    return 80;
}

struct screen screen_of_stdout(void)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    struct screen s = { .tty = isatty(STDOUT_FILENO) == 1 };
    s.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    s.colour = s.tty && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
    s.width = screen_width(STDOUT_FILENO);
    return s;
}

void screen_add(const struct screen *s, struct text *t, enum colour c, const char *words)
{
    static const char *const codes[] = { "",         "\033[32m", "\033[33m",
                                         "\033[31m", "\033[2m",  "\033[1m" };
    if (!s->colour || c == COLOUR_NONE)
        text_add(t, words);
    else
        text_addf(t, "%s%s\033[0m", codes[c], words);
}

void when_add(struct text *t, int64_t wall_us, int64_t now_wall_us)
{
    time_t at = (time_t)(wall_us / CLOCK_SECOND);
    time_t now = (time_t)(now_wall_us / CLOCK_SECOND);
    struct tm then, today;
    char buf[64];
    if (!wall_us || !localtime_r(&at, &then) || !localtime_r(&now, &today)) {
        text_add(t, "n/a");
        return;
    }
    int64_t apart = llabs(wall_us - now_wall_us);
    size_t n = 0;
    if (then.tm_yday == today.tm_yday && then.tm_year == today.tm_year)
        n = strftime(buf, sizeof buf, "%H:%M", &then);
    else if (apart < 6 * CLOCK_DAY)
        n = strftime(buf, sizeof buf, "%a %H:%M", &then);
    else
        n = strftime(buf, sizeof buf, "%Y-%m-%d %H:%M", &then);
    text_addn(t, buf, n);
}

void since_add(struct text *t, int64_t from_us, int64_t now_us)
{
    if (!from_us)
        text_add(t, "-");
    else
        text_add_duration(t, now_us > from_us ? now_us - from_us : 0);
}
