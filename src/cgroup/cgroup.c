#include "cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cgroup/control.h"

#define SELF "self"
#define SELF_AT "self:"
#define REMOVE_TRIES 200
#define REMOVE_WAIT_NS 5000000

static const char *const controllers[] = { "memory", "cpu", "cpuset", "pids" };

void cgroup_done(struct cgroup *c)
{
    for (int h = 0; h < CGROUP_HIERARCHIES; h++)
        free(c->paths[h]);
    *c = (struct cgroup)CGROUP_INIT;
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = text; p && (p = strstr(p, word)); p += len)
        if ((p == text || p[-1] == ' ') && strchr(" \n", p[len]))
            return true;
    return false;
}

/* What cannot be enabled is found out, and told, by cgroup_limit. */
static void enable_controllers(const char *dir)
{
    auto_free char *there = control_read(dir, "cgroup.controllers");
    auto_free char *on = control_read(dir, "cgroup.subtree_control");
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++) {
        auto_free char *word = text_fmt("+%s", controllers[i]);
        if (has_word(there, controllers[i]) && !has_word(on, controllers[i]))
            (void)control_write(dir, "cgroup.subtree_control", word);
    }
}

/* In every directory from the mount down to and with `path`. */
static void enable_down_to(const char *mount, const char *path)
{
    auto_free char *p = text_dup(path);
    enable_controllers(mount);
    for (char *slash = p + strlen(mount); slash && *slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        enable_controllers(p);
        if (slash)
            *slash = '/';
    }
}

/* Path of the caller's own cgroup in the unified hierarchy, without the mount. */
static char *own_path(void)
{
    auto_free char *text = NULL;
    if (file_read(AT_FDCWD, "/proc/self/cgroup", 65536, &text, NULL, NULL) < 0)
        return NULL;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (text_starts(line, "0::"))
            return text_dup(line + 3);
    }
    return NULL;
}

static int check_names(const char *root, const char *name, struct err *e)
{
    bool self = text_same(root, SELF) || text_starts(root, SELF_AT);
    if ((!self && root[0] != '/') || strstr(root, ".."))
        return err_set(e, -EINVAL, "the cgroup root '%s' is neither an absolute path nor 'self'",
                       root);
    if (!name[0] || strchr(name, '/') || name[0] == '.')
        return err_set(e, -EINVAL, "'%s' is no name for a cgroup", name);
    return 0;
}

/* Where the tree is, or would be, in each hierarchy. */
static int locate(const struct cgroup_host *h, const char *root, const char *name,
                  struct cgroup *ret, struct err *e)
{
    int r = check_names(root, name, e);
    if (r < 0)
        return r;
    if (h->kind == CGROUP_NONE)
        return err_set(e, -ENOTSUP, "%s", h->reason);
    *ret = (struct cgroup){ .kind = h->kind };
    if (root[0] == '/') {
        const char *slash = text_same(root, "/") ? "" : "/";
        for (int i = 0; i < CGROUP_HIERARCHIES; i++)
            if (h->mounts[i])
                ret->paths[i] = text_fmt("%s%s%s%s", h->mounts[i], root, slash, name);
        return 0;
    }
    ret->self = true;
    auto_free char *own = text_same(root, SELF) ? own_path() : text_dup(root + strlen(SELF_AT));
    if (!h->mounts[CGROUP_UNIFIED] || !own)
        return err_set(e, -ENOTSUP, "there is no unified cgroup of our own to use");
    ret->paths[CGROUP_UNIFIED] = text_fmt("%s%s", h->mounts[CGROUP_UNIFIED], own);
    return 0;
}

static int make_tasks(const struct cgroup *c, enum cgroup_hierarchy h, struct err *e)
{
    int r = 0;
    for (unsigned i = 0; r == 0 && i < c->tasks; i++) {
        auto_free char *task = control_task(c, h, i);
        r = control_mkdirs(task, e);
    }
    return r;
}

/*
 * Linux 6.16 compares the kill count of the cgroup that a child is cloned into
 * with its parent's: a tree is never used again after a kill.
 */
static int remove_old(const struct cgroup *c, struct err *e)
{
    const char *path = c->paths[control_tracking(c)];
    auto_free char *payload = control_payload(c, control_tracking(c));
    if (access(c->self ? payload : path, F_OK) < 0)
        return 0;
    int r = cgroup_remove(c, e);
    for (int tries = 0; r == -EBUSY && tries < REMOVE_TRIES; tries++) {
        (void)cgroup_kill(c, NULL); /* it is seen by the next try */
        (void)nanosleep(&(struct timespec){ .tv_nsec = REMOVE_WAIT_NS }, NULL); /* short is fine */
        r = cgroup_remove(c, e);
    }
    return r;
}

static int make_tree(const struct cgroup_host *h, const struct cgroup *c, struct err *e)
{
    enum cgroup_hierarchy tracking = control_tracking(c);
    auto_free char *payload = control_payload(c, tracking);
    int r = control_mkdirs(payload, e);
    if (r == 0 && c->self)
        r = cgroup_enter_supervisor(c, e); /* processes and controllers exclude each other */
    if (r == 0 && c->kind == CGROUP_V2)
        enable_down_to(c->self ? c->paths[CGROUP_UNIFIED] : h->mounts[CGROUP_UNIFIED], payload);
    return r < 0 ? r : make_tasks(c, tracking, e);
}

int cgroup_create(const struct cgroup_host *h, const char *root, const char *name, unsigned tasks,
                  struct cgroup *ret, struct err *e)
{
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    int r = locate(h, root, name, &c, e);
    if (r < 0)
        return r;
    c.tasks = tasks; /* as in the attempt that was killed half way */
    r = remove_old(&c, e);
    if (r < 0)
        return r;
    r = make_tree(h, &c, e);
    if (r < 0) {
        (void)cgroup_remove(&c, NULL); /* the first error is the one to tell */
        return r;
    }
    *ret = c;
    c = (struct cgroup)CGROUP_INIT;
    return 0;
}

int cgroup_open(const struct cgroup_host *h, const char *root, const char *name, struct cgroup *ret,
                struct err *e)
{
    AUTO(cgroup) struct cgroup c = CGROUP_INIT;
    int r = locate(h, root, name, &c, e);
    if (r < 0)
        return r;
    bool found = false;
    for (int i = 0; i < CGROUP_HIERARCHIES; i++)
        found |= c.paths[i] && access(c.paths[i], F_OK) == 0;
    if (!found)
        return err_set(e, -ENOENT, "there is no cgroup %s below %s", name, root);
    for (;; c.tasks++) {
        auto_free char *task = control_task(&c, control_tracking(&c), c.tasks);
        if (access(task, F_OK) < 0)
            break;
    }
    *ret = c;
    c = (struct cgroup)CGROUP_INIT;
    return 0;
}

char *cgroup_find_root(const struct cgroup *c, const char *root)
{
    if (!c->self)
        return text_dup(root);
    auto_free char *own = own_path();
    size_t len = own ? strlen(own) : 0;
    const char *tail = "/supervisor"; /* where cgroup_create moved us */
    if (len >= strlen(tail) && strcmp(own + len - strlen(tail), tail) == 0)
        own[len - strlen(tail)] = '\0';
    return text_fmt(SELF_AT "%s", own ? own : "");
}

int cgroup_root_check(const struct cgroup_host *h, const char *root, struct err *e)
{
    AUTO(cgroup) struct cgroup probe = CGROUP_INIT;
    auto_free char *name = text_fmt("probe-%d", (int)getpid());
    int r = locate(h, root, name, &probe, e);
    if (r < 0 || probe.self)
        return r;
    const char *path = probe.paths[control_tracking(&probe)];
    r = control_mkdirs(path, e);
    return r < 0 ? r : cgroup_remove(&probe, e);
}

void cgroup_root_hold(const struct cgroup_host *h, const char *root)
{
    AUTO(cgroup) struct cgroup held = CGROUP_INIT;
    if (root[0] != '/' || locate(h, root, "held", &held, NULL) < 0)
        return;
    for (int i = 0; i < CGROUP_HIERARCHIES; i++)
        if (held.paths[i])
            (void)control_mkdirs(held.paths[i], NULL);
}

void cgroup_root_release(const struct cgroup_host *h, const char *root)
{
    AUTO(cgroup) struct cgroup held = CGROUP_INIT;
    if (root[0] == '/' && locate(h, root, "held", &held, NULL) == 0)
        (void)cgroup_remove(&held, NULL); /* empty; who cannot remove it did not make it */
}

int cgroup_enter_supervisor(const struct cgroup *c, struct err *e)
{
    auto_free char *dir = text_fmt("%s/supervisor", c->paths[control_tracking(c)]);
    int r = control_mkdirs(dir, e);
    if (r < 0)
        return r;
    r = control_write(dir, "cgroup.procs", "0");
    return r < 0 ? err_set(e, r, "cannot move to %s: %s", dir, strerror(-r)) : 0;
}

int cgroup_task_fd(const struct cgroup *c, unsigned task, int *ret_fd, struct err *e)
{
    if (!c->paths[CGROUP_UNIFIED])
        return err_set(e, -ENOTSUP, "there is no unified cgroup hierarchy");
    auto_free char *path = control_task(c, CGROUP_UNIFIED, task);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open %s", path);
    *ret_fd = fd;
    return 0;
}

char *cgroup_task_name(const struct cgroup_host *h, const struct cgroup *c, unsigned task)
{
    enum cgroup_hierarchy tracking = control_tracking(c);
    auto_free char *path = control_task(c, tracking, task);
    return text_dup(path + strlen(h->mounts[tracking]));
}

int cgroup_procs_fds(const struct cgroup *c, unsigned task, bool with_unified,
                     int ret_fds[CGROUP_HIERARCHIES], struct err *e)
{
    int count = 0;
    for (int h = with_unified ? CGROUP_UNIFIED : CGROUP_MEMORY; h < CGROUP_HIERARCHIES; h++) {
        if (!c->paths[h])
            continue;
        auto_free char *dir = control_task(c, (enum cgroup_hierarchy)h, task);
        /*
         * By cgroup.procs the kernel moves all threads, and waits out a grace period of
         * RCU first: 10 ms and more. A process of one thread needs neither.
         */
        const char *file = h == CGROUP_UNIFIED ? "cgroup.procs" : "tasks";
        auto_free char *path = text_fmt("%s/%s", dir, file);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue; /* nothing to limit there: the directory was never made */
        if (fd < 0) {
            int r = err_sys(e, "cannot open %s", path);
            while (count > 0)
                (void)close(ret_fds[--count]); /* nothing was written to them */
            return r;
        }
        ret_fds[count++] = fd;
    }
    return count;
}

/* The root goes with its last attempt, so that a Divvy that was tried leaves nothing. */
static void remove_root(const struct cgroup *c, enum cgroup_hierarchy h)
{
    const char *slash = strrchr(c->paths[h], '/');
    auto_free char *root = text_fmt("%.*s", (int)(slash - c->paths[h]), c->paths[h]);
    (void)rmdir(root); /* others are in it, or it is the mount: then it stays */
}

struct others {
    const char *unified; /* the mount that is not one of them */
    const char *name;    /* of the tree below a mount */
};

static int remove_other(const char *mount, void *user)
{
    const struct others *o = user;
    if (strcmp(mount, o->unified) == 0)
        return 0;
    auto_free char *tree = text_fmt("%s%s", mount, o->name);
    auto_free char *payload = text_fmt("%s/payload", tree);
    if (access(payload, F_OK) == 0 && control_remove(payload) == 0 && rmdir(tree) == 0) {
        *strrchr(tree, '/') = '\0';
        (void)rmdir(tree); /* others are in it: then it stays */
    }
    return 0;
}

void cgroup_remove_others(const struct cgroup_host *h, const struct cgroup *c)
{
    if (c->kind != CGROUP_HYBRID)
        return; /* v2 has one hierarchy, and nothing is put below a task with v1 alone */
    struct others o = { .unified = h->mounts[CGROUP_UNIFIED],
                        .name = c->paths[CGROUP_UNIFIED] + strlen(h->mounts[CGROUP_UNIFIED]) };
    auto_free char *around =
        text_fmt("%.*s", (int)(strrchr(o.unified, '/') - o.unified), o.unified);
    (void)control_each_child(around, remove_other, &o); /* what cannot be listed stays */
}

/* What we made is known by name; only what a job made besides has to be looked for. */
static int remove_tasks(const struct cgroup *c, enum cgroup_hierarchy h)
{
    for (unsigned i = 0; i < c->tasks; i++) {
        auto_free char *task = control_task(c, h, i);
        int r = control_remove(task);
        if (r < 0)
            return r;
    }
    return 0;
}

static int remove_in(const struct cgroup *c, enum cgroup_hierarchy h, struct err *e)
{
    auto_free char *payload = control_payload(c, h);
    int r = remove_tasks(c, h);
    if (r == 0 && (c->alike || h == control_tracking(c)))
        (void)rmdir(payload); /* what keeps it is told by control_remove */
    if (r == 0)
        r = control_remove(c->self ? payload : c->paths[h]);
    if (r < 0)
        return err_set(e, r, "cannot remove %s: %s", c->paths[h], strerror(-r));
    if (!c->self)
        remove_root(c, h);
    return 0;
}

/* By the tracking hierarchy a tree is found again: it is the last to go. */
int cgroup_remove(const struct cgroup *c, struct err *e)
{
    int r = 0;
    if (c->kind == CGROUP_NONE)
        return 0;
    for (int h = 0; r == 0 && h < CGROUP_HIERARCHIES; h++)
        if (c->paths[h] && h != (int)control_tracking(c))
            r = remove_in(c, (enum cgroup_hierarchy)h, e);
    return r < 0 ? r : remove_in(c, control_tracking(c), e);
}
