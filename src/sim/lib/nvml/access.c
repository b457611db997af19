#include "sim/lib/nvml/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sim/root.h"

/* Only a refusal closes: a node without a driver behind it, or none at all, does not. */
static bool is_refusal(int rc)
{
    return rc == -EACCES || rc == -EPERM;
}

bool access_card(const struct machine *m, uint32_t minor)
{
    auto_free char *root = sim_root_path(m);
    char node[32];
    (void)snprintf(node, sizeof node, "dev/nvidia%u", minor); /* fits */
    return !is_refusal(sim_root_may_open(root, "dev/nvidiactl")) &&
           !is_refusal(sim_root_may_open(root, node));
}

bool access_mig(const struct machine *m, uint32_t minor, uint32_t gi, uint32_t ci)
{
    auto_free char *root = sim_root_path(m);
    return !is_refusal(sim_root_may_use_instance(root, minor, gi, ci));
}

bool access_mig_device_at(const struct view *v, uint32_t index, uint32_t *ret_gi, uint32_t *ret_ci)
{
    for (uint32_t i = 0; mig_device_at(&v->card, i, ret_gi, ret_ci); i++)
        if (access_mig(v->machine, v->card.minor, *ret_gi, *ret_ci) && index-- == 0)
            return true;
    return false;
}

bool access_monitor(const struct machine *m)
{
    auto_free char *root = sim_root_path(m);
    char node[48];
    (void)snprintf(node, sizeof node, "dev/nvidia-caps/nvidia-cap%u", SIM_CAP_MONITOR); /* fits */
    return !is_refusal(sim_root_may_open(root, node));
}
