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
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/lib/nvml/processes.h"

#define SLOTS 256
#define TABLE_BYTES 0x1000 /* what slot 0 says the table's size is */

/* A second argument below this is a number (slot 165), not a place to write to. */
#define SMALLEST_ADDRESS 0x10000

#define SLOT_CONTROL 32 /* (device, number of a control call, parameters, their size) */
#define SLOT_HANDLE_BY_INDEX 81
#define SLOT_POWER_LIMIT 108
#define SLOT_RESET 168
#define SLOT_NO_ARGUMENT 197 /* a device and nothing else */
#define SLOT_VOLTAGE 209     /* 0 would be shown as a measurement; so the next two */
#define SLOT_COMPUTE 213
#define SLOT_MPS 214
#define SLOT_GRAPHICS 215
#define SLOT_HOST_PCIE_GEN 230
#define SLOT_TEMPERATURE_MARGIN 240
#define SLOT_NUMA_NODE 241

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

__attribute__((visibility("default"))) nvmlReturn_t
nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int *milliwatts);

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

/* nvidia-smi -r: (how many, their handles, …). One that cannot be reset ends it. */
static nvmlReturn_t slot_reset(uintptr_t count, const nvmlDevice_t *devices)
{
    if (count > SIM_CARDS_MAX || !devices)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uintptr_t i = 0; i < count; i++) {
        struct view v;
        AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
        nvmlReturn_t rc = view_card(devices[i], &v);
        if (rc == NVML_SUCCESS)
            rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
        if (rc == NVML_SUCCESS)
            rc =
                code_of(sim_card_reset(edit.state, v.ordinal, sim_card_busy(v.machine, v.ordinal)));
        if (rc != NVML_SUCCESS)
            return rc;
        (void)core_commit(v.machine, &edit); /* cannot fail */
    }
    return NVML_SUCCESS;
}

/*
 * A slot that takes one argument leaves rubbish in the second register. Through
 * the kernel an address that is not mapped is an error and no crash.
 */
static void store_zero(unsigned int *where)
{
    unsigned int zero = 0;
    struct iovec from = { .iov_base = &zero, .iov_len = sizeof zero };
    struct iovec to = { .iov_base = where, .iov_len = sizeof zero };
    if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0 && errno != EFAULT)
        *where = 0; /* the call is forbidden here */
}

static nvmlReturn_t slot_other(void *first, unsigned int *second)
{
    if (!handle_is_device(first) || !second)
        return NVML_SUCCESS;
    if ((uintptr_t)second < SMALLEST_ADDRESS)
        return NVML_ERROR_NOT_SUPPORTED;
    store_zero(second);
    return NVML_SUCCESS;
}

static nvmlReturn_t slot_called(int slot, void *a, void *b, void *c, void *d)
{
    (void)d; /* four registers are passed, three have a meaning */
    switch (slot) {
    case SLOT_CONTROL:
    case SLOT_VOLTAGE:
    case SLOT_TEMPERATURE_MARGIN:
    case SLOT_NUMA_NODE:
        return NVML_ERROR_NOT_SUPPORTED;
    case SLOT_NO_ARGUMENT:
        return NVML_SUCCESS;
    case SLOT_POWER_LIMIT:
        return nvmlDeviceGetPowerManagementLimit(a, b);
    case SLOT_RESET:
        return slot_reset((uintptr_t)a, b);
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
