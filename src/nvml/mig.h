/*
 * mig.h - the NVML structures of MIG, GPM and vGPU. Included through
 * nvml/nvml.h.
 *
 * nvmlGpuInstanceProfileInfo v2 and v3 have the same size and other offsets:
 * a v3 tag read through the v2 structure gives garbage without an error.
 */
#ifndef DIVVY_NVML_MIG_H
#define DIVVY_NVML_MIG_H

#include "nvml/nvml.h"

/* Indexes (not ids) of GPU instance profiles. */
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE 0U
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE 1U
#define NVML_GPU_INSTANCE_PROFILE_3_SLICE 2U
#define NVML_GPU_INSTANCE_PROFILE_4_SLICE 3U
#define NVML_GPU_INSTANCE_PROFILE_7_SLICE 4U
#define NVML_GPU_INSTANCE_PROFILE_8_SLICE 5U
#define NVML_GPU_INSTANCE_PROFILE_6_SLICE 6U
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1 7U /* +me */
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1 8U
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2 9U /* double memory */
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX 10U
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX 11U
#define NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX 12U
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME 13U
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME 14U
#define NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME 15U
#define NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME 16U
#define NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX 17U
#define NVML_GPU_INSTANCE_PROFILE_COUNT 18U

/* Indexes of compute instance profiles; the engine profile is always SHARED. */
#define NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE 0U
#define NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE 1U
#define NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE 2U
#define NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE 3U
#define NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE 4U
#define NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE 5U
#define NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE 6U
#define NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 7U
#define NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE_NVL 8U
#define NVML_COMPUTE_INSTANCE_PROFILE_COUNT 9U
#define NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED 0U

/* capabilities of the v3 profile structures */
#define NVML_GPU_INSTANCE_PROFILE_CAPS_P2P 0x1U
#define NVML_GPU_INSTANCE_PROFILE_CAPS_GFX 0x2U

typedef unsigned int nvmlVgpuTypeId_t;
typedef unsigned int nvmlVgpuInstance_t;

typedef union {
    struct {
        unsigned int avgFactor;
        unsigned int timeslice;
    } vgpuSchedDataWithARR;
    struct {
        unsigned int timeslice;
    } vgpuSchedData;
} nvmlVgpuSchedulerParams_t;

typedef struct {
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    unsigned int gpuInstanceSliceCount;
    unsigned int computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;
NVML_SIZE(nvmlDeviceAttributes_t, 40);
NVML_AT(nvmlDeviceAttributes_t, memorySizeMB, 32);

typedef struct {
    unsigned int id;
    unsigned int isP2pSupported;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int copyEngineCount;
    unsigned int decoderCount;
    unsigned int encoderCount;
    unsigned int jpegCount;
    unsigned int ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;
NVML_SIZE(nvmlGpuInstanceProfileInfo_t, 48);
NVML_AT(nvmlGpuInstanceProfileInfo_t, memorySizeMB, 40);

typedef struct {
    unsigned int version;
    unsigned int id;
    unsigned int isP2pSupported;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int copyEngineCount;
    unsigned int decoderCount;
    unsigned int encoderCount;
    unsigned int jpegCount;
    unsigned int ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;
NVML_SIZE(nvmlGpuInstanceProfileInfo_v2_t, 152);
NVML_AT(nvmlGpuInstanceProfileInfo_v2_t, name, 56);

typedef struct {
    unsigned int version;
    unsigned int id;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int copyEngineCount;
    unsigned int decoderCount;
    unsigned int encoderCount;
    unsigned int jpegCount;
    unsigned int ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
    unsigned int capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;
NVML_SIZE(nvmlGpuInstanceProfileInfo_v3_t, 152);
NVML_AT(nvmlGpuInstanceProfileInfo_v3_t, capabilities, 144);

typedef struct {
    unsigned int start;
    unsigned int size;
} nvmlGpuInstancePlacement_t;
NVML_SIZE(nvmlGpuInstancePlacement_t, 8);
NVML_AT(nvmlGpuInstancePlacement_t, size, 4);

typedef struct {
    nvmlDevice_t device;
    unsigned int id;
    unsigned int profileId;
    nvmlGpuInstancePlacement_t placement;
} nvmlGpuInstanceInfo_t;
NVML_SIZE(nvmlGpuInstanceInfo_t, 24);
NVML_AT(nvmlGpuInstanceInfo_t, placement, 16);

typedef struct {
    unsigned int id;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;
NVML_SIZE(nvmlComputeInstanceProfileInfo_t, 36);
NVML_AT(nvmlComputeInstanceProfileInfo_t, sharedOfaCount, 32);

typedef struct {
    unsigned int version;
    unsigned int id;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;
NVML_SIZE(nvmlComputeInstanceProfileInfo_v2_t, 136);
NVML_AT(nvmlComputeInstanceProfileInfo_v2_t, name, 40);

typedef struct {
    unsigned int version;
    unsigned int id;
    unsigned int sliceCount;
    unsigned int instanceCount;
    unsigned int multiprocessorCount;
    unsigned int sharedCopyEngineCount;
    unsigned int sharedDecoderCount;
    unsigned int sharedEncoderCount;
    unsigned int sharedJpegCount;
    unsigned int sharedOfaCount;
    char name[96];
    unsigned int capabilities;
} nvmlComputeInstanceProfileInfo_v3_t;
NVML_SIZE(nvmlComputeInstanceProfileInfo_v3_t, 140);
NVML_AT(nvmlComputeInstanceProfileInfo_v3_t, capabilities, 136);

typedef struct {
    unsigned int start;
    unsigned int size;
} nvmlComputeInstancePlacement_t;
NVML_SIZE(nvmlComputeInstancePlacement_t, 8);
NVML_AT(nvmlComputeInstancePlacement_t, size, 4);

typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    unsigned int id;
    unsigned int profileId;
    nvmlComputeInstancePlacement_t placement;
} nvmlComputeInstanceInfo_t;
NVML_SIZE(nvmlComputeInstanceInfo_t, 32);
NVML_AT(nvmlComputeInstanceInfo_t, placement, 24);

/* Plain numbers, without the structure's size. */
#define NVML_GPM_SUPPORT_VERSION 1U
#define NVML_GPM_METRICS_GET_VERSION 1U
#define NVML_GPM_METRIC_GRAPHICS_UTIL 1U /* percent of the time in which anything ran */

typedef struct {
    unsigned int version;
    unsigned int isSupportedDevice;
} nvmlGpmSupport_t;
NVML_SIZE(nvmlGpmSupport_t, 8);
NVML_AT(nvmlGpmSupport_t, isSupportedDevice, 4);

typedef struct {
    unsigned int metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    struct {
        char *shortName;
        char *longName;
        char *unit;
    } metricInfo;
} nvmlGpmMetric_t;
NVML_SIZE(nvmlGpmMetric_t, 40);
NVML_AT(nvmlGpmMetric_t, metricInfo, 16);

typedef struct {
    unsigned int version;
    unsigned int numMetrics;
    nvmlGpmSample_t sample1;
    nvmlGpmSample_t sample2;
    nvmlGpmMetric_t metrics[333];
} nvmlGpmMetricsGet_t;
NVML_SIZE(nvmlGpmMetricsGet_t, 13344);
NVML_AT(nvmlGpmMetricsGet_t, metrics, 24);

typedef struct {
    unsigned int version;
    unsigned int vgpuCount;
    nvmlVgpuTypeId_t *vgpuTypeIds;
} nvmlVgpuTypeIdInfo_v1_t;
NVML_SIZE(nvmlVgpuTypeIdInfo_v1_t, 16);
NVML_AT(nvmlVgpuTypeIdInfo_v1_t, vgpuTypeIds, 8);

typedef struct {
    unsigned int version;
    unsigned int vgpuCount;
    nvmlVgpuInstance_t *vgpuInstances;
} nvmlActiveVgpuInstanceInfo_v1_t;
NVML_SIZE(nvmlActiveVgpuInstanceInfo_v1_t, 16);
NVML_AT(nvmlActiveVgpuInstanceInfo_v1_t, vgpuInstances, 8);

typedef struct {
    unsigned int version;
    nvmlVgpuTypeId_t vgpuTypeId;
    unsigned int maxInstancePerGI;
} nvmlVgpuTypeMaxInstance_v1_t;
NVML_SIZE(nvmlVgpuTypeMaxInstance_v1_t, 12);
NVML_AT(nvmlVgpuTypeMaxInstance_v1_t, maxInstancePerGI, 8);

typedef struct {
    unsigned int version;
    unsigned int placementSize;
    unsigned int count;
    unsigned int *placementIds;
    unsigned int mode;
} nvmlVgpuPlacementList_v2_t;
NVML_SIZE(nvmlVgpuPlacementList_v2_t, 32);
NVML_AT(nvmlVgpuPlacementList_v2_t, mode, 24);

typedef struct {
    unsigned int supportedSchedulers[3];
    unsigned int maxTimeslice;
    unsigned int minTimeslice;
    unsigned int isArrModeSupported;
    unsigned int maxFrequencyForARR;
    unsigned int minFrequencyForARR;
    unsigned int maxAvgFactorForARR;
    unsigned int minAvgFactorForARR;
} nvmlVgpuSchedulerCapabilities_t;
NVML_SIZE(nvmlVgpuSchedulerCapabilities_t, 40);
NVML_AT(nvmlVgpuSchedulerCapabilities_t, minAvgFactorForARR, 36);

typedef struct {
    unsigned int version;
    unsigned int engineId;
    unsigned int schedulerPolicy;
    unsigned int arrMode;
    nvmlVgpuSchedulerParams_t schedulerParams;
} nvmlVgpuSchedulerStateInfo_v1_t;
NVML_SIZE(nvmlVgpuSchedulerStateInfo_v1_t, 24);
NVML_AT(nvmlVgpuSchedulerStateInfo_v1_t, schedulerParams, 16);

typedef struct {
    unsigned int engineId;
    unsigned int schedulerPolicy;
    unsigned int avgFactor;
    unsigned int timeslice;
} nvmlVgpuSchedulerStateInfo_v2_t;
NVML_SIZE(nvmlVgpuSchedulerStateInfo_v2_t, 16);
NVML_AT(nvmlVgpuSchedulerStateInfo_v2_t, timeslice, 12);

typedef struct {
    unsigned int version;
    unsigned int mode;
} nvmlVgpuHeterogeneousMode_v1_t;
NVML_SIZE(nvmlVgpuHeterogeneousMode_v1_t, 8);

#endif
