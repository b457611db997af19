/*
 * library.h - libnvidia-ml.so.1 as a table of functions.
 *
 * Each pointer carries the exact suffixed name of the library's symbol and is
 * NULL where the library lacks it; the first list below must be there. The
 * unsuffixed name of a function that has suffixes is the version-1 ABI.
 */
#ifndef DIVVY_DRIVER_LIBRARY_H
#define DIVVY_DRIVER_LIBRARY_H

#include <stdbool.h>

#include "base/err.h"
#include "nvml/nvml.h"

#define U unsigned int
#define ULL unsigned long long

#define LIBRARY_REQUIRED(F)                                                                        \
    F(nvmlInit_v2, (void))                                                                         \
    F(nvmlShutdown, (void))                                                                        \
    F(nvmlSystemGetDriverVersion, (char *, U))                                                     \
    F(nvmlDeviceGetCount_v2, (U *))                                                                \
    F(nvmlDeviceGetHandleByIndex_v2, (U, nvmlDevice_t *))                                          \
    F(nvmlDeviceGetHandleByUUID, (const char *, nvmlDevice_t *))                                   \
    F(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *))                                    \
    F(nvmlDeviceGetUUID, (nvmlDevice_t, char *, U))                                                \
    F(nvmlDeviceGetName, (nvmlDevice_t, char *, U))

#define LIBRARY_OPTIONAL(F)                                                                        \
    F(nvmlSystemGetNVMLVersion, (char *, U))                                                       \
    F(nvmlDeviceGetMinorNumber, (nvmlDevice_t, U *))                                               \
    F(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t *))                                     \
    F(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t, nvmlMemory_v2_t *))                               \
    F(nvmlDeviceGetTemperature, (nvmlDevice_t, nvmlTemperatureSensors_t, U *))                     \
    F(nvmlDeviceGetTemperatureV, (nvmlDevice_t, nvmlTemperature_v1_t *))                           \
    F(nvmlDeviceGetPowerUsage, (nvmlDevice_t, U *))                                                \
    F(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, U *))                                        \
    F(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *))                          \
    F(nvmlDeviceGetComputeMode, (nvmlDevice_t, U *))                                               \
    F(nvmlDeviceSetComputeMode, (nvmlDevice_t, U))                                                 \
    F(nvmlDeviceGetApplicationsClock, (nvmlDevice_t, U, U *))                                      \
    F(nvmlDeviceSetApplicationsClocks, (nvmlDevice_t, U, U))                                       \
    F(nvmlDeviceResetGpuLockedClocks, (nvmlDevice_t))                                              \
    F(nvmlDeviceResetMemoryLockedClocks, (nvmlDevice_t))                                           \
    F(nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t *))                           \
    F(nvmlDeviceGetComputeRunningProcesses, (nvmlDevice_t, U *, void *))                           \
    F(nvmlDeviceGetComputeRunningProcesses_v2, (nvmlDevice_t, U *, void *))                        \
    F(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, U *, void *))                        \
    F(nvmlDeviceGetGraphicsRunningProcesses, (nvmlDevice_t, U *, void *))                          \
    F(nvmlDeviceGetGraphicsRunningProcesses_v2, (nvmlDevice_t, U *, void *))                       \
    F(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvmlDevice_t, U *, void *))                       \
    F(nvmlDeviceGetMPSComputeRunningProcesses, (nvmlDevice_t, U *, void *))                        \
    F(nvmlDeviceGetMPSComputeRunningProcesses_v2, (nvmlDevice_t, U *, void *))                     \
    F(nvmlDeviceGetMPSComputeRunningProcesses_v3, (nvmlDevice_t, U *, void *))                     \
    F(nvmlDeviceGetRunningProcessDetailList, (nvmlDevice_t, nvmlProcessDetailList_v1_t *))         \
    F(nvmlDeviceGetConfComputeMemSizeInfo, (nvmlDevice_t, void *))                                 \
    F(nvmlDeviceGetMigMode, (nvmlDevice_t, U *, U *))                                              \
    F(nvmlDeviceSetMigMode, (nvmlDevice_t, U, nvmlReturn_t *))                                     \
    F(nvmlDeviceGetVirtualizationMode, (nvmlDevice_t, U *))                                        \
    F(nvmlDeviceGetGpuInstanceProfileInfo, (nvmlDevice_t, U, nvmlGpuInstanceProfileInfo_t *))      \
    F(nvmlDeviceGetGpuInstanceProfileInfoV, (nvmlDevice_t, U, void *))                             \
    F(nvmlDeviceGetGpuInstancePossiblePlacements,                                                  \
      (nvmlDevice_t, U, nvmlGpuInstancePlacement_t *, U *))                                        \
    F(nvmlDeviceGetGpuInstancePossiblePlacements_v2,                                               \
      (nvmlDevice_t, U, nvmlGpuInstancePlacement_t *, U *))                                        \
    F(nvmlDeviceCreateGpuInstanceWithPlacement,                                                    \
      (nvmlDevice_t, U, const nvmlGpuInstancePlacement_t *, nvmlGpuInstance_t *))                  \
    F(nvmlDeviceCreateGpuInstance, (nvmlDevice_t, U, nvmlGpuInstance_t *))                         \
    F(nvmlGpuInstanceDestroy, (nvmlGpuInstance_t))                                                 \
    F(nvmlDeviceGetGpuInstances, (nvmlDevice_t, U, nvmlGpuInstance_t *, U *))                      \
    F(nvmlDeviceGetGpuInstanceById, (nvmlDevice_t, U, nvmlGpuInstance_t *))                        \
    F(nvmlGpuInstanceGetInfo, (nvmlGpuInstance_t, nvmlGpuInstanceInfo_t *))                        \
    F(nvmlGpuInstanceGetComputeInstanceProfileInfo,                                                \
      (nvmlGpuInstance_t, U, U, nvmlComputeInstanceProfileInfo_t *))                               \
    F(nvmlGpuInstanceGetComputeInstanceProfileInfoV, (nvmlGpuInstance_t, U, U, void *))            \
    F(nvmlGpuInstanceCreateComputeInstance, (nvmlGpuInstance_t, U, nvmlComputeInstance_t *))       \
    F(nvmlGpuInstanceCreateComputeInstanceWithPlacement,                                           \
      (nvmlGpuInstance_t, U, const nvmlComputeInstancePlacement_t *, nvmlComputeInstance_t *))     \
    F(nvmlComputeInstanceDestroy, (nvmlComputeInstance_t))                                         \
    F(nvmlGpuInstanceGetComputeInstanceById, (nvmlGpuInstance_t, U, nvmlComputeInstance_t *))      \
    F(nvmlComputeInstanceGetInfo_v2, (nvmlComputeInstance_t, nvmlComputeInstanceInfo_t *))         \
    F(nvmlDeviceGetGpuInstanceId, (nvmlDevice_t, U *))                                             \
    F(nvmlDeviceGetComputeInstanceId, (nvmlDevice_t, U *))                                         \
    F(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t, U *))                                         \
    F(nvmlDeviceGetMigDeviceHandleByIndex, (nvmlDevice_t, U, nvmlDevice_t *))                      \
    F(nvmlGpmQueryDeviceSupport, (nvmlDevice_t, nvmlGpmSupport_t *))                               \
    F(nvmlGpmSampleAlloc, (nvmlGpmSample_t *))                                                     \
    F(nvmlGpmSampleFree, (nvmlGpmSample_t))                                                        \
    F(nvmlGpmMigSampleGet, (nvmlDevice_t, U, nvmlGpmSample_t))                                     \
    F(nvmlGpmMetricsGet, (nvmlGpmMetricsGet_t *))                                                  \
    F(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice_t, nvmlDevice_t, U *))                      \
    F(nvmlDeviceGetNvLinkState, (nvmlDevice_t, U, U *))                                            \
    F(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice_t, U, nvmlPciInfo_t *))                     \
    F(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice_t, U, U *))                                 \
    F(nvmlDeviceGetSupportedEventTypes, (nvmlDevice_t, ULL *))                                     \
    F(nvmlEventSetCreate, (nvmlEventSet_t *))                                                      \
    F(nvmlDeviceRegisterEvents, (nvmlDevice_t, ULL, nvmlEventSet_t))                               \
    F(nvmlEventSetWait, (nvmlEventSet_t, nvmlEventData_t *, U))                                    \
    F(nvmlEventSetWait_v2, (nvmlEventSet_t, nvmlEventData_t *, U))                                 \
    F(nvmlEventSetFree, (nvmlEventSet_t))

struct library {
    void *so; /* NULL: not open */
    const char *(*nvmlErrorString)(nvmlReturn_t);
#define DECLARE(name, arguments) nvmlReturn_t(*name) arguments;
    LIBRARY_REQUIRED(DECLARE)
    LIBRARY_OPTIONAL(DECLARE)
#undef DECLARE
};

#undef U
#undef ULL

/* Opens the library at `path` (NULL: "libnvidia-ml.so.1") and starts NVML. Codes: driver_open's. */
int library_open(struct library *lib, const char *path, const char *driver_root, struct err *e);
void library_close(struct library *lib);

/* NVML's words for a code, never NULL. */
const char *library_words(const struct library *lib, nvmlReturn_t code);

/* The negative errno that stands for it; -EIO for those that nobody tells apart. */
int library_errno(nvmlReturn_t code);

/* A structure's tag, or the whole function, is not known to this library: try the older one. */
bool library_try_older(nvmlReturn_t code);

#endif
