#include "cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cgroup/control.h"

static void ignore_pid(void *user, pid_t pid)
{
    (void)user;
    (void)pid;
}

static void signal_pid(void *user, pid_t pid)
{
    (void)kill(pid, *(int *)user); /* it may be gone meanwhile: then all is well */
}

int cgroup_populated(const struct cgroup *c, struct err *e)
{
    if (c->kind == CGROUP_NONE)
        return err_set(e, -ENOTSUP, "there is no cgroup");
    auto_free char *payload = control_payload(c, control_tracking(c));
    if (c->paths[CGROUP_UNIFIED]) {
        uint64_t populated = 0;
        if (control_read_key(payload, "cgroup.events", "populated", &populated))
            return populated != 0;
        return access(payload, F_OK) < 0
                   ? 0
                   : err_set(e, -EIO, "cannot read %s/cgroup.events", payload);
    }
    int r = control_each_pid(payload, ignore_pid, NULL);
    if (r == -ENOENT)
        return 0;
    return r < 0 ? err_set(e, r, "cannot list %s: %s", payload, strerror(-r)) : r > 0;
}

int cgroup_events_fd(const struct cgroup *c, int *ret_fd, struct err *e)
{
    if (!c->paths[CGROUP_UNIFIED])
        return err_set(e, -ENOTSUP, "there is no unified cgroup hierarchy");
    auto_free char *payload = control_payload(c, CGROUP_UNIFIED);
    auto_free char *path = text_fmt("%s/cgroup.events", payload);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open %s", path);
    *ret_fd = fd;
    return 0;
}

int cgroup_kill(const struct cgroup *c, struct err *e)
{
    if (c->kind == CGROUP_NONE)
        return err_set(e, -ENOTSUP, "there is no cgroup");
    if (c->paths[CGROUP_UNIFIED]) {
        auto_free char *payload = control_payload(c, CGROUP_UNIFIED);
        if (control_write(payload, "cgroup.kill", "1") == 0)
            return 0;
    }
    return cgroup_signal(c, CGROUP_EVERY_TASK, SIGKILL, e); /* kernels before 5.14, and v1 */
}

int cgroup_signal(const struct cgroup *c, unsigned task, int sig, struct err *e)
{
    if (c->kind == CGROUP_NONE)
        return err_set(e, -ENOTSUP, "there is no cgroup");
    enum cgroup_hierarchy h = control_tracking(c);
    auto_free char *dir =
        task == CGROUP_EVERY_TASK ? control_payload(c, h) : control_task(c, h, task);
    int r = control_each_pid(dir, signal_pid, &sig);
    if (r < 0 && r != -ENOENT)
        return err_set(e, r, "cannot list %s: %s", dir, strerror(-r));
    return 0;
}
