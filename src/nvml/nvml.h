/*
 * nvml.h - the NVML ABI: structures, codes and version tags. No code.
 *
 * Both sides of the line include this file: src/driver, which calls a
 * libnvidia-ml.so.1 it found at run time, and src/sim, which is one. No NVIDIA
 * header is needed to build. Names are the field's own, so that every manual
 * and every forum post applies; sizes and offsets are x86-64 facts, asserted
 * here.
 *
 * Three things to know before using it:
 *  - The unsuffixed symbol of the library is the version-1 ABI
 *    (nvmlDeviceGetComputeRunningProcesses takes nvmlProcessInfo_v1_t).
 *    Always look up the exact suffixed name.
 *  - A versioned structure starts with its tag, NVML_TAG(type, version):
 *    the library compares all 32 bits. Answers to a wrong tag are
 *    INVALID_ARGUMENT, FUNCTION_NOT_FOUND or ARGUMENT_VERSION_MISMATCH,
 *    depending on function and branch.
 *  - A GPU instance profile has an id (19, 14, 9: what nvidia-smi prints and
 *    what every call but one takes) and an index (NVML_GPU_INSTANCE_PROFILE_*,
 *    only for nvmlDeviceGetGpuInstanceProfileInfo[V]). They differ.
 *
 * nvml/device.h has the structures of cards, nvml/mig.h those of MIG, GPM and
 * vGPU.
 */
#ifndef DIVVY_NVML_NVML_H
#define DIVVY_NVML_NVML_H

#include <assert.h>
#include <stddef.h>

#define NVML_SIZE(type, bytes)                                                                     \
    _Static_assert(sizeof(type) == (bytes), #type " has another size than the library's")
#define NVML_AT(type, field, offset)                                                               \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field " lies elsewhere")

/* The tag of a versioned structure, as its `version` field wants it. */
#define NVML_TAG(type, ver) ((unsigned int)(sizeof(type) | ((unsigned int)(ver) << 24)))

/* Opaque to clients; a MIG device is an nvmlDevice_t too. */
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlGpuInstance_st *nvmlGpuInstance_t;
typedef struct nvmlComputeInstance_st *nvmlComputeInstance_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct nvmlSystemEventSet_st *nvmlSystemEventSet_t;
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;
typedef struct nvmlUnit_st *nvmlUnit_t;

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_ALREADY_INITIALIZED = 5,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_OPERATING_SYSTEM = 17,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_DEPRECATED = 26,
    NVML_ERROR_NOT_READY = 27,
    NVML_ERROR_GPU_NOT_FOUND = 28,
    NVML_ERROR_INVALID_STATE = 29,
    NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef enum { NVML_FEATURE_DISABLED = 0, NVML_FEATURE_ENABLED = 1 } nvmlEnableState_t;

/* nvmlGpuVirtualizationMode_t, as far as a guest can tell. */
#define NVML_GPU_VIRTUALIZATION_MODE_NONE 0u
#define NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH 1u
#define NVML_GPU_VIRTUALIZATION_MODE_VGPU 2u

typedef enum {
    NVML_VALUE_TYPE_DOUBLE = 0,
    NVML_VALUE_TYPE_UNSIGNED_INT = 1,
    NVML_VALUE_TYPE_UNSIGNED_LONG = 2,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
    NVML_VALUE_TYPE_SIGNED_LONG_LONG = 4,
    NVML_VALUE_TYPE_SIGNED_INT = 5,
    NVML_VALUE_TYPE_UNSIGNED_SHORT = 6,
} nvmlValueType_t;

typedef union {
    double dVal;
    int siVal;
    unsigned int uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
    unsigned short usVal;
} nvmlValue_t;

/* Flags of nvmlInitWithFlags. */
#define NVML_INIT_FLAG_NO_GPUS 1U
#define NVML_INIT_FLAG_NO_ATTACH 2U
#define NVML_INIT_FLAG_FORCE_INIT 4U

/* Buffer sizes, in bytes with the NUL. A smaller one is INSUFFICIENT_SIZE when it does not do. */
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96U
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96U
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30U
#define NVML_DEVICE_PART_NUMBER_BUFFER_SIZE 80U
#define NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE 32U
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80U
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80U

/* A 64-bit value, an instance id, that is not known or does not apply. */
#define NVML_VALUE_NOT_AVAILABLE (~0ULL)
#define NVML_NO_INSTANCE 0xFFFFFFFFU

/* nvmlDeviceGetArchitecture */
#define NVML_DEVICE_ARCH_KEPLER 2U
#define NVML_DEVICE_ARCH_MAXWELL 3U
#define NVML_DEVICE_ARCH_PASCAL 4U
#define NVML_DEVICE_ARCH_VOLTA 5U
#define NVML_DEVICE_ARCH_TURING 6U
#define NVML_DEVICE_ARCH_AMPERE 7U
#define NVML_DEVICE_ARCH_ADA 8U
#define NVML_DEVICE_ARCH_HOPPER 9U
#define NVML_DEVICE_ARCH_BLACKWELL 10U
#define NVML_DEVICE_ARCH_UNKNOWN 0xFFFFFFFFU

#define NVML_DEVICE_MIG_DISABLE 0U
#define NVML_DEVICE_MIG_ENABLE 1U

#define NVML_COMPUTEMODE_DEFAULT 0U
#define NVML_COMPUTEMODE_PROHIBITED 2U
#define NVML_COMPUTEMODE_EXCLUSIVE_PROCESS 3U

#define NVML_TEMPERATURE_GPU 0U
#define NVML_TEMPERATURE_THRESHOLD_SHUTDOWN 0U
#define NVML_TEMPERATURE_THRESHOLD_SLOWDOWN 1U
#define NVML_TEMPERATURE_THRESHOLD_MEM_MAX 2U
#define NVML_TEMPERATURE_THRESHOLD_GPU_MAX 3U

#define NVML_CLOCK_GRAPHICS 0U
#define NVML_CLOCK_SM 1U
#define NVML_CLOCK_MEM 2U
#define NVML_CLOCK_VIDEO 3U

/* nvmlProcessDetailList_v1_t.mode */
#define NVML_PROCESS_MODE_COMPUTE 0U
#define NVML_PROCESS_MODE_GRAPHICS 1U
#define NVML_PROCESS_MODE_MPS 2U

/* Event types. Register the AND of these with nvmlDeviceGetSupportedEventTypes. */
#define nvmlEventTypeSingleBitEccError 0x1ULL
#define nvmlEventTypeDoubleBitEccError 0x2ULL
#define nvmlEventTypePState 0x4ULL
#define nvmlEventTypeXidCriticalError 0x8ULL
#define nvmlEventTypeClock 0x10ULL
#define nvmlEventTypePowerSourceChange 0x80ULL
#define nvmlEventMigConfigChange 0x100ULL
#define nvmlEventTypeSingleBitEccErrorStorm 0x200ULL
#define nvmlEventTypeDramRetirementEvent 0x400ULL
#define nvmlEventTypeDramRetirementFailure 0x800ULL
#define nvmlEventTypeNonFatalPoisonError 0x1000ULL
#define nvmlEventTypeFatalPoisonError 0x2000ULL
#define nvmlEventTypeGpuUnavailableError 0x4000ULL
#define nvmlEventTypeGpuRecoveryAction 0x8000ULL

/* Field ids of nvmlDeviceGetFieldValues. */
#define NVML_FI_DEV_MEMORY_TEMP 82U
#define NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION 83U
#define NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX 138U
#define NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX 139U
#define NVML_FI_DEV_REMAPPED_COR 142U
#define NVML_FI_DEV_REMAPPED_UNC 143U
#define NVML_FI_DEV_REMAPPED_PENDING 144U
#define NVML_FI_DEV_REMAPPED_FAILURE 145U
#define NVML_FI_DEV_NVLINK_GET_SPEED 164U
#define NVML_FI_DEV_NVLINK_GET_STATE 165U
#define NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED 184U
#define NVML_FI_DEV_POWER_AVERAGE 185U
#define NVML_FI_DEV_POWER_INSTANT 186U
#define NVML_FI_DEV_POWER_MIN_LIMIT 187U
#define NVML_FI_DEV_POWER_MAX_LIMIT 188U
#define NVML_FI_DEV_POWER_DEFAULT_LIMIT 189U
#define NVML_FI_DEV_POWER_CURRENT_LIMIT 190U
#define NVML_FI_DEV_POWER_REQUESTED_LIMIT 192U
#define NVML_FI_DEV_PCIE_COUNT_TX_BYTES 197U
#define NVML_FI_DEV_PCIE_COUNT_RX_BYTES 198U
#define NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE 199U
#define NVML_FI_DEV_GET_GPU_RECOVERY_ACTION 230U

/* scopeId of the power fields. */
#define NVML_POWER_SCOPE_GPU 0U
#define NVML_POWER_SCOPE_MODULE 1U

#include "nvml/device.h"
#include "nvml/mig.h"

#endif
