#include "srun/label.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

static uint32_t digits(uint32_t n)
{
    uint32_t count = 1;
    for (; n >= 10; n /= 10)
        count++;
    return count;
}

int label_open(struct label *l, uint32_t number, uint32_t count, int to, int *ret_into,
               struct err *e)
{
    int ends[2];
    *l = (struct label)LABEL_INIT;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, "cannot make a pipe");
    l->from = ends[0];
    l->to = fcntl(to, F_DUPFD_CLOEXEC, 3);
    if (l->to < 0 || fcntl(l->from, F_SETFL, O_NONBLOCK) < 0) {
        int r = err_sys(e, "cannot label the output");
        (void)close(ends[1]);
        label_done(l);
        return r;
    }
    l->number = number;
    l->wide = digits(count - 1);
    *ret_into = ends[1];
    return 0;
}

/* Whoever shares the output may have said that it is not to wait. */
static int write_out(int fd, const char *p, size_t len)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n < 0 && errno == EAGAIN)
            (void)poll(&ready, 1, -1); /* a signal: it is tried again */
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static void hand_on(struct label *l, const char *line, size_t len)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_addf(&t, "%*u: ", (int)l->wide, l->number);
    text_addn(&t, l->line.buf, l->line.len);
    text_addn(&t, line, len);
    text_add(&t, "\n");
    text_clear(&l->line);
    int r = write_out(l->to, t.buf, t.len);
    if (r < 0 && !l->failed) /* the process goes on all the same */
        l->failed = r;
}

static void take_bytes(struct label *l, const char *p, size_t n)
{
    for (const char *end; (end = memchr(p, '\n', n)); p = end + 1) {
        hand_on(l, p, (size_t)(end - p));
        n -= (size_t)(end + 1 - p);
    }
    text_addn(&l->line, p, n);
    if (l->line.len >= LABEL_LINE_MAX)
        hand_on(l, "", 0);
}

/* What it read; 0: nothing is there, or nothing more comes. */
static size_t take_some(struct label *l)
{
    char bytes[LABEL_TAKE_MAX];
    ssize_t n;
    if (l->from < 0)
        return 0;
    do
        n = read(l->from, bytes, sizeof bytes);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        take_bytes(l, bytes, (size_t)n);
        return (size_t)n;
    }
    if (n < 0 && errno == EAGAIN)
        return 0;
    (void)close(l->from); /* its end; an error is no other */
    l->from = -1;
    return 0;
}

void label_take(struct label *l)
{
    (void)take_some(l); /* poll tells when there is more */
}

void label_done(struct label *l)
{
    int there = 0;
    if (l->from >= 0 && ioctl(l->from, FIONREAD, &there) < 0)
        there = 0;
    for (size_t n, left = (size_t)there; left > 0 && (n = take_some(l)) > 0;)
        left -= n < left ? n : left;
    if (l->line.len)
        hand_on(l, "", 0);
    if (l->from >= 0)
        (void)close(l->from); /* a child that lives on has it still */
    if (l->to >= 0)
        (void)close(l->to); /* a copy */
    text_done(&l->line);
    l->from = l->to = -1;
}
