/*
 * processes.h - the list of processes behind the public calls and behind the
 * internal table that nvidia-smi uses.
 */
#ifndef DIVVY_SIM_NVML_PROCESSES_H
#define DIVVY_SIM_NVML_PROCESSES_H

#include "sim/lib/nvml/core.h"

#define LISTED_PROCESSES_MAX 512

struct listed_process {
    unsigned int pid;
    unsigned long long memory_bytes;
    unsigned int gi; /* SIM_NO_INSTANCE when not MIG */
    unsigned int ci;
    char name[64];
};

/*
 * Processes of one kind on a card (all its instances) or on a MIG device. At
 * most `room` are written; *ret_count is how many there are. NO_PERMISSION on
 * the card of a MIG-enabled GPU when mig/monitor is closed to the caller.
 */
nvmlReturn_t list_processes(nvmlDevice_t device, enum sim_use_kind kind, struct listed_process *ret,
                            unsigned int room, unsigned int *ret_count);

#endif
