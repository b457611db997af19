/* Temperature, power, clocks, fans, PCIe link, and the errors of memory. */
#include "base/cleanup.h"
#include "sim/lib/nvml/core.h"
#include "sim/lib/nvml/sensor.h"

static nvmlReturn_t known(unsigned int figure, unsigned int *ret)
{
    if (figure == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret = figure;
    return NVML_SUCCESS;
}

/* ---- temperature ---- */

static nvmlReturn_t ask_temperature(const struct view *v, unsigned int *ret)
{
    struct sensors s;
    nvmlReturn_t rc = sensors_read(v, &s);
    return rc == NVML_SUCCESS ? known(s.temperature_c, ret) : rc;
}

NVML(nvmlDeviceGetTemperature, nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
     unsigned int *celsius)
{
    if (sensor != NVML_TEMPERATURE_GPU)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return view_number(device, celsius, ask_temperature);
}

NVML(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_v1_t *temperature)
{
    unsigned int celsius;
    if (!temperature)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    if (temperature->version != NVML_TAG(nvmlTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t rc = nvmlDeviceGetTemperature(device, temperature->sensorType, &celsius);
    if (rc == NVML_SUCCESS)
        temperature->temperature = (int)celsius;
    return rc;
}

static nvmlReturn_t ask_slowdown(const struct view *v, unsigned int *ret)
{
    return known(v->board->temp_slowdown_c, ret);
}

static nvmlReturn_t ask_shutdown(const struct view *v, unsigned int *ret)
{
    return known(v->board->temp_shutdown_c, ret);
}

static nvmlReturn_t ask_nothing(const struct view *v, unsigned int *ret)
{
    (void)v;
    (void)ret;
    return NVML_ERROR_NOT_SUPPORTED;
}

NVML(nvmlDeviceGetTemperatureThreshold, nvmlDevice_t device, unsigned int threshold,
     unsigned int *celsius)
{
    return view_number(device, celsius,
                       threshold == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN   ? ask_shutdown
                       : threshold == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN ? ask_slowdown
                                                                          : ask_nothing);
}

NVML(nvmlDeviceGetMarginTemperature, nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin)
{
    unsigned int now, limit;
    if (!margin)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    if (margin->version != NVML_TAG(nvmlMarginTemperature_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t rc = view_number(device, &now, ask_temperature);
    if (rc == NVML_SUCCESS)
        rc = view_number(device, &limit, ask_slowdown);
    if (rc == NVML_SUCCESS)
        margin->marginTemperature = (int)limit - (int)now;
    return rc;
}

/* ---- power ---- */

static nvmlReturn_t ask_power(const struct view *v, unsigned int *ret)
{
    struct sensors s;
    nvmlReturn_t rc = sensors_read(v, &s);
    return rc == NVML_SUCCESS ? known(s.power_mw, ret) : rc;
}

NVML(nvmlDeviceGetPowerUsage, nvmlDevice_t device, unsigned int *milliwatts)
{
    return view_number(device, milliwatts, ask_power);
}

static nvmlReturn_t ask_power_limit(const struct view *v, unsigned int *ret)
{
    return known(v->card.power_limit_mw ? v->card.power_limit_mw : v->board->power_limit_mw, ret);
}

NVML(nvmlDeviceGetPowerManagementLimit, nvmlDevice_t device, unsigned int *milliwatts)
{
    return view_number(device, milliwatts, ask_power_limit);
}
NVML_ALSO(nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetEnforcedPowerLimit);

static nvmlReturn_t ask_default_limit(const struct view *v, unsigned int *ret)
{
    return known(v->board->power_limit_mw, ret);
}

NVML(nvmlDeviceGetPowerManagementDefaultLimit, nvmlDevice_t device, unsigned int *milliwatts)
{
    return view_number(device, milliwatts, ask_default_limit);
}

NVML(nvmlDeviceGetPowerManagementMode, nvmlDevice_t device, unsigned int *mode)
{
    unsigned int limit;
    nvmlReturn_t rc = view_number(device, &limit, ask_default_limit);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!mode)
        return NVML_ERROR_INVALID_ARGUMENT;
    *mode = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t device, unsigned int *min_mw,
     unsigned int *max_mw)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!min_mw || !max_mw)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (v.board->power_limit_mw == 0 || sensors_lowest_limit_mw(v.board) == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *min_mw = sensors_lowest_limit_mw(v.board);
    *max_mw = v.board->power_limit_mw;
    return NVML_SUCCESS;
}

static nvmlReturn_t set_power_limit(nvmlDevice_t device, unsigned int milliwatts)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (v.board->power_limit_mw == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (milliwatts < sensors_lowest_limit_mw(v.board) || milliwatts > v.board->power_limit_mw)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    edit.state->cards[v.ordinal].power_limit_mw = milliwatts;
    return core_commit(v.machine, &edit);
}

NVML(nvmlDeviceSetPowerManagementLimit, nvmlDevice_t device, unsigned int milliwatts)
{
    return set_power_limit(device, milliwatts);
}

NVML(nvmlDeviceSetPowerManagementLimit_v2, nvmlDevice_t device, nvmlPowerValue_v2_t *value)
{
    if (!value)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    if (value->version != NVML_TAG(nvmlPowerValue_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return set_power_limit(device, value->powerValueMw);
}

/* ---- clocks, performance state, fan ---- */

static nvmlReturn_t ask_clock_sm(const struct view *v, unsigned int *ret)
{
    struct sensors s;
    nvmlReturn_t rc = sensors_read(v, &s);
    return rc == NVML_SUCCESS ? known(s.clock_sm_mhz, ret) : rc;
}

static nvmlReturn_t ask_clock_sm_max(const struct view *v, unsigned int *ret)
{
    return known(v->board->clock_sm_max_mhz, ret);
}

static nvmlReturn_t ask_clock_mem(const struct view *v, unsigned int *ret)
{
    return known(v->board->clock_mem_mhz, ret);
}

NVML(nvmlDeviceGetClockInfo, nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    if (type > NVML_CLOCK_VIDEO)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return view_number(device, mhz,
                       type == NVML_CLOCK_MEM     ? ask_clock_mem
                       : type == NVML_CLOCK_VIDEO ? ask_nothing
                                                  : ask_clock_sm);
}

NVML(nvmlDeviceGetMaxClockInfo, nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    if (type > NVML_CLOCK_VIDEO)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return view_number(device, mhz,
                       type == NVML_CLOCK_MEM     ? ask_clock_mem
                       : type == NVML_CLOCK_VIDEO ? ask_nothing
                                                  : ask_clock_sm_max);
}

static nvmlReturn_t lock_clocks(nvmlDevice_t device, unsigned int max_mhz)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc == NVML_SUCCESS)
        rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    edit.state->cards[v.ordinal].clock_lock_mhz = max_mhz;
    return core_commit(v.machine, &edit);
}

NVML(nvmlDeviceSetGpuLockedClocks, nvmlDevice_t device, unsigned int min_mhz, unsigned int max_mhz)
{
    if (min_mhz > max_mhz || max_mhz == 0)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return lock_clocks(device, max_mhz);
}

NVML(nvmlDeviceResetGpuLockedClocks, nvmlDevice_t device)
{
    return lock_clocks(device, 0);
}

/* Data-centre boards have application clocks: what a process gets that asks for none itself. */

static nvmlReturn_t app_clock(const struct view *v, uint32_t set_mhz, uint32_t own_mhz,
                              unsigned int *ret)
{
    if (!v->board->passive)
        return NVML_ERROR_NOT_SUPPORTED;
    return known(set_mhz ? set_mhz : own_mhz, ret);
}

static nvmlReturn_t ask_app_sm(const struct view *v, unsigned int *ret)
{
    return app_clock(v, v->card.app_sm_mhz, v->board->clock_sm_max_mhz, ret);
}

static nvmlReturn_t ask_app_mem(const struct view *v, unsigned int *ret)
{
    return app_clock(v, v->card.app_mem_mhz, v->board->clock_mem_mhz, ret);
}

static nvmlReturn_t ask_default_app_sm(const struct view *v, unsigned int *ret)
{
    return app_clock(v, 0, v->board->clock_sm_max_mhz, ret);
}

static nvmlReturn_t ask_default_app_mem(const struct view *v, unsigned int *ret)
{
    return app_clock(v, 0, v->board->clock_mem_mhz, ret);
}

NVML(nvmlDeviceGetApplicationsClock, nvmlDevice_t device, unsigned int type, unsigned int *mhz)
{
    if (type > NVML_CLOCK_MEM)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return view_parent_number(device, mhz, type == NVML_CLOCK_MEM ? ask_app_mem : ask_app_sm);
}

NVML(nvmlDeviceGetDefaultApplicationsClock, nvmlDevice_t device, unsigned int type,
     unsigned int *mhz)
{
    if (type > NVML_CLOCK_MEM)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return view_parent_number(device, mhz,
                              type == NVML_CLOCK_MEM ? ask_default_app_mem : ask_default_app_sm);
}

static nvmlReturn_t set_app_clocks(nvmlDevice_t device, unsigned int mem_mhz, unsigned int sm_mhz)
{
    struct view v;
    AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc == NVML_SUCCESS && !v.board->passive)
        rc = NVML_ERROR_NOT_SUPPORTED;
    if (rc == NVML_SUCCESS &&
        (sm_mhz > v.board->clock_sm_max_mhz || (mem_mhz && mem_mhz != v.board->clock_mem_mhz)))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = code_of(machine_edit_begin(v.machine, &edit, NULL));
    if (rc != NVML_SUCCESS)
        return rc;
    edit.state->cards[v.ordinal].app_sm_mhz = sm_mhz;
    edit.state->cards[v.ordinal].app_mem_mhz = mem_mhz;
    return core_commit(v.machine, &edit);
}

NVML(nvmlDeviceSetApplicationsClocks, nvmlDevice_t device, unsigned int mem_mhz,
     unsigned int sm_mhz)
{
    if (!mem_mhz || !sm_mhz)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return set_app_clocks(device, mem_mhz, sm_mhz);
}

NVML(nvmlDeviceResetApplicationsClocks, nvmlDevice_t device)
{
    return set_app_clocks(device, 0, 0);
}

static nvmlReturn_t ask_pstate(const struct view *v, unsigned int *ret)
{
    struct sensors s;
    nvmlReturn_t rc = sensors_read(v, &s);
    if (rc == NVML_SUCCESS)
        *ret = s.pstate;
    return rc;
}

NVML(nvmlDeviceGetPerformanceState, nvmlDevice_t device, unsigned int *pstate)
{
    return view_number(device, pstate, ask_pstate);
}
NVML_ALSO(nvmlDeviceGetPerformanceState, nvmlDeviceGetPowerState);

#define REASON_GPU_IDLE 0x1ULL

NVML(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDevice_t device, unsigned long long *reasons)
{
    struct view v;
    struct sensors s;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc == NVML_SUCCESS)
        rc = sensors_read(&v, &s);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!reasons)
        return NVML_ERROR_INVALID_ARGUMENT;
    *reasons = s.idle ? REASON_GPU_IDLE : 0;
    return NVML_SUCCESS;
}
NVML_ALSO(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons);

NVML(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDevice_t device, unsigned long long *reasons)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!reasons)
        return NVML_ERROR_INVALID_ARGUMENT;
    *reasons = REASON_GPU_IDLE;
    return NVML_SUCCESS;
}
NVML_ALSO(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDeviceGetSupportedClocksEventReasons);

static nvmlReturn_t ask_fan(const struct view *v, unsigned int *ret)
{
    struct sensors s;
    nvmlReturn_t rc = sensors_read(v, &s);
    if (rc != NVML_SUCCESS)
        return rc;
    if (s.fan_percent == SIM_NO_INSTANCE)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret = s.fan_percent;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetFanSpeed, nvmlDevice_t device, unsigned int *percent)
{
    return view_number(device, percent, ask_fan);
}

NVML(nvmlDeviceGetFanSpeed_v2, nvmlDevice_t device, unsigned int fan, unsigned int *percent)
{
    if (fan > 0)
        return core_machine() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    return view_number(device, percent, ask_fan);
}

static nvmlReturn_t ask_fans(const struct view *v, unsigned int *ret)
{
    *ret = v->board->passive ? 0 : 1;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetNumFans, nvmlDevice_t device, unsigned int *count)
{
    return view_number(device, count, ask_fans);
}

/* ---- the PCIe link: as wide and fast as the board can ---- */

static nvmlReturn_t ask_pcie_gen(const struct view *v, unsigned int *ret)
{
    return known(v->board->pcie_gen, ret);
}

static nvmlReturn_t ask_pcie_width(const struct view *v, unsigned int *ret)
{
    return known(v->board->pcie_width, ret);
}

NVML(nvmlDeviceGetMaxPcieLinkGeneration, nvmlDevice_t device, unsigned int *generation)
{
    return view_number(device, generation, ask_pcie_gen);
}
NVML_ALSO(nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration);
NVML_ALSO(nvmlDeviceGetMaxPcieLinkGeneration, nvmlDeviceGetCurrPcieLinkGeneration);

NVML(nvmlDeviceGetMaxPcieLinkWidth, nvmlDevice_t device, unsigned int *width)
{
    return view_number(device, width, ask_pcie_width);
}
NVML_ALSO(nvmlDeviceGetMaxPcieLinkWidth, nvmlDeviceGetCurrPcieLinkWidth);

/* ---- errors of memory: none happen here, on boards that count them ---- */

NVML(nvmlDeviceGetEccMode, nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.board->ecc)
        return NVML_ERROR_NOT_SUPPORTED;
    *current = *pending = NVML_FEATURE_ENABLED;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_no_errors(nvmlDevice_t device, unsigned int error_type,
                                   unsigned int counter_type, unsigned long long *count,
                                   bool of_mig)
{
    struct view v;
    nvmlReturn_t rc = view_any(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!count || error_type > 1 || counter_type > 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!v.board->ecc || (v.is_mig && !of_mig))
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, unsigned int error_type,
     unsigned int counter_type, unsigned long long *count)
{
    return give_no_errors(device, error_type, counter_type, count, false);
}

#define ECC_UNCORRECTED 1U
#define ECC_VOLATILE 0U
#define ECC_LOCATION_SRAM 7U

NVML(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t device, unsigned int error_type,
     unsigned int counter_type, unsigned int location, unsigned long long *count)
{
    bool of_mig = error_type == ECC_UNCORRECTED && counter_type == ECC_VOLATILE &&
                  location == ECC_LOCATION_SRAM;
    return give_no_errors(device, error_type, counter_type, count, of_mig);
}

NVML(nvmlDeviceGetSramEccErrorStatus, nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *status)
{
    struct view v;
    nvmlReturn_t rc = view_card(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!status)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (status->version != NVML_TAG(nvmlEccSramErrorStatus_v1_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!v.board->ecc || v.board->arch < NVML_DEVICE_ARCH_AMPERE)
        return NVML_ERROR_NOT_SUPPORTED;
    *status = (nvmlEccSramErrorStatus_v1_t){ .version = status->version };
    return NVML_SUCCESS;
}

static nvmlReturn_t view_remapper(nvmlDevice_t device, struct view *ret)
{
    nvmlReturn_t rc = view_card(device, ret);
    if (rc == NVML_SUCCESS && (!ret->board->ecc || ret->board->arch < NVML_DEVICE_ARCH_AMPERE ||
                               sim_card_instances(&ret->card) > 0))
        rc = NVML_ERROR_NOT_SUPPORTED;
    return rc;
}

NVML(nvmlDeviceGetRemappedRows, nvmlDevice_t device, unsigned int *corrected,
     unsigned int *uncorrected, unsigned int *pending, unsigned int *failed)
{
    struct view v;
    nvmlReturn_t rc = view_remapper(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!corrected || !uncorrected || !pending || !failed)
        return NVML_ERROR_INVALID_ARGUMENT;
    *corrected = *uncorrected = *pending = *failed = 0;
    return NVML_SUCCESS;
}

NVML(nvmlDeviceGetRemappedRows_v2, nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info)
{
    struct view v;
    nvmlReturn_t rc = view_remapper(device, &v);
    if (rc != NVML_SUCCESS)
        return rc;
    if (!info)
        return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlRemappedRowsInfo_v2_t){ 0 };
    return NVML_SUCCESS;
}
