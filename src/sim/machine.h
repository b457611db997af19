/*
 * machine.h - a simulated machine, shared by all processes that look at it.
 *
 * A machine is a directory (DIVVY_SIM), made by `divvy-sim up`:
 *
 *     state     fixed size, mapped by everybody: boards that never change, and
 *               two slots of struct sim_state of which one is active
 *     lock      flock(2)ed by whoever changes state or registers a process
 *     procs/    sticky and writable by all: one file a process that uses a
 *               card (sim/process.h)
 *     root/     what stands in for /dev, /proc and /sys (made by divvy-sim)
 *
 * Invariants:
 *  - Readers take no lock, never wait and never see half a change. A change is
 *    written to the slot that is not active, then the active number is stored:
 *    a writer killed at any instruction leaves the old state or the new one.
 *  - Changing needs write permission on `state`: the owner or root.
 *  - The lock is never held while a fault makes somebody wait.
 *  - sim_state says nothing of processes; a change that must not meet a new
 *    process (destroy, reset) looks at sim_procs_read() inside its edit,
 *    because registering takes the same lock.
 *
 * Reading:
 *
 *     struct machine *m;
 *     if (machine_open(NULL, &m, e) < 0) ...          // NULL: machine_default_dir()
 *     struct sim_card card;
 *     machine_card(m, 0, &card);
 *     const struct sim_board *board = &machine_boards(m)[card.board];
 *     machine_close(m);
 *
 * Changing (all of it or nothing):
 *
 *     AUTO(machine_edit) struct machine_edit edit = MACHINE_EDIT_INIT;
 *     rc = machine_edit_begin(m, &edit, e);           // -EACCES: not the owner
 *     if (rc == 0)
 *         rc = sim_fault_set(edit.state, 0, "xid:79", e);
 *     if (rc == 0)
 *         rc = machine_edit_commit(&edit);            // otherwise: nothing changed
 *
 * A reboot is sim_reboot(edit.state, machine_boards(m)); a reset
 * sim_card_reset(edit.state, card, sim_card_busy(m, card)). Reboots forget
 * instances, faults, settings and registered processes; boards that keep their
 * MIG mode (SIM_MIG_GPU_RESET) come back in the pending one, others with MIG
 * off.
 */
#ifndef DIVVY_SIM_MACHINE_H
#define DIVVY_SIM_MACHINE_H

#include "sim/state.h"

#define SIM_BOARDS_MAX 16

struct machine;

struct machine_edit {
    struct machine *machine; /* NULL: nothing is open */
    struct sim_state *state; /* change this */
    struct sim_file *map;
    int lock_fd;
};
#define MACHINE_EDIT_INIT                                                                          \
    {                                                                                              \
        .machine = NULL, .state = NULL, .map = NULL, .lock_fd = -1                                 \
    }

/* DIVVY_SIM, else /run/divvy-sim for root, else $XDG_RUNTIME_DIR/divvy-sim, else
   /tmp/divvy-sim-UID. Caller frees. */
char *machine_default_dir(void);

/*
 * Opens the machine in `dir` (NULL: the default one) for reading. -ENOENT: no
 * machine is up there; -EINVAL: its state is from another version or no state.
 * The handle may be used by several threads.
 */
int machine_open(const char *dir, struct machine **ret_machine, struct err *e);
void machine_close(struct machine *m);

const char *machine_dir(const struct machine *m);
/* Never changes while the machine is up; valid until machine_close. */
const struct sim_board *machine_boards(const struct machine *m);
uint32_t machine_board_count(const struct machine *m);
uint32_t machine_card_count(const struct machine *m);
/* May this process change the machine? (Its owner and root may.) */
bool machine_is_ours(const struct machine *m);
/* Taken down meanwhile? All reads then show the last state. */
bool machine_is_gone(const struct machine *m);
/* CLOCK_BOOTTIME of machine_make, microseconds. */
int64_t machine_up_us(const struct machine *m);

/* A consistent copy of everything (about 100 kB). */
void machine_read(const struct machine *m, struct sim_state *ret_state);
/* A consistent copy of one card; ordinal < machine_card_count(). */
void machine_card(const struct machine *m, uint32_t ordinal, struct sim_card *ret_card);

/* Single numbers of the state, without a copy of it all. */
uint32_t machine_branch(const struct machine *m); /* sim_branch() */
uint32_t machine_boot(const struct machine *m);
uint64_t machine_last_event(const struct machine *m);
void machine_profile_name(const struct machine *m, const char *name, char ret_name[64]);
/* Of the library that a program which starts now gets. */
void machine_library_version(const struct machine *m, char ret_version[40]);
/* Does a library of that version work with the driver that is loaded? */
bool machine_library_fits(const struct machine *m, const char *version);

/* Number of the present state; grows by one with every change. */
uint64_t machine_version(const struct machine *m);
/* Sleeps until the state is no longer `version`, at most timeout_ms; may also wake early. */
void machine_wait(const struct machine *m, uint64_t version, uint32_t timeout_ms);

/*
 * What every driver call on a card passes first: sleeps slow_ms, and while the
 * card hangs, blocks until that fault is cleared or the machine is gone.
 * Returns the card as it is afterwards.
 */
void machine_gate(const struct machine *m, uint32_t ordinal, struct sim_card *ret_card);

/*
 * Takes the lock and a copy to change. -EACCES when the caller is neither
 * owner nor root, -ESHUTDOWN when the machine is gone. Others wait until
 * commit or machine_edit_done: keep it short.
 */
int machine_edit_begin(struct machine *m, struct machine_edit *ret_edit, struct err *e);
/* Makes the copy the state, wakes those who wait, gives the lock back. Returns 0. */
int machine_edit_commit(struct machine_edit *edit);
/* Gives the lock back and changes nothing, unless committed. For AUTO(machine_edit). */
void machine_edit_done(struct machine_edit *edit);

/* The lock alone, for sim/process.h: a descriptor to close, or -errno. */
int machine_lock(const struct machine *m, struct err *e);

/* ---- making and removing (machine_make.c; not part of the driver library) ---- */

struct machine_plan {
    const struct sim_board *boards; /* checked with sim_board_check */
    uint32_t board_count;
    const uint32_t *cards; /* for each card, in PCI order, the position of its board */
    uint32_t card_count;
    const char *driver_version; /* NULL: 550.163.01 */
    uint32_t cuda_version;      /* 0: 12040 */
    uint64_t seed;              /* UUIDs and serials follow from this and the ordinal */
};

/*
 * Makes a machine in `dir` (which may exist): whole or not at all. All cards
 * have MIG off. -EEXIST when one is up there, -EINVAL for a bad plan.
 */
int machine_make(const char *dir, const struct machine_plan *plan, struct err *e);

/*
 * Takes the machine down: open handles see it gone; state, lock and procs are
 * removed, other things in `dir` (root/) stay. -ENOENT: none there, -EACCES.
 */
int machine_remove(const char *dir, struct err *e);

#endif
