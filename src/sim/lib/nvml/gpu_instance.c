/* GPU instances: profiles, placements, capacity, create, destroy, find. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/lib/nvml/core.h"

/* How many profile indexes a branch's library knows; above is INVALID_ARGUMENT. */
static uint32_t known_indexes(uint32_t branch)
{
    static const struct {
        uint32_t branch, count;
    } steps[] = { { 595, 18 }, { 575, 17 }, { 570, 13 }, { 525, 10 },
                  { 470, 8 },  { 465, 7 },  { 455, 6 } };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (branch >= steps[i].branch)
            return steps[i].count;
    return 5;
}

/* A profile by id, as far as this branch knows its index. */
static const struct sim_profile *profile_by_id(const struct view *v, unsigned int id)
{
    const struct sim_profile *p = sim_board_profile(v->board, id);
    return p && p->index < known_indexes(core_branch()) ? p : NULL;
}

/* A card of which profiles may be asked now: MIG on, or a driver that plans without. */
static nvmlReturn_t view_plannable(nvmlDevice_t device, struct view *ret)
{
    nvmlReturn_t rc = view_card(device, ret);
    if (rc == NVML_SUCCESS &&
        (ret->board->mig_enable == SIM_MIG_NONE || (!ret->card.mig_current && core_branch() < 550)))
        rc = NVML_ERROR_NOT_SUPPORTED;
    return rc;
}

static nvmlReturn_t view_enabled(nvmlDevice_t device, struct view *ret)
{
    nvmlReturn_t rc = view_card(device, ret);
    return rc == NVML_SUCCESS && !ret->card.mig_current ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* ---- profiles ---- */

static nvmlReturn_t find_by_index(nvmlDevice_t device, unsigned int index, const void *info,
                                  const struct sim_profile **ret)
{
    struct view v;
    nvmlReturn_t rc = view_plannable(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!info || index >= known_indexes(core_branch()))
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = sim_board_profile_at(v.board, index);
    return *ret ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetGpuInstanceProfileInfo, nvmlDevice_t device, unsigned int index,
     nvmlGpuInstanceProfileInfo_t *info)
{
    const struct sim_profile *p;
    nvmlReturn_t rc = find_by_index(device, index, info, &p);
    if (rc == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){ .id = p->id,
                                                .sliceCount = p->slices,
                                                .instanceCount = p->max_instances,
                                                .multiprocessorCount = p->sm,
                                                .copyEngineCount = p->engines.copy,
                                                .decoderCount = p->engines.decoder,
                                                .encoderCount = p->engines.encoder,
                                                .jpegCount = p->engines.jpeg,
                                                .ofaCount = p->engines.ofa,
                                                .memorySizeMB = p->memory_mib };
    return rc;
}

static void fill_v2(const struct sim_profile *p, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    *info = (nvmlGpuInstanceProfileInfo_v2_t){ .version = info->version,
                                               .id = p->id,
                                               .sliceCount = p->slices,
                                               .instanceCount = p->max_instances,
                                               .multiprocessorCount = p->sm,
                                               .copyEngineCount = p->engines.copy,
                                               .decoderCount = p->engines.decoder,
                                               .encoderCount = p->engines.encoder,
                                               .jpegCount = p->engines.jpeg,
                                               .ofaCount = p->engines.ofa,
                                               .memorySizeMB = p->memory_mib };
    core_profile_name(p->name, info->name, sizeof info->name);
}

static void fill_v3(const struct sim_profile *p, nvmlGpuInstanceProfileInfo_v3_t *info)
{
    *info = (nvmlGpuInstanceProfileInfo_v3_t){
        .version = info->version,
        .id = p->id,
        .sliceCount = p->slices,
        .instanceCount = p->max_instances,
        .multiprocessorCount = p->sm,
        .copyEngineCount = p->engines.copy,
        .decoderCount = p->engines.decoder,
        .encoderCount = p->engines.encoder,
        .jpegCount = p->engines.jpeg,
        .ofaCount = p->engines.ofa,
        .memorySizeMB = p->memory_mib,
        .capabilities = p->graphics ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0
    };
    core_profile_name(p->name, info->name, sizeof info->name);
}

/* One symbol, two structures of one size: the tag decides. */
static nvmlReturn_t fill_versioned(const struct sim_profile *p,
                                   nvmlGpuInstanceProfileInfo_v2_t *info)
{
    if (info->version == NVML_TAG(nvmlGpuInstanceProfileInfo_v2_t, 2))
        fill_v2(p, info);
    else if (info->version == NVML_TAG(nvmlGpuInstanceProfileInfo_v3_t, 3) && core_branch() >= 550)
        fill_v3(p, (nvmlGpuInstanceProfileInfo_v3_t *)(void *)info);
    else
        return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetGpuInstanceProfileInfoV, nvmlDevice_t device, unsigned int index,
     nvmlGpuInstanceProfileInfo_v2_t *info)
{
    const struct sim_profile *p;
    nvmlReturn_t rc = find_by_index(device, index, info, &p);
    return rc == NVML_SUCCESS ? fill_versioned(p, info) : rc;
}

NVML(nvmlDeviceGetGpuInstanceProfileInfoByIdV, nvmlDevice_t device, unsigned int id,
     nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct view v;
    nvmlReturn_t rc = view_plannable(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_profile *p = profile_by_id(&v, id);
    return p ? fill_versioned(p, info) : NVML_ERROR_NOT_SUPPORTED;
}

/* ---- placements and capacity ---- */

static nvmlReturn_t find_for_plan(nvmlDevice_t device, unsigned int id, const void *ret_count,
                                  const struct sim_profile **ret)
{
    struct view v;
    nvmlReturn_t rc = view_plannable(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = profile_by_id(&v, id);
    return *ret ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static void copy_placements(const struct sim_profile *p, nvmlGpuInstancePlacement_t *ret)
{
    for (uint32_t i = 0; i < p->placement_count; i++)
        ret[i] = (nvmlGpuInstancePlacement_t){ .start = p->placements[i].start,
                                               .size = p->placements[i].size };
}

NVML(nvmlDeviceGetGpuInstancePossiblePlacements_v2, nvmlDevice_t device, unsigned int id,
     nvmlGpuInstancePlacement_t *placements, unsigned int *count)
{
    const struct sim_profile *p;
    nvmlReturn_t rc = find_for_plan(device, id, count, &p);
    if (rc != NVML_SUCCESS)
        return rc;
    unsigned int room = *count;
    *count = p->placement_count;
    if (!placements)
        return NVML_SUCCESS;
    if (room < p->placement_count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    copy_placements(p, placements);
    return NVML_SUCCESS;
}

/* Version 1 trusts the caller's array. */
NVML(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDevice_t device, unsigned int id,
     nvmlGpuInstancePlacement_t *placements, unsigned int *count)
{
    const struct sim_profile *p;
    nvmlReturn_t rc = find_for_plan(device, id, count, &p);
    if (rc != NVML_SUCCESS)
        return rc;
    if (placements)
        copy_placements(p, placements);
    *count = p->placement_count;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetGpuInstanceRemainingCapacity, nvmlDevice_t device, unsigned int id,
     unsigned int *count)
{
    struct view v;
    nvmlReturn_t rc = view_enabled(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_profile *p = profile_by_id(&v, id);
    if (!p)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = mig_gi_remaining(v.board, &v.card, p, core_branch());
    return NVML_SUCCESS;
}

/* ---- create and destroy ---- */

/* The attempt counts against create-fails:N even where nothing is made. */
static nvmlReturn_t create_in(struct machine_edit *edit, struct view *v, unsigned int id,
                              uint32_t start, uint32_t *ret_gi)
{
    struct sim_card *c = &edit->state->cards[v->ordinal];
    if (sim_create_fails(c)) {
        (void)core_commit(v->machine, edit); /* cannot fail; the create's failure is told */
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    nvmlReturn_t rc = code_of(
        mig_gi_create(edit->state, machine_boards(v->machine), v->ordinal, id, start, ret_gi));
    v->card = *c;
    if (rc == NVML_SUCCESS || c->fail_create_nth > 0)
        (void)core_commit(v->machine, edit); /* cannot fail */
    return rc;
}

static nvmlReturn_t create(nvmlDevice_t device, unsigned int id, uint32_t start,
                           nvmlGpuInstance_t *ret)
{
    struct view v;
    uint32_t gi;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_enabled(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret || !profile_by_id(&v, id))
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc == NVML_SUCCESS)
        rc = create_in(&edit, &v, id, start, &gi);
    if (rc == NVML_SUCCESS)
        *ret = handle_gi(&v, gi);
    return rc;
}

NVML(nvmlDeviceCreateGpuInstance, nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *ret)
{
    return create(device, id, MIG_ANYWHERE, ret);
}

NVML(nvmlDeviceCreateGpuInstanceWithPlacement, nvmlDevice_t device, unsigned int id,
     const nvmlGpuInstancePlacement_t *placement, nvmlGpuInstance_t *ret)
{
    struct view v;
    nvmlReturn_t rc = view_enabled(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct sim_profile *p = profile_by_id(&v, id);
    if (!placement || !p || placement->size != p->placements[0].size ||
        placement->start == MIG_ANYWHERE)
        return NVML_ERROR_INVALID_ARGUMENT;
    return create(device, id, placement->start, ret);
}

NVML(nvmlGpuInstanceDestroy, nvmlGpuInstance_t instance)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_gi(instance, &v);
    if (rc == NVML_SUCCESS)
        rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    /* Between the view and the lock another process may have cut anew. */
    if (edit.state->cards[v.ordinal].gi[v.gi].incarnation != view_instance(&v)->incarnation)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = code_of(
        mig_gi_destroy(edit.state, v.ordinal, v.gi, sim_gi_busy(v.machine, v.ordinal, v.gi)));
    return rc == NVML_SUCCESS ? core_commit(v.machine, &edit) : rc;
}

/* ---- finding ---- */

NVML(nvmlDeviceGetGpuInstances, nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instances,
     unsigned int *count)
{
    struct view v;
    nvmlReturn_t rc = view_enabled(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct sim_profile *p = profile_by_id(&v, id);
    if (!instances || !count || !p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (uint32_t gi = 0; gi < SIM_GI_MAX; gi++)
        if (v.card.gi[gi].used && &v.board->profiles[v.card.gi[gi].profile] == p)
            instances[(*count)++] = handle_gi(&v, gi);
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetGpuInstanceById, nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *ret)
{
    struct view v;
    nvmlReturn_t rc = view_enabled(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (id >= SIM_GI_MAX || !v.card.gi[id].used)
        return NVML_ERROR_NOT_FOUND;
    *ret = handle_gi(&v, id);
    return NVML_SUCCESS;
}

NVML(nvmlGpuInstanceGetInfo, nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    struct view v;
    nvmlReturn_t rc = view_gi(instance, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    struct sim_span span = view_instance(&v)->span;
    *info = (nvmlGpuInstanceInfo_t){ .device = handle_card(v.ordinal),
                                     .id = v.gi,
                                     .profileId = view_profile(&v)->id,
                                     .placement = { .start = span.start, .size = span.size } };
    return NVML_SUCCESS;
}
