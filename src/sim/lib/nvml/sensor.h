/*
 * sensor.h - what a simulated card's sensors would show, from its load.
 *
 * Nothing is measured, so everything follows from two things that are known:
 * the board's figures and the load that processes registered. A figure the
 * board does not have is 0 and is answered NOT_SUPPORTED.
 */
#ifndef DIVVY_SIM_NVML_SENSOR_H
#define DIVVY_SIM_NVML_SENSOR_H

#include "sim/lib/nvml/core.h"

struct sensors {
    uint32_t load; /* percent of the whole card */
    bool idle;     /* no process at all */
    uint32_t power_mw;
    uint32_t power_limit_mw;
    uint32_t temperature_c;
    uint32_t clock_sm_mhz;
    uint32_t clock_mem_mhz;
    uint32_t pstate;      /* 0 fastest */
    uint32_t fan_percent; /* SIM_NO_INSTANCE: no fan */
};

/* Reads the process list; fails as core_procs does. */
nvmlReturn_t sensors_read(const struct view *v, struct sensors *ret);

/*
 * The lowest power limit a card takes; where it is not known, its idle draw,
 * as below that no card can be capped. 0: neither is known.
 */
uint32_t sensors_lowest_limit_mw(const struct sim_board *b);

#endif
