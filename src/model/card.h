/*
 * card.h - a physical GPU as the driver shows it at one moment, and the
 * snapshot of all of them.
 *
 * Nothing of Divvy's own is in here but the ordinal: who may use a card and
 * who holds a slice stand in inventory.h. A card's identity is its UUID. A
 * slice's identity is (card UUID, GI id, CI id) plus a generation that the
 * store hands out, because MIG UUIDs come back after a re-cut.
 *
 * A value that the driver did not give is absent: its bit in `known` is not
 * set, and it is shown as "n/a", never as 0.
 */
#ifndef DIVVY_MODEL_CARD_H
#define DIVVY_MODEL_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "model/board.h"

#define CARD_UUID_SIZE 96
#define CARD_BUS_ID_SIZE 32
#define NOT_AN_INSTANCE UINT32_MAX /* GI or CI id that is none */

enum card_health {
    CARD_OK = 0,
    CARD_LOST,           /* fell off the bus, or was here and is not enumerated any more */
    CARD_UNRESPONSIVE,   /* a driver call on it passed its limit */
    CARD_RESET_REQUIRED, /* the driver wants a reset before anything else */
    CARD_HIDDEN,         /* enumerated, and this caller may not open it */
};

enum card_known {
    KNOW_TEMPERATURE = 1 << 0,
    KNOW_POWER = 1 << 1,
    KNOW_POWER_LIMIT = 1 << 2,
    KNOW_LOAD = 1 << 3,
    KNOW_MEMORY = 1 << 4,
    KNOW_PROCESSES = 1 << 5,
    KNOW_NUMA = 1 << 6,
    KNOW_SLICES = 1 << 7, /* MIG is on and the instances could be listed */
    KNOW_COMPUTE_MODE = 1 << 8,
    KNOW_APP_CLOCKS = 1 << 9, /* both of them */
};

/* What was set on a card, and stays when the process that set it is gone. */
struct card_settings {
    uint32_t compute_mode; /* NVML_COMPUTEMODE_*: 0 default, 2 prohibited, 3 exclusive process */
    uint32_t app_sm_mhz, app_mem_mhz; /* application clocks */
};

/* A process that the driver lists on a card. */
struct gpu_process {
    pid_t pid;
    uid_t uid; /* (uid_t)-1: gone or not readable */
    uint64_t
        start_ticks; /* field 22 of /proc/PID/stat; 0: not readable. pid and this are one process */
    uint64_t mem_bytes; /* UINT64_MAX: not told */
    uint32_t gi, ci;    /* NOT_AN_INSTANCE on a card without MIG */
    bool graphics;
    char name[64]; /* comm; "" when not readable */
};

/* A compute instance in a GPU instance, or a GPU instance without any (ci NOT_AN_INSTANCE). */
struct slice {
    uint32_t gi, ci;
    uint32_t profile_id;   /* of the GPU instance */
    uint32_t start, units; /* memory units */
    uint32_t ci_profile_id;
    uint32_t ci_start, ci_slices; /* compute slices inside the GPU instance */
    bool full;                    /* the compute instance fills its GPU instance */
    char uuid[CARD_UUID_SIZE];    /* "" without a compute instance */
    bool mem_known;
    uint64_t mem_total_bytes, mem_used_bytes;
    /* How much of the time something ran on it, where the card tells (GPM), and since when. */
    bool load_known;
    uint32_t load_percent;
    int64_t load_since_boot_us;
};

#define CARD_PEERS_MAX 15u

/* How another card is reached from this one. */
struct card_peer {
    char bus_id[CARD_BUS_ID_SIZE];
    uint32_t
        nvlinks;   /* direct ones, or as many as both have to the switches; 0: none, or off (MIG) */
    uint32_t path; /* PCIe: 0 same board, 10 one switch, 20 several, 30 host bridge, 40 NUMA
                         node, 50 between nodes (NVML_TOPOLOGY_*) */
};

struct card {
    char uuid[CARD_UUID_SIZE];     /* "" for a card that gave none (lost at start) */
    char bus_id[CARD_BUS_ID_SIZE]; /* "00000000:07:00.0", as NVML writes it */
    uint32_t index;                /* NVML's, at this moment; not stable */
    uint32_t minor;                /* N of /dev/nvidiaN; UINT32_MAX: not told */
    uint32_t ordinal; /* gpuN; once per UUID, given by whoever keeps a store, else PCI order */
    enum card_health health;
    char trouble[160];  /* why it is not CARD_OK, for a person; "" when it is */
    struct board board; /* geometry; profile_count 0 where the driver does not tell it now */
    bool mig_capable;
    bool mig_now, mig_pending; /* mode current, and after the next reset */
    unsigned int known;        /* enum card_known bits */
    uint64_t mem_total_bytes, mem_used_bytes;
    uint32_t temperature_c, power_mw, power_limit_mw, load_percent;
    struct card_settings settings;
    int32_t numa_node;
    struct slice *slices; /* by start, then GI, then CI */
    size_t slice_count, slice_alloc;
    struct gpu_process *processes;
    size_t process_count, process_alloc;
    uint32_t peer_count;
    struct card_peer peers[CARD_PEERS_MAX];
    uint64_t xid_last; /* last XID event seen on it; 0: none since the watch began */
};

/* What lies between two cards; an unknown pair counts as the farthest. */
#define CARD_PATH_FARTHEST 50u

/* The entry about the other card, or NULL. */
const struct card_peer *card_peer(const struct card *c, const char *bus_id);

/* What the driver said, all cards in PCI order. */
struct snapshot {
    struct now taken;
    char driver_version[32];
    char nvml_version[32];
    struct card *cards;
    size_t card_count, card_alloc;
};

#define SNAPSHOT_INIT                                                                              \
    {                                                                                              \
        .cards = NULL                                                                              \
    }

void card_done(struct card *c);
/* Deep copy; `ret` need not be initialised. */
void card_copy(const struct card *c, struct card *ret);
/* The order of its slices everywhere: by where they begin, then by instances. */
void card_sort_slices(struct card *c);
void snapshot_done(struct snapshot *s);
void snapshot_copy(const struct snapshot *s, struct snapshot *ret);

/* NULL when there is none. Borrowed from the snapshot. */
struct card *snapshot_card(const struct snapshot *s, const char *uuid);
struct card *snapshot_ordinal(const struct snapshot *s, uint32_t ordinal);
struct slice *card_slice(const struct card *c, uint32_t gi, uint32_t ci);

/* New zeroed entry at the end; valid until the next addition. */
struct card *snapshot_add_card(struct snapshot *s);
struct slice *card_add_slice(struct card *c);
struct gpu_process *card_add_process(struct card *c);

/* Sorts cards by PCI address and gives ordinals 0, 1, … in that order. */
void snapshot_number(struct snapshot *s);

/* "ok", "lost", "unresponsive", "reset required", "hidden". */
const char *card_health_word(enum card_health h);

#endif
