/*
 * gate.h - which NVIDIA device nodes a task may open.
 *
 * "NVIDIA majors closed but for what was granted, everything else untouched":
 * a card that is plugged in later is closed, and infiniband, fuse, kvm and
 * terminals go on working. mknod on the closed majors is refused, too.
 *
 * With a unified mount (v2 and hybrid hosts) it is a BPF_PROG_TYPE_CGROUP_DEVICE
 * program of our own, loaded by bpf(2) and attached with BPF_F_ALLOW_MULTI: it
 * can only take away what others allow, and it goes with its cgroup. Else the
 * v1 devices controller. A refused open gives EPERM; descriptors that are open
 * stay open.
 *
 *     AUTO(gate) struct gate g = GATE_INIT;
 *     gate_close_driver(&g, driver_root, e);     // majors from its /proc/devices
 *     gate_grant(&g, 195, 255, e);               // nvidiactl
 *     enum isolation got = gate_attach(&g, &cgroup, task, e);
 *
 * The generator is apart from the loader: a unit test runs the program in a
 * small interpreter, without privileges. Facts: reference for the context and
 * the access bits is linux/bpf.h, struct bpf_cgroup_dev_ctx.
 */
#ifndef DIVVY_CGROUP_GATE_H
#define DIVVY_CGROUP_GATE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cgroup/cgroup.h"

enum isolation { ISOLATION_NONE = 0, ISOLATION_V1, ISOLATION_BPF };
const char *isolation_word(enum isolation i); /* "none", "v1", "bpf" */

#define GATE_MAJORS_MAX 16
#define GATE_NODES_MAX 64
#define GATE_GRANTS_MAX 256

struct gate_device {
    uint32_t major, minor;
};

struct gate {
    uint32_t majors[GATE_MAJORS_MAX]; /* closed */
    size_t major_count;
    struct gate_device nodes[GATE_NODES_MAX]; /* closed one by one: their majors are shared */
    size_t node_count;
    struct gate_device grants[GATE_GRANTS_MAX]; /* open for reading and writing */
    size_t grant_count;
};

#define GATE_INIT                                                                                  \
    {                                                                                              \
        .major_count = 0                                                                           \
    }

/*
 * Closes every character major whose name in `driver_root`/proc/devices begins
 * with "nvidia" (caps, uvm, nvswitch and imex channels have dynamic ones), 195,
 * which is NVIDIA's by registration, and the DRM nodes of NVIDIA's cards, as
 * `driver_root`/sys/class/drm tells. -ENOENT without /proc/devices.
 */
int gate_close_driver(struct gate *g, const char *driver_root, struct err *e);
/*
 * -EINVAL for majors that every process needs (memory, terminals, input):
 * closing them would break the task, not guard a card. Twice is once.
 */
int gate_close_major(struct gate *g, uint32_t major, struct err *e);
int gate_close_node(struct gate *g, uint32_t major, uint32_t minor, struct err *e);

/* Opens one device; its major need not be closed. -E2BIG beyond GATE_GRANTS_MAX. */
int gate_grant(struct gate *g, uint32_t major, uint32_t minor, struct err *e);
/* The same by node, its st_rdev. -ENODEV when the path is no character device. */
int gate_grant_path(struct gate *g, const char *path, struct err *e);

/* May it be opened (or, `make`, be made by mknod)? The policy in C, what the program must equal. */
bool gate_allows(const struct gate *g, uint32_t major, uint32_t minor, bool make);

/* The program. Caller frees. */
struct bpf_insn *gate_program(const struct gate *g, size_t *ret_count);

/*
 * Puts the gate on task N of the tree; one that is there stays and both must
 * allow. Returns the isolation that holds now: ISOLATION_BPF, ISOLATION_V1, or
 * ISOLATION_NONE with the reason in `e`, and then nothing is attached. With v1
 * the task must also enter its devices cgroup (cgroup_procs_fds knows).
 */
enum isolation gate_attach(const struct gate *g, const struct cgroup *c, unsigned task,
                           struct err *e);

/* What gate_attach would give on this host, tried on a cgroup of its own that is removed. */
enum isolation gate_probe(const struct cgroup_host *h, const char *root, struct err *e);

#endif
