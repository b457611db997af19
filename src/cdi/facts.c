#include "cdi/cdi.h"

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

#define DEVICES_MAX (1024 * 1024)
#define MINORS_MAX (4 * 1024 * 1024)
#define HOOK "/usr/bin/nvidia-cdi-hook"

void cdi_facts_done(struct cdi_facts *f)
{
    for (size_t i = 0; i < f->file_count; i++) {
        free(f->files[i].path);
        free(f->files[i].real);
    }
    free(f->files);
    free(f->driver_root);
    free(f->minors);
    free(f->hook);
    *f = (struct cdi_facts)CDI_FACTS_INIT;
}

/* ---- majors ---- */

static void take_major(struct cdi_facts *f, const char *line)
{
    uint32_t major = 0;
    char name[64] = "";
    if (sscanf(line, "%" SCNu32 " %63s", &major, name) != 2)
        return;
    if (strcmp(name, "nvidia") == 0 || strcmp(name, "nvidia-frontend") == 0)
        f->nvidia_major = major;
    else if (strcmp(name, "nvidia-uvm") == 0)
        f->uvm_major = major;
    else if (strcmp(name, "nvidia-caps") == 0)
        f->caps_major = major;
}

static int read_majors(struct cdi_facts *f, struct err *e)
{
    auto_free char *devices = NULL;
    auto_free char *path = file_under(f->driver_root, "/proc/devices");
    int r = file_read(AT_FDCWD, path, DEVICES_MAX, &devices, NULL, e);
    if (r < 0)
        return r;
    char *save = NULL;
    for (char *line = strtok_r(devices, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (text_starts(line, "Block"))
            break;
        take_major(f, line);
    }
    if (!f->nvidia_major)
        return err_set(e, -ENODEV, "%s lists no nvidia device: no NVIDIA driver is loaded", path);
    return 0;
}

/* ---- the driver's files ---- */

/* With all links followed, without the driver's root; NULL: not below it, or not there. */
static char *real_below(const char *driver_root, const char *path)
{
    auto_free char *host = file_under(driver_root, path);
    auto_free char *real = realpath(host, NULL);
    auto_free char *root = realpath(driver_root, NULL);
    if (!real || !root)
        return NULL;
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(real, root, len) != 0 || real[len] != '/')
        return NULL;
    return text_dup(real + len);
}

static void add_file(struct cdi_facts *f, const char *path, char *take_real)
{
    ARRAY_ROOM(f->files, f->file_alloc, f->file_count + 1);
    f->files[f->file_count++] = (struct cdi_file){ .path = text_dup(path), .real = take_real };
}

static bool ends_with(const char *s, const char *end)
{
    size_t len = strlen(s), more = strlen(end);
    return len >= more && strcmp(s + len - more, end) == 0;
}

/* A library of this driver, or a link to one: its version stands in the file's name. */
static void take_library(struct cdi_facts *f, const char *folder, const char *name, const char *end)
{
    if (!text_starts(name, "lib") || !strstr(name, ".so"))
        return;
    auto_free char *path = text_fmt("%s/%s", folder, name);
    auto_free char *real = real_below(f->driver_root, path);
    if (real && ends_with(real, end))
        add_file(f, path, take_ptr(real));
}

static void take_folder(struct cdi_facts *f, const char *folder, const char *end)
{
    struct stat st;
    auto_free char *host = file_under(f->driver_root, folder);
    if (lstat(host, &st) < 0 || !S_ISDIR(st.st_mode))
        return; /* a link leads to one of the others */
    auto_dir DIR *d = opendir(host);
    for (struct dirent *entry; d && (entry = readdir(d));)
        take_library(f, folder, entry->d_name, end);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct cdi_file *)a)->path, ((const struct cdi_file *)b)->path);
}

static void find_files(struct cdi_facts *f, const char *driver_version)
{
    static const char *const folders[] = { "/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib" };
    static const char *const programs[] = { "/usr/bin/nvidia-smi" };
    if (!driver_version[0])
        return;
    auto_free char *end = text_fmt(".so.%s", driver_version);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        take_folder(f, folders[i], end);
    if (!f->file_count)
        return; /* a program without its libraries is of no use */
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char *real = real_below(f->driver_root, programs[i]);
        if (real)
            add_file(f, programs[i], real);
    }
    /* Folders are read in any order; what is written must not depend on it. */
    qsort(f->files, f->file_count, sizeof *f->files, by_path);
}

/* ---- all ---- */

static int read_minors(struct cdi_facts *f, struct err *e)
{
    auto_free char *path = file_under(f->driver_root, "/proc/driver/nvidia-caps/mig-minors");
    int r = file_read(AT_FDCWD, path, MINORS_MAX, &f->minors, NULL, e);
    return r == -ENOENT ? 0 : r;
}

int cdi_facts_read(const char *driver_root, const char *driver_version, struct cdi_facts *ret,
                   struct err *e)
{
    AUTO(cdi_facts) struct cdi_facts f = CDI_FACTS_INIT;
    f.driver_root = text_dup(driver_root);
    int r = read_majors(&f, e);
    if (r == 0)
        r = read_minors(&f, e);
    if (r < 0)
        return r;
    auto_free char *modeset = file_under(driver_root, "/dev/nvidia-modeset");
    f.modeset = access(modeset, F_OK) == 0;
    f.hook = access(HOOK, X_OK) == 0 ? text_dup(HOOK) : NULL;
    find_files(&f, driver_version);
    *ret = f;
    f = (struct cdi_facts)CDI_FACTS_INIT;
    return 0;
}
