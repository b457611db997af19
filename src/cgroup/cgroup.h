/*
 * cgroup.h - the process tree of one attempt: kept together, limited, killed.
 *
 * Three kinds of host: `v2` (unified), `v1`, and `hybrid`, where the v1
 * controllers limit and a unified mount without controllers tracks and kills.
 * Where nothing can be used, `none`, and cgroup_host.reason says why: then a
 * tree is known by the mark in its environment alone (stray.h).
 *
 * The tree of an attempt, below a configured root in every hierarchy used:
 *
 *     ROOT/ID.ATTEMPT/payload/task-N     one task: its limits and its gate
 *     ROOT/ID.ATTEMPT.task-N             its limits in a v1 hierarchy that does not track it
 *     ROOT/ID.ATTEMPT/supervisor         divvy-supervise itself, with "self" only
 *
 * ROOT is a path below the hierarchy's mount ("/divvy"), or "self": the cgroup
 * that the caller is in, which a service manager delegated; then ID.ATTEMPT is
 * left out, and the caller moves to supervisor/, since a v2 cgroup has either
 * processes or controllers for its children. Elsewhere it stays where it is: a
 * move costs about 10 ms on an idle machine (the kernel waits for readers),
 * being born in a cgroup costs nothing. v1 hierarchies are only used for what
 * is asked of them, and entered by a thread, which is cheap. Invariant: a limit
 * counts as enforced only after the kernel took it; what has no controller is
 * reported, never claimed.
 *
 *     struct cgroup_host host;
 *     cgroup_host_detect(NULL, NULL, &host);
 *     AUTO(cgroup) struct cgroup c = CGROUP_INIT;
 *     cgroup_create(&host, "/divvy", "41.1", 2, &c, e);
 *     enforced = cgroup_limit(&c, 0, &limits, e);
 *     … clone3 into cgroup_task_fd(&c, 0) …
 *     cgroup_kill(&c, e); … until cgroup_populated(&c) == 0 …
 *     cgroup_remove(&c, e);
 */
#ifndef DIVVY_CGROUP_CGROUP_H
#define DIVVY_CGROUP_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum cgroup_kind { CGROUP_NONE = 0, CGROUP_V1, CGROUP_HYBRID, CGROUP_V2 };

/* Hierarchies that a tree may have directories in. Only V2 and HYBRID have UNIFIED. */
enum cgroup_hierarchy {
    CGROUP_UNIFIED = 0,
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_CPUSET,
    CGROUP_PIDS,
    CGROUP_DEVICES,
    CGROUP_HIERARCHIES,
};

struct cgroup_host {
    enum cgroup_kind kind;
    char *mounts[CGROUP_HIERARCHIES]; /* NULL: not there */
    char reason[256];                 /* why it is CGROUP_NONE; "" otherwise */
};

/* The file system magic of a path, as statfs(2) tells it; negative errno. For tests. */
typedef int (*cgroup_magic_fn)(const char *path, uint64_t *ret_magic);

/*
 * Looks at `mount` (NULL: /sys/fs/cgroup), by statfs through `magic` (NULL:
 * the real one). Cannot fail: what is not usable is CGROUP_NONE with a reason.
 */
void cgroup_host_detect(const char *mount, cgroup_magic_fn magic, struct cgroup_host *ret);
void cgroup_host_done(struct cgroup_host *h);
const char *cgroup_kind_word(enum cgroup_kind k); /* "v2", "hybrid", "v1", "none" */

/*
 * The root that belongs to a Divvy at `divvy_root`: "/divvy" for "/", else
 * "/divvy-" and a hash of the path, so that several never meet. Caller frees.
 */
char *cgroup_root_for(const char *divvy_root);

/*
 * Can trees be made below `root`? 0, or -EACCES, -EROFS, … with the reason.
 * Leaves nothing.
 */
int cgroup_root_check(const struct cgroup_host *h, const char *root, struct err *e);

/*
 * Keeps `root` in being while no attempt is in it, by an empty cgroup `held` in
 * each hierarchy, so that an attempt on an idle machine need not make and remove it. release
 * takes that away, and `root` too when nothing else is in it. Both may be
 * called at any time, also by another process than the one that held it.
 * Nothing is lost when holding fails, and "self" needs none.
 */
void cgroup_root_hold(const struct cgroup_host *h, const char *root);
void cgroup_root_release(const struct cgroup_host *h, const char *root);

struct cgroup {
    enum cgroup_kind kind;
    char *paths[CGROUP_HIERARCHIES]; /* of the attempt in each hierarchy used, else NULL */
    unsigned tasks;
    bool self; /* the paths are a delegated cgroup, not ours to remove */
    /*
     * Every hierarchy has payload/task-N, for a program that puts processes below
     * a task in all of them by one name (dockerd). Set before the first limit.
     */
    bool alike;
};

#define CGROUP_INIT                                                                                \
    {                                                                                              \
        .kind = CGROUP_NONE                                                                        \
    }

/*
 * Makes the tree. One that is there, of a supervisor that died before it
 * started anything, is killed and removed first (a second at most, else
 * -EBUSY): a cgroup that was killed once may kill what is born in it later.
 * On failure nothing of what it made is left, and `ret` is untouched. With
 * CGROUP_NONE: -ENOTSUP with the host's reason.
 */
int cgroup_create(const struct cgroup_host *h, const char *root, const char *name, unsigned tasks,
                  struct cgroup *ret, struct err *e);

/* One that somebody made. -ENOENT: there is none in any hierarchy (it cannot hold processes). */
int cgroup_open(const struct cgroup_host *h, const char *root, const char *name, struct cgroup *ret,
                struct err *e);
void cgroup_done(struct cgroup *c); /* memory only */

/* What cgroup_open needs as `root` to find it again: `root`, with "self" made absolute. Caller frees. */
char *cgroup_find_root(const struct cgroup *c, const char *root);

/* 0, "" or NULL: no limit. */
struct cgroup_limits {
    uint64_t mem_bytes; /* swap off, the task dies as one where the kernel can */
    uint32_t cpu_milli; /* 1000: the time of one CPU */
    uint32_t pids;
    const char *cpus; /* "0-7,16" */
    const char *mems; /* NULL with cpus: what the parent has */
};

enum cgroup_enforced {
    CGROUP_ENFORCES_MEMORY = 1 << 0,
    CGROUP_ENFORCES_CPU = 1 << 1,
    CGROUP_ENFORCES_CPUS = 1 << 2,
    CGROUP_ENFORCES_PIDS = 1 << 3,
};

/*
 * Sets what can be set for task N. Returns enum cgroup_enforced bits of what
 * was asked for and is held now. Negative only when a controller that is there
 * refused a value (-EINVAL: no such CPU); then the text says which.
 */
int cgroup_limit(const struct cgroup *c, unsigned task, const struct cgroup_limits *limits,
                 struct err *e);

/* Moves the calling process to supervisor/ in all hierarchies. */
int cgroup_enter_supervisor(const struct cgroup *c, struct err *e);

/* Directory of task N in the unified hierarchy, for CLONE_INTO_CGROUP and bpf; -ENOTSUP on v1. */
int cgroup_task_fd(const struct cgroup *c, unsigned task, int *ret_fd, struct err *e);

/*
 * Descriptors of files of task N to which a child of one thread writes "0" to enter:
 * of all hierarchies, or only those that CLONE_INTO_CGROUP does not cover.
 * Close-on-exec; the caller closes. Returns how many.
 */
int cgroup_procs_fds(const struct cgroup *c, unsigned task, bool with_unified,
                     int ret_fds[CGROUP_HIERARCHIES], struct err *e);

/* Path of task N below the mount of the hierarchy that tracks it: "/divvy/41.1/payload/task-0". Caller frees. */
char *cgroup_task_name(const struct cgroup_host *h, const struct cgroup *c, unsigned task);

/* Any process in payload/? 1, 0, or negative. */
int cgroup_populated(const struct cgroup *c, struct err *e);

/* Descriptor that becomes POLLPRI when that changes; -ENOTSUP on v1 (poll by time). */
int cgroup_events_fd(const struct cgroup *c, int *ret_fd, struct err *e);

/*
 * Sends SIGKILL to everything in payload/: cgroup.kill, or a loop over its
 * processes where the kernel has none. Does not wait: see cgroup_populated.
 */
int cgroup_kill(const struct cgroup *c, struct err *e);
/* Sends `sig` to every process of task N (CGROUP_EVERY_TASK: of all). */
#define CGROUP_EVERY_TASK UINT32_MAX
int cgroup_signal(const struct cgroup *c, unsigned task, int sig, struct err *e);

/*
 * Descriptor that is readable when a task of the tree has reached its memory
 * limit: on v1 the kernel kills one process of it, and the caller the others
 * (where cgroup_usage says oom_kills; that may be moments later). -ENOTSUP
 * where no task has a v1 limit: v2 kills the group by itself. Caller closes.
 */
int cgroup_oom_fd(const struct cgroup *c, int *ret_fd, struct err *e);

/* What a task used so far. */
struct cgroup_usage {
    uint64_t mem_peak_bytes; /* 0: not known */
    int64_t cpu_us;          /* 0: not known */
    uint64_t oom_kills;      /* processes killed by the task's own memory limit */
};
void cgroup_usage(const struct cgroup *c, unsigned task, struct cgroup_usage *ret);

/*
 * Removes what somebody else made of the tree in the hierarchies that we use
 * nothing of: a container's runtime enters all of them. Never fails; what is
 * busy stays.
 */
void cgroup_remove_others(const struct cgroup_host *h, const struct cgroup *c);

/*
 * Removes the tree, and `root` with the last one in it unless it is held. -EBUSY while something
 * is in it. What is not there is no error.
 */
int cgroup_remove(const struct cgroup *c, struct err *e);

#endif
