/* Who a card is: names, ids, PCI address, architecture; and how cards lie to each other. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/lib/nvml/access.h"
#include "sim/lib/nvml/core.h"

NVML(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned int length)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!v.is_mig)
        return give_text(v.board->name, name, length);
    char text[160], profile[80];
    core_profile_name(mig_device_profile(v.board, &v.card, v.gi, v.ci), profile, sizeof profile);
    (void)snprintf(text, sizeof text, "%s %s", v.board->name, profile); /* fits: 64 + 80 + 1 */
    return give_text(text, name, length);
}

NVML(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!v.is_mig)
        return give_text(v.card.uuid, uuid, length);
    char text[96];
    if (core_branch() < 470)
        (void)snprintf(text, sizeof text, "MIG-%s/%u/%u", v.card.uuid, v.gi, v.ci); /* fits */
    else
        sim_mig_uuid(&v.card, v.gi, v.ci, text);
    return give_text(text, uuid, length);
}

NVML(nvmlDeviceGetSerial, nvmlDevice_t device, char *serial, unsigned int length)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    return rc == NVML_SUCCESS ? give_text(v.card.serial, serial, length) : rc;
}

NVML(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned int *index)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!index)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.is_mig) {
        *index = v.ordinal;
        return NVML_SUCCESS;
    }
    uint32_t gi, ci;
    for (uint32_t i = 0; access_mig_device_at(&v, i, &gi, &ci); i++)
        if (gi == v.gi && ci == v.ci) {
            *index = i;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t ask_minor(const struct view *v, unsigned int *ret)
{
    *ret = v->card.minor;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetMinorNumber, nvmlDevice_t device, unsigned int *minor)
{
    return view_parent_number(device, minor, ask_minor);
}

static void fill_pci(const struct view *v, nvmlPciInfo_t *ret)
{
    *ret = (nvmlPciInfo_t){ .domain = v->card.pci_domain,
                            .bus = v->card.pci_bus,
                            .device = v->card.pci_device,
                            .pciDeviceId = v->board->pci_device_id,
                            .pciSubSystemId = v->board->pci_subsys_id };
    (void)snprintf(ret->busIdLegacy, sizeof ret->busIdLegacy, "%04X:%02X:%02X.0",
                   ret->domain & 0xFFFF, ret->bus & 0xFF, ret->device & 0xFF); /* fits */
    (void)snprintf(ret->busId, sizeof ret->busId, "%08X:%02X:%02X.0", ret->domain, ret->bus,
                   ret->device); /* fits */
}

NVML(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    fill_pci(&v, pci);
    return NVML_SUCCESS;
}

/* What came before the long bus id: 32 bytes in version 1, 52 (four unused words) in 2. */
struct pci_before_v3 {
    char bus_id[16];
    unsigned int domain, bus, device, device_id;
    unsigned int subsystem_id, unused[4]; /* version 2 */
};

static nvmlReturn_t give_old_pci(nvmlDevice_t device, void *ret, size_t size)
{
    nvmlPciInfo_t now;
    nvmlReturn_t rc = nvmlDeviceGetPciInfo_v3(device, &now);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct pci_before_v3 old = { .domain = now.domain,
                                 .bus = now.bus,
                                 .device = now.device,
                                 .device_id = now.pciDeviceId,
                                 .subsystem_id = now.pciSubSystemId };
    memcpy(old.bus_id, now.busIdLegacy, sizeof old.bus_id);
    memcpy(ret, &old, size);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, void *pci)
{
    return give_old_pci(device, pci, sizeof(struct pci_before_v3));
}

NVML(nvmlDeviceGetPciInfo, nvmlDevice_t device, void *pci)
{
    return give_old_pci(device, pci, offsetof(struct pci_before_v3, subsystem_id));
}

NVML(nvmlDeviceGetPciInfoExt, nvmlDevice_t device, nvmlPciInfoExt_v1_t *pci)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (pci->version != NVML_TAG(nvmlPciInfoExt_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlPciInfo_t plain;
    fill_pci(&v, &plain);
    *pci = (nvmlPciInfoExt_v1_t){ .version = pci->version,
                                  .domain = plain.domain,
                                  .bus = plain.bus,
                                  .device = plain.device,
                                  .pciDeviceId = plain.pciDeviceId,
                                  .pciSubSystemId = plain.pciSubSystemId,
                                  .baseClass = 0x03, /* display controller, 3D */
                                  .subClass = 0x02 };
    memcpy(pci->busId, plain.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

static nvmlReturn_t ask_brand(const struct view *v, unsigned int *ret)
{
    *ret = v->board->brand;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetBrand, nvmlDevice_t device, unsigned int *brand)
{
    return view_parent_number(device, brand, ask_brand);
}

static nvmlReturn_t ask_architecture(const struct view *v, unsigned int *ret)
{
    *ret = v->board->arch;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetArchitecture, nvmlDevice_t device, unsigned int *architecture)
{
    return view_parent_number(device, architecture, ask_architecture);
}

NVML(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!major || !minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = (int)v.board->cc_major;
    *minor = (int)v.board->cc_minor;
    return NVML_SUCCESS;
}

static nvmlReturn_t ask_cores(const struct view *v, unsigned int *ret)
{
    if (v->card.mig_current || v->board->cores_per_sm == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret = v->board->sm * v->board->cores_per_sm;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetNumGpuCores, nvmlDevice_t device, unsigned int *cores)
{
    return view_number(device, cores, ask_cores);
}

/* ---- how cards lie to each other: behind one PCIe switch, no NVLink, no P2P ---- */

#define TOPOLOGY_INTERNAL 0U
#define TOPOLOGY_SINGLE 10U
#define P2P_STATUS_NOT_SUPPORTED 5U

static nvmlReturn_t view_pair(nvmlDevice_t one, nvmlDevice_t two, const void *ret, bool *ret_same)
{
    struct view a, b;
    nvmlReturn_t rc = view_card(one, &a);
    if (rc == NVML_SUCCESS)
        rc = view_card(two, &b);
    if (rc != NVML_SUCCESS)
        return rc;
    *ret_same = a.ordinal == b.ordinal;
    return ret ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t one, nvmlDevice_t two, unsigned int *level)
{
    bool same;
    nvmlReturn_t rc = view_pair(one, two, level, &same);
    if (rc == NVML_SUCCESS)
        *level = same ? TOPOLOGY_INTERNAL : TOPOLOGY_SINGLE;
    return rc;
}

NVML(nvmlDeviceGetP2PStatus, nvmlDevice_t one, nvmlDevice_t two, unsigned int index,
     unsigned int *status)
{
    bool same;
    nvmlReturn_t rc = view_pair(one, two, status, &same);
    (void)index; /* the answer is the same for read, write, NVLink, atomics */
    if (rc == NVML_SUCCESS)
        *status = P2P_STATUS_NOT_SUPPORTED;
    return rc;
}

NVML(nvmlDeviceOnSameBoard, nvmlDevice_t one, nvmlDevice_t two, int *on_same_board)
{
    bool same;
    nvmlReturn_t rc = view_pair(one, two, on_same_board, &same);
    if (rc == NVML_SUCCESS)
        *on_same_board = same;
    return rc;
}

/* Lists all cards but `but`; count in and out. */
static nvmlReturn_t list_cards(const struct machine *m, uint32_t but, unsigned int *count,
                               nvmlDevice_t *devices)
{
    unsigned int room = *count, n = 0;
    for (uint32_t i = 0; i < machine_card_count(m); i++) {
        if (i == but)
            continue;
        if (devices && n < room)
            devices[n] = handle_card(i);
        n++;
    }
    *count = n;
    return devices && n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

NVML(nvmlDeviceGetTopologyNearestGpus, nvmlDevice_t device, unsigned int level, unsigned int *count,
     nvmlDevice_t *devices)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (level == TOPOLOGY_SINGLE)
        return list_cards(v.machine, v.ordinal, count, devices);
    *count = 0;
    return NVML_SUCCESS;
}

NVML(nvmlSystemGetTopologyGpuSet, unsigned int cpu, unsigned int *count, nvmlDevice_t *devices)
{
    struct machine *m = core_machine();
    if (!m)
        return NVML_ERROR_UNINITIALIZED;
    if (!count || cpu >= (unsigned int)sysconf(_SC_NPROCESSORS_CONF))
        return NVML_ERROR_INVALID_ARGUMENT;
    return list_cards(m, SIM_CARDS_MAX, count, devices);
}

/* The first `bits` bits set, as far as the array goes. */
static void set_bits(unsigned long *set, unsigned int words, unsigned long bits)
{
    const unsigned long per = 8 * sizeof *set;
    for (unsigned int i = 0; i < words; i++, bits -= bits < per ? bits : per)
        set[i] = bits >= per ? ~0UL : (1UL << bits) - 1;
}

static nvmlReturn_t give_affinity(nvmlDevice_t device, unsigned int words, unsigned long *set,
                                  unsigned long bits)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!set || words == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    set_bits(set, words, bits);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetCpuAffinity, nvmlDevice_t device, unsigned int words, unsigned long *set)
{
    return give_affinity(device, words, set, (unsigned long)sysconf(_SC_NPROCESSORS_CONF));
}

NVML(nvmlDeviceGetCpuAffinityWithinScope, nvmlDevice_t device, unsigned int words,
     unsigned long *set, unsigned int scope)
{
    (void)scope; /* node and socket are the same machine */
    return give_affinity(device, words, set, (unsigned long)sysconf(_SC_NPROCESSORS_CONF));
}

NVML(nvmlDeviceGetMemoryAffinity, nvmlDevice_t device, unsigned int words, unsigned long *set,
     unsigned int scope)
{
    (void)scope;
    return give_affinity(device, words, set, 1);
}

NVML(nvmlDeviceGetC2cModeInfoV, nvmlDevice_t device, nvmlC2cModeInfo_v1_t *info)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    info->isC2cEnabled = 0;
    return NVML_SUCCESS;
}
