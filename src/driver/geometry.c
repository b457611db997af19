#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "driver/state.h"

#define INDEX_MAX 64 /* profile indexes asked for; libraries know 10 to 18 */
#define PLACEMENTS_MAX 64
#define MIB (UINT64_C(1) << 20)

/* What every version of the profile structures tells. */
struct told {
    unsigned int id, slices, instances, sms;
    unsigned int copy_engines, decoders, encoders, jpegs, ofas;
    unsigned long long mem_mib;
    char name[96];
};

/* The fields that v1, v2 and v3 share by name, at other offsets. */
#define COPY_GI(ret, info)                                                                         \
    do {                                                                                           \
        (ret)->id = (info).id;                                                                     \
        (ret)->slices = (info).sliceCount;                                                         \
        (ret)->instances = (info).instanceCount;                                                   \
        (ret)->sms = (info).multiprocessorCount;                                                   \
        (ret)->copy_engines = (info).copyEngineCount;                                              \
        (ret)->decoders = (info).decoderCount;                                                     \
        (ret)->encoders = (info).encoderCount;                                                     \
        (ret)->jpegs = (info).jpegCount;                                                           \
        (ret)->ofas = (info).ofaCount;                                                             \
        (ret)->mem_mib = (info).memorySizeMB;                                                      \
    } while (0)

static const char *suffix_of(unsigned int index)
{
    switch (index) {
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1:
        return "+me";
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX:
    case NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX:
    case NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX:
        return "+gfx";
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME:
        return "-me";
    case NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME:
    case NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME:
        return "+me.all";
    default:
        return "";
    }
}

/* Drivers before 525 tell no name; their own nvidia-smi writes it in this way. */
static void name_by_size(struct told *t, unsigned int index)
{
    (void)snprintf(t->name, sizeof t->name, "%ug.%llugb%s", t->slices, (t->mem_mib + 1023) / 1024,
                   suffix_of(index));
}

static nvmlReturn_t ask_profile(const struct library *lib, nvmlDevice_t dev, unsigned int index,
                                struct told *ret)
{
    nvmlGpuInstanceProfileInfo_v3_t v3 = { .version =
                                               NVML_TAG(nvmlGpuInstanceProfileInfo_v3_t, 3) };
    nvmlGpuInstanceProfileInfo_v2_t v2 = { .version =
                                               NVML_TAG(nvmlGpuInstanceProfileInfo_v2_t, 2) };
    nvmlGpuInstanceProfileInfo_t v1;
    nvmlReturn_t r = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (lib->nvmlDeviceGetGpuInstanceProfileInfoV) {
        r = lib->nvmlDeviceGetGpuInstanceProfileInfoV(dev, index, &v3);
        if (r == NVML_SUCCESS) {
            COPY_GI(ret, v3);
            memcpy(ret->name, v3.name, sizeof ret->name);
            return r;
        }
        if (library_try_older(r))
            r = lib->nvmlDeviceGetGpuInstanceProfileInfoV(dev, index, &v2);
        if (r == NVML_SUCCESS) {
            COPY_GI(ret, v2);
            memcpy(ret->name, v2.name, sizeof ret->name);
            return r;
        }
    }
    if (library_try_older(r) && lib->nvmlDeviceGetGpuInstanceProfileInfo) {
        r = lib->nvmlDeviceGetGpuInstanceProfileInfo(dev, index, &v1);
        if (r == NVML_SUCCESS) {
            COPY_GI(ret, v1);
            name_by_size(ret, index);
        }
    }
    return r;
}

static unsigned int ask_placements(const struct library *lib, nvmlDevice_t dev, unsigned int id,
                                   nvmlGpuInstancePlacement_t list[PLACEMENTS_MAX])
{
    unsigned int n = PLACEMENTS_MAX;
    nvmlReturn_t r = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (lib->nvmlDeviceGetGpuInstancePossiblePlacements_v2)
        r = lib->nvmlDeviceGetGpuInstancePossiblePlacements_v2(dev, id, list, &n);
    else if (lib->nvmlDeviceGetGpuInstancePossiblePlacements)
        r = lib->nvmlDeviceGetGpuInstancePossiblePlacements(dev, id, list, &n);
    return r == NVML_SUCCESS && n <= PLACEMENTS_MAX ? n : 0;
}

static void add_start(struct profile *p, uint32_t start)
{
    uint32_t i = p->start_count;
    if (start >= BOARD_UNITS_MAX || i == BOARD_UNITS_MAX || profile_starts_at(p, start))
        return;
    for (; i > 0 && p->starts[i - 1] > start; i--)
        p->starts[i] = p->starts[i - 1];
    p->starts[i] = (uint8_t)start;
    p->start_count++;
}

static bool fill_profile(const struct library *lib, nvmlDevice_t dev, unsigned int index,
                         const struct told *t, struct profile *ret)
{
    nvmlGpuInstancePlacement_t places[PLACEMENTS_MAX] = { { .start = 0 } };
    unsigned int n = ask_placements(lib, dev, t->id, places);
    struct profile p = { .id = t->id,
                         .index = index,
                         .slices = t->slices,
                         .mem_bytes = t->mem_mib * MIB,
                         .sms = t->sms,
                         .copy_engines = t->copy_engines,
                         .decoders = t->decoders,
                         .encoders = t->encoders,
                         .jpegs = t->jpegs,
                         .ofas = t->ofas,
                         .max = t->instances };
    const char *name = text_starts(t->name, "MIG ") ? t->name + 4 : t->name;
    (void)snprintf(p.name, sizeof p.name, "%.31s", name);
    for (unsigned int i = 0; i < n; i++) {
        if (places[i].size == 0 || places[i].start + places[i].size > BOARD_UNITS_MAX)
            continue;
        p.units = places[i].size;
        add_start(&p, places[i].start);
    }
    *ret = p;
    return p.start_count > 0;
}

static void grow(uint32_t *most, uint32_t n)
{
    if (n > *most)
        *most = n;
}

/* The card's own totals are those of the profile that has all of it. */
static void add_totals(struct board *b, const struct profile *p)
{
    grow(&b->units, p->starts[p->start_count - 1] + p->units);
    grow(&b->slices, p->slices);
    grow(&b->decoders, p->decoders);
    grow(&b->encoders, p->encoders);
    grow(&b->jpegs, p->jpegs);
    grow(&b->ofas, p->ofas);
}

static void ask_profiles(struct driver *d, nvmlDevice_t dev, struct board *b)
{
    for (unsigned int i = 0; i < INDEX_MAX && b->profile_count < BOARD_PROFILES_MAX; i++) {
        struct told t = { .id = 0 };
        nvmlReturn_t r = ask_profile(&d->lib, dev, i, &t);
        if (library_try_older(r))
            return; /* beyond what this library knows */
        struct profile *p = &b->profiles[b->profile_count];
        if (r != NVML_SUCCESS || !fill_profile(&d->lib, dev, i, &t, p))
            continue;
        add_totals(b, p);
        b->profile_count++;
    }
}

static bool field_u32(const struct library *lib, nvmlDevice_t dev, unsigned int id, uint32_t *ret)
{
    nvmlFieldValue_t v = { .fieldId = id };
    if (!lib->nvmlDeviceGetFieldValues ||
        lib->nvmlDeviceGetFieldValues(dev, 1, &v) != NVML_SUCCESS || v.nvmlReturn != NVML_SUCCESS)
        return false;
    *ret = v.value.uiVal;
    return true;
}

static enum mig_activation activation(const struct library *lib, nvmlDevice_t dev)
{
    unsigned int now, pending;
    uint32_t resetless;
    if (!lib->nvmlDeviceGetMigMode ||
        lib->nvmlDeviceGetMigMode(dev, &now, &pending) == NVML_ERROR_NOT_SUPPORTED)
        return MIG_NONE;
    if (!field_u32(lib, dev, NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, &resetless))
        return MIG_NOT_TOLD;
    return resetless ? MIG_IMMEDIATE : MIG_BY_RESET;
}

/* What the driver does not tell in this mode: it told in the other, or the caller knows it. */
static void borrow_profiles(struct driver *d, const struct known_card *k, struct board *b)
{
    auto_free struct board *other = mem_new(sizeof *other);
    for (int i = 0; i < 2; i++)
        if (k->boards[i] && k->boards[i]->profile_count)
            *other = *k->boards[i];
    if (!other->profile_count && d->board &&
        !d->board(k->name, k->pci_device_id, other, d->board_arg))
        return;
    memcpy(b->profiles, other->profiles, sizeof b->profiles);
    b->profile_count = other->profile_count;
    b->units = other->units;
    b->slices = other->slices;
    b->decoders = other->decoders;
    b->encoders = other->encoders;
    b->jpegs = other->jpegs;
    b->ofas = other->ofas;
}

const struct board *driver_board(struct driver *d, nvmlDevice_t dev, struct known_card *k,
                                 bool mig_on)
{
    if (k->boards[mig_on])
        return k->boards[mig_on];
    struct board *b = mem_new(sizeof *b);
    memcpy(b->name, k->name, sizeof b->name);
    b->pci_device_id = k->pci_device_id;
    b->activation = activation(&d->lib, dev);
    if (b->activation != MIG_NONE) {
        ask_profiles(d, dev, b);
        if (!b->profile_count)
            borrow_profiles(d, k, b);
    }
    k->boards[mig_on] = b;
    return b;
}

static nvmlReturn_t ask_ci_profile(const struct library *lib, nvmlGpuInstance_t gi,
                                   unsigned int index, struct told *ret)
{
    nvmlComputeInstanceProfileInfo_v2_t v2 = { .version = NVML_TAG(
                                                   nvmlComputeInstanceProfileInfo_v2_t, 2) };
    nvmlComputeInstanceProfileInfo_t v1;
    nvmlReturn_t r = NVML_ERROR_FUNCTION_NOT_FOUND;
    if (lib->nvmlGpuInstanceGetComputeInstanceProfileInfoV)
        r = lib->nvmlGpuInstanceGetComputeInstanceProfileInfoV(
            gi, index, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &v2);
    if (r == NVML_SUCCESS) {
        *ret = (struct told){ .id = v2.id,
                              .slices = v2.sliceCount,
                              .instances = v2.instanceCount,
                              .sms = v2.multiprocessorCount };
        memcpy(ret->name, v2.name, sizeof ret->name);
        return r;
    }
    if (!library_try_older(r) || !lib->nvmlGpuInstanceGetComputeInstanceProfileInfo)
        return r;
    r = lib->nvmlGpuInstanceGetComputeInstanceProfileInfo(
        gi, index, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &v1);
    if (r == NVML_SUCCESS)
        *ret = (struct told){ .id = v1.id,
                              .slices = v1.sliceCount,
                              .instances = v1.instanceCount,
                              .sms = v1.multiprocessorCount };
    return r;
}

static void name_part(char name[PROFILE_NAME_SIZE], unsigned int slices, const char *whole)
{
    auto_free char *s = text_fmt("%uc.%s", slices, whole);
    (void)snprintf(name, PROFILE_NAME_SIZE, "%.31s", s);
}

static void add_ci(struct profile *p, unsigned int index, const struct told *t)
{
    struct ci_profile *ci = &p->cis[p->ci_count++];
    const char *name = text_starts(t->name, "MIG ") ? t->name + 4 : t->name;
    *ci = (struct ci_profile){
        .id = t->id, .index = index, .slices = t->slices, .sms = t->sms, .max = t->instances
    };
    if (name[0])
        (void)snprintf(ci->name, sizeof ci->name, "%.31s", name);
    else if (t->slices == p->slices)
        memcpy(ci->name, p->name, sizeof ci->name);
    else
        name_part(ci->name, t->slices, p->name);
}

void driver_learn_cis(struct driver *d, struct known_card *k, nvmlGpuInstance_t gi,
                      uint32_t profile_id)
{
    struct board *b = k->boards[1];
    for (uint32_t i = 0; b && i < b->profile_count; i++) {
        struct profile *p = &b->profiles[i];
        if (p->id != profile_id || p->ci_count)
            continue;
        for (unsigned int index = 0; index < INDEX_MAX && p->ci_count < PROFILE_CI_MAX; index++) {
            struct told t = { .id = 0 };
            nvmlReturn_t r = ask_ci_profile(&d->lib, gi, index, &t);
            if (r == NVML_SUCCESS)
                add_ci(p, index, &t);
            else if (library_try_older(r))
                break;
        }
    }
}

bool driver_full_ci(struct driver *d, nvmlGpuInstance_t gi, uint32_t slices, uint32_t *ret_id)
{
    for (unsigned int index = 0; index < INDEX_MAX; index++) {
        struct told t = { .id = 0 };
        nvmlReturn_t r = ask_ci_profile(&d->lib, gi, index, &t);
        if (r == NVML_SUCCESS && t.slices == slices) {
            *ret_id = t.id;
            return true;
        }
        if (r != NVML_SUCCESS && library_try_older(r))
            return false;
    }
    return false;
}
