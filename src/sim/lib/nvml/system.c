/* The library itself, the driver's versions, and finding cards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sim/lib/nvml/access.h"
#include "sim/lib/nvml/core.h"

NVML(nvmlInitWithFlags, unsigned int flags)
{
    const unsigned int known =
        NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH | NVML_INIT_FLAG_FORCE_INIT;
    return flags & ~known ? NVML_ERROR_INVALID_ARGUMENT : core_init();
}

NVML(nvmlInit_v2, void)
{
    return core_init();
}
NVML_ALSO(nvmlInit_v2, nvmlInit);

NVML(nvmlShutdown, void)
{
    return core_shutdown();
}

static const struct {
    nvmlReturn_t code;
    const char *text;
} error_texts[] = {
    { NVML_SUCCESS, "Success" },
    { NVML_ERROR_UNINITIALIZED, "Uninitialized" },
    { NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument" },
    { NVML_ERROR_NOT_SUPPORTED, "Not Supported" },
    { NVML_ERROR_NO_PERMISSION, "Insufficient Permissions" },
    { NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized" },
    { NVML_ERROR_NOT_FOUND, "Not Found" },
    { NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size" },
    { NVML_ERROR_INSUFFICIENT_POWER, "Insufficient External Power" },
    { NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded" },
    { NVML_ERROR_TIMEOUT, "Timeout" },
    { NVML_ERROR_IRQ_ISSUE, "Interrupt Request Issue" },
    { NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found" },
    { NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found" },
    { NVML_ERROR_CORRUPTED_INFOROM, "Corrupted infoROM" },
    { NVML_ERROR_GPU_IS_LOST, "GPU is lost" },
    { NVML_ERROR_RESET_REQUIRED, "GPU requires reset" },
    { NVML_ERROR_OPERATING_SYSTEM, "GPU access blocked by the operating system" },
    { NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch" },
    { NVML_ERROR_IN_USE, "In use by another client" },
    { NVML_ERROR_MEMORY, "Insufficient Memory" },
    { NVML_ERROR_NO_DATA, "No Data" },
    { NVML_ERROR_VGPU_ECC_NOT_SUPPORTED, "The requested vgpu operation needs ECC off" },
    { NVML_ERROR_INSUFFICIENT_RESOURCES, "Insufficient Resources" },
    { NVML_ERROR_FREQ_NOT_SUPPORTED, "Frequency not supported" },
    { NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch" },
    { NVML_ERROR_DEPRECATED, "Deprecated" },
    { NVML_ERROR_NOT_READY, "Not ready" },
    { NVML_ERROR_GPU_NOT_FOUND, "No GPUs found" },
    { NVML_ERROR_INVALID_STATE, "Invalid state" },
    { NVML_ERROR_RESET_TYPE_NOT_SUPPORTED, "Reset type not supported" },
};

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t code);
const char *nvmlErrorString(nvmlReturn_t code)
{
    for (size_t i = 0; i < sizeof error_texts / sizeof error_texts[0]; i++)
        if (error_texts[i].code == code)
            return error_texts[i].text;
    return "Unknown Error";
}

/* A copy of the state, to be freed; NULL when uninitialised. */
static struct sim_state *state_now(void)
{
    struct machine *m = core_machine();
    struct sim_state *st = m ? mem_new(sizeof *st) : NULL;
    if (st)
        machine_read(m, st);
    return st;
}

NVML(nvmlSystemGetDriverVersion, char *version, unsigned int length)
{
    auto_free struct sim_state *st = state_now();
    return st ? give_text(st->driver_version, version, length) : NVML_ERROR_UNINITIALIZED;
}

/* "12." and the driver's version, as the real one's. */
NVML(nvmlSystemGetNVMLVersion, char *version, unsigned int length)
{
    auto_free struct sim_state *st = state_now();
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    char text[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE];
    (void)snprintf(text, sizeof text, "%u.%s", st->cuda_version / 1000,
                   st->driver_version); /* fits: 40 + 5 */
    return give_text(text, version, length);
}

NVML(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
    auto_free struct sim_state *st = state_now();
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    *version = (int)st->cuda_version;
    return NVML_SUCCESS;
}
NVML_ALSO(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion);

NVML(nvmlSystemGetDriverBranch, nvmlSystemDriverBranchInfo_v1_t *info, unsigned int length)
{
    auto_free struct sim_state *st = state_now();
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    if (!info || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_TAG(nvmlSystemDriverBranchInfo_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    char text[32];
    (void)snprintf(text, sizeof text, "r%u_00", sim_branch(st)); /* fits */
    return give_text(text, info->branch,
                     length < sizeof info->branch ? length : (unsigned int)sizeof info->branch);
}

NVML(nvmlSystemGetProcessName, unsigned int pid, char *name, unsigned int length)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!name || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    char path[48];
    (void)snprintf(path, sizeof path, "/proc/%u/cmdline", pid); /* fits */
    auto_file FILE *f = fopen(path, "re");
    if (!f)
        return NVML_ERROR_NOT_FOUND;
    /* Cut where it does not fit: the real one does, and clients count on it. */
    size_t n = fread(name, 1, length - 1, f);
    name[n] = '\0';
    return name[0] ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

NVML(nvmlDeviceGetCount_v2, unsigned int *count)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = machine_card_count(m);
    return NVML_SUCCESS;
}
/* The card's own faults speak first, then whether its node may be opened. */
static nvmlReturn_t attach(uint32_t ordinal, nvmlDevice_t *ret)
{
    struct view v;
    nvmlReturn_t rc = view_any(handle_card(ordinal), &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!access_card(v.machine, v.card.minor))
        return NVML_ERROR_NO_PERMISSION;
    *ret = handle_card(ordinal);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex_v2, unsigned int index, nvmlDevice_t *device)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!device || index >= machine_card_count(m))
        return NVML_ERROR_INVALID_ARGUMENT;
    return attach(index, device);
}

/* Version 1 leaves out the cards that the caller may not open; its indexes skip them. */
static bool is_open(const struct machine *m, uint32_t ordinal)
{
    struct sim_card c;
    machine_card(m, ordinal, &c);
    return access_card(m, c.minor);
}

NVML(nvmlDeviceGetCount, unsigned int *count)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (uint32_t i = 0; i < machine_card_count(m); i++)
        *count += is_open(m, i);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetHandleByIndex, unsigned int index, nvmlDevice_t *device)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    for (uint32_t i = 0; device && i < machine_card_count(m); i++)
        if (is_open(m, i) && index-- == 0)
            return attach(i, device);
    return NVML_ERROR_INVALID_ARGUMENT;
}

/* Reads hexadecimal digits up to `stop`; NULL when there are none. */
static const char *hex_until(const char *text, char stop, unsigned int *ret)
{
    size_t digits = strspn(text, "0123456789abcdefABCDEF");
    if (digits == 0 || digits > 8 || text[digits] != stop)
        return NULL;
    *ret = (unsigned int)strtoul(text, NULL, 16);
    return text + digits + (stop != '\0');
}

/* "00000000:07:00.0", "0000:07:00.0" or "07:00.0". */
static bool parse_pci(const char *text, unsigned int *domain, unsigned int *bus, unsigned int *dev)
{
    unsigned int function;
    *domain = 0;
    if (strchr(text, ':') != strrchr(text, ':'))
        text = hex_until(text, ':', domain);
    text = text ? hex_until(text, ':', bus) : NULL;
    text = text ? hex_until(text, '.', dev) : NULL;
    return text && hex_until(text, '\0', &function) && function == 0;
}

NVML(nvmlDeviceGetHandleByPciBusId_v2, const char *pci_bus_id, nvmlDevice_t *device)
{
    auto_free struct sim_state *st = state_now();
    unsigned int domain, bus, dev;
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    if (!pci_bus_id || !device || !parse_pci(pci_bus_id, &domain, &bus, &dev))
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < st->card_count; i++)
        if (st->cards[i].pci_domain == domain && st->cards[i].pci_bus == bus &&
            st->cards[i].pci_device == dev)
            return attach(i, device);
    return NVML_ERROR_NOT_FOUND;
}
NVML_ALSO(nvmlDeviceGetHandleByPciBusId_v2, nvmlDeviceGetHandleByPciBusId);

NVML(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
{
    auto_free struct sim_state *st = state_now();
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    if (!serial || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < st->card_count; i++)
        if (strcmp(st->cards[i].serial, serial) == 0)
            return attach(i, device);
    return NVML_ERROR_NOT_FOUND;
}

static bool find_mig(const struct sim_card *c, const char *uuid, uint32_t *ret_gi, uint32_t *ret_ci)
{
    char text[48];
    for (uint32_t i = 0; mig_device_at(c, i, ret_gi, ret_ci); i++) {
        sim_mig_uuid(c, *ret_gi, *ret_ci, text);
        if (strcasecmp(text, uuid) == 0)
            return true;
    }
    return false;
}

static nvmlReturn_t attach_mig(uint32_t ordinal, uint32_t gi, uint32_t ci, nvmlDevice_t *ret)
{
    struct view v;
    nvmlReturn_t rc = view_any(handle_card(ordinal), &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!v.card.gi[gi].ci[ci].used || !access_mig(v.machine, v.card.minor, gi, ci))
        return NVML_ERROR_NOT_FOUND;
    *ret = handle_mig(&v, gi, ci);
    return NVML_SUCCESS;
}

/* "MIG-GPU-<uuid>/<gi>/<ci>", as drivers before 470 wrote. */
static bool parse_old_mig(const char *uuid, char ret_gpu[48], uint32_t *ret_gi, uint32_t *ret_ci)
{
    const char *slash = strchr(uuid, '/');
    char *end;
    if (strncmp(uuid, "MIG-GPU-", 8) != 0 || !slash || slash - uuid >= 48 + 4)
        return false;
    (void)snprintf(ret_gpu, 48, "%.*s", (int)(slash - uuid - 4), uuid + 4); /* fits */
    *ret_gi = (uint32_t)strtoul(slash + 1, &end, 10);
    if (*end != '/')
        return false;
    *ret_ci = (uint32_t)strtoul(end + 1, &end, 10);
    return *end == '\0' && *ret_gi < SIM_GI_MAX && *ret_ci < SIM_CI_MAX;
}

static nvmlReturn_t by_uuid(const struct sim_state *st, const char *uuid, nvmlDevice_t *ret)
{
    char gpu[48];
    uint32_t gi, ci;
    bool old = parse_old_mig(uuid, gpu, &gi, &ci);
    for (uint32_t i = 0; i < st->card_count; i++) {
        const struct sim_card *c = &st->cards[i];
        if (strcasecmp(c->uuid, uuid) == 0) {
            nvmlReturn_t rc = attach(i, ret);
            /* Not among this call's documented codes: a closed card is just not there. */
            return rc == NVML_ERROR_NO_PERMISSION ? NVML_ERROR_NOT_FOUND : rc;
        }
        if (old ? strcasecmp(c->uuid, gpu) == 0 : find_mig(c, uuid, &gi, &ci))
            return attach_mig(i, gi, ci, ret);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
    auto_free struct sim_state *st = state_now();
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    return by_uuid(st, uuid, device);
}

static void binary_uuid(const char *kind, const unsigned char *b, char ret_text[48])
{
    (void)snprintf(ret_text, 48, /* 40 characters */
                   "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", kind,
                   b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                   b[13], b[14], b[15]);
}

NVML(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    auto_free struct sim_state *st = state_now();
    if (!st)
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != NVML_TAG(nvmlUUID_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == 1)
        return by_uuid(st, uuid->value.str, device);
    if (uuid->type != 2)
        return NVML_ERROR_INVALID_ARGUMENT;
    char text[48];
    binary_uuid("GPU", uuid->value.bytes, text);
    nvmlReturn_t rc = by_uuid(st, text, device);
    if (rc == NVML_ERROR_NOT_FOUND) {
        binary_uuid("MIG", uuid->value.bytes, text);
        rc = by_uuid(st, text, device);
    }
    return rc;
}

NVML(nvmlGetExcludedDeviceCount, unsigned int *count)
{
    if (!core_machine())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0; /* the simulated driver excludes none */
    return NVML_SUCCESS;
}
NVML_ALSO(nvmlGetExcludedDeviceCount, nvmlGetBlacklistDeviceCount);

NVML(nvmlGetExcludedDeviceInfoByIndex, unsigned int index, nvmlExcludedDeviceInfo_t *info)
{
    (void)index; /* there is none */
    (void)info;
    return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
}
NVML_ALSO(nvmlGetExcludedDeviceInfoByIndex, nvmlGetBlacklistDeviceInfoByIndex);
