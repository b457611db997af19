/*
 * process.h - which processes use which simulated card or instance.
 *
 * A process that uses a card (through the simulated libcuda, or a test) has a
 * file procs/PID.UID, owned by its user. Nobody else can make or remove it (the
 * folder is sticky), and a reader believes it only while /proc/PID has the
 * same owner and start time, so a killed process is gone at once and nobody
 * can speak for another. Registering takes the machine's lock: an instance
 * cannot be destroyed under a process that is just coming.
 *
 *     struct sim_use use = {.card = 0, .gi = 2, .ci = 0,
 *                           .memory_bytes = 6 << 30, .load_percent = 80};
 *     rc = sim_use_set(m, &use, 1, e);     // -ENOMEM: does not fit
 *     ...
 *     rc = sim_use_set(m, NULL, 0, e);     // optional: exiting is enough
 */
#ifndef DIVVY_SIM_PROCESS_H
#define DIVVY_SIM_PROCESS_H

#include <sys/types.h>

#include "sim/machine.h"

#define SIM_USES_MAX 16

enum sim_use_kind {
    SIM_USE_COMPUTE,
    SIM_USE_GRAPHICS,
    SIM_USE_MPS, /* a client of MPS */
};

struct sim_use {
    uint32_t card; /* ordinal */
    uint32_t gi;   /* both SIM_NO_INSTANCE for the whole card */
    uint32_t ci;
    uint32_t kind;         /* enum sim_use_kind */
    uint32_t load_percent; /* of its card or slice, 0 to 100 */
    uint32_t reserved;
    uint64_t memory_bytes;
    int64_t since_us; /* CLOCK_BOOTTIME; sim_use_set fills it when 0 */
};

struct sim_proc {
    pid_t pid;
    uid_t uid;
    char name[64]; /* of its command line's program, or its comm */
    uint32_t use_count;
    struct sim_use uses[SIM_USES_MAX];
};

/*
 * Says that this process now uses exactly `uses` (all earlier ones are
 * replaced; none ends its registration). On failure nothing changes:
 *   -ENODEV  the card does not exist or is lost
 *   -ENOENT  the instance does not exist, or the card has MIG off
 *   -EINVAL  the whole card of a card with MIG on; more than SIM_USES_MAX
 *   -ENOMEM  the memory asked is more than is free there
 *   -EBUSY   compute mode EXCLUSIVE_PROCESS and another process is there
 *   -EACCES  compute mode PROHIBITED
 *   -ESHUTDOWN the machine is gone
 * Whether the caller may open the card's device nodes is not asked here.
 */
int sim_use_set(struct machine *m, const struct sim_use *uses, uint32_t count, struct err *e);

/*
 * All live processes with a use, by PID. The caller frees *ret_procs (NULL
 * when there are none). What cannot be believed is left out; files of dead
 * processes that this caller may remove are removed.
 */
int sim_procs_read(const struct machine *m, struct sim_proc **ret_procs, uint32_t *ret_count,
                   struct err *e);

/* Does a live process use the card; the GPU instance; the compute instance? */
bool sim_card_busy(const struct machine *m, uint32_t card);
bool sim_gi_busy(const struct machine *m, uint32_t card, uint32_t gi);
bool sim_ci_busy(const struct machine *m, uint32_t card, uint32_t gi, uint32_t ci);

/* Sums over `procs`: bytes used on the card (gi SIM_NO_INSTANCE: everywhere on it, else there). */
uint64_t sim_memory_used(const struct sim_proc *procs, uint32_t count, uint32_t card, uint32_t gi);
/* Bytes that processes can have there: the GPU instance's memory, or the card's less the reserve. */
uint64_t sim_memory_usable(const struct sim_board *board, const struct sim_card *c, uint32_t gi);
/* Load of the whole card, 0 to 100: loads add up, each weighed by its slice's part of the card. */
uint32_t sim_card_load(const struct sim_board *board, const struct sim_card *c,
                       const struct sim_proc *procs, uint32_t count, uint32_t card);
/* Load of one GPU instance, 0 to 100, relative to it. */
uint32_t sim_gi_load(const struct sim_board *board, const struct sim_card *c,
                     const struct sim_proc *procs, uint32_t count, uint32_t card, uint32_t gi);

#endif
