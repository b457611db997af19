#include "sim/root.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define CAP_MINORS                                                                                 \
    4324u /* config, monitor and 32 cards of 15 instances with 8 parts each, from 0 */
#define CAPS "dev/nvidia-caps"
#define CAPABILITIES "proc/driver/nvidia/capabilities"

uint32_t sim_cap_gi_minor(uint32_t card_minor, uint32_t gi)
{
    return 3 + 135 * card_minor + 9 * gi;
}

uint32_t sim_cap_ci_minor(uint32_t card_minor, uint32_t gi, uint32_t ci)
{
    return sim_cap_gi_minor(card_minor, gi) + 1 + ci;
}

/* ---- small writes below a folder ---- */

static int make_dirs(int root, const char *path, struct err *e)
{
    auto_free char *copy = text_dup(path);
    for (char *slash = copy; slash; *slash++ = '/') {
        slash = strchr(slash, '/');
        if (slash)
            *slash = '\0';
        if (mkdirat(root, copy, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "cannot make the folder %s of the simulated machine", copy);
        if (!slash)
            break;
    }
    return 0;
}

static int put(int root, const char *path, mode_t mode, const char *content, struct err *e)
{
    auto_close int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(e, "cannot write %s of the simulated machine", path);
    int rc = file_write_all(fd, content, strlen(content), e);
    if (rc < 0)
        return rc;
    if (fchmod(fd, mode) < 0)
        return err_sys(e, "cannot set the mode of %s", path);
    return 0;
}

static int putf(int root, const char *path, mode_t mode, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static int putf(int root, const char *path, mode_t mode, struct err *e, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    auto_free char *content = NULL;
    int n = vasprintf(&content, fmt, args);
    va_end(args);
    return n < 0 ? err_set(e, -ENOMEM, "no memory") : put(root, path, mode, content, e);
}

/* ---- device numbers ---- */

struct majors {
    unsigned nvidia, uvm, caps; /* 0: not found */
};

/* A number at the beginning of `s`, blanks before it allowed; NULL when there is none, else what
   follows. */
static const char *read_number(const char *s, unsigned *ret)
{
    s += strspn(s, " ");
    if (*s < '0' || *s > '9')
        return NULL;
    char *end;
    *ret = (unsigned)strtoul(s, &end, 10); /* the kernel's, or our own: small */
    return end;
}

static bool is_taken(const char *devices, unsigned major)
{
    const char *end = strstr(devices, "Block devices:");
    for (const char *line = devices; line && (!end || line < end);) {
        unsigned n;
        if (read_number(line, &n) && n == major)
            return true;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return false;
}

/* From the top of the dynamic range downwards, as the kernel gives them out. */
static unsigned free_major(const char *devices, unsigned from)
{
    while (from > 384 && is_taken(devices, from))
        from--;
    return from;
}

/* 195 is NVIDIA's own number; where the real driver is loaded we must not touch its nodes. */
static void choose_majors(const char *devices, struct majors *ret)
{
    ret->caps = free_major(devices, 511);
    ret->uvm = free_major(devices, ret->caps - 1);
    ret->nvidia = is_taken(devices, 195) ? free_major(devices, ret->uvm - 1) : 195;
}

static int read_majors(int root, struct majors *ret, struct err *e)
{
    auto_free char *text = NULL;
    size_t len;
    int rc = file_read(root, "proc/devices", 1 << 20, &text, &len, e);
    if (rc < 0)
        return rc;
    *ret = (struct majors){ 0 };
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        unsigned n;
        const char *name = read_number(line, &n);
        if (!name || *name++ != ' ')
            continue;
        if (strcmp(name, "nvidia") == 0 || strcmp(name, "nvidia-frontend") == 0)
            ret->nvidia = n;
        if (strcmp(name, "nvidia-uvm") == 0)
            ret->uvm = n;
        if (strcmp(name, "nvidia-caps") == 0)
            ret->caps = n;
    }
    return 0;
}

static int put_proc_devices(int root, const struct sim_state *st, struct majors *ret, struct err *e)
{
    auto_free char *host = NULL;
    size_t len;
    int rc = file_read(AT_FDCWD, "/proc/devices", 1 << 20, &host, &len, e);
    if (rc < 0)
        return rc;
    choose_majors(host, ret);
    char *block = strstr(host, "\nBlock devices:");
    if (block)
        *block++ = '\0';
    for (size_t n = strlen(host); n && host[n - 1] == '\n'; n--)
        host[n - 1] = '\0';
    AUTO(text) struct text t = TEXT_INIT;
    text_add(&t, host);
    if (sim_branch(st) < 550)
        text_addf(&t, "\n%3u nvidia-frontend", ret->nvidia);
    else
        text_addf(&t, "\n%3u nvidia\n%3u nvidia-modeset\n%3u nvidiactl", ret->nvidia, ret->nvidia,
                  ret->nvidia);
    text_addf(&t, "\n%3u nvidia-uvm\n%3u nvidia-caps\n", ret->uvm, ret->caps);
    if (block)
        text_addf(&t, "\n%s", block);
    return put(root, "proc/devices", 0444, t.buf, e);
}

/* ---- nodes ---- */

/* An open that ends for want of a driver has passed all questions of permission. */
static bool open_is_allowed(int error)
{
    return error == 0 || error == ENXIO || error == ENODEV;
}

static int try_open(int dir, const char *path, int flags)
{
    auto_close int fd = openat(dir, path, flags | O_CLOEXEC | O_NONBLOCK);
    int error = fd >= 0 ? 0 : errno;
    return open_is_allowed(error) ? 0 : -error;
}

/* Can a character device be made here and opened afterwards? Not on nodev, not in most containers. */
static bool real_nodes_work(int root, const struct majors *majors)
{
    const char *probe = "dev/.probe";
    if (mknodat(root, probe, S_IFCHR | 0600, makedev(majors->nvidia, 253)) < 0)
        return false;
    int rc = try_open(root, probe, O_RDWR);
    (void)unlinkat(root, probe, 0); /* left behind it would only be clutter */
    return rc == 0;
}

static int put_node(int root, const char *path, bool real, dev_t number, mode_t mode, struct err *e)
{
    struct stat st;
    if (fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (!real)
        return put(root, path, mode, "", e);
    if (mknodat(root, path, S_IFCHR | 0600, number) < 0)
        return err_sys(e, "cannot make the device node %s", path);
    if (fchmodat(root, path, mode, 0) < 0) /* mknod obeys the umask */
        return err_sys(e, "cannot set the mode of %s", path);
    return 0;
}

static int put_cap_node(int root, bool real, unsigned major, uint32_t minor, struct err *e)
{
    auto_free char *path = text_fmt(CAPS "/nvidia-cap%" PRIu32, minor);
    mode_t mode = minor == SIM_CAP_CONFIG ? 0400 : 0444;
    return put_node(root, path, real, makedev(major, minor), mode, e);
}

static int put_nodes(int root, const struct sim_state *st, const struct majors *majors,
                     struct err *e)
{
    bool real = real_nodes_work(root, majors);
    const struct {
        const char *path;
        dev_t number;
    } fixed[] = {
        { "dev/nvidiactl", makedev(majors->nvidia, 255) },
        { "dev/nvidia-modeset", makedev(majors->nvidia, 254) },
        { "dev/nvidia-uvm", makedev(majors->uvm, 0) },
        { "dev/nvidia-uvm-tools", makedev(majors->uvm, 1) },
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed && rc >= 0; i++)
        rc = put_node(root, fixed[i].path, real, fixed[i].number, 0666, e);
    for (uint32_t i = 0; i < st->card_count && rc >= 0; i++) {
        uint32_t minor = st->cards[i].minor;
        auto_free char *path = text_fmt("dev/nvidia%" PRIu32, minor);
        rc = put_node(root, path, real, makedev(majors->nvidia, minor), 0666, e);
    }
    if (rc >= 0)
        rc = put_cap_node(root, real, majors->caps, SIM_CAP_CONFIG, e);
    return rc < 0 ? rc : put_cap_node(root, real, majors->caps, SIM_CAP_MONITOR, e);
}

/* ---- /proc and /sys ---- */

static int put_capability(int root, const char *path, uint32_t minor, struct err *e)
{
    unsigned mode = minor == SIM_CAP_CONFIG ? 0400 : 0444;
    return putf(root, path, mode, e,
                "DeviceFileMinor: %" PRIu32 "\nDeviceFileMode: %u\nDeviceFileModify: 1\n", minor,
                mode);
}

static int put_mig_minors(int root, struct err *e)
{
    AUTO(text) struct text t = TEXT_INIT;
    text_addf(&t, "config %u\nmonitor %u\n", SIM_CAP_CONFIG, SIM_CAP_MONITOR);
    for (uint32_t card = 0; card < 32; card++) {
        for (uint32_t gi = 0; gi < SIM_GI_MAX; gi++) {
            text_addf(&t, "gpu%u/gi%u/access %u\n", card, gi, sim_cap_gi_minor(card, gi));
            for (uint32_t ci = 0; ci < SIM_CI_MAX; ci++)
                text_addf(&t, "gpu%u/gi%u/ci%u/access %u\n", card, gi, ci,
                          sim_cap_ci_minor(card, gi, ci));
        }
    }
    return put(root, "proc/driver/nvidia-caps/mig-minors", 0444, t.buf, e);
}

static int put_version(int root, const struct sim_state *st, struct err *e)
{
    return putf(root, "proc/driver/nvidia/version", 0444, e,
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  %s  Mon Jan  1 00:00:00 UTC "
                "2024\nGCC version:  simulated by divvy-sim\n",
                st->driver_version);
}

static int put_driver_files(int root, const struct sim_state *st, struct err *e)
{
    int rc = put_version(root, st, e);
    if (rc >= 0)
        rc = put(root, "proc/driver/nvidia/params", 0444,
                 "ResmanDebugLevel: 4294967295\nRmLogonRC: 1\nModifyDeviceFiles: 1\n"
                 "DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n"
                 "EnableMSI: 1\nRegistryDwords: \"\"\n",
                 e);
    if (rc >= 0)
        rc = put_capability(root, CAPABILITIES "/mig/config", SIM_CAP_CONFIG, e);
    if (rc >= 0)
        rc = put_capability(root, CAPABILITIES "/mig/monitor", SIM_CAP_MONITOR, e);
    if (rc >= 0)
        rc = put(root, "proc/driver/nvidia-caps/nvlink-minors", 0444, "fabric-mgmt 0\n", e);
    if (rc >= 0 && sim_branch(st) >= 550)
        rc = put(root, "proc/driver/nvidia-caps/sys-minors", 0444, "fabric-imex-mgmt 4323\n", e);
    return rc < 0 ? rc : put_mig_minors(root, e);
}

static char *bdf_of(const struct sim_card *c)
{
    return text_fmt("%04x:%02x:%02x.0", c->pci_domain, c->pci_bus, c->pci_device);
}

static int put_information(int root, const struct sim_card *c, const struct sim_board *b,
                           struct err *e)
{
    auto_free char *bdf = bdf_of(c);
    auto_free char *dir = text_fmt("proc/driver/nvidia/gpus/%s", bdf);
    auto_free char *path = text_fmt("%s/information", dir);
    int rc = make_dirs(root, dir, e);
    return rc < 0 ? rc
                  : putf(root, path, 0444, e,
                         "Model: \t\t %s\nIRQ:   \t\t %" PRIu32 "\nGPU UUID: \t %s\n"
                         "Video BIOS: \t ??.??.??.??.??\nBus Type: \t PCIe\n"
                         "DMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\n"
                         "Bus Location: \t %s\nDevice Minor: \t %" PRIu32 "\n"
                         "GPU Excluded:\t No\n",
                         b->name, 128 + c->minor, c->uuid, bdf, c->minor);
}

static int put_sysfs(int root, const struct sim_card *c, const struct sim_board *b, struct err *e)
{
    auto_free char *bdf = bdf_of(c);
    auto_free char *dir = text_fmt("sys/bus/pci/devices/%s", bdf);
    auto_free char *cpus = NULL;
    size_t len;
    if (file_read(AT_FDCWD, "/sys/devices/system/cpu/online", 4096, &cpus, &len, NULL) < 0)
        cpus = text_dup("0\n");
    const bool display = b->brand == 5; /* GeForce has a display head: VGA, not 3D controller */
    const struct {
        const char *name;
        char *content;
    } files[] = {
        { "vendor", text_fmt("0x%04x\n", b->pci_device_id & 0xffff) },
        { "device", text_fmt("0x%04x\n", b->pci_device_id >> 16) },
        { "class", text_dup(display ? "0x030000\n" : "0x030200\n") },
        { "numa_node", text_dup("0\n") },
        { "local_cpulist", text_dup(cpus) },
    };
    int rc = make_dirs(root, dir, e);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        auto_free char *path = text_fmt("%s/%s", dir, files[i].name);
        if (rc >= 0)
            rc = put(root, path, 0444, files[i].content, e);
        free(files[i].content);
    }
    return rc;
}

static int put_all(int root, const struct machine *m, const struct sim_state *st, struct err *e)
{
    static const char *const folders[] = { "dev/nvidia-caps", "proc/driver/nvidia/gpus",
                                           "proc/driver/nvidia-caps",
                                           "proc/driver/nvidia/capabilities/mig",
                                           "sys/bus/pci/devices" };
    int rc = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders && rc >= 0; i++)
        rc = make_dirs(root, folders[i], e);
    struct majors majors;
    if (rc >= 0)
        rc = put_proc_devices(root, st, &majors, e);
    if (rc >= 0)
        rc = put_nodes(root, st, &majors, e);
    if (rc >= 0)
        rc = put_driver_files(root, st, e);
    for (uint32_t i = 0; i < st->card_count && rc >= 0; i++) {
        const struct sim_board *b = &machine_boards(m)[st->cards[i].board];
        rc = put_information(root, &st->cards[i], b, e);
        if (rc >= 0)
            rc = put_sysfs(root, &st->cards[i], b, e);
    }
    return rc;
}

int sim_root_make(const struct machine *m, struct err *e)
{
    auto_free struct sim_state *st = mem_new(sizeof *st);
    machine_read(m, st);
    auto_close int dir = open(machine_dir(m), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (dir < 0)
        return err_sys(e, "cannot open %s", machine_dir(m));
    int rc = file_remove_tree(dir, "root.new", e);
    if (rc >= 0)
        rc = file_remove_tree(dir, "root", e);
    if (rc >= 0)
        rc = make_dirs(dir, "root.new", e);
    if (rc < 0)
        return rc;
    auto_close int root = openat(dir, "root.new", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (root < 0)
        return err_sys(e, "cannot open %s/root.new", machine_dir(m));
    rc = put_all(root, m, st, e);
    if (rc < 0)
        return rc;
    if (renameat(dir, "root.new", dir, "root") < 0)
        return err_sys(e, "cannot put %s/root in its place", machine_dir(m));
    return sim_root_sync(m, e);
}

/* ---- what follows the state ---- */

struct wanted {
    int root;
    bool caps[CAP_MINORS];
};

/* Removes entries "prefixN" of a folder unless keep[N]; ids are below `max`. */
static int remove_others(int root, const char *dir, const char *prefix, const bool *keep,
                         unsigned max, struct err *e)
{
    int fd = openat(root, dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, "cannot open %s of the simulated machine", dir);
    auto_dir DIR *d = fdopendir(fd);
    if (!d)
        return err_sys(e, "cannot list %s of the simulated machine", dir);
    struct dirent *entry;
    int rc = 0;
    while (rc >= 0 && (entry = readdir(d))) {
        unsigned n;
        size_t len = strlen(prefix);
        if (strncmp(entry->d_name, prefix, len) != 0 || !read_number(entry->d_name + len, &n))
            continue;
        if (n >= max || !keep[n])
            rc = file_remove_tree(dirfd(d), entry->d_name, e);
    }
    return rc;
}

static int put_access(struct wanted *w, const char *dir, uint32_t minor, struct err *e)
{
    auto_free char *path = text_fmt("%s/access", dir);
    w->caps[minor] = true;
    int rc = make_dirs(w->root, dir, e);
    if (rc < 0 || faccessat(w->root, path, F_OK, 0) == 0)
        return rc;
    return put_capability(w->root, path, minor, e);
}

static int sync_gi(struct wanted *w, const char *mig, uint32_t minor, const struct sim_gi *gi,
                   uint32_t id, struct err *e)
{
    auto_free char *dir = text_fmt("%s/gi%" PRIu32, mig, id);
    bool keep[SIM_CI_MAX] = { false };
    int rc = put_access(w, dir, sim_cap_gi_minor(minor, id), e);
    for (uint32_t c = 0; c < SIM_CI_MAX && rc >= 0; c++) {
        keep[c] = gi->ci[c].used;
        if (!keep[c])
            continue;
        auto_free char *part = text_fmt("%s/ci%" PRIu32, dir, c);
        rc = put_access(w, part, sim_cap_ci_minor(minor, id, c), e);
    }
    return rc < 0 ? rc : remove_others(w->root, dir, "ci", keep, SIM_CI_MAX, e);
}

static int sync_card(struct wanted *w, const struct sim_card *card, struct err *e)
{
    auto_free char *mig = text_fmt(CAPABILITIES "/gpu%" PRIu32 "/mig", card->minor);
    if (!card->mig_current)
        return file_remove_tree(w->root, mig, e);
    bool keep[SIM_GI_MAX] = { false };
    int rc = make_dirs(w->root, mig, e);
    for (uint32_t g = 0; g < SIM_GI_MAX && rc >= 0; g++) {
        keep[g] = card->gi[g].used;
        if (keep[g])
            rc = sync_gi(w, mig, card->minor, &card->gi[g], g, e);
    }
    return rc < 0 ? rc : remove_others(w->root, mig, "gi", keep, SIM_GI_MAX, e);
}

static int sync_nodes(struct wanted *w, struct err *e)
{
    struct majors majors;
    struct stat st;
    int rc = read_majors(w->root, &majors, e);
    if (rc < 0)
        return rc;
    bool real = fstatat(w->root, "dev/nvidiactl", &st, 0) == 0 && S_ISCHR(st.st_mode);
    for (uint32_t minor = 0; minor < CAP_MINORS && rc >= 0; minor++)
        if (w->caps[minor])
            rc = put_cap_node(w->root, real, majors.caps, minor, e);
    return rc < 0 ? rc : remove_others(w->root, CAPS, "nvidia-cap", w->caps, CAP_MINORS, e);
}

int sim_root_sync(const struct machine *m, struct err *e)
{
    auto_free char *path = text_fmt("%s/root", machine_dir(m));
    auto_free struct sim_state *st = mem_new(sizeof *st);
    auto_free struct wanted *w = mem_new(sizeof *w);
    auto_close int root = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (root < 0)
        return err_sys(e, "cannot open %s", path);
    while (flock(root, LOCK_EX) < 0) /* the state is read under it, so the last one wins */
        if (errno != EINTR)
            return err_sys(e, "cannot lock %s", path);
    machine_read(m, st);
    w->root = root;
    w->caps[SIM_CAP_CONFIG] = w->caps[SIM_CAP_MONITOR] = true;
    int rc = 0;
    for (uint32_t i = 0; i < st->card_count && rc >= 0; i++)
        rc = sync_card(w, &st->cards[i], e);
    return rc < 0 ? rc : sync_nodes(w, e);
}

int sim_root_version(const struct machine *m, struct err *e)
{
    auto_free char *path = text_fmt("%s/root", machine_dir(m));
    auto_free struct sim_state *st = mem_new(sizeof *st);
    auto_close int root = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (root < 0)
        return err_sys(e, "cannot open %s", path);
    machine_read(m, st);
    return put_version(root, st, e);
}

/* ---- asking ---- */

char *sim_root_path(const struct machine *m)
{
    const char *env = getenv("DIVVY_DRIVER_ROOT");
    return env && *env ? text_dup(env) : text_fmt("%s/root", machine_dir(m));
}

int sim_root_may_open(const char *root, const char *node)
{
    auto_free char *path = text_fmt("%s/%s", strcmp(root, "/") == 0 ? "" : root, node);
    bool capability = strstr(node, "nvidia-caps/") != NULL;
    return try_open(AT_FDCWD, path, capability ? O_RDONLY : O_RDWR);
}

int sim_root_may_use_card(const char *root, uint32_t card_minor)
{
    auto_free char *node = text_fmt("dev/nvidia%" PRIu32, card_minor);
    int rc = sim_root_may_open(root, "dev/nvidiactl");
    return rc < 0 ? rc : sim_root_may_open(root, node);
}

int sim_root_may_use_instance(const char *root, uint32_t card_minor, uint32_t gi, uint32_t ci)
{
    auto_free char *node = text_fmt(CAPS "/nvidia-cap%" PRIu32, sim_cap_gi_minor(card_minor, gi));
    int rc = sim_root_may_open(root, node);
    if (rc < 0 || ci == SIM_NO_INSTANCE)
        return rc;
    free(node);
    node = text_fmt(CAPS "/nvidia-cap%" PRIu32, sim_cap_ci_minor(card_minor, gi, ci));
    return sim_root_may_open(root, node);
}
