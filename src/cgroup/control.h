/*
 * control.h - the control files of cgroup directories. Inside cgroup.
 *
 * Names are relative to a directory's path: control_write("/sys/fs/cgroup/x",
 * "memory.max", "1000"). Nothing here gives up over a missing file: -ENOENT
 * tells that the kernel or the host has no such controller.
 */
#ifndef DIVVY_CGROUP_CONTROL_H
#define DIVVY_CGROUP_CONTROL_H

#include "base/text.h"
#include "cgroup/cgroup.h"

/* One write(2), as the kernel wants it. Negative errno without text: callers know better. */
int control_write(const char *dir, const char *name, const char *value);
/* At most 64 KiB; caller frees. NULL: not there. */
char *control_read(const char *dir, const char *name);
/* A file that holds one number. False when there is none. */
bool control_read_u64(const char *dir, const char *name, uint64_t *ret);
/* The number behind "key " in a file of lines; false when there is none. */
bool control_read_key(const char *dir, const char *name, const char *key, uint64_t *ret);

/* Paths of payload/ and payload/task-N of a tree in a hierarchy. Caller frees. */
char *control_payload(const struct cgroup *c, enum cgroup_hierarchy h);
char *control_task(const struct cgroup *c, enum cgroup_hierarchy h, unsigned task);

/* mkdir -p below a mount; 0755. */
int control_mkdirs(const char *path, struct err *e);

/* The hierarchy that knows the tree: UNIFIED, else the first v1 one that is used. */
enum cgroup_hierarchy control_tracking(const struct cgroup *c);

/* Calls `each` for every process in `dir` and below. Returns how many; -ENOENT. */
typedef void (*control_pid_fn)(void *user, pid_t pid);
int control_each_pid(const char *dir, control_pid_fn each, void *user);
/* Calls `f` for each cgroup directly below. The sum of what it gives; negative errno. */
typedef int (*control_child_fn)(const char *path, void *user);
int control_each_child(const char *dir, control_child_fn f, void *user);
/* rmdir of `dir` and every cgroup below. 0 also when it is not there. Negative errno. */
int control_remove(const char *dir);

#endif
