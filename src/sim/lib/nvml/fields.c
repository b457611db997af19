/* Field values: numbers by id, each with its own return code. */
#include <time.h>

#include "sim/lib/nvml/core.h"
#include "sim/lib/nvml/sensor.h"

typedef nvmlReturn_t (*field_fn)(const struct view *v, nvmlFieldValue_t *f);

static nvmlReturn_t number(nvmlFieldValue_t *f, unsigned int n)
{
    f->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    f->value.uiVal = n;
    return NVML_SUCCESS;
}

/* Of the card; a module around it (Grace) or its memory alone is not simulated. */
static nvmlReturn_t milliwatts(nvmlFieldValue_t *f, unsigned int mw)
{
    return mw == 0 || f->scopeId != NVML_POWER_SCOPE_GPU ? NVML_ERROR_NOT_SUPPORTED : number(f, mw);
}

static nvmlReturn_t field_power(const struct view *v, nvmlFieldValue_t *f)
{
    struct sensors s;
    nvmlReturn_t rc = sensors_read(v, &s);
    return rc == NVML_SUCCESS ? milliwatts(f, s.power_mw) : rc;
}

static nvmlReturn_t field_power_limit(const struct view *v, nvmlFieldValue_t *f)
{
    return milliwatts(f,
                      v->card.power_limit_mw ? v->card.power_limit_mw : v->board->power_limit_mw);
}

static nvmlReturn_t field_power_highest(const struct view *v, nvmlFieldValue_t *f)
{
    return milliwatts(f, v->board->power_limit_mw);
}

static nvmlReturn_t field_power_lowest(const struct view *v, nvmlFieldValue_t *f)
{
    return milliwatts(f, sensors_lowest_limit_mw(v->board));
}

static nvmlReturn_t field_remapped(const struct view *v, nvmlFieldValue_t *f)
{
    if (!v->board->ecc || v->board->arch < NVML_DEVICE_ARCH_AMPERE ||
        sim_card_instances(&v->card) > 0)
        return NVML_ERROR_NOT_SUPPORTED;
    return number(f, 0);
}

static nvmlReturn_t field_resetless(const struct view *v, nvmlFieldValue_t *f)
{
    if (v->board->mig_enable == SIM_MIG_NONE || core_branch() < 535)
        return NVML_ERROR_NOT_SUPPORTED;
    return number(f, v->board->mig_enable == SIM_MIG_IMMEDIATE);
}

static nvmlReturn_t field_plans_without_mig(const struct view *v, nvmlFieldValue_t *f)
{
    if (core_branch() < 550)
        return NVML_ERROR_NOT_SUPPORTED;
    return number(f, v->board->mig_enable != SIM_MIG_NONE);
}

/* 0 none, 1 reset the GPU, 2 reboot the node. */
static nvmlReturn_t field_recovery(const struct view *v, nvmlFieldValue_t *f)
{
    if (core_branch() < 570)
        return NVML_ERROR_NOT_SUPPORTED;
    return number(f, v->card.faults & SIM_FAULT_RESET_REQUIRED ? 1 : 0);
}

static const struct {
    unsigned int id;
    field_fn ask;
} fields[] = {
    { NVML_FI_DEV_REMAPPED_COR, field_remapped },
    { NVML_FI_DEV_REMAPPED_UNC, field_remapped },
    { NVML_FI_DEV_REMAPPED_PENDING, field_remapped },
    { NVML_FI_DEV_REMAPPED_FAILURE, field_remapped },
    { NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, field_resetless },
    { NVML_FI_DEV_POWER_AVERAGE, field_power },
    { NVML_FI_DEV_POWER_INSTANT, field_power },
    { NVML_FI_DEV_POWER_MIN_LIMIT, field_power_lowest },
    { NVML_FI_DEV_POWER_MAX_LIMIT, field_power_highest },
    { NVML_FI_DEV_POWER_DEFAULT_LIMIT, field_power_highest },
    { NVML_FI_DEV_POWER_CURRENT_LIMIT, field_power_limit },
    { NVML_FI_DEV_POWER_REQUESTED_LIMIT, field_power_limit },
    { NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE, field_plans_without_mig },
    { NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, field_recovery },
};

static nvmlReturn_t answer(const struct view *v, nvmlFieldValue_t *f)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].id == f->fieldId)
            return fields[i].ask(v, f);
    return NVML_ERROR_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct view v;
    struct timespec t;
    nvmlReturn_t rc = view_parent(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (count < 1 || !values)
        return NVML_ERROR_INVALID_ARGUMENT;
    (void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail */
    for (int i = 0; i < count; i++) {
        values[i].timestamp = (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        values[i].latencyUsec = 0;
        values[i].nvmlReturn = answer(&v, &values[i]);
    }
    return NVML_SUCCESS;
}

/* No field here counts up, so none can be cleared. */
NVML(nvmlDeviceClearFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct view v;
    nvmlReturn_t rc = view_parent(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (count < 1 || !values)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
