#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "driver/state.h"

#define INSTANCES_MAX 64u /* some drivers report too small a number of instances */

nvmlReturn_t driver_each_gi(struct driver *d, nvmlDevice_t dev, const struct board *b, gi_fn each,
                            void *arg)
{
    const struct library *lib = &d->lib;
    nvmlReturn_t first = NVML_SUCCESS;
    if (!lib->nvmlDeviceGetGpuInstances || !lib->nvmlGpuInstanceGetInfo)
        return NVML_ERROR_FUNCTION_NOT_FOUND;
    for (uint32_t i = 0; i < b->profile_count; i++) {
        nvmlGpuInstance_t list[INSTANCES_MAX];
        unsigned int n = INSTANCES_MAX;
        nvmlReturn_t r = lib->nvmlDeviceGetGpuInstances(dev, b->profiles[i].id, list, &n);
        if (r != NVML_SUCCESS) {
            if (first == NVML_SUCCESS && r != NVML_ERROR_NOT_SUPPORTED)
                first = r;
            continue;
        }
        for (unsigned int k = 0; k < n && k < INSTANCES_MAX; k++) {
            nvmlGpuInstanceInfo_t info = { .id = NVML_NO_INSTANCE };
            if (lib->nvmlGpuInstanceGetInfo(list[k], &info) == NVML_SUCCESS &&
                each(list[k], &info, arg))
                return NVML_SUCCESS;
        }
    }
    return first;
}

/* A MIG device is a compute instance as CUDA sees it. */
struct mig_device {
    uint32_t gi, ci;
    nvmlDevice_t handle;
};

static size_t list_mig_devices(const struct library *lib, nvmlDevice_t dev,
                               struct mig_device list[INSTANCES_MAX])
{
    unsigned int slots = 0;
    size_t n = 0;
    if (!lib->nvmlDeviceGetMaxMigDeviceCount || !lib->nvmlDeviceGetMigDeviceHandleByIndex ||
        !lib->nvmlDeviceGetGpuInstanceId || !lib->nvmlDeviceGetComputeInstanceId ||
        lib->nvmlDeviceGetMaxMigDeviceCount(dev, &slots) != NVML_SUCCESS)
        return 0;
    for (unsigned int i = 0; i < slots && n < INSTANCES_MAX; i++) {
        struct mig_device *m = &list[n];
        if (lib->nvmlDeviceGetMigDeviceHandleByIndex(dev, i, &m->handle) != NVML_SUCCESS)
            continue; /* slots have gaps */
        if (lib->nvmlDeviceGetGpuInstanceId(m->handle, &m->gi) == NVML_SUCCESS &&
            lib->nvmlDeviceGetComputeInstanceId(m->handle, &m->ci) == NVML_SUCCESS)
            n++;
    }
    return n;
}

bool driver_mig_uuid(struct driver *d, nvmlDevice_t dev, uint32_t gi, uint32_t ci,
                     char uuid[CARD_UUID_SIZE])
{
    struct mig_device list[INSTANCES_MAX];
    size_t n = list_mig_devices(&d->lib, dev, list);
    for (size_t i = 0; i < n; i++)
        if (list[i].gi == gi && list[i].ci == ci)
            return d->lib.nvmlDeviceGetUUID(list[i].handle, uuid, CARD_UUID_SIZE) == NVML_SUCCESS;
    return false;
}

static void read_memory(const struct library *lib, nvmlDevice_t handle, struct slice *s)
{
    nvmlMemory_t m;
    if (!lib->nvmlDeviceGetMemoryInfo || lib->nvmlDeviceGetMemoryInfo(handle, &m) != NVML_SUCCESS)
        return;
    s->mem_known = true;
    s->mem_total_bytes = m.total;
    s->mem_used_bytes = m.used;
}

static void read_ci(const struct library *lib, nvmlGpuInstance_t gi, const struct profile *p,
                    struct slice *s)
{
    nvmlComputeInstance_t ci;
    nvmlComputeInstanceInfo_t info;
    s->ci_slices = p ? p->slices : 1;
    if (!lib->nvmlGpuInstanceGetComputeInstanceById || !lib->nvmlComputeInstanceGetInfo_v2 ||
        lib->nvmlGpuInstanceGetComputeInstanceById(gi, s->ci, &ci) != NVML_SUCCESS ||
        lib->nvmlComputeInstanceGetInfo_v2(ci, &info) != NVML_SUCCESS)
        return;
    const struct ci_profile *cp = p ? profile_ci_by_id(p, info.profileId) : NULL;
    s->ci_profile_id = info.profileId;
    s->ci_start = info.placement.start;
    s->ci_slices = cp ? cp->slices : info.placement.size;
}

struct listing {
    struct driver *d;
    struct known_card *known;
    struct card *card;
    struct mig_device devices[INSTANCES_MAX];
    size_t count;
};

static struct slice *add_slice(struct card *c, const nvmlGpuInstanceInfo_t *info)
{
    struct slice *s = card_add_slice(c);
    s->gi = info->id;
    s->ci = NOT_AN_INSTANCE;
    s->profile_id = info->profileId;
    s->start = info->placement.start;
    s->units = info->placement.size;
    return s;
}

static bool add_gi(nvmlGpuInstance_t gi, const nvmlGpuInstanceInfo_t *info, void *arg)
{
    struct listing *l = arg;
    bool any = false;
    driver_learn_cis(l->d, l->known, gi, info->profileId);
    const struct profile *p =
        l->known->boards[1] ? board_profile_by_id(l->known->boards[1], info->profileId) : NULL;
    for (size_t i = 0; i < l->count; i++) {
        if (l->devices[i].gi != info->id)
            continue;
        struct slice *s = add_slice(l->card, info);
        s->ci = l->devices[i].ci;
        read_ci(&l->d->lib, gi, p, s);
        s->full = p && s->ci_slices == p->slices;
        (void)l->d->lib.nvmlDeviceGetUUID(l->devices[i].handle, s->uuid, sizeof s->uuid);
        read_memory(&l->d->lib, l->devices[i].handle, s);
        any = true;
    }
    if (!any)
        (void)add_slice(l->card, info);
    return false;
}

nvmlReturn_t driver_add_slices(struct driver *d, nvmlDevice_t dev, struct known_card *k,
                               struct card *c)
{
    auto_free struct listing *l = mem_new(sizeof *l);
    l->d = d;
    l->known = k;
    l->card = c;
    l->count = list_mig_devices(&d->lib, dev, l->devices);
    nvmlReturn_t r =
        k->boards[1] ? driver_each_gi(d, dev, k->boards[1], add_gi, l) : NVML_ERROR_NOT_SUPPORTED;
    card_sort_slices(c);
    return r;
}
