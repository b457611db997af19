/* Which processes run on a card or a MIG device: four generations of the same list. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/lib/nvml/access.h"
#include "sim/lib/nvml/core.h"
#include "sim/lib/nvml/processes.h"

static bool belongs(const struct view *v, const struct sim_use *u, enum sim_use_kind kind)
{
    return u->card == v->ordinal && u->kind == kind &&
           (!v->is_mig || (u->gi == v->gi && u->ci == v->ci));
}

nvmlReturn_t list_processes(nvmlDevice_t device, enum sim_use_kind kind, struct listed_process *ret,
                            unsigned int room, unsigned int *ret_count)
{
    struct view v;
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc == NVML_SUCCESS && v.card.mig_current && !v.is_mig && !access_monitor(v.machine))
        return NVML_ERROR_NO_PERMISSION;
    if (rc == NVML_SUCCESS)
        rc = core_procs(&v, &list, &count);
    if (rc != NVML_SUCCESS)
        return rc;
    auto_free struct sim_proc *procs = list;
    unsigned int n = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < procs[i].use_count; j++) {
            const struct sim_use *u = &procs[i].uses[j];
            if (!belongs(&v, u, kind))
                continue;
            if (n < room) {
                ret[n] = (struct listed_process){ .pid = (unsigned int)procs[i].pid,
                                                  .memory_bytes = u->memory_bytes,
                                                  .gi = u->gi,
                                                  .ci = u->ci };
                memcpy(ret[n].name, procs[i].name, sizeof ret[n].name);
            }
            n++;
        }
    *ret_count = n;
    return NVML_SUCCESS;
}

/* Room for `count` records of `stride` bytes at infos; count in and out as NVML has it. */
static nvmlReturn_t give_records(nvmlDevice_t device, enum sim_use_kind kind, unsigned int *count,
                                 void *infos, size_t stride)
{
    struct listed_process now[LISTED_PROCESSES_MAX];
    unsigned int n = 0;
    nvmlReturn_t rc = list_processes(device, kind, now, LISTED_PROCESSES_MAX, &n);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!count || (*count > 0 && !infos))
        return NVML_ERROR_INVALID_ARGUMENT;
    n = n < LISTED_PROCESSES_MAX ? n : LISTED_PROCESSES_MAX;
    unsigned int room = *count;
    *count = n;
    if (n > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < n; i++) {
        nvmlProcessDetail_v1_t full = { .pid = now[i].pid,
                                        .usedGpuMemory = now[i].memory_bytes,
                                        .gpuInstanceId = now[i].gi,
                                        .computeInstanceId = now[i].ci };
        memcpy((char *)infos + i * stride, &full, stride); /* older records are its beginnings */
    }
    return NVML_SUCCESS;
}

#define LIST(name, kind, record)                                                                   \
    NVML(name, nvmlDevice_t device, unsigned int *count, record *infos)                            \
    {                                                                                              \
        return give_records(device, kind, count, infos, sizeof *infos);                            \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, SIM_USE_COMPUTE, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, SIM_USE_COMPUTE, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, SIM_USE_COMPUTE, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, SIM_USE_GRAPHICS, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, SIM_USE_GRAPHICS, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, SIM_USE_GRAPHICS, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, SIM_USE_MPS, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, SIM_USE_MPS, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, SIM_USE_MPS, nvmlProcessInfo_v2_t)

NVML(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device, nvmlProcessDetailList_v1_t *list)
{
    static const enum sim_use_kind kinds[] = { SIM_USE_COMPUTE, SIM_USE_GRAPHICS, SIM_USE_MPS };
    if (!list)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    if (list->version != NVML_TAG(nvmlProcessDetailList_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (list->mode > NVML_PROCESS_MODE_MPS)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_records(device, kinds[list->mode], &list->numProcArrayEntries, list->procArray,
                        sizeof *list->procArray);
}
