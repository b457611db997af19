#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "sim/lib/cuda/cuda.h"
#include "sim/mig.h"
#include "sim/root.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    struct machine *machine;
    bool ready;
    uint32_t boot;
    uint32_t cuda_version;
    size_t count;
    struct device *devices;
} cuda;

void device_lock(void)
{
    (void)pthread_mutex_lock(&lock); /* a plain mutex of ours: cannot fail */
}

void device_unlock(void)
{
    (void)pthread_mutex_unlock(&lock); /* as above */
}

struct machine *device_machine(void)
{
    return cuda.machine;
}

uint32_t device_count(void)
{
    return (uint32_t)cuda.count;
}

uint32_t device_boot(void)
{
    return cuda.boot;
}

struct device *device_at(CUdevice ordinal)
{
    return ordinal >= 0 && (size_t)ordinal < cuda.count ? &cuda.devices[ordinal] : NULL;
}

CUresult device_code(int rc)
{
    switch (rc) {
    case -ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case -EBUSY:
    case -EACCES:
    case -ENODEV:
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case -ENOENT:
    case -EINVAL:
        return CUDA_ERROR_INVALID_DEVICE;
    default:
        return rc < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    }
}

/* ---- enumeration ---- */

static void look_at_parts(const struct sim_card *c, const char *root, struct visible_card *ret)
{
    uint32_t gi, ci;
    for (uint32_t i = 0; mig_device_at(c, i, &gi, &ci); i++) {
        if (ret->part_count == VISIBLE_PARTS_MAX)
            return;
        if (sim_root_may_use_instance(root, c->minor, gi, ci) < 0)
            continue;
        struct visible_part *p = &ret->parts[ret->part_count++];
        p->gi = gi;
        p->ci = ci;
        sim_mig_uuid(c, gi, ci, p->uuid);
    }
}

static void look_at_cards(const struct sim_state *st, const char *root, struct visible_world *w)
{
    for (uint32_t i = 0; i < st->card_count; i++) {
        const struct sim_card *c = &st->cards[i];
        const struct sim_board *b = &machine_boards(cuda.machine)[c->board];
        if ((c->faults & SIM_FAULT_LOST) || sim_root_may_use_card(root, c->minor) < 0)
            continue;
        struct visible_card *v = &w->cards[w->card_count++];
        *v = (struct visible_card){
            .ordinal = i,
            .speed = (uint64_t)b->sm * b->cores_per_sm * b->clock_sm_max_mhz,
            .mig = c->mig_current,
        };
        memcpy(v->uuid, c->uuid, sizeof v->uuid);
        if (c->mig_current)
            look_at_parts(c, root, v);
    }
}

static void fill_device(struct device *d, const struct visible_device *place,
                        const struct sim_state *st)
{
    d->place = *place;
    d->card = st->cards[place->ordinal];
    d->board = &machine_boards(cuda.machine)[d->card.board];
    d->total_bytes = sim_memory_usable(d->board, &d->card, place->gi);
    if (place->gi == VISIBLE_CARD)
        memcpy(d->uuid, d->card.uuid, sizeof d->uuid);
    else
        sim_mig_uuid(&d->card, place->gi, place->ci, d->uuid);
}

static CUresult enumerate(const struct sim_state *st)
{
    auto_free char *root = sim_root_path(cuda.machine);
    if (sim_root_may_open(root, "dev/nvidia-uvm") < 0)
        return CUDA_ERROR_UNKNOWN;
    auto_free struct visible_card *cards = mem_new(SIM_CARDS_MAX * sizeof *cards);
    struct visible_world world = { .branch = sim_branch(st), .cards = cards };
    struct visible_device found[VISIBLE_MAX];
    look_at_cards(st, root, &world);
    size_t count =
        visible_devices(&world, getenv("CUDA_VISIBLE_DEVICES"), getenv("CUDA_DEVICE_ORDER"), found);
    if (count == 0)
        return CUDA_ERROR_NO_DEVICE;
    cuda.devices = mem_new(count * sizeof *cuda.devices);
    cuda.count = count;
    for (size_t i = 0; i < count; i++)
        fill_device(&cuda.devices[i], &found[i], st);
    return CUDA_SUCCESS;
}

static CUresult initialise(void)
{
    auto_free struct sim_state *st = mem_new(sizeof *st);
    if (!cuda.machine && machine_open(NULL, &cuda.machine, NULL) < 0)
        return CUDA_ERROR_NO_DEVICE;
    machine_read(cuda.machine, st);
    if (!machine_library_fits(cuda.machine, st->installed.version))
        return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
    cuda.boot = st->boot;
    cuda.cuda_version = st->cuda_version;
    return enumerate(st);
}

CUDA(cuInit, unsigned int flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    device_lock();
    CUresult rc = cuda.ready ? CUDA_SUCCESS : initialise();
    cuda.ready = rc == CUDA_SUCCESS;
    device_unlock();
    for (uint32_t i = 0; rc == CUDA_SUCCESS && i < device_count(); i++) {
        struct sim_card card;
        machine_gate(cuda.machine, cuda.devices[i].place.ordinal, &card);
    }
    return rc;
}

CUDA(cuDriverGetVersion, int *ret_version)
{
    if (!ret_version)
        return CUDA_ERROR_INVALID_VALUE;
    if (cuda.cuda_version == 0) { /* works before cuInit, too */
        struct machine *m = NULL;
        auto_free struct sim_state *st = mem_new(sizeof *st);
        if (machine_open(NULL, &m, NULL) < 0)
            return CUDA_ERROR_NO_DEVICE;
        machine_read(m, st);
        machine_close(m);
        cuda.cuda_version = st->cuda_version;
    }
    *ret_version = (int)cuda.cuda_version;
    return CUDA_SUCCESS;
}

/* ---- questions ---- */

static CUresult find_device(CUdevice ordinal, const void *ret, const struct device **ret_device)
{
    if (!cuda.ready)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_device = device_at(ordinal);
    return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUDA(cuDeviceGetCount, int *ret_count)
{
    if (!cuda.ready)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!ret_count)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_count = (int)cuda.count;
    return CUDA_SUCCESS;
}

CUDA(cuDeviceGet, CUdevice *ret_device, int ordinal)
{
    const struct device *d;
    CUresult rc = find_device(ordinal, ret_device, &d);
    if (rc == CUDA_SUCCESS)
        *ret_device = ordinal;
    return rc;
}

CUDA(cuDeviceGetName, char *ret_name, int len, CUdevice device)
{
    const struct device *d;
    CUresult rc = find_device(device, ret_name, &d);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    const char *profile = d->place.gi == VISIBLE_CARD
                              ? NULL
                              : mig_device_profile(d->board, &d->card, d->place.gi, d->place.ci);
    char told[64] = "";
    if (profile)
        machine_profile_name(cuda.machine, profile, told);
    (void)snprintf(ret_name, (size_t)len, "%s%s%s", d->board->name, profile ? " MIG " : "",
                   told); /* CUDA cuts, too */
    return CUDA_SUCCESS;
}

static void uuid_bytes(const char *text, CUuuid *ret)
{
    static const char digits[] = "0123456789abcdef";
    const char *p = strchr(text, '-') + 1;
    for (size_t i = 0; i < 32 && *p; p++) {
        const char *digit = *p == '-' ? NULL : strchr(digits, tolower((unsigned char)*p));
        if (!digit)
            continue;
        unsigned value = (unsigned)(digit - digits);
        unsigned byte = i % 2 ? (unsigned char)ret->bytes[i / 2] | value : value << 4;
        ret->bytes[i / 2] = (char)byte;
        i++;
    }
}

/* The first version tells the card's UUID, the second that of the MIG device. */
CUDA(cuDeviceGetUuid, CUuuid *ret_uuid, CUdevice device)
{
    const struct device *d;
    CUresult rc = find_device(device, ret_uuid, &d);
    if (rc == CUDA_SUCCESS)
        uuid_bytes(d->card.uuid, ret_uuid);
    return rc;
}

CUDA(cuDeviceGetUuid_v2, CUuuid *ret_uuid, CUdevice device)
{
    const struct device *d;
    CUresult rc = find_device(device, ret_uuid, &d);
    if (rc == CUDA_SUCCESS)
        uuid_bytes(d->uuid, ret_uuid);
    return rc;
}

CUDA(cuDeviceTotalMem_v2, size_t *ret_bytes, CUdevice device)
{
    const struct device *d;
    CUresult rc = find_device(device, ret_bytes, &d);
    if (rc == CUDA_SUCCESS)
        *ret_bytes = d->total_bytes;
    return rc;
}

CUDA(cuDeviceGetPCIBusId, char *ret_id, int len, CUdevice device)
{
    const struct device *d;
    CUresult rc = find_device(device, ret_id, &d);
    if (rc != CUDA_SUCCESS)
        return rc;
    if (len < 13)
        return CUDA_ERROR_INVALID_VALUE;
    (void)snprintf(ret_id, (size_t)len, "%04X:%02X:%02X.0", d->card.pci_domain, d->card.pci_bus,
                   d->card.pci_device); /* 12 characters */
    return CUDA_SUCCESS;
}

static uint32_t multiprocessors(const struct device *d)
{
    if (d->place.gi == VISIBLE_CARD)
        return d->board->sm;
    const struct sim_gi *g = &d->card.gi[d->place.gi];
    return d->board->profiles[g->profile].ci[g->ci[d->place.ci].profile].sm;
}

/* CU_DEVICE_ATTRIBUTE_* by number. */
static bool attribute(const struct device *d, int which, uint32_t *ret)
{
    const struct {
        int which;
        uint32_t value;
    } known[] = {
        { 1, 1024 },                               /* MAX_THREADS_PER_BLOCK */
        { 10, 32 },                                /* WARP_SIZE */
        { 13, d->board->clock_sm_max_mhz * 1000 }, /* CLOCK_RATE, kHz */
        { 16, multiprocessors(d) },                /* MULTIPROCESSOR_COUNT */
        { 18, 0 },                                 /* INTEGRATED */
        { 20, d->card.compute_mode },              /* COMPUTE_MODE */
        { 32, d->board->ecc },                     /* ECC_ENABLED */
        { 33, d->card.pci_bus },                   /* PCI_BUS_ID */
        { 34, d->card.pci_device },                /* PCI_DEVICE_ID */
        { 35, 0 },                                 /* TCC_DRIVER */
        { 36, d->board->clock_mem_mhz * 1000 },    /* MEMORY_CLOCK_RATE, kHz */
        { 39, 2048 },                              /* MAX_THREADS_PER_MULTIPROCESSOR */
        { 41, 1 },                                 /* UNIFIED_ADDRESSING */
        { 50, d->card.pci_domain },                /* PCI_DOMAIN_ID */
        { 75, d->board->cc_major },                /* COMPUTE_CAPABILITY_MAJOR */
        { 76, d->board->cc_minor },                /* COMPUTE_CAPABILITY_MINOR */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].which == which) {
            *ret = known[i].value;
            return true;
        }
    }
    return false;
}

CUDA(cuDeviceGetAttribute, int *ret_value, int which, CUdevice device)
{
    const struct device *d;
    CUresult rc = find_device(device, ret_value, &d);
    uint32_t value;
    if (rc != CUDA_SUCCESS)
        return rc;
    if (!attribute(d, which, &value))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_value = (int)value;
    return CUDA_SUCCESS;
}
