#include "sim/lib/nvml/sensor.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define IDLE_C 32U
#define BELOW_SLOWDOWN_C 12U /* a well cooled card at full load stays this far below */
#define PSTATE_IDLE 8U

static uint32_t between(uint32_t low, uint32_t high, uint32_t percent)
{
    return high <= low ? low : low + (uint32_t)((uint64_t)(high - low) * percent / 100);
}

static void read_clocks(const struct view *v, struct sensors *s)
{
    const struct sim_board *b = v->board;
    uint32_t top = b->clock_sm_max_mhz;
    if (v->card.clock_lock_mhz > 0 && v->card.clock_lock_mhz < top)
        top = v->card.clock_lock_mhz;
    if (v->card.app_sm_mhz > 0 && v->card.app_sm_mhz < top)
        top = v->card.app_sm_mhz;
    s->clock_sm_mhz = s->idle && b->clock_sm_idle_mhz > 0 ? b->clock_sm_idle_mhz : top;
    s->clock_mem_mhz = b->clock_mem_mhz;
    /* Data-centre boards stay in P0; others rest. */
    s->pstate = s->idle && !b->passive ? PSTATE_IDLE : 0;
}

static void read_heat(const struct view *v, struct sensors *s)
{
    const struct sim_board *b = v->board;
    s->power_limit_mw = v->card.power_limit_mw ? v->card.power_limit_mw : b->power_limit_mw;
    s->power_mw = b->power_idle_mw && s->power_limit_mw
                      ? between(b->power_idle_mw, s->power_limit_mw, s->load)
                      : 0;
    s->temperature_c = b->temp_slowdown_c > BELOW_SLOWDOWN_C + IDLE_C
                           ? between(IDLE_C, b->temp_slowdown_c - BELOW_SLOWDOWN_C, s->load)
                           : 0;
    s->fan_percent = b->passive ? SIM_NO_INSTANCE : between(s->idle ? 0 : 30, 100, s->load);
}

nvmlReturn_t sensors_read(const struct view *v, struct sensors *ret)
{
    struct sim_proc *list = NULL;
    uint32_t count = 0;
    nvmlReturn_t rc = core_procs(v, &list, &count);
    if (rc != NVML_SUCCESS)
        return rc;
    auto_free struct sim_proc *procs = list;
    *ret = (struct sensors){
        .load = sim_card_load(v->board, &v->card, procs, count, v->ordinal),
        .idle = true,
    };
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < procs[i].use_count; j++)
            ret->idle = ret->idle && procs[i].uses[j].card != v->ordinal;
    read_clocks(v, ret);
    read_heat(v, ret);
    return NVML_SUCCESS;
}

uint32_t sensors_lowest_limit_mw(const struct sim_board *b)
{
    return b->power_min_mw ? b->power_min_mw : b->power_idle_mw;
}
