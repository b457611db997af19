#include "driver/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/text.h"

#define LIBRARY_NAME "libnvidia-ml.so.1"

const char *library_words(const struct library *lib, nvmlReturn_t code)
{
    const char *words = lib->nvmlErrorString ? lib->nvmlErrorString(code) : NULL;
    return words ? words : "unknown error";
}

int library_errno(nvmlReturn_t code)
{
    switch (code) {
    case NVML_SUCCESS:
        return 0;
    case NVML_ERROR_IN_USE:
        return -EBUSY;
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
        return -ENOSPC;
    case NVML_ERROR_NO_PERMISSION:
        return -EACCES;
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_GPU_NOT_FOUND:
        return -ENODEV;
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return -ENOTSUP;
    case NVML_ERROR_RESET_REQUIRED:
        return -EAGAIN;
    case NVML_ERROR_NOT_FOUND:
        return -ENOENT;
    default:
        return -EIO;
    }
}

bool library_try_older(nvmlReturn_t code)
{
    return code == NVML_ERROR_INVALID_ARGUMENT || code == NVML_ERROR_FUNCTION_NOT_FOUND ||
           code == NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

/* The name of a function that must be there and is not; NULL: all there. */
static const char *resolve(struct library *lib)
{
    const char *missing = NULL;
#define RESOLVE(name, arguments) *(void **)&lib->name = dlsym(lib->so, #name);
#define REQUIRE(name, arguments)                                                                   \
    RESOLVE(name, arguments)                                                                       \
    if (!lib->name && !missing)                                                                    \
        missing = #name;
    LIBRARY_REQUIRED(REQUIRE)
    LIBRARY_OPTIONAL(RESOLVE)
#undef REQUIRE
#undef RESOLVE
    *(void **)&lib->nvmlErrorString = dlsym(lib->so, "nvmlErrorString");
    return missing;
}

/* What the loaded kernel module says of its version, for people; "" where there is none. */
static char *kernel_version(const char *driver_root)
{
    auto_free char *path = file_under(driver_root, "/proc/driver/nvidia/version");
    char *data = NULL;
    if (file_read(AT_FDCWD, path, 4096, &data, NULL, NULL) < 0)
        return text_dup("");
    data[strcspn(data, "\n")] = '\0';
    return data;
}

static int start_failed(struct library *lib, nvmlReturn_t code, const char *driver_root,
                        struct err *e)
{
    auto_free char *kernel = kernel_version(driver_root);
    switch (code) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return err_set(e, -ENODEV,
                       "the NVIDIA kernel module is not loaded; load it with: modprobe nvidia");
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return err_set(e, -EPROTO,
                       "the NVIDIA library and the loaded kernel module are of different versions "
                       "(%s); reload the module or restart the machine to finish the driver "
                       "upgrade",
                       kernel[0] ? kernel : "the module's is not told");
    case NVML_ERROR_NO_PERMISSION:
        return err_set(e, -EACCES,
                       "the NVIDIA driver lets this user open none of its devices; see the "
                       "permissions of /dev/nvidiactl");
    case NVML_ERROR_LIBRARY_NOT_FOUND:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return err_set(e, -ELIBBAD,
                       "this %s is a stub that came with a toolkit, or misses parts of the "
                       "driver (%s); use the driver's own",
                       LIBRARY_NAME, library_words(lib, code));
    default:
        return err_set(e, -EIO, "the NVIDIA driver does not start: %s", library_words(lib, code));
    }
}

static int load(struct library *lib, const char *path, struct err *e)
{
    const char *name = path ? path : LIBRARY_NAME;
    lib->so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib->so)
        return 0;
    const char *why = dlerror();
    bool missing = why && strstr(why, "No such file");
    if (missing && !path)
        return err_set(e, -ENOENT,
                       "no NVIDIA driver here: " LIBRARY_NAME " was not found; install the "
                       "driver, or try Divvy with simulated cards: divvy-sim up a100-80gb");
    if (missing)
        return err_set(e, -ENOENT, "no NVIDIA driver here: %s was not found", path);
    return err_set(e, -ELIBBAD, "%s cannot be loaded: %s", name, why ? why : "no reason given");
}

int library_open(struct library *lib, const char *path, const char *driver_root, struct err *e)
{
    struct library fresh = { .so = NULL };
    int code = load(&fresh, path, e);
    if (code < 0)
        return code;
    const char *missing = resolve(&fresh);
    if (missing)
        code = err_set(e, -ELIBBAD,
                       "%s is no NVIDIA management library of driver 470 or later: it has no %s",
                       path ? path : LIBRARY_NAME, missing);
    nvmlReturn_t started = missing ? NVML_SUCCESS : fresh.nvmlInit_v2();
    if (started != NVML_SUCCESS)
        code = start_failed(&fresh, started, driver_root, e);
    if (code < 0)
        (void)dlclose(fresh.so); /* never started: nothing to lose */
    else
        *lib = fresh;
    return code;
}

void library_close(struct library *lib)
{
    if (!lib->so)
        return;
    (void)lib->nvmlShutdown(); /* whatever it says, the library is unloaded next */
    (void)dlclose(lib->so);
    *lib = (struct library){ .so = NULL };
}
