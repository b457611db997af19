/* Switches of a card: MIG, persistence, compute mode; and modes a simulated card lacks. */
#include "base/cleanup.h"
#include "sim/lib/nvml/core.h"

NVML(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (v.board->mig_enable == SIM_MIG_NONE)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = v.card.mig_current;
    *pending = v.card.mig_pending;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceSetMigMode, nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activation)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!activation || mode > NVML_DEVICE_MIG_ENABLE)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (v.board->mig_enable == SIM_MIG_NONE)
        return NVML_ERROR_NOT_SUPPORTED;
    rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    *activation = code_of(sim_card_set_mig(edit.state, machine_boards(v.machine), v.ordinal,
                                           mode == NVML_DEVICE_MIG_ENABLE,
                                           sim_card_busy(v.machine, v.ordinal)));
    return core_commit(v.machine, &edit);
}

static nvmlReturn_t ask_persistence(const struct view *v, unsigned int *ret)
{
    *ret = v->card.persistence;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetPersistenceMode, nvmlDevice_t device, unsigned int *mode)
{
    return view_parent_number(device, mode, ask_persistence);
}

NVML(nvmlDeviceSetPersistenceMode, nvmlDevice_t device, unsigned int mode)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc == NVML_SUCCESS && mode > 1)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    edit.state->cards[v.ordinal].persistence = mode == 1;
    return core_commit(v.machine, &edit);
}

static nvmlReturn_t ask_compute_mode(const struct view *v, unsigned int *ret)
{
    *ret = v->card.compute_mode;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetComputeMode, nvmlDevice_t device, unsigned int *mode)
{
    return view_parent_number(device, mode, ask_compute_mode);
}

NVML(nvmlDeviceSetComputeMode, nvmlDevice_t device, unsigned int mode)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (mode != NVML_COMPUTEMODE_DEFAULT && mode != NVML_COMPUTEMODE_PROHIBITED &&
        mode != NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
        return NVML_ERROR_INVALID_ARGUMENT;
    /* A card with MIG on has none of its own, and simulated MIG devices keep the default. */
    if (v.card.mig_current)
        return NVML_ERROR_NOT_SUPPORTED;
    rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    edit.state->cards[v.ordinal].compute_mode = mode;
    return core_commit(v.machine, &edit);
}

static nvmlReturn_t ask_disabled(const struct view *v, unsigned int *ret)
{
    (void)v;
    *ret = NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetDisplayMode, nvmlDevice_t device, unsigned int *mode)
{
    return view_parent_number(device, mode, ask_disabled);
}
NVML_ALSO(nvmlDeviceGetDisplayMode, nvmlDeviceGetDisplayActive);

NVML_ALSO(nvmlDeviceGetDisplayMode, nvmlDeviceGetAccountingMode);

static nvmlReturn_t ask_virtualization(const struct view *v, unsigned int *ret)
{
    *ret = v->card.faults & SIM_FAULT_PASSTHROUGH ? NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH
                                                  : NVML_GPU_VIRTUALIZATION_MODE_NONE;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetVirtualizationMode, nvmlDevice_t device, unsigned int *mode)
{
    return view_parent_number(device, mode, ask_virtualization);
}
