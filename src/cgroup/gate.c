#include "cgroup/gate.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define NVIDIA_MAJOR 195 /* Documentation/admin-guide/devices.txt */
#define MAJOR_LIMIT 0xfffu
#define MINOR_LIMIT 0xfffffu
#define FILE_BYTES_MAX (256u << 10)

static const char *const isolation_words[] = { "none", "v1", "bpf" };

const char *isolation_word(enum isolation i)
{
    return isolation_words[i];
}

static bool is_everybodys(uint32_t major)
{
    return major <= 10 || major == 29 || (major >= 128 && major <= 143) || major == 204;
}

int gate_close_major(struct gate *g, uint32_t major, struct err *e)
{
    for (size_t i = 0; i < g->major_count; i++)
        if (g->majors[i] == major)
            return 0;
    if (major > MAJOR_LIMIT || is_everybodys(major))
        return err_set(e, -EINVAL, "device major %" PRIu32 " is no GPU driver's and stays open",
                       major);
    if (g->major_count == GATE_MAJORS_MAX)
        return err_set(e, -E2BIG, "more than %d majors to close", GATE_MAJORS_MAX);
    g->majors[g->major_count++] = major;
    return 0;
}

static int add_node(struct gate_device *list, size_t *count, size_t max, uint32_t major,
                    uint32_t minor, struct err *e)
{
    for (size_t i = 0; i < *count; i++)
        if (list[i].major == major && list[i].minor == minor)
            return 0;
    if (major > MAJOR_LIMIT || minor > MINOR_LIMIT)
        return err_set(e, -EINVAL, "%" PRIu32 ":%" PRIu32 " is no device number", major, minor);
    if (*count == max)
        return err_set(e, -E2BIG, "more than %zu devices in a gate", max);
    list[(*count)++] = (struct gate_device){ .major = major, .minor = minor };
    return 0;
}

int gate_close_node(struct gate *g, uint32_t major, uint32_t minor, struct err *e)
{
    return add_node(g->nodes, &g->node_count, GATE_NODES_MAX, major, minor, e);
}

int gate_grant(struct gate *g, uint32_t major, uint32_t minor, struct err *e)
{
    return add_node(g->grants, &g->grant_count, GATE_GRANTS_MAX, major, minor, e);
}

int gate_grant_path(struct gate *g, const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_sys(e, "cannot look at %s", path);
    if (!S_ISCHR(st.st_mode))
        return err_set(e, -ENODEV, "%s is no character device", path);
    return gate_grant(g, major(st.st_rdev), minor(st.st_rdev), e);
}

/* A number at the beginning of *p, which moves behind it. */
static bool take_number(const char **p, uint32_t *ret)
{
    char *end = NULL;
    errno = 0;
    unsigned long n = strtoul(*p, &end, 10);
    if (end == *p || errno != 0 || n > UINT32_MAX)
        return false;
    *p = end;
    *ret = (uint32_t)n;
    return true;
}

/* A line "195 nvidia-frontend": the number, when the name is NVIDIA's. */
static bool is_nvidias(const char *line, uint32_t *ret_major)
{
    return take_number(&line, ret_major) && text_starts(line + strspn(line, " "), "nvidia");
}

/* Lines "195 nvidia-frontend" between "Character devices:" and "Block devices:". */
static int close_listed(struct gate *g, const char *text, struct err *e)
{
    bool character = false;
    for (const char *line = text; line && *line;) {
        uint32_t number;
        if (text_starts(line, "Character devices:"))
            character = true;
        else if (text_starts(line, "Block devices:"))
            character = false;
        else if (character && is_nvidias(line, &number)) {
            int r = gate_close_major(g, number, e);
            if (r < 0)
                return r;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return 0;
}

static char *read_at(int dir, const char *folder, const char *name)
{
    auto_free char *path = text_fmt("%s/%s", folder, name);
    char *text = NULL;
    return file_read(dir, path, 4096, &text, NULL, NULL) < 0 ? NULL : text;
}

/* "226:128" */
static bool read_device(const char *text, uint32_t *ret_major, uint32_t *ret_minor)
{
    return take_number(&text, ret_major) && *text++ == ':' && take_number(&text, ret_minor);
}

static int close_drm(struct gate *g, const char *driver_root, struct err *e)
{
    auto_free char *path = file_under(driver_root, "/sys/class/drm");
    auto_dir DIR *d = opendir(path);
    if (!d)
        return 0; /* no display driver, no nodes */
    for (struct dirent *entry; (entry = readdir(d));) {
        auto_free char *vendor = read_at(dirfd(d), entry->d_name, "device/vendor");
        auto_free char *numbers = read_at(dirfd(d), entry->d_name, "dev");
        uint32_t major, minor;
        if (!vendor || !text_starts(vendor, "0x10de") || !numbers ||
            !read_device(numbers, &major, &minor))
            continue;
        int r = gate_close_node(g, major, minor, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int gate_close_driver(struct gate *g, const char *driver_root, struct err *e)
{
    auto_free char *path = file_under(driver_root, "/proc/devices");
    auto_free char *text = NULL;
    int r = file_read(AT_FDCWD, path, FILE_BYTES_MAX, &text, NULL, e);
    if (r == 0)
        r = close_listed(g, text, e);
    if (r < 0)
        return err_wrap(e, r, "%s", path);
    r = gate_close_major(g, NVIDIA_MAJOR, e);
    return r < 0 ? r : close_drm(g, driver_root, e);
}

static bool listed(const struct gate_device *list, size_t count, uint32_t major, uint32_t minor)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].major == major && list[i].minor == minor)
            return true;
    return false;
}

bool gate_allows(const struct gate *g, uint32_t major, uint32_t minor, bool make)
{
    bool closed = listed(g->nodes, g->node_count, major, minor);
    for (size_t i = 0; i < g->major_count; i++)
        closed |= g->majors[i] == major;
    if (!closed)
        return true;
    return !make && listed(g->grants, g->grant_count, major, minor);
}
