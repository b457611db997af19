#include "cgroup/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"
#include "cgroup/control.h"

#define V1_MAJORS 512 /* CHRDEV_MAJOR_MAX of the kernel: nothing registers above */
#define V1_MINORS 256

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, cmd, attr, sizeof *attr);
}

/* No log buffer: one that is too small makes a good program fail. */
static int load_program(const struct gate *g, int *ret_fd, struct err *e)
{
    size_t count;
    auto_free struct bpf_insn *insns = gate_program(g, &count);
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insns = (uint64_t)(uintptr_t)insns;
    attr.insn_cnt = (uint32_t)count;
    attr.license = (uint64_t)(uintptr_t) "Apache-2.0";
    memcpy(attr.prog_name, "divvy_gate", sizeof "divvy_gate");
    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0)
        return err_sys(e, "cannot load a device program (bpf)");
    *ret_fd = fd;
    return 0;
}

static int attach_bpf(const struct gate *g, const struct cgroup *c, unsigned task, struct err *e)
{
    auto_close int target = -1;
    auto_close int program = -1;
    int r = cgroup_task_fd(c, task, &target, e);
    if (r == 0)
        r = load_program(g, &program, e);
    if (r < 0)
        return r;
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.target_fd = (uint32_t)target;
    attr.attach_bpf_fd = (uint32_t)program;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = BPF_F_ALLOW_MULTI;
    if (bpf(BPF_PROG_ATTACH, &attr) < 0)
        return err_sys(e, "cannot attach a device program (bpf)");
    return 0;
}

static bool has_closed_node(const struct gate *g, uint32_t major)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->nodes[i].major == major)
            return true;
    return false;
}

static int rule(int fd, const char *format_major, uint32_t major, int minor, const char *access)
{
    auto_free char *text =
        minor < 0 ? text_fmt("%s%" PRIu32 ":* %s", format_major, major, access)
                  : text_fmt("%s%" PRIu32 ":%d %s", format_major, major, minor, access);
    return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/*
 * The v1 controller cannot close a major and open one of its minors, so it is
 * the other way round: nothing, then everything but the closed. What a parent
 * does not allow is refused to us and was closed before.
 */
static void open_others(const struct gate *g, int allow)
{
    (void)!write(allow, "b *:* rwm", strlen("b *:* rwm"));
    for (uint32_t major = 0; major < V1_MAJORS; major++) {
        if (has_closed_node(g, major)) {
            for (int minor = 0; minor < V1_MINORS; minor++)
                if (gate_allows(g, major, (uint32_t)minor, true))
                    (void)rule(allow, "c ", major, minor, "rwm");
        } else if (gate_allows(g, major, UINT32_MAX, true)) {
            (void)rule(allow, "c ", major, -1, "rwm");
        }
    }
}

static int attach_v1(const struct gate *g, const struct cgroup *c, unsigned task, struct err *e)
{
    if (!c->paths[CGROUP_DEVICES])
        return err_set(e, -ENOTSUP, "there is no devices controller");
    auto_free char *dir = control_task(c, CGROUP_DEVICES, task);
    int r = control_mkdirs(dir, e);
    if (r < 0)
        return r;
    auto_free char *path = text_fmt("%s/devices.allow", dir);
    auto_close int allow = open(path, O_WRONLY | O_CLOEXEC);
    if (allow < 0)
        return err_sys(e, "cannot open %s", path);
    r = control_write(dir, "devices.deny", "a");
    if (r < 0)
        return err_set(e, r, "cannot close devices in %s: %s", dir, strerror(-r));
    open_others(g, allow);
    for (size_t i = 0; r == 0 && i < g->grant_count; i++)
        r = rule(allow, "c ", g->grants[i].major, (int)g->grants[i].minor, "rw");
    if (r < 0) {
        (void)control_remove(dir); /* nobody is in it yet */
        return err_set(e, r, "cannot open a granted device in %s: %s", dir, strerror(-r));
    }
    return 0;
}

enum isolation gate_attach(const struct gate *g, const struct cgroup *c, unsigned task,
                           struct err *e)
{
    struct err first = ERR_INIT;
    struct err second = ERR_INIT;
    if (c->kind == CGROUP_NONE) {
        err_set(e, -ENOTSUP, "there is no cgroup to put a gate on");
        return ISOLATION_NONE;
    }
    if (attach_bpf(g, c, task, &first) == 0)
        return ISOLATION_BPF;
    if (attach_v1(g, c, task, &second) == 0)
        return ISOLATION_V1;
    err_set(e, first.code, "%s; %s", first.text, second.text);
    return ISOLATION_NONE;
}

enum isolation gate_probe(const struct cgroup_host *h, const char *root, struct err *e)
{
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    struct gate g = GATE_INIT;
    auto_free char *name = text_fmt("probe-%d", (int)getpid());
    if (text_same(root, "self")) {
        err_set(e, -ENOTSUP, "not tried: the cgroup belongs to the service manager");
        return ISOLATION_NONE;
    }
    if (gate_close_major(&g, 195, e) < 0 || cgroup_create(h, root, name, 1, &c, e) < 0)
        return ISOLATION_NONE;
    enum isolation got = gate_attach(&g, &c, 0, e);
    (void)cgroup_remove(&c, NULL); /* empty; a later probe uses another name */
    return got;
}
