#include "driver/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "model/fields.h"

#define MINORS_BYTES_MAX (4u << 20)
#define ENVIRON_BYTES_MAX (4u << 20)
#define SMALL_BYTES_MAX (1u << 20)
#define MARK "DIVVY_ATTEMPT="

static const struct holder_service services[] = {
    { "nv-hostengine", "DCGM", "systemctl stop nvidia-dcgm" },
    { "dcgm-exporter", "the DCGM exporter", "systemctl stop dcgm-exporter" },
    { "nvidia-persiste", "the persistence daemon", "systemctl stop nvidia-persistenced" },
    { "nvsm_core", "NVSM", "systemctl stop nvsm" },
    { "nvsm", "NVSM", "systemctl stop nvsm" },
    { "nv-fabricmanage", "the fabric manager", "systemctl stop nvidia-fabricmanager" },
    { "Xorg", "the display", "systemctl stop display-manager" },
    { "Xwayland", "the display", "systemctl stop display-manager" },
    { "gnome-shell", "the display", "systemctl stop display-manager" },
    { "kwin_wayland", "the display", "systemctl stop display-manager" },
    { "kubelet", "the Kubernetes node agent", "systemctl stop kubelet" },
};

/* What a device node is, wherever it is mounted. */
struct node {
    dev_t rdev; /* of a device */
    dev_t dev;  /* and of anything else that stands in for one */
    ino_t ino;
    bool device;
    char name[40];
};

struct nodes {
    struct node *list;
    size_t count, alloc;
};

void holders_done(struct holders *h)
{
    free(h->list);
    *h = (struct holders)HOLDERS_INIT;
}

/* ---- nodes ---- */

static void add_node(struct nodes *n, const char *driver_root, const char *folder, const char *name)
{
    struct stat st;
    auto_free char *below = text_fmt("%s/%s", folder, name);
    auto_free char *path = file_under(driver_root, below);
    if (stat(path, &st) < 0)
        return;
    ARRAY_ROOM(n->list, n->alloc, n->count + 1);
    struct node *new = &n->list[n->count++];
    *new = (struct node){
        .rdev = st.st_rdev, .dev = st.st_dev, .ino = st.st_ino, .device = S_ISCHR(st.st_mode)
    };
    (void)snprintf(new->name, sizeof new->name, "%s", name);
}

/* "gpu0/gi7/access 66", "gpu0/gi7/ci0/access 67" */
static void add_capabilities(struct nodes *n, const char *driver_root, uint32_t minor, uint32_t gi)
{
    auto_free char *path = file_under(driver_root, "/proc/driver/nvidia-caps/mig-minors");
    auto_free char *data = NULL;
    auto_free char *mine = gi == NOT_AN_INSTANCE
                               ? text_fmt("gpu%" PRIu32 "/gi", minor)
                               : text_fmt("gpu%" PRIu32 "/gi%" PRIu32 "/", minor, gi);
    char *rest = NULL;
    if (file_read(AT_FDCWD, path, MINORS_BYTES_MAX, &data, NULL, NULL) < 0)
        return; /* a driver without MIG, or an old one */
    for (char *line = strtok_r(data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *space = strchr(line, ' ');
        uint64_t cap;
        if (!text_starts(line, mine) || !space ||
            text_parse_u64(space + 1, 0, UINT32_MAX, "minor", &cap, NULL) < 0)
            continue;
        auto_free char *name = text_fmt("nvidia-cap%" PRIu64, cap);
        add_node(n, driver_root, "/dev/nvidia-caps", name);
    }
}

static void find_nodes(struct nodes *n, const char *driver_root, const struct card *c, uint32_t gi)
{
    if (c->minor == UINT32_MAX)
        return;
    auto_free char *name = text_fmt("nvidia%" PRIu32, c->minor);
    /* The users of an instance have the whole card's node open, too; so have those of others. */
    if (gi == NOT_AN_INSTANCE)
        add_node(n, driver_root, "/dev", name);
    add_capabilities(n, driver_root, c->minor, gi);
}

static const struct node *same_node(const struct nodes *n, const struct stat *st)
{
    for (size_t i = 0; i < n->count; i++) {
        const struct node *o = &n->list[i];
        if (o->device ? S_ISCHR(st->st_mode) && st->st_rdev == o->rdev
                      : st->st_dev == o->dev && st->st_ino == o->ino)
            return o;
    }
    return NULL;
}

/* ---- processes ---- */

static void read_comm(int proc, pid_t pid, char *name, size_t size)
{
    auto_free char *path = text_fmt("%d/comm", (int)pid);
    auto_free char *data = NULL;
    if (file_read(proc, path, SMALL_BYTES_MAX, &data, NULL, NULL) < 0)
        return; /* gone */
    data[strcspn(data, "\n")] = '\0';
    (void)snprintf(name, size, "%s", data);
}

static void read_mark(int proc, pid_t pid, char *job, size_t size)
{
    auto_free char *path = text_fmt("%d/environ", (int)pid);
    auto_free char *bytes = NULL;
    size_t len = 0;
    if (file_read(proc, path, ENVIRON_BYTES_MAX, &bytes, &len, NULL) < 0)
        return; /* gone, or not ours to look at */
    for (size_t at = 0; at < len; at += strlen(bytes + at) + 1)
        if (text_starts(bytes + at, MARK)) {
            (void)snprintf(job, size, "%s", bytes + at + strlen(MARK));
            return;
        }
}

static const struct holder_service *service_of(const char *name)
{
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (strncmp(services[i].comm, name, 15) == 0)
            return &services[i];
    return NULL;
}

static struct holder *add_holder(struct holders *h, int proc, pid_t pid)
{
    struct stat st;
    for (size_t i = 0; i < h->count; i++)
        if (h->list[i].pid == pid)
            return &h->list[i];
    ARRAY_ROOM(h->list, h->alloc, h->count + 1);
    struct holder *new = &h->list[h->count++];
    *new = (struct holder){ .pid = pid, .uid = (uid_t)-1 };
    auto_free char *path = text_fmt("%d", (int)pid);
    if (proc >= 0 && fstatat(proc, path, &st, 0) == 0)
        new->uid = st.st_uid;
    read_comm(proc, pid, new->name, sizeof new->name);
    read_mark(proc, pid, new->job, sizeof new->job);
    new->service = service_of(new->name);
    return new;
}

/* The node of the card that the process has open; NULL: none. Sets *ret_hidden where it may not
 * look. */
static const struct node *open_node(const struct nodes *n, int proc, pid_t pid, bool *ret_hidden)
{
    auto_free char *path = text_fmt("%d/fd", (int)pid);
    int dirfd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *ret_hidden = dirfd < 0 && (errno == EACCES || errno == EPERM);
    auto_dir DIR *d = dirfd < 0 ? NULL : fdopendir(dirfd);
    if (!d && dirfd >= 0)
        (void)close(dirfd);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char target[512];
        struct stat st;
        ssize_t len = readlinkat(dirfd, entry->d_name, target, sizeof target - 1);
        if (len <= 0)
            continue;
        target[len] = '\0';
        /* Only these are asked what they are: a file of a dead server would never answer. */
        if (!strstr(target, "nvidia") || fstatat(dirfd, entry->d_name, &st, 0) < 0)
            continue;
        const struct node *node = same_node(n, &st);
        if (node)
            return node;
    }
    return NULL;
}

/* divvyd lets go by itself; a stranger of that name does not count as one. */
static bool is_ours(int proc, pid_t pid)
{
    char name[64] = "";
    struct stat st;
    auto_free char *path = text_fmt("%d", (int)pid);
    if (pid == getpid())
        return true;
    read_comm(proc, pid, name, sizeof name);
    return strcmp(name, "divvyd") == 0 && fstatat(proc, path, &st, 0) == 0 &&
           (st.st_uid == 0 || st.st_uid == geteuid());
}

static void add_openers(struct holders *h, const struct nodes *n, DIR *proc)
{
    for (struct dirent *entry; (entry = readdir(proc));) {
        uint64_t pid;
        bool hidden = false;
        if (text_parse_u64(entry->d_name, 1, INT32_MAX, "pid", &pid, NULL) < 0)
            continue;
        const struct node *node = open_node(n, dirfd(proc), (pid_t)pid, &hidden);
        h->hidden += hidden;
        if (!node || is_ours(dirfd(proc), (pid_t)pid))
            continue;
        struct holder *holder = add_holder(h, dirfd(proc), (pid_t)pid);
        memcpy(holder->node, node->name, sizeof holder->node);
    }
}

static void add_listed(struct holders *h, const struct card *c, uint32_t gi, int proc)
{
    for (size_t i = 0; i < c->process_count; i++) {
        const struct gpu_process *p = &c->processes[i];
        if ((gi != NOT_AN_INSTANCE && p->gi != gi) || p->pid == getpid())
            continue;
        struct holder *holder = add_holder(h, proc, p->pid);
        holder->listed = true;
        if (!holder->name[0])
            (void)snprintf(holder->name, sizeof holder->name, "%.63s", p->name);
    }
}

static bool drm_drives(const char *driver_root)
{
    auto_free char *modules_path = file_under(driver_root, "/proc/modules");
    auto_free char *modeset_path =
        file_under(driver_root, "/sys/module/nvidia_drm/parameters/modeset");
    auto_free char *modules = NULL;
    auto_free char *modeset = NULL;
    if (file_read(AT_FDCWD, modules_path, SMALL_BYTES_MAX, &modules, NULL, NULL) < 0)
        return false;
    bool loaded = text_starts(modules, "nvidia_drm ") || strstr(modules, "\nnvidia_drm ");
    return loaded &&
           file_read(AT_FDCWD, modeset_path, SMALL_BYTES_MAX, &modeset, NULL, NULL) == 0 &&
           (modeset[0] == 'Y' || modeset[0] == '1');
}

static int by_pid(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void holders_find(const char *driver_root, const struct card *c, uint32_t gi, struct holders *ret)
{
    struct nodes n = { .list = NULL };
    const char *root = driver_root ? driver_root : getenv("DIVVY_DRIVER_ROOT");
    root = root && root[0] ? root : "/";
    auto_dir DIR *proc = opendir("/proc");
    *ret = (struct holders)HOLDERS_INIT;
    add_listed(ret, c, gi, proc ? dirfd(proc) : -1);
    find_nodes(&n, root, c, gi);
    if (proc && n.count)
        add_openers(ret, &n, proc);
    free(n.list);
    ret->drm = gi == NOT_AN_INSTANCE && drm_drives(root);
    if (ret->count)
        qsort(ret->list, ret->count, sizeof *ret->list, by_pid);
}

bool holders_block(const struct holders *h)
{
    for (size_t i = 0; i < h->count; i++)
        if (h->list[i].listed || strcmp(h->list[i].name, "nvidia-persiste") != 0)
            return true;
    return false;
}

/* ---- for people ---- */

void holder_add_text(struct text *t, const struct holder *h, holder_user_fn user, void *arg)
{
    const char *name = user && h->uid != (uid_t)-1 ? user(h->uid, arg) : NULL;
    text_addf(t, "pid %d %s", (int)h->pid, h->name[0] ? h->name : "(gone, or hidden)");
    if (name)
        text_addf(t, " (%s)", name);
    else if (h->uid != (uid_t)-1)
        text_addf(t, " (uid %u)", (unsigned)h->uid);
    if (h->job[0])
        text_addf(t, ", job #%.*s", (int)strcspn(h->job, "."), h->job);
    if (!h->listed && h->node[0])
        text_addf(t, " has %s%s open",
                  text_starts(h->node, "nvidia-cap") ? "/dev/nvidia-caps/" : "/dev/", h->node);
    if (h->service)
        text_addf(t, ": %s; '%s' ends it", h->service->name, h->service->stop);
}

void holders_add_notes(struct text *t, const struct holders *h)
{
    if (h->drm)
        text_addf(t,
                  "%sthe kernel module nvidia_drm drives the display (modeset) and holds every "
                  "card; stop the display ('systemctl stop display-manager') and unload it "
                  "('rmmod nvidia_drm')",
                  t->len ? "; " : "");
    if (h->hidden)
        text_addf(t, "%s%zu process%s of others cannot be looked into; root sees %s",
                  t->len ? "; " : "", h->hidden, h->hidden == 1 ? "" : "es",
                  h->hidden == 1 ? "it" : "them");
}

void holders_add_sentence(struct text *t, const struct holders *h, holder_user_fn user, void *arg)
{
    for (size_t i = 0; i < h->count; i++) {
        if (t->len)
            text_add(t, "; ");
        holder_add_text(t, &h->list[i], user, arg);
    }
    holders_add_notes(t, h);
}

json_t *holders_json(const struct holders *h, holder_user_fn user, void *arg)
{
    json_t *all = json_object();
    json_t *list = json_array();
    for (size_t i = 0; i < h->count; i++) {
        const struct holder *o = &h->list[i];
        json_t *j = json_object();
        json_put_u64(j, "pid", (uint64_t)o->pid);
        json_put_text(j, "name", o->name[0] ? o->name : NULL);
        json_put_text(j, "user", user && o->uid != (uid_t)-1 ? user(o->uid, arg) : NULL);
        json_put_text(j, "attempt", o->job[0] ? o->job : NULL);
        json_put_bool(j, "listed", o->listed);
        json_put_text(j, "node", o->node[0] ? o->node : NULL);
        json_put_text(j, "service", o->service ? o->service->name : NULL);
        json_put_text(j, "stop", o->service ? o->service->stop : NULL);
        (void)json_array_append_new(list, j); /* out of memory: a short list */
    }
    json_put(all, "processes", list);
    json_put_u64(all, "hidden", h->hidden);
    json_put_bool(all, "nvidia_drm", h->drm);
    return all;
}
