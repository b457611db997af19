/*
 * state.h - what of a simulated machine can change: its cards, their MIG mode
 * and instances, the faults put on them, and the events that happened.
 *
 * Plain data and pure functions on it: no files, no clock, no locks. How the
 * state is shared between processes stands in sim/machine.h, what MIG allows
 * in sim/mig.h.
 *
 * Invariants: a GPU instance lies in gi[id], and its id follows from its
 * placement; `used` says whether a slot is taken. An instance, once made, has
 * an incarnation that no other instance of this card ever had, so that a
 * handle to a destroyed one can be told from one made later at the same place.
 */
#ifndef DIVVY_SIM_STATE_H
#define DIVVY_SIM_STATE_H

#include "sim/board.h"

#define SIM_CARDS_MAX 32
#define SIM_GI_MAX 15 /* ids 0 (whole), 1-2 (halves), 3-6 (quarters), 7-14 (eighths) */
#define SIM_CI_MAX 8
#define SIM_EVENTS_MAX 64
#define SIM_NO_INSTANCE 0xFFFFFFFFU /* as NVML says "no GPU or compute instance" */

struct sim_ci {
    bool used;
    uint32_t incarnation;
    uint32_t profile; /* position in the GPU instance profile's ci[] */
    struct sim_span span;
};

struct sim_gi {
    bool used;
    uint32_t incarnation;
    uint32_t profile; /* position in the board's profiles[] */
    struct sim_span span;
    struct sim_ci ci[SIM_CI_MAX]; /* by compute instance id */
};

enum sim_fault {
    SIM_FAULT_LOST = 1 << 0,           /* fell off the bus: every call says GPU_IS_LOST */
    SIM_FAULT_IN_USE = 1 << 1,         /* an unnamed client holds it: no mode change, no reset */
    SIM_FAULT_RESET_REQUIRED = 1 << 2, /* mode changes stay pending until a reset */
    SIM_FAULT_DESTROY_LIES = 1 << 3,   /* destroying says SUCCESS and leaves the instance */
    SIM_FAULT_HANG = 1 << 4,           /* calls block until the fault is cleared */
    SIM_FAULT_PASSTHROUGH = 1 << 5,    /* a guest's card: a reset does nothing, a reboot does */
    SIM_FAULT_NVLINK = 1 << 6,         /* linked: reset only together with all that have this */
};

#define SIM_RENAMES_MAX 4

/* A profile that a driver calls otherwise than the board's file. */
struct sim_rename {
    char from[32], to[32];
};

/* A driver as it lies on the disk: the next load takes it. */
struct sim_package {
    char version[40];
    uint32_t cuda_version;
    uint32_t uuid_series; /* other numbers: other UUIDs of MIG devices */
    uint32_t rename_count;
    struct sim_rename renames[SIM_RENAMES_MAX];
};

struct sim_card {
    uint32_t board; /* position among the machine's boards */
    uint32_t minor; /* N of /dev/nvidiaN */
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    char uuid[48];   /* "GPU-8-4-4-4-12" */
    char serial[16]; /* decimal */

    bool mig_current;
    bool mig_pending;
    uint32_t last_incarnation;
    struct sim_gi gi[SIM_GI_MAX]; /* by GPU instance id */

    uint32_t faults;          /* enum sim_fault, or-ed */
    uint32_t slow_ms;         /* every call takes this much longer; 0: no */
    uint32_t fail_create_nth; /* the Nth next create fails; 0: none */
    uint32_t leak_mib;        /* memory in use on it and on each of its slices, by no process */
    uint32_t last_xid;        /* 0: none yet */
    uint32_t uuid_series;     /* of the driver that is loaded */

    bool persistence;
    uint32_t compute_mode;   /* NVML_COMPUTEMODE_* */
    uint32_t power_limit_mw; /* 0: the board's own */
    uint32_t clock_lock_mhz; /* highest SM clock allowed; 0: not locked */
    uint32_t app_sm_mhz;     /* application clocks; 0: the board's own */
    uint32_t app_mem_mhz;
};

struct sim_event {
    uint64_t seq;  /* 1, 2, 3, … over the life of the machine */
    uint64_t type; /* nvmlEventType… */
    uint64_t data; /* the XID */
    uint32_t card; /* ordinal */
    uint32_t gi;   /* SIM_NO_INSTANCE: the whole card */
    uint32_t ci;
};

struct sim_state {
    char driver_version[40]; /* "550.163.01"; what of MIG works follows its branch */
    uint32_t cuda_version;   /* 12040 is 12.4 */
    uint32_t boot;           /* counts reboots; uses registered in an earlier boot are gone */
    uint32_t rename_count;   /* of the driver that is loaded */
    struct sim_rename renames[SIM_RENAMES_MAX];
    struct sim_package
        installed;       /* another version: libraries refuse to start until it is loaded */
    uint64_t last_event; /* seq of the newest event, 0 while there is none */
    struct sim_event events[SIM_EVENTS_MAX]; /* event `seq` lies at seq % SIM_EVENTS_MAX */
    uint32_t card_count;
    struct sim_card cards[SIM_CARDS_MAX]; /* by ordinal, in PCI order */
};

/* 550 of "550.163.01". */
uint32_t sim_branch(const struct sim_state *st);
uint32_t sim_branch_of(const char *driver_version);

/* May profiles and placements be asked while MIG is off? (From branch 550.) */
bool sim_branch_plans_without_mig(const struct sim_state *st);

/* "7g.80gb", "1c.7g.80gb" as the driver that is loaded calls it. */
void sim_profile_name(const struct sim_rename *renames, uint32_t count, const char *name,
                      char ret_name[64]);

/* Appends an event. gi and ci may be SIM_NO_INSTANCE. */
void sim_event_add(struct sim_state *st, uint32_t card, uint64_t type, uint64_t data, uint32_t gi,
                   uint32_t ci);

/* Number of GPU instances that exist on the card. */
uint32_t sim_card_instances(const struct sim_card *c);

/*
 * Changes the MIG mode as nvmlDeviceSetMigMode does; the return value is its
 * activation status: 0 (now current), -EBUSY (stored as pending, somebody or
 * some instance holds the card), -EINPROGRESS (stored, needs a reset). `busy`:
 * processes use the card. -EOPNOTSUPP: the board has no MIG; nothing changes.
 */
int sim_card_set_mig(struct sim_state *st, const struct sim_board *boards, uint32_t card, bool on,
                     bool busy);

/*
 * A reset: instances and faults that a reset mends (lost, reset-required) are
 * gone, the pending MIG mode becomes current. -EBUSY while `busy` or the
 * in-use fault is set, -EOPNOTSUPP in a guest; nothing changes then.
 */
int sim_card_reset(struct sim_state *st, uint32_t card, bool busy);

/* The whole machine starts again: see the manual on top of sim/machine.h. */
void sim_reboot(struct sim_state *st, const struct sim_board *boards);

/*
 * The driver that is installed is loaded anew and the machine runs on: all
 * instances are gone, and the MIG mode of boards that keep it in the driver alone. What is wrong
 * with a card stays wrong.
 */
void sim_reload(struct sim_state *st, const struct sim_board *boards);

/*
 * Puts a fault on a card, in the words of `divvy-sim fault`: "lost", "in-use",
 * "reset-required", "create-fails:N", "destroy-lies", "slow:MS", "hang",
 * "passthrough", "nvlink", "leak:MIB", "xid:N" (an event; 79 also loses the card, as its meaning is that the card
 * has fallen off the bus), "none" (clears all of them). -EINVAL with a text
 * that lists these.
 */
int sim_fault_set(struct sim_state *st, uint32_t card, const char *words, struct err *e);

/* Counts one attempt to create an instance; true when create-fails:N wants it to fail. */
bool sim_create_fails(struct sim_card *c);

/*
 * The UUID of the MIG device (card, gi, ci): "MIG-8-4-4-4-12", 41 bytes with
 * the NUL. A version-5 UUID over the card's UUID and the two ids, so an
 * instance cut again at the same place has the same one, as on real drivers.
 */
void sim_mig_uuid(const struct sim_card *c, uint32_t gi, uint32_t ci, char ret_uuid[48]);

#endif
