/* Compute instances: profiles, placements, capacity, create, destroy, find. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/lib/nvml/core.h"

static uint32_t known_indexes(uint32_t branch)
{
    return branch >= 610 ? 9 : branch >= 525 ? 8 : 7;
}

/*
 * Two profiles that take the whole instance would leave nvidia-smi -C to pick
 * either; real logs always show the plain one, so its REV1 twin is not offered.
 */
static bool is_twin(const struct sim_profile *p, const struct sim_ci_profile *c)
{
    for (const struct sim_ci_profile *one = p->ci; one < c; one++)
        if (one->slices == p->slices && c->slices == p->slices)
            return true;
    return false;
}

static nvmlReturn_t find_by_index(nvmlGpuInstance_t instance, unsigned int index,
                                  unsigned int engines, const void *info, struct view *v,
                                  const struct sim_ci_profile **ret)
{
    nvmlReturn_t rc = view_gi(instance, v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!info || index >= known_indexes(core_branch()) ||
        engines != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = sim_ci_profile_at(view_profile(v), index);
    return *ret && !is_twin(view_profile(v), *ret) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML(nvmlGpuInstanceGetComputeInstanceProfileInfo, nvmlGpuInstance_t instance, unsigned int index,
     unsigned int engines, nvmlComputeInstanceProfileInfo_t *info)
{
    struct view v;
    const struct sim_ci_profile *c;
    nvmlReturn_t rc = find_by_index(instance, index, engines, info, &v, &c);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct sim_engines *e = &view_profile(&v)->engines;
    *info = (nvmlComputeInstanceProfileInfo_t){ .id = c->id,
                                                .sliceCount = c->slices,
                                                .instanceCount = c->max_instances,
                                                .multiprocessorCount = c->sm,
                                                .sharedCopyEngineCount = e->copy,
                                                .sharedDecoderCount = e->decoder,
                                                .sharedEncoderCount = e->encoder,
                                                .sharedJpegCount = e->jpeg,
                                                .sharedOfaCount = e->ofa };
    return NVML_SUCCESS;
}

/* Version 3 only adds capabilities at the end. */
NVML(nvmlGpuInstanceGetComputeInstanceProfileInfoV, nvmlGpuInstance_t instance, unsigned int index,
     unsigned int engines, nvmlComputeInstanceProfileInfo_v2_t *info)
{
    struct view v;
    const struct sim_ci_profile *c;
    nvmlReturn_t rc = find_by_index(instance, index, engines, info, &v, &c);
    if (rc != NVML_SUCCESS)
        return rc;
    bool v3 =
        info->version == NVML_TAG(nvmlComputeInstanceProfileInfo_v3_t, 3) && core_branch() >= 550;
    if (!v3 && info->version != NVML_TAG(nvmlComputeInstanceProfileInfo_v2_t, 2))
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_engines *e = &view_profile(&v)->engines;
    *info = (nvmlComputeInstanceProfileInfo_v2_t){ .version = info->version,
                                                   .id = c->id,
                                                   .sliceCount = c->slices,
                                                   .instanceCount = c->max_instances,
                                                   .multiprocessorCount = c->sm,
                                                   .sharedCopyEngineCount = e->copy,
                                                   .sharedDecoderCount = e->decoder,
                                                   .sharedEncoderCount = e->encoder,
                                                   .sharedJpegCount = e->jpeg,
                                                   .sharedOfaCount = e->ofa };
    core_profile_name(c->name, info->name, sizeof info->name);
    if (v3)
        ((nvmlComputeInstanceProfileInfo_v3_t *)(void *)info)->capabilities =
            view_profile(&v)->graphics;
    return NVML_SUCCESS;
}

/* ---- placements and capacity ---- */

static nvmlReturn_t find_by_id(nvmlGpuInstance_t instance, unsigned int id, const void *ret_count,
                               struct view *v, const struct sim_ci_profile **ret)
{
    nvmlReturn_t rc = view_gi(instance, v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret = sim_ci_profile(view_profile(v), id);
    return *ret ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML(nvmlGpuInstanceGetComputeInstanceRemainingCapacity, nvmlGpuInstance_t instance,
     unsigned int id, unsigned int *count)
{
    struct view v;
    const struct sim_ci_profile *c;
    nvmlReturn_t rc = find_by_id(instance, id, count, &v, &c);
    if (rc == NVML_SUCCESS)
        *count = mig_ci_remaining(view_profile(&v), view_instance(&v), c);
    return rc;
}

NVML(nvmlGpuInstanceGetComputeInstancePossiblePlacements, nvmlGpuInstance_t instance,
     unsigned int id, nvmlComputeInstancePlacement_t *placements, unsigned int *count)
{
    struct view v;
    const struct sim_ci_profile *c;
    nvmlReturn_t rc = find_by_id(instance, id, count, &v, &c);
    if (rc != NVML_SUCCESS)
        return rc;
    struct sim_span spans[SIM_CI_MAX];
    unsigned int room = *count;
    *count = mig_ci_placements(view_profile(&v), c, spans);
    if (!placements)
        return NVML_SUCCESS;
    if (room < *count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < *count; i++)
        placements[i] = (nvmlComputeInstancePlacement_t){ spans[i].start, spans[i].size };
    return NVML_SUCCESS;
}

/* ---- create and destroy ---- */

/* Is the GPU instance of the view still the same one, now that the lock is held? */
static bool still_there(const struct machine_edit *edit, const struct view *v)
{
    const struct sim_gi *g = &edit->state->cards[v->ordinal].gi[v->gi];
    return g->used && g->incarnation == view_instance(v)->incarnation;
}

static nvmlReturn_t create_in(struct machine_edit *edit, struct view *v, unsigned int id,
                              uint32_t start, uint32_t *ret_ci)
{
    struct sim_card *c = &edit->state->cards[v->ordinal];
    if (sim_create_fails(c)) {
        (void)core_commit(v->machine, edit); /* cannot fail; the create's failure is told */
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    }
    nvmlReturn_t rc = code_of(mig_ci_create(edit->state, machine_boards(v->machine), v->ordinal,
                                            v->gi, id, start, ret_ci));
    v->card = *c;
    if (rc == NVML_SUCCESS || c->fail_create_nth > 0)
        (void)core_commit(v->machine, edit); /* cannot fail */
    return rc;
}

static nvmlReturn_t create(nvmlGpuInstance_t instance, unsigned int id, uint32_t start,
                           nvmlComputeInstance_t *ret)
{
    struct view v;
    uint32_t ci;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_gi(instance, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!sim_ci_profile(view_profile(&v), id))
        return NVML_ERROR_NOT_SUPPORTED;
    rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc == NVML_SUCCESS && !still_there(&edit, &v))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = create_in(&edit, &v, id, start, &ci);
    if (rc == NVML_SUCCESS)
        *ret = handle_ci(&v, v.gi, ci);
    return rc;
}

NVML(nvmlGpuInstanceCreateComputeInstance, nvmlGpuInstance_t instance, unsigned int id,
     nvmlComputeInstance_t *ret)
{
    return create(instance, id, MIG_ANYWHERE, ret);
}

NVML(nvmlGpuInstanceCreateComputeInstanceWithPlacement, nvmlGpuInstance_t instance, unsigned int id,
     const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *ret)
{
    struct view v;
    nvmlReturn_t rc = view_gi(instance, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct sim_ci_profile *c = sim_ci_profile(view_profile(&v), id);
    if (c && (!placement || placement->size != c->slices || placement->start == MIG_ANYWHERE))
        return NVML_ERROR_INVALID_ARGUMENT;
    return create(instance, id, c ? placement->start : MIG_ANYWHERE, ret);
}

NVML(nvmlComputeInstanceDestroy, nvmlComputeInstance_t instance)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_ci(instance, &v);
    if (rc == NVML_SUCCESS)
        rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    if (!still_there(&edit, &v) || edit.state->cards[v.ordinal].gi[v.gi].ci[v.ci].incarnation !=
                                       view_instance(&v)->ci[v.ci].incarnation)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = code_of(mig_ci_destroy(edit.state, v.ordinal, v.gi, v.ci,
                                sim_ci_busy(v.machine, v.ordinal, v.gi, v.ci)));
    return rc == NVML_SUCCESS ? core_commit(v.machine, &edit) : rc;
}

/* ---- finding ---- */

NVML(nvmlGpuInstanceGetComputeInstances, nvmlGpuInstance_t instance, unsigned int id,
     nvmlComputeInstance_t *instances, unsigned int *count)
{
    struct view v;
    nvmlReturn_t rc = view_gi(instance, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    const struct sim_profile *p = view_profile(&v);
    const struct sim_ci_profile *c = sim_ci_profile(p, id);
    if (!instances || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!c)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (uint32_t ci = 0; ci < SIM_CI_MAX; ci++) {
        const struct sim_ci *one = &view_instance(&v)->ci[ci];
        if (one->used && &p->ci[one->profile] == c)
            instances[(*count)++] = handle_ci(&v, v.gi, ci);
    }
    return NVML_SUCCESS;
}

NVML(nvmlGpuInstanceGetComputeInstanceById, nvmlGpuInstance_t instance, unsigned int id,
     nvmlComputeInstance_t *ret)
{
    struct view v;
    nvmlReturn_t rc = view_gi(instance, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (id >= SIM_CI_MAX || !view_instance(&v)->ci[id].used)
        return NVML_ERROR_NOT_FOUND;
    *ret = handle_ci(&v, v.gi, id);
    return NVML_SUCCESS;
}

static nvmlReturn_t give_info(nvmlComputeInstance_t instance, void *ret, size_t size)
{
    struct view v;
    nvmlReturn_t rc = view_ci(instance, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!ret)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_ci *c = &view_instance(&v)->ci[v.ci];
    nvmlComputeInstanceInfo_t info = { .device = handle_card(v.ordinal),
                                       .gpuInstance = handle_gi(&v, v.gi),
                                       .id = v.ci,
                                       .profileId = view_profile(&v)->ci[c->profile].id,
                                       .placement = { .start = c->span.start,
                                                      .size = c->span.size } };
    memcpy(ret, &info, size);
    return NVML_SUCCESS;
}

NVML(nvmlComputeInstanceGetInfo_v2, nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info)
{
    return give_info(instance, info, sizeof *info);
}

/* Version 1 had no placement. */
NVML(nvmlComputeInstanceGetInfo, nvmlComputeInstance_t instance, nvmlComputeInstanceInfo_t *info)
{
    return give_info(instance, info, offsetof(nvmlComputeInstanceInfo_t, placement));
}
