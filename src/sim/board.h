/*
 * board.h - what a GPU model can be cut into, as the simulated driver knows it.
 *
 * A board is compiled from boards/KEY.yaml when a machine is made and never
 * changes afterwards; the driver library reads no YAML. Counts say how much of
 * an array is used. A figure that is not known is 0 and the library answers
 * NOT_SUPPORTED for it, rather than make one up.
 *
 * Units: memory units are what MIG placements are counted in (8 on A100 and
 * later, 4 on A30, 12 on RTX PRO 6000); slices are compute slices (7 or 4).
 */
#ifndef DIVVY_SIM_BOARD_H
#define DIVVY_SIM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define SIM_PROFILES_MAX 20
#define SIM_PLACEMENTS_MAX 12
#define SIM_CI_PROFILES_MAX 9
#define SIM_UNITS_MAX 16

struct sim_span {
    uint32_t start; /* first memory unit (GPU instance) or compute slice (compute instance) */
    uint32_t size;
};

struct sim_engines {
    uint32_t copy;
    uint32_t decoder;
    uint32_t encoder;
    uint32_t jpeg;
    uint32_t ofa;
};

struct sim_ci_profile {
    char name[48];  /* "1c.3g.40gb"; the full-size one is named as its GPU instance profile */
    uint32_t id;    /* what calls take */
    uint32_t index; /* NVML_COMPUTE_INSTANCE_PROFILE_* */
    uint32_t slices;
    uint32_t sm;
    uint32_t max_instances;
    bool is_default; /* the one that takes the whole GPU instance */
};

struct sim_profile {
    char name[32];  /* "2g.20gb", without the "MIG " that some drivers put in front */
    uint32_t id;    /* 19, 14, 9: what nvidia-smi prints and calls take */
    uint32_t index; /* NVML_GPU_INSTANCE_PROFILE_* */
    uint32_t slices;
    uint32_t memory_mib;
    uint32_t sm;
    struct sim_engines engines;
    uint32_t max_instances;
    bool graphics;    /* +gfx */
    bool unconfirmed; /* some figure of this profile has only weak sources */
    uint32_t placement_count;
    struct sim_span placements[SIM_PLACEMENTS_MAX];
    /* The order in which the driver tries starts when nobody names one. */
    uint32_t start_count;
    uint32_t start_order[SIM_PLACEMENTS_MAX];
    uint32_t ci_count;
    struct sim_ci_profile ci[SIM_CI_PROFILES_MAX];
};

enum sim_mig_enable {
    SIM_MIG_NONE,      /* no MIG on this board */
    SIM_MIG_GPU_RESET, /* Ampere: the switch resets the card; the mode outlives a reboot */
    SIM_MIG_IMMEDIATE, /* Hopper and later: at once; the mode is lost on reboot */
};

struct sim_board {
    char key[32];       /* "a100-80gb" */
    char name[64];      /* "NVIDIA A100-SXM4-80GB" */
    char arch_name[16]; /* "Ampere" */
    uint32_t arch;      /* NVML_DEVICE_ARCH_* */
    uint32_t brand;     /* nvmlBrandType_t: 0 unknown, 5 GeForce, 14 NVIDIA RTX, 16 NVIDIA … */
    uint32_t cc_major;  /* CUDA compute capability */
    uint32_t cc_minor;  /*  */
    uint32_t pci_device_id;     /* 0x20B210DE: device and vendor as nvmlPciInfo_t has them */
    uint32_t pci_subsys_id;     /* 0: not known */
    uint32_t memory_mib;        /* with the reserved part */
    uint32_t reserved_mib;      /* what the driver keeps for itself */
    uint32_t sm;                /* multiprocessors of the whole card */
    uint32_t cores_per_sm;      /* 0: not known */
    uint32_t units;             /* memory units; 0 without MIG */
    uint32_t slices;            /* compute slices; 0 without MIG */
    struct sim_engines engines; /* all there are; sim_board_check fills 0s from the profiles */
    enum sim_mig_enable mig_enable;
    bool ecc;               /* memory with ECC */
    bool passive;           /* no fan of its own */
    bool unconfirmed;       /* some figure of this board has only weak sources */
    uint32_t power_idle_mw; /* 0 in any of these: not known, not reported */
    uint32_t power_limit_mw;
    uint32_t power_min_mw;
    uint32_t clock_sm_max_mhz;
    uint32_t clock_sm_idle_mhz;
    uint32_t clock_mem_mhz;
    uint32_t temp_slowdown_c;
    uint32_t temp_shutdown_c;
    uint32_t pcie_gen; /* highest link generation */
    uint32_t pcie_width;
    uint32_t profile_count;
    struct sim_profile profiles[SIM_PROFILES_MAX];
};

/*
 * Checks a board that was read from a file and fills what follows from the
 * rest: engine totals that are 0 (the largest of any profile), start orders
 * that are empty (high starts first), CI placements need nothing. -EINVAL
 * with the profile and field named; the board is then half filled and of no
 * use.
 */
int sim_board_check(struct sim_board *b, struct err *e);

/* The profile with this id, or with this NVML index; NULL when the board has none. */
const struct sim_profile *sim_board_profile(const struct sim_board *b, uint32_t id);
const struct sim_profile *sim_board_profile_at(const struct sim_board *b, uint32_t index);
/* By name ("2g.20gb"), for tools. */
const struct sim_profile *sim_board_profile_named(const struct sim_board *b, const char *name);

const struct sim_ci_profile *sim_ci_profile(const struct sim_profile *p, uint32_t id);
const struct sim_ci_profile *sim_ci_profile_at(const struct sim_profile *p, uint32_t index);

#endif
