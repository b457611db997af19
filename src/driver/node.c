#include "driver/node.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define DEVICES_MAX (1024 * 1024)
#define PARAMS_MAX (64 * 1024)
#define CAPS_DIR "/dev/nvidia-caps"

struct node {
    const char *driver; /* its name in /proc/devices */
    uint32_t major, minor;
    uint32_t mode, uid, gid;
};

static bool number_after(const char *text, const char *prefix, uint32_t *ret)
{
    char *end = NULL;
    size_t len = strlen(prefix);
    if (strncmp(text, prefix, len) != 0 || text[len] < '0' || text[len] > '9')
        return false;
    unsigned long n = strtoul(text + len, &end, 10);
    *ret = (uint32_t)n;
    return *end == '\0' && n < 1u << 20;
}

static bool node_of(const char *name, struct node *ret)
{
    *ret = (struct node){ .driver = "nvidia", .mode = 0666 };
    if (number_after(name, CAPS_DIR "/nvidia-cap", &ret->minor)) {
        ret->driver = "nvidia-caps";
        ret->mode = 0444;
        return true;
    }
    if (strcmp(name, "/dev/nvidiactl") == 0) {
        ret->minor = 255;
        return true;
    }
    if (strcmp(name, "/dev/nvidia-uvm") == 0 || strcmp(name, "/dev/nvidia-uvm-tools") == 0) {
        ret->driver = "nvidia-uvm";
        ret->minor = strcmp(name, "/dev/nvidia-uvm") != 0;
        return true;
    }
    return number_after(name, "/dev/nvidia", &ret->minor) && ret->minor < 255;
}

static bool is_driver(const char *name, const char *wanted)
{
    return strcmp(name, wanted) == 0 ||
           (strcmp(wanted, "nvidia") == 0 && strcmp(name, "nvidia-frontend") == 0);
}

static int find_major(const char *driver_root, struct node *n, struct err *e)
{
    auto_free char *devices = NULL;
    auto_free char *path = file_under(driver_root, "/proc/devices");
    int r = file_read(AT_FDCWD, path, DEVICES_MAX, &devices, NULL, e);
    if (r < 0)
        return r;
    char *save = NULL;
    for (char *line = strtok_r(devices, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[64] = "";
        if (text_starts(line, "Block"))
            break;
        if (sscanf(line, "%" SCNu32 " %63s", &n->major, name) == 2 && is_driver(name, n->driver))
            return 0;
    }
    return err_set(e, -ENODEV, "the kernel module %s is not loaded", n->driver);
}

static void take_param(const char *params, const char *name, uint32_t *ret)
{
    const char *at = strstr(params, name);
    if (at)
        (void)sscanf(at + strlen(name), ": %" SCNu32, ret); /* left alone where it says nothing */
}

/* What the administrator told the module about who may open the cards. */
static void read_params(const char *driver_root, struct node *n)
{
    auto_free char *params = NULL;
    auto_free char *path = file_under(driver_root, "/proc/driver/nvidia/params");
    if (file_read(AT_FDCWD, path, PARAMS_MAX, &params, NULL, NULL) < 0)
        return;
    take_param(params, "DeviceFileMode", &n->mode);
    take_param(params, "DeviceFileUID", &n->uid);
    take_param(params, "DeviceFileGID", &n->gid);
    n->mode &= 0666;
}

static int make(const char *path, const struct node *n, struct err *e)
{
    auto_free char *apart = text_fmt("%s.%d", path, (int)getpid());
    if (mknod(apart, S_IFCHR, makedev(n->major, n->minor)) < 0)
        return err_sys(e, "cannot make the device node %s", path);
    if (chown(apart, n->uid, n->gid) < 0 || chmod(apart, n->mode) < 0 || rename(apart, path) < 0) {
        int r = err_sys(e, "cannot make the device node %s", path);
        (void)unlink(apart); /* an odd name nobody opens */
        return r;
    }
    return 1;
}

int driver_node_make(const char *driver_root, const char *node, struct err *e)
{
    struct node n;
    struct stat st;
    auto_free char *path = file_under(driver_root, node);
    if (!node_of(node, &n))
        return err_set(e, -EINVAL, "%s is no device node of the driver", node);
    if (lstat(path, &st) == 0)
        return 0;
    int r = find_major(driver_root, &n, e);
    if (r < 0)
        return err_wrap(e, r, "cannot make the device node %s", path);
    if (strcmp(n.driver, "nvidia-caps") == 0) {
        auto_free char *dir = file_under(driver_root, CAPS_DIR);
        r = file_mkdirs(dir, 0755, e);
    } else {
        read_params(driver_root, &n);
    }
    return r < 0 ? r : make(path, &n, e);
}
