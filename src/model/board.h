/*
 * board.h - the geometry of a GPU model: how a card of it can be cut.
 *
 * A board is measured in memory units (8 on A100, H100 and B200 class, 4 on
 * A30, 12 on RTX PRO 6000) and compute slices (7, or 4). A profile is a kind
 * of GPU instance: so many compute slices, a run of `units` memory units that
 * may begin only at the listed starts, and a part of the media engines.
 *
 * Boards are asked of the driver at run time (driver/), or read from a board
 * file where there is no hardware (config/). Both give this struct; nothing
 * in it is computed from names. What nobody told is 0 and said so below.
 *
 * Source of the numbers: nvmlDeviceGetGpuInstanceProfileInfoV and
 * nvmlDeviceGetGpuInstancePossiblePlacements_v2, or boards/README.md.
 */
#ifndef DIVVY_MODEL_BOARD_H
#define DIVVY_MODEL_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define BOARD_PROFILES_MAX 24
#define BOARD_UNITS_MAX 16
#define PROFILE_CI_MAX 10
#define PROFILE_NAME_SIZE 32
#define BOARD_NAME_SIZE 96
#define BOARD_KEY_SIZE 32
#define BOARD_ALSO_MAX 8

/* How a change of the MIG mode becomes current. */
enum mig_activation {
    MIG_NONE = 0,  /* the card cannot be cut */
    MIG_BY_RESET,  /* Ampere: the driver resets the card; kept over a reboot */
    MIG_IMMEDIATE, /* Hopper and later: at once; lost on a reboot */
    MIG_NOT_TOLD,  /* capable, and the driver does not say which (field 184 missing) */
};

/* A kind of compute instance inside a GPU instance. */
struct ci_profile {
    uint32_t id;                  /* what nvmlGpuInstanceCreateComputeInstance takes */
    uint32_t index;               /* NVML_COMPUTE_INSTANCE_PROFILE_* */
    uint32_t slices;              /* compute slices */
    uint32_t sms;                 /* multiprocessors; 0: not told */
    uint32_t max;                 /* how many fit in one GPU instance */
    char name[PROFILE_NAME_SIZE]; /* "1c.3g.40gb"; the full one is called like its profile */
};

struct profile {
    uint32_t id;    /* what nvidia-smi prints and NVML's create takes (19, 14, 9 …) */
    uint32_t index; /* NVML_GPU_INSTANCE_PROFILE_*; differs from id */
    char name[PROFILE_NAME_SIZE]; /* "2g.20gb", "1g.10gb+me" */
    uint32_t slices;              /* compute slices */
    uint32_t units;               /* memory units, the size of each placement */
    uint64_t mem_bytes;           /* usable memory; differs by driver, never compare for equality */
    uint32_t sms;
    uint32_t copy_engines, decoders, encoders, jpegs, ofas;
    uint32_t max; /* at most so many on an empty card */
    uint32_t start_count;
    uint8_t starts[BOARD_UNITS_MAX]; /* allowed first memory units, ascending */
    uint32_t order_count;
    uint8_t order[BOARD_UNITS_MAX]; /* starts as the driver itself picks them; 0 entries: unknown.
                                        Only the simulated driver needs it. */
    uint32_t ci_count;
    struct ci_profile cis[PROFILE_CI_MAX];
    bool unconfirmed; /* some number of it is inferred, not seen on hardware */
};

struct board {
    char key[BOARD_KEY_SIZE];   /* "a100-80gb"; "" when asked of a driver */
    char name[BOARD_NAME_SIZE]; /* "NVIDIA A100-SXM4-80GB", as NVML says it */
    enum mig_activation activation;
    uint32_t units;     /* memory units; 0 when it cannot be cut */
    uint32_t slices;    /* compute slices of a cut card */
    uint64_t mem_bytes; /* total memory of the card */
    uint32_t sms;       /* multiprocessors of the whole card; 0: not told */
    uint32_t profile_count;
    struct profile profiles[BOARD_PROFILES_MAX];
    /* What a simulated card needs beyond that; 0 or "" when asked of a driver. */
    uint32_t also_pci[BOARD_ALSO_MAX]; /* other device ids that are cut the same way */
    uint32_t also_count;
    uint32_t pci_device_id; /* device << 16 | vendor, as nvmlPciInfo_t has it */
    uint32_t arch;          /* NVML_DEVICE_ARCH_* */
    uint32_t cc_major, cc_minor;
    uint32_t power_idle_mw, power_limit_mw;
    uint32_t copy_engines, decoders, encoders, jpegs, ofas; /* of the whole card */
    uint64_t reserved_bytes; /* what the driver keeps of mem_bytes for itself */
    uint32_t brand;          /* NVML_BRAND_*; 0 unknown */
    uint32_t cores_per_sm;
    uint32_t clock_idle_mhz, clock_max_mhz, clock_memory_mhz; /* multiprocessors, memory */
    uint32_t temp_slowdown_c, temp_shutdown_c;
    uint32_t pcie_gen, pcie_width; /* highest link */
    bool ecc;                      /* memory with ECC */
    bool fan;                      /* a fan of its own */
    char min_driver[24];
    bool unconfirmed;
};

/* NULL when there is none. The name is matched by board_name_matches. */
const struct profile *board_profile_by_id(const struct board *b, uint32_t id);
const struct profile *board_profile_by_name(const struct board *b, const char *name);

/* The compute instance profile that fills the whole GPU instance; NULL: none known. */
const struct ci_profile *profile_full_ci(const struct profile *p);
const struct ci_profile *profile_ci_by_id(const struct profile *p, uint32_t id);

bool profile_starts_at(const struct profile *p, uint32_t start);

/*
 * Is `asked` another spelling of `name`? Case does not matter, and neither
 * does a "MIG " in front, as nvidia-smi prints. Suffixes (+me, +gfx, -me)
 * must agree. Memory numbers must agree exactly: 1g.5gb is not 1g.10gb.
 */
bool profile_name_matches(const char *name, const char *asked);

/*
 * "A100-SXM4-80GB has 1g.10gb, 1g.10gb+me, …": the sentence that every refusal of a
 * profile ends with. Caller frees.
 */
char *board_profiles_sentence(const struct board *b);

/* The board's name without "NVIDIA " in front; inside b->name, not to be freed. */
const char *board_short_name(const struct board *b);

/*
 * The part of the whole card that a profile is, in ppm (1,000,000 is all of
 * it): compute slices of all compute slices, memory units of all memory units.
 */
uint32_t profile_compute_ppm(const struct board *b, const struct profile *p);
uint32_t profile_mem_ppm(const struct board *b, const struct profile *p);

#endif
