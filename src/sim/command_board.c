#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "sim/command.h"

/* By NVML_DEVICE_ARCH_*. */
static const char *arch_name(uint32_t arch)
{
    static const char *const names[] = { [5] = "Volta",        [6] = "Turing", [7] = "Ampere",
                                         [8] = "Ada Lovelace", [9] = "Hopper", [10] = "Blackwell" };
    return arch < sizeof names / sizeof *names && names[arch] ? names[arch] : "";
}

static enum sim_mig_enable mig_enable(enum mig_activation a)
{
    return a == MIG_BY_RESET    ? SIM_MIG_GPU_RESET
           : a == MIG_IMMEDIATE ? SIM_MIG_IMMEDIATE
                                : SIM_MIG_NONE;
}

static void compile_ci(const struct profile *p, const struct ci_profile *ci,
                       struct sim_ci_profile *ret)
{
    *ret = (struct sim_ci_profile){
        .id = ci->id,
        .index = ci->index,
        .slices = ci->slices,
        .sm = ci->sms,
        .max_instances = ci->max,
        .is_default = ci == profile_full_ci(p),
    };
    memcpy(ret->name, ci->name, sizeof ci->name); /* 32 bytes with its NUL into 48 */
}

static void compile_profile(const struct profile *p, struct sim_profile *ret)
{
    *ret = (struct sim_profile){
        .id = p->id,
        .index = p->index,
        .slices = p->slices,
        .memory_mib = (uint32_t)(p->mem_bytes >> 20),
        .sm = p->sms,
        .engines = { p->copy_engines, p->decoders, p->encoders, p->jpegs, p->ofas },
        .max_instances = p->max,
        .graphics = strstr(p->name, "+gfx") != NULL,
        .unconfirmed = p->unconfirmed,
        .placement_count = p->start_count,
        .start_count = p->order_count,
        .ci_count = p->ci_count,
    };
    memcpy(ret->name, p->name, sizeof p->name);
    for (uint32_t i = 0; i < p->start_count; i++)
        ret->placements[i] = (struct sim_span){ p->starts[i], p->units };
    for (uint32_t i = 0; i < p->order_count; i++)
        ret->start_order[i] = p->order[i];
    for (uint32_t i = 0; i < p->ci_count; i++)
        compile_ci(p, &p->cis[i], &ret->ci[i]);
}

static int check_room(const struct board *b, struct err *e)
{
    if (b->profile_count > SIM_PROFILES_MAX)
        return err_set(e, -EINVAL, "board %s: %u profiles are more than the simulated driver's %d",
                       b->key, b->profile_count, SIM_PROFILES_MAX);
    for (uint32_t i = 0; i < b->profile_count; i++) {
        const struct profile *p = &b->profiles[i];
        if (p->start_count > SIM_PLACEMENTS_MAX || p->order_count > SIM_PLACEMENTS_MAX ||
            p->ci_count > SIM_CI_PROFILES_MAX)
            return err_set(e, -EINVAL,
                           "board %s: %s has more than %d starts or %d kinds of compute instances",
                           b->key, p->name, SIM_PLACEMENTS_MAX, SIM_CI_PROFILES_MAX);
    }
    return 0;
}

static int copy_names(const struct board *b, struct sim_board *ret, struct err *e)
{
    if (strlen(b->name) >= sizeof ret->name)
        return err_set(e, -EINVAL, "board %s: its name is longer than %zu bytes", b->key,
                       sizeof ret->name - 1);
    memcpy(ret->key, b->key, sizeof b->key);
    memcpy(ret->name, b->name, strlen(b->name) + 1);
    const char *arch = arch_name(b->arch);
    memcpy(ret->arch_name, arch, strlen(arch) + 1);
    return 0;
}

int command_compile_board(const struct board *b, struct sim_board *ret, struct err *e)
{
    int rc = check_room(b, e);
    if (rc < 0)
        return rc;
    *ret = (struct sim_board){
        .arch = b->arch,
        .brand = b->brand,
        .cc_major = b->cc_major,
        .cc_minor = b->cc_minor,
        .pci_device_id = b->pci_device_id,
        .memory_mib = (uint32_t)(b->mem_bytes >> 20),
        .reserved_mib = (uint32_t)(b->reserved_bytes >> 20),
        .sm = b->sms,
        .cores_per_sm = b->cores_per_sm,
        .units = b->units,
        .slices = b->slices,
        .engines = { b->copy_engines, b->decoders, b->encoders, b->jpegs, b->ofas },
        .mig_enable = mig_enable(b->activation),
        .ecc = b->ecc,
        .passive = !b->fan,
        .unconfirmed = b->unconfirmed,
        .power_idle_mw = b->power_idle_mw,
        .power_limit_mw = b->power_limit_mw,
        .clock_sm_max_mhz = b->clock_max_mhz,
        .clock_sm_idle_mhz = b->clock_idle_mhz,
        .clock_mem_mhz = b->clock_memory_mhz,
        .temp_slowdown_c = b->temp_slowdown_c,
        .temp_shutdown_c = b->temp_shutdown_c,
        .pcie_gen = b->pcie_gen,
        .pcie_width = b->pcie_width,
        .profile_count = b->profile_count,
    };
    rc = copy_names(b, ret, e);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < b->profile_count; i++)
        compile_profile(&b->profiles[i], &ret->profiles[i]);
    return sim_board_check(ret, e);
}
