#include "model/warning.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

static const struct {
    int signal;
    const char *word;
} words[] = {
    { SIGHUP, "HUP" },   { SIGINT, "INT" },     { SIGQUIT, "QUIT" }, { SIGUSR1, "USR1" },
    { SIGUSR2, "USR2" }, { SIGTERM, "TERM" },   { SIGCONT, "CONT" }, { SIGALRM, "ALRM" },
    { SIGURG, "URG" },   { SIGWINCH, "WINCH" },
};

const char *signal_word(int sig)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].signal == sig)
            return words[i].word;
    return NULL;
}

int signal_parse(const char *word, int *ret, struct err *e)
{
    uint64_t number = 0;
    const char *bare = strncasecmp(word, "SIG", 3) == 0 ? word + 3 : word;
    bool is_number = text_parse_u64(word, 1, 31, "signal", &number, NULL) == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_number ? words[i].signal == (int)number : strcasecmp(bare, words[i].word) == 0) {
            *ret = words[i].signal;
            return 0;
        }
    return err_set(e, -EINVAL,
                   "'%.32s' is no signal that a job can be sent; USR1, USR2, TERM, INT, HUP, QUIT, "
                   "ALRM, CONT, URG and WINCH are",
                   word);
}

int job_warning_parse(const char *text, struct job_warning *ret, struct err *e)
{
    struct job_warning w = { .before_us = CLOCK_MINUTE };
    auto_free char *name = text_dup(text);
    char *at = strchr(name, '@');
    if (at)
        *at++ = '\0';
    int r = signal_parse(name, &w.signal, e);
    if (r == 0 && at)
        r = text_parse_duration(at, "time before the limit", &w.before_us, e);
    if (r == 0)
        *ret = w;
    return r;
}

int job_warning_check(const struct job_warning *w, int64_t limit_us, struct err *e)
{
    if (!w->signal)
        return 0;
    if (w->before_us <= 0)
        return err_set(e, -EINVAL, "a signal before the time limit needs a time above 0");
    if (!limit_us)
        return err_set(e, -EINVAL,
                       "a signal before the time limit needs a limit; ask for one with --time");
    if (w->before_us >= limit_us)
        return err_set(e, -EINVAL,
                       "the signal would come before the job begins: it is asked for so long "
                       "before the limit as the limit is, or longer");
    return 0;
}
