/*
 * cuda.h - the part of the CUDA driver API that the simulated libcuda.so.1
 * has, and what its files share.
 *
 * Names, types and codes are CUDA's (cuda.h of toolkit 12). Each exported
 * function is declared and defined by CUDA(name, arguments).
 *
 * The library is a guest of the simulated machine: a context registers the
 * process there (sim/process.h), with the memory it holds and the load its
 * kernels make, so that NVML lists it and an instance in use stays. A reboot,
 * a destroyed instance or a lost card end the context: its calls then fail.
 *
 * One lock, device_lock(), guards all of the library's state; functions that
 * end in _locked want it held.
 */
#ifndef DIVVY_SIM_CUDA_CUDA_H
#define DIVVY_SIM_CUDA_CUDA_H

#include "sim/lib/cuda/visible.h"
#include "sim/machine.h"
#include "sim/process.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct cuda_context *CUcontext;
typedef struct cuda_module *CUmodule;
typedef struct cuda_function *CUfunction;
typedef void *CUstream;
typedef struct {
    char bytes[16];
} CUuuid;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_UNKNOWN = 999,
};

#define CUDA(name, ...)                                                                            \
    __attribute__((visibility("default"))) CUresult name(__VA_ARGS__);                             \
    CUresult name(__VA_ARGS__)

struct device {
    struct visible_device place;
    const struct sim_board *board;
    struct sim_card card; /* as it was at cuInit */
    char uuid[48];        /* "MIG-..." or "GPU-..." */
    uint64_t total_bytes; /* what programs can have there */
};

void device_lock(void);
void device_unlock(void);
/* The machine, or NULL before cuInit. */
struct machine *device_machine(void);
uint32_t device_count(void);
/* NULL unless 0 <= ordinal < device_count(). */
struct device *device_at(CUdevice ordinal);
/* Boot number of the machine when cuInit ran. */
uint32_t device_boot(void);

/* CUDA's code for a negative code of sim_use_set. */
CUresult device_code(int rc);

/* The current context of this thread, alive; else the error that its calls get. */
CUresult context_current_locked(CUcontext *ret);
/* Which device it is on, and that it is one of ours. */
CUresult context_check_locked(CUcontext c);
/* Registers all contexts of the process with the machine as they are now. */
CUresult context_register_locked(void);
/* A kernel of so many nanoseconds is queued behind those that run. */
CUresult context_launch_locked(CUcontext c, uint64_t duration_ns);

#endif
