#include <errno.h>

#include "driver/state.h"

void driver_read_settings(const struct library *lib, nvmlDevice_t dev, struct card *c)
{
    struct card_settings s = { .compute_mode = 0 };
    /* With MIG on each slice has a mode of its own, which only the default and one other can be. */
    if (!c->mig_now && lib->nvmlDeviceGetComputeMode &&
        lib->nvmlDeviceGetComputeMode(dev, &s.compute_mode) == NVML_SUCCESS)
        c->known |= KNOW_COMPUTE_MODE;
    if (lib->nvmlDeviceGetApplicationsClock &&
        lib->nvmlDeviceGetApplicationsClock(dev, NVML_CLOCK_SM, &s.app_sm_mhz) == NVML_SUCCESS &&
        lib->nvmlDeviceGetApplicationsClock(dev, NVML_CLOCK_MEM, &s.app_mem_mhz) == NVML_SUCCESS)
        c->known |= KNOW_APP_CLOCKS;
    c->settings = s;
}

static int failed(const struct library *lib, nvmlReturn_t code, const char *what, struct err *e)
{
    int number = library_errno(code);
    if (number == -EACCES)
        return err_set(e, number, "%s: this needs root", what);
    return err_set(e, number, "%s: the driver says: %s", what, library_words(lib, code));
}

static int restore_mode(const struct library *lib, nvmlDevice_t dev, uint32_t mode, struct err *e)
{
    unsigned int now = 0;
    static const char what[] = "its compute mode cannot be set back";
    if (!lib->nvmlDeviceGetComputeMode || !lib->nvmlDeviceSetComputeMode)
        return failed(lib, NVML_ERROR_FUNCTION_NOT_FOUND, what, e);
    nvmlReturn_t r = lib->nvmlDeviceGetComputeMode(dev, &now);
    if (r == NVML_SUCCESS && now == mode)
        return 0;
    if (r == NVML_SUCCESS)
        r = lib->nvmlDeviceSetComputeMode(dev, mode);
    if (r == NVML_SUCCESS)
        r = lib->nvmlDeviceGetComputeMode(dev, &now);
    if (r == NVML_SUCCESS && now != mode)
        return err_set(e, -EIO, "%s: the driver says that it did, and it is as before", what);
    return r == NVML_SUCCESS ? 0 : failed(lib, r, what, e);
}

static int restore_clocks(const struct library *lib, nvmlDevice_t dev,
                          const struct card_settings *s, struct err *e)
{
    struct card now = { .mig_now = true };
    static const char what[] = "its application clocks cannot be set back";
    if (!lib->nvmlDeviceSetApplicationsClocks)
        return failed(lib, NVML_ERROR_FUNCTION_NOT_FOUND, what, e);
    nvmlReturn_t r = lib->nvmlDeviceSetApplicationsClocks(dev, s->app_mem_mhz, s->app_sm_mhz);
    if (r != NVML_SUCCESS)
        return failed(lib, r, what, e);
    driver_read_settings(lib, dev, &now);
    if (now.settings.app_sm_mhz != s->app_sm_mhz || now.settings.app_mem_mhz != s->app_mem_mhz)
        return err_set(e, -EIO, "%s: the driver says that it did, and they are as before", what);
    return 0;
}

/* Nobody tells whether clocks are locked; lifting what is not there is no error. */
static int unlock_clocks(const struct library *lib, nvmlDevice_t dev, struct err *e)
{
    nvmlReturn_t (*const lift[])(nvmlDevice_t) = { lib->nvmlDeviceResetGpuLockedClocks,
                                                   lib->nvmlDeviceResetMemoryLockedClocks };
    for (size_t i = 0; i < sizeof lift / sizeof *lift; i++) {
        nvmlReturn_t r = lift[i] ? lift[i](dev) : NVML_ERROR_NOT_SUPPORTED;
        if (r != NVML_SUCCESS && r != NVML_ERROR_NOT_SUPPORTED &&
            r != NVML_ERROR_FUNCTION_NOT_FOUND)
            return failed(lib, r, "locked clocks of it cannot be lifted", e);
    }
    return 0;
}

int driver_restore(struct driver *d, const struct driver_restore *what, struct err *e)
{
    nvmlDevice_t dev;
    int code = driver_ready(d, e);
    if (code < 0)
        return code;
    const struct library *lib = &d->lib;
    driver_at(d, what->uuid);
    nvmlReturn_t r = lib->nvmlDeviceGetHandleByUUID(what->uuid, &dev);
    if (r != NVML_SUCCESS)
        code = failed(lib, r, "it cannot be reached", e);
    if (code == 0 && what->known & KNOW_COMPUTE_MODE)
        code = restore_mode(lib, dev, what->settings.compute_mode, e);
    if (code == 0 && what->known & KNOW_APP_CLOCKS)
        code = restore_clocks(lib, dev, &what->settings, e);
    if (code == 0 && what->unlock)
        code = unlock_clocks(lib, dev, e);
    driver_at(d, NULL);
    return code;
}
