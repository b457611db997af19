/*
 * The internal table that nvidia-smi asks for. It holds functions by position
 * without names; what tells them apart is the slot. Facts: NVIDIA's own mock
 * in k8s-test-infra (Apache-2.0) and nvidia-smi 535 run against this library.
 *
 * A slot without a meaning of its own says SUCCESS; when its first argument is
 * one of our device handles and the second is a pointer it also stores a
 * 32-bit 0 there (a count that was left at the caller's capacity would have
 * nvidia-smi walk an array that nobody filled). No other slot writes: the
 * later registers of a two-argument call hold rubbish.
 */
#include <string.h>

#include "sim/lib/nvml/processes.h"

#define SLOTS 256
#define TABLE_BYTES 0x1000 /* what slot 0 says the table's size is */

#define SLOT_HANDLE_BY_INDEX 81
#define SLOT_COMPUTE 213
#define SLOT_MPS 214
#define SLOT_GRAPHICS 215
#define SLOT_HOST_PCIE_GEN 230

/* One row of nvidia-smi's process list, at a stride of 4128 bytes. */
struct process_row {
    unsigned int pid;
    unsigned long long memory_bytes;
    unsigned int gi;
    unsigned int ci;
    unsigned long long protected_bytes;
    char name[4096]; /* must be filled: a row without a name is dropped */
};
NVML_SIZE(struct process_row, 4128);
NVML_AT(struct process_row, name, 32);

__attribute__((visibility("default"))) nvmlReturn_t
nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device);
__attribute__((visibility("default"))) nvmlReturn_t
nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int *generation);

static nvmlReturn_t slot_processes(nvmlDevice_t device, enum sim_use_kind kind, unsigned int *count,
                                   struct process_row *rows)
{
    struct listed_process now[LISTED_PROCESSES_MAX];
    unsigned int n = 0;
    nvmlReturn_t rc = list_processes(device, kind, now, LISTED_PROCESSES_MAX, &n);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    n = n < LISTED_PROCESSES_MAX ? n : LISTED_PROCESSES_MAX;
    unsigned int room = *count;
    *count = n;
    if (n > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; rows && i < n; i++) {
        rows[i] = (struct process_row){
            .pid = now[i].pid, .memory_bytes = now[i].memory_bytes, .gi = now[i].gi, .ci = now[i].ci
        };
        memcpy(rows[i].name, now[i].name, sizeof now[i].name);
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t slot_other(void *first, unsigned int *second)
{
    if (handle_is_device(first) && second)
        *second = 0;
    return NVML_SUCCESS;
}

static nvmlReturn_t slot_called(int slot, void *a, void *b, void *c, void *d)
{
    (void)d; /* four registers are passed, three have a meaning */
    switch (slot) {
    case SLOT_HANDLE_BY_INDEX:
        return nvmlDeviceGetHandleByIndex_v2((unsigned int)(uintptr_t)a, b);
    case SLOT_COMPUTE:
        return slot_processes(a, SIM_USE_COMPUTE, b, c);
    case SLOT_MPS:
        return slot_processes(a, SIM_USE_MPS, b, c);
    case SLOT_GRAPHICS:
        return slot_processes(a, SIM_USE_GRAPHICS, b, c);
    case SLOT_HOST_PCIE_GEN:
        return nvmlDeviceGetMaxPcieLinkGeneration(a, b);
    default:
        return slot_other(a, b);
    }
}

typedef nvmlReturn_t (*slot_fn)(void *, void *, void *, void *);

#define SLOT(n)                                                                                    \
    static nvmlReturn_t slot_##n(void *a, void *b, void *c, void *d)                               \
    {                                                                                              \
        return slot_called(n, a, b, c, d);                                                         \
    }
#include "sim/lib/nvml/slots.h"
#undef SLOT

static const union {
    slot_fn fn;
    uintptr_t size;
} table[SLOTS] = {
    [0] = { .size = TABLE_BYTES },
#define SLOT(n) [n] = { .fn = slot_##n },
#include "sim/lib/nvml/slots.h"
#undef SLOT
};

__attribute__((visibility("default"))) nvmlReturn_t
nvmlInternalGetExportTable(const void **ret_table, const void *guid);
nvmlReturn_t nvmlInternalGetExportTable(const void **ret_table, const void *guid)
{
    /* 6c3efec4-8fc9-4e6c-a327-ee696e12f7c4 */
    static const unsigned char known[16] = { 0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
                                             0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4 };
    if (!ret_table || !guid)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memcmp(guid, known, sizeof known) != 0)
        return NVML_ERROR_NOT_FOUND;
    *ret_table = table;
    return NVML_SUCCESS;
}
