/*
 * device.h - the NVML structures of cards: memory, processes, identity, links,
 * errors, events. Included through nvml/nvml.h.
 */
#ifndef DIVVY_NVML_DEVICE_H
#define DIVVY_NVML_DEVICE_H

#include "nvml/nvml.h"

typedef unsigned int nvmlTemperatureSensors_t;

typedef struct {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_t;
NVML_SIZE(nvmlMemory_t, 24);
NVML_AT(nvmlMemory_t, used, 16);

typedef struct {
    unsigned int version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
} nvmlMemory_v2_t;
NVML_SIZE(nvmlMemory_v2_t, 40);
NVML_AT(nvmlMemory_v2_t, used, 32);

typedef struct {
    unsigned long long bar1Total;
    unsigned long long bar1Free;
    unsigned long long bar1Used;
} nvmlBAR1Memory_t;
NVML_SIZE(nvmlBAR1Memory_t, 24);
NVML_AT(nvmlBAR1Memory_t, bar1Used, 16);

typedef struct {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;
NVML_SIZE(nvmlUtilization_t, 8);
NVML_AT(nvmlUtilization_t, memory, 4);

typedef struct {
    char busIdLegacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;
NVML_SIZE(nvmlPciInfo_t, 68);
NVML_AT(nvmlPciInfo_t, busId, 36);

typedef struct {
    unsigned int version;
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    unsigned int baseClass;
    unsigned int subClass;
    char busId[32];
} nvmlPciInfoExt_v1_t;
NVML_SIZE(nvmlPciInfoExt_v1_t, 64);
NVML_AT(nvmlPciInfoExt_v1_t, busId, 32);

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;
NVML_SIZE(nvmlProcessInfo_v1_t, 16);
NVML_AT(nvmlProcessInfo_v1_t, usedGpuMemory, 8);

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_v2_t;
NVML_SIZE(nvmlProcessInfo_v2_t, 24);
NVML_AT(nvmlProcessInfo_v2_t, computeInstanceId, 20);

typedef struct {
    unsigned int pid;
    unsigned long long usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;
NVML_SIZE(nvmlProcessDetail_v1_t, 32);
NVML_AT(nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory, 24);

typedef struct {
    unsigned int version;
    unsigned int mode;
    unsigned int numProcArrayEntries;
    nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_v1_t;
NVML_SIZE(nvmlProcessDetailList_v1_t, 24);
NVML_AT(nvmlProcessDetailList_v1_t, procArray, 16);

typedef struct {
    unsigned int pid;
    unsigned long long timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;
NVML_SIZE(nvmlProcessUtilizationSample_t, 32);
NVML_AT(nvmlProcessUtilizationSample_t, decUtil, 28);

typedef struct {
    unsigned long long timeStamp;
    unsigned int pid;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
    unsigned int jpgUtil;
    unsigned int ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;
NVML_SIZE(nvmlProcessUtilizationInfo_v1_t, 40);
NVML_AT(nvmlProcessUtilizationInfo_v1_t, ofaUtil, 32);

typedef struct {
    unsigned int version;
    unsigned int processSamplesCount;
    unsigned long long lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_v1_t;
NVML_SIZE(nvmlProcessesUtilizationInfo_v1_t, 24);
NVML_AT(nvmlProcessesUtilizationInfo_v1_t, procUtilArray, 16);

typedef struct {
    unsigned long long timeStamp;
    nvmlValue_t sampleValue;
} nvmlSample_t;
NVML_SIZE(nvmlSample_t, 16);
NVML_AT(nvmlSample_t, sampleValue, 8);

typedef struct {
    unsigned int fieldId;
    unsigned int scopeId;
    long long timestamp;
    long long latencyUsec;
    nvmlValueType_t valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;
NVML_SIZE(nvmlFieldValue_t, 40);
NVML_AT(nvmlFieldValue_t, value, 32);

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType;
    unsigned long long eventData;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlEventData_t;
NVML_SIZE(nvmlEventData_t, 32);
NVML_AT(nvmlEventData_t, computeInstanceId, 28);

typedef struct {
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned long long time;
    unsigned long long startTime;
    unsigned int isRunning;
    unsigned int reserved[5];
} nvmlAccountingStats_t;
NVML_SIZE(nvmlAccountingStats_t, 56);
NVML_AT(nvmlAccountingStats_t, reserved, 36);

typedef struct {
    unsigned int pid;
    unsigned int isRunning;
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    unsigned long long maxMemoryUsage;
    unsigned int sampleCount;
    unsigned long long sumGpuUtil;
    unsigned long long sumFbUtil;
    unsigned long long time;
    unsigned long long startTime;
} nvmlAccountingStats_v2_t;
NVML_SIZE(nvmlAccountingStats_v2_t, 64);
NVML_AT(nvmlAccountingStats_v2_t, startTime, 56);

typedef struct {
    unsigned int version;
    nvmlTemperatureSensors_t sensorType;
    int temperature;
} nvmlTemperature_v1_t;
NVML_SIZE(nvmlTemperature_v1_t, 12);
NVML_AT(nvmlTemperature_v1_t, temperature, 8);

typedef struct {
    unsigned int version;
    int marginTemperature;
} nvmlMarginTemperature_v1_t;
NVML_SIZE(nvmlMarginTemperature_v1_t, 8);
NVML_AT(nvmlMarginTemperature_v1_t, marginTemperature, 4);

typedef struct {
    unsigned int version;
    unsigned int type;
    union {
        char str[41];
        unsigned char bytes[16];
    } value;
} nvmlUUID_t;
NVML_SIZE(nvmlUUID_t, 52); /* type 1: text, 2: bytes */
NVML_AT(nvmlUUID_t, value, 8);

typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;
NVML_SIZE(nvmlGpuFabricInfo_t, 28);
NVML_AT(nvmlGpuFabricInfo_t, state, 24);

typedef struct {
    unsigned int version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned int cliqueId;
    unsigned char state;
    unsigned int healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfoV_t;
NVML_SIZE(nvmlGpuFabricInfoV_t, 40);
NVML_AT(nvmlGpuFabricInfoV_t, healthSummary, 36);

typedef struct {
    unsigned int isC2cEnabled;
} nvmlC2cModeInfo_v1_t;
NVML_SIZE(nvmlC2cModeInfo_v1_t, 4);

typedef struct {
    unsigned int version;
    unsigned int isNvleEnabled;
} nvmlNvLinkInfo_v1_t;
NVML_SIZE(nvmlNvLinkInfo_v1_t, 8);
NVML_AT(nvmlNvLinkInfo_v1_t, isNvleEnabled, 4);

typedef struct {
    unsigned int version;
    unsigned int capMask;
} nvmlDeviceCapabilities_v1_t;
NVML_SIZE(nvmlDeviceCapabilities_v1_t, 8);
NVML_AT(nvmlDeviceCapabilities_v1_t, capMask, 4);

typedef struct {
    unsigned int version;
    unsigned char ibGuid[16];
    unsigned char rackGuid[16];
    unsigned char chassisPhysicalSlotNumber;
    unsigned char computeSlotIndex;
    unsigned char nodeIndex;
    unsigned char peerType;
    unsigned char moduleId;
} nvmlPlatformInfo_v1_t;
NVML_SIZE(nvmlPlatformInfo_v1_t, 44);
NVML_AT(nvmlPlatformInfo_v1_t, moduleId, 40);

typedef struct {
    unsigned int version;
    unsigned char ibGuid[16];
    unsigned char chassisSerialNumber[16];
    unsigned char slotNumber;
    unsigned char trayIndex;
    unsigned char hostId;
    unsigned char peerType;
    unsigned char moduleId;
} nvmlPlatformInfo_v2_t;
NVML_SIZE(nvmlPlatformInfo_v2_t, 44);
NVML_AT(nvmlPlatformInfo_v2_t, moduleId, 40);

typedef struct {
    unsigned long long l1Cache;
    unsigned long long l2Cache;
    unsigned long long deviceMemory;
    unsigned long long registerFile;
} nvmlEccErrorCounts_t;
NVML_SIZE(nvmlEccErrorCounts_t, 32);
NVML_AT(nvmlEccErrorCounts_t, registerFile, 24);

typedef struct {
    unsigned int version;
    unsigned long long aggregateUncParity;
    unsigned long long aggregateUncSecDed;
    unsigned long long aggregateCor;
    unsigned long long volatileUncParity;
    unsigned long long volatileUncSecDed;
    unsigned long long volatileCor;
    unsigned long long aggregateUncBucketL2;
    unsigned long long aggregateUncBucketSm;
    unsigned long long aggregateUncBucketPcie;
    unsigned long long aggregateUncBucketMcu;
    unsigned long long aggregateUncBucketOther;
    unsigned int bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
NVML_SIZE(nvmlEccSramErrorStatus_v1_t, 104);
NVML_AT(nvmlEccSramErrorStatus_v1_t, bThresholdExceeded, 96);

typedef struct {
    unsigned int max;
    unsigned int high;
    unsigned int partial;
    unsigned int low;
    unsigned int none;
} nvmlRowRemapperHistogramValues_t;
NVML_SIZE(nvmlRowRemapperHistogramValues_t, 20);
NVML_AT(nvmlRowRemapperHistogramValues_t, none, 16);

typedef struct {
    unsigned int corrActiveRemaps;
    unsigned int corrInactiveRemaps;
    unsigned int uncActiveRemaps;
    unsigned int uncInactiveRemaps;
    unsigned int bPending;
    unsigned int bFailureOccurred;
} nvmlRemappedRowsInfo_v2_t;
NVML_SIZE(nvmlRemappedRowsInfo_v2_t, 24);
NVML_AT(nvmlRemappedRowsInfo_v2_t, bFailureOccurred, 20);

typedef struct {
    unsigned long long referenceTime;
    unsigned long long violationTime;
} nvmlViolationTime_t;
NVML_SIZE(nvmlViolationTime_t, 16);
NVML_AT(nvmlViolationTime_t, violationTime, 8);

typedef struct {
    unsigned int version;
    char branch[80];
} nvmlSystemDriverBranchInfo_v1_t;
NVML_SIZE(nvmlSystemDriverBranchInfo_v1_t, 84);
NVML_AT(nvmlSystemDriverBranchInfo_v1_t, branch, 4);

typedef struct {
    unsigned int version;
    nvmlSystemEventSet_t set;
} nvmlSystemEventSetCreateRequest_v1_t;
NVML_SIZE(nvmlSystemEventSetCreateRequest_v1_t, 16);
NVML_AT(nvmlSystemEventSetCreateRequest_v1_t, set, 8);

typedef struct {
    nvmlPciInfo_t pciInfo;
    char uuid[80];
} nvmlExcludedDeviceInfo_t;
NVML_SIZE(nvmlExcludedDeviceInfo_t, 148);

typedef struct {
    unsigned int version;
    unsigned char powerScope;
    unsigned int powerValueMw;
} nvmlPowerValue_v2_t;
NVML_SIZE(nvmlPowerValue_v2_t, 12);

typedef struct {
    unsigned int version;
    unsigned long long value;
} nvmlPdi_v1_t;
NVML_SIZE(nvmlPdi_v1_t, 16);

typedef struct {
    unsigned int version;
    unsigned int bChannelRepairPending;
    unsigned int bTpcRepairPending;
} nvmlRepairStatus_v1_t;
NVML_SIZE(nvmlRepairStatus_v1_t, 12);

typedef struct {
    unsigned int version;
    nvmlSystemEventSet_t set;
} nvmlSystemEventSetFreeRequest_v1_t;
NVML_SIZE(nvmlSystemEventSetFreeRequest_v1_t, 16);

typedef struct {
    unsigned int version;
    unsigned long long eventTypes;
    nvmlSystemEventSet_t set;
} nvmlSystemRegisterEventRequest_v1_t;
NVML_SIZE(nvmlSystemRegisterEventRequest_v1_t, 24);

typedef struct {
    unsigned long long eventType;
    unsigned int gpuId;
} nvmlSystemEventData_v1_t;
NVML_SIZE(nvmlSystemEventData_v1_t, 16);

typedef struct {
    unsigned int version;
    unsigned int timeoutms;
    nvmlSystemEventSet_t set;
    nvmlSystemEventData_v1_t *data;
    unsigned int dataSize;
    unsigned int numEvent;
} nvmlSystemEventSetWaitRequest_v1_t;
NVML_SIZE(nvmlSystemEventSetWaitRequest_v1_t, 32);

#endif
