#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/child.h"

#define LOOK_MS 2

static int alive_open(const char *path, struct err *e)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? err_sys(e, "cannot open %s", path) : fd;
}

int driver_child_hold(const char *path, struct err *e)
{
    int fd = alive_open(path, e);
    if (fd < 0)
        return fd;
    if (flock(fd, LOCK_SH) == 0)
        return fd;
    int code = err_sys(e, "cannot lock %s", path);
    (void)close(fd); /* nothing was written */
    return code;
}

int driver_child_wait_alone(const char *path, int timeout_ms, struct err *e)
{
    auto_close int fd = alive_open(path, e);
    if (fd < 0)
        return fd;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return err_sys(e, "cannot lock %s", path);
        if (timeout_ms <= 0)
            return err_set(e, -EBUSY,
                           "the process with which an earlier divvyd cut cards is still there: "
                           "it hangs in a driver call");
        (void)poll(NULL, 0, LOOK_MS); /* a pause */
        timeout_ms -= LOOK_MS;
    }
    return 0;
}
