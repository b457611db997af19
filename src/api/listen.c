#include "api/api.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Removes what an earlier daemon left, and nothing but a socket. */
static int clear_path(const char *path, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : err_sys(e, "cannot look at %s", path);
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, -EEXIST, "%s is in the way and is no socket; move it away", path);
    return unlink(path) < 0 ? err_sys(e, "cannot replace %s", path) : 0;
}

/* The mode is set before anybody can connect: bind, chmod, then listen. */
int api_listen(const char *path, mode_t mode, struct err *e)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof addr.sun_path)
        return err_set(e, -ENAMETOOLONG,
                       "the socket's path has %zu bytes and at most %zu work; choose a shorter "
                       "root: %s",
                       strlen(path), sizeof addr.sun_path - 1, path);
    memcpy(addr.sun_path, path, strlen(path) + 1);
    int r = clear_path(path, e);
    if (r < 0)
        return r;
    auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, "cannot make a socket");
    if (bind(fd, (const struct sockaddr *)&addr, sizeof addr) < 0)
        return err_sys(e, "cannot make the socket %s", path);
    if (chmod(path, mode) < 0 || listen(fd, SOMAXCONN) < 0)
        return err_sys(e, "cannot listen at %s", path);
    return take_fd(fd);
}
