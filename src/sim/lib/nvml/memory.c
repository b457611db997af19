/* How much memory there is and how busy the engines are. */
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "sim/lib/nvml/access.h"
#include "sim/lib/nvml/core.h"

struct amounts {
    uint64_t total;
    uint64_t reserved;
    uint64_t used;
};

static nvmlReturn_t ask_memory(nvmlDevice_t device, struct amounts *ret)
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
    uint64_t usable = sim_memory_usable(v.board, &v.card, v.gi);
    uint64_t used =
        sim_memory_used(procs, count, v.ordinal, v.gi) + ((uint64_t)v.card.leak_mib << 20);
    ret->reserved = v.is_mig ? 0 : (uint64_t)v.board->reserved_mib << 20;
    ret->total = usable + ret->reserved;
    ret->used = used < usable ? used : usable;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct amounts a;
    nvmlReturn_t rc = ask_memory(device, &a);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    memory->total = a.total;
    memory->used = a.used + a.reserved;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct amounts a;
    nvmlReturn_t rc = ask_memory(device, &a);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!memory)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_TAG(nvmlMemory_v2_t, 2))
        return core_branch() < 570 ? NVML_ERROR_FUNCTION_NOT_FOUND
                                   : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = a.total;
    memory->reserved = a.reserved;
    memory->used = a.used;
    memory->free = a.total - a.reserved - a.used;
    return NVML_SUCCESS;
}

/* Data-centre boards since Ampere map all their memory: the next power of two. */
NVML(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t *bar1)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!bar1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.board->ecc || v.board->arch < NVML_DEVICE_ARCH_AMPERE)
        return NVML_ERROR_NOT_SUPPORTED;
    unsigned long long total = 1ULL << 20;
    while (total < (unsigned long long)v.board->memory_mib << 20)
        total <<= 1;
    if (v.is_mig)
        total = total / v.board->units * view_instance(&v)->span.size;
    bar1->bar1Total = total;
    bar1->bar1Used = 0; /* nothing maps it here */
    bar1->bar1Free = total;
    return NVML_SUCCESS;
}

/* ---- utilisation: not with MIG, neither of the card nor of its instances ---- */

#define SAMPLING_PERIOD_US 167000U

static nvmlReturn_t ask_load(nvmlDevice_t device, struct view *v, uint32_t *ret_load,
                             uint64_t *ret_used)
{
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    nvmlReturn_t rc = view_any(device, v);
    if (rc == NVML_SUCCESS && v->card.mig_current)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        rc = core_procs(v, &list, &count);
    if (rc != NVML_SUCCESS)
        return rc;
    auto_free struct sim_proc *procs = list;
    *ret_load = sim_card_load(v->board, &v->card, procs, count, v->ordinal);
    *ret_used = sim_memory_used(procs, count, v->ordinal, SIM_NO_INSTANCE);
    return NVML_SUCCESS;
}

/* A kernel that runs touches memory in proportion to what it holds. */
static uint32_t memory_load(const struct view *v, uint32_t load, uint64_t used)
{
    uint64_t usable = sim_memory_usable(v->board, &v->card, SIM_NO_INSTANCE);
    uint64_t part = used >= usable ? 100 : used / (usable / 100);
    return (uint32_t)(load * part / 100);
}

NVML(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct view v;
    uint32_t load;
    uint64_t used;
    nvmlReturn_t rc = ask_load(device, &v, &load, &used);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!utilization)
        return NVML_ERROR_INVALID_ARGUMENT;
    utilization->gpu = load;
    utilization->memory = memory_load(&v, load, used);
    return NVML_SUCCESS;
}

/* No simulated process uses the media engines: they are idle, and that is measured. */
static nvmlReturn_t give_idle_engine(nvmlDevice_t device, unsigned int *utilization,
                                     unsigned int *period_us)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!utilization || !period_us)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (v.card.mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    *utilization = 0;
    *period_us = SAMPLING_PERIOD_US;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetEncoderUtilization, nvmlDevice_t device, unsigned int *utilization,
     unsigned int *period_us)
{
    return give_idle_engine(device, utilization, period_us);
}
NVML_ALSO(nvmlDeviceGetEncoderUtilization, nvmlDeviceGetDecoderUtilization);
NVML_ALSO(nvmlDeviceGetEncoderUtilization, nvmlDeviceGetJpgUtilization);
NVML_ALSO(nvmlDeviceGetEncoderUtilization, nvmlDeviceGetOfaUtilization);

static unsigned long long wall_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail */
    return (unsigned long long)t.tv_sec * 1000000 + (unsigned long long)t.tv_nsec / 1000;
}

/* One sample a process, taken now. Calls `put` until it says there is no room. */
struct process_sample {
    unsigned int pid;
    uint32_t load;
    uint32_t memory_load;
};

static nvmlReturn_t sample_processes(nvmlDevice_t device, struct process_sample *ret,
                                     unsigned int room, unsigned int *ret_count)
{
    struct view v;
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc == NVML_SUCCESS && v.card.mig_current)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS)
        rc = core_procs(&v, &list, &count);
    if (rc != NVML_SUCCESS)
        return rc;
    auto_free struct sim_proc *procs = list;
    unsigned int n = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t used = sim_memory_used(&procs[i], 1, v.ordinal, SIM_NO_INSTANCE);
        uint32_t load = sim_card_load(v.board, &v.card, &procs[i], 1, v.ordinal);
        if (used == 0 && load == 0)
            continue;
        if (n < room)
            ret[n] = (struct process_sample){ .pid = (unsigned int)procs[i].pid,
                                              .load = load,
                                              .memory_load = memory_load(&v, load, used) };
        n++;
    }
    *ret_count = n;
    return NVML_SUCCESS;
}

#define SAMPLES_MAX 256

/* The samples newer than `since`, or why there are none. */
static nvmlReturn_t fresh_samples(nvmlDevice_t device, unsigned long long since,
                                  struct process_sample *ret, unsigned int room, bool can_store,
                                  unsigned int *count)
{
    unsigned int n = 0;
    nvmlReturn_t rc = sample_processes(device, ret, SAMPLES_MAX, &n);
    if (rc != NVML_SUCCESS)
        return rc;
    if (n == 0 || since >= wall_us())
        return NVML_ERROR_NOT_FOUND;
    n = n < SAMPLES_MAX ? n : SAMPLES_MAX;
    *count = n;
    return !can_store || n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

NVML(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
     unsigned int *count, unsigned long long last_seen)
{
    struct process_sample now[SAMPLES_MAX];
    if (!count)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    nvmlReturn_t rc = fresh_samples(device, last_seen, now, *count, samples != NULL, count);
    for (unsigned int i = 0; rc == NVML_SUCCESS && i < *count; i++)
        samples[i] = (nvmlProcessUtilizationSample_t){ .pid = now[i].pid,
                                                       .timeStamp = wall_us(),
                                                       .smUtil = now[i].load,
                                                       .memUtil = now[i].memory_load };
    return rc;
}

NVML(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device,
     nvmlProcessesUtilizationInfo_v1_t *info)
{
    struct process_sample now[SAMPLES_MAX];
    if (!info)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    if (info->version != NVML_TAG(nvmlProcessesUtilizationInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t rc = fresh_samples(device, info->lastSeenTimeStamp, now, info->processSamplesCount,
                                    info->procUtilArray != NULL, &info->processSamplesCount);
    for (unsigned int i = 0; rc == NVML_SUCCESS && i < info->processSamplesCount; i++)
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){ .pid = now[i].pid,
                                                                    .timeStamp = wall_us(),
                                                                    .smUtil = now[i].load,
                                                                    .memUtil = now[i].memory_load };
    return rc;
}

/* The newest sample of a kind: 0 total power, 1 GPU and 2 memory utilisation, 3-4 media engines. */
NVML(nvmlDeviceGetSamples, nvmlDevice_t device, unsigned int type, unsigned long long last_seen,
     nvmlValueType_t *value_type, unsigned int *count, nvmlSample_t *samples)
{
    struct view v;
    uint32_t load;
    uint64_t used;
    nvmlReturn_t rc = ask_load(device, &v, &load, &used);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!value_type || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type < 1 || type > 4)
        return NVML_ERROR_NOT_SUPPORTED;
    if (last_seen >= wall_us())
        return NVML_ERROR_NOT_FOUND;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples && *count == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 1;
    if (samples)
        samples[0] = (nvmlSample_t){ .timeStamp = wall_us(),
                                     .sampleValue.uiVal = type == 1   ? load
                                                          : type == 2 ? memory_load(&v, load, used)
                                                                      : 0 };
    return NVML_SUCCESS;
}
