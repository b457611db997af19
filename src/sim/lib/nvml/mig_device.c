/* MIG devices: the handles of compute instances that clients use like cards. */
#include "sim/lib/nvml/access.h"
#include "sim/lib/nvml/core.h"

NVML(nvmlDeviceIsMigDeviceHandle, nvmlDevice_t device, unsigned int *is_mig)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!is_mig)
        return NVML_ERROR_INVALID_ARGUMENT;
    *is_mig = v.is_mig;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_id(nvmlDevice_t device, unsigned int *ret, bool compute)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.is_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret = compute ? v.ci : v.gi;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetGpuInstanceId, nvmlDevice_t device, unsigned int *id)
{
    return give_id(device, id, false);
}

NVML(nvmlDeviceGetComputeInstanceId, nvmlDevice_t device, unsigned int *id)
{
    return give_id(device, id, true);
}

/* Slots, not devices; 0 on boards without MIG. */
NVML(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t device, unsigned int *count)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = v.board->slices;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned int index,
     nvmlDevice_t *mig_device)
{
    struct view v;
    uint32_t gi, ci;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (v.board->mig_enable == SIM_MIG_NONE)
        return NVML_ERROR_NOT_SUPPORTED;
    if (!mig_device || index >= v.board->slices)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!access_mig_device_at(&v, index, &gi, &ci))
        return NVML_ERROR_NOT_FOUND;
    *mig_device = handle_mig(&v, gi, ci);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvmlDevice_t mig_device, nvmlDevice_t *device)
{
    struct view v;
    nvmlReturn_t rc = view_any(mig_device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.is_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    *device = handle_card(v.ordinal);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!attributes)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.is_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct sim_profile *p = view_profile(&v);
    const struct sim_ci_profile *c = &p->ci[view_instance(&v)->ci[v.ci].profile];
    *attributes = (nvmlDeviceAttributes_t){ .multiprocessorCount = c->sm,
                                            .sharedCopyEngineCount = p->engines.copy,
                                            .sharedDecoderCount = p->engines.decoder,
                                            .sharedEncoderCount = p->engines.encoder,
                                            .sharedJpegCount = p->engines.jpeg,
                                            .sharedOfaCount = p->engines.ofa,
                                            .gpuInstanceSliceCount = p->slices,
                                            .computeInstanceSliceCount = c->slices,
                                            .memorySizeMB = p->memory_mib };
    return NVML_SUCCESS;
}

/* Version 1 ended before the instance slice counts. */
struct attributes_v1 {
    unsigned int multiprocessors, copy, decoder, encoder, jpeg, ofa;
};

NVML(nvmlDeviceGetAttributes, nvmlDevice_t device, struct attributes_v1 *attributes)
{
    nvmlDeviceAttributes_t now;
    nvmlReturn_t rc = nvmlDeviceGetAttributes_v2(device, &now);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!attributes)
        return NVML_ERROR_INVALID_ARGUMENT;
    *attributes = (struct attributes_v1){ now.multiprocessorCount, now.sharedCopyEngineCount,
                                          now.sharedDecoderCount,  now.sharedEncoderCount,
                                          now.sharedJpegCount,     now.sharedOfaCount };
    return NVML_SUCCESS;
}
